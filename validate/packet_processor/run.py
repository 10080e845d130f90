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
from validate.composed.arrivals import SETTLED_HOLDS, Rotations, rotations
from validate.composed.replication import FLOWS, advance, seen, table_sums
from validate.composed.world import Machine, new_machine
from validate.dram.state import COUNT, OPENED
from validate.estimates.statistics import Histogram, warm_up
from validate.packet_processor import counts as c
from validate.packet_processor.counts import by_station, station_groups, waits

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

    # packets, measured: packets simulated, and carried packets that left in the measured stretch.
    packets: int
    measured: int
    duration: float  # length of the measured stretch of time [ns]
    counts: IntArray  # counters of that stretch, see `validate.packet_processor.counts`
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
        arrived = 0.6 * snapshots[-1]["flow"]["born"]
    else:
        first, short, begin, number, arrived = LATE, False, 1, LATE, replay.measured * replay.jobs
    active = np.array([s["active"] for s in snapshots], dtype=float)
    more = active[-number:].mean() - active[begin : begin + number].mean() if number else 0.0
    growth = float(more) / max(1.0, arrived)
    return _reduce(spec, system, packets, snapshots, first, growth=growth, active=active[first:], short=short)


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
    found = seen(machine)
    stages = dict(zip(STAGES, core.stages["ended"].tolist(), strict=True))
    return found | {
        "flow": dict(zip(FLOWS, found["flows"][0].tolist(), strict=True)),
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
    ended, sums = (np.diff([s["flow"][name] for s in snapshots]) for name in ("ended", "latency_sum"))
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
            if s["flow"]["ended"] >= 5 * window and k >= len(snapshots) // 10
        ),
        half,
    )
    return min(first, half), first > half


def _reduce(
    spec: PacketProcessor,
    system: System,
    packets: int,
    snapshots: list[dict[str, Any]],
    first: int,
    *,
    growth: float,
    active: FloatArray,
    short: bool,
) -> Run:
    start, end = snapshots[first], snapshots[-1]
    more = {
        name: end[name] - start[name]
        for name in ("time", "busy", "waits", "stages", "operations", "histogram", "memory", "lookups")
    }
    flow = {name: end["flow"][name] - start["flow"][name] for name in FLOWS}
    busy = by_station(spec, system, more["busy"])
    counts = _counts(spec, flow, more, start["lists"], end["lists"], busy)
    counts[c.EVENTS] = end["events"] - start["events"]
    measured = int(flow["ended"])
    return Run(
        packets=packets,
        measured=measured,
        duration=more["time"],
        counts=counts,
        busy=busy,
        waited=more["waits"][0],
        served=more["waits"][1].astype(np.int64),
        parts=mean_parts(more["stages"], more["operations"]) if measured else np.full(len(PARTS), np.inf),
        p99=Histogram(counts=more["histogram"]).quantile(0.99) if measured else np.inf,
        growth=growth,
        active=active,
        short=short or counts[c.LEFT_PACKETS] < 500,
    )


def mean_parts(stages: FloatArray, operations: FloatArray) -> FloatArray:
    """Return the means of the parts of the latency."""
    means = dict(zip(STAGES, stages[:, 1] / np.maximum(stages[:, 0], 1), strict=True))
    found = [means["lookup"]]
    for stage, (begun, waited, served, service) in zip(("write", "read"), operations, strict=True):
        wait, own = waited / max(begun, 1), service / max(served, 1)
        found += [wait, own, means[stage] - wait - own]
    return np.array(found)


def _counts(
    spec: PacketProcessor,
    flow: dict[str, float],
    more: dict[str, Any],
    before: Any,
    after: Any,
    busy: FloatArray,
) -> IntArray:
    """Return the counters of a stretch of a run."""
    groups = station_groups(spec)
    blocks, accesses = (after[name] - before[name] for name in ("taken_blocks", "accesses"))
    looked, missed = more["lookups"].sum(), more["lookups"][:, -1].sum()
    links = busy[groups["request links"].start : groups["response links"].stop]
    begun, hits = more["memory"][6:]
    offered = float(more["operations"][0, 0])
    values = {
        c.OFFERED_PACKETS: offered,
        c.OFFERED_SEGMENTS: blocks + flow["lost_segments"],
        c.BLOCKED_PACKETS: min(flow["lost"], offered),
        c.BLOCKED_SEGMENTS: flow["lost_segments"],
        c.LEFT_PACKETS: flow["ended"],
        c.LEFT_BYTES: flow["bytes"],
        c.LOOKUPS: looked,
        c.LOOKUP_HITS: looked - missed if spec.llc.slices else 0,
        c.ALLOCATIONS: blocks,
        c.ALLOCATION_ACCESSES: accesses,
        c.MOST_ALLOCATION_ACCESSES: after["most_accesses"],
        c.ACCESSES: begun,
        c.ROW_HITS: hits,
        c.ACTIVATIONS: begun - hits,
        c.BURSTS: begun,
        c.SLICE_ACCESSES: looked if spec.llc.slices else 0,
        c.FLIT_HOPS: links.sum() * float(spec.noc.clock_ghz),
    }
    came = dict(zip((c.WRITES, c.WRITE_CONFLICTS, c.READS, c.READ_CONFLICTS), more["memory"], strict=False))
    counts = np.zeros(c.COUNTS, dtype=np.int64)
    for counter, value in (values | came).items():
        counts[counter] = round(float(value))
    return counts
