"""What chains in continuous and in discrete time share: names, classes, long run, absorption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.markov.chains.chain_results import (
    Absorption,
    StationaryDistribution,
    reward_vector,
    unknown_state,
)
from qmodels.markov.chains.stationary import solve_irreducible
from qmodels.markov.chains.structure import ROW_SUM_TOLERANCE, ChainClasses, chain_classes
from qmodels.numerics.elimination import LARGEST_EXACT, solve_transient


class Chain:
    """What `CTMC` and `DTMC` share; ``_rates`` holds the off-diagonal entries, all > 0."""

    states: Sequence[Any]
    _rates: Any

    def _name_states(self, count: int) -> None:
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

    def _stationary(
        self, initial: Any, method: str, tolerance: float, max_iterations: int
    ) -> StationaryDistribution:
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
            from scipy.sparse import diags_array

            targets = tuple(absorbing)
            if not targets:
                raise ValueError("absorbing must hold at least one state, got none")
            groups = [np.array([self.index(state)]) for state in targets]
            stopped = np.ones(n)
            stopped[np.concatenate(groups)] = 0.0
            rates = (diags_array(stopped) @ rates).tocsr()
            rates.eliminate_zeros()
            hit = set(np.flatnonzero(stopped == 0).tolist())
            closed = chain_classes(rates).closed
            elsewhere = [members for members in closed if int(members[0]) not in hit]
            lost = np.concatenate([np.empty(0, dtype=np.int64), *elsewhere])
        group_of = np.full(n, -1)
        for g, group in enumerate(groups):
            group_of[group] = g
        passing = np.setdiff1d(np.flatnonzero(group_of < 0), lost)
        earn = None if reward is None else reward_vector(self.states, reward)
        probabilities = np.zeros((n, len(groups)))
        final = np.flatnonzero(group_of >= 0)
        probabilities[final, group_of[final]] = 1.0
        mean_time, collected = np.zeros(n), np.zeros(n)
        if passing.size:
            onward = rates[passing]
            into = onward[:, final]
            entries = into.tocoo()
            right = np.zeros((passing.size, len(groups) + 2))
            np.add.at(right, (entries.row, group_of[final][entries.col]), entries.data)
            right[:, -2] = 1.0
            right[:, -1] = 0.0 if earn is None else earn[passing]
            leave = np.asarray(into.sum(axis=1) + onward[:, lost].sum(axis=1)).ravel()
            solution = _solve_passing(onward[:, passing], leave, right)
            probabilities[passing] = solution[:, :-2]
            mean_time[passing], collected[passing] = solution[:, -2], solution[:, -1]
        mean_time[_can_reach(rates, lost)] = np.inf
        return Absorption(
            targets=targets,
            mean_time=mean_time,
            probabilities=probabilities,
            mean_reward=None if earn is None else collected,
        )


def _can_reach(rates: Any, targets: IntArray) -> IntArray:
    """Return the states with a path into the targets, these included."""
    found = np.zeros(rates.shape[0], dtype=bool)
    found[targets] = True
    back = rates.T.tocsr()
    edge = targets
    while edge.size:
        edge = np.unique(back[edge].indices)
        edge = edge[~found[edge]]
        found[edge] = True
    return np.flatnonzero(found)


def _solve_passing(rates: Any, leave: FloatArray, right: FloatArray) -> FloatArray:
    if rates.shape[0] <= LARGEST_EXACT:
        return solve_transient(rates.toarray(), leave, right)
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import splu

    matrix = (diags_array(np.asarray(rates.sum(axis=1)).ravel() + leave) - rates).tocsc()
    factor = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    x = factor.solve(right)
    return np.asarray(x + factor.solve(right - matrix @ x))
