"""Roots of monotone functions at many points at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qmodels.checks import FloatArray


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
