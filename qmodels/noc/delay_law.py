"""Quantiles of latencies from the means of the waits they are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.noc.waits import Waits


class SpreadLaw(NamedTuple):
    """Variation of waits about their means.

    Parameters
    ----------
    packet : float
        Mean of a wait that is not 0, its part in the time of a packet.
    mean : float
        Mean of a wait that is not 0, its part in the mean of all.
    together : float
        How much more waits on a path vary because they come together, times the part of the waits in
        themselves and a packet.
    least : float
        Squared coefficient of variation of a wait at least: keeps the law of a latency defined.
    """

    packet: float
    mean: float
    together: float
    least: float


SPREAD = kept(SpreadLaw, "noc.spread")

PRECISION = 1e-4
"""Of the quantiles, relative."""


def wait_variance(mean: FloatArray, square: FloatArray, packet: FloatArray) -> FloatArray:
    """Return the variance of waits that are 0, or exponential of a packet and their mean, about.

    Of several waits in a row: ``mean`` is the sum of their means, ``square`` of the squares of these.
    """
    return 2 * SPREAD.packet * packet * mean + max(2 * SPREAD.mean - 1, SPREAD.least) * square


def delay_moments(waits: Waits, source_delay: FloatArray, point: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of what each flow's packets wait in all, at a load by its number. [cycles]."""
    packet, source = waits.turns.busy_cycles, source_delay[point]
    mean = source + waits.along(point)
    variance = wait_variance(mean, source**2 + waits.along(point, 2), packet)
    return mean, variance * (1 + SPREAD.together * mean / (packet + mean))


def delay_quantiles(
    waits: Waits, source_delay: FloatArray, part: FloatArray | None, probability: float
) -> FloatArray:
    """Return a quantile of the latency, of each flow or of a mixture of all flows.

    ``waits``: mean waits in the network; ``source_delay``: mean wait of each flow in its source queue, shape
    (loads, flows) [cycles]; ``part``: parts of the flows in the mixture; without them each flow has its own
    quantile. Returns of shape (loads, flows), or (loads,) for a mixture [cycles].
    """
    from scipy.special import gammainc, gammaincinv

    if not 0 < probability < 1:
        raise ValueError(f"probability must be between 0 and 1, got {probability!r}")
    packet = waits.turns.busy_cycles
    base = waits.turns.zero_load
    result = []
    for n, stable in enumerate(waits.stable):
        if not stable:
            result.append(np.full(() if part is not None else packet.shape, np.inf))
            continue
        mean, variance = delay_moments(waits, source_delay, n)
        mean, variance = np.maximum(mean, 1e-9), np.maximum(variance, 1e-12)
        shape, scale = mean**2 / variance, variance / mean
        if part is None:
            result.append(base + scale * gammaincinv(shape, probability))
            continue
        # The mixture's quantile lies between the smallest and the largest of the flows.
        low, high = base.min(), float((base + scale * gammaincinv(shape, probability)).max())
        while high - low > PRECISION * high:
            middle = (low + high) / 2
            below = np.where(middle < base, 0.0, gammainc(shape, np.maximum(middle - base, 0.0) / scale))
            low, high = (middle, high) if part @ below < probability else (low, middle)
        result.append(np.asarray(high))
    return np.array(result)
