"""One replication: run the system that a processor is, drop the warm-up, and reduce to a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.composed.system import System
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.packets.processor_system import STAGES, processor_system
from validate.campaigns import experiment
from validate.composed.replication import FLOWS, advance, seen, table_sums
from validate.composed.world import SETTLED_HOLDS, Machine, Rotations, new_machine, rotations
from validate.dram.state import COUNT, OPENED
from validate.engine.histogram import Histogram
from validate.estimates.batch_means import warm_up
from validate.estimates.intervals import FEWEST_OBSERVATIONS
from validate.packet_processor.stations import by_station, station_groups, waits

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


def run_replication(job: Job) -> Run:
    """Run one replication and return its numbers."""
    spec, packets = job.spec, job.packets
    window = min(job.window, max(1, packets // 2))  # more than that never come round
    system = _system(spec, window)
    machine = new_machine(system, seed=job.seed, replication=job.replication)
    replay = None if window else replayed(spec, packets)
    goals: list[dict[str, Any]]
    if replay is None:
        evenly = np.linspace(1, packets, min(SNAPSHOTS - 1, packets))
        goals = [{"ended": count} for count in np.unique(evenly.astype(int)).tolist()]
    else:
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


@lru_cache(maxsize=4)
def _system(spec: PacketProcessor, window: int) -> System:
    return processor_system(spec, window=window)


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
        begun = sums[:, :, COUNT].sum(), (sums[:, :, COUNT] - sums[:, :, OPENED]).sum()
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
    half = (len(snapshots) - 1) // 2
    first = next(
        (
            k
            for k, s in enumerate(snapshots)
            if s["flows"][0, ENDED] >= 5 * window and k >= len(snapshots) // 10
        ),
        half,
    )
    return min(first, half), first > half


def _sums(
    spec: PacketProcessor,
    start: dict[str, Any],
    end: dict[str, Any],
    more: dict[str, Any],
    busy: FloatArray,
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
