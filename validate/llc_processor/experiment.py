"""The simulation of the packet processor with LLC slices: its replications and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qmodels import checks
from qmodels.systems.cache.llc_processor import BANKS, LLC_PROCESSOR_METRICS, LlcProcessor
from validate.estimates.intervals import Estimate, probability_interval, ratio_interval
from validate.llc_processor.replication import COUNTED, Job, Run, run_replication
from validate.llc_processor.result import LlcProcessorSimulation


@dataclass(frozen=True, kw_only=True)
class LlcProcessorExperiment:
    """The simulation of one packet processor; made by `validate.simulate`.

    Parameters
    ----------
    spec : LlcProcessor
        The design.
    seed : int
        Everything random follows from it. Each replication draws which entries share a line anew.
    confidence : float
        Coverage of the intervals (Student's, over the replications).
    requests : int
        Requests of each replication, refused ones included, at least 1000.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Exact for the system as it is described: exact replacement in every cache, exponential stages.
    The caches become stationary before the clock starts, by requests that take no time; the
    queues start empty, and a tenth as many requests as are counted, at least 10,000, are dropped.

    Examples
    --------
    >>> from validate import simulate
    >>> result = simulate(LlcProcessor(architecture="none"), requests=20_000, replications=2)
    >>> 0.94 < result.throughput.best / LlcProcessor().arrival_rate < 0.98
    True
    """

    spec: LlcProcessor
    seed: int = 0
    confidence: float = 0.95
    requests: int = 100_000

    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("mean_waiting_time",)
    run_replication: ClassVar[Callable[[Job], Run]] = staticmethod(run_replication)

    def __post_init__(self) -> None:
        if not isinstance(self.spec, LlcProcessor):
            raise ValueError(f"spec must be an LlcProcessor, got {self.spec!r}")
        checks.count("requests", self.requests, minimum=1000)

    def jobs(self, start: int, stop: int) -> list[Job]:
        """Return a job for each replication."""
        return [
            Job(spec=self.spec, seed=self.seed, replication=k, requests=self.requests)
            for k in range(start, stop)
        ]

    def summarize(
        self, runs: Sequence[tuple[Job, Run]], *, replications: int, seconds: float
    ) -> LlcProcessorSimulation:
        """Return the estimates of finished replications."""
        return LlcProcessorSimulation(
            spec=self.spec,
            metrics=_metrics(self.spec, [run for _, run in runs], self.confidence),
            requests=self.requests,
            replications=replications,
            seed=self.seed,
            seconds=seconds,
        )


def _metrics(spec: LlcProcessor, runs: Sequence[Run], confidence: float) -> dict[str, Estimate]:
    n = dict(zip(COUNTED, np.transpose([run.totals for run in runs]), strict=True))
    accepted = n["arrivals"] - n["blocked"]
    after_l1 = n["served"] - n["l1_hits"]
    after_l2 = after_l1 - n["l2_hits"]
    ns, per_gbps = spec.time_unit_ns, spec.gbps(1.0)
    ratios = {
        "throughput": (accepted * spec.arrival_rate, n["arrivals"]),
        "throughput_gbps": (accepted * spec.arrival_rate * per_gbps, n["arrivals"]),
        "blocking_probability": (n["blocked"], n["arrivals"]),
        "mean_waiting_time": (n["waited"], n["started"]),
        # Little's law holds for the integral: the response ends with the request's departure.
        "mean_response_time": (n["number"], accepted),
        "waiting_latency": (n["waited"] * ns, n["started"]),
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
        for name in LLC_PROCESSOR_METRICS
    }
