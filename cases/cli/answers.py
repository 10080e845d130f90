"""Single answers of the command line: solved, swept, simulated or compared, each as text, JSON and CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.study.details import LEGEND, cell, sweep_doubts
from cases.study.packet_processor import error_columns
from cases.study.screen import words
from cases.study.stream import trace_limits, trace_note, trace_summary
from cases.tables import columns_of, csv_text, many, text_table, unit
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.saving import said

if TYPE_CHECKING:
    from qmodels.systems.spec.result import Result
    from validate import Comparison

Columns = list[tuple[str, Mapping[str, Any]]]
"""Headings, and values by name."""

MOST_ROWS = 12
MAIN = ("packet_latency", "packet_latency_p99", "saturation_data_rate", "cost", "energy_per_packet")
"""Metrics in the text table of a sweep of packet processors; of other kinds these are the first ones."""

WIDTH = 100
"""Columns of a terminal that the table of a sweep takes."""


@dataclass(frozen=True)
class Solved:
    """An analytic answer for one system."""

    result: Any

    def text(self) -> str:
        """Return it for a terminal."""
        return _text("analytic", self.result)

    def data(self) -> dict[str, Any]:
        """Return it for a program."""
        errors = self.result.error
        stated = {
            "measured_error": {name: error.mean for name, error in errors.items()},
            "bias": {name: error.bias for name, error in errors.items()},
        }
        return {
            "analytic": {**_saved(self.result), **stated, "doubts": list(self.result.notes)},
            "units": self.result.units,
            "error_units": {name: error.unit for name, error in errors.items()},
            **_trace_data(self.result),
        }

    def csv(self) -> str:
        """Return it as one row per metric."""
        names = ("metric", "unit", "analytic", "low", "high", "error", "bias", "error_unit")
        rows = ({**row, "analytic": row["value"]} for row in self.result.rows())
        lines = [{name: row.get(name, "") for name in names} for row in rows]
        trusted = {"validated": self.result.validated, "doubts": "; ".join(self.result.notes)}
        return csv_text(columns_of({**line, **trusted} for line in lines))


@dataclass(frozen=True)
class Swept:
    """Analytic answers over all combinations of swept fields, which are given by their paths."""

    fields: Mapping[str, Any]
    result: Any
    full: bool = False  # whether the text has every metric

    def columns(self) -> dict[str, Any]:
        """Return the swept fields, every metric, the verdict, errors and doubts, an entry per system."""
        ends = [path.rpartition(".")[2] for path in self.fields]
        # Two parts may have fields of one name.
        names = [end if ends.count(end) == 1 else path for path, end in zip(self.fields, ends, strict=True)]
        columns = {
            **dict(zip(names, self.fields.values(), strict=True)),
            **self.result.metrics,
            "stable": self.result.stable,
            "bottleneck": self.result.bottleneck,
            **error_columns(self.result),
            "doubts": self._doubts(),
        }
        shape = np.shape(self.result.stable)
        return {name: np.ravel(np.broadcast_to(column, shape)) for name, column in columns.items()}

    def _doubts(self) -> Any:
        """Return the doubts of each system, joined."""
        said = np.full(np.shape(self.result.stable), "", dtype=object)
        for doubt, applies in self.result.against.items():
            said += np.where(applies, f"; {doubt}", "")
        return np.array([doubt.removeprefix("; ") for doubt in said.flat]).reshape(said.shape)

    def text(self) -> str:
        """Return the first metrics for a terminal, one row per system, and the doubts below."""
        columns, metrics = self.columns(), self.result.metrics
        names = [name for name in MAIN if name in metrics]
        names += [name for name in metrics if name not in names]
        where = list(columns)[: len(self.fields)]
        tables, cells = [""], {name: self._cells(columns, name) for name in names}
        states = [
            "overloaded" if not stable else "" if validated else "doubtful"
            for stable, validated in zip(columns["stable"], columns["validated"], strict=True)
        ]
        last = [("bottleneck", columns["bottleneck"].tolist()), *([("", states)] if any(states) else [])]
        left = list(names)
        while left and (self.full or not tables[0]):
            shown = [(name.replace("_", " "), columns[name].tolist()) for name in where]
            table = ""
            while left:
                shown.append(cells[left[0]])
                heads, values = zip(*shown, *(last if not tables[0] else ()), strict=True)
                wider = text_table(heads, zip(*values, strict=True))
                if table and max(map(len, wider.splitlines())) > WIDTH:
                    break
                table, _ = wider, left.pop(0)
            tables = [*filter(None, tables), table]
        more = [f"{many(len(left), 'more metric')}: --full, --csv"] if left else []
        doubts = sweep_doubts(self.result)
        said = [] if doubts is None else [doubts.text()]
        legend = f"Analytic answer; {LEGEND if self.full else LEGEND.replace(' (signed mean)', '')}"
        return "\n\n".join(["\n".join([legend, tables[0], *more]), *tables[1:], *said, *_trace(self.result)])

    def _cells(self, columns: Mapping[str, Any], metric: str) -> tuple[str, list[Any]]:
        """Return the heading and the cells of a metric."""
        rows = range(len(columns["stable"]))
        name = metric.replace("_", " ") if self.full else words(metric)
        heading = f"{name} {unit(metric).removesuffix('1')}".rstrip()
        return heading, [cell(columns, metric, row, signed=self.full) for row in rows]

    def data(self) -> dict[str, Any]:
        """Return the columns for a program."""
        columns = self.columns()
        units = {name: unit(name) for name in columns} | self.result.units
        return {"analytic": columns, "units": units, **_trace_data(self.result)}

    def csv(self) -> str:
        """Return the columns."""
        return csv_text(self.columns())


@dataclass(frozen=True)
class Simulated:
    """An estimate for one system."""

    result: Any

    def text(self) -> str:
        """Return it for a terminal."""
        return _text("simulated", self.result)

    def data(self) -> dict[str, Any]:
        """Return it for a program."""
        return {"simulated": _saved(self.result), "units": self.result.units, **_trace_data(self.result)}

    def csv(self) -> str:
        """Return it as one row per metric."""
        names = ("metric", "unit", "simulated", "low", "high")
        rows = ({**row, "simulated": row["value"]} for row in self.result.rows())
        return csv_text(columns_of({name: row[name] for name in names} for row in rows))


@dataclass(frozen=True)
class Compared:
    """A system solved beside simulated, below what identifies it."""

    comparison: Comparison
    head: Mapping[str, Any] = field(default_factory=dict)

    @property
    def both(self) -> dict[str, Result]:
        """The two results."""
        return {"analytic": self.comparison.model, "simulated": self.comparison.reference}

    def text(self) -> str:
        """Return metrics, remarks, shares of the latency and loads side by side for a terminal."""
        solved, simulated = self.both.values()
        remarks = [
            "\n".join([f"{name}: {result.title}", *(f"  {line}" for line in result.remarks())])
            for name, result in (("model", solved), ("reference", simulated))
        ]
        stated = [[name, str(error)] for name, error in solved.error.items() if error.known]
        title = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.head.items())
        parts = [
            *([title] if title else []),
            "\n".join(remarks),
            self.comparison.table(),
            *([text_table(["metric", "stated error of the model"], stated, indent="")] if stated else []),
            *_breakdown(self.both),
            *_trace(solved),
        ]
        return "\n\n".join(parts)

    def data(self) -> dict[str, Any]:
        """Return model and simulation for a program."""
        solved, simulated = self.both.values()
        compared = {"comparison": self.comparison.to_dict()}
        return {**self.head, **compared, **Solved(solved).data(), **Simulated(simulated).data()}

    def csv(self) -> str:
        """Return model and simulation side by side, one row per metric."""
        error = self.comparison.model.error
        rows = [
            {
                "metric": name,
                "unit": row.unit,
                "analytic": row.model,
                "simulated": row.reference.best,
                "low": row.reference.low,
                "high": row.reference.high,
                "error": row.error,
                "relative_error": row.relative_error,
                "stated_error": getattr(error.get(name), "mean", ""),
                "stated_unit": getattr(error.get(name), "unit", ""),
                "inside": row.inside,
            }
            for name, row in self.comparison.rows.items()
        ]
        return csv_text(columns_of(rows))


def _text(name: str, result: Result) -> str:
    """Return a result for a terminal, with where the time goes."""
    return "\n\n".join([repr(result), *_breakdown({name: result}), *_trace(result)])


def _saved(result: Result) -> dict[str, Any]:
    """Return all that is saved of a result, but for its spec."""
    return {name: getattr(result, name) for name in result.saved} | {"stable": said(result.stable)}


def _trace(result: Any) -> list[str]:
    """Return the trace of a system in a sentence and what of it does not fit; nothing without a trace."""
    spec = result.spec
    if not isinstance(spec, PacketProcessor):
        return []
    note = trace_note(spec.workload, **trace_limits(spec, _capacity(result)))
    if note is None:
        return []
    played = ["each replication plays whole rotations of it, however few --packets"] * hasattr(
        result, "effort"
    )
    return [replace(note, lines=[*note.lines, *played]).text()]


def _trace_data(result: Any) -> dict[str, Any]:
    spec = result.spec
    if not isinstance(spec, PacketProcessor):
        return {}
    found = trace_summary(spec.workload, **trace_limits(spec, _capacity(result)))
    return {} if found is None else {"trace": found}


def _capacity(result: Any) -> Any:
    """Return the throughput that a system sustains [Gb/s], by whichever verb, if the answer has it."""
    found = result.metrics.get("saturation_data_rate")
    return getattr(found, "best", found)


def plain(values: Any) -> dict[str, float]:
    """Return shares or loads of one system as plain numbers."""
    return {str(name): float(value) for name, value in values.items()} if isinstance(values, Mapping) else {}


def _breakdown(results: Mapping[str, Result]) -> list[str]:
    """Return where the time goes, and the resources by load, as far as the results say so."""
    shares: Columns = []
    loads: Columns = []
    for name, result in results.items():
        parts = plain(result.latency_parts)
        total = sum(parts.values())
        finite = parts if np.isfinite(total) else {}
        percent = {part: f"{100 * value / total:.0f} %" for part, value in finite.items()}
        shares += [(f"{name} {result.units[result.main]}", parts), ("", percent)]
        busy = plain(getattr(result, "resources", None) or result.traffic_intensity or result.utilization)
        fullest = sorted(busy, key=lambda resource: -busy[resource])
        loads.append((f"{name} load", {resource: f"{100 * busy[resource]:.1f} %" for resource in fullest}))
    return [
        *_beside("Where the time goes", "share of the latency", shares),
        *_beside("Resources by load", "resource", loads),
    ]


def _beside(title: str, what: str, columns: Columns) -> list[str]:
    """Return values by name side by side, in the order of the first column; nothing if that is empty."""
    names = list(columns[0][1])
    rows = [[name, *(column.get(name, "") for _, column in columns)] for name in names[:MOST_ROWS]]
    more = [f"  and {len(names) - MOST_ROWS} more"] if len(names) > MOST_ROWS else []
    table = text_table([what, *(heading for heading, _ in columns)], rows)
    return ["\n".join([title, table, *more])] if names else []
