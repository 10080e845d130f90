"""What the simulation of a packet processor with LLC slices found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qmodels.systems.cache.llc_processor import LLC_PROCESSOR_METRICS, LlcProcessor
from validate.estimates.intervals import Estimate
from validate.estimates.metric_result import MetricResult


@dataclass(frozen=True, kw_only=True, eq=False)
class LlcProcessorSimulation(MetricResult):
    """Estimates of the steady state of an `LlcProcessor`.

    Parameters
    ----------
    spec : LlcProcessor
        What was simulated.
    metrics : mapping of str to Estimate
        By the names of `LLC_PROCESSOR_METRICS`; also attributes of the result.
    requests, replications, seed : int
        What was run.
    seconds : float
        Wall-clock time.
    """

    spec: LlcProcessor
    metrics: Mapping[str, Estimate]
    requests: int
    replications: int
    seed: int
    seconds: float

    @property
    def stable(self) -> bool:
        """Always: what would be too much is refused."""
        return True

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric."""
        return LLC_PROCESSOR_METRICS[metric].unit

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        return asdict(self)

    def __repr__(self) -> str:
        confidence = next(iter(self.metrics.values())).confidence
        heading = (
            f"LLC processor ({self.spec.architecture}), simulated: {self.replications} replications of "
            f"{self.requests} requests, seed {self.seed}; {confidence:.0%} intervals"
        )
        return "\n".join([heading, *self.metric_lines()])
