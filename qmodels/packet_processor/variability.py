"""How bursty the packets of a workload are to a queue of a given traffic intensity."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels._check import FloatArray, IntArray
from qmodels.queues import HyperExponential, gm1, lindley_waiting_times
from qmodels.systems.arrivals import OnOff, Recorded
from qmodels.systems.sizes import segment_count
from qmodels.systems.trace import Trace
from qmodels.systems.workload import Workload

Variability = Callable[[FloatArray], Any]
"""From traffic intensity to the squared coefficient of variation a renewal stream would need."""

INTENSITIES = np.concatenate([np.linspace(0.02, 0.9, 23), [0.94, 0.97, 0.99]])


def variability(workload: Workload, shape: tuple[int, ...] = ()) -> Variability:
    r"""Return the effective arrival SCV of a workload's packets as a function of traffic intensity.

    ``shape`` is that of the sweep; the function takes and gives one value per design, flat.

    Notes
    -----
    The SCV :math:`c_a^2` that makes the heavy-traffic formula give the mean wait :math:`W` of a
    queue fed by these very arrivals,

    .. math:: c_a^2(\rho) = \frac{2 (1-\rho)\, W(\rho)}{\rho\, E[S]} - c_s^2,

    tabulated over :math:`\rho`. Poisson: 1. On/off: from GI/M/1 with these interarrival times.
    Recorded: from Lindley's recursion over the trace, each packet a job proportional to its
    segments, so that correlation of gaps and sizes counts; a queue longer than the trace remains
    unseen.
    """
    arrivals = workload.arrivals
    if isinstance(arrivals, Recorded):
        table = _recorded(arrivals.trace, int(workload.segment_bytes))
        return lambda intensity: np.interp(intensity, INTENSITIES, table)
    if isinstance(arrivals, OnOff):
        parameters = (arrivals.on_packets, arrivals.peak_to_mean)
        laws = [np.broadcast_to(part, shape).reshape(-1) for part in parameters]
        kinds, kind = np.unique(np.stack(laws), axis=1, return_inverse=True)
        tables = [_on_off(float(on), float(peak)) for on, peak in kinds.T]
        return lambda intensity: _pick(intensity, kind.reshape(-1), tables)
    return lambda intensity: 1.0


def _pick(intensity: FloatArray, kind: IntArray, tables: list[FloatArray]) -> FloatArray:
    values = np.empty_like(intensity)
    for number, table in enumerate(tables):
        mine = kind == number
        values[mine] = np.interp(intensity[mine], INTENSITIES, table)
    return values


def _effective_scv(wait: FloatArray, service_scv: float) -> FloatArray:
    """Return the arrival SCV for waits in units of the mean service time at all tabulated intensities."""
    return np.maximum(2.0 * (1.0 - INTENSITIES) / INTENSITIES * wait - service_scv, 0.0)


@lru_cache(maxsize=256)
def _on_off(on_packets: float, peak_to_mean: float) -> FloatArray:
    probability, fast, slow = OnOff(on_packets=on_packets, peak_to_mean=peak_to_mean).phases
    gaps = HyperExponential(probabilities=[probability, 1.0 - probability], means=[1.0 / fast, 1.0 / slow])
    wait = gm1(arrival=gaps, service_rate=1.0 / INTENSITIES).mean_waiting_time
    return _effective_scv(wait / INTENSITIES, 1.0)


@lru_cache(maxsize=8)
def _recorded(trace: Trace, segment_bytes: int) -> FloatArray:
    work = segment_count(trace.bytes, segment_bytes).astype(float)
    work = work / work.mean()
    gaps = np.diff(trace.times_ns)
    gaps = gaps / gaps.mean()
    waits = [
        lindley_waiting_times(interarrival_time=gaps, service_time=rho * work).mean() / rho
        for rho in INTENSITIES
    ]
    return _effective_scv(np.array(waits), float(work.var()))
