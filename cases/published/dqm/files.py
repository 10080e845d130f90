"""The numbers of the data-queueing case as files: written with a reproduction, and read without its trace."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases.published.dqm.causes import Cause
from cases.published.dqm.explore import OBJECTIVES, Techniques, explore_techniques
from cases.published.dqm.specs import case_spec, normalised, scaled
from cases.published.dqm.tables import Cell
from cases.tables import csv_text

if TYPE_CHECKING:
    from cases.published.dqm.reproduction import Reproduction

RUN, CELLS, TECHNIQUES, CAUSES = "dqm-run.toml", "dqm-cells.csv", "dqm-techniques.csv", "dqm-causes.csv"
METRICS = (
    *OBJECTIVES,
    "allocation_failure_probability",
    "write_conflict_probability",
    "read_conflict_probability",
)
"""What is kept of each technique."""


def write_numbers(result: Reproduction, out: Path) -> list[Path]:
    """Write what was run, and the numbers in full, into a directory; return the paths."""
    run = {name: getattr(result, name) for name in ("source", "packets", "replications", "seed")}
    texts = {RUN: "".join(f"{name} = {json.dumps(value)}\n" for name, value in run.items())}
    rows: dict[str, list[dict[str, Any]]] = {CELLS: [asdict(cell) for cell in result.cells]}
    if result.techniques is not None:
        rows[TECHNIQUES] = technique_rows(result.techniques)
    if result.causes:
        rows[CAUSES] = [row for cause in result.causes for row in cause.rows()]
    texts |= {name: csv_text(columns_of(lines)) for name, lines in rows.items()}
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in texts]


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows of equal keys as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def technique_rows(techniques: Techniques) -> list[dict[str, Any]]:
    """Return the 180 techniques with their metrics and whether they are on the fronts."""
    table = techniques.exhaustive.table
    front = set(table["design"][techniques.exhaustive.front].tolist())
    survivors, overall = set(techniques.survivors.tolist()), set(techniques.overall.tolist())
    return [
        {
            **techniques.point(int(design)),
            **{name: float(table[name][row]) for name in METRICS},
            "pareto": design in front,
            "survivor": design in survivors,
            "optimal_overall": design in overall,
        }
        for row, design in enumerate(table["design"].tolist())
    ]


def read_run(folder: Path) -> dict[str, Any]:
    """Return what was run."""
    return tomllib.loads((folder / RUN).read_text(encoding="utf-8"))


def read_cells(folder: Path) -> tuple[Cell, ...]:
    """Return every number of the tables."""
    return tuple(
        Cell(
            table=row["table"],
            column=row["column"],
            trials=int(row["trials"]),
            small=int(row["small"]),
            vms1_size=int(row["vms1_size"]),
            published=float(row["published"]),
            simulated=float(row["simulated"]),
            low=float(row["low"]),
            high=float(row["high"]),
            model=float(row["model"]),
        )
        for row in _rows(folder / CELLS)
    )


def read_techniques(folder: Path) -> Techniques:
    """Return the techniques, explored again with the metrics that were kept."""
    base = case_spec()  # the techniques do not depend on the traffic
    segments = int(base.data.segments)
    known = {
        (
            int(row["alloc_trial_count"]),
            int(row["small_packet_segments"]),
            scaled(int(row["vms1_size"]), segments),
        ): {name: float(row[name]) for name in METRICS}
        for row in _rows(folder / TECHNIQUES)
    }

    def look_up(spec: Any) -> dict[str, float]:
        a = normalised(spec).allocation
        return known[a.alloc_trial_count, a.small_packet_segments, a.vms1_size]

    return explore_techniques(base, look_up)


def read_causes(folder: Path) -> tuple[Cause, ...]:
    """Return what each change of the traffic does."""
    changes: dict[str, list[dict[str, str]]] = {}
    for row in _rows(folder / CAUSES):
        changes.setdefault(row["change"], []).append(row)

    def by_trials(rows: list[dict[str, str]], name: str) -> dict[int, float]:
        return {int(row["trials"]): float(row[name]) for row in rows}

    return tuple(
        Cause(
            name=name,
            write_wo=by_trials(rows, "write_wo"),
            write_with=by_trials(rows, "write_with"),
            read_with=by_trials(rows, "read_with"),
            failures=float(rows[0]["failures"]),
            overhead=float(rows[0]["overhead"]),
        )
        for name, rows in changes.items()
    )


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [{n.partition(" [")[0]: v for n, v in row.items()} for row in csv.DictReader(file)]
