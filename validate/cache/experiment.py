"""The simulation of a cache system, request by request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray
from qmodels.systems.spec.estimate import Estimate
from validate.cache.hierarchies import SOURCES, new_hierarchies, request
from validate.campaigns.experiment import Experiment, Job
from validate.engine.streams import new_streams
from validate.estimates.intervals import ratio_interval


@dataclass(frozen=True, kw_only=True)
class CacheJob(Job):
    """One replication."""

    requests: int
    warm_up: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Requests served by each level and memory, those to each slice, and line moves of the warm-up."""

    served: IntArray
    slice_requests: IntArray


def run_replication(job: CacheJob) -> Run:
    """Simulate one replication."""
    streams = new_streams(seed=job.seed, replication=job.replication, sources=SOURCES)
    caches = new_hierarchies([job.spec], streams)
    request(caches, 0, job.warm_up)
    served, to_slices = request(caches, 0, job.requests)
    return Run(served=served.sum(axis=0), slice_requests=to_slices)


@dataclass(frozen=True, kw_only=True)
class CacheExperiment(Experiment):
    """The simulation of one cache system; made by `validate.simulate`."""

    requests: int = 1_000_000  # counted requests of each replication, at least 1,000
    # Requests before the counting begins. Otherwise they are as many as are counted, and at least 20 for each
    # line of all caches: caches start empty.
    warm_up: int | None = None

    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("hit_ratio",)
    run_replication = staticmethod(run_replication)

    def check(self) -> None:
        """Refuse options out of range."""
        checks.count("requests", self.requests, minimum=1000)
        if self.warm_up is not None:
            checks.count("warm_up", self.warm_up, minimum=0)

    def jobs(self, start: int, stop: int) -> list[CacheJob]:
        """Return a job for each replication."""
        spec = self.spec
        lines = spec.cores * sum(level.lines for level in spec.private)
        lines += spec.shared.lines if spec.shared else 0
        warm_up = max(self.requests, 20 * lines) if self.warm_up is None else self.warm_up
        return [
            CacheJob(spec=spec, seed=self.seed, replication=k, requests=self.requests, warm_up=warm_up)
            for k in range(start, stop)
        ]

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        served = np.array([run.served for run in runs], dtype=float)
        total = served.sum(axis=1)

        def ratio(above: Any, below: Any) -> Estimate:
            return ratio_interval(above, below, confidence=self.confidence)

        metrics = {
            "hit_ratio": ratio(total - served[:, -1], total),
            "miss_ratio": ratio(served[:, -1], total),
        }
        reach = total.copy()
        for k, name in enumerate(self.spec.level_names):
            metrics[f"hit_ratio[{name}]"] = ratio(served[:, k], reach)
            reach = reach - served[:, k]
        to_slices = np.sum([run.slice_requests for run in runs], axis=0)
        shares = to_slices / to_slices.sum() if to_slices.sum() else np.empty(0)
        return {
            "metrics": metrics,
            "details": {"slice_shares": shares},
            "effort": {"requests": self.requests},
        }
