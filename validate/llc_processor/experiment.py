"""The simulation of the packet processor with LLC slices: its replications and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.cache.llc_processor import BANKS, LlcProcessor
from qmodels.systems.spec.estimate import Estimate
from validate.campaigns.experiment import Experiment
from validate.estimates.intervals import probability_interval, ratio_interval
from validate.llc_processor.replication import COUNTED, LlcProcessorJob, Run, run_replication


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
    The caches become stationary before the clock starts, by requests that take no time; the
    queues start empty, and a tenth as many requests as are counted, at least 10,000, are dropped.

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
