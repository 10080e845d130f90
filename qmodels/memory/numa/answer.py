"""The answer of the NUMA model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qmodels.checks import FloatArray
from qmodels.error_map import MeasuredError
from qmodels.memory.numa.bounds import NumaBounds
from qmodels.systems.memory.numa import NUMA_METRICS

_AS_BUSY = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class NumaAnswer:
    """Metrics of a NUMA machine, with its bounds and where it is busy.

    Parameters
    ----------
    metrics : mapping of str to float
        By the names of `qmodels.systems.memory.numa.NUMA_METRICS`, which has their units; also attributes.
    bounds : NumaBounds
        Bounds of the execution time.
    core_time : ndarray
        When each core is done; 0 for idle ones. [cycles]
    core_busy, channel_busy, controller_busy : ndarray
        Fraction of the execution time that each computes, has a command, serves an access. Where any
        channel will do, all channels together.
    validated : bool
        Whether the machine is of a kind for which the error of the model was measured.
    error : mapping of str to MeasuredError
        By metric, the error against simulation over machines of that kind; empty where nothing was measured.
    """

    metrics: Mapping[str, float]
    bounds: NumaBounds
    core_time: FloatArray
    core_busy: FloatArray
    channel_busy: FloatArray
    controller_busy: FloatArray
    validated: bool
    error: Mapping[str, MeasuredError]

    stable = True
    """A closed machine always ends its work."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["metrics"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    @property
    def bottleneck(self) -> str:
        """The busiest group: "cores", "controllers" or "channels".

        In this order where several are as busy: a channel is also busy while it waits for a controller.
        """
        groups = {"cores": self.core_busy, "controllers": self.controller_busy, "channels": self.channel_busy}
        busy = {name: float(group.max()) for name, group in groups.items()}
        return next(name for name in busy if busy[name] >= max(busy.values()) - _AS_BUSY)

    @property
    def regime(self) -> str:
        """Return "compute" if the cores are the bottleneck, otherwise "transfer"."""
        return "compute" if self.bottleneck == "cores" else "transfer"

    @property
    def units(self) -> dict[str, str]:
        """Units of the metrics."""
        return {name: NUMA_METRICS[name].unit for name in self.metrics}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: its name, unit and value."""
        return [
            {"metric": name, "unit": NUMA_METRICS[name].unit, "value": value}
            for name, value in self.metrics.items()
        ]

    def to_pandas(self) -> Any:
        """Return the rows as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        lines = ["NUMA machine, closed network"]
        for row in self.rows():
            unit = "" if row["unit"] == "1" else row["unit"]
            lines.append(f"  {row['metric']:<24} {row['value']:>12.5g} {unit}".rstrip())
        bounds = self.bounds
        lines.append(f"  execution time between   {bounds.low:>12.5g} and {bounds.upper:.5g} cycles")
        lines.append(f"  stable, as it is closed; {self.regime} regime, busiest: {self.bottleneck}")
        lines.append(f"  double buffering can gain a factor of {bounds.overlap_speedup:.3g} at most")
        if self.validated:
            error = self.error["execution_time"]
            lines.append(
                f"  error of the execution time against simulation: {error}; {error.where}; waits are rougher"
            )
        else:
            lines.append("  outside the range in which the model's error was measured")
        return "\n".join(lines)
