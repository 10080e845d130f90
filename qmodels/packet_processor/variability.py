"""How bursty the packets of a workload are to a queue of a given traffic intensity."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels._check import FloatArray
from qmodels.systems.arrivals import OnOff, Recorded
from qmodels.systems.sizes import segment_count
from qmodels.systems.trace import Trace
from qmodels.systems.workload import Workload

Variability = Callable[[FloatArray], Any]
"""From traffic intensity to the squared coefficient of variation a renewal stream would need."""

INTENSITIES = np.concatenate([np.linspace(0.02, 0.9, 23), [0.94, 0.97, 0.99]])


def variability(workload: Workload) -> Variability:
    r"""Return the effective arrival SCV of a workload's packets as a function of traffic intensity.

    Notes
    -----
    The SCV :math:`c_a^2` that makes the heavy-traffic formula give the mean wait :math:`W` of a
    queue fed by these very arrivals,

    .. math:: c_a^2(\rho) = \frac{2 (1-\rho)\, W(\rho)}{\rho\, E[S]} - c_s^2.

    Poisson: 1. On/off: from the exact wait of the queue with these interarrival times and
    exponential service, :math:`W = \sigma E[S]/(1-\sigma)`, :math:`\sigma` the root of
    :math:`\sigma = A^*((1-\sigma)/E[S])`. Recorded: from Lindley's recursion over the trace, each
    packet a job proportional to its segments, so that correlation of gaps and sizes counts; a
    queue longer than the trace remains unseen.
    """
    arrivals = workload.arrivals
    if isinstance(arrivals, OnOff):
        return lambda intensity: _on_off(arrivals, intensity)
    if isinstance(arrivals, Recorded):
        table = _recorded(arrivals.trace, int(workload.segment_bytes))
        return lambda intensity: np.interp(intensity, INTENSITIES, table)
    return lambda intensity: 1.0


def _on_off(arrivals: OnOff, intensity: FloatArray) -> FloatArray:
    probability, fast, slow = (np.asarray(x, dtype=float).reshape(-1) for x in arrivals.phases)
    rho = np.clip(intensity, 1e-6, 1.0 - 1e-6)
    low, high = np.zeros(np.broadcast_shapes(rho.shape, probability.shape)), np.ones(1)
    high = np.broadcast_to(1.0 - 1e-13, low.shape)
    for _ in range(60):
        sigma = (low + high) / 2
        s = (1.0 - sigma) / rho
        transform = probability * fast / (fast + s) + (1.0 - probability) * slow / (slow + s)
        low, high = np.where(transform > sigma, sigma, low), np.where(transform > sigma, high, sigma)
    sigma = (low + high) / 2
    return 2.0 * (1.0 - rho) / rho * sigma / (1.0 - sigma) - 1.0


@lru_cache(maxsize=8)
def _recorded(trace: Trace, segment_bytes: int) -> FloatArray:
    work = segment_count(trace.bytes, segment_bytes).astype(float)
    gaps = np.diff(trace.times_ns)
    scv = work.var() / work.mean() ** 2
    table = np.empty(len(INTENSITIES))
    for k, rho in enumerate(INTENSITIES):
        service = work * (rho * gaps.mean() / work.mean())
        walk = np.concatenate([[0.0], np.cumsum(service[:-1] - gaps)])
        wait = (walk - np.minimum.accumulate(walk)).mean()
        table[k] = 2.0 * (1.0 - rho) * wait / (rho * service.mean()) - scv
    return np.maximum(table, 0.0)
