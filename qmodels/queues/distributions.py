"""Laws that several stations share: of the number of jobs, and of waits that are 0 or exponential."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.numerics.digits import cumulative_ratio
from qmodels.numerics.poisson import poisson_pmf


def birth_death_law(births: FloatArray, deaths: FloatArray) -> FloatArray:
    """Return the probabilities of 0..K from the rates up from 0..K-1 and down from 1..K.

    Products of ratios with separate exponents: any spread of rates, one rounding per state.
    """
    mantissa, exponent = cumulative_ratio(births, deaths)
    mantissa, exponent = np.concatenate([[1.0], mantissa]), np.concatenate([[0], exponent])
    shift = exponent - exponent[mantissa > 0].max()
    weights = np.where(mantissa > 0, np.ldexp(mantissa, np.maximum(shift, -2000)), 0.0)
    return np.asarray(weights / weights.sum())


def geometric_pmf(rho: FloatArray, idle: FloatArray, n: FloatArray) -> FloatArray:
    """Return the n-th probability, ``idle = 1 - rho``."""
    return np.asarray(idle * rho**n)


def poisson_number(mean: FloatArray, n: FloatArray) -> FloatArray:
    """Return the n-th probability."""
    return poisson_pmf(n, mean)


def tabulated(laws: Iterable[FloatArray], shape: tuple[int, ...]) -> Callable[[FloatArray], FloatArray]:
    """Return the function of n that looks it up in the law of each point, 0 beyond its end."""
    return partial(_lookup, tuple(laws), shape)


def _lookup(laws: tuple[FloatArray, ...], shape: tuple[int, ...], n: FloatArray) -> FloatArray:
    points = np.broadcast_shapes(shape, n.shape)
    which = np.broadcast_to(np.arange(len(laws)).reshape(shape), points)
    wanted = np.broadcast_to(n, points).astype(np.int64)
    pairs = zip(which.ravel(), wanted.ravel(), strict=True)
    values = [float(laws[i][k]) if k < len(laws[i]) else 0.0 for i, k in pairs]
    return np.array(values).reshape(points)


def exponential_law(kind: str, share: FloatArray, rate: FloatArray) -> dict[str, Any]:
    """Return tail and quantile of a "waiting" or "response" time: 0 but for a share, and exponential then.

    A rate of 0 stands for overload.
    """
    return {
        f"{kind}_tail": partial(_exponential_tail, share, rate),
        f"{kind}_quantile": partial(_exponential_quantile, share, rate),
    }


def _exponential_tail(share: FloatArray, rate: FloatArray, t: FloatArray) -> FloatArray:
    return share * np.exp(-rate * t)


def _exponential_quantile(share: FloatArray, rate: FloatArray, p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        time = (np.log(share) - np.log1p(-p)) / rate
    return np.where(1 - p >= share, 0.0, np.where(rate == 0, np.inf, time))


def exponential_wait_response_tail(
    waits: FloatArray, spare_rate: FloatArray, mu: FloatArray, t: FloatArray
) -> FloatArray:
    """Tail of such a wait plus an exponential service of rate mu; a wait's rate of 0 stands for overload."""
    gap = np.abs(spare_rate - mu) * t
    spread = np.where(gap > 0, -np.expm1(-gap) / np.where(gap > 0, gap, 1.0), 1.0)
    tail = np.exp(-mu * t) + waits * mu * t * np.exp(-np.minimum(mu, spare_rate) * t) * spread
    return np.where(spare_rate > 0, tail, 1.0)
