"""One replication of a DRAM system: draw the accesses, serve those of each channel, keep the sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray, IntArray
from validate.campaigns.experiment import Job
from validate.dram import state as c
from validate.dram.inputs import draw_accesses


@dataclass(frozen=True, kw_only=True)
class DramJob(Job):
    """A replication, with the accesses of the whole system."""

    accesses: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    sums: IntArray  # of each channel and direction, see `validate.dram.state`; the warm-up is left out
    counts: IntArray  # reads and writes of all channels by their latency without the controller's time
    served: int  # accesses, the warm-up included
    cycles: IntArray  # of each channel until its last command
    last_arrival: int  # when the last access came
    latencies: tuple[FloatArray, ...]  # mean of each channel in each batch, the warm-up left out


def run_replication(job: DramJob) -> Run:
    """Run one replication."""
    from validate.dram.kernel import run_channel
    from validate.dram.order_kernel import run_channel_in_order

    serve = run_channel_in_order if job.spec.scheduler == "in-order" else run_channel
    accesses = draw_accesses(job.spec, seed=job.seed, replication=job.replication, accesses=job.accesses)
    start = np.random.default_rng(np.random.SeedSequence(job.seed, spawn_key=(job.replication, 1))).random()
    sums, counts, cycles, latencies = [], np.zeros((2, c.LONGEST + 1), dtype=np.int64), [], []
    last = 0
    for one in accesses:
        channel = c.new_channel(job.spec, **one._asdict(), start=start)
        cycles.append(int(serve(channel)) if one.arrival.size else 0)
        last = max(last, int(one.arrival[-1]) if one.arrival.size else 0)
        sums.append(channel.sums[:, 1:].sum(axis=1))
        counts += channel.counts
        both = channel.sums.sum(axis=0)
        full = both[1:-1] if len(both) > c.BATCHES else both[1:]
        latencies.append(full[:, c.LATENCY] / np.maximum(full[:, c.COUNT], 1))
    used = np.flatnonzero(counts.any(axis=0))
    return Run(
        sums=np.array(sums),
        counts=counts[:, : int(used[-1]) + 1 if used.size else 1],
        served=sum(one.arrival.size for one in accesses),
        cycles=np.array(cycles),
        last_arrival=last,
        latencies=tuple(latencies),
    )
