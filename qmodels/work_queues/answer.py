"""The answer of the work-queue model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qmodels.checks import FloatArray
from qmodels.error_map import MeasuredError
from qmodels.systems.programs.work_queues import WORK_QUEUE_METRICS


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkQueuesAnswer:
    """How long a set of tasks takes, and where the time goes.

    Parameters
    ----------
    metrics : mapping of str to float
        Values by the names of `qmodels.systems.programs.work_queues.WORK_QUEUE_METRICS`, which has their
        units; also attributes of the answer.
    lower_bounds : mapping of str to float
        What no order of the tasks can beat: ``"work"`` over all cores, the busiest ``"memory"``, and
        the longest ``"path"`` of tasks that find each other. [cycles]
    cluster_tasks : array of float
        Tasks that the cores of each cluster run.
    bottleneck : str
        The largest of the bounds.
    stable : bool
        True: a finite set of tasks always comes to an end.
    validated : bool
        Whether the spec lies in the range in which the error was measured.
    error : mapping of str to MeasuredError
        By metric, the error against simulation there.
    """

    metrics: Mapping[str, float]
    lower_bounds: Mapping[str, float]
    cluster_tasks: FloatArray
    bottleneck: str
    stable: bool
    validated: bool
    error: Mapping[str, MeasuredError]

    def __getattr__(self, name: str) -> float:
        try:
            metrics: Mapping[str, float] = self.__dict__["metrics"]
            return metrics[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: its name, unit and value."""
        return [
            {"metric": name, "unit": WORK_QUEUE_METRICS[name].unit, "value": value}
            for name, value in self.metrics.items()
        ]

    def to_pandas(self) -> Any:
        """Return the rows as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        lines = ["work queues"]
        for row in self.rows():
            unit = "" if row["unit"] == "1" else f" {row['unit']}"
            lines.append(f"  {row['metric']:<22} {row['value']:>12.5g}{unit}")
        bounds = ", ".join(f"{name} {value:.4g}" for name, value in self.lower_bounds.items())
        lines.append(f"  at least {bounds} cycles")
        lines.append(
            f"  error of the makespan against simulation: {self.error['makespan']}; waits are rougher"
        )
        if not self.validated:
            lines.append("  outside the range in which that was measured")
        return "\n".join(lines)
