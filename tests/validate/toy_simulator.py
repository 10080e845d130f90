"""A simulator of nothing, quick enough to run and kill campaigns of it by the hundred."""

import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import Answer
from qmodels.systems.spec import kind
from qmodels.systems.spec.kind import Kind
from qmodels.systems.spec.metrics import Metric
from validate.campaigns.experiment import Experiment, Job
from validate.estimates.intervals import mean_interval


@dataclass(frozen=True, kw_only=True)
class Toy:
    mean: float = 10.0
    spread: float = 1.0
    stable: bool = True


@dataclass(frozen=True, kw_only=True)
class ToyJob(Job):
    size: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    replication: int
    mean: float
    values: Any


def run_replication(job: ToyJob) -> Run:
    if "TOY_LOG" in os.environ:
        with open(os.environ["TOY_LOG"], "a") as log:
            log.write(f"{job.spec.mean:g} {job.replication}\n")
    time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
    if job.spec.mean < 0 and job.replication == 3:
        raise RuntimeError("lost the simulator")
    rng = np.random.default_rng(np.random.SeedSequence(job.seed, spawn_key=(job.replication,)))
    values = rng.normal(job.spec.mean, job.spec.spread, size=job.size)
    return Run(replication=job.replication, mean=float(values.mean()), values=values)


@dataclass(frozen=True, kw_only=True)
class ToyExperiment(Experiment):
    size: int = 5

    job_type = ToyJob
    run_type = Run
    precise = ("time",)
    run_replication = staticmethod(run_replication)

    def summarize(self, runs, *, replications, seconds):
        assert [job.replication for job, _ in runs] == [run.replication for _, run in runs]
        assert len(runs) == replications
        means = np.array([run.mean for _, run in runs])
        return Answer.of_runs(
            spec=self.spec,
            seed=self.seed,
            metrics={
                "time": mean_interval(means, confidence=self.confidence),
                "excess": mean_interval(means - 0.9 * self.spec.mean, confidence=self.confidence),
            },
            stable=self.spec.stable,
            replications=replications,
            seconds=seconds,
            details={"values": np.concatenate([run.values for _, run in runs])},
        )


KIND = Kind(
    name="toy",
    spec=lambda: Toy,
    starter=Toy,
    simulator=lambda: ToyExperiment,
    metrics={"time": Metric("s", "drawn"), "excess": Metric("s", "above nine tenths of the mean")},
)


class EntryPoint:
    name = value = "toy"

    def load(self):
        return KIND


def register() -> None:
    """Make `validate.simulate` know this simulator."""
    kind.entry_points = lambda group: [EntryPoint()]
    forget()


def forget() -> None:
    """Let the kinds of other packages be looked for again."""
    kind._others.cache_clear()
    kind._others_by_spec.cache_clear()
