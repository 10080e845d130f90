"""A simulator of nothing, quick enough to run and kill campaigns of it by the hundred."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import numpy as np

from qmodels.systems.spec import kind as kinds
from qmodels.systems.spec.metrics import Metric
from validate.campaigns import experiment
from validate.estimates.simulation import Simulation
from validate.estimates.statistics import mean_interval


@dataclass(frozen=True, kw_only=True)
class Toy:
    mean: float = 10.0
    spread: float = 1.0
    stable: bool = True


@dataclass(frozen=True, kw_only=True)
class Job(experiment.Job):
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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result(Simulation):
    values: Any


@dataclass(frozen=True, kw_only=True)
class ToyExperiment(experiment.Experiment):
    size: int = 5

    job_type: ClassVar[type[Job]] = Job
    run_type: ClassVar[type] = Run
    precise: ClassVar[tuple[str, ...]] = ("time",)
    run_replication: ClassVar[Any] = staticmethod(run_replication)

    def summarize(self, runs, *, replications, seconds):
        assert [job.replication for job, _ in runs] == [run.replication for _, run in runs]
        assert len(runs) == replications
        means = np.array([run.mean for _, run in runs])
        return Result(
            spec=self.spec,
            metrics={
                "time": mean_interval(means, confidence=self.confidence),
                "excess": mean_interval(means - 0.9 * self.spec.mean, confidence=self.confidence),
            },
            stable=self.spec.stable,
            seed=self.seed,
            replications=replications,
            seconds=seconds,
            values=np.concatenate([run.values for _, run in runs]),
        )


KIND = kinds.Kind(
    name="toy",
    spec=lambda: Toy,
    starter=Toy,
    simulator=lambda: ToyExperiment,
    metrics={"time": Metric("s", "drawn"), "excess": Metric("s", "over nine tenths of the mean")},
)


def register(put=setattr) -> None:
    """Make `validate.simulate` know this simulator, as another package would."""
    point = EntryPoint("toy", "toy_simulator:KIND", kinds.GROUP)
    put(kinds, "entry_points", lambda group: [point])
    forget()


def forget() -> None:
    """Let entry points be read anew."""
    for cached in (kinds._others, kinds._others_by_spec):
        cached.cache_clear()
