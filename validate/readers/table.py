"""Runs in the columns of a CSV or Parquet file."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qmodels import checks
from qmodels.systems.spec.conditions import FAMILIES
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.spec.metrics import METRICS, metric
from validate.readers.run_set import Paths, Run, RunSet, find_files, number, point, wrong

EXPECTED = "a table with a row per run, CSV with a header line or Parquet"

_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")

Row = dict[str, Any]

SUFFIXES = {"cycles": "cycles"} | {
    unit.replace("/", "p").lower(): unit for k in (0, 2, 4, 5) for unit in FAMILIES[k]
}
"""Units by how the names of columns end: ``packet_latency_us``, ``data_rate_gbps``."""


def read_table(
    paths: Paths,
    *,
    metrics: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | Iterable[str] | None = None,
    units: Mapping[str, str] | None = None,
    intervals: Mapping[str, tuple[str, str]] | None = None,
    confidence: float = 0.95,
    stable: str | None = None,
) -> RunSet:
    r"""Read runs from CSV (``.csv``, ``.tsv``) or Parquet files (``.parquet``, needs pyarrow).

    Parameters
    ----------
    paths : path, pattern or sequence of them
        Files with a row per run.
    metrics : mapping of str to str, optional
        ``{name of the metric: column}``. An empty cell or NaN is what was not measured. Otherwise the
        columns that are called as metrics of ours are, in the unit that their name ends with,
        ``packet_latency [us]`` or ``packet_latency_us``, or in that of the metric;
        ``packet_latency_low`` and ``_high`` are the ends of its interval.
    settings : mapping or iterable of str, optional
        ``{name of the setting: column}`` or the columns; otherwise all columns not used elsewhere.
    units : mapping of str to str, optional
        Units by metric.
    intervals : mapping, optional
        ``{metric: (column of the lower end, column of the upper end)}``.
    confidence : float
        Coverage of those intervals.
    stable : str, optional
        Column that says whether a run has a steady state (true/false, yes/no, 1/0).

    Returns
    -------
    RunSet
        A run per row.

    Raises
    ------
    ValueError
        If a file is no such table or was cut off, a column is missing or a cell is no number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.csv").write_text("inj,lat [ns],lo,hi\n0.1,12,11,13\n0.2,17,15,19\n")
    ...     runs = read_table(f"{folder}/a.csv", metrics={"packet_latency": "lat [ns]"},
    ...         settings={"injection_rate": "inj"}, intervals={"packet_latency": ("lo", "hi")},
    ...         units={"packet_latency": "ns"})
    >>> runs.runs[1].settings, runs.runs[1].metrics["packet_latency"].high
    ({'injection_rate': 0.2}, 19.0)
    """
    if metrics is None:
        path = find_files(paths)[0]
        columns = _table(path)[0]
        metrics, units, intervals = _by_name(columns, units or {}, intervals or {})
        if not metrics:
            raise wrong(path, "a table with a metric, such as packet_latency [ns]", f"it has {columns}")
    if not metrics:
        raise ValueError("metrics must name at least one column, got none")
    ends = dict(intervals or {})
    for name in [*ends, *(units or {})]:
        if name not in metrics:
            raise ValueError(f"intervals and units must be of a metric, got {name!r}")
    runs: list[Run] = []
    for path in find_files(paths):
        columns, rows = _table(path)
        used = [
            *metrics.values(),
            *(one for pair in ends.values() for one in pair),
            *([stable] if stable else []),
        ]
        rest = [name for name in columns if name not in used]
        wanted = _wanted(rest if settings is None else settings)
        for name in [*used, *wanted.values()]:
            if name not in columns:
                raise ValueError(f"{path} has no column {name!r}{checks.nearest(name, columns)}")
        for k, row in enumerate(rows, 1):
            where = f"{path}, row {k}"
            runs.append(
                Run(
                    settings={
                        ours: row[theirs] for ours, theirs in wanted.items() if row[theirs] is not None
                    },
                    metrics=_metrics(row, metrics, ends, confidence, where),
                    stable=True if stable is None else _truth(row[stable], stable, where),
                    source=where,
                )
            )
    return RunSet(tool="table", runs=tuple(runs), units=dict(units or {}))


def _table(path: Path) -> tuple[Sequence[str], list[Row]]:
    return _parquet(path) if path.suffix.lower() == ".parquet" else _csv(path)


def _by_name(
    columns: Sequence[str], units: Mapping[str, str], intervals: Mapping[str, tuple[str, str]]
) -> tuple[dict[str, str], dict[str, str], dict[str, tuple[str, str]]]:
    """Return the columns that are called as metrics, their units and intervals.

    >>> _by_name(["width", "packet_latency_us", "packet_latency_low [us]", "packet_latency_high"], {}, {})[1:]
    ({'packet_latency': 'us'}, {'packet_latency': ('packet_latency_low [us]', 'packet_latency_high')})
    """
    found: dict[str, tuple[str, str]] = {}
    for column in columns:
        stem, unit = _stem(column)
        if stem in found:
            raise ValueError(f"columns must name {stem} once, got {found[stem][0]!r} and {column!r}")
        found[stem] = column, unit
    metrics = {stem: one[0] for stem, one in found.items() if stem.partition("[")[0] in METRICS}
    ends = dict(intervals)
    for stem, column in metrics.items():
        pair = [found.get(stem + end, ("", "")) for end in ("_low", "_high")]
        for end, unit in pair:
            if unit and unit != (found[stem][1] or metric(stem).unit):
                raise ValueError(f"{end!r} must be in the unit of {column!r}")
        if all(end for end, _ in pair):
            ends.setdefault(stem, (pair[0][0], pair[1][0]))
    return metrics, {stem: found[stem][1] or metric(stem).unit for stem in metrics} | dict(units), ends


def _stem(column: str) -> tuple[str, str]:
    """Return a column without its unit, and that.

    >>> _stem("packet_latency [us]"), _stem("packet_latency_us_low"), _stem("link_width"), _stem("hold_ns")
    (('packet_latency', 'us'), ('packet_latency_low', 'us'), ('link_width', ''), ('hold_ns', ''))
    """
    if column.endswith("]") and " [" in column:
        stem, _, unit = column[:-1].rpartition(" [")
        return stem, unit
    words = column.split("_")
    end = "_" + words.pop() if words[-1] in ("low", "high") else ""
    stem, unit = "_".join(words[:-1]), SUFFIXES.get(words[-1].lower(), "")
    if stem.endswith(("_low", "_high")):
        stem, _, end = stem.rpartition("_")
        end = f"_{end}"
    return (stem + end, unit) if unit and stem in METRICS else (column, "")


def _wanted(settings: Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    return dict(settings) if isinstance(settings, Mapping) else {name: name for name in settings}


def _csv(path: Path) -> tuple[Sequence[str], list[Row]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = list(csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
    except (UnicodeDecodeError, csv.Error) as error:
        raise wrong(path, EXPECTED, str(error)) from None
    lines = [line for line in lines if line]
    if len(lines) < 2:
        raise wrong(path, EXPECTED, f"it has {len(lines)} lines")
    columns = [name.strip() for name in lines[0]]
    rows = []
    for k, line in enumerate(lines[1:], 1):
        if len(line) != len(columns):
            raise wrong(path, EXPECTED, f"row {k} has {len(line)} cells for {len(columns)} columns")
        cells = zip(columns, line, strict=True)
        rows.append({name: number(cell.strip()) if cell.strip() else None for name, cell in cells})
    return columns, rows


def _parquet(path: Path) -> tuple[Sequence[str], list[Row]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError(f"reading {path} needs pyarrow: install it or write CSV") from None
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise wrong(path, EXPECTED, str(error).partition("\n")[0]) from None
    if not table.num_rows:
        raise wrong(path, EXPECTED, "it has no rows")
    return table.column_names, table.to_pylist()


def _metrics(
    row: Row, metrics: Mapping[str, str], ends: Mapping[str, tuple[str, str]], confidence: float, where: str
) -> dict[str, Estimate]:
    found = {}
    for name, column in metrics.items():
        best = _value(row[column], column, where)
        if math.isnan(best):
            continue
        if name not in ends:
            found[name] = point(best)
            continue
        low, high = (_value(row[end], end, where) for end in ends[name])
        if not low <= best <= high:
            rule = f"{ends[name][0]} <= {column} <= {ends[name][1]}"
            raise ValueError(f"{where} must have {rule}, got {low:g}, {best:g}, {high:g}")
        found[name] = Estimate(low=low, best=best, high=high, confidence=confidence)
    return found


def _value(cell: Any, column: str, where: str) -> float:
    if cell is None:
        return math.nan
    if isinstance(cell, str):
        raise ValueError(f"{where} must have a number in column {column!r}, got {cell!r}")
    return float(cell)


def _truth(cell: Any, column: str, where: str) -> bool:
    word = str(cell).lower()
    if word not in _YES + _NO:
        raise ValueError(f"{where} must have true or false in column {column!r}, got {cell!r}")
    return word in _YES
