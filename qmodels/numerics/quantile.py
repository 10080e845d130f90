"""Roots of monotone functions, and quantiles from tail probabilities, at many points at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
