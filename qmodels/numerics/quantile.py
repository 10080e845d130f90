"""Invert a tail probability for any number of points at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qmodels.checks import FloatArray
from qmodels.numerics.root import bracketed_root

_TINY = 1e-300


def quantile(tail: Callable[..., FloatArray], p: FloatArray, *, scale: FloatArray) -> FloatArray:
    """Return the smallest t >= 0 with ``tail(t) <= 1 - p``, elementwise.

    The root of log tail(t) - log(1 - p) is bracketed by doubling.

    Parameters
    ----------
    tail : callable
        Nonincreasing function of an array of times.
    p : array
        Levels in [0, 1].
    scale : array
        A time of the order of the answer; where it is infinite so is the answer.
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
