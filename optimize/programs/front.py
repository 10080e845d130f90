"""The exact Pareto front of designs made of tabulated components."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum, inf

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.programs.components import Groups
from optimize.programs.milp import budgets_of, seconds_of
from optimize.programs.outcome import EXACT_SUMS, ProgramOutcome
from optimize.programs.program import OVER_BUDGET, Program
from optimize.search.pareto import FloatArray, IntArray, nondominated

STEPS = (3_000, 50_000, 500_000)
"""Pairs of partial choices looked at in one step: with a time limit the first gives points soon."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactFront(ProgramOutcome):
    """The outcome of `exact_front`.

    Parameters
    ----------
    status, seconds, solver, message
        See `optimize.programs.outcome.ProgramOutcome`. "optimal": the front is proven complete. "resolved":
        there were too many partial choices, and "feasible": the time limit came first; all points are
        feasible then, do not dominate each other, and `resolution` says how far a missing one may be.
    objectives : tuple of str
        The minimised ones first.
    chosen : tuple of dict
        One choice per point, as `Choice.chosen`; designs with equal objectives are one point.
    values : ndarray of shape (points, objectives)
        Correctly rounded sums over the chosen options, sorted by the first objective.
    bound : tuple of float
        No design has an objective better than this, per objective: the ideal point if proven;
        empty if there is no design.
    resolution : tuple of float
        Per objective, in its unit: every point that may be missing has a point found that is worse by at
        most this. All 0 if proven.
    gap : float or None
        The same in units of the range of the objective over all choices (an additive epsilon), so 0 if
        proven. None without a point.
    states : int
        Most partial sums kept at a time.
    """

    objectives: tuple[str, ...]
    chosen: tuple[dict[str, int], ...]
    values: FloatArray
    bound: tuple[float, ...]
    resolution: tuple[float, ...]
    states: int


def exact_front(
    groups: Groups,
    *,
    minimize: str | Iterable[str] = (),
    maximize: str | Iterable[str] = (),
    subject_to: Mapping[str, checks.Range] | None = None,
    time_limit: float | None = None,
) -> ExactFront:
    r"""Find every nondominated sum of objectives over components, with proof.

    Parameters
    ----------
    groups : mapping of str to table or Component
        As for `optimize.choose`.
    minimize, maximize : str or sequence of str
        Objectives, at least two in all: sums over the chosen options.
    subject_to : mapping, optional
        Budgets ``{metric: (low, high)}`` on sums over the chosen options, inclusive.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    ExactFront
        One design per nondominated vector of objectives.

    Raises
    ------
    ValueError
        For fewer than two objectives, and as `optimize.choose`.

    Notes
    -----
    Components are joined field by field, and of the partial sums with equal open fields the nondominated
    ones go on (dynamic programming [1]_, bucket elimination where components share fields [2]_). All sums are
    whole numbers (a floating-point number is one, times a power of two), so that none is lost beside one that
    is 24 decades larger; points are distinct if their correctly rounded sums are.

    Where a step looks at more than 500,000 pairs of partial choices, neighbours are merged: one of them goes
    on, with the least sums of all. What these become bounds the points that may be missing. The work grows
    with the front: for whole values at most with the range of the sums, for arbitrary numbers in many
    objectives possibly with the number of choices.

    References
    ----------
    .. [1] G. L. Nemhauser and Z. Ullmann, "Discrete dynamic programming and capital allocation",
       Management Science 15(9), 1969.
    .. [2] R. Dechter, "Bucket elimination: a unifying framework for reasoning", Artificial Intelligence
       113, 1999.

    Examples
    --------
    >>> links = {"latency": [40, 24, 16], "cost": [2, 4, 8]}
    >>> memory = {"latency": [90, 50, 30], "cost": [5, 10, 20]}
    >>> front = exact_front({"link": links, "memory": memory}, minimize=["latency", "cost"])
    >>> front.values
    array([[ 46.,  28.],
           [ 54.,  24.],
           [ 66.,  18.],
           [ 74.,  14.],
           [ 90.,  12.],
           [114.,   9.],
           [130.,   7.]])
    >>> front.status, front.chosen[0]
    ('optimal', {'link': 2, 'memory': 2})

    Losses over eight decades, each of which counts:

    >>> front = exact_front({"buffer": {"loss": [1e-1, 1e-5, 1e-9], "cost": [1, 2, 3]},
    ...                      "link": {"loss": [1e-3, 1e-8], "cost": [1, 2]}}, minimize=["cost", "loss"])
    >>> front.values[:, 1].tolist(), front.proven
    ([0.101, 0.00101, 1.001e-05, 1.1000000000000001e-08], True)
    """
    start = time.perf_counter()
    minimize, maximize = checks.objectives(minimize, maximize)
    objectives = minimize + maximize
    if len(objectives) < 2:
        raise ValueError(f"exact_front needs at least two objectives, got {list(objectives)}; see choose")
    signs = [1.0] * len(minimize) + [-1.0] * len(maximize)
    program = Program(groups, list(zip(objectives, signs, strict=True)), budgets_of(subject_to))
    search = _Search(program)
    status, message = search.run(start + seconds_of(time_limit))
    resolution, bound = search.resolution(), search.ideal()
    return ExactFront(
        status=status,
        objectives=objectives,
        chosen=tuple(program.choice_of(cells) for cells in search.cells.tolist()),
        values=search.costs * signs + 0.0,
        bound=tuple(sign * best + 0.0 for sign, best in zip(signs, bound, strict=False)),
        resolution=resolution,
        gap=search.gap if len(search.cells) else None,
        states=search.states,
        seconds=time.perf_counter() - start,
        solver=EXACT_SUMS,
        message=message,
    )


class _Search:
    """Enumerates with more and more states until none has to be merged; all objectives signed."""

    def __init__(self, program: Program) -> None:
        self._program, self._count = program, len(program.objectives)
        self.cells = np.zeros((0, len(program.tables.names)), dtype=np.int64)
        self.costs = np.zeros((0, self._count))
        self.gap, self.states = 0.0 if program.message else inf, 0
        spans = [
            fsum(
                float(np.ptp(values[cells])) for values, cells in zip(row.values, program.cells, strict=True)
            )
            for row in (() if program.message else program.objectives)
        ]
        self._spans = np.where(np.array(spans) > 0, spans, 1.0)

    def run(self, deadline: float) -> tuple[str, str]:
        """Search, and return status and message."""
        if self._program.message:
            return "infeasible", self._program.message
        for most in STEPS:
            reached = self._program.enumerate(most=most, deadline=deadline)
            if reached is None:
                message = "" if len(self.cells) else "the time limit came before the first solution"
                return "feasible" if len(self.cells) else "time limit", message
            self.states = max(self.states, reached.states)
            self.cells = np.concatenate([self.cells, reached.cells])
            self.costs = self._program.costs(self.cells)
            kept = first_of_front(self.costs)
            self.cells, self.costs = self.cells[kept], self.costs[kept]
            self._bound(np.array(reached.least).reshape(-1, len(self._program.rows))[:, : self._count])
            if not self.gap:
                return ("optimal", "") if len(self.cells) else ("infeasible", OVER_BUDGET)
        return "resolved", "" if len(self.cells) else "no choice was found; that there is none is not proven"

    def _bound(self, least: FloatArray) -> None:
        """Set the gap: how far the points found are from what bounds those that may be missing."""
        self._least = least
        self.gap = inf if len(least) else 0.0
        if len(least) and len(self.costs):
            places = [np.unique(x, return_inverse=True)[1] for x in np.concatenate([self.costs, least]).T]
            if _farthest(np.stack(places, axis=1), len(self.costs)) <= 0:
                self.gap = 0.0
                return
            shares = (np.concatenate([self.costs, least]) - least.min(axis=0)) / self._spans
            self.gap = max(_farthest(shares, len(self.costs)), 0.0) + 4 * float(np.finfo(float).eps)

    def resolution(self) -> tuple[float, ...]:
        """Return by how much a point found may be worse than a missing one, per objective."""
        return tuple((self.gap * self._spans).tolist()) if self.gap else (0.0,) * self._count

    def ideal(self) -> list[float]:
        """Return the lower bound of every objective; nothing without a design."""
        if not len(self.cells):
            return []
        return np.minimum(self._least.min(axis=0), self.costs.min(axis=0)).tolist()


def _farthest(points: npt.ArrayLike, found: int) -> float:
    """Return by how much the first of some points are worse than the others (additive epsilon)."""
    import moocore

    every = np.asarray(points, dtype=float)
    return float(moocore.epsilon_additive(every[:found], ref=every[found:]))


def first_of_front(costs: FloatArray) -> IntArray:
    """Return one row for each distinct nondominated vector, sorted by the vectors."""
    kept = np.flatnonzero(nondominated(costs))
    return kept[np.unique(costs[kept], axis=0, return_index=True)[1]]
