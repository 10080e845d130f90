"""Base of chains in continuous and in discrete time: names, classes, long run, absorption."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.libraries import sparse
from qmodels.markov.chains.stationary import (
    ROW_SUM_TOLERANCE,
    ChainClasses,
    Transitions,
    chain_classes,
    explore,
    from_networkx,
    off_diagonal,
    require_row_sums,
    solve_irreducible,
    square_sparse,
)
from qmodels.markov.chains.transient import absorbed
from qmodels.markov.words import described


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StationaryDistribution:
    """Long-run law of a chain, with its classes and the quality of the numbers.

    Parameters
    ----------
    states : sequence
        Names of the states.
    classes : ChainClasses
        Closed classes and transient states.
    class_laws : tuple of array
        Stationary law within each closed class, over the states of ``classes.closed``.
    class_weights : array or None
        Probability to end in each closed class; None where it depends on a start that was not given.
    residual : float
        Largest balance residual of a class: the sum of ``|inflow - outflow|`` relative to the flow.
    method : str
        "gth", "direct" or "iterative"; the last used where classes differ.
    iterations : int
        Cycles of the iteration (0 for the others).
    """

    states: Sequence[Any]
    classes: ChainClasses
    class_laws: tuple[FloatArray, ...]
    class_weights: FloatArray | None
    residual: float
    method: str
    iterations: int

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability of every state, in the order of `states`."""
        if self.class_weights is None:
            raise ValueError(
                f"initial must be given for a chain with {len(self.classes.closed)} closed classes, "
                "the long-run law depends on the start; class_laws holds the law within each class"
            )
        result = np.zeros(len(self.states))
        for members, law, weight in zip(
            self.classes.closed, self.class_laws, self.class_weights, strict=True
        ):
            result[members] = weight * law
        return result

    def expected(self, reward: Any) -> float:
        """Return the long-run mean of a reward: a function of the state's name, a mapping or an array."""
        return float(self.probabilities @ reward_vector(self.states, reward))

    def probability(self, state: Any) -> float:
        """Return the long-run probability of a state by name."""
        try:
            return float(self.probabilities[self.states.index(state)])
        except ValueError:
            raise unknown_state("state", state, self.states) from None

    def __repr__(self) -> str:
        return (
            f"StationaryDistribution of {len(self.states)} states "
            f"({len(self.classes.closed)} closed classes, {self.classes.transient.size} transient states), "
            f"residual {self.residual:.2g} by method {self.method!r}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Absorption:
    """First passage into targets, from every state.

    Parameters
    ----------
    targets : tuple
        One name per absorbing state asked for, or the tuple of its names per closed class.
    mean_time : array
        Mean time to the first target from each state, 0 at a target, ``inf`` where it may never
        be reached. [time; steps for a DTMC]
    probabilities : array, shape (states, targets)
        Probability that the target is the first one reached.
    mean_reward : array or None
        Mean reward collected from each state while a target can still be reached.
    """

    targets: tuple[Any, ...]
    mean_time: FloatArray
    probabilities: FloatArray
    mean_reward: FloatArray | None


def unknown_state(name: str, state: Any, states: Iterable[Any]) -> ValueError:
    """Word the error for a name that no state has."""
    hint = checks.nearest(str(state), (str(s) for s in states)) if isinstance(state, str) else ""
    return ValueError(f"{name} must be a state of the chain, got {state!r}{hint}")


def reward_vector(states: Sequence[Any], reward: Any) -> FloatArray:
    """Return the reward of every state from a function, a mapping (others 0) or an array."""
    if callable(reward):
        return np.array([float(reward(state)) for state in states])
    if isinstance(reward, Mapping):
        unknown = set(reward) - set(states)
        if unknown:
            raise unknown_state("reward", next(iter(unknown)), states)
        return np.array([float(reward.get(state, 0.0)) for state in states])
    vector = checks.finite("reward", reward)
    if vector.shape != (len(states),):
        raise ValueError(f"reward must have one number per state ({len(states)}), got shape {vector.shape}")
    return vector


class Chain:
    """Base of `CTMC` and `DTMC`; ``_rates`` holds the off-diagonal entries, all > 0."""

    states: Sequence[Any]
    _rates: Any
    _edge: ClassVar[str]
    _matrix: ClassVar[str]
    _row_sum: ClassVar[float]

    def __post_init__(self) -> None:
        name, total = self._matrix, self._row_sum
        rows = square_sparse(name, getattr(self, name))
        rates = off_diagonal(name, rows)
        diagonal = rows.diagonal()
        if total > 0 and np.any(diagonal < 0):
            k = int(np.argmax(diagonal < 0))
            raise ValueError(f"{name} must be >= 0, got {diagonal[k]:.12g} in row {k}, column {k}")
        require_row_sums(name, rows, total)
        object.__setattr__(self, "_rates", rates)
        rest = total - np.asarray(rates.sum(axis=1)).ravel()
        kept = np.maximum(rest, 0.0) if total > 0 else rest
        object.__setattr__(self, name, (rates + sparse.diags_array(kept)).tocsr())
        self._name_states(rows.shape[0])

    def _name_states(self, count: int) -> None:
        if not (self.states is None or isinstance(self.states, Iterable)):
            raise ValueError(f"states must hold one name per row ({count}), got {checks.shown(self.states)}")
        states = range(count) if self.states is None else tuple(self.states)
        object.__setattr__(self, "states", states)
        if len(states) != count:
            raise ValueError(f"states must hold one name per row ({count}), got {len(states)}")
        if isinstance(states, tuple) and len(self._index) != count:
            twice = next(name for k, name in enumerate(states) if self._index[name] != k)
            raise ValueError(f"states must be distinct, got {twice!r} twice")

    @cached_property
    def _index(self) -> dict[Any, int]:
        return {state: k for k, state in enumerate(self.states)}

    def index(self, state: Any) -> int:
        """Return the row of a state by name."""
        row = self._row(state)
        if row is None:
            raise unknown_state("state", state, self.states)
        return row

    def _row(self, name: Any) -> int | None:
        if isinstance(self.states, range):
            whole = isinstance(name, int | np.integer) and 0 <= name < len(self.states)
            return int(name) if whole else None
        try:
            return self._index.get(name)
        except TypeError:  # not hashable: an array or a mapping, say
            return None

    @cached_property
    def classes(self) -> ChainClasses:
        """Closed classes and transient states."""
        return chain_classes(self._rates)

    def start(self, initial: Any) -> FloatArray:
        """Return the probability vector of a start: a state's name, a mapping or an array."""
        n = len(self.states)
        vector = np.zeros(n)
        row = self._row(initial)
        if row is not None:
            vector[row] = 1.0
            return vector
        if isinstance(initial, Mapping):
            for state, probability in initial.items():
                vector[self.index(state)] = checks.probability("initial", probability)
        elif isinstance(initial, str) or np.shape(initial) != (n,):
            raise unknown_state("initial", initial, self.states)
        else:
            vector = checks.probability("initial", initial)
        if abs(vector.sum() - 1.0) > ROW_SUM_TOLERANCE:
            raise ValueError(f"initial must sum to 1, got {vector.sum():.12g}")
        return np.asarray(vector / vector.sum())

    @classmethod
    def _of(cls, entries: Any, states: Any) -> Self:
        """Return the chain with these rates or probabilities between the states."""
        raise NotImplementedError

    @classmethod
    @described()
    def from_transitions(
        cls, *, initial_state: Hashable, transitions: Transitions, max_states: int = 2_000_000
    ) -> Self:
        """Build the states reachable from one by a function of the state.

        Parameters
        ----------
        transitions : callable
            Gives, for a state, pairs (next state, rate) or a mapping from next state to rate [1 / time], of
            a `DTMC` to probabilities, which sum to 1. Several to one state add up; a rate to the state
            itself has no effect.

        Returns
        -------
        CTMC or DTMC
            States in order of discovery.

        Raises
        ------
        If a rate or probability is negative or not finite, a state's probabilities do not sum to 1, or
        there are too many states.

        Examples
        --------
        >>> from qmodels.markov import CTMC, DTMC
        >>> def moves(state):
        ...     return {"b": 1.0} if state == "a" else {"a": 2.0}
        >>> CTMC.from_transitions(initial_state="a", transitions=moves).states
        ('a', 'b')
        >>> ring = DTMC.from_transitions(initial_state=0, transitions=lambda k: [((k + 1) % 4, 1.0)])
        >>> len(ring.states), ring.period
        (4, 4)
        """
        states, entries = explore(initial_state, transitions, max_states)
        return cls._of(entries, states)

    @classmethod
    @described()
    def from_graph(cls, *, graph: Any, weight: str = "") -> Self:
        """Read a NetworkX directed graph: nodes are states, an edge attribute is the rate or probability.

        Parameters
        ----------
        graph : networkx.DiGraph or MultiDiGraph
            Parallel edges add up; self-loops have no effect on a `CTMC`.
        weight : str
            Name of the attribute; by default ``"rate"`` [1 / time], of a `DTMC` ``"probability"``.

        Returns
        -------
        CTMC or DTMC
            States in the order of the nodes.

        Raises
        ------
        If the graph is empty or undirected, or an edge has no valid rate or probability.

        Examples
        --------
        >>> import networkx as nx
        >>> from qmodels.markov import CTMC
        >>> graph = nx.DiGraph()
        >>> graph.add_edge("idle", "busy", rate=1.0)
        >>> graph.add_edge("busy", "idle", rate=3.0)
        >>> CTMC.from_graph(graph=graph).stationary().probability("busy")
        0.25
        """
        states, entries = from_networkx(graph, weight or cls._edge)
        return cls._of(entries, states)

    @described("grassmann1985", initial="optional")
    def stationary(
        self,
        *,
        initial: Any = None,
        method: str = "auto",
        tolerance: float = 1e-12,
        max_iterations: int = 1000,
    ) -> StationaryDistribution:
        r"""Long-run law, per closed class and weighted by where the chain ends.

        In continuous time :math:`\pi Q = 0`; in steps :math:`\pi P = \pi`, of a periodic class the mean
        over its period.

        Parameters
        ----------
        method : {"auto", "gth", "direct", "iterative"}
            "gth": dense elimination that never subtracts, so that every probability has a small relative
            error, whatever the magnitudes of the rates. "direct": sparse factors (SciPy's SuperLU) of the
            balance of visits between two returns to an often visited state; small probabilities are
            accurate, too, unless parts of the chain are all but separate, which is refused where it costs
            more than 1e-6. "iterative": GMRES with incomplete factors, for chains whose factors would not
            fit; accurate to `tolerance` in the residual only. "auto": "gth" up to 2,000 states, then "direct"
            up to 20,000, then "iterative" (a million states of a tandem: 8 s, residual 2e-14).
        tolerance : float
            Largest residual accepted from the iteration: the sum over the states of
            :math:`|\text{inflow} - \text{outflow}|`, relative to the total flow.

        Raises
        ------
        RuntimeError
            If the iteration does not reach the tolerance, or parts of the chain are linked by rates too
            small for the method.

        Examples
        --------
        >>> from qmodels.markov import CTMC, DTMC
        >>> CTMC(generator=[[-1, 1], [3, -3]]).stationary().probabilities
        array([0.75, 0.25])
        >>> DTMC(transition_matrix=[[0, 1], [1, 0]]).stationary().probabilities
        array([0.5, 0.5])
        """
        start = None if initial is None else self.start(initial)
        closed = self.classes.closed
        laws, residual, used, iterations = [], 0.0, "gth", 0
        whole = self.classes.irreducible
        for members in closed:
            part = self._rates if whole else self._rates[members][:, members]
            law, error, used, count = solve_irreducible(
                part, method=method, tolerance=tolerance, max_iterations=max_iterations
            )
            laws.append(law)
            residual, iterations = max(residual, error), iterations + count
        weights: FloatArray | None = None
        if len(closed) == 1:
            weights = np.ones(1)
        elif start is not None:
            weights = start @ self.absorption().probabilities
        return StationaryDistribution(
            states=self.states,
            classes=self.classes,
            class_laws=tuple(laws),
            class_weights=weights,
            residual=residual,
            method=used,
            iterations=iterations,
        )

    def absorption(self, *, absorbing: Iterable[Any] | None = None, reward: Any = None) -> Absorption:
        r"""Mean time to absorption, where it ends, and the reward collected on the way.

        Parameters
        ----------
        absorbing : iterable of states, optional
            States at which the chain is stopped; by default its closed classes.
        reward : callable, mapping or array, optional
            Reward per unit of time (per step) in each state.

        Returns
        -------
        Absorption
            From every state; a mean time is ``inf`` where absorption is not certain.

        Raises
        ------
        ValueError
            If a name is not a state.

        Notes
        -----
        With T the rates among the states not yet absorbed, :math:`-T\,\tau = 1`,
        :math:`-T\,B = R` and :math:`-T\,v = r`. Up to 400 such states are eliminated without
        subtraction, more are factored sparsely with one step of refinement.
        """
        n = len(self.states)
        rates = self._rates
        if absorbing is None:
            groups = list(self.classes.closed)
            targets = tuple(tuple(self.states[i] for i in group) for group in groups)
            lost = np.empty(0, dtype=np.int64)
        else:
            targets = tuple(absorbing)
            if not targets:
                raise ValueError("absorbing must hold at least one state, got none")
            groups = [np.array([self.index(state)]) for state in targets]
            stopped = np.ones(n)
            stopped[np.concatenate(groups)] = 0.0
            rates = (sparse.diags_array(stopped) @ rates).tocsr()
            rates.eliminate_zeros()
            hit = set(np.flatnonzero(stopped == 0).tolist())
            closed = chain_classes(rates).closed
            elsewhere = [members for members in closed if int(members[0]) not in hit]
            lost = np.concatenate([np.empty(0, dtype=np.int64), *elsewhere])
        earn = None if reward is None else reward_vector(self.states, reward)
        mean_time, probabilities, collected = absorbed(rates, groups, lost, earn)
        return Absorption(
            targets=targets,
            mean_time=mean_time,
            probabilities=probabilities,
            mean_reward=None if earn is None else collected,
        )
