"""The simulation of the packet processor with LLC slices: its replications and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.cache.llc_processor import BANKS, LlcProcessor
from qmodels.systems.spec.estimate import Estimate
from validate.cache import hierarchies
from validate.campaigns.experiment import Experiment, Job
from validate.engine.streams import new_streams
from validate.estimates.intervals import probability_interval, ratio_interval
from validate.llc_processor.kernel import (
    CORE,
    GROUPS,
    IDLE,
    PLAN,
    SOURCES,
    STATE,
    TOTALS,
    World,
    run,
)

COUNTED: tuple[str, ...] = TOTALS.names or ()
LEAST_WARM_UP = 10_000
WARM_UP_SHARE = 0.1
"""Requests, after the caches are full, until the queues are in their steady state."""
CACHE_WARM_UP = 8
"""Requests for each line of all caches: few of them leave a private cache of popular lines."""


@dataclass(frozen=True, kw_only=True)
class LlcProcessorJob(Job):
    """One replication; ``requests`` arrive while counting, which entries share a line is drawn too."""

    requests: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication: the totals named in `COUNTED`."""

    totals: FloatArray


def run_replication(job: LlcProcessorJob) -> Run:
    """Run one replication."""
    world = new_world(job.spec, seed=job.seed, replication=job.replication)
    warm_up = max(LEAST_WARM_UP, int(WARM_UP_SHARE * job.requests))
    run(world, warm_up)
    before = world.totals.copy()
    run(world, warm_up + job.requests)
    return Run(totals=np.array([float(world.totals[name][0] - before[name][0]) for name in COUNTED]))


def new_world(spec: LlcProcessor, *, seed: int, replication: int) -> World:
    """Return an empty processor with full caches; each replication has its own lines."""
    word = np.random.SeedSequence(seed, spawn_key=(replication,)).generate_state(1)
    sources = [*SOURCES, *hierarchies.SOURCES]
    streams = new_streams(seed=seed, replication=replication, sources=sources)
    # Each replication has a table of its own: of many entries it takes longer than to draw without one.
    caches = hierarchies.new_hierarchies(
        [spec.caches(int(word[0]))], streams[len(SOURCES) :], most_entries=100_000
    )
    hierarchies.warm_up(caches, 0)
    hierarchies.request(caches, 0, LEAST_WARM_UP + CACHE_WARM_UP * int(caches.caches["capacity"].sum()))
    plan = np.zeros(1, dtype=PLAN)
    for name in ("cores", "capacity", "arrival_rate"):
        plan[name] = getattr(spec, name)
    plan["slices"] = slices = spec.llc_slices
    both = 2 * spec.interleaved_bank_rate
    rates = [spec.l1_rate, spec.l2_rate, spec.llc_rate, 0.0, spec.bank_rate, spec.bank_rate, both]
    most = max(spec.cores, slices, spec.channels)
    members, place = np.zeros((2, GROUPS, most), dtype=np.int64)
    members[IDLE] = place[IDLE] = np.arange(most)
    sizes = np.zeros(GROUPS, dtype=np.int64)
    sizes[IDLE] = spec.channels
    heads, lengths = np.zeros((2, slices + BANKS), dtype=np.int64)
    return World(
        plan=plan,
        rates=np.array(rates),
        streams=streams,
        caches=caches,
        cores=np.zeros(spec.cores, dtype=CORE),
        arrived=np.zeros((spec.cores, spec.capacity)),
        members=members,
        sizes=sizes,
        place=place,
        queues=np.zeros((slices + BANKS, spec.cores), dtype=np.int64),
        heads=heads,
        lengths=lengths,
        busy=np.zeros(spec.channels, dtype=np.int64),
        banks=np.zeros((spec.channels, BANKS), dtype=np.int64),
        state=np.zeros(1, dtype=STATE),
        totals=np.zeros(1, dtype=TOTALS),
    )


@dataclass(frozen=True, kw_only=True)
class LlcProcessorExperiment(Experiment):
    """The simulation of one packet processor; made by `validate.simulate`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Exact for the system as it is described: exact replacement in every cache, exponential stages.
    Lines move when they are looked up, as in `LlcProcessor.system`. The caches become stationary before the
    clock starts, by requests that take no time; the queues start empty, and a tenth as many requests as are
    counted, at least 10,000, are dropped.

    Examples
    --------
    >>> from validate import simulate
    >>> result = simulate(LlcProcessor(architecture="none"), requests=20_000, replications=2)
    >>> 0.94 < 1 - result.blocking_probability.best < 0.98
    True
    """

    requests: int = 100_000  # Requests of each replication, refused ones included, at least 1000

    job_type = LlcProcessorJob
    run_type = Run
    precise = ("waiting_latency",)
    run_replication = staticmethod(run_replication)

    def check(self) -> None:
        """Refuse options out of range."""
        checks.count("requests", self.requests, minimum=1000)

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        metrics = _metrics(self.spec, runs, self.confidence)
        busy = {"cores": "core_utilization", "LLC": "llc_utilization", "DRAM banks": "memory_utilization"}
        utilization = {
            name: metrics[of] for name, of in busy.items() if self.spec.llc_slices or name != "LLC"
        }
        return {
            "metrics": metrics,
            "utilization": utilization,
            "bottleneck": max(utilization, key=lambda name: utilization[name].best),
            "effort": {"requests": self.requests},
        }


def _metrics(spec: LlcProcessor, runs: Sequence[Run], confidence: float) -> dict[str, Estimate]:
    n = dict(zip(COUNTED, np.transpose([run.totals for run in runs]), strict=True))
    accepted = n["arrivals"] - n["blocked"]
    after_l1 = n["served"] - n["l1_hits"]
    after_l2 = after_l1 - n["l2_hits"]
    ns, per_gbps = spec.time_unit_ns, spec.gbps(1.0)
    ratios = {
        "data_rate": (accepted * spec.arrival_rate * per_gbps, n["arrivals"]),
        "blocking_probability": (n["blocked"], n["arrivals"]),
        "waiting_latency": (n["waited"] * ns, n["started"]),
        # Little's law holds for the integral: the response ends with the request's departure.
        "response_latency": (n["number"] * ns, accepted),
        "mean_number_in_system": (n["number"], n["time"]),
        "l1_hit_ratio": (n["l1_hits"], n["served"]),
        "l2_hit_ratio": (n["l2_hits"], after_l1),
        "llc_hit_ratio": (n["llc_hits"], after_l2 if spec.llc_slices else 0.0 * after_l2),
        "on_chip_hit_ratio": (n["l1_hits"] + n["l2_hits"] + n["llc_hits"], n["served"]),
        "core_utilization": (n["busy_cores"] / spec.cores, n["time"]),
        "llc_utilization": (n["busy_slices"] / max(spec.llc_slices, 1), n["time"]),
        "memory_utilization": (n["busy_banks"] / (spec.channels * BANKS), n["time"]),
    }
    return {
        name: (probability_interval if name.endswith(("_probability", "_ratio")) else ratio_interval)(
            *ratios[name], confidence=confidence
        )
        for name in spec.metric_names
    }
