"""The loop behind the error maps of the published systems: designs solved, simulated and summed up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases.published.rows import write_rows
from cases.tables import read_rows, text_table
from qmodels.evidence.error_map import ErrorMap, summarize

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """How a model is compared with its simulation, and where the errors are kept."""

    errors: ErrorMap  # the map of the model
    about: str  # what was measured, for the head of the map
    command: str  # the module that makes it
    points: Callable[[], Iterable[tuple[Row, Any]]]  # returns what is said of each design, and the design
    # The metrics and the units of their errors ("%" or "points"), by the prefix of their columns.
    metrics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Returns the entries of the map, ``region`` among them, that a row counts in.
    where: Callable[[Row], Row] = lambda row: {}
    # What rows are sorted by for the map; by default they stay in their order.
    order: Callable[[Row], Any] = lambda row: 0
    file: Path | None = None  # keeps the rows
    options: Mapping[str, Any] = field(default_factory=dict)  # of `validate.simulate`
    # Returns a value of a metric of a design as it stands in the rows.
    convert: Callable[[Any, str, float], float] = lambda spec, metric, value: value
    decimals: int | None = None  # to which the errors in the map are rounded

    def measure(self, points: Iterable[tuple[Row, Any]] | None = None, **options: Any) -> list[Row]:
        """Return a row for each of some points, by default of all: what it is, and its `columns`."""
        from qmodels import solve
        from validate import simulate

        wanted = list(self.points() if points is None else points)
        results = simulate([spec for _, spec in wanted], **{**self.options, **options})
        return [
            {**what, **self.columns(spec, solve(spec), result)}
            for (what, spec), result in zip(wanted, results, strict=True)
        ]

    def columns(self, spec: Any, answer: Any, result: Any) -> Row:
        """Return each metric by the model, simulated, and half its interval of 95 %."""
        found = {}
        for prefix, (metric, _) in self.metrics.items():
            estimate = result.metrics[metric]
            values = {"model": float(answer.metrics[metric]), "simulated": estimate.best}
            for name, value in (values | {"half_width": estimate.half_width}).items():
                found[prefix + name] = self.convert(spec, metric, value)
        return found

    def kept(self) -> list[Row]:
        """Return the rows in the file."""
        assert self.file is not None
        return read_rows(self.file)

    def lines(self, rows: Iterable[Row]) -> list[Row]:
        """Return the map: the errors of each metric by where rows count."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in sorted(rows, key=self.order):
            groups.setdefault(tuple(self.where(row).items()), []).append(row)
        found = []
        for where, mine in groups.items():
            for prefix, (metric, unit) in self.metrics.items():
                summed = summarize((error(row, unit, prefix) for row in mine), decimals=self.decimals)
                found.append({"metric": metric, "unit": unit, **dict(where), **summed})
        return found

    def main(self) -> None:
        """Measure, write rows and map, and print it; the store lets a run that was killed resume."""
        store = Path(f"{self.command}.sqlite")
        rows = self.measure(store=store)
        if self.file is not None:
            write_rows(self.file, rows)
        lines = self.write_map(rows)
        store.unlink()
        print(text_table(list(lines[0]), [list(line.values()) for line in lines]))

    def write_map(self, rows: Iterable[Row]) -> list[Row]:
        """Write the map of some rows, and return its lines."""
        lines = self.lines(rows)
        self.errors.write(lines, about=self.about, command=f"python -m {self.command}")
        return lines


def error(row: Row, unit: str = "%", prefix: str = "") -> float:
    """Return the signed error of the model in a row: in percent, or in percentage points."""
    model, simulated = row[f"{prefix}model"], row[f"{prefix}simulated"]
    return float(100 * (model - simulated if unit == "points" else model / simulated - 1))
