"""Exact Pareto sets of tabulated objectives: the front, its knee, its volume, a thinner one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BLOCK = 4096  # points of a front, and points tested for dominance, at a time: bounds memory to a few MB
_Bits = npt.NDArray[np.uint64]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Mask = bool | Sequence[bool] | BoolArray

MANY = 1024  # points from which it pays to leave out first what one good point dominates
LEAST = -np.finfo(float).max


def as_costs(objectives: npt.ArrayLike, maximize: Mask = False) -> FloatArray:
    """Return objectives of shape (points, objectives) with the maximised ones negated."""
    values = np.asarray(objectives, dtype=float)
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(
            f"objectives must be a table of points by objectives, got an array of shape {values.shape}"
        )
    mask = np.asarray(maximize, dtype=bool)
    if mask.ndim and mask.shape != values.shape[1:]:
        raise ValueError(f"maximize must have one entry per objective ({values.shape[1]}), got {maximize!r}")
    if np.isnan(values).any():
        raise ValueError(
            f"objectives must not be NaN, got NaN in point {int(np.isnan(values).any(1).argmax())}"
        )
    return np.where(mask, -values, values)


def nondominated(objectives: npt.ArrayLike, /, *, maximize: Mask = False) -> BoolArray:
    """Tell which points no other point dominates.

    A point dominates another if it is at least as good in every objective and better in one.
    Equal points do not dominate each other: all copies of a nondominated point are kept. A
    point that is infinitely bad in an objective (a saturated design) is never nondominated.

    Parameters
    ----------
    objectives : array_like of shape (points, objectives)
        Values; infinite is allowed, NaN is not.
    maximize : bool or sequence of bool
        Which objectives are maximised; the others are minimised.

    Returns
    -------
    ndarray of bool
        One entry per point.

    Notes
    -----
    Exact; by moocore, in O(n log n) for up to three objectives and O(n log^(m-2) n) for m.

    Examples
    --------
    >>> nondominated([[1, 9], [2, 5], [2, 5], [3, 7]], maximize=[False, False])
    array([ True,  True,  True, False])
    """
    return undominated(as_costs(objectives, maximize))


def undominated(costs: FloatArray) -> BoolArray:
    """Do the work of `nondominated` for costs, all minimised and none NaN."""
    import moocore

    columns = list(np.ascontiguousarray(costs.T))
    finite = columns[0] < np.inf
    for column in columns[1:]:
        finite &= column < np.inf
    rows = np.flatnonzero(finite)
    if rows.size > MANY:
        rows = rows[~_beaten([column[rows] for column in columns])]
    result = np.zeros(len(costs), dtype=bool)
    if rows.size:
        # moocore 0.3.2 crashes on -inf; the smallest number is as good.
        result[rows] = moocore.is_nondominated(np.maximum(costs[rows], LEAST), keep_weakly=True)
    return result


def _beaten(columns: list[FloatArray]) -> BoolArray:
    """Tell which points a single good one dominates: most of them, for little."""
    size = len(columns[0])
    total, worse, better = np.zeros(size), np.ones(size, dtype=bool), np.zeros(size, dtype=bool)
    for column in columns:
        low, high = max(column.min(), LEAST), column.max()
        with np.errstate(over="ignore", invalid="ignore"):
            total += (column - low) / (high - low) if low < high else 0.0
    one = int(total.argmin())
    for column in columns:
        worse &= column >= column[one]
        better |= column > column[one]
    return worse & better


def knee_index(objectives: npt.ArrayLike, /, *, maximize: Mask = False) -> int | None:
    """Return the knee of a front: the point nearest to the ideal one.

    Every objective is scaled linearly so that its best value on the front is 0 and its worst
    1 (an objective that is the same everywhere counts 0); the knee has the smallest Euclidean
    distance to the origin. The first of equals wins. An infinitely good value counts 0.

    Parameters
    ----------
    objectives : array_like of shape (points, objectives)
        The points of a front.
    maximize : bool or sequence of bool
        Which objectives are maximised.

    Returns
    -------
    int or None
        Row of the knee; None without points.

    Examples
    --------
    >>> knee_index([[1, 9], [2, 3], [6, 2], [9, 1]])
    1
    """
    values = np.asarray(objectives, dtype=float)
    return int(np.argmin(ideal_distance(values, values, maximize=maximize))) if len(values) else None


def ideal_distance(
    objectives: npt.ArrayLike, front: npt.ArrayLike, /, *, maximize: Mask = False
) -> FloatArray:
    """Return the distance of points from the ideal point of a front, its knee the nearest (see `knee_index`).

    Every objective is scaled as there, by the front; one that is the same all over it by its size.
    """
    costs, goal = as_costs(objectives, maximize), as_costs(front, maximize)
    finite = np.isfinite(goal)
    best = goal.min(axis=0, where=finite, initial=np.inf)
    worst = goal.max(axis=0, where=finite, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        span = np.where(
            worst > best, worst - best, np.where(np.isfinite(best) & (best != 0), np.abs(best), 1.0)
        )
        scaled = np.where(np.isfinite(costs), (costs - best) / span, np.maximum(costs, 0.0))
    return np.asarray(np.sqrt((scaled**2).sum(axis=1)))


def hypervolume(objectives: npt.ArrayLike, /, *, reference: npt.ArrayLike, maximize: Mask = False) -> float:
    """Return the volume that points dominate, up to a reference point.

    Parameters
    ----------
    objectives : array_like of shape (points, objectives)
        The points; dominated ones and those beyond the reference add nothing.
    reference : array_like of shape (objectives,)
        The corner that closes the volume, worse than the points of interest.
    maximize : bool or sequence of bool
        Which objectives are maximised.

    Returns
    -------
    float
        The volume, in the product of the units of the objectives.

    Notes
    -----
    Exact; by moocore.

    Examples
    --------
    >>> hypervolume([[1, 3], [2, 1]], reference=[4, 4])
    7.0
    """
    import moocore

    costs = as_costs(objectives, maximize)
    corner = as_costs([np.asarray(reference, dtype=float)], maximize)[0]
    if corner.shape != costs.shape[1:]:
        raise ValueError(f"reference must have one entry per objective ({costs.shape[1]}), got {reference!r}")
    if not np.isfinite(corner).all() or np.isneginf(costs).any():
        raise ValueError("hypervolume needs a finite reference and no infinitely good objective")
    inside = costs[(costs < corner).all(axis=1)]
    return float(moocore.hypervolume(inside, ref=corner)) if len(inside) else 0.0


def epsilon_thin(objectives: npt.ArrayLike, epsilon: float, /, *, maximize: Mask = False) -> IntArray:
    r"""Choose few points of a front that stand for all of it.

    For every point a kept one is, in every objective, worse by at most a factor
    ``1 + epsilon`` (epsilon-dominance).

    Parameters
    ----------
    objectives : array_like of shape (points, objectives)
        The points of a front; finite, of either sign.
    epsilon : float
        Relative tolerance >= 0; with 0 one copy of every point is kept.
    maximize : bool or sequence of bool
        Which objectives are maximised.

    Returns
    -------
    ndarray of int
        Rows of the kept points, ascending.

    Notes
    -----
    Point i covers point j if :math:`f_i - f_j \le \epsilon |f_j|` in every minimised and
    :math:`f_j - f_i \le \epsilon |f_i|` in every maximised objective. The smallest cover is
    a set-cover problem; this is its greedy approximation: keep the point that covers most
    points not yet covered (the first of equals) until all are. It keeps at most
    :math:`1 + \ln n` times the smallest number [1]_ and needs :math:`O(n^2)` memory.

    References
    ----------
    .. [1] V. Chvatal, "A greedy heuristic for the set-covering problem", Mathematics of
       Operations Research 4(3), 1979.

    Examples
    --------
    >>> epsilon_thin([[100, 1.00], [101, 0.99], [200, 0.50]], 0.05)
    array([0, 2])
    """
    if not (np.ndim(epsilon) == 0 and 0 <= epsilon < np.inf):
        raise ValueError(f"epsilon must be finite and >= 0, got {epsilon!r}")
    costs = as_costs(objectives, maximize)
    if not np.isfinite(costs).all():
        raise ValueError("objectives of a front to thin must be finite")
    mask = np.broadcast_to(np.asarray(maximize, dtype=bool), costs.shape[1:])
    covers = np.ones((len(costs), len(costs)), dtype=bool)
    for cost, maximized in zip(costs.T, mask, strict=True):
        slack = epsilon * np.abs(cost)
        allowed = slack[:, None] if maximized else slack[None, :]
        covers &= cost[:, None] - cost[None, :] <= allowed
    kept: list[int] = []
    open_points = np.ones(len(costs), dtype=bool)
    covered_by, counts = np.ascontiguousarray(covers.T), covers.sum(axis=1)
    while open_points.any():
        kept.append(int(counts.argmax()))
        newly = np.flatnonzero(open_points & covers[kept[-1]])
        open_points[newly] = False
        counts -= covered_by[newly].sum(axis=0)
    return np.array(sorted(kept), dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class FrontComparison:
    """Quality of a front found by a heuristic, beside the exact one."""

    exact_points: int  #: Points of the exact front
    missed: IntArray  #: Rows of the exact front whose objectives no found point has
    hypervolume_ratio: float  #: Volume of the found over that of the exact front, 1 if nothing is lost
    reference: FloatArray  #: The reference point of both volumes, in the units of the objectives

    @property
    def found_points(self) -> int:
        """Points of the exact front that were found."""
        return self.exact_points - self.missed.size

    def __str__(self) -> str:
        return (
            f"{self.found_points} of {self.exact_points} points of the exact front found, "
            f"hypervolume ratio {self.hypervolume_ratio:.4f}"
        )


def compare_fronts(
    found: npt.ArrayLike, exact: npt.ArrayLike, /, *, maximize: Mask = False
) -> FrontComparison:
    """Compare the objectives of a found front with those of the exact front.

    Parameters
    ----------
    found, exact : array_like of shape (points, objectives)
        The two fronts, finite.
    maximize : bool or sequence of bool
        Which objectives are maximised.

    Returns
    -------
    FrontComparison
        Missed points and the ratio of hypervolumes. The reference point is the worst value of
        every objective on the exact front, moved out by a tenth of its range there (by 1 if
        the range is 0), so that the extreme points count too. Objectives are scaled by that
        range first, which leaves the ratio as it is.

    Examples
    --------
    >>> print(compare_fronts([[1, 9], [8, 2]], [[1, 9], [3, 3], [8, 2]]))
    2 of 3 points of the exact front found, hypervolume ratio 0.2554
    """
    mask = np.asarray(maximize, dtype=bool)
    goal = as_costs(exact, mask)
    got = as_costs(found, mask) if np.size(found) else np.zeros((0, goal.shape[1]))
    if not len(goal) or got.shape[1] != goal.shape[1]:
        raise ValueError(
            f"fronts must have the same objectives and the exact one points, got {got.shape}, {goal.shape}"
        )
    if not (np.isfinite(goal).all() and np.isfinite(got).all()):
        raise ValueError("fronts to compare must be finite")
    have = set(map(tuple, got.tolist()))
    missed = [k for k, point in enumerate(goal.tolist()) if tuple(point) not in have]
    best, worst = goal.min(axis=0), goal.max(axis=0)
    span = np.where(worst > best, worst - best, 10.0)
    corner = np.where(worst > best, (worst - best) / span, 0.0) + 0.1
    volume, full = (hypervolume((front - best) / span, reference=corner) for front in (got, goal))
    reference = best + corner * span
    return FrontComparison(
        exact_points=len(goal),
        missed=np.array(missed, dtype=np.int64),
        hypervolume_ratio=volume / full,
        reference=np.where(mask, -reference, reference),
    )


def dominated_by(points: FloatArray, front: FloatArray) -> BoolArray:
    """Tell which points some point of a front dominates: no worse anywhere (all minimised), better once.

    ``points``: costs; infinite is allowed; ``front``: costs, distinct and none dominating another (see
    `distinct_front`). A point equal to one of them is then dominated by none.

    For every objective, the front is sorted and each prefix kept as a set of bits: those that are no
    worse than a point are the intersection of one prefix per objective.
    """
    result = np.zeros(len(points), dtype=bool)
    todo = np.arange(len(points))
    for start in range(0, len(front), BLOCK):
        block = front[start : start + BLOCK]
        columns = [_prefixes(column) for column in block.T]
        for k in range(0, todo.size, BLOCK):
            rows = todo[k : k + BLOCK]
            no_worse: _Bits | None = None
            for (values, prefixes), own in zip(columns, points[rows].T, strict=True):
                part = prefixes[np.searchsorted(values, own, side="right")]
                no_worse = part if no_worse is None else np.bitwise_and(no_worse, part, out=no_worse)
            assert no_worse is not None
            result[rows] = no_worse.any(axis=1)
        todo = todo[~result[todo]]
    hit = np.flatnonzero(result)
    same = set(map(bytes, np.ascontiguousarray(front + 0.0)))  # + 0.0: -0 and 0 are equal
    result[hit] = [bytes(row) not in same for row in np.ascontiguousarray(points[hit] + 0.0)]
    return result


def _prefixes(column: FloatArray) -> tuple[FloatArray, _Bits]:
    """Return sorted values, and for every number of them the set of rows that hold the smallest ones."""
    order = np.argsort(column, kind="stable")
    prefixes = np.zeros((len(order) + 1, (len(order) + 63) // 64), dtype=np.uint64)
    prefixes[np.arange(1, len(order) + 1), order // 64] = np.uint64(1) << (order % 64).astype(np.uint64)
    return column[order], np.bitwise_or.accumulate(prefixes, axis=0)


def distinct_front(costs: FloatArray) -> FloatArray:
    """Return the distinct nondominated rows of costs, all minimised."""
    return np.unique(costs[nondominated(costs)], axis=0)
