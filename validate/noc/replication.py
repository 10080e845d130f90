"""One replication of a network: warm up, measure, and see whether what is in it can get out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import IntArray
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.spec import Noc
from validate.campaigns.experiment import Job
from validate.noc.kernel import quiet, step
from validate.noc.meter import Meter, new_meter, restart, seen
from validate.noc.state import CLOSED, IN_NETWORK, NOW, World, grown, new_world
from validate.noc.traffic import FULL, STUCK, closed_traffic, open_traffic, run_closed, run_open

MOST_PACKETS = 4_000_000
"""Packets waiting at the sources above which a run ends: far more than a network that keeps up has."""


@dataclass(frozen=True, kw_only=True)
class NocJob(Job):
    """A replication with its options, see `validate.noc.experiment.NocExperiment`."""

    packets: int
    cycles: int
    flow_quantiles: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    cycles: int  # cycles measured
    sums: IntArray  # packets delivered, sums of their latency and of the wait at the source
    # Bins of the latencies on the scale of `validate.engine.histogram`, and how many are in each.
    latencies: IntArray
    # The same for all flows' bins, counted through, see `validate.noc.meter`; empty if not asked for.
    flow_latencies: IntArray
    channels: IntArray  # flits carried; flit-cycles in the buffers behind
    series: IntArray  # packets waiting at the end of each interval of the whole run, packets delivered in it
    # How long the first packet of each flow's source queue had waited in the middle and at the end of the
    # measurement [cycles].
    lags: IntArray
    transactions: IntArray  # transactions done, sum of their times
    deadlocked: bool  # whether packets waited for each other in a circle at the end
    full: bool  # whether the run ended because too many packets waited
    simulated: int  # cycles of the whole run


def build_world(noc: Noc, table: FlowTable, *, packets: int) -> World:
    """Return the empty network of a spec with room for n packets."""
    router = noc.router
    return new_world(
        table,
        virtual_channels=router.virtual_channels,
        buffer_flits=router.buffer_flits,
        pipeline_cycles=router.pipeline_cycles,
        credit_cycles=router.credit_cycles,
        arbitration=router.arbitration,
        hold_switch_for_packet=router.hold_switch_for_packet,
        packets=packets,
    )


def run_replication(job: NocJob) -> Run:
    """Run one replication and return its counts."""
    table = job.spec.flow_table()
    if isinstance(job.spec.traffic, Transactions):
        return _run_closed(job, table)
    return _run_open(job, table)


def _run_open(job: NocJob, table: FlowTable) -> Run:
    rate = float(table.rate.sum())
    cycles = max(job.cycles, int(np.ceil(job.packets / rate)) if rate else 0)
    warm = cycles // 4
    world = build_world(job.spec, table, packets=64 * table.nodes)
    traffic = open_traffic(job.spec, table, seed=job.seed, replication=job.replication)
    meter = new_meter(table.source.size, cycles=warm + cycles, by_flow=job.flow_quantiles)
    lags: list[IntArray] = []
    begun = 0
    for until in (warm, warm + cycles // 2, warm + cycles):
        ended = FULL
        while ended == FULL and world.packet.size < MOST_PACKETS:
            ended = run_open(world, traffic, meter, until)
            if ended == FULL:
                world = grown(world, 2 * world.packet.size)
        if until == warm:
            restart(meter, world, now=int(world.clock[NOW]))
            begun = int(world.clock[NOW])
        lags.append(_lags(world))
    measured = int(world.clock[NOW]) - begun
    return _result(world, meter, np.stack(lags[1:]), np.zeros(2, dtype=np.int64), measured, ended)


def _run_closed(job: NocJob, table: FlowTable) -> Run:
    traffic = closed_traffic(job.spec, table, seed=job.seed, replication=job.replication)
    # A packet keeps its place for a cycle after its delivery, when the engine may send the next one.
    world = build_world(job.spec, table, packets=2 * traffic.engine.size)
    # How long it takes is not known before.
    meter = new_meter(table.source.size, cycles=job.cycles, by_flow=job.flow_quantiles)
    run_closed(world, traffic, meter, job.cycles // 4, job.packets // 4)
    begun = int(world.clock[NOW])
    restart(meter, world, now=begun)
    traffic.engine["done"] = traffic.engine["latency"] = 0
    ended = run_closed(world, traffic, meter, begun + job.cycles, job.packets)
    done = np.array([traffic.engine["done"].sum(), traffic.engine["latency"].sum()])
    lags = np.zeros((2, table.source.size), dtype=np.int64)
    return _result(world, meter, lags, done, int(world.clock[NOW]) - begun, ended)


def _lags(world: World) -> IntArray:
    first = world.queue["first"]
    lag = np.where(first >= 0, world.clock[NOW] - world.packet["created"][first], 0)
    return np.asarray(lag[world.flow["queue"]])


def _result(
    world: World, meter: Meter, lags: IntArray, transactions: IntArray, cycles: int, ended: int
) -> Run:
    now = int(world.clock[NOW])
    return Run(
        cycles=cycles,
        sums=np.stack([meter.sums[name] for name in ("packets", "latency", "queueing")]),
        latencies=_sparse(meter.counts),
        flow_latencies=_sparse(meter.flow_counts.ravel()),
        channels=np.stack(seen(world, now=now)),
        series=meter.series,
        lags=lags,
        transactions=transactions,
        deadlocked=ended == STUCK or not _drains(world),
        full=ended == FULL,
        simulated=now,
    )


def _sparse(counts: IntArray) -> IntArray:
    bins = np.flatnonzero(counts)
    return np.stack([bins, counts[bins]]).astype(np.int64)


def _drains(world: World) -> bool:
    """Return whether all flits get out of the network when the sources begin nothing new."""
    world.clock[CLOSED] = 1
    now = int(world.clock[NOW])
    while world.clock[IN_NETWORK] > 0:
        step(world, now)
        now += 1
        if quiet(world, now):
            return False
    return True
