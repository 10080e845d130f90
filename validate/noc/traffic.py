"""Traffic of a network-on-chip as arrays that drivers draw from, and counters of what is delivered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.laws.kinds import scaled
from qmodels.systems.laws.times import Deterministic, Exponential, Geometric, HyperExponential, Law
from qmodels.systems.noc.flows import Bernoulli, FlowTable, InjectionProcess
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.spec import Noc
from qmodels.systems.traffic.arrivals import OnOff, Poisson
from validate.engine.calendar import EARLY, new_calendar, next_event, put, schedule
from validate.engine.histogram import BINS
from validate.engine.jit import inlined, lean
from validate.engine.sampling import alias_table, bin_of, draw, law_table
from validate.engine.streams import new_streams, uniform
from validate.noc.flits import send
from validate.noc.kernel import quiet, step
from validate.noc.state import (
    DELIVERED,
    FLAGS,
    FREE_PACKET,
    IN_NETWORK,
    NOW,
    SHIFT,
    WAITING,
    WHEEL,
    WHOLE,
    World,
)

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


SOURCE = np.dtype([("first_group", "i4"), ("groups", "i4"), ("step", "i4"), ("sent", "i8")], align=True)
"""A source: the groups of flows it takes in turn, ``step`` packets of each."""

DONE, FULL, STUCK = range(3)
"""Why a run came back: it is at its end, there is no room for more packets, or nothing moves any more."""


class Open(NamedTuple):
    """Open traffic: its sources, alias tables of the groups, laws of the gaps and the calendar.

    ``source``, ``pick`` and ``group`` are those of `pick_flow`. The law of source s draws from stream s, its
    flows from stream s + number of sources.
    """

    source: Any
    pick: Any
    group: Any
    rows: Any
    numbers: Any
    streams: Any
    heap: Any
    places: Any


@inlined
def _inject(world: World, traffic: Open, now: int) -> bool:
    """Send all packets of this cycle; return whether there was room for them."""
    heap, streams = traffic.heap, traffic.streams
    while heap[0]["event"] > 0 and heap[1]["time"] <= now:
        if world.clock[FREE_PACKET] < 0:
            return False
        s = heap[1]["event"]
        flow = pick_flow(traffic.source, traffic.pick, traffic.group, streams, s)
        send(world, flow, world.flow[flow]["flits"], 0, now)
        following = heap[1]["time"] + draw(traffic.rows, traffic.numbers, streams, s)
        put(heap, traffic.places, s, following, EARLY)
    return True


@lean
def run_open(world: World, traffic: Open, meter: Meter, until: int) -> int:
    """Simulate up to a cycle, that cycle not included; return `DONE`, `FULL` or `STUCK`."""
    clock = world.clock
    now = clock[NOW]
    while now < until:
        clock[NOW] = now
        if not _inject(world, traffic, now):
            return FULL
        step(world, now)
        record(world, meter, now)
        now += 1
        if quiet(world, now):
            if clock[IN_NETWORK] > 0:
                clock[NOW] = now
                return STUCK
            following = traffic.heap[1]["time"] if traffic.heap[0]["event"] > 0 else float(until)
            now = max(now, int(ceil(min(following, float(until)))))
    clock[NOW] = now
    return DONE


ENGINE = np.dtype(
    [("initiator", "i4"), ("flow", "i4"), ("asked", "i8"), ("done", "i8"), ("latency", "i8")], align=True
)
"""One of an initiator's engines: the flow and cycle of its request, transactions done, sum of their times."""


class Closed(NamedTuple):
    """Closed traffic: engines, the picks of their initiators, the memory nodes and the calendar.

    ``initiator``, ``pick`` and ``group`` are those of `pick_flow`; ``reply`` has the answer of each
    flow and ``memory`` the place of its memory node, whose server is free at ``free_at``. ``times`` are
    the means of thinking, service and latency, whether the first two are exponential, drawn from the
    streams after those of the picks, and whether memories cut through. Event e is a request of engine e,
    event e + engines its answer.
    """

    engine: Any
    initiator: Any
    pick: Any
    group: Any
    reply: Any
    memory: Any
    free_at: Any
    times: Any
    streams: Any
    heap: Any


@inlined
def _time(traffic: Closed, which: int, stream: int) -> float:
    mean = traffic.times[which]
    if traffic.times[3 + which] > 0:
        return -mean * log(uniform(traffic.streams, stream))
    return mean


@inlined
def _events(world: World, traffic: Closed, now: int) -> None:
    """Send the requests and the answers of this cycle."""
    engine, heap = traffic.engine, traffic.heap
    while heap[0]["event"] > 0 and heap[1]["time"] <= now:
        e = next_event(heap)
        if e >= engine.size:
            e -= engine.size
            flow = traffic.reply[engine[e]["flow"]]
        else:
            s = engine[e]["initiator"]
            flow = pick_flow(traffic.initiator, traffic.pick, traffic.group, traffic.streams, s)
            engine[e]["flow"] = flow
            engine[e]["asked"] = now
        send(world, flow, world.flow[flow]["flits"], e, now)


@inlined
def _react(world: World, traffic: Closed, now: int) -> None:
    """Let memory nodes serve the requests that came in, and initiators think about the answers."""
    engine, packet = traffic.engine, world.packet
    thinkers = 2 * traffic.initiator.size
    for k in range(world.clock[DELIVERED]):
        p = world.delivered[k]
        e = packet[p]["tag"]
        if packet[p]["flow"] == engine[e]["flow"]:
            flow = packet[p]["flow"]
            m = traffic.memory[flow]
            first, last = 0, 0
            if traffic.times[5] > 0:
                # Flits that came before the last one, and those that leave before the last one.
                first, last = world.flow[flow]["flits"] - 1, world.flow[traffic.reply[flow]]["flits"] - 1
            start = max(float(now - first), traffic.free_at[m])
            done = max(float(now), start + _time(traffic, 1, thinkers + traffic.initiator.size + m))
            traffic.free_at[m] = done
            answer = max(float(now), max(start, done - last) + traffic.times[2])
            schedule(traffic.heap, answer, e + engine.size)
        else:
            engine[e]["done"] += 1
            engine[e]["latency"] += now - engine[e]["asked"]
            think = _time(traffic, 0, thinkers + engine[e]["initiator"])
            schedule(traffic.heap, now + think, e)


@lean
def run_closed(world: World, traffic: Closed, meter: Meter, until: int, packets: int) -> int:
    """Simulate up to a cycle, or on until n packets are delivered; return `DONE` or `STUCK`."""
    clock = world.clock
    now = clock[NOW]
    done = 0
    while now < until or done < packets:
        _events(world, traffic, now)
        step(world, now)
        record(world, meter, now)
        _react(world, traffic, now)
        done += clock[DELIVERED]
        now += 1
        if quiet(world, now):
            if clock[IN_NETWORK] > 0:
                clock[NOW] = now
                return STUCK
            now = max(now, int(ceil(traffic.heap[1]["time"])))
    clock[NOW] = now
    return DONE


def flow_groups(
    table: FlowTable, sources: Sequence[int], source: npt.NDArray[np.void]
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """Return the alias tables of flows and the groups that sources take in turn; fill in the sources."""
    pick = np.zeros(table.source.size, dtype=PICK)
    groups: list[tuple[int, int]] = []
    for row, node in zip(source, sources, strict=True):
        first, end = int(table.source_start[node]), int(table.source_start[node + 1])
        step = int(table.source_step[node])
        row["step"], row["first_group"] = max(1, step), len(groups)
        # Flows are sorted by the order of their targets.
        changes = (first + 1 + np.flatnonzero(np.diff(table.order[first:end]))).tolist() if step else []
        for begin, stop in pairwise([first, *changes, end]):
            share = table.share[begin:stop]
            keep, other = alias_table(share / np.sum(share) * share.size)
            pick["keep"][begin:stop], pick["other"][begin:stop] = keep, begin + other
            groups.append((begin, stop - begin))
        row["groups"] = len(groups) - row["first_group"]
    return pick, np.array(groups, dtype=np.int64).reshape(-1, 2)


def set_first_packets(
    table: FlowTable, sources: Sequence[int], source: npt.NDArray[np.void], streams: npt.NDArray[np.uint64]
) -> None:
    """Let each source begin its cycle where the table says, or at random."""
    for s, node in enumerate(sources):
        first = int(table.source_first[node])
        if first < 0:
            first = int(uniform(streams, len(sources) + s) * source["groups"][s] * source["step"][s])
        source["sent"][s] = first


def _gaps(process: InjectionProcess, rate: float) -> Law:
    match process:
        case Bernoulli():
            return Geometric(mean=1 / rate) if rate < 1 else Deterministic(mean=1.0)
        case Poisson():
            return Exponential(mean=1 / rate)
        case OnOff():
            share, fast, slow = (float(x) for x in process.phases)
            return HyperExponential(
                probabilities=(share, 1 - share), means=(1 / (fast * rate), 1 / (slow * rate))
            )
        case _:
            return scaled(process, 1 / (process.mean * rate))


def open_traffic(noc: Noc, table: FlowTable, *, seed: int, replication: int) -> Open:
    """Return the sources of a network with the randomness of one replication."""
    rates = np.bincount(table.source, weights=table.rate, minlength=table.nodes)
    sources = np.flatnonzero(rates > 0).tolist()
    bernoulli = isinstance(noc.process, Bernoulli)
    if bernoulli and rates.max(initial=0.0) > 1 + 1e-9:
        raise ValueError(
            "injection_rate must give every source of a Bernoulli process at most 1 packet/cycle, "
            f"got {float(rates.max())!r}"
        )
    source = np.zeros(len(sources), dtype=SOURCE)
    pick, group = flow_groups(table, sources, source)
    laws = law_table([_gaps(noc.process, float(rates[node])) for node in sources])
    names = [f"{what} of node {node}" for what in ("gaps", "flows") for node in sources]
    streams = new_streams(seed=seed, replication=replication, sources=names)
    set_first_packets(table, sources, source, streams)
    heap, places = new_calendar(len(sources)), np.zeros(len(sources), dtype=np.int64)
    for s in range(len(sources)):
        # A Bernoulli source can also inject in cycle 0.
        put(heap, places, s, draw(laws.rows, laws.numbers, streams, s) - float(bernoulli), EARLY)
    return Open(source, pick, group, laws.rows, laws.numbers, streams, heap, places)


def closed_traffic(noc: Noc, table: FlowTable, *, seed: int, replication: int) -> Closed:
    """Return the engines of a network of transactions with the randomness of one replication."""
    spec = noc.traffic
    if not isinstance(spec, Transactions):
        raise TypeError(f"traffic must be Transactions, got {type(spec).__name__}")
    nodes, memories = list(spec.initiators), list(spec.channels)
    initiator = np.zeros(len(nodes), dtype=SOURCE)
    pick, group = flow_groups(table, nodes, initiator)
    sources = [f"{what} of node {node}" for what in ("starts", "flows", "thinking") for node in nodes]
    sources += [f"service of node {node}" for node in memories]
    streams = new_streams(seed=seed, replication=replication, sources=sources)
    set_first_packets(table, nodes, initiator, streams)
    engine = np.zeros(len(nodes) * spec.outstanding, dtype=ENGINE)
    engine["initiator"] = np.repeat(np.arange(len(nodes)), spec.outstanding)
    heap = new_calendar(2 * engine.size)
    for e, row in enumerate(engine):
        # Not all at once: somewhere in a cycle of thinking and service.
        spread = spec.think_cycles + spec.service_cycles
        schedule(heap, uniform(streams, int(row["initiator"])) * spread, e)
    place = {node: k for k, node in enumerate(memories)}
    exponential = (spec.think_law == "exponential", spec.service_law == "exponential")
    means = (spec.think_cycles, spec.service_cycles, spec.latency_cycles)
    return Closed(
        engine=engine,
        initiator=initiator,
        pick=pick,
        group=group,
        reply=np.asarray(table.reply, dtype=np.int64),
        memory=np.array([place.get(int(node), -1) for node in table.target], dtype=np.int64),
        free_at=np.zeros(len(memories)),
        times=np.array([*means, *exponential, spec.cut_through], dtype=float),
        streams=streams,
        heap=heap,
    )
