"""Fronts of objectives that are known up to an interval: which designs are on them for sure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optimize.search.pareto import FloatArray, Mask, as_costs, distinct_front, dominated_by

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Membership:
    """Front under intervals: the designs that may belong to it.

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
    best, worst, sure, maybe = _ends(low, high, maximize, admitted, possible)
    off = _off(best, worst, sure, maybe)
    on = sure & ~off
    rivals = np.flatnonzero(maybe & ~off)
    values = best[rivals]
    for row in np.flatnonzero(on):
        beats = (values <= worst[row]).all(axis=1) & (values < worst[row]).any(axis=1)
        on[row] = not (beats & (rivals != row)).any()
    return Membership(on=on, off=off)


def excluded(
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    *,
    maximize: Mask,
    admitted: npt.ArrayLike,
    possible: npt.ArrayLike,
) -> BoolArray:
    """Return `Membership.off` alone, a small part of the work of `front_membership`."""
    return _off(*_ends(low, high, maximize, admitted, possible))


def _ends(
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    maximize: Mask,
    admitted: npt.ArrayLike | None,
    possible: npt.ArrayLike | None,
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Return the best and worst costs, and which points are admitted for sure and perhaps."""
    ends = as_costs(low, maximize), as_costs(high, maximize)
    if ends[0].shape != ends[1].shape:
        raise ValueError(f"low and high must have one shape, got {ends[0].shape} and {ends[1].shape}")
    best, worst = np.minimum(*ends), np.maximum(*ends)
    sure = _mask("admitted", admitted, len(best)) & ~np.isposinf(worst).any(axis=1)
    return best, worst, sure, _mask("possible", possible, len(best)) & ~np.isposinf(best).any(axis=1)


def _off(best: FloatArray, worst: FloatArray, sure: BoolArray, maybe: BoolArray) -> BoolArray:
    off = ~maybe
    rows = np.flatnonzero(maybe)
    off[rows] = dominated_by(best[rows], distinct_front(worst[sure]))
    return off


def _mask(name: str, value: npt.ArrayLike | None, count: int) -> BoolArray:
    mask = np.ones(count, dtype=bool) if value is None else np.asarray(value, dtype=bool)
    if mask.shape != (count,):
        raise ValueError(f"{name} must have one entry per point ({count}), got the shape {mask.shape}")
    return mask
