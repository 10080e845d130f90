"""Waits that are 0 with some probability and exponential otherwise."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray


def exponential_tail(share: FloatArray, rate: FloatArray, t: FloatArray) -> FloatArray:
    """Tail of a time that is 0 but for a `share`, and exponential then."""
    return share * np.exp(-rate * t)


def exponential_quantile(share: FloatArray, rate: FloatArray, p: FloatArray) -> FloatArray:
    """Inverse of `exponential_tail`; a rate of 0 stands for overload."""
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
