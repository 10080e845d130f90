"""One replication: draw, run, drop the warm-up, and reduce to a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.packets.packet_processor import PacketProcessor
from validate.campaigns import experiment
from validate.dram import state as d
from validate.dram.channels import Channels
from validate.estimates.statistics import Histogram, warm_up
from validate.packet_processor import state as c
from validate.packet_processor.inputs import draw_world, new_parts, station_groups
from validate.packet_processor.loop import begin, run
from validate.packet_processor.state import FLIT_HOPS, LEFT_PACKETS, MOST_ALLOCATION_ACCESSES, World

SNAPSHOTS = 101
PARTS = (
    "lookup",
    "write: pointer memory wait",
    "write: allocation",
    "write: network and dram",
    "read: pointer memory wait",
    "read: dequeue",
    "read: network and dram",
)
SETTLED_HOLDS = 5.0
"""Mean holds after which the stored packets are all but stationary: e**-5 are missing."""


@dataclass(frozen=True, kw_only=True)
class Job(experiment.Job):
    """One replication to run, open or (``window`` > 0) closed."""

    packets: int
    window: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What is left of a replication.

    Parameters
    ----------
    packets, measured : int
        Packets simulated, and carried packets whose latency was measured.
    duration : float
        Length of the measured stretch of time. [ns]
    counts : array of int
        Counters of that stretch, see `validate.packet_processor.state`.
    busy, waited, served : arrays
        Of each station in that stretch: busy time, waiting time [ns] and jobs.
    parts : array of float
        Mean of each of `PARTS` over the measured packets. [ns]
    p99 : float
        99th percentile of their latency. [ns]
    growth : float
        Packets by which the number in the system, holds excluded, grew for each that arrived.
    short : bool
        Whether the run was too short for its warm-up.
    """

    packets: int
    measured: int
    duration: float
    counts: IntArray
    busy: FloatArray
    waited: FloatArray
    served: IntArray
    parts: FloatArray
    p99: float
    growth: float
    short: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class _Snapshot:
    """Counters and stations at the arrival of a packet."""

    packet: int
    time: float
    active: int
    counts: IntArray
    busy: FloatArray
    waited: FloatArray
    served: IntArray


def run_replication(job: Job) -> Run:
    """Run one replication and return its numbers."""
    world = draw_world(
        job.spec,
        seed=np.random.SeedSequence(job.seed, spawn_key=(job.replication,)),
        packets=job.packets,
        window=job.window,
    )
    snapshots = run_with_snapshots(job.spec, world)
    first, last, short = (
        _closed_stretch(world, snapshots) if job.window else _open_stretch(job.spec, world, snapshots)
    )
    return _reduce(world, snapshots, first, last, short)


def run_with_snapshots(spec: PacketProcessor, world: World) -> list[_Snapshot]:
    """Run a world to its end and return snapshots evenly spaced over its arrivals."""
    requests, responses, channels = new_parts(spec, world)
    networks = requests, responses
    groups = station_groups(spec)
    links = [groups["request links"], groups["response links"]]
    count = world.packets.size
    begin(world)
    snapshots = []
    for packet in np.unique(np.linspace(1, count, min(SNAPSHOTS, count)).astype(int)).tolist():
        run(world, requests, responses, channels, packet)
        _count_accesses(spec.dram, world, channels)
        now = float(world.heap[0]["time"])
        for members, network in zip(links, networks, strict=True):
            world.stations["busy"][members] = network.channel["flits"] / float(spec.noc.clock_ghz)
        world.counts[FLIT_HOPS] = sum(int(network.channel["flits"].sum()) for network in networks)
        # Of the work a station has accepted only what is done by now counts.
        ahead = np.maximum(world.stations["free_at"] - now, 0.0)
        snapshots.append(
            _Snapshot(
                packet=int(world.state["admitted"][0]) - 1,
                time=now,
                active=int(world.state["active"][0]),
                counts=world.counts.copy(),
                busy=world.stations["busy"] - ahead,
                waited=world.stations["waited"].copy(),
                served=world.stations["served"].copy(),
            )
        )
    run(world, requests, responses, channels, count + 1)
    return snapshots


def _count_accesses(memory: Any, world: World, channels: Channels) -> None:
    """Enter in the counters and the stations of a world what its controllers have counted up to now.

    The wait of an access is its time at the channel but for the column access and the burst.
    """
    if not world.parameters["controlled"][0]:
        return
    sums: Any = channels.sums[:, :, 0]
    number, opened = sums[:, :, d.COUNT].sum(), sums[:, :, d.OPENED].sum()
    for counter, value in (
        (c.ACCESSES, number),
        (c.BURSTS, number),
        (c.ACTIVATIONS, opened),
        (c.ROW_HITS, number - opened),
    ):
        world.counts[counter] = value
    t, first = memory.timing, int(world.parameters["first_bus"][0])
    buses = world.stations[first : first + len(sums)]
    alone = sums[:, 0, d.COUNT] * (t.cl + t.burst) + sums[:, 1, d.COUNT] * (t.cwl + t.burst)
    buses["served"] = sums[:, :, d.COUNT].sum(axis=1)
    buses["busy"] = buses["served"] * t.burst / t.clock_ghz
    buses["waited"] = (sums[:, :, d.LATENCY].sum(axis=1) - alone) / t.clock_ghz


def packet_parts(world: World) -> FloatArray:
    """Return the parts of the latency of every packet, a row each."""
    p = world.packets
    return np.stack(
        [
            p["looked_up"] - p["arrival"],
            p["write_start"] - p["looked_up"],
            p["write_end"] - p["write_start"],
            p["written"] - p["write_end"],
            p["read_start"] - p["read_join"],
            p["read_end"] - p["read_start"],
            p["left"] - p["read_end"],
        ]
    )


def _open_stretch(spec: PacketProcessor, world: World, snapshots: list[_Snapshot]) -> tuple[int, int, bool]:
    """Return the snapshots between which an open run is measured, and whether it was too short.

    The start waits for the latency to settle and the store to fill; the end leaves out the
    packets whose reads fall into the time after the last arrival.
    """
    latency = packet_parts(world).sum(axis=0)
    carried = np.flatnonzero(world.packets["blocked"] == 0)
    settled = warm_up(latency[carried])
    half = (len(snapshots) - 1) // 2
    begin_ns, end_ns = snapshots[0].time, snapshots[-1].time
    typical = float(np.median(latency[carried])) if carried.size else 0.0
    margin = SETTLED_HOLDS * (float(spec.workload.hold_ns) + typical)
    settled_packet = int(carried[settled]) if settled else 0
    first = next(
        (k for k, s in enumerate(snapshots) if s.packet >= settled_packet and s.time >= begin_ns + margin),
        half,
    )
    last = next(
        (k for k in range(len(snapshots) - 1, 0, -1) if snapshots[k].time <= end_ns - margin), half + 1
    )
    short = first > half or last - first < half // 2
    first = min(first, half)
    return first, max(last, first + 1), short


def _closed_stretch(world: World, snapshots: list[_Snapshot]) -> tuple[int, int, bool]:
    """Return the snapshots between which a closed run is measured: after five generations of its window."""
    window = int(world.parameters["window"][0])
    half = (len(snapshots) - 1) // 2
    first = next(
        (k for k, s in enumerate(snapshots) if s.packet >= 5 * window and k >= len(snapshots) // 10), half
    )
    return min(first, half), len(snapshots) - 1, first > half


def _reduce(world: World, snapshots: list[_Snapshot], first: int, last: int, short: bool) -> Run:
    start, end = snapshots[first], snapshots[last]
    counts = end.counts - start.counts
    counts[MOST_ALLOCATION_ACCESSES] = end.counts[MOST_ALLOCATION_ACCESSES]
    inside = np.zeros(world.packets.size, dtype=bool)
    inside[start.packet : end.packet] = True
    inside &= world.packets["blocked"] == 0
    parts = packet_parts(world)[:, inside]
    histogram = Histogram()
    histogram.add(parts.sum(axis=0))
    active = np.array([s.active for s in snapshots], dtype=float)
    fifth = len(snapshots) // 5
    arrived = max(1, snapshots[-1].packet - snapshots[0].packet)
    return Run(
        packets=world.packets.size,
        measured=int(inside.sum()),
        duration=end.time - start.time,
        counts=counts,
        busy=end.busy - start.busy,
        waited=end.waited - start.waited,
        served=end.served - start.served,
        parts=parts.mean(axis=1) if parts.size else np.full(len(PARTS), np.inf),
        p99=histogram.quantile(0.99),
        growth=float(active[-fifth:].mean() - active[fifth : 2 * fifth].mean()) / (0.6 * arrived)
        if fifth
        else 0.0,
        short=short or counts[LEFT_PACKETS] < 500,
    )
