"""Quantiles of mixtures: of shifted gamma laws, and of packets whose waits are exponential."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

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


PLACES = np.array([-1.0, 0.0, 1.0]) * np.sqrt(3.0), np.array([1.0, 4.0, 1.0]) / 6.0
"""Values of a standard normal law, and their weights, exact up to the fifth moment (Gauss and Hermite)."""
HALVINGS = 30
LEAST = 1e-9
"""A wait that is none. [ns]"""


def wait_quantile(
    *,
    floors: tuple[FloatArray, FloatArray, FloatArray],
    waits: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    weight: FloatArray,
    misses: FloatArray,
    stable: npt.NDArray[np.bool_],
    level: float = 0.99,
) -> FloatArray:
    r"""Return the quantile of the latency of packets of several sizes, some with a lookup in DRAM more.

    The sum of a packet's waits has the mean and the variance of independent parts. A sum that varies less
    than an exponential time is taken as two of them one after the other, one that varies more as one that is
    not waited for always:

    .. math:: P(W > t) = (1 - p) e^{-t/a} + p \frac{a e^{-t/a} - b e^{-t/b}}{a - b}.

    Parameters
    ----------
    floors : (ndarray, ndarray, ndarray)
        Times without waits: mean and standard deviation by size, and what a lookup in DRAM adds.
    waits : sequence of (ndarray, ndarray, ndarray)
        Parts of the wait: mean by size, of a lookup in DRAM, and the squared coefficient of variation.
    weight : ndarray
        Share of each size.
    misses : ndarray
        Lookups in DRAM of a packet, mean.
    stable : ndarray of bool
        Designs of which the quantile is looked for; that of others is not a number.
    level : float
        Probability below the quantile.
    """
    floor, varies, missed = (part[stable] for part in floors)
    fewer = np.floor(misses[stable])
    part = (misses[stable] - fewer)[:, None, None]
    asked = np.stack([fewer, fewer + 1.0], axis=1)[:, :, None]
    mean, variance = np.zeros((2, len(floor), 2, weight.size))
    for by_size, table, scv in waits:
        each = by_size[stable][:, None] + asked * table[stable][:, None, None]
        mean, variance = mean + each, variance + each**2 * scv[stable][:, None, None]
    fixed = (floor[:, None] + asked * missed[:, None, None])[..., None] + varies[:, None, :, None] * PLACES[0]
    chance = (np.concatenate([1.0 - part, part], axis=1) * weight)[..., None] * PLACES[1]
    mean = np.maximum(mean, LEAST)
    apart = np.sqrt(np.maximum(2.0 * variance - mean**2, (1e-6 * mean) ** 2))
    less = variance <= mean**2
    first = np.where(less, np.maximum((mean - apart) / 2.0, LEAST), LEAST)[..., None]
    second = np.where(less, (mean + apart) / 2.0, (variance + mean**2) / (2.0 * mean))[..., None]
    some = np.where(less[..., None], 1.0, mean[..., None] / second)
    high = (fixed - 2.0 * np.log1p(-level) * second).max(axis=(1, 2, 3))
    low = np.zeros_like(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        over = np.maximum(middle[:, None, None, None] - fixed, 0.0)
        one, two = np.exp(-over / first), np.exp(-over / second)
        above = one + some * second * (two - one) / (second - first)
        below = (chance * above).sum(axis=(1, 2, 3)) < 1.0 - level
        low, high = np.where(below, low, middle), np.where(below, middle, high)
    found = np.full(stable.size, np.nan)
    found[stable] = high
    return found
