"""Single answers of the command line: solved, simulated, compared or replayed, as text, CSV and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.study.packet_processor import BIAS, ERROR, error_columns
from cases.study.stated_error import LEGEND, UNKNOWN, cell
from cases.study.stream import trace_section, trace_summary
from cases.tables import csv_text, number, text_table, unit
from qmodels.systems.packets.packet_processor import PacketProcessor

if TYPE_CHECKING:
    from qmodels.error_map import MeasuredError
    from qmodels.packet_processor.result import PacketAnswer
    from qmodels.systems.spec.result import Result
    from validate import Comparison, PacketSimulation

MOST_RESOURCES = 12
SWEPT = (
    "packet_latency",
    "packet_latency_p99",
    "saturation_data_rate",
    "energy_per_packet",
    "cost",
    "write_conflict_probability",
    "max_utilization",
)
"""Metrics in the text table of a sweep."""


def is_joint(result: Result) -> bool:
    """Return whether a result is of the joint case, whose pages show every single resource."""
    return hasattr(result, "resources")


def verdict(result: PacketAnswer | PacketSimulation) -> str:
    """Return which group of resources fills up first and how far, ``saturated: dram buses at 137 %``."""
    name = str(result.bottleneck)
    # A simulation sees busy fractions only.
    load = 100 * float((result.traffic_intensity or result.utilization)[name])
    return f"{'stable' if result.stable else 'saturated'}: {name} at {load:.0f} %"


def reservations(result: PacketAnswer) -> list[str]:
    """Return why the stated error need not apply to an answer, line by line; nothing if it does."""
    if result.validated:
        return []
    return [f"{UNKNOWN}:", *(f"  {words}" for words, applies in result.doubts.items() if applies)]


def solved_text(result: Any) -> str:
    """Return an analytic answer for a terminal."""
    if not is_joint(result):
        return repr(result)
    metrics = [
        [name.replace("_", " "), value, _unit(name), _stated(result.error.get(name), bias=True)]
        for name, value in result.metrics.items()
    ]
    notes = reservations(result)
    parts = [
        "\n".join(["Analytic answer, " + verdict(result), *notes, LEGEND]),
        text_table(["metric", "analytic", "unit", "±"], metrics),
        _parts_text({"analytic": result.latency_parts}),
        _resources_text({"analytic": result.resources}),
    ]
    return "\n\n".join(parts)


def _stated(error: MeasuredError | None, *, bias: bool = False) -> str:
    """Return the stated error of a metric, in percent or in percentage points, with its signed mean."""
    if error is None or not np.isfinite(error.mean):
        return ""
    return f"{error.mean:.1f} {error.unit}" + (f" ({error.bias:+.1f})" if bias else "")


def solved_json(result: Any) -> dict[str, Any]:
    """Return an analytic answer for a program."""
    errors = result.error
    return {
        "analytic": {
            **_saved(result),
            "measured_error": {name: error.mean for name, error in errors.items()},
            "bias": {name: error.bias for name, error in errors.items()},
        },
        "units": result.units,
        "error_units": {name: error.unit for name, error in errors.items()},
    }


def solved_csv(result: Any) -> str:
    """Return an analytic answer as one row per metric."""
    names = list(result.metrics)
    return csv_text(
        {
            "metric": names,
            "unit": list(result.units.values()),
            "analytic": list(result.metrics.values()),
            **{
                column: [getattr(result.error.get(name), of, "") for name in names]
                for column, of in (("error", "mean"), ("bias", "bias"), ("error_unit", "unit"))
            },
            "validated": [result.validated] * len(names),
        }
    )


def sweep_columns(swept: Mapping[str, Any], result: Any) -> dict[str, Any]:
    """Return a sweep as columns: the swept fields, every metric, the verdict, the stated errors."""
    shape = np.shape(result.stable)
    ends = [path.rpartition(".")[2] for path in swept]
    # Two parts may have fields of one name.
    names = [end if ends.count(end) == 1 else path for path, end in zip(swept, ends, strict=True)]
    columns = {
        **dict(zip(names, swept.values(), strict=True)),
        **result.metrics,
        "stable": result.stable,
        "bottleneck": result.bottleneck,
        **error_columns(result),
    }
    return {name: np.ravel(np.broadcast_to(column, shape)) for name, column in columns.items()}


def sweep_json(columns: Mapping[str, Any], result: Any) -> dict[str, Any]:
    """Return a sweep for a program."""
    return {"analytic": columns, "units": {name: unit(name) for name in columns} | result.units}


def sweep_text(columns: Mapping[str, Any], result: Any) -> str:
    """Return a sweep for a terminal, one row per design; of some metrics."""
    main = SWEPT if is_joint(result) else tuple(result.metrics)[: len(SWEPT)]
    names = [
        name
        for name in columns
        if name in main
        or not (name in result.metrics or name.startswith((ERROR, BIAS)) or name == "validated")
    ]
    rows = [
        [
            *(cell(columns, name, row) if name in result.metrics else columns[name][row] for name in names),
            "yes" if columns["validated"][row] else "no",
        ]
        for row in range(len(columns["stable"]))
    ]
    headings = [name.replace("_", " ") + (f" {_unit(name)}" if _unit(name) else "") for name in names]
    return f"Analytic answer; {LEGEND}\n" + text_table([*headings, "validated"], rows)


def simulated_text(result: Any) -> str:
    """Return an estimate for a terminal."""
    if not is_joint(result):
        return repr(result)
    metrics = [
        [name.replace("_", " "), e.best, f"[{number(e.low)}, {number(e.high)}]", _unit(name)]
        for name, e in result.metrics.items()
    ]
    lines = [
        f"Simulated, {verdict(result)}",
        f"{_effort(result)}, {result.seconds:.1f} s",
        text_table(["metric", "simulated", "interval", "unit"], metrics),
    ]
    text = "\n".join(lines) + "\n\n" + _parts_text({"simulated": _best(result.latency_parts)})
    return text + "\n\n" + _resources_text({"simulated": _best(result.resources)}) + _short(result)


def simulated_json(result: Result) -> dict[str, Any]:
    """Return an estimate for a program."""
    return {"simulated": _saved(result), "units": result.units}


def simulated_csv(result: Result) -> str:
    """Return an estimate as one row per metric."""
    names, estimates = list(result.metrics), list(result.metrics.values())
    return csv_text(
        {
            "metric": names,
            "unit": list(result.units.values()),
            "simulated": [e.best for e in estimates],
            "low": [e.low for e in estimates],
            "high": [e.high for e in estimates],
        }
    )


def compared_text(comparison: Comparison) -> str:
    """Return model and simulation side by side for a terminal: metrics, shares of the latency, loads."""
    solved, simulated = comparison.model, comparison.reference
    if not is_joint(solved):
        return f"model: {solved.title}\nreference: {simulated.title}\n\n{comparison.table()}"
    rows = []
    for row in comparison.rows.values():
        interval = f"[{number(row.reference.low)}, {number(row.reference.high)}]"
        relative = number(100 * row.relative_error) if np.isfinite(row.relative_error) else ""
        rows.append(
            [
                row.metric.replace("_", " "),
                row.model,
                row.reference.best,
                interval,
                _unit(row.metric),
                row.error,
                relative,
                _stated(solved.error.get(row.metric)),
                "" if row.inside else "outside",
            ]
        )
    headings = [
        "metric",
        "analytic",
        "simulated",
        "interval",
        "unit",
        "error",
        "error %",
        "stated ±",
        "analytic is",
    ]
    note = "".join(f"\n{line}" for line in reservations(solved))
    parts = [
        f"Analytic: {verdict(solved)}\nSimulated: {verdict(simulated)}; {_effort(simulated)}{note}",
        text_table(headings, rows),
        _parts_text({"analytic": solved.latency_parts, "simulated": _best(simulated.latency_parts)}),
        _resources_text({"analytic": solved.resources, "simulated": _best(simulated.resources)}),
    ]
    return "\n\n".join(parts) + _short(simulated)


def compared_json(comparison: Comparison) -> dict[str, Any]:
    """Return model and simulation side by side for a program."""
    return {
        "comparison": comparison.to_dict(),
        **solved_json(comparison.model),
        **simulated_json(comparison.reference),
    }


def compared_csv(comparison: Comparison) -> str:
    """Return model and simulation side by side, one row per metric."""
    rows, error = [asdict(row) for row in comparison.rows.values()], comparison.model.error
    return csv_text(
        {
            "metric": [row["metric"] for row in rows],
            "unit": [row["unit"] for row in rows],
            "analytic": [row["model"] for row in rows],
            "simulated": [row["reference"]["best"] for row in rows],
            "low": [row["reference"]["low"] for row in rows],
            "high": [row["reference"]["high"] for row in rows],
            "error": [row["error"] for row in rows],
            "relative_error": [row["relative_error"] for row in rows],
            "stated_error": [getattr(error.get(row["metric"]), "mean", "") for row in rows],
            "stated_unit": [getattr(error.get(row["metric"]), "unit", "") for row in rows],
            "inside": [row["inside"] for row in rows],
        }
    )


def trace_text(spec: Any) -> str:
    """Return how steady the trace of a spec is, to stand below an answer; nothing without a trace."""
    section = trace_section(spec.workload) if isinstance(spec, PacketProcessor) else None
    return "" if section is None else f"\n\n{section.text()}"


def trace_json(spec: Any) -> dict[str, Any]:
    """Return the same for a program."""
    found = trace_summary(spec.workload) if isinstance(spec, PacketProcessor) else None
    return {} if found is None else {"trace": found}


def shares(answer: Result) -> dict[str, float]:
    """Return the shares of an answer's latency [ns] as plain numbers, for a plot."""
    return _best(answer.latency_parts or answer.utilization)


def _saved(result: Result) -> dict[str, Any]:
    """Return all that is saved of a result, but for its spec."""
    return {name: getattr(result, name) for name in result.saved}


def _effort(result: PacketSimulation) -> str:
    packets = result.effort["packets per replication"]
    runs = f"{result.replications} replications of {packets} packets, seed {result.seed}"
    return f"{runs}, {result.confidence:.0%} intervals"


def _best(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _unit(name: str) -> str:
    return unit(name) if unit(name) != "1" else ""


def _parts_text(answers: Mapping[str, Mapping[str, float]]) -> str:
    first = next(iter(answers.values()))
    rows: list[list[Any]] = []
    for name in first:
        row: list[Any] = [name]
        for parts in answers.values():
            total = sum(parts.values())
            row += [parts[name], f"{100 * parts[name] / total:.0f} %" if np.isfinite(total) else ""]
        rows.append(row)
    headings = ["share of the latency"]
    for name in answers:
        headings += [f"{name} ns", ""]
    return "Where the time goes\n" + text_table(headings, rows)


def _resources_text(answers: Mapping[str, Mapping[str, float]]) -> str:
    first = next(iter(answers.values()))
    order = sorted(first, key=lambda name: -first[name])
    rows = [[name, *(f"{100 * loads.get(name, 0.0):.1f} %" for loads in answers.values())] for name in order]
    more = [f"  and {len(rows) - MOST_RESOURCES} more"] if len(rows) > MOST_RESOURCES else []
    table = text_table(["resource", *(f"{name} load" for name in answers)], rows[:MOST_RESOURCES])
    return "\n".join(["Resources by load", table, *more])


def _short(result: PacketSimulation) -> str:
    return "\n\nthe runs were too short for their warm-up: use more packets" if result.short else ""
