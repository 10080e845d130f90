"""Roots of monotone functions, and quantiles: from tail probabilities, and of mixtures, at many points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray

_TINY = 1e-300


def quantile(tail: Callable[..., FloatArray], p: FloatArray, *, scale: FloatArray) -> FloatArray:
    """Return the smallest t >= 0 with ``tail(t) <= 1 - p``, elementwise.

    The root of log tail(t) - log(1 - p) is bracketed by doubling.

    ``tail``: nonincreasing function of an array of times; ``p``: levels in [0, 1]; ``scale``: a time of the
    order of the answer; where it is infinite so is the answer.
    """
    p, scale = np.broadcast_arrays(p, scale)
    endless = ~np.isfinite(scale) | (p >= 1)
    target = np.where(endless, 0.5, np.log1p(-np.where(endless, 0.0, p)))

    def excess(t: FloatArray) -> FloatArray:
        return np.where(endless, 0.0, np.log(np.maximum(tail(t), _TINY)) - target)

    low = np.zeros(p.shape)
    f_low = excess(low)
    done = f_low <= 0
    high = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
    f_high = excess(high)
    for _ in range(1100):
        short = (f_high > 0) & ~done
        if not short.any():
            break
        low, f_low = np.where(short, high, low), np.where(short, f_high, f_low)
        high = np.where(short, 2 * high, high)
        f_high = np.where(short, excess(high), f_high)
    high, f_high = np.where(done, 0.0, high), np.where(done, 0.0, f_high)
    root = bracketed_root(excess, high, low, f_high, f_low)
    return np.where(endless, np.inf, root)[()]


def bracketed_root(
    f: Callable[[FloatArray], FloatArray], x1: FloatArray, x2: FloatArray, f1: FloatArray, f2: FloatArray
) -> FloatArray:
    """Return the root between x1 and x2, where f1 and f2 differ in sign or vanish.

    The method of T. R. Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the
    zero of a nonlinear function without using derivatives", Advances in Engineering Software 28,
    1997, pp. 145-149; it survives jumps.
    """
    step = np.full(x1.shape, 0.5)
    for _ in range(200):
        tolerance = 4e-16 * np.abs(x1) + 1e-300
        gap = np.abs(x2 - x1)
        finished = (gap <= 2 * tolerance) | (f1 == 0)
        if finished.all():
            break
        x = np.where(finished, x1, x1 + step * (x2 - x1))
        fx = np.where(finished, f1, f(x))
        same = np.sign(fx) == np.sign(f1)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        x1, f1 = x, fx
        with np.errstate(all="ignore"):
            xi, phi = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
            inverse = f1 / (f2 - f1) * f3 / (f2 - f3)
            inverse += (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
            smooth = (1 - np.sqrt(1 - xi) < phi) & (phi < np.sqrt(xi))
            limit = np.minimum(0.5, tolerance / np.abs(x2 - x1))
        step = np.where(smooth & np.isfinite(inverse), inverse, 0.5)
        step = np.clip(
            step, np.where(np.isfinite(limit), limit, 0.5), 1 - np.where(np.isfinite(limit), limit, 0.5)
        )
    better = np.abs(f2) < np.abs(f1)
    return np.where(better, x2, x1)


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
