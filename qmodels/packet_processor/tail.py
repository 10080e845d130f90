"""Quantiles of a mixture of shifted gamma laws."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray


def mixture_quantile(
    *, floor: FloatArray, weight: FloatArray, mean: FloatArray, variance: FloatArray, level: float
) -> FloatArray:
    """Return the quantile of ``floor[d, k] + G[d, k]`` where k has the given weights and G is gamma.

    ``floor``: fixed part of each kind [time]; ``weight``: probability of each kind; ``mean``, ``variance``:
    moments of the gamma part; a mean of 0 leaves the fixed part alone [time, time^2]; ``level``: probability
    below the quantile.

    >>> one = np.ones((1, 1))
    >>> exponential = mixture_quantile(floor=0 * one, weight=one[0], mean=one, variance=one, level=0.99)
    >>> round(exponential.item(), 4)
    4.6052
    """
    from scipy.special import gammainc

    scale = np.maximum(variance, 1e-12) / np.maximum(mean, 1e-12)
    shape = np.maximum(mean, 1e-12) / scale
    low = floor.min(axis=1)
    high = (floor + mean + 40.0 * np.sqrt(variance)).max(axis=1) + 1e-9
    for _ in range(45):
        middle = (low + high) / 2
        over = middle[:, None] - floor
        below = np.where(over > 0, gammainc(shape, np.maximum(over, 0.0) / scale), 0.0) @ weight
        low, high = np.where(below < level, middle, low), np.where(below < level, high, middle)
    return np.asarray((low + high) / 2)
