"""What the measurements share: designs solved and simulated in a campaign, and tables kept as data."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from optimize.spaces.fields import replace_fields

from cases.study.check import model_error
from cases.tables import csv_text
from qmodels.systems.packets.packet_processor import PacketProcessor

Table = dict[str, npt.NDArray[Any]]


def at_load(spec: PacketProcessor, load: float) -> PacketProcessor:
    """Return a processor that is offered a part of what the model says it sustains."""
    from qmodels import solve

    full = float(solve(spec).saturation_data_rate)
    return replace_fields(spec, {"workload.offered_gbps": load * full})


def compared(
    points: Iterable[tuple[dict[str, Any], PacketProcessor]], metrics: Sequence[str], **options: Any
) -> list[dict[str, Any]]:
    """Return a row for each point and metric: what it is, model, simulated, its interval, error, stable.

    Parameters
    ----------
    points : iterable of (dict, PacketProcessor)
        What is said of each design, and the design.
    metrics : sequence of str
        The metrics.
    **options
        Of `validate.simulate`; with a ``store`` a campaign that was killed resumes.
    """
    from qmodels import solve
    from validate import simulate

    drawn = list(points)
    rows = []
    runs = simulate([spec for _, spec in drawn], **options)
    for (what, spec), run in zip(drawn, runs, strict=True):
        model = solve(spec)
        for metric in metrics:
            estimate, value = run.metrics[metric], float(model.metrics[metric])
            row = {"metric": metric, "model": value, "simulated": estimate.best}
            row |= {"low": estimate.low, "high": estimate.high}
            error = 100.0 * float(model_error(metric, value, estimate.best))
            rows.append({**what, **row, "error": error, "stable": run.stable})
    return rows


def as_columns(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the columns of a table of rows.

    Examples
    --------
    >>> as_columns([{"a": 1, "b": "x"}, {"a": 3, "b": "y"}])
    {'a': array([1, 3]), 'b': array(['x', 'y'], dtype='<U1')}
    """
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def within(values: npt.NDArray[Any], above: float, to: float) -> npt.NDArray[np.bool_]:
    """Return which values are in a region."""
    return np.asarray((values > above) & (values <= to))


def load_table(path: Path) -> Table:
    """Return the columns of a kept table without their units; numbers as numbers."""
    with open(path, newline="", encoding="utf-8") as file:
        columns = as_columns(list(csv.DictReader(file)))
    return {name.split(" [")[0]: _plain(column) for name, column in columns.items()}


def _plain(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if set(column.tolist()) <= {"True", "False"}:
        return np.equal(column, "True")
    try:
        return column.astype(float)
    except ValueError:
        return column


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for the README.

    Examples
    --------
    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [f"| {' | '.join(row)} |" for row in (headings, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(headings), *lines[1:]])


def write(path: Path, columns: Table) -> None:
    """Write a table whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(csv_text(columns), encoding="utf-8")
    os.replace(part, path)
