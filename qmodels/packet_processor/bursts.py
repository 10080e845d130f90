r"""Waits that bursts of on-off traffic add.

A resource gets a packet's work twice, to store it and to read it: with the bursts, and a random hold later
without them. That is a two-state Markov-modulated Poisson process with rates :math:`\lambda (1 + P)` and
:math:`\lambda` in front of a server with general service, whose mean work is known exactly (Heffes and
Lucantoni, "A Markov modulated characterization of packetized voice and data traffic", IEEE JSAC 4, 1986).
What it has beyond that of Poisson arrivals is what bursts add. Over times longer than the hold the reads of a
burst are as bursty as its writes; that is waited for once along the path, where it takes longest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.packet_processor.balance import pointer_work
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.heavy_traffic import heavy_limits
from qmodels.packet_processor.load import OperatingPoint
from qmodels.queues.general.mmpp_g1 import mmpp_g1_decay, mmpp_g1_waits
from qmodels.systems.traffic.arrivals import OnOff

FULL, LEAST = 1.0 - 1e-9, 1e-9


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
    limits = heavy_limits(c, point)
    lumps = {name: limits[name].write @ c.size_share for name in ("dram buses", "request links")}
    tables = [limits[name].table / lump for name, lump in lumps.items()]
    works = np.stack(pointer_work(c, point.accesses))
    scale = c.square_segments / c.mean_segments**2
    lumps["pointer memory"] = scale * (works**2).sum(axis=0) / 2.0 / works.sum(axis=0)
    stored, drained, laters, longest = [], [], [], []
    for name, lump in lumps.items():
        load = np.minimum(point.loads[name], FULL)
        work = load / (2.0 * rate)
        jobs: dict[str, Any] = {"others": rate, "rate": rate, "peak": peak, "ends": rate * peak / on}
        jobs |= {"mean": work, "square": np.maximum(2.0 * lump * work, work**2)}
        (virtual, seen), decay = mmpp_g1_waits(**jobs), mmpp_g1_decay(**jobs)
        alone = load * lump / (1.0 - load)
        # Over a time that is long beside the hold a burst's reads come with its writes: the variance of both
        # together is four times that of one. Of the time in which the work builds up, a part is that long.
        held = np.maximum(virtual, alone) / (1.0 - load) / np.maximum(c.hold, LEAST)
        again = 1.0 + np.expm1(-held) / np.maximum(held, LEAST)
        later = 3.0 * again * 2.0 * on * (1.0 - 1.0 / peak) ** 2 * rate * work**2 / (2.0 * (1.0 - load))
        drained.append(np.maximum(virtual - alone, 0.0))
        stored.append(np.maximum(seen - alone, 0.0))
        laters.append(later)
        longest.append(1.0 / decay + later)
    once = np.where(np.arange(len(lumps))[:, None] == np.argmax(laters, axis=0), laters, 0.0)
    store, drain = np.array(stored) + once, np.array(drained) + once
    table = (np.array(tables) * store[:2]).sum(axis=0)
    mean = np.stack([store[:2].sum(axis=0), drain[:2].sum(axis=0), table * c.miss_rate, store[2], drain[2]])
    return Bursts(mean=mean, longest=np.maximum(np.max(longest, axis=0), mean.sum(axis=0)))
