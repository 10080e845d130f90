"""One replication of a data-queueing module: draw, run, drop the warm-up, keep the counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import IntArray
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


def run_replication(job: Job) -> Run:
    """Run one replication and return its counts."""
    seed = np.random.SeedSequence(job.seed, spawn_key=(job.replication,))
    offered = draw_packets(job.spec, seed=seed, packets=job.packets)
    world = build_world(job.spec, offered, seed=seed)
    packets = offered.segments.size
    run(world, int(job.warm_up * packets))
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
