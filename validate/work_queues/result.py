"""What the simulation of work queues found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qmodels.checks import FloatArray
from qmodels.systems.programs.work_queues import WORK_QUEUE_METRICS
from validate.estimates.metric_result import MetricResult
from validate.estimates.statistics import Estimate


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkQueuesResult(MetricResult):
    """Estimates of the metrics of a program on run queues.

    Parameters
    ----------
    metrics : mapping of str to Estimate
        By the names of `qmodels.systems.programs.work_queues.WORK_QUEUE_METRICS`; also attributes of the
        result.
    cluster_tasks : array of float
        Tasks that the cores of each cluster ran, mean over the replications.
    tasks, replications, seed : int
        What was run.
    seconds : float
        Wall-clock time.
    """

    metrics: Mapping[str, Estimate]
    cluster_tasks: FloatArray
    tasks: int
    replications: int
    seed: int
    seconds: float

    @property
    def stable(self) -> bool:
        """True: a finite set of tasks always comes to an end."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        return asdict(self)

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric."""
        return WORK_QUEUE_METRICS[metric].unit

    def __repr__(self) -> str:
        confidence = next(iter(self.metrics.values())).confidence
        head = (
            f"work queues, simulated: {self.replications} replications of {self.tasks} tasks, "
            f"seed {self.seed}; {confidence:.0%} intervals"
        )
        return "\n".join([head, *self.metric_lines()])
