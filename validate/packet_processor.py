"""The simulation of a packet processor: runs of its system, their intervals, and whether it keeps up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram_system import Dram
from qmodels.systems.packets.packet_processor import STAGES, PacketProcessor, processor_system
from qmodels.systems.spec.estimate import Estimate, exactly
from qmodels.systems.traffic.arrivals import Recorded
from validate.campaigns import experiment
from validate.composed.replication import FLOWS, advance, resources, seen, table_sums
from validate.composed.world import SETTLED_HOLDS, Machine, Rotations, new_machine, rotations
from validate.dram import state as dram
from validate.engine.histogram import INF, Histogram
from validate.estimates.doubts import warm_up
from validate.estimates.intervals import (
    CONFIDENCE,
    FEWEST_OBSERVATIONS,
    OVERLOAD_GROWTH,
    busy_interval,
    mean_interval,
    periodic_stability,
    probability_interval,
    ratio_interval,
    stability,
)

POINTER_MEMORY = 0
"""Number of the station that serves operations of the free list."""

OWNERS = ("pointers", "slice", "requests", "responses", "dram")
"""Parts of the system in the order of the stations' numbers."""


@lru_cache(maxsize=4)
def stations(spec: PacketProcessor) -> dict[str, tuple[str, ...]]:
    """Return the names of the stations of each group, in the order of their numbers."""
    links, channels = spec.noc.networks(int(spec.channels)).link_names, range(int(spec.channels))
    # Banks behind a controller are no stations.
    banks = range(int(spec.dram.banks) if isinstance(spec.dram, Dram) else 0)
    return {
        "pointer memory": ("pointer memory",),
        "llc slices": tuple(f"llc slice {k}" for k in range(int(spec.llc.slices))),
        "request links": tuple(f"request {link}" for link in links),
        "response links": tuple(f"response {link}" for link in links),
        "dram buses": tuple(f"channel {c} bus" for c in channels),
        "dram banks": tuple(f"channel {c} bank {b}" for c in channels for b in banks),
    }


def station_groups(spec: PacketProcessor) -> dict[str, slice]:
    """Return the station numbers of each group."""
    groups = stations(spec)
    ends = np.cumsum([len(names) for names in groups.values()]).tolist()
    return {group: slice(end - len(groups[group]), end) for group, end in zip(groups, ends, strict=True)}


def by_station(spec: PacketProcessor, system: System, busy: FloatArray) -> FloatArray:
    """Return the counts of a run of the system by resource, in the order of the stations' numbers."""
    owners = np.array([name for name, _ in resources(system)])
    found = [busy[owners == part] for part in OWNERS]
    unused = np.zeros(int(spec.llc.slices) if not found[1].size else 0)
    return np.concatenate([found[0], found[1], unused, *found[2:]])


def waits(spec: PacketProcessor, machine: Any) -> FloatArray:
    """Return for each station up to now the sum of the waits at it, and how many they are; 0 of links.

    The wait of an access to a channel behind a controller is its time there but for the column access and the
    burst.
    """
    c, groups = machine.core, station_groups(spec)
    found = np.zeros((2, groups["dram banks"].stop))
    found[:, POINTER_MEMORY] = c.operations["waited"].sum(), c.operations["begun"].sum()
    slices = machine.world.tallies[: c.state["stations"][0], 0]
    first = groups["llc slices"].start
    found[:, first : first + slices.size] = slices["wait_sum"], slices["departures"]
    if isinstance(spec.dram, Dram):
        for group, table in (("dram buses", c.channels), ("dram banks", c.rows)):
            found[:, groups[group]] = table["waited"], table["served"]
    else:
        sums, t = machine.kernels.channels.sums[:, :, 0], spec.dram.timing
        number = sums[:, :, dram.COUNT]
        alone = number[:, 0] * (t.cl + t.burst) + number[:, 1] * (t.cwl + t.burst)
        waited = (sums[:, :, dram.LATENCY].sum(axis=1) - alone) / t.clock_ghz
        found[:, groups["dram buses"]] = waited, number.sum(axis=1)
    return found


def energy_per_packet(spec: PacketProcessor, run: Any) -> float:
    """Return the energy of a carried packet [nJ] in a replication; ``inf`` if none was carried.

    Every event is one that the kernel counted as it happened; the pointer memory makes an access in each
    cycle in which it was busy.
    """
    n = run.sums
    if n["packets"] == 0:
        return float("inf")
    price, width = spec.prices[0], float(spec.noc.link_width)
    spent = float(run.busy[POINTER_MEMORY] * spec.free_list.clock_ghz * price.pointer_nj)  # [nJ]
    for events, nanojoules in (
        (n["accesses"] - n["row hits"], price.activation_nj),
        (n["accesses"], price.burst_nj),
        (n["flit hops"], price.hop_pj_per_byte * width * 1e-3),
        (n["lookups"] if spec.llc.slices else 0, price.lookup_nj),
    ):
        spent += events * float(nanojoules)
    on = float(price.router_mw + price.router_mw_per_byte * width) * spec.noc.topology.nodes  # [mW]
    for part, milliwatts in ((spec.channels, price.channel_mw), (spec.llc.slices, price.slice_mw)):
        on += int(part) * float(milliwatts)
    return (spent + on * run.duration * 1e-3) / n["packets"]  # a mW for a ns is a pJ


ENDED, LATENCY = FLOWS.index("ended"), FLOWS.index("latency_sum")
SNAPSHOTS = 101
LATE = 20
"""Snapshots at the same late instants of a recording's last rotation before and in the measured stretch."""
PARTS = (
    "lookup",
    "write: pointer memory wait",
    "write: allocation",
    "write: network and dram",
    "read: pointer memory wait",
    "read: dequeue",
    "read: network and dram",
)


@dataclass(frozen=True, kw_only=True)
class Job(experiment.Job):
    """One replication to run, open or (``window`` > 0) closed."""

    packets: int
    window: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    window: int  # packets that go round in a closed system, 0 in an open one
    packets: int  # simulated
    duration: float  # length of the measured stretch of time [ns]
    sums: dict[str, int]  # what was counted in that stretch, see `_sums`
    # busy, waited, served: of each station in that stretch: busy time, waiting time [ns] and jobs.
    busy: FloatArray
    waited: FloatArray
    served: IntArray
    parts: FloatArray  # mean of each of `PARTS` over what ended in it [ns]
    p99: float  # 99th percentile of the latency of the packets that left [ns]
    growth: float  # packets by which the number in the system, holds excluded, grew for each that arrived
    active: FloatArray  # packets in the system, holds excluded, at the snapshots of the measured stretch
    short: bool  # whether the run was too short for its warm-up


_system = lru_cache(maxsize=4)(processor_system)


def run_replication(job: Job) -> Run:
    """Run one replication and return its numbers."""
    spec, packets = job.spec, job.packets
    window = min(job.window, max(1, packets // 2))  # more than that never come round
    system = _system(spec, window=window)
    machine = new_machine(system, seed=job.seed, replication=job.replication)
    replay = None if window else replayed(spec, packets)
    evenly = np.unique(np.linspace(1, packets, min(SNAPSHOTS - 1, packets)).astype(int)).tolist()
    goals: list[dict[str, Any]] = [{"ended": count} for count in evenly]
    if replay is not None:
        packets = replay.total
        goals = [{"until": time} for time in replay.late(LATE)]
    snapshots = [_snapshot(spec, machine)]
    for goal in goals:
        machine, _ = advance(machine, **goal)
        snapshots.append(_snapshot(spec, machine))
    if replay is None:
        first, short = _closed_start(snapshots, window) if window else _open_start(spec, snapshots)
        begin = number = len(snapshots) // 5
        arrived = 0.6 * snapshots[-1]["flows"][0, FLOWS.index("born")]
    else:
        first, short, begin, number, arrived = LATE, False, 1, LATE, replay.measured * replay.jobs
    active = np.array([s["active"] for s in snapshots], dtype=float)
    grown = active[-number:].mean() - active[begin : begin + number].mean() if number else 0.0
    start, end = snapshots[first], snapshots[-1]
    more = {name: end[name] - start[name] for name in end if name != "lists"}
    busy = by_station(spec, system, more["busy"])
    sums = _sums(spec, start, end, more, busy)
    some = sums["packets"] > 0
    return Run(
        window=window,
        packets=packets,
        duration=more["time"],
        sums=sums,
        busy=busy,
        waited=more["waits"][0],
        served=more["waits"][1].astype(np.int64),
        parts=mean_parts(more["stages"], more["operations"]) if some else np.full(len(PARTS), np.inf),
        p99=Histogram(counts=more["histogram"]).quantile(0.99) if some else np.inf,
        growth=float(grown) / max(1.0, arrived),
        active=active[first:],
        short=short or sums["packets"] < FEWEST_OBSERVATIONS,
    )


def replayed(spec: PacketProcessor, packets: int) -> Rotations | None:
    """Return the rotations of a recorded trace, if there is one, in an open replication of n packets."""
    w = spec.workload
    return rotations([(w.arrivals, float(w.packet_rate))], packets, hold=float(w.hold_ns))


def _snapshot(spec: PacketProcessor, machine: Machine) -> dict[str, Any]:
    """Return all counts and sums of a system up to now."""
    core = machine.core
    stages = dict(zip(STAGES, core.stages["ended"].tolist(), strict=True))
    return seen(machine) | {
        "active": int(core.flows["number"][0]) - stages["write"] + stages["held"],
        "operations": table_sums(core.operations),
        "lists": core.servers[0].copy(),
        "memory": _memory(machine),
        "waits": waits(spec, machine),
        "histogram": machine.world.histograms[1].copy(),
        "events": int(machine.world.state["events"][0]),
    }


def _memory(machine: Machine) -> FloatArray:
    """Return the accesses to banks and their conflicts by kind; accesses that were begun, and row hits."""
    core, kernels = machine.core, machine.kernels
    begun = core.memories[["accesses", "hits"]][0].tolist()
    if core.state["controlled"][0] and kernels is not None:
        sums = kernels.channels.sums[:, :, 0]
        begun = sums[:, :, dram.COUNT].sum(), (sums[:, :, dram.COUNT] - sums[:, :, dram.OPENED]).sum()
    return np.concatenate([table_sums(core.arrived).ravel(), begun])


def _open_start(spec: PacketProcessor, snapshots: list[dict[str, Any]]) -> tuple[int, bool]:
    """Return the snapshot from which an open run is measured, and whether the run is too short for it.

    The start waits for the latency to settle and the store to fill.
    """
    half = (len(snapshots) - 1) // 2
    ended, sums = np.diff([s["flows"][0, [ENDED, LATENCY]] for s in snapshots], axis=0).T
    some = np.flatnonzero(ended)
    if not some.size:
        return half, True
    latency = sums[some] / ended[some]
    settled = int(some[min(warm_up(latency, batch=1), some.size - 1)])
    margin = SETTLED_HOLDS * (float(spec.workload.hold_ns) + float(np.median(latency)))
    first = next((k for k, s in enumerate(snapshots) if k >= settled and s["time"] >= margin), len(snapshots))
    return min(first, half), first > half


def _closed_start(snapshots: list[dict[str, Any]], window: int) -> tuple[int, bool]:
    """Return the snapshot from which a closed run is measured: after five generations of its window."""
    half, least = (len(snapshots) - 1) // 2, len(snapshots) // 10
    ended = (k for k, s in enumerate(snapshots) if s["flows"][0, ENDED] >= 5 * window and k >= least)
    first = next(ended, half)
    return min(first, half), first > half


def _sums(
    spec: PacketProcessor, start: dict[str, Any], end: dict[str, Any], more: dict[str, Any], busy: FloatArray
) -> dict[str, int]:
    """Return what was counted from one snapshot to another; links are busy for a cycle with each flit."""
    groups, lists, flow = station_groups(spec), end["lists"], dict(zip(FLOWS, more["flows"][0], strict=True))
    blocks, accesses = (lists[name] - start["lists"][name] for name in ("taken_blocks", "accesses"))
    looked, missed = more["lookups"].sum(), more["lookups"][:, -1].sum()
    links = busy[groups["request links"].start : groups["response links"].stop]
    offered = more["operations"][0, 0]
    values = {
        "offered packets": offered,
        "offered segments": blocks + flow["lost_segments"],
        "blocked packets": min(flow["lost"], offered),
        "blocked segments": flow["lost_segments"],
        "packets": flow["ended"],
        "bytes": flow["bytes"],
        "lookups": looked,
        "lookup hits": looked - missed if spec.llc.slices else 0,
        "blocks": blocks,
        "pointer accesses": accesses,
        "most pointer accesses": lists["most_accesses"],
        "flit hops": links.sum() * float(spec.noc.clock_ghz),
        "events": more["events"],
        **dict(zip(("writes", "write conflicts", "reads", "read conflicts"), more["memory"], strict=False)),
        **dict(zip(("accesses", "row hits"), more["memory"][6:], strict=True)),
    }
    return {name: round(float(value)) for name, value in values.items()}


def mean_parts(stages: FloatArray, operations: FloatArray) -> FloatArray:
    """Return the means of the parts of the latency."""
    means = dict(zip(STAGES, stages[:, 1] / np.maximum(stages[:, 0], 1), strict=True))
    found = [means["lookup"]]
    for stage, (begun, waited, served, service) in zip(("write", "read"), operations, strict=True):
        wait, own = waited / max(begun, 1), service / max(served, 1)
        found += [wait, own, means[stage] - wait - own]
    return np.array(found)


LATENCIES = ("packet_latency", "packet_latency_p99", "lookup_latency", "write_latency", "read_latency")
OVERLOAD_UTILIZATION = 0.995
FEWEST_SNAPSHOTS = 5
"""Snapshots of a run with few packets that say nothing of a growth."""


@dataclass(frozen=True, kw_only=True)
class PacketExperiment(experiment.Experiment):
    """The simulation of one packet processor; made by `validate.simulate`.

    Designs with one seed meet the same packets, and draw lookups and holds in the order in which they come.

    Parameters
    ----------
    packets : int
        Packets that leave in each replication, at least 1000. A recorded trace is replayed in full rotations:
        as many as come nearest to ``packets``, at least one, after a warm-up of a quarter as many, at least
        one. The result says how many packets that are.
    saturation : bool
        Whether to run the closed system as well, for the saturation data rate: once for each
        replication of the first round.
    window : int
        Packets that circulate in the closed system, at most half of all.

    Raises
    ------
    ValueError
        If the spec has array fields or an argument is out of range.

    Notes
    -----
    What is simulated is `PacketProcessor.system`. The warm-up is dropped by MSER on the latencies of 100
    stretches, and not before the store has had five mean holds to fill. Intervals are Student's over the
    replications. The saturation data rate is that of a closed system with packets of the same sizes, where
    each packet that leaves is replaced at once and none is held.

    A recorded trace is one rotation of periodic traffic, whose first packet comes a mean gap after the last
    one. Full rotations are measured, begun at another packet in each replication; those before them are the
    warm-up, as many as five mean holds take. Intervals then show what holds, engines and addresses change,
    not what other traffic would.

    Where the design does not keep up, ``stable`` of the result is False and latencies are ``inf``;
    the other metrics are those of the overloaded system while it fills up.
    """

    packets: int = 20_000
    saturation: bool = True
    window: int = 512

    job_type = Job
    run_type = Run
    precise = ("packet_latency",)
    run_replication = staticmethod(run_replication)

    def check(self) -> None:
        """Refuse too few packets and no window."""
        checks.count("packets", self.packets, minimum=1000)
        checks.count("window", self.window)

    def lengths(self) -> list[tuple[str, float]]:
        """Return the packets that a replication simulates, those of the rotations of a trace."""
        replay = replayed(self.spec, self.packets)
        return [("packets", self.packets if replay is None else replay.total)]

    def jobs(self, start: int, stop: int) -> list[Job]:
        """Return open replications, in the first round followed by as many closed ones."""
        both: list[Job] = list(super().jobs(start, stop))
        opened = [replace(job, window=0) for job in both]
        return opened + both if self.saturation and start == 0 else opened

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Combine open and closed replications."""
        spec, confidence = self.spec, self.confidence
        opened, closed = [r for r in runs if not r.window], [r for r in runs if r.window]
        resources, full = (_resources(spec, each, confidence) for each in (opened, closed))
        utilization = _busiest(spec, resources)
        bottleneck = max(utilization, key=lambda name: utilization[name].best)
        metrics = _metrics(spec, opened, closed, confidence)
        metrics["max_utilization"] = utilization[bottleneck]
        stable = _keeps_up(spec, opened, metrics)
        parts = {
            name: mean_interval([r.parts[k] for r in opened], confidence=confidence)
            for k, name in enumerate(PARTS)
        }
        if stable is False:
            endless = exactly(INF, confidence=confidence)
            metrics |= dict.fromkeys(LATENCIES, endless)
            parts = dict.fromkeys(parts, endless)
        events = sum(r.sums["events"] for r in runs)
        waited, served = (np.array([getattr(r, name) for r in opened]) for name in ("waited", "served"))
        return {
            "metrics": {name: metrics[name] for name in spec.metric_names if name in metrics},
            "latency_parts": parts,
            "utilization": utilization,
            "bottleneck": bottleneck,
            "details": {
                "saturation_utilization": _busiest(spec, full),
                "resources": resources,
                "waiting": {
                    name: ratio_interval(waited[:, k], served[:, k], confidence=confidence)
                    for k, name in enumerate(resources)
                },
                "growth": mean_interval([r.growth for r in opened], confidence=confidence),
            },
            "stable": stable,
            "short": any(r.short for r in runs),
            "replications": len(opened),
            "effort": {"packets per replication": opened[0].packets, "events": events},
        }


def _keeps_up(spec: PacketProcessor, runs: list[Run], metrics: Mapping[str, Estimate]) -> bool | None:
    """Return whether packets do not pile up, no server is always busy and the closed system carries as much.

    Where the packets in the system do not tell, what the closed system carries does.
    """
    busiest = max(np.sum([r.busy for r in runs], axis=0)) / sum(r.duration for r in runs)
    growth = mean_interval([r.growth for r in runs], confidence=CONFIDENCE)
    found = None
    if isinstance(spec.workload.arrivals, Recorded):
        found = periodic_stability([r.growth for r in runs])
    elif min(r.active.size for r in runs) >= FEWEST_SNAPSHOTS:
        found = stability([r.active for r in runs], left=[r.sums["packets"] for r in runs])
    if busiest >= OVERLOAD_UTILIZATION or growth.low > 0 and growth.best > OVERLOAD_GROWTH:
        return False
    carried = metrics.get("saturation_data_rate")
    if found is False or carried is None:
        return found
    workload = spec.workload
    accepted = workload.offered_gbps * workload.load_factor * (1 - metrics["blocking_probability"].best)
    return False if accepted > carried.high else True if accepted < carried.low else found


def _resources(spec: PacketProcessor, runs: list[Run], confidence: float) -> dict[str, Estimate]:
    """Return the busy share of every resource; of no runs nothing."""
    durations, busy = [r.duration for r in runs], zip(*(r.busy for r in runs), strict=True)
    found = (busy_interval(np.array(each), durations, confidence=confidence) for each in busy)
    return dict(zip(chain(*stations(spec).values()), found, strict=False))


def _busiest(spec: PacketProcessor, resources: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Return the busiest member of each group that has one."""
    return {
        group: max((resources[name] for name in names), key=lambda one: one.best)
        for group, names in stations(spec).items()
        if names and resources
    }


SHARES = {
    "write_conflict_probability": ("write conflicts", "writes"),
    "read_conflict_probability": ("read conflicts", "reads"),
    "row_hit_ratio": ("row hits", "accesses"),
    "llc_hit_ratio": ("lookup hits", "lookups"),
    "overflow_probability": ("blocked segments", "offered segments"),
    "blocking_probability": ("blocked packets", "offered packets"),
}
"""Metrics that are shares of what was counted."""


def _metrics(
    spec: PacketProcessor, opened: list[Run], closed: list[Run], confidence: float
) -> dict[str, Estimate]:
    parts = np.array([r.parts for r in opened])
    mean, ratio, exact, share = (
        partial(estimate, confidence=confidence)
        for estimate in (mean_interval, ratio_interval, exactly, probability_interval)
    )

    def total(name: str) -> npt.NDArray[np.int64]:
        return np.array([r.sums[name] for r in opened])

    def data_rate(runs: list[Run]) -> Estimate:
        return ratio([8 * r.sums["bytes"] for r in runs], [r.duration for r in runs])

    metrics = {
        "packet_latency": mean(parts.sum(axis=1)),
        "packet_latency_p99": mean([r.p99 for r in opened]),
        "lookup_latency": mean(parts[:, 0]),
        "write_latency": mean(parts[:, 1:4].sum(axis=1)),
        "read_latency": mean(parts[:, 4:7].sum(axis=1)),
        "data_rate": data_rate(opened),
        "pointer_accesses_per_allocation": ratio(total("pointer accesses"), total("blocks")),
        "max_pointer_accesses_per_allocation": exact(float(total("most pointer accesses").max())),
        "energy_per_packet": mean([energy_per_packet(spec, r) for r in opened]),
        "cost": exact(float(spec.area)),
    }
    for name, (above, below) in SHARES.items():
        metrics[name] = share(total(above), total(below))
    return metrics | ({"saturation_data_rate": data_rate(closed)} if closed else {})
