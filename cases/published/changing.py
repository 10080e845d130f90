"""The systems behind published numbers, as files and with fields changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cases.published.computing import solved
from cases.published.numbers import Design
from cases.published.paper import designs_of
from cases.tables import columns_of, csv_text, text_table
from qmodels.systems.spec.fields import array_fields, varied_fields
from qmodels.systems.spec.kind import metric_of
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml


@dataclass(frozen=True, kw_only=True)
class Changed:
    """Systems of a paper with other values of some fields."""

    name: str  # Of the case, or of some of its systems
    # A metric of a system each: published, by the model as it was published and changed, and simulated
    rows: Sequence[Mapping[str, Any]]
    fields: Sequence[str]  # What was changed
    refused: Mapping[str, str] = field(default_factory=dict)  # Systems that do not take the change, and why

    def text(self) -> str:
        """Return it for a terminal."""
        shown = {"published": "published", "model": "model", "changed": "model, changed"}
        if "simulated" in self.rows[0]:
            shown["simulated"] = "simulated, changed"
        rows = [
            [row["system"], f"{row['metric']} [{row['unit']}]".replace(" [1]", ""),
             *("-" if row[name] is None else f"{row[name]:.4g}" for name in shown)]
            for row in self.rows
        ]  # fmt: skip
        lines = [text_table(["system", "metric", *shown.values()], rows)]
        if self.fields:
            said = f"not of what was changed: {', '.join(self.fields)}"
            lines.append(f"Published numbers are of the paper's systems, {said}.")
        else:
            lines.append("Nothing differs from the paper's systems.")
        marks = {"saturated": "stable", "outside the range of the model's known error": "validated"}
        for word, mark in marks.items():
            names = list(dict.fromkeys(row["system"] for row in self.rows if not row[mark]))
            lines += [f"Changed, {word}: {_first(names)}"] if names else []
        for why in dict.fromkeys(self.refused.values()):
            names = [name for name, said in self.refused.items() if said == why]
            lines.append(f"Left out: {_first(names)}: {why}")
        return f"{self.name}\n" + "\n".join(lines)

    def data(self) -> dict[str, Any]:
        """Return it for a program."""
        return {"changed": list(self.fields), "rows": list(self.rows), "left_out": dict(self.refused)}

    def csv(self) -> str:
        """Return a row per metric of a system."""
        return csv_text(columns_of(self.rows))


def _first(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def changed(name: str, changes: Mapping[str, Any], *, other: Any = None, simulated: bool = False) -> Changed:
    """Return systems of a case, ``"stnoc/table2"``, with fields changed.

    ``name``: see `designs_of`; ``changes``: values by names of fields, as ``--set`` takes them; ``other``: a
    file with the one system, edited; ``simulated``: whether to simulate the changed systems too.

    Raises ValueError if no system takes the changes, or a file is given for several.
    """
    designs, refused, specs = designs_of(name), {}, {}
    if other is not None and len(designs) > 1:
        raise ValueError(f"a file needs one system, got {len(designs)} of {name}")
    for one in designs:
        try:
            spec = spec_from_toml(other or to_toml(one.spec, kind=True), changes)
            for path in array_fields(spec):
                raise ValueError(f"{path} must be one value here, not several")
            specs[one.name] = spec
        except ValueError as error:
            refused[one.name] = str(error)
    if not specs:
        raise ValueError(next(iter(refused.values())))
    kept = [one for one in designs if one.name in specs]
    fields = {path for one in kept for path in varied_fields([one.spec, specs[one.name]])}
    runs: Any = dict.fromkeys(specs)
    if simulated:
        from validate import simulate

        runs = dict(zip(specs, simulate(list(specs.values())), strict=True))
    rows = [row for one in kept for row in _rows(one, specs[one.name], runs[one.name])]
    return Changed(name=name, rows=rows, fields=sorted(fields), refused=refused)


def _rows(design: Design, spec: Any, simulation: Any) -> Iterable[dict[str, Any]]:
    """Yield a row per metric; what is no metric of a simulation has no estimate."""
    before, after = solved(design.spec), solved(spec)
    for metric, published in design.published.items():
        row = {
            "system": design.name,
            "metric": metric,
            "unit": metric_of(design.spec, metric).unit,
            "published": published,
            "model": float(before[metric]),
            "changed": float(after.metrics[metric]) if metric in after.metrics else None,
            "stable": bool(after.stable),
            "validated": bool(after.validated),
        }
        if simulation is not None:
            ends = {"simulated": "best", "low": "low", "high": "high"}
            row |= {name: getattr(simulation.metrics.get(metric), end, None) for name, end in ends.items()}
        yield row
