"""A simulator of nothing, quick enough to run and kill campaigns of it by the hundred."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from validate.estimates.statistics import Estimate, mean_interval


@dataclass(frozen=True, kw_only=True)
class Toy:
    mean: float = 10.0
    spread: float = 1.0
    stable: bool = True


@dataclass(frozen=True, kw_only=True)
class Job:
    spec: Toy
    seed: int
    replication: int
    size: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    replication: int
    mean: float
    values: Any


def run_replication(job: Job) -> Run:
    if "TOY_LOG" in os.environ:
        with open(os.environ["TOY_LOG"], "a") as log:
            log.write(f"{job.spec.mean:g} {job.replication}\n")
    time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
    if job.spec.mean < 0 and job.replication == 3:
        raise RuntimeError("lost the simulator")
    rng = np.random.default_rng(np.random.SeedSequence(job.seed, spawn_key=(job.replication,)))
    values = rng.normal(job.spec.mean, job.spec.spread, size=job.size)
    return Run(replication=job.replication, mean=float(values.mean()), values=values)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    metrics: dict[str, Estimate]
    stable: bool
    replications: int
    seconds: float
    values: Any

    def rows(self):
        return [
            {"metric": name, "unit": "s", "low": e.low, "best": e.best, "high": e.high}
            for name, e in self.metrics.items()
        ]


@dataclass(frozen=True, kw_only=True)
class ToyExperiment:
    spec: Toy
    seed: int = 0
    confidence: float = 0.95
    size: int = 5

    run_type: ClassVar[type] = Run
    precise: ClassVar[tuple[str, ...]] = ("time",)
    run_replication: ClassVar[Any] = staticmethod(run_replication)

    def jobs(self, start, stop):
        return [
            Job(spec=self.spec, seed=self.seed, replication=k, size=self.size) for k in range(start, stop)
        ]

    def summarize(self, runs, *, replications, seconds):
        assert [job.replication for job, _ in runs] == [run.replication for _, run in runs]
        assert len(runs) == replications
        means = np.array([run.mean for _, run in runs])
        return Result(
            metrics={
                "time": mean_interval(means, confidence=self.confidence),
                "excess": mean_interval(means - 0.9 * self.spec.mean, confidence=self.confidence),
            },
            stable=self.spec.stable,
            replications=replications,
            seconds=seconds,
            values=np.concatenate([run.values for _, run in runs]),
        )


def register() -> None:
    """Make `validate.simulate` know this simulator."""
    from validate.campaigns.simulate import EXPERIMENTS

    EXPERIMENTS[f"{Toy.__module__}.Toy"] = f"{Toy.__module__}.ToyExperiment"
