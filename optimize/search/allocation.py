"""Which designs get the next replications, so that the front is decided with few of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from optimize.search.pareto import FloatArray, IntArray
from optimize.search.uncertain import Membership, front_membership

GROWTH = 1.5
"""Least factor by which the replications of a chosen design grow: a round costs time of its own."""

ROUND = 0.5
"""Replications of a round, relative to all before it."""


@dataclass(kw_only=True, eq=False)
class Known:
    """What is known of some designs, everything as costs; the arrays are written to as it grows.

    Parameters
    ----------
    centre, low, high : ndarray of shape (designs, demands)
        Estimates of objectives and limited metrics, and the ends of their intervals.
    limits : ndarray of shape (demands,)
        Largest admissible values, infinite without one.
    objectives : ndarray of bool
        Which demands are objectives.
    replications : ndarray of int
        Replications behind each; 0 is not simulated.
    """

    centre: FloatArray
    low: FloatArray
    high: FloatArray
    limits: FloatArray
    objectives: npt.NDArray[np.bool_]
    replications: IntArray

    @property
    def half(self) -> FloatArray:
        """Half the widths of the intervals; 0 for infinite ones, which replications do not change."""
        with np.errstate(invalid="ignore"):
            half = (self.high - self.low) / 2
        return np.where(np.isfinite(half), half, 0.0)

    def membership(self) -> Membership:
        """Return what the intervals decide about the front."""
        return front_membership(
            self.low[:, self.objectives],
            self.high[:, self.objectives],
            admitted=(self.high <= self.limits).all(axis=1),
            possible=(self.low <= self.limits).all(axis=1),
        )


def allocate(known: Known, *, first: int, maximum: int, left: int, level: float) -> dict[int, int]:
    r"""Return the designs to simulate next and the replications that each shall have then.

    Parameters
    ----------
    known : Known
        What is known.
    first : int
        Replications of a design that has none.
    maximum, left : int
        Most replications of one design, and those left for all.
    level : float
        Confidence level of the intervals.

    Returns
    -------
    dict of int to int
        By place in `known`; empty if nothing is undecided or no replications are left.

    Notes
    -----
    Optimal computing budget allocation for Pareto sets [1]_ in its simplest form. For an undecided
    design the rival most likely to dominate it counts, and of the objectives the one in which that
    is least likely; with the difference :math:`\delta` there and the standard deviation
    :math:`\sigma` of one replication both designs get shares proportional to
    :math:`(\sigma / \delta)^2`; a design with an open constraint the same with its distance from
    the limit. A difference below a tenth of the intervals counts as that tenth: designs that cannot
    be told apart do not take everything.

    References
    ----------
    .. [1] L. H. Lee, E. P. Chew, S. Teng and D. Goldsman, "Finding the non-dominated Pareto set for
       multi-objective simulation models", IIE Transactions 42(9), 2010.
    """
    half, undecided = known.half, known.membership().undecided
    sigma = half * np.sqrt(known.replications)[:, None] / NormalDist().inv_cdf((1 + level) / 2)
    weights = np.zeros(len(half))
    new: set[int] = set()

    def share(design: int, demand: int, distance: float) -> None:
        if known.replications[design] == 0:
            new.add(design)
        elif sigma[design, demand] > 0:
            weights[design] = max(weights[design], (sigma[design, demand] / distance) ** 2)

    for design in np.flatnonzero(undecided).tolist():
        open_limits = (known.low[design] <= known.limits) & (known.limits < known.high[design])
        for demand in np.flatnonzero(open_limits).tolist():
            distance = abs(known.centre[design, demand] - known.limits[demand])
            share(design, demand, max(distance, half[design, demand] / 10))
        rival = _rival(known, half, design)
        if rival is None:
            continue
        other, k, distance = rival
        for one in (design, other):
            if half[one, k] > 0:
                share(one, k, distance)
    wanted: dict[int, int] = {}
    for design in sorted(new):
        if first <= left:
            wanted[design] = first
            left -= first
    rest = min(left, max(math.ceil(ROUND * int(known.replications.sum())), 2 * first))
    total = weights.sum()
    for design in np.argsort(-weights, kind="stable").tolist():
        have = int(known.replications[design])
        if weights[design] == 0 or have >= maximum:
            continue
        goal = max(math.ceil(have * GROWTH), have + round(rest * weights[design] / total))
        more = min(goal, maximum) - have
        if more <= min(rest, left):
            wanted[design] = have + more
            rest, left = rest - more, left - more
    return wanted


def _rival(known: Known, half: FloatArray, design: int) -> tuple[int, int, float] | None:
    """Return the design most likely to dominate this one, and the objective and difference that decide it."""
    columns = np.flatnonzero(known.objectives)
    low, high, centre = (values[:, columns] for values in (known.low, known.high, known.centre))
    able = (low <= high[design]).all(axis=1) & (low < high[design]).any(axis=1)
    able &= (known.low <= known.limits).all(axis=1)
    able[design] = False
    others = np.flatnonzero(able)
    if not others.size:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        ahead = centre[design] - centre[others]
        spread = np.hypot(half[others][:, columns], half[design, columns])
        ratio = np.where(spread > 0, ahead / spread, np.where(ahead >= 0, math.inf, -math.inf))
    ratio = np.nan_to_num(ratio, nan=math.inf, posinf=math.inf, neginf=-math.inf)
    least = ratio.min(axis=1)
    best = int(least.argmax())
    k = int(ratio[best].argmin())
    if not math.isfinite(ratio[best, k]):
        return None
    return int(others[best]), int(columns[k]), max(abs(float(ahead[best, k])), float(spread[best, k]) / 10)
