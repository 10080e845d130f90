"""Discrete-time Markov chains with finitely many named states."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.markov.chains.chain import Chain
from qmodels.markov.chains.chain_results import StationaryDistribution, reward_vector
from qmodels.markov.chains.structure import (
    Transitions,
    explore,
    from_networkx,
    off_diagonal,
    require_row_sums,
    square_sparse,
)
from qmodels.numerics.elimination import LARGEST_EXACT


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DTMC(Chain):
    r"""A discrete-time Markov chain, validated once and then asked.

    Parameters
    ----------
    transition_matrix : array or sparse array, shape (n, n)
        Probabilities :math:`p_{ij} \ge 0`, rows that sum to 1 (to 1e-9; the diagonal is
        recomputed from the rest).
    states : sequence of hashable, optional
        Names of the rows; 0 .. n - 1 by default.

    Raises
    ------
    ValueError
        If the matrix is not square and finite, a probability is negative, a row does not sum to
        1, or names are missing or repeated. Row and value are named.

    Examples
    --------
    A memory bank whose requests hit the open row with probability 0.7 after a hit, 0.4 after a miss:

    >>> bank = DTMC(transition_matrix=[[0.7, 0.3], [0.4, 0.6]], states=["hit", "miss"])
    >>> round(bank.stationary().probability("hit"), 6)
    0.571429
    >>> bank.transient(steps=2, initial="miss").round(4)
    array([0.52, 0.48])
    """

    transition_matrix: Any
    states: Sequence[Any] = None  # type: ignore[assignment]  # always a sequence once constructed

    def __post_init__(self) -> None:
        from scipy.sparse import diags_array

        rows = square_sparse("transition_matrix", self.transition_matrix)
        rates = off_diagonal("transition_matrix", rows)
        diagonal = rows.diagonal()
        if np.any(diagonal < 0):
            k = int(np.argmax(diagonal < 0))
            raise ValueError(f"transition_matrix must be >= 0, got {diagonal[k]:.12g} in row {k}, column {k}")
        require_row_sums("transition_matrix", rows, 1.0)
        object.__setattr__(self, "_rates", rates)
        stay = np.maximum(1.0 - np.asarray(rates.sum(axis=1)).ravel(), 0.0)
        object.__setattr__(self, "transition_matrix", (rates + diags_array(stay)).tocsr())
        self._name_states(rows.shape[0])

    @classmethod
    def from_transitions(
        cls, *, initial_state: Hashable, transitions: Transitions, max_states: int = 2_000_000
    ) -> DTMC:
        """Build the states reachable from one by a function of the state.

        Parameters
        ----------
        initial_state : hashable
            The first state.
        transitions : callable
            Gives, for a state, pairs (next state, probability) or a mapping; they sum to 1 and
            those to one state add up.
        max_states : int
            More states than this are an error (a rule without end).

        Returns
        -------
        DTMC
            States in order of discovery.

        Raises
        ------
        ValueError
            If a probability is negative, a state's do not sum to 1, or there are too many states.

        Examples
        --------
        >>> ring = DTMC.from_transitions(initial_state=0, transitions=lambda k: [((k + 1) % 4, 1.0)])
        >>> len(ring.states), ring.period
        (4, 4)
        """
        states, entries = explore(initial_state, transitions, max_states)
        return cls(transition_matrix=entries, states=states)

    @classmethod
    def from_graph(cls, *, graph: Any, weight: str = "probability") -> DTMC:
        """Read a NetworkX directed graph: nodes are states, an edge attribute is the probability.

        Parameters
        ----------
        graph : networkx.DiGraph or MultiDiGraph
            Parallel edges add up.
        weight : str
            Name of the attribute.

        Returns
        -------
        DTMC
            States in the order of the nodes.

        Raises
        ------
        ValueError
            If the graph is empty or undirected, or probabilities are missing or wrong.

        Examples
        --------
        >>> import networkx as nx
        >>> graph = nx.DiGraph()
        >>> graph.add_edge("a", "b", probability=1.0)
        >>> graph.add_edge("b", "a", probability=1.0)
        >>> DTMC.from_graph(graph=graph).stationary().probability("a")
        0.5
        """
        states, entries = from_networkx(graph, weight)
        return cls(transition_matrix=entries, states=states)

    def stationary(
        self,
        *,
        initial: Any = None,
        method: str = "auto",
        tolerance: float = 1e-12,
        max_iterations: int = 1000,
    ) -> StationaryDistribution:
        r"""Long-run law :math:`\pi P = \pi`; of a periodic class the mean over its period.

        Parameters
        ----------
        initial : state, mapping or array, optional
            Start; needed for `probabilities` only if there are several closed classes.
        method, tolerance, max_iterations
            As in `CTMC.stationary`.

        Returns
        -------
        StationaryDistribution
            With the residual reached, the closed classes and the transient states.

        Examples
        --------
        >>> DTMC(transition_matrix=[[0, 1], [1, 0]]).stationary().probabilities
        array([0.5, 0.5])
        """
        return self._stationary(initial, method, tolerance, max_iterations)

    @cached_property
    def period(self) -> int:
        """Greatest common divisor of the lengths of all cycles of the closed classes."""
        period = 0
        for members in self.classes.closed:
            part = self._rates[members][:, members]
            depth = np.full(members.size, -1)
            depth[0] = 0
            edge = np.array([0])
            while edge.size:
                following = np.unique(part[edge].indices)
                edge_depth = depth[edge[0]] + 1
                edge = following[depth[following] < 0]
                depth[edge] = edge_depth
            entries = part.tocoo()
            period = int(np.gcd.reduce(depth[entries.row] + 1 - depth[entries.col], initial=period))
            if np.any(self.transition_matrix.diagonal()[members] > 0):
                period = 1
        return period

    def transient(self, *, steps: npt.ArrayLike, initial: Any) -> FloatArray:
        r"""Law after given numbers of steps, :math:`\pi(0) P^k`.

        Parameters
        ----------
        steps : array_like of int
            Numbers of steps :math:`k \ge 0`.
        initial : state, mapping or array
            Start: a state's name, probabilities by name, or an array over all states.

        Returns
        -------
        array
            Of shape ``steps.shape + (n,)``.

        Examples
        --------
        >>> DTMC(transition_matrix=[[0.5, 0.5], [0, 1]]).transient(steps=[0, 1, 10**6], initial=0)
        array([[1. , 0. ],
               [0.5, 0.5],
               [0. , 1. ]])
        """
        return self._run(steps, initial)[0]

    def occupancy(self, *, steps: npt.ArrayLike, initial: Any) -> FloatArray:
        r"""Mean number of visits to every state at steps 0 .. k - 1.

        Parameters
        ----------
        steps : array_like of int
            Numbers of steps :math:`k \ge 0`.
        initial : state, mapping or array
            Start.

        Returns
        -------
        array
            Of shape ``steps.shape + (n,)``; the states of one k sum to it.

        Examples
        --------
        >>> DTMC(transition_matrix=[[0.5, 0.5], [0, 1]]).occupancy(steps=3, initial=0)
        array([1.75, 1.25])
        """
        return self._run(steps, initial)[1]

    def accumulated_reward(self, *, reward: Any, steps: npt.ArrayLike, initial: Any) -> FloatArray:
        """Mean reward collected at steps 0 .. k - 1.

        Parameters
        ----------
        reward : callable, mapping or array
            Reward per visit: a function of the state's name, a mapping (other states 0) or an array.
        steps : array_like of int
            Numbers of steps >= 0.
        initial : state, mapping or array
            Start.

        Returns
        -------
        array
            Of the shape of `steps`.

        Examples
        --------
        >>> bank = DTMC(transition_matrix=[[0.5, 0.5], [0, 1]], states=["miss", "hit"])
        >>> float(bank.accumulated_reward(reward={"miss": 40, "hit": 15}, steps=3, initial="miss"))
        88.75
        """
        return np.asarray(self.occupancy(steps=steps, initial=initial) @ reward_vector(self.states, reward))

    def _run(self, steps: npt.ArrayLike, initial: Any) -> tuple[FloatArray, FloatArray]:
        counts = checks.count("steps", steps, minimum=0)
        start = self.start(initial)
        flat = counts.ravel()
        laws, visits = np.tile(start, (flat.size, 1)), np.zeros((flat.size, start.size))
        longest = int(flat.max(initial=0))
        if start.size <= LARGEST_EXACT and longest > start.size:
            power = self.transition_matrix.toarray()
            within = np.eye(start.size)  # visits during as many steps as `power` takes
            for bit in range(longest.bit_length()):
                chosen = (flat >> bit) & 1 == 1
                visits[chosen] += laws[chosen] @ within
                laws[chosen] = laws[chosen] @ power
                within = within + power @ within
                power = power @ power
                power /= power.sum(axis=1, keepdims=True)
        else:
            into = self.transition_matrix.T.tocsr()
            v = start
            so_far = np.zeros(start.size)
            for k in range(longest + 1):
                now = flat == k
                laws[now], visits[now] = v, so_far
                so_far = so_far + v
                v = into @ v
        shape = (*counts.shape, start.size)
        return laws.reshape(shape), visits.reshape(shape)

    def __repr__(self) -> str:
        return f"DTMC with {len(self.states)} states and {self.transition_matrix.nnz} transitions"
