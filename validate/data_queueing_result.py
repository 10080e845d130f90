"""What the simulation of a data-queueing module found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qmodels._check import FloatArray
from qmodels.systems.data_queueing import DATA_QUEUEING_METRICS
from validate.statistics import Estimate


@dataclass(frozen=True, kw_only=True)
class OperationCost:
    """How often an operation ran, and its pointer-memory accesses: mean and most."""

    count: int
    mean_accesses: float
    max_accesses: int


@dataclass(frozen=True, kw_only=True, eq=False)
class DataQueueingResult:
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

    def __getattr__(self, name: str) -> Estimate:
        try:
            metrics: Mapping[str, Estimate] = self.__dict__["metrics"]
            return metrics[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        return asdict(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: its name, unit and interval."""
        return [
            {
                "metric": name,
                "unit": DATA_QUEUEING_METRICS[name].unit,
                "low": e.low,
                "best": e.best,
                "high": e.high,
            }
            for name, e in self.metrics.items()
        ]

    def to_pandas(self) -> Any:
        """Return the rows as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        confidence = next(iter(self.metrics.values())).confidence
        lines = [
            f"data queueing, simulated: {self.replications} replications of {self.packets} packets, "
            f"seed {self.seed}; {confidence:.0%} intervals"
        ]
        for name, e in self.metrics.items():
            unit = DATA_QUEUEING_METRICS[name].unit
            value = f"{e.best:>12.5g} [{e.low:.5g}, {e.high:.5g}]"
            lines.append(f"  {name:<36} {value}{'' if unit == '1' else ' ' + unit}")
        lines.append("  pointer accesses: mean, most")
        for name, cost in self.operations.items():
            lines.append(f"  {name:<36} {cost.mean_accesses:>12.5g} {cost.max_accesses}")
        return "\n".join(lines)
