"""Dense elimination of states without subtraction (GTH), for small chains and blocks.

The diagonal of a generator is never used: the rate out of a state is the sum of its rates to
the states that remain. Only non-negative numbers are added, multiplied and divided, so results
keep a small relative error in every entry.
"""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray, IntArray

LARGEST_EXACT = 400
"""Order up to which equations of transient states are eliminated here; above it LAPACK is faster."""

PANEL = 48
"""States eliminated before the rates among the others are brought up to date, by one product of matrices."""

UNDERFLOW = (
    "parts of the chain are linked by rates that underflow, their weights cannot be compared: "
    "the rates span too many orders of magnitude"
)


def stationary_dense(rates: FloatArray) -> FloatArray:
    """Return the stationary law of an irreducible chain from its off-diagonal rates or probabilities."""
    a = np.array(rates, dtype=float)
    n = len(a)
    for stop in range(n, 1, -PANEL):
        start = max(stop - PANEL, 1)
        for k in range(stop - 1, start - 1, -1):
            exit_rate = a[k, :k].sum()
            if not exit_rate > 0:
                raise RuntimeError(UNDERFLOW)
            with np.errstate(over="ignore"):
                a[:k, k] /= exit_rate
            if not np.isfinite(a[:k, k]).all():
                raise RuntimeError(UNDERFLOW)
            a[start:k, :k] += np.outer(a[start:k, k], a[k, :k])
            a[:start, start:k] += np.outer(a[:start, k], a[k, start:k])
        a[:start, :start] += a[:start, start:stop] @ a[start:stop, :start]
    # The weights may span more than the range of a double: mantissas and powers of two.
    x = np.full(n, 0.5)
    power = np.zeros(n, dtype=np.int64)
    for k in range(1, n):
        parts, shifts = np.frexp(x[:k] * a[:k, k])
        shifts = np.where(parts > 0, shifts + power[:k], -(2**40))
        top = int(shifts.max())
        x[k], shift = np.frexp(np.ldexp(parts, np.maximum(shifts - top, -3000)).sum())
        power[k] = top + int(shift)
    return normalised(x, power)


def normalised(mantissa: FloatArray, power: IntArray) -> FloatArray:
    """Return the numbers ``mantissa 2^power`` divided by their sum."""
    m, shift = np.frexp(mantissa)
    scale = np.where(m > 0, shift + power, -(2**40))
    weights = np.ldexp(m, np.maximum(scale - scale.max(), -3000))
    return np.asarray(weights / weights.sum())


def solve_transient(rates: FloatArray, leave: FloatArray, right: FloatArray) -> FloatArray:
    """Solve ``(diag(d) - rates) x = right`` with ``d = rates.sum(1) + leave``, diagonal ignored.

    `rates` lead among transient states and `leave` out of them for good. With a non-negative right
    side (ones: mean times; rates into a target: probabilities) no subtraction occurs. Above
    `LARGEST_EXACT` states LAPACK's LU takes over.
    """
    a = np.array(rates, dtype=float)
    np.fill_diagonal(a, 0.0)
    m = len(a)
    if m > LARGEST_EXACT:
        return np.asarray(np.linalg.solve(np.diag(a.sum(axis=1) + leave) - a, right))
    out = np.array(leave, dtype=float)
    x = np.array(right, dtype=float)
    total = np.empty(m)
    for k in range(m - 1, -1, -1):
        total[k] = a[k, :k].sum() + out[k]
        if not total[k] > 0:
            raise RuntimeError(UNDERFLOW)
        factor = a[:k, k] / total[k]
        a[:k, :k] += np.outer(factor, a[k, :k])
        out[:k] += factor * out[k]
        x[:k] += np.multiply.outer(factor, x[k])
    for k in range(m):
        x[k] = (x[k] + a[k, :k] @ x[:k]) / total[k]
    return x
