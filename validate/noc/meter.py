"""Counters of a network's run: packets and their times by flow, latencies, the backlog over time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray, IntArray
from validate.engine.bins import bin_of
from validate.engine.histogram import BINS
from validate.engine.jit import inlined, lean
from validate.engine.streams import uniform
from validate.noc.state import DELIVERED, FLAGS, SHIFT, WAITING, WHEEL, WHOLE, World

PICK = np.dtype([("other", "i4"), ("keep", "f4")], align=True)
"""An entry of an alias table: a flow stands for itself, or with probability 1 - ``keep`` for another."""


@inlined
def pick_flow(source: Any, pick: Any, group: Any, streams: Any, s: int) -> int:
    """Return the flow of a source's next packet.

    ``source``: with the fields ``first_group``, ``groups``, ``step`` (packets of a group before those of the
    next) and ``sent`` (packets so far); ``pick``, ``group``: an entry for each flow, and first flow and size
    of each group; ``streams``: the flows of source s are drawn from stream s + number of sources.
    """
    g = source[s]["first_group"]
    if source[s]["groups"] > 1:
        g += (source[s]["sent"] // source[s]["step"]) % source[s]["groups"]
    source[s]["sent"] += 1
    first, size = group[g, 0], group[g, 1]
    if size == 1:
        return first
    u = uniform(streams, source.size + s) * size
    k = min(int(u), size - 1)
    return first + k if u - k < pick[first + k]["keep"] else pick[first + k]["other"]


SUMS = np.dtype([("packets", "i8"), ("latency", "i8"), ("queueing", "i8")])
"""Of a flow: packets delivered, sums of their latency and of its part at the source."""

SERIES = 60
"""Intervals of a run in which backlog and deliveries are looked at."""
FLOW_BINS, _EXACT = 512, 64
"""Bins of a flow's latencies: each cycle below 64, then 32 for each power of two."""


class Meter(NamedTuple):
    """Counters from `restart` on, and the series of the whole run.

    ``sums`` by flow; ``counts`` of latencies on the scale of `validate.engine.histogram`; ``flow_counts`` of
    each flow in its bins, if asked for. A row of ``series`` is an interval of ``interval[0]`` cycles:
    packets that wait at its end, packets delivered in it; the last row takes all that is later.
    """

    sums: Any
    counts: Any
    flow_counts: Any
    series: Any
    interval: Any


def new_meter(flows: int, *, cycles: int, by_flow: bool = False) -> Meter:
    """Return a meter at zero for a run of n cycles; ``by_flow`` asks for each flow's latencies."""
    return Meter(
        sums=np.zeros(flows, dtype=SUMS),
        counts=np.zeros(BINS, dtype=np.int64),
        flow_counts=np.zeros((flows if by_flow else 0, FLOW_BINS), dtype=np.int32),
        series=np.zeros((SERIES, 2), dtype=np.int64),
        interval=np.full(1, max(1, -(-cycles // SERIES))),
    )


def restart(meter: Meter, world: World, *, now: int) -> None:
    """Count from ``now`` on."""
    for array in (meter.sums, meter.counts, meter.flow_counts):
        array[...] = np.zeros((), dtype=array.dtype)
    carried, held = seen(world, now=now)
    world.channel["flits"] -= carried
    world.channel["occupancy"] -= held


def seen(world: World, *, now: int) -> tuple[IntArray, IntArray]:
    """Return the flits each channel has carried before a cycle, and their cycles in the buffer behind it."""
    channel, vc, shift, wheel = world.channel, world.vc, world.clock[SHIFT], world.clock[WHEEL]
    flits, held = channel["flits"].copy(), channel["occupancy"] + np.int64(now) * channel["stored"]
    # Trains were counted when their heads moved: what is still to come is taken off.
    rows, places = np.nonzero(np.arange(world.ends[:, 0].max()) < world.ends[:, :1])
    out = world.ends[rows, places + 1]
    left = 1 + ((rows - now) & wheel)
    np.subtract.at(flits, out >> shift, left)
    out, left = out[vc["owner"][out] >= 0], left[vc["owner"][out] >= 0]
    ins = vc["owner"][out] >> shift
    np.subtract.at(held, ins, left * (left - 1) // 2)
    late = np.maximum(0, left - 1 - vc["waited"][out])
    np.add.at(held, ins, late * (late + 1) // 2)
    fronts = np.flatnonzero((vc["count"] > 0) & (vc["flit"] & WHOLE == WHOLE))
    late = np.maximum(0, vc["came"][fronts] - 1 - now + world.packet["flits"][vc["flit"][fronts] >> FLAGS])
    np.add.at(held, fronts >> shift, late * (late + 1) // 2)
    return flits, held


def flow_quantiles(counts: IntArray, probability: float) -> FloatArray:
    """Return the quantile of each flow from its bins, off by at most 1/64; ``inf`` without packets."""
    bins = np.arange(FLOW_BINS)
    power = np.maximum(0, bins // 32 - 1)
    low = np.where(bins < _EXACT, bins, (bins - 32 * power) << power)
    values = low + ((1 << power) - 1) / 2
    below = np.cumsum(counts, axis=1)
    wanted = np.maximum(1, np.ceil(probability * below[:, -1]))[:, None]
    found = values[np.minimum((below < wanted).sum(axis=1), FLOW_BINS - 1)]
    return np.where(below[:, -1] > 0, found, np.inf)


@lean
def flow_bin(latency: int) -> int:
    """Return the bin of a flow's latency."""
    if latency < _EXACT:
        return latency
    power = 0
    while latency >> power >= _EXACT:
        power += 1
    return min(32 * power + (latency >> power), FLOW_BINS - 1)


@inlined
def record(world: World, meter: Meter, now: int) -> None:
    """Count what was delivered in a cycle, and look at the backlog."""
    clock, packet, sums = world.clock, world.packet, meter.sums
    by_flow = meter.flow_counts.shape[0] > 0
    interval = min(now // meter.interval[0], SERIES - 1)
    for k in range(clock[DELIVERED]):
        p = world.delivered[k]
        f = packet[p]["flow"]
        latency = now - packet[p]["created"]
        sums[f]["packets"] += 1
        sums[f]["latency"] += latency
        sums[f]["queueing"] += packet[p]["injected"] - packet[p]["created"]
        meter.counts[bin_of(float(latency))] += 1
        if by_flow:
            meter.flow_counts[f, flow_bin(latency)] += 1
    meter.series[interval, 1] += clock[DELIVERED]
    meter.series[interval, 0] = clock[WAITING]
