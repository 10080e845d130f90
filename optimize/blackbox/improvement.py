"""How much volume a design is expected to add to a front: exact for independent normal objectives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optimize.search.pareto import FloatArray, nondominated

POINTS = {1: 1, 2: 400, 3: 60, 4: 24, 5: 13}
"""Points of a front that are looked at, by the number of objectives: the boxes are some thousand at most."""

FEWEST = 9
"""The same of more objectives."""

CELLS = 4_000_000
"""Designs times boxes at a time: bounds memory to some 100 MB."""


def thinned(front: FloatArray) -> FloatArray:
    """Return the points of a front that are farthest from each other, as many as boxes allow."""
    most = POINTS.get(front.shape[1], FEWEST)
    if len(front) <= most:
        return front
    scaled = (front - front.min(axis=0)) / (np.ptp(front, axis=0) + 1e-300)
    kept = [int(scaled.sum(axis=1).argmin())]
    far = np.full(len(front), np.inf)
    for _ in range(most - 1):
        far = np.minimum(far, ((scaled - scaled[kept[-1]]) ** 2).sum(axis=1))
        kept.append(int(far.argmax()))
    return front[sorted(kept)]


def boxes(front: FloatArray, corner: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper ends of disjoint boxes: what no point of a front dominates, up to a corner.

    All objectives are minimised; lower ends may be infinite. Cut along the last objective: between two
    values of it, what the points below leave free has one objective less.
    """
    front = front[(front < corner).all(axis=1)]
    if len(corner) == 1:
        return np.array([[-np.inf]]), np.minimum(front.min(axis=0, initial=np.inf), corner)[None]
    front = front[np.argsort(front[:, -1], kind="stable")]
    levels = np.concatenate([[-np.inf], front[:, -1], corner[-1:]])
    lows, highs = [], []
    for k in range(len(front) + 1):
        if levels[k] == levels[k + 1]:
            continue
        below = front[:k, :-1]
        low, high = boxes(below[nondominated(below)] if k > 1 else below, corner[:-1])
        lows.append(np.column_stack([low, np.full(len(low), levels[k])]))
        highs.append(np.column_stack([high, np.full(len(high), levels[k + 1])]))
    return np.concatenate(lows), np.concatenate(highs)


Shortfall = Callable[[FloatArray], FloatArray]
"""Corners to :math:`E[(c - y)^+]`, designs by corners."""


def expected_improvement(front: FloatArray, corner: FloatArray, shortfalls: list[Shortfall]) -> FloatArray:
    r"""Return the expected volume that each design adds to a front up to a corner, all minimised.

    The volume added is the sum over the boxes of
    :math:`\prod_k ((u_k - y_k)^+ - (l_k - y_k)^+)`; its factors are independent, so that the expectation
    needs those of the factors alone [1]_.

    References
    ----------
    .. [1] K. Yang, M. Emmerich, A. Deutz and T. Baeck, "Efficient computation of expected hypervolume
       improvement using box decomposition algorithms", Journal of Global Optimization 75, 2019.
    """
    low, high = boxes(thinned(front), corner)
    factors = []
    for k, shortfall in enumerate(shortfalls):
        ends = np.unique(np.concatenate([low[:, k], high[:, k]]))
        finite = np.isfinite(ends)
        table = shortfall(ends[finite])
        full = np.zeros((len(table), len(ends)))
        full[:, finite] = table
        factors.append((full, np.searchsorted(ends, low[:, k]), np.searchsorted(ends, high[:, k])))
    count = len(factors[0][0])
    total = np.zeros(count)
    step = max(CELLS // count, 1) if count else len(low)
    for start in range(0, len(low), step):
        part = slice(start, start + step)
        product = np.ones((count, len(low[part])))
        for full, below, above in factors:
            product *= np.maximum(full[:, above[part]] - full[:, below[part]], 0.0)
        total += product.sum(axis=1)
    return total
