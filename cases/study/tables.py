"""The tables of a study's CSV files, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases.study.check import Check, MetricError, model_error
from cases.study.packet_processor import ERROR
from cases.study.parts import Part, Study
from cases.tables import unit
from qmodels.systems.packets.packet_processor import PacketProcessor


def design_columns(part: Part) -> dict[str, Any]:
    """Return the analytic table of a part, every design a row, with its place on the front."""
    exploration = part.analysis.exploration
    rows = np.arange(len(exploration.feasible))
    return {
        **exploration.table,
        "feasible": exploration.feasible,
        "front": np.isin(rows, exploration.front),
        "knee": rows == (-1 if exploration.knee is None else exploration.knee),
        "starred": rows == (-1 if part.star.row is None else part.star.row),
        "simulated": np.isin(rows, part.check.rows if part.check else []),
        "contradiction": np.array(
            [part.star.contradicted.get(design, "") for design in exploration.table["design"].tolist()]
        ),
    }


def simulated_columns(study: Study) -> dict[str, list[Any]]:
    """Return one row per workload, simulated design and metric: analytic beside simulated."""
    names = (
        "workload",
        "design",
        "metric",
        "unit",
        "analytic",
        "stated_error",
        "simulated",
        "low",
        "high",
        "error",
    )
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for part in study.parts:
        if part.check is None:
            continue
        table, simulated = part.analysis.exploration.table, part.check.simulated.table
        for k, row in enumerate(part.check.rows):
            for metric in PacketProcessor.metric_names:
                if metric in simulated:
                    model, best = float(table[metric][row]), float(simulated[metric][k])
                    bounds = (float(simulated[f"{metric}_{end}"][k]) for end in ("low", "high"))
                    error = float(model_error(metric, model, best))
                    stated = table.get(ERROR + metric)
                    values = (
                        part.name,
                        int(simulated["design"][k]),
                        metric,
                        unit(metric),
                        model,
                        "" if stated is None else float(stated[row]) / 100,
                        best,
                        *bounds,
                        error,
                    )
                    for column, value in zip(columns.values(), values, strict=True):
                        column.append(value)
    return columns


def error_columns(study: Study) -> dict[str, list[Any]]:
    """Return the model's errors, one row per workload, range of load and metric."""
    rows = [
        {"workload": part.name, "range": region, **vars(error)}
        for part in study.parts
        if part.check
        for region, errors in error_ranges(part.check)
        for error in errors
    ]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def error_ranges(check: Check) -> list[tuple[str, tuple[MetricError, ...]]]:
    """Return the error tables of a check with the range of load each covers."""
    return [("all", check.errors), ("up to 80 % of saturation", check.errors_in_range)]


def greedy_columns(study: Study) -> dict[str, list[Any]]:
    """Return every step of every greedy search path."""
    columns: dict[str, list[Any]] = {}
    for part in study.parts:
        analysis = part.analysis
        for step in analysis.greedy.history if analysis.greedy else ():
            costs = zip(
                analysis.exploration.objectives, analysis.exploration.maximized, step.costs, strict=True
            )
            row = {
                "workload": part.name,
                "path": step.path,
                "weights": " ".join(f"{weight:g}" for weight in step.weights),
                "field": step.field or "start",
                "value": step.value,
                "design": step.design,
                **{name: -cost if maximized else cost for name, maximized, cost in costs},
                "better": step.better,
                "kept": step.kept,
            }
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
    return columns
