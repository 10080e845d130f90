"""What the results of all simulators share: metrics by name, as attributes, rows and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from validate.estimates.statistics import Estimate


class MetricResult:
    """A result whose ``metrics`` are estimates by name, also attributes of it."""

    metrics: Mapping[str, Estimate]

    def __getattr__(self, name: str) -> Estimate:
        try:
            metrics: Mapping[str, Estimate] = self.__dict__["metrics"]
            return metrics[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric, "1" for a pure number."""
        raise NotImplementedError

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: its name, unit, interval, and what speaks against the interval."""
        return [
            {
                "metric": name,
                "unit": self.unit_of(name),
                "low": e.low,
                "value": e.best,
                "high": e.high,
                "interval_valid": e.valid,
            }
            for name, e in self.metrics.items()
        ]

    def to_pandas(self) -> Any:
        """Return the rows as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def metric_lines(self) -> list[str]:
        """Return a line of text per metric: value, interval and unit."""
        lines = []
        width = 1 + max(map(len, self.metrics))
        for row in self.rows():
            value = f"{row['value']:>12.5g} [{row['low']:.5g}, {row['high']:.5g}]"
            unit = "" if row["unit"] == "1" else f" {row['unit']}"
            mark = "" if row["interval_valid"] else "  ?"
            lines.append(f"  {row['metric']:<{width}} {value}{unit}{mark}")
        reasons = dict.fromkeys(e.doubt for e in self.metrics.values() if e.doubt)
        return lines + [f"  ? the interval may well be too narrow and too low: {words}" for words in reasons]
