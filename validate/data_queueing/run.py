"""One replication of a data-queueing module: draw, run, drop the warm-up, keep the counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import IntArray
from qmodels.systems.traffic.arrivals import Recorded
from validate.campaigns import experiment
from validate.data_queueing.inputs import build_world, draw_packets
from validate.data_queueing.kernel import run


@dataclass(frozen=True, kw_only=True)
class Job(experiment.Job):
    """One replication of a `DataQueueing`, see `validate.data_queueing.simulate.DataQueueingExperiment`."""

    packets: int
    warm_up: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What is left of a replication."""

    packets: int  # packets simulated, the warm-up included
    # Counters from the end of the warm-up to the last arrival, see `validate.data_queueing.state`.
    counts: IntArray
    # Of each operation: how often, its pointer accesses, and the most of them (warm-up included).
    operations: IntArray
    histograms: IntArray  # accesses of the allocations and of the deletions
    all_operations: int  # queue operations of the whole run, those after the last arrival included


def _lengths(job: Job) -> tuple[int, int]:
    """Return the packets of a replication and those before the counting begins: of a trace full rotations."""
    arrivals = job.spec.traffic.arrivals
    if not isinstance(arrivals, Recorded):
        return job.packets, int(job.warm_up * job.packets)
    rotations = max(round(job.packets / len(arrivals.trace)), 1 + (job.warm_up > 0))
    warm_up = min(max(round(job.warm_up * rotations), int(job.warm_up > 0)), rotations - 1)
    return rotations * len(arrivals.trace), warm_up * len(arrivals.trace)


def run_replication(job: Job) -> Run:
    """Run one replication and return its counts."""
    seed = np.random.SeedSequence(job.seed, spawn_key=(job.replication,))
    packets, warm_up = _lengths(job)
    offered = draw_packets(job.spec, seed=seed, packets=packets)
    world = build_world(job.spec, offered, seed=seed)
    run(world, warm_up)
    counts, operations, histograms = world.counts.copy(), world.operations.copy(), world.histograms.copy()
    run(world, packets)
    counts, histograms = world.counts - counts, world.histograms - histograms
    measured = world.operations - operations
    measured[:, 2] = world.operations[:, 2]
    run(world, packets + 1)
    return Run(
        packets=packets,
        counts=counts,
        operations=measured,
        histograms=histograms,
        all_operations=int(world.operations[:6, 0].sum()),
    )
