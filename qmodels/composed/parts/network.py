"""The interconnect: packets of all flows in one network."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.composed.parts.bursty import added_waits
from qmodels.composed.streams import PacketAnswer, PacketStreams
from qmodels.noc.collapse import jam_loads
from qmodels.noc.delay_law import delay_moments
from qmodels.noc.noc_answer import Curve, competing_flits
from qmodels.noc.turns import Turns, group_turns
from qmodels.noc.waits import find_waits, saturation_load
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.patterns import RateMatrix
from qmodels.systems.noc.router import PacketClass
from qmodels.systems.noc.routes import may_deadlock
from qmodels.systems.noc.spec import Noc
from qmodels.systems.traffic.arrivals import Poisson

INF = float("inf")
FULL = 1 - 1e-9
BURSTY = ("bursts into a network: measured on a 3 x 3 mesh, mean within 6 % and p99 within 22 %",)
LEAST_RATE = 1e-12
"""Packets of a cycle, below which there are none."""
MOST_KNOWN = 16
"""Proportions of packets of which the turns are kept."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Offered:
    """Packet streams on the flows of a network."""

    spec: Noc  # the network with packets of all their sizes between all their nodes
    table: FlowTable  # its flows
    # Of each flow that has packets, the kind of stream: source, target and size.
    stream: npt.NDArray[np.int64]
    of: npt.NDArray[np.int64]  # of each packet stream, that kind
    share: FloatArray  # share of a kind's packets that each flow gets, of several routes
    deadlock: tuple[str, ...]  # virtual channels in which packets may wait for each other in a circle
    known: dict[Any, Any] = field(default_factory=dict)  # turns of packets in other proportions, found before


def respond_network(noc: Noc, packets: PacketStreams) -> PacketAnswer:
    """Return the answer of the interconnect to packets between its nodes.

    ``packets``: all packets, of all sizes.

    `qmodels.noc.solve_noc.solve_noc` for Poisson packets of several sizes whose rates are those of the
    streams. To the wait at a source is added what packets that come at the same time wait for each other, as
    with batch arrivals, which raises the waits in the network as bursty sources do. What bursts add is
    answered apart: at the link of the path where they add most.
    """
    if not packets.rate.size:
        return PacketAnswer(mean=np.zeros(0), variance=np.zeros(0), intensity={"": 0.0})
    offered = _offered(noc, *_ends(packets))
    turns, load, together = _scaled(noc, offered, packets)
    waits = find_waits(turns, np.array([load]))
    names = turns.table.channel_names
    busy = load * (turns.channels[:, 1] + turns.channels[:, 6])
    intensity = {name: float(busy[k]) for k, name in enumerate(names) if busy[k] > 0}
    fullest = float(busy.max(initial=0.0))
    if not waits.stable[0]:
        fullest = _standstill(offered, turns, load, fullest)
        endless = np.full(packets.rate.size, INF)
        return PacketAnswer(
            mean=endless, variance=endless, intensity={"": fullest, **intensity}, doubts=_doubts(offered)
        )
    source = Curve(offered.spec, waits).source_delay + _batches(turns, load, together)
    wait, spread = delay_moments(waits, source, 0)
    of_flow = turns.zero_load + wait
    of_stream = np.bincount(offered.stream, offered.share * of_flow)
    square = np.bincount(offered.stream, offered.share * (spread + of_flow**2)) - of_stream**2
    own = packets.together - together[packets.source]
    busy_time = np.bincount(offered.stream, offered.share * turns.busy_cycles)[offered.of]
    mean = of_stream[offered.of] + own / 2 * busy_time
    clock = noc.clock_ghz
    return PacketAnswer(
        mean=mean / clock,
        variance=np.maximum(square, 0.0)[offered.of] / clock**2,
        intensity={"": fullest, **intensity},
        added=_bursts(noc, offered, turns, load, packets) if packets.bursts else {},
        doubts=(*_doubts(offered), *(BURSTY if packets.bursts else ())),
    )


def network_load(noc: Noc, packets: PacketStreams) -> float:
    """Return the intensity that `respond_network` gives the fullest resource."""
    if not packets.rate.size:
        return 0.0
    offered = _offered(noc, *_ends(packets))
    turns, load, _ = _scaled(noc, offered, packets)
    fullest = load * float((turns.channels[:, 1] + turns.channels[:, 6]).max(initial=0.0))
    stable = bool(find_waits(turns, np.array([load])).stable[0])
    return fullest if stable else _standstill(offered, turns, load, fullest)


def _standstill(offered: Offered, turns: Turns, load: float, fullest: float) -> float:
    """Return the intensity of a network that does not carry its packets."""
    key = ("reach", id(turns))
    if key not in offered.known:
        offered.known[key] = saturation_load(turns), turns
    reach = offered.known[key][0]
    return max(fullest, load / reach if reach > 0 else INF)


def _ends(packets: PacketStreams) -> tuple[bytes, ...]:
    """Return sources, targets and sizes as something that is remembered."""
    ends = (packets.source, packets.target, packets.flits)
    return tuple(np.asarray(one, dtype=np.int64).tobytes() for one in ends)


@lru_cache(maxsize=64)
def _offered(noc: Noc, *ends: bytes) -> Offered:
    """Return the flows of packets by source, target and size; they do not depend on the rates."""
    source, target, flits = (np.frombuffer(one, dtype=np.int64) for one in ends)
    nodes, sizes = noc.topology.nodes, np.unique(flits)
    rates = np.zeros((nodes, nodes))
    rates[source, target] = 1.0
    spec = replace(
        noc,
        traffic=RateMatrix(rates=tuple(tuple(row) for row in rates.tolist())),
        injection_rate=0.0,
        process=Poisson(),
        flits_per_packet=0,
        mix=tuple(PacketClass(flits=size) for size in sizes.tolist()),
    )
    table = spec.flow_table()
    kind = (table.source * nodes + table.target) * sizes.size + table.packet_class
    kinds, of_flow = np.unique(kind, return_inverse=True)
    asked = (source * nodes + target) * sizes.size + np.searchsorted(sizes, flits)
    total = np.bincount(of_flow, table.unit_rate)
    return Offered(
        spec=spec,
        table=table,
        stream=of_flow,
        of=np.searchsorted(kinds, asked),
        share=table.unit_rate / total[of_flow],
        deadlock=tuple(spec.find_deadlock() or ()),
    )


def _scaled(noc: Noc, offered: Offered, packets: PacketStreams) -> tuple[Turns, float, FloatArray]:
    """Return the result of `_turns` for packets in these proportions, and the factor of the rates in it."""
    load = float(packets.rate.max())
    if not load > 0:
        turns, together = _turns(noc, offered, packets)
        return turns, 1.0, together
    share = packets.rate / load
    key = share.round(12).tobytes(), np.asarray(packets.together, dtype=float).round(12).tobytes()
    if key not in offered.known:
        if len(offered.known) > MOST_KNOWN:
            offered.known.clear()
        offered.known[key] = _turns(noc, offered, replace(packets, rate=share))
    turns, together = offered.known[key]
    return turns, load, together


def _at_sources(packets: PacketStreams, nodes: int, values: FloatArray | float) -> FloatArray:
    """Return the mean over the packets of each source; 1 where there are none."""
    rate = np.bincount(packets.source, packets.rate, minlength=nodes)
    total = np.bincount(packets.source, packets.rate * values, minlength=nodes)
    return np.divide(total, rate, out=np.ones(nodes), where=rate > 0)


def _turns(noc: Noc, offered: Offered, packets: PacketStreams) -> tuple[Turns, FloatArray]:
    """Return the turns of the packets, and of each node how many come together."""
    rate = packets.rate / noc.clock_ghz
    together = _at_sources(packets, offered.table.nodes, packets.together)
    of_kind = np.bincount(offered.of, rate, minlength=int(offered.stream.max()) + 1)
    turns = group_turns(
        offered.table,
        offered.spec.router,
        rate=of_kind[offered.stream] * offered.share,
        together=together,
    )
    return replace(turns, jam=jam_loads(turns, noc.topology.kind)), together


def _batches(turns: Turns, load: float, together: FloatArray) -> FloatArray:
    """Return the wait of packets of each flow at their source for those that come at the same time."""
    table, rate = turns.table, load * turns.flow_rate
    count = np.bincount(table.source, rate, minlength=table.nodes)
    work = np.bincount(table.source, rate * turns.busy_cycles, minlength=table.nodes)
    mean = np.divide(work, count, out=np.zeros(table.nodes), where=count > 0)
    return np.asarray(((together - 1) / 2 * mean / (1 - np.minimum(work, FULL)))[table.source])


def _bursts(
    noc: Noc, offered: Offered, turns: Turns, load: float, packets: PacketStreams
) -> dict[str, tuple[FloatArray, FloatArray, FloatArray]]:
    """Return the waits that bursts of each flow add to packets, see `PacketAnswer.added`.

    At each channel of the path what they add if they came there as they began. Delays in a row of servers
    add up to that of the slowest, so that the longest counts.
    """
    table, rate = turns.table, load * turns.flow_rate
    flow = np.repeat(np.arange(rate.size), np.diff(table.paths.start))
    busy = table.flits[flow] * table.channel_cycles_per_flit[table.paths.channel].astype(float)

    def by_channel(values: FloatArray) -> FloatArray:
        sums = np.bincount(table.paths.channel, values, minlength=len(table.channel_names))
        return np.asarray(sums, dtype=float)

    def by_stream(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(offered.stream, offered.share * values)[offered.of])

    count, work, square = (by_channel(rate[flow] * busy**k) for k in range(3))
    used = np.maximum(count, LEAST_RATE)
    found = {}
    for one in packets.bursts:
        of_kind = np.bincount(offered.of, one.rate, minlength=int(offered.stream.max()) + 1)
        mine = of_kind[offered.stream] * offered.share / noc.clock_ghz
        here = np.minimum(by_channel(mine[flow]), count)
        own, others, decay = added_waits(
            others=count - here,
            rate=here,
            peak=one.peak,
            ends=one.ends / noc.clock_ghz,
            mean=np.minimum(work, FULL) / used,
            square=square / used,
        )
        path = table.paths.start[:-1]
        mine_longest, longest = (np.maximum.reduceat(w[table.paths.channel], path) for w in (own, others))
        slowest = np.maximum.reduceat(1 / decay[table.paths.channel], path)
        with np.errstate(divide="ignore"):
            tail = 1 / by_stream(slowest) * noc.clock_ghz
        found[one.flow] = by_stream(mine_longest) / noc.clock_ghz, by_stream(longest) / noc.clock_ghz, tail
    return found


def _doubts(offered: Offered) -> tuple[str, ...]:
    flits = competing_flits(offered.spec.router, offered.table.flits)
    return tuple(may_deadlock(offered.deadlock) | flits)
