"""Continuous-time Markov chains with finitely many named states."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
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
from qmodels.markov.chains.uniformization import transient
from qmodels.markov.words import described


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CTMC(Chain):
    r"""A continuous-time Markov chain, validated once and then asked.

    Parameters
    ----------
    generator : array or sparse array, shape (n, n)
        Rates :math:`q_{ij} \ge 0` off the diagonal, rows that sum to 0 (to 1e-9 of the row's
        magnitude; the diagonal is recomputed from the rest). [1 / time]
    states : sequence of hashable, optional
        Names of the rows; 0 .. n - 1 by default.

    Raises
    ------
    ValueError
        If the matrix is not square and finite, an off-diagonal rate is negative, a row does not
        sum to 0, or names are missing or repeated. Row and value are named.

    Examples
    --------
    A link that fails once in 1,000 hours and takes 2 hours to repair:

    >>> link = CTMC(generator=[[-0.001, 0.001], [0.5, -0.5]], states=["up", "down"])
    >>> round(link.stationary().probability("down"), 6)
    0.001996
    >>> round(float(link.transient(times=1.0, initial="up")[1]), 6)
    0.000787

    A tandem of two stations with 2 and 1 places; the state space is built from the rules:

    >>> def moves(jobs):
    ...     first, second = jobs
    ...     if first < 2:
    ...         yield (first + 1, second), 1.0
    ...     if first and second < 1:
    ...         yield (first - 1, second + 1), 2.0
    ...     if second:
    ...         yield (first, second - 1), 2.0
    >>> tandem = CTMC.from_transitions(initial_state=(0, 0), transitions=moves)
    >>> law = tandem.stationary()
    >>> len(tandem.states), round(law.expected(lambda jobs: sum(jobs)), 4)
    (6, 1.2419)
    """

    generator: Any
    states: Sequence[Any] = None  # type: ignore[assignment]  # always a sequence once constructed

    def __post_init__(self) -> None:
        from scipy.sparse import diags_array

        rows = square_sparse("generator", self.generator)
        rates = off_diagonal("generator", rows)
        require_row_sums("generator", rows, 0.0)
        object.__setattr__(self, "_rates", rates)
        exits = np.asarray(rates.sum(axis=1)).ravel()
        object.__setattr__(self, "generator", (rates - diags_array(exits)).tocsr())
        self._name_states(rows.shape[0])

    @classmethod
    @described()
    def from_transitions(
        cls, *, initial_state: Hashable, transitions: Transitions, max_states: int = 2_000_000
    ) -> CTMC:
        """Build the states reachable from one by a function of the state.

        Parameters
        ----------
        transitions : callable
            Gives, for a state, pairs (next state, rate) or a mapping from next state to rate.
            Several rates to one state add up; one to the state itself has no effect. [1 / time]

        Returns
        -------
        CTMC
            States in order of discovery.

        Raises
        ------
        ValueError
            If a rate is negative or not finite, or there are too many states.

        Examples
        --------
        >>> def moves(state):
        ...     return {"b": 1.0} if state == "a" else {"a": 2.0}
        >>> hop = CTMC.from_transitions(initial_state="a", transitions=moves)
        >>> hop.states
        ('a', 'b')
        """
        states, entries = explore(initial_state, transitions, max_states)
        return cls(generator=_closed(entries), states=states)

    @classmethod
    def from_graph(cls, *, graph: Any, weight: str = "rate") -> CTMC:
        """Read a NetworkX directed graph: nodes are states, an edge attribute is the rate.

        Parameters
        ----------
        graph : networkx.DiGraph or MultiDiGraph
            Parallel edges add up, self-loops have no effect.
        weight : str
            Name of the attribute. [1 / time]

        Returns
        -------
        CTMC
            States in the order of the nodes.

        Raises
        ------
        ValueError
            If the graph is empty or undirected, or an edge has no valid rate.

        Examples
        --------
        >>> import networkx as nx
        >>> graph = nx.DiGraph()
        >>> graph.add_edge("idle", "busy", rate=1.0)
        >>> graph.add_edge("busy", "idle", rate=3.0)
        >>> CTMC.from_graph(graph=graph).stationary().probability("busy")
        0.25
        """
        states, entries = from_networkx(graph, weight)
        return cls(generator=_closed(entries), states=states)

    @described("grassmann1985", "horton1994", initial="optional")
    def stationary(
        self,
        *,
        initial: Any = None,
        method: str = "auto",
        tolerance: float = 1e-12,
        max_iterations: int = 1000,
    ) -> StationaryDistribution:
        r"""Long-run law :math:`\pi Q = 0`, per closed class and weighted by where the chain ends.

        Parameters
        ----------
        method : {"auto", "gth", "direct", "iterative"}
            "gth": dense elimination, for small chains. "direct": sparse elimination along nested
            dissection. Both never subtract, so that every probability has a small relative
            error, whatever the magnitudes of the rates, down to 1e-290 of the largest (what lies
            below counts as 0). "iterative": multilevel aggregation, for
            chains whose elimination would not fit; accurate to `tolerance` in the residual only.
            "auto": "gth" up to 400 states, then "direct" while it needs less than 2e11
            operations and 2 GB, then "iterative".
        tolerance : float
            Largest residual accepted from the iteration: the sum over the states of
            :math:`|\text{inflow} - \text{outflow}|`, relative to the total flow.

        Raises
        ------
        RuntimeError
            If the iteration does not reach the tolerance, or parts of the chain are linked only by
            rates that underflow.

        Notes
        -----
        The first call of the sparse methods compiles them (seconds), later processes load them.

        Examples
        --------
        >>> CTMC(generator=[[-1, 1], [3, -3]]).stationary().probabilities
        array([0.75, 0.25])
        """
        return self._stationary(initial, method, tolerance, max_iterations)

    @described("jensen1953")
    def transient(self, *, times: npt.ArrayLike, initial: Any) -> FloatArray:
        r"""Law at given times, :math:`\pi(t) = \pi(0) e^{Qt}`.

        Returns
        -------
        array
            Of shape ``times.shape + (n,)``.

        Raises
        ------
        RuntimeError
            If the chain has more than 400 states and would need more than a million terms
            without reaching its long-run law.

        Notes
        -----
        Uniformization: a sum of non-negative terms (see `qmodels.markov.chains.uniformization`). Up to
        400 states long times cost a logarithmic number of squarings, so that a chain with
        rates from 1e-9 to 1e9 is no harder than another.

        Examples
        --------
        >>> CTMC(generator=[[-1, 1], [3, -3]]).transient(times=[0.0, 0.1, 99.0], initial=0).round(4)
        array([[1.    , 0.    ],
               [0.9176, 0.0824],
               [0.75  , 0.25  ]])
        """
        return self._run(times, initial)[0]

    @described()
    def occupancy(self, *, times: npt.ArrayLike, initial: Any) -> FloatArray:
        r"""Mean time spent in every state until given times, :math:`\int_0^t \pi(s)\,ds`.

        Returns
        -------
        array
            Of shape ``times.shape + (n,)``; the states of one time sum to it. [time]

        Examples
        --------
        >>> CTMC(generator=[[-1, 1], [3, -3]]).occupancy(times=10.0, initial=0).round(4)
        array([7.5625, 2.4375])
        """
        return self._run(times, initial)[1]

    def accumulated_reward(self, *, reward: Any, times: npt.ArrayLike, initial: Any) -> FloatArray:
        """Mean reward collected until given times.

        Parameters
        ----------
        reward : callable, mapping or array
            Reward per unit of time: a function of the state's name, a mapping (other states 0)
            or an array.
        times : array_like
            Times >= 0. [time]
        initial : state, mapping or array
            Start.

        Returns
        -------
        array
            Of the shape of `times`.

        Examples
        --------
        Energy of a core that draws 2 W when busy and 0.1 W when idle, over 10 s:

        >>> core = CTMC(generator=[[-1, 1], [3, -3]], states=["idle", "busy"])
        >>> power = {"idle": 0.1, "busy": 2.0}
        >>> round(float(core.accumulated_reward(reward=power, times=10, initial="idle")), 4)
        5.6313
        """
        return np.asarray(self.occupancy(times=times, initial=initial) @ reward_vector(self.states, reward))

    def _run(self, times: npt.ArrayLike, initial: Any) -> tuple[FloatArray, FloatArray]:
        t = checks.nonnegative("times", times)
        start = self.start(initial)
        laws, spent = transient(
            self._rates, start, t.ravel(), lambda: self.stationary(initial=start).probabilities
        )
        shape = (*t.shape, start.size)
        return laws.reshape(shape), spent.reshape(shape)

    def __repr__(self) -> str:
        return f"CTMC with {len(self.states)} states and {self._rates.nnz} transitions"


def _closed(entries: Any) -> Any:
    """Return the generator with the given rates off the diagonal."""
    from scipy.sparse import diags_array

    rates = entries - diags_array(entries.diagonal())
    return rates - diags_array(np.asarray(rates.sum(axis=1)).ravel())
