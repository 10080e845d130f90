"""Fronts of objectives that are known up to an interval: which designs are on them for sure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.search.dominance import distinct_front, dominated_by
from optimize.search.pareto import FloatArray, Mask, as_costs, nondominated

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Membership:
    """What intervals say about the front.

    Parameters
    ----------
    on, off : ndarray of bool
        Points that are on the front, and that are not, whatever values within the intervals are
        the true ones. The others are undecided.
    """

    on: BoolArray
    off: BoolArray

    @property
    def undecided(self) -> BoolArray:
        """Points that may be on the front or not."""
        return ~(self.on | self.off)


def front_membership(
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    /,
    *,
    maximize: Mask = False,
    admitted: npt.ArrayLike | None = None,
    possible: npt.ArrayLike | None = None,
) -> Membership:
    """Decide which points are on the front when every objective is known up to an interval.

    Parameters
    ----------
    low, high : array_like of shape (points, objectives)
        Ends of the intervals; infinite is allowed, NaN is not.
    maximize : bool or sequence of bool
        Which objectives are maximised.
    admitted, possible : array_like of bool, optional
        Points that satisfy the constraints for sure, and that may do so; all by default.

    Returns
    -------
    Membership
        A point is off if it cannot satisfy the constraints, or if another one that satisfies them
        for sure dominates it even with its worst values and the point's best ones. It is on if it
        satisfies them for sure, and no other point that may satisfy them dominates it with its best
        values and the point's worst ones.

    Examples
    --------
    >>> member = front_membership([[1, 8], [2, 4], [2.5, 5], [8, 9]], [[1, 9], [3, 5], [4, 6], [9, 9]])
    >>> member.on, member.off
    (array([ True, False, False, False]), array([False, False, False,  True]))
    """
    ends = as_costs(low, maximize), as_costs(high, maximize)
    if ends[0].shape != ends[1].shape:
        raise ValueError(f"low and high must have one shape, got {ends[0].shape} and {ends[1].shape}")
    best, worst = np.minimum(*ends), np.maximum(*ends)
    count = len(best)
    sure = _mask("admitted", admitted, count) & ~np.isposinf(worst).any(axis=1)
    maybe = _mask("possible", possible, count) & ~np.isposinf(best).any(axis=1)
    off = ~maybe
    rows = np.flatnonzero(maybe)
    off[rows] = dominated_by(best[rows], distinct_front(worst[sure]))
    on = sure & ~off
    rivals = np.flatnonzero(maybe & ~off)
    values = best[rivals]
    for row in np.flatnonzero(on):
        beats = (values <= worst[row]).all(axis=1) & (values < worst[row]).any(axis=1)
        on[row] = not (beats & (rivals != row)).any()
    return Membership(on=on, off=off)


def _mask(name: str, value: npt.ArrayLike | None, count: int) -> BoolArray:
    mask = np.ones(count, dtype=bool) if value is None else np.asarray(value, dtype=bool)
    if mask.shape != (count,):
        raise ValueError(f"{name} must have one entry per point ({count}), got the shape {mask.shape}")
    return mask


def front_probability(
    best: npt.ArrayLike,
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    /,
    *,
    maximize: Mask = False,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> FloatArray:
    r"""Estimate for every point the probability that it is on the front.

    Parameters
    ----------
    best, low, high : array_like of shape (points, objectives)
        Estimates of the objectives and the ends of their intervals. An interval of no width is an
        exact value.
    maximize : bool or sequence of bool
        Which objectives are maximised.
    level : float
        Confidence level of the intervals, between 0 and 1.
    draws : int
        Samples of all objectives.
    seed : int
        Of the samples.

    Returns
    -------
    ndarray of float
        The share of samples in which the point is nondominated; its standard error is
        :math:`\sqrt{p (1 - p) / \text{draws}}`.

    Notes
    -----
    Every objective is taken to be normal around its estimate, independently of the others, with a
    standard deviation such that the interval has the level: half the width over the normal
    quantile. For intervals from few replications (Student's t) that is somewhat wide. Objectives
    estimated under common random numbers are correlated; treating them as independent makes
    decisions look less certain than they are.

    Examples
    --------
    >>> front_probability([[1, 9], [3, 5], [3, 5], [9, 9]], [[1, 9], [2, 5], [2, 5], [9, 9]],
    ...                   [[1, 9], [4, 5], [4, 5], [9, 9]]).round(1)
    array([1. , 0.5, 0.5, 0. ])
    """
    centre, ends = as_costs(best, maximize), (as_costs(low, maximize), as_costs(high, maximize))
    if not (centre.shape == ends[0].shape == ends[1].shape):
        raise ValueError(
            f"best, low and high must have one shape, got {centre.shape}, {ends[0].shape}, {ends[1].shape}"
        )
    checks.share("level", level)
    checks.whole("draws", draws, least=1)
    with np.errstate(invalid="ignore"):
        half = np.abs(ends[1] - ends[0]) / 2
    deviation = np.where(np.isfinite(half), half, 0.0) / NormalDist().inv_cdf((1 + level) / 2)
    # Points that stay dominated over six deviations are left out: they are on the front in no sample.
    span = 6 * deviation
    able = ~dominated_by(centre - span, distinct_front(centre + span)) & ~np.isposinf(centre).any(axis=1)
    rows = np.flatnonzero(able)
    hits = np.zeros(len(centre))
    rng = np.random.default_rng(seed)
    for _ in range(draws if rows.size else 0):
        hits[rows] += nondominated(centre[rows] + deviation[rows] * rng.standard_normal(centre[rows].shape))
    return hits / draws
