"""The tables of a study's CSV files: of all designs as columns, the others as rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
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


def simulated_rows(study: Study) -> Iterator[dict[str, Any]]:
    """Yield one row per workload, simulated design and metric: analytic beside simulated."""
    for part in study.parts:
        if part.check is None:
            continue
        table, simulated = part.analysis.exploration.table, part.check.simulated.table
        metrics = [metric for metric in PacketProcessor.metric_names if metric in simulated]
        for (k, row), metric in product(enumerate(part.check.rows), metrics):
            model, best = float(table[metric][row]), float(simulated[metric][k])
            stated = table.get(ERROR + metric)
            yield {
                "workload": part.name,
                "design": int(simulated["design"][k]),
                "metric": metric,
                "unit": unit(metric),
                "analytic": model,
                "stated_error": "" if stated is None else float(stated[row]) / 100,
                "simulated": best,
                **{end: float(simulated[f"{metric}_{end}"][k]) for end in ("low", "high")},
                "error": float(model_error(metric, model, best)),
            }


def error_rows(study: Study) -> Iterator[dict[str, Any]]:
    """Yield the model's errors, one row per workload, range of load and metric."""
    for part in study.parts:
        for region, errors in error_ranges(part.check) if part.check else ():
            yield from ({"workload": part.name, "range": region, **vars(error)} for error in errors)


def error_ranges(check: Check) -> list[tuple[str, tuple[MetricError, ...]]]:
    """Return the error tables of a check with the range of load each covers."""
    return [("all", check.errors), ("up to 80 % of saturation", check.errors_in_range)]
