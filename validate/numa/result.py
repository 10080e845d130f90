"""What the simulation of a NUMA machine found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qmodels.checks import FloatArray
from qmodels.systems.memory.numa import NUMA_METRICS
from validate.estimates.metric_result import MetricResult
from validate.estimates.statistics import Estimate


@dataclass(frozen=True, kw_only=True, eq=False)
class NumaResult(MetricResult):
    """Estimates of a NUMA machine's metrics.

    Parameters
    ----------
    metrics : mapping of str to Estimate
        By metric name, see `qmodels.systems.memory.numa.NUMA_METRICS`; also attributes of the result.
        Without random computing times their intervals have no width.
    core_time : array of float
        Mean time when each core is done; 0 for idle ones. [cycles]
    core_busy, channel_busy, controller_busy : array of float
        Mean fraction of the execution time that each computes, has a command, serves an access.
    blocks, replications, seed : int
        Blocks of one replication, and what was run.
    events : int
        Events of all runs.
    seconds : float
        Wall-clock time.
    """

    metrics: Mapping[str, Estimate]
    core_time: FloatArray
    core_busy: FloatArray
    channel_busy: FloatArray
    controller_busy: FloatArray
    blocks: int
    replications: int
    seed: int
    events: int
    seconds: float

    stable = True
    """A closed machine always ends its work."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and arrays."""
        return asdict(self)

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric."""
        return NUMA_METRICS[metric].unit

    def __repr__(self) -> str:
        confidence = next(iter(self.metrics.values())).confidence
        head = (
            f"NUMA machine, simulated: {self.replications} replications of {self.blocks} blocks, "
            f"seed {self.seed}; {confidence:.4g} intervals"
        )
        return "\n".join([head, *self.metric_lines()])
