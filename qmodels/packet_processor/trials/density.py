"""How much denser packets lie around a packet than in the mean: what the accesses of others' packets meet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.traffic.arrivals import OnOff, Recorded, modelled
from qmodels.systems.traffic.sizes import segment_count
from qmodels.systems.traffic.trace import Trace
from qmodels.systems.traffic.workload import Workload

SCALES = np.geomspace(1e-3, 1e5, 49)
"""Times after a packet up to which later ones are counted. [mean gaps]"""
AGES = np.geomspace(1e-3, 20.0, 60)
"""Ages of a packet at which its hold is averaged. [mean holds]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Density:
    r"""Segments of packets up to a time after a segment, over those that come in such a time on average.

    1 for Poisson packets. With pairs of packets that lie :math:`u` apart :math:`g(u)` times as often,

    .. math:: K(t) = \frac{1}{t} \int_0^t g(u)\,du,\qquad
        m(h) = \int_0^\infty \frac{e^{-u/h}}{h} g(u)\,du
             = \int_0^\infty x e^{-x} K(h x)\,dx ,

    ``near`` and ``held``: a packet read after an exponential hold of mean :math:`h` meets packets being
    stored, and others being read, :math:`m` times as often as if they came evenly. Packets on one run have
    their blocks in one row of a bank and do not disturb each other there: with a run that ends after a packet
    with probability c, K is less :math:`(1 - e^{-c t K(t)})/(c t)` of these.
    """

    tables: tuple[FloatArray, ...]  # K at the `SCALES`, for each law of arrivals in the sweep
    law: IntArray  # the law of each design; empty if there is only one

    def near(self, time: FloatArray) -> FloatArray:
        """Return K of each design at a time in mean gaps."""
        place = np.log(np.maximum(time, SCALES[0]))
        if self.law.size == 0:
            return np.asarray(np.interp(place, np.log(SCALES), self.tables[0]))
        values = np.empty_like(place)
        for number, table in enumerate(self.tables):
            mine = self.law == number
            values[mine] = np.interp(place[mine], np.log(SCALES), table)
        return values

    def held(self, hold: FloatArray, cut: FloatArray | float) -> FloatArray:
        """Return m of each design at a mean hold in mean gaps, for pairs on different runs.

        A run ends after each packet with probability ``cut``.
        """
        weight = AGES**2 * np.exp(-AGES)
        found = np.zeros_like(hold)
        for part, age in zip(weight / weight.sum(), AGES, strict=True):
            time = np.maximum(hold * age, 1e-12)
            between = self.near(time)
            met = np.multiply(cut * time, between, out=np.zeros_like(between), where=between > 0)
            found += part * (between + np.expm1(-met) / (cut * time))
        return found

    def take(self, designs: IntArray) -> Density:
        """Return the same for some of the designs."""
        return Density(tables=self.tables, law=self.law[designs] if self.law.size else self.law)


def density(workload: Workload, shape: tuple[int, ...] = ()) -> Density:
    r"""Return the density of a workload's segments around one of them, for a sweep of this shape.

    Poisson: 1. On/off arrivals with peak :math:`P` and states that end at rates :math:`\alpha` and
    :math:`\beta`: :math:`g(u) = 1 + (P - 1) e^{-(\alpha + \beta) u}`, exact. Recorded: counted in the
    trace, its end joined to its beginning, each pair by the product of its segments.
    """
    arrivals = modelled("workload.arrivals", workload.arrivals)
    one = np.array([], dtype=np.int64)
    if isinstance(arrivals, Recorded):
        return Density(tables=(_recorded(arrivals.trace, int(workload.segment_bytes)),), law=one)
    if isinstance(arrivals, OnOff):
        parameters = (arrivals.on_packets, arrivals.peak_to_mean)
        laws = [np.broadcast_to(part, shape).reshape(-1) for part in parameters]
        kinds, law = np.unique(np.stack(laws), axis=1, return_inverse=True)
        return Density(tables=tuple(_on_off(on, peak) for on, peak in kinds.T), law=law.reshape(-1))
    return Density(tables=(np.ones_like(SCALES),), law=one)


def _on_off(on_packets: float, peak_to_mean: float) -> FloatArray:
    change = peak_to_mean / on_packets * (1.0 + 1.0 / (peak_to_mean - 1.0)) * SCALES
    return np.asarray(1.0 - (peak_to_mean - 1.0) * np.expm1(-change) / change)


@lru_cache(maxsize=8)
def _recorded(trace: Trace, segment_bytes: int) -> FloatArray:
    work = segment_count(trace.bytes, segment_bytes).astype(float)
    times = (trace.times_ns - trace.times_ns[0]) * trace.packet_rate
    total, period = work.sum(), float(len(times))
    before = np.concatenate([[0.0], np.cumsum(work)])
    found = np.ones_like(SCALES)
    inside = SCALES < period
    for number, scale in enumerate(SCALES[inside]):
        end = times + scale
        rounds = np.floor(end / period)
        ahead = before[np.searchsorted(times, end - rounds * period, side="right")] + rounds * total
        found[number] = work @ (ahead - before[1:]) / (total**2 / period * scale)
    return found
