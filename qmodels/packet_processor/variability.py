"""How bursty the packets of a workload are to a queue of a given traffic intensity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.queues import gm1, lindley_waiting_times
from qmodels.systems.laws.phases import HyperExponential
from qmodels.systems.traffic.arrivals import OnOff, Recorded, modelled
from qmodels.systems.traffic.sizes import segment_count
from qmodels.systems.traffic.trace import Trace
from qmodels.systems.traffic.workload import Workload

INTENSITIES = np.concatenate([np.linspace(0.02, 0.9, 23), [0.94, 0.97, 0.99]])


@dataclass(frozen=True, kw_only=True, eq=False)
class Variability:
    """From traffic intensity to the squared coefficient of variation a renewal stream would need.

    Parameters
    ----------
    tables : tuple of ndarray
        That SCV at the `INTENSITIES`, for each law of arrivals in the sweep.
    law : ndarray of int
        The law of each design; empty if there is only one.
    """

    tables: tuple[FloatArray, ...]
    law: IntArray

    def __call__(self, intensity: FloatArray) -> FloatArray:
        """Return the SCV of each design, whose traffic intensity is given."""
        if self.law.size == 0:
            return np.asarray(np.interp(intensity, INTENSITIES, self.tables[0]))
        values = np.empty_like(intensity)
        for number, table in enumerate(self.tables):
            mine = self.law == number
            values[mine] = np.interp(intensity[mine], INTENSITIES, table)
        return values

    def take(self, designs: IntArray) -> Variability:
        """Return the same for some of the designs."""
        return Variability(tables=self.tables, law=self.law[designs] if self.law.size else self.law)


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
    arrivals = modelled("workload.arrivals", workload.arrivals)
    one = np.array([], dtype=np.int64)
    if isinstance(arrivals, Recorded):
        return Variability(tables=(_recorded(arrivals.trace, int(workload.segment_bytes)),), law=one)
    if isinstance(arrivals, OnOff):
        parameters = (arrivals.on_packets, arrivals.peak_to_mean)
        laws = [np.broadcast_to(part, shape).reshape(-1) for part in parameters]
        kinds, law = np.unique(np.stack(laws), axis=1, return_inverse=True)
        tables = tuple(_on_off(float(on), float(peak)) for on, peak in kinds.T)
        return Variability(tables=tables, law=law.reshape(-1))
    return Variability(tables=(np.ones_like(INTENSITIES),), law=one)


def _effective_scv(wait: FloatArray, service_scv: float) -> FloatArray:
    """Return the arrival SCV for waits in units of the mean service time at all tabulated intensities."""
    return np.maximum(2.0 * (1.0 - INTENSITIES) / INTENSITIES * wait - service_scv, 0.0)


@lru_cache(maxsize=256)
def _on_off(on_packets: float, peak_to_mean: float) -> FloatArray:
    probability, fast, slow = OnOff(on_packets=on_packets, peak_to_mean=peak_to_mean).phases
    gaps = HyperExponential(probabilities=(probability, 1.0 - probability), means=(1.0 / fast, 1.0 / slow))
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
