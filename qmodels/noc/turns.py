"""The turns of a network: what goes from one channel into another, the unit of the wormhole model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.noc.alone import busy_times, credit_loops, head_times
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.routes import EJECTION, INJECTION
from qmodels.systems.traffic.arrivals import OnOff

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Turns:
    """Rates at which packets go from each channel into the next, all flows together.

    Circuits make no turns: they have virtual channels of their own and pass all else.
    """

    table: FlowTable  # the flows
    router: Router  # the routers
    flow_rate: FloatArray  # packets per cycle of each flow
    # source, sink: the two channels of each turn.
    source: Integers
    sink: Integers
    pair: Integers  # number of the two channels: turns that differ in priority or weight alone share it
    level: Integers  # priority, counted from 0 without gaps
    weight: FloatArray  # for weighted arbitration
    # packets, work, square: packets per cycle, the cycles they keep the second channel busy per cycle, and
    # the squares.
    packets: FloatArray
    work: FloatArray
    square: FloatArray
    channels: FloatArray  # see `qmodels.noc.fixed_point.Network`
    # The turn behind each entry of ``table.path_channel``; -1 behind the last of a path and for circuits.
    of_hop: Integers
    # Cycles that a packet of each flow keeps its slowest channel busy when alone [cycles].
    busy_cycles: FloatArray
    # Of sources that send in bursts: the process; of each channel the share of its packets that are of one
    # source, and all packets of that source per cycle, means.
    bursts: OnOff | None = None
    own_share: FloatArray = field(default_factory=lambda: np.zeros(0))
    sent: FloatArray = field(default_factory=lambda: np.zeros(0))
    # Loads at which rings collapse and that they carry then: `qmodels.noc.collapse`.
    jam: tuple[float, float] = (float("inf"), float("inf"))

    @cached_property
    def zero_load(self) -> FloatArray:
        """Latency of a packet of each flow alone in the network [cycles]."""
        behind, _ = busy_times(self.table, self.router, self.table.flits)
        return head_times(self.table, self.router) + behind

    @property
    def offered(self) -> float:
        """Packets per cycle of all flows together."""
        return float(self.flow_rate.sum())


def group_turns(
    table: FlowTable,
    router: Router,
    *,
    rate: FloatArray,
    together: FloatArray | None = None,
    bursts: OnOff | None = None,
) -> Turns:
    """Return the turns of flows.

    ``table``: channels, flows and paths; ``rate``: packets per cycle of each flow [packets/cycle];
    ``together``: packets that each node sends at the same time, 1 if left out; ``bursts``: of all sources,
    None for Bernoulli and Poisson.
    """
    hops = np.diff(table.path_start)
    flow = np.repeat(np.arange(hops.size), hops)
    channel = table.path_channel.astype(np.int64)
    vcs = _usable(table, flow, rate)
    busy = _busy(table, router, flow, vcs)
    hop_rate = np.where(table.circuit[flow], 0.0, rate[flow])
    used = hop_rate > 0
    used[table.path_start[1:] - 1] = False
    here = np.flatnonzero(used)
    number, of_used, pair, level, weight = _number(table, router, flow, here)
    source, sink = np.empty((2, number), dtype=np.int64)
    source[of_used], sink[of_used] = channel[here], channel[here + 1]
    of_hop = np.full(channel.size, -1, dtype=np.int64)
    of_hop[here] = of_used

    channels = _channels(table, router, flow, vcs, hop_rate, busy)
    channels[:, 6] = np.bincount(channel, (rate * table.circuit)[flow] * busy, minlength=len(channels))
    if together is not None and np.any(together != 1):
        channels[:, 8] *= 1 + _left(table, flow, hop_rate, together - 1)
    own_share, sent = (np.zeros(0),) * 2 if bursts is None else _sources(table, flow, hop_rate)
    behind, last_flit = busy_times(table, router, table.flits)
    return Turns(
        table=table,
        router=router,
        flow_rate=rate,
        source=source,
        sink=sink,
        pair=pair,
        level=level,
        weight=weight,
        packets=_sums(of_used, hop_rate[here], number),
        work=_sums(of_used, hop_rate[here] * busy[here + 1], number),
        square=_sums(of_used, hop_rate[here] * busy[here + 1] ** 2, number),
        channels=channels,
        of_hop=of_hop,
        busy_cycles=behind + last_flit,
        bursts=bursts,
        own_share=own_share,
        sent=sent,
    )


def _busy(table: FlowTable, router: Router, flow: Integers, vcs: FloatArray) -> FloatArray:
    """Return the cycles for which a packet keeps the channel of each hop busy."""
    channel, flits = table.path_channel, table.flits[flow].astype(float)
    per_flit, loop = table.channel_cycles_per_flit.astype(float), credit_loops(table, router)
    waits = table.channel_kind != INJECTION
    # A packet longer than a buffer waits for credits once per buffer even when it is alone.
    slow = np.maximum(loop - router.buffer_flits * per_flit, 0) * waits
    refills = (table.flits - 1) // router.buffer_flits
    busy = flits * per_flit[channel] + np.where(vcs[channel] < 1.5, slow[channel] * refills[flow], 0)
    # Even many packets can not keep a link busy whose credits come back too late.
    starved = np.where(waits, loop / (vcs * router.buffer_flits), 0.0)
    return np.maximum(busy, flits * starved[channel])


def _channels(
    table: FlowTable, router: Router, flow: Integers, vcs: FloatArray, hop_rate: FloatArray, busy: FloatArray
) -> FloatArray:
    """Return the rows of the channels, see `qmodels.noc.fixed_point.Network`, without circuits and bursts."""
    flits, loop = table.flits[flow].astype(float), credit_loops(table, router)
    room = router.buffer_flits * table.channel_cycles_per_flit.astype(float)
    packets, work, carried, long = (
        np.bincount(table.path_channel, hop_rate * of, minlength=vcs.size)
        for of in (1.0, busy, flits, flits**2)
    )
    channels = np.zeros((vcs.size, 10))
    channels[:, 0], channels[:, 1] = packets, work
    channels[:, 2], channels[:, 3], channels[:, 4] = vcs, router.buffer_flits, loop
    channels[:, 5] = np.divide(long, carried, out=np.ones(vcs.size), where=carried > 0)
    channels[:, 7] = table.channel_kind != EJECTION
    # Late credits leave gaps in a packet's flits, which those of others fill: the packets share the
    # link, so that both are late where otherwise one would have waited for the other.
    shared = (loop > room) & (channels[:, 5] > router.buffer_flits) & (vcs > 1.5)
    channels[:, 8] = np.where(shared, 2 - router.buffer_flits / channels[:, 5], 1.0)
    channels[:, 9] = _separate(table, flow, hop_rate)
    return channels


def _separate(table: FlowTable, flow: Integers, hop_rate: FloatArray) -> FloatArray:
    """Return one over the probability that two packets on a channel use the same virtual channel."""
    count, vcs = len(table.channel_names), table.virtual_channels
    low, high = table.path_vc_low, table.path_vc_high
    each = hop_rate / (high - low)
    through = np.empty((count, vcs))
    for vc in range(vcs):
        inside = (low <= vc) & (vc < high)
        through[:, vc] = np.bincount(table.path_channel, each * inside, minlength=count)
    total = through.sum(axis=1)
    result = np.full(count, float(vcs))
    np.divide(total**2, (through**2).sum(axis=1), out=result, where=total > 0)
    return result


def _by_source(table: FlowTable, flow: Integers, hop_rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the packets per cycle of each source on each channel, and in all."""
    count = len(table.channel_names)
    key = table.source[flow].astype(np.int64) * count + table.path_channel
    rates = np.asarray(np.bincount(key, hop_rate, minlength=table.nodes * count), dtype=float)
    found = rates.reshape(table.nodes, count)
    return found, found[:, table.channel_kind == INJECTION].sum(axis=1)


def _left(table: FlowTable, flow: Integers, hop_rate: FloatArray, more: FloatArray) -> FloatArray:
    """Return how many more packets come together on each channel, of those that do at the nodes.

    Of a part of the packets, taken at random, so many fewer do; streams that join are as their mean.
    """
    of_source, sent = _by_source(table, flow, hop_rate)
    return _over(more @ _over(of_source**2, sent[:, None]), of_source.sum(axis=0))


def _sources(table: FlowTable, flow: Integers, hop_rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of each channel's packets that are of one source, and what that sends, means."""
    of_source, sent = _by_source(table, flow, hop_rate)
    through = of_source.sum(axis=0)
    return _over((of_source**2).sum(axis=0), through**2), _over(sent @ of_source, through)


def _over(values: FloatArray, through: FloatArray) -> FloatArray:
    return np.divide(values, through, out=np.zeros_like(values), where=through > 0)


def _sums(group: Integers, values: FloatArray, groups: int) -> FloatArray:
    return np.asarray(np.bincount(group, values, minlength=groups), dtype=float)


def _usable(table: FlowTable, flow: Integers, rate: FloatArray) -> FloatArray:
    """Return the virtual channels that a packet can choose from, mean over the packets of a channel."""
    count = len(table.channel_names)
    through = np.bincount(table.path_channel, rate[flow], minlength=count)
    wide = np.bincount(
        table.path_channel, rate[flow] * (table.path_vc_high - table.path_vc_low), minlength=count
    )
    mean = np.full(count, float(table.virtual_channels))
    np.divide(wide, through, out=mean, where=through > 0)
    return mean


def _number(
    table: FlowTable, router: Router, flow: Integers, here: Integers
) -> tuple[int, Integers, Integers, Integers, FloatArray]:
    """Return the number of turns at these hops, the turn of each hop, and pair, level and weight."""
    count = len(table.channel_names)
    channel = table.path_channel.astype(np.int64)
    kind = np.zeros(flow.size, dtype=np.int64)
    levels, weights = np.zeros(1, dtype=np.int64), np.ones(1)
    if router.arbitration == "priority":
        levels, of_flow = np.unique(table.priority, return_inverse=True)
        kind, weights = of_flow[flow], np.ones(levels.size)
    elif router.arbitration == "weighted":
        weights, of_flow = np.unique(table.weight, return_inverse=True)
        kind, levels = of_flow[flow], np.zeros(weights.size, dtype=np.int64)
    key = (channel[here] * count + channel[here + 1]) * weights.size + kind[here]
    # Counting is faster than sorting: networks have far more hops than pairs of channels.
    present = np.flatnonzero(np.bincount(key, minlength=1))
    place = np.zeros(int(present[-1]) + 1 if present.size else 1, dtype=np.int64)
    place[present] = np.arange(present.size)
    _, pair = np.unique(present // weights.size, return_inverse=True)
    of_turn = present % weights.size
    rank = np.arange(levels.size) if router.arbitration == "priority" else levels
    return present.size, place[key], pair.astype(np.int64), rank[of_turn], weights[of_turn]
