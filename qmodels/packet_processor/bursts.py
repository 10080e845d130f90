r"""Waits that bursts of on-off traffic add.

A resource gets a packet's work in two parts: when it is stored and, a random hold of mean :math:`h` later,
when it is drained. In a burst packets are stored at :math:`P` times their mean rate; the rate of drains,
delayed by exponential holds, is correlated with it by :math:`g = 1 / (1 + \theta h)`, :math:`\theta` the
rate at which the on-off chain forgets its state. Both together are a two-state Markov-modulated Poisson
process in front of a server with general service, whose mean work is known exactly (Heffes and Lucantoni,
"A Markov modulated characterization of packetized voice and data traffic", IEEE JSAC 4, 1986). What it has
beyond that of Poisson arrivals is what bursts add. Over times that are long beside the hold drains are as
bursty as stores: of the time in which work builds up a part is that long, which mixes the waits of the two
cases.

Bursts are paid once along a path (network calculus; exact for constant services: Friedman 1965): with
:math:`w_k` the wait that they add at resource k alone, a packet has waited
:math:`C_k = \max(C_{k-1} + l_k, w_k)` behind it; :math:`l_k \le w_k / 4` is what its neighbours in the burst
add as the slowest resource before sends them on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.packet_processor.balance import pointer_work
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.heavy_traffic import heavy_limits
from qmodels.packet_processor.load import OperatingPoint
from qmodels.queues.general.mmpp_g1 import mmpp_g1_decay, mmpp_g1_waits
from qmodels.systems.traffic.arrivals import OnOff

FULL, LEAST = 1.0 - 1e-9, 1e-9
PATH = ("pointer memory", "request links", "dram buses", "response links")
"""Resources in the order in which a packet is drained; it is stored by the first three."""
POINTER, REQUESTS, BUSES, RESPONSES = range(4)
NEIGHBOURS = 0.25
"""Part of a wait that neighbours in a burst add at most: chosen in view of 60 tandems."""
NEARLY_FULL = 0.98
"""Largest load within a burst at which its neighbours are taken to have a steady state."""


class Bursts(NamedTuple):
    """Waits that bursts add; times in ns."""

    mean: FloatArray  # waits of write, read, lookup, and for the pointer memory to store and to drain
    longest: FloatArray  # mean of what they add to a packet's latency where that is not 0


def burst_waits(c: Columns, point: OperatingPoint, arrivals: OnOff) -> Bursts:
    """Return waits that the bursts of on-off arrivals add, for all designs."""
    rate = point.rate
    on, peak = (
        np.broadcast_to(np.asarray(part, dtype=float), c.shape).reshape(-1)
        for part in (arrivals.on_packets, arrivals.peak_to_mean)
    )
    limits, share = heavy_limits(c, point), c.size_share
    works = np.stack(pointer_work(c, point.accesses))
    lump = np.stack(
        [
            c.square_segments / c.mean_segments**2 * (works**2).sum(axis=0) / 2.0 / works.sum(axis=0),
            limits["request links"].write @ share,
            limits["dram buses"].write @ share,
            limits["response links"].read @ share,
        ]
    )
    load = np.minimum([point.loads[name] for name in PATH], FULL)
    stored = _stored(c, works)
    work, back = load * stored / rate, (1.0 - stored) / stored
    ends = rate * peak / on
    follows = 1.0 / (1.0 + ends * peak / (peak - 1.0) * c.hold)
    # Drains that follow the bursts in part, and that come with them.
    bursty = rate * np.stack([1.0 + follows * back, 1.0 + back])
    others = rate * np.stack([(1.0 - follows) * back, LEAST * back])
    square = np.maximum(2.0 * lump * work, work**2)
    virtual, seen = mmpp_g1_waits(others=others, rate=bursty, peak=peak, ends=ends, mean=work, square=square)
    decay = mmpp_g1_decay(others=others[1], rate=bursty[1], peak=peak, ends=ends, mean=work, square=square)
    alone = load * lump / (1.0 - load)
    built = (virtual[1] + on / (peak * rate)) / np.maximum(c.hold, LEAST)
    together = 1.0 + np.expm1(-built) / np.maximum(built, LEAST)
    store = seen[0] + together * (seen[1] - seen[0])
    drain = virtual[0] + follows * (seen[0] - virtual[0])
    drain = drain + together * (seen[1] - drain)
    store, drain = np.maximum(store - alone, 0.0), np.maximum(drain - alone, 0.0)
    store[RESPONSES] = 0.0
    near = _neighbours(load, stored, work, lump, peak)
    to_store, to_drain = _along(store, near), _along(drain, near)
    # A lookup comes before its packet is stored: it meets the memory as the packets before have left it.
    asked = np.maximum(np.diff(np.maximum.accumulate(drain, axis=0), axis=0), 0.0)
    table = sum(limits[PATH[k]].table / lump[k] * asked[k - 1] for k in (REQUESTS, BUSES))
    mean = np.stack(
        [
            to_store[REQUESTS] + to_store[BUSES],
            to_drain[REQUESTS:].sum(axis=0),
            table * c.miss_rate,
            to_store[POINTER],
            to_drain[POINTER],
        ]
    )
    return Bursts(mean=mean, longest=np.maximum(np.max(1.0 / decay, axis=0), mean.sum(axis=0)))


def _stored(c: Columns, pointer: FloatArray) -> FloatArray:
    """Return the part of a packet's work at each resource that comes when it arrives."""
    mean, misses = c.mean_segments, c.miss_rate
    data, asks = mean * c.segment_time, (mean + misses) * c.request_time
    parts = [
        pointer[0] / pointer.sum(axis=0),
        (data + misses * c.request_time) / (data + asks),
        (mean + misses) / (2.0 * mean + misses),
        misses / (mean + misses),
    ]
    return np.clip(np.stack(parts), 1e-3, 1.0 - 1e-3)


def _neighbours(
    load: FloatArray, stored: FloatArray, work: FloatArray, lump: FloatArray, peak: FloatArray
) -> FloatArray:
    """Return the wait behind others of a burst that the slowest resource before sends on."""
    slowest = np.maximum.accumulate(work, axis=0)
    before = np.concatenate([np.full_like(work[:1], np.inf), slowest[:-1]])
    drained = load * (1.0 - stored)
    inside = np.minimum(work / before, peak * load * stored) + drained
    inside = np.minimum(inside, NEARLY_FULL)
    return np.maximum(inside * lump / (1.0 - inside) - load * lump / (1.0 - load), 0.0)


def _along(wait: FloatArray, near: FloatArray) -> FloatArray:
    """Return the waits that bursts add at each resource of a path, from those at each alone."""
    passed = [wait[0]]
    for alone, beside in zip(wait[1:], near[1:], strict=True):
        passed.append(np.maximum(passed[-1] + np.minimum(beside, NEIGHBOURS * alone), alone))
    return np.diff(np.stack(passed), axis=0, prepend=0.0)
