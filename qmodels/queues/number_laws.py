"""Laws of the number of jobs: of birth-death chains, geometric, Poisson, and as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

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
