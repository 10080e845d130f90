"""The misses of an LRU cache for one line: a renewal process with a dead time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray

LAGS = 40
"""Beyond n dead times the slowest exponential is the whole survival function."""


def miss_gap(*, rate: npt.ArrayLike, dead_time: npt.ArrayLike, time: npt.ArrayLike) -> tuple[Any, Any]:
    r"""Survival function of the time between misses of a line, and its integral from 0.

    ``rate``: requests for the line per unit of time, Poisson; ``dead_time``: characteristic time :math:`T` of
    the cache: a request within it of the one before is a hit; ``time``: where to evaluate, >= 0. Returns
    survival, integral: of the broadcast shape.

    With :math:`b = a e^{-aT}`, the rate of misses, the survival function solves

    .. math:: F'(x) = -b F(x - T), \quad F = 1 \text{ on } [0, T],

    so that :math:`F(x) = \sum_k (-b)^k (x - kT)_+^k / k!`. The sum is used up to 40 dead times;
    after that :math:`F(x) = e^{-\theta x} / (1 - \theta T)` with
    :math:`\theta = -W_0(-bT)/T`. Exact up to rounding (1e-6). Derived here: the busy periods of
    an M/D/infinity queue have the same transform.
    """
    a, dead, x = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (rate, dead_time, time)))
    shape = a.shape
    a, dead, x = (np.atleast_1d(v) for v in (a, dead, x))
    b = a * np.exp(-a * dead)
    series = x <= LAGS * dead
    near = np.where(series, x, LAGS * dead)
    survival, integral = _series(b, dead, near)
    if not series.all():
        far = ~series
        late, late_integral = _tail(b[far], dead[far], x[far], integral[far])
        survival[far], integral[far] = late, late_integral
    return np.clip(survival, 0.0, 1.0).reshape(shape)[()], integral.reshape(shape)[()]


def _series(b: FloatArray, dead: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.nanmax(np.where(dead > 0, x / dead, 0.0), initial=0.0)
    survival, integral = np.ones_like(x), x.copy()
    scale = np.ones_like(x)
    for k in range(1, min(LAGS, int(most)) + 1):
        rest = np.maximum(x - k * dead, 0.0)
        scale = scale * -b / k
        power = scale * rest**k
        survival = survival + power
        integral = integral + power * rest / (k + 1)
    return survival, integral


def _tail(b: FloatArray, dead: FloatArray, x: FloatArray, until: FloatArray) -> tuple[FloatArray, FloatArray]:
    from scipy.special import lambertw

    start = LAGS * dead
    product = b * dead
    # Near 1/e two exponentials meet; both have died out by then.
    slow = product < 0.36
    root = np.where(slow, -np.real(lambertw(np.where(slow, -product, 0.0), 0)), 0.0)
    decay = np.where(dead > 0, root / np.where(dead > 0, dead, 1.0), b)
    height = np.where(slow, 1.0 / (1.0 - root), 0.0)
    at_start = height * np.exp(-decay * start)
    survival = height * np.exp(-decay * x)
    span = x - start
    weight = np.where(decay * span > 1e-12, -np.expm1(-decay * span) / np.where(decay > 0, decay, 1.0), span)
    return survival, until + at_start * weight
