"""What the simulation of a data-queueing module found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qmodels.checks import FloatArray
from qmodels.systems.packets.data_queueing import DATA_QUEUEING_METRICS
from validate.estimates.metric_result import MetricResult
from validate.estimates.statistics import Estimate


@dataclass(frozen=True, kw_only=True)
class OperationCost:
    """How often an operation ran, and its pointer-memory accesses: mean and most."""

    count: int
    mean_accesses: float
    max_accesses: int


@dataclass(frozen=True, kw_only=True, eq=False)
class DataQueueingResult(MetricResult):
    """Estimates of a data-queueing module's metrics.

    Parameters
    ----------
    metrics : mapping of str to Estimate
        By metric name, see `DATA_QUEUEING_METRICS`; also attributes of the result.
    operations : mapping of str to OperationCost
        Of each operation of the queue manager; "allocate" is a part of "enqueue segment", "free"
        one of "delete packet".
    allocation_accesses, deletion_accesses : array of float
        Share of the allocations (the deletions) that take 0, 1, 2, ... pointer accesses.
    packets, replications, seed : int
        What was run.
    queue_operations : int
        Operations simulated in all.
    seconds : float
        Wall-clock time.
    """

    metrics: Mapping[str, Estimate]
    operations: Mapping[str, OperationCost]
    allocation_accesses: FloatArray
    deletion_accesses: FloatArray
    packets: int
    replications: int
    seed: int
    queue_operations: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        return asdict(self)

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric."""
        return DATA_QUEUEING_METRICS[metric].unit

    def __repr__(self) -> str:
        confidence = next(iter(self.metrics.values())).confidence
        lines = [
            f"data queueing, simulated: {self.replications} replications of {self.packets} packets, "
            f"seed {self.seed}; {confidence:.0%} intervals"
        ]
        lines += self.metric_lines()
        lines.append("  pointer accesses: mean, most")
        for name, cost in self.operations.items():
            lines.append(f"  {name:<36} {cost.mean_accesses:>12.5g} {cost.max_accesses}")
        return "\n".join(lines)
