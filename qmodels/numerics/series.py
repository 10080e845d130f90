"""Sums over the states of a queue whose rates change linearly, as smooth integrals."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.numerics.poisson import relative_deviance

Sums = tuple[FloatArray, FloatArray, FloatArray]

_DEPTH = 50.0  # the integrands are followed down to e^-50 of their peak
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


def tail_sums(k: FloatArray, rho: FloatArray, idle: FloatArray) -> Sums:
    r"""Return P(A >= k), E[(A - k)^+] and E[(A - k)^+ (A - k - 1)] over the density at k, A Poisson.

    The mean of A is k rho with rho < 1, and ``idle = 1 - rho``. They are the sums of
    `rising_sums` at x = k.
    """
    scale, *sums = rising_sums(k, k * rho, k * idle)
    return sums[0], sums[1], sums[2]


def rising_sums(
    x: FloatArray, y: FloatArray, gap: FloatArray, start: FloatArray | float = 0.0
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    r"""Return s and e^-s times the sums of t_j, j t_j and j (j-1) t_j.

    With :math:`t_j = y^j / ((x+1) \cdots (x+j))` and :math:`u = y (1 - e^{-v})` the sums are

    .. math:: x \int_0^\infty u^r e^{u - x v} \, dv, \qquad r = 0, 1, 2,

    integrals of positive functions with one smooth peak, on each side of which 64 Gauss nodes
    give them to rounding for any x >= 1. ``gap = x - y`` is passed with full precision; with
    `start` > 0 the integrals begin there.
    """
    x, y, gap, start = np.broadcast_arrays(x, y, gap, start)
    over = np.minimum(gap, 0.0)
    peak = np.log1p(-over / x)
    inside = peak > start
    middle = np.where(inside, peak, start)
    curvature = np.where(inside, x, y * np.exp(-middle))
    slope = np.where(inside, 0.0, gap - y * np.expm1(-middle))
    at_start = -(gap * start + y * curve(start))
    scale = np.where(inside, x * relative_deviance(-over / x), at_start)
    sums = np.zeros((3, *x.shape))
    for side, reach in (
        (1, _right_reach(slope, curvature)),
        (-1, np.minimum(_left_reach(curvature), middle - start)),
    ):
        w = side * reach[..., None] * (_NODES + 1) / 2
        fall = slope[..., None] * w + curvature[..., None] * curve(w)
        density = reach[..., None] / 2 * _WEIGHTS * np.exp(-fall)
        u = -y[..., None] * np.expm1(-(middle[..., None] + w))
        for r in range(3):
            sums[r] += x * (u**r * density).sum(axis=-1)
    return scale, sums[0], sums[1], sums[2]


def curve(w: FloatArray) -> FloatArray:
    """Return w - 1 + e^-w without cancellation."""
    near = np.abs(w) < 0.5
    v = np.where(near, w, 0.5)
    series = np.zeros(np.shape(w))
    for i in range(18, 1, -1):
        series = v / i * (1 - series)
    return w * np.where(near, series, 1 + np.expm1(-w) / np.where(near, 1.0, w))


def _right_reach(slope: FloatArray, curvature: FloatArray) -> FloatArray:
    """Return where slope w + curvature (w - 1 + e^-w) has grown to the depth, by Newton from above."""
    with np.errstate(divide="ignore", over="ignore"):
        linear = _DEPTH / slope
        square = np.where(curvature > 3 * _DEPTH, np.sqrt(3 * _DEPTH / curvature), 1 + _DEPTH / curvature)
    w = np.minimum(linear, square)
    for _ in range(8):
        excess = slope * w + curvature * curve(w) - _DEPTH
        w = w - excess / (slope - curvature * np.expm1(-w))
    return w


def _left_reach(curvature: FloatArray) -> FloatArray:
    """Return a bound of where curvature (e^w - 1 - w) has grown to the depth."""
    with np.errstate(divide="ignore"):
        return np.minimum(np.sqrt(2 * _DEPTH / curvature), np.maximum(2.0, np.log(2 * _DEPTH / curvature)))
