"""The simulation of a processor with LLC slices: that of its system of parts, in the processor's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.cache.llc_processor import LlcProcessor
from qmodels.systems.spec.estimate import Estimate
from validate.campaigns.experiment import Experiment, Job
from validate.composed.replication import FLOWS, PARTS, Run, resources, run_as_system, system_of
from validate.network.replication import Replications

MOST_TABLES = 100_000
"""Entries up to which each replication draws which of them share a line: of more, one table is the mean."""


@dataclass(frozen=True, kw_only=True)
class LlcProcessorJob(Job):
    """One replication; ``requests`` arrive while counting, refused ones included."""

    requests: int


def run_replication(job: LlcProcessorJob) -> Run:
    """Run one replication."""
    word = np.random.SeedSequence(job.seed, spawn_key=(job.replication,)).generate_state(1)
    tables = job.spec.assignment == "random" and job.spec.popularity.entries <= MOST_TABLES
    return run_as_system(job, job.requests, int(word[0]) if tables else 0)


@dataclass(frozen=True, kw_only=True)
class LlcProcessorExperiment(Experiment):
    """The simulation of one packet processor; made by `validate.simulate`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The system is `LlcProcessor.system`: exact replacement in every cache, exponential stages. Lines move
    when they are looked up. The caches fill before the clock starts, by requests that take no time; the
    queues start empty, and a quarter as many requests as are counted are dropped.

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
            "effort": {"requests": self.requests, "events": sum(run.events for run in runs)},
        }


def _metrics(spec: LlcProcessor, runs: Sequence[Run], confidence: float) -> dict[str, Estimate]:
    data, system = Replications(runs, confidence=confidence), system_of(spec)
    flow = {name: column[:, 0] for name, column in data.columns("flows", FLOWS).items()}
    parts = data.columns("parts", PARTS)
    core = list(system.parts).index("core")
    accepted, requests = flow["ended"], flow["ended"] + flow["lost"]
    l1, l2, llc, *_ = hits = data.stacked("lookups")[:, 0].T
    found, on_chip = hits.sum(axis=0), l1 + l2 + llc
    busy: dict[str, list[FloatArray]] = {"core": [], "slice": [], "dram": []}
    for (name, _), time in zip(resources(system), data.stacked("busy").T, strict=True):
        busy[name].append(time)
    shares = {name: np.mean(times, axis=0) if times else 0.0 * data.time for name, times in busy.items()}
    ratios = {
        "data_rate": (accepted * spec.gbps(spec.arrival_rate), requests),
        "waiting_latency": (parts["time_sum"][:, core], parts["visits"][:, core]),
        "response_latency": (flow["latency_sum"], accepted),
        "mean_number_in_system": (flow["number"], data.time),
        **{
            f"{name}_utilization": (shares[part], data.time)
            for name, part in (("core", "core"), ("llc", "slice"), ("memory", "dram"))
        },
    }
    of_all = {
        "blocking_probability": (flow["lost"], requests),
        "l1_hit_ratio": (l1, found),
        "l2_hit_ratio": (l2, found - l1),
        "llc_hit_ratio": (llc, found - l1 - l2 if spec.llc_slices else 0.0 * found),
        "on_chip_hit_ratio": (on_chip, found),
    }
    return {
        name: data.share(*of_all[name]) if name in of_all else data.ratio(*ratios[name])
        for name in spec.metric_names
    }
