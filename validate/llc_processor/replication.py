"""One replication of a packet processor: fill the caches, drop the warm-up, count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray
from validate.campaigns.experiment import Job
from validate.llc_processor.kernel import fill_caches, run
from validate.llc_processor.state import TOTALS, new_world, warm_up_requests

COUNTED: tuple[str, ...] = TOTALS.names or ()
LEAST_WARM_UP = 10_000
WARM_UP_SHARE = 0.1
"""Requests, after the caches are full, until the queues are in their steady state."""


@dataclass(frozen=True, kw_only=True)
class LlcProcessorJob(Job):
    """One replication; ``requests`` arrive while counting, which entries share a line is drawn too."""

    requests: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What is left of a replication: the totals named in `COUNTED`."""

    totals: FloatArray


def run_replication(job: LlcProcessorJob) -> Run:
    """Run one replication."""
    world = new_world(job.spec, seed=job.seed, replication=job.replication)
    fill_caches(world, warm_up_requests(job.spec))
    warm_up = max(LEAST_WARM_UP, int(WARM_UP_SHARE * job.requests))
    run(world, warm_up)
    before = world.totals.copy()
    run(world, warm_up + job.requests)
    return Run(totals=np.array([float(world.totals[name][0] - before[name][0]) for name in COUNTED]))
