"""The exact Pareto front of designs made of tabulated components, by integer programming."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from optimize import checks
from optimize.programs._certificate import overlooked
from optimize.programs.components import Groups
from optimize.programs.grid import RESOLUTION
from optimize.programs.linear import solver_name
from optimize.programs.milp import budgets_of, seconds_of
from optimize.programs.outcome import ProgramOutcome
from optimize.programs.program import Program
from optimize.search.pareto import FloatArray, nondominated

AUGMENTATION = 1e-3
"""Largest weight of the other objectives beside the one that is minimised."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactFront(ProgramOutcome):
    """The outcome of `exact_front`.

    Parameters
    ----------
    status, seconds, solver, message
        See `optimize.programs.outcome.ProgramOutcome`. "optimal": the front is proven complete. "resolved":
        points closer than `resolution` may have been taken for one. "feasible": all points are feasible,
        and those found so far do not dominate each other.
    objectives : tuple of str
        The minimised ones first.
    chosen : tuple of dict
        One choice per point, as `Choice.chosen`; designs with equal objectives are one point.
    values : ndarray of shape (points, objectives)
        Sums over the chosen options, sorted by the first objective.
    bound : tuple of float
        No design has an objective better than this, per objective: the ideal point if proven;
        empty if there is no design.
    resolution : tuple of float
        Per objective, in its unit: differences that were not told apart. All 0 if proven.
    gap : float or None
        0 if proven. Otherwise every point that may be missing has a point found that is worse by
        at most this in any objective, in units of the range of that objective over all choices
        (an additive epsilon). None without a point.
    solves, bypassed : int
        Integer programs solved, and those whose answer was known from an earlier one.
    """

    objectives: tuple[str, ...]
    chosen: tuple[dict[str, int], ...]
    values: FloatArray
    bound: tuple[float, ...]
    resolution: tuple[float, ...]
    solves: int
    bypassed: int


def exact_front(
    groups: Groups,
    *,
    minimize: str | Iterable[str] = (),
    maximize: str | Iterable[str] = (),
    subject_to: Mapping[str, checks.Range] | None = None,
    time_limit: float | None = None,
) -> ExactFront:
    r"""Find every nondominated sum of objectives over components, proven by integer programming.

    Parameters
    ----------
    groups : mapping of str to table or Component
        As for `optimize.choose`.
    minimize, maximize : str or sequence of str
        Objectives, at least two in all: sums over the chosen options.
    subject_to : mapping, optional
        Budgets ``{metric: (low, high)}`` on sums over the chosen options, inclusive.
    time_limit : float, optional
        Seconds for all programs together.

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
    The region that may hold further points is kept as a set of local upper bounds :math:`u`
    [1]_: a point is missing only if it is below one of them in every objective. For one of
    them the first objective is minimised with the others bounded,

    .. math:: \min f_1 + \rho \sum_{i \ge 2} f_i, \quad f_i \le u_i - \delta_i, \; i \ge 2,

    the augmented epsilon-constraint method [2]_, with :math:`\rho` so small that :math:`f_1` is
    at its minimum. Its point splits every bound that it is below in all objectives; if it is not
    below :math:`u_1`, the region of :math:`u` is empty. A program is bypassed if one solved
    before had weaker bounds and its answer satisfies the new ones, or was infeasible.

    Where the values of every objective lie on a grid of at most 1e5 steps per component,
    :math:`\delta` is half a step, and the programs alone are exact (sums that differ by rounding
    only count as equal). Else they tell points apart down to 1e-6 of the largest range within a
    component, which is everything below 1e-7 for losses from 1e-1 to 1e-11. What they overlooked
    is then enumerated in whole numbers, with the points found as bounds. If that takes more than
    300,000 partial choices in one step, the status is "resolved" and not "optimal".
    The number of programs grows with the points: about one per point for two objectives, two for
    three. Components that share no field have their front faster by dynamic programming.

    References
    ----------
    .. [1] K. Klamroth, R. Lacour, D. Vanderpooten, "On the representation of the search region
       in multi-objective optimization", European Journal of Operational Research 245(3), 2015.
    .. [2] G. Mavrotas, K. Florios, "An improved version of the augmented epsilon-constraint
       method (AUGMECON2)", Applied Mathematics and Computation 219(18), 2013.

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
    search = _Search(program, start + seconds_of(time_limit))
    search.run()
    search.certify()
    chosen, values = search.points(signs)
    resolution = search.resolution()
    if search.finished:
        status = ("resolved" if any(resolution) else "optimal") if chosen else "infeasible"
    else:
        status = "feasible" if chosen else "time limit"
    return ExactFront(
        status=status,
        objectives=objectives,
        chosen=chosen,
        values=values,
        bound=tuple(sign * best + 0.0 for sign, best in zip(signs, search.ideal(), strict=False)),
        resolution=resolution,
        gap=search.gap() if chosen else None,
        solves=program.solves,
        bypassed=search.bypassed,
        seconds=time.perf_counter() - start,
        solver=solver_name(),
        message=search.message,
    )


class _Search:
    """Splits the region of possible points until nothing is left; all in normalised objectives."""

    def __init__(self, program: Program, deadline: float) -> None:
        self._program, self._deadline = program, deadline
        self._count = len(program.objectives)
        self.found: list[tuple[dict[str, int], FloatArray]] = []
        self.bypassed = 0
        self.message = program.message
        self._zones = np.zeros((0, self._count))
        self._exact = True
        if program.message:
            return
        self._spans = np.array([program.range(k) for k in range(self._count)])
        steps = [program.step(k) for k in range(self._count)]
        self._exact = None not in steps
        self._delta = np.array([RESOLUTION if step is None else step / 2 for step in steps])
        # All others together weigh less than what counts in the first objective, which so is at
        # its minimum. A point that is not the best in the others by a difference too small for
        # the solver only costs another program: what beats it is below the zones it leaves.
        others = float(self._spans[1:].sum()) or 1.0
        room = 0.25 * RESOLUTION if steps[0] is None else 0.9 * steps[0]
        self._rho = min(AUGMENTATION, room / others)
        self._zones = (self._spans + 1.0)[None]
        self._known: list[tuple[FloatArray, FloatArray | None]] = []

    @property
    def finished(self) -> bool:
        """Whether no point can be missing."""
        return not len(self._zones)

    def run(self) -> None:
        """Search until no zone is left or the time is over."""
        while len(self._zones):
            k = int(np.prod(self._zones, axis=1).argmax())
            point, in_time = self._minimum(self._zones[k])
            if not in_time:
                if not self.found:
                    self.message = "the time limit came before the first solution"
                return
            if point is None:
                self._zones = np.delete(self._zones, k, axis=0)
            else:
                self._split(point)
        if not self.found and not self.message:
            self.message = "the budgets cannot be met together"

    def certify(self) -> None:
        """Add what the programs may have overlooked, where it can be enumerated."""
        if self._exact or not self.finished or not self.found:
            return
        missing = overlooked(self._program, [choice for choice, _ in self.found], self._deadline)
        if missing is not None:
            self.found += [(choice, self._normalised(choice)) for choice in missing]
            self._exact = True

    def resolution(self) -> tuple[float, ...]:
        """Return the differences of every objective that were not told apart."""
        if self._exact:
            return (0.0,) * self._count
        # A point and the limit that it is beyond may both be off.
        return tuple(
            2 * float(delta) * scale for delta, scale in zip(self._delta, self._program.scales, strict=False)
        )

    def _normalised(self, choice: dict[str, int]) -> FloatArray:
        return np.array([self._program.normalised(k, choice) for k in range(self._count)])

    def _minimum(self, zone: FloatArray) -> tuple[FloatArray | None, bool]:
        """Return a new point below the zone, or None if there is none, and whether time sufficed."""
        limits = zone - self._delta
        known, point = self._bypass(limits[1:])
        self.bypassed += known
        if not known:
            point, in_time = self._solve(dict(enumerate(limits.tolist()[1:], start=1)))
            if not in_time:
                return None, False
            self._known.append((limits[1:], point))
        if point is not None and not point[0] < zone[0] - self._delta[0] / 2:
            point = None  # the least first objective is no better than that of the zone
        return point, True

    def _bypass(self, limits: FloatArray) -> tuple[bool, FloatArray | None]:
        for bounds, point in self._known:
            if (bounds >= limits).all() and (
                point is None or (point[1:] <= limits + self._delta[1:] / 4).all()
            ):
                return True, point
        return False, None

    def _solve(self, limits: dict[int, float]) -> tuple[FloatArray | None, bool]:
        weights = {k: self._rho if k else 1.0 for k in range(self._count)}
        solution = self._program.solve(weights, limits, self._deadline)
        point = None
        if solution.choice:
            point = self._normalised(solution.choice)
            if not any((point >= other - self._delta / 2).all() for _, other in self.found):
                self.found.append((solution.choice, point))
        return point, solution.status in ("optimal", "infeasible")

    def _split(self, point: FloatArray) -> None:
        inside = (point < self._zones - self._delta / 2).all(axis=1)
        old, parts = self._zones[~inside], []
        for k in np.flatnonzero(point > self._delta / 2):  # nothing is below the least possible value
            part = self._zones[inside].copy()
            part[:, k] = point[k]
            parts.append(part)
        new = np.unique(np.concatenate([old[:0], *parts]), axis=0)
        everything = np.concatenate([old, new])
        # A zone within another one is redundant; itself it contains exactly once.
        within = (new[:, None] <= everything[None]).all(axis=2).sum(axis=1)
        self._zones = np.concatenate([old, new[within == 1]])

    def points(self, signs: list[float]) -> tuple[tuple[dict[str, int], ...], FloatArray]:
        """Return the choices and their objectives, sorted, those of an unfinished search filtered."""
        rows = [
            [row.total(self._program.cells_of(choice)) for row in self._program.objectives]
            for choice, _ in self.found
        ]
        costs = np.array(rows).reshape(len(self.found), self._count)
        kept = np.flatnonzero(nondominated(costs)) if len(costs) else np.zeros(0, dtype=np.int64)
        kept = kept[np.unique(costs[kept], axis=0, return_index=True)[1]]
        return tuple(self.found[k][0] for k in kept), costs[kept] * signs + 0.0

    def ideal(self) -> list[float]:
        """Return the proven lower bound of every signed objective; nothing without a design."""
        if not self.finished:
            return self._program.floors[: self._count]
        _, values = self.points([1.0] * self._count)
        return (values.min(axis=0) - self.resolution()).tolist() if len(values) else []

    def gap(self) -> float:
        """Return by how much of its range a point found is worse than a missing one at most."""
        if self.finished:
            return 0.0 if self._exact else float((2 * self._delta / np.maximum(self._spans, 1.0)).max())
        points = np.array([point for _, point in self.found])
        worst = 0.0
        for zone in self._zones:
            least = np.zeros(self._count)
            limits = np.minimum(zone, self._spans)[1:]
            for bounds, point in self._known:
                if point is not None and (bounds >= zone[1:] - self._delta[1:]).all():
                    bound = point[0] + self._rho * float((point[1:] - limits).sum())
                    least[0] = max(least[0], bound)
            excess = (points - least) / np.where(self._spans > 0, self._spans, 1.0)
            worst = max(worst, float(excess.max(axis=1).min()))
        return min(worst, 1.0)  # up to rounding it is
