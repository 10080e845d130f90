"""Tables: how many of their rows are distinct, and files that other programs read."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from optimize.spaces.numbering import Columns
from qmodels.systems.spec.whole import whole

MIXING = np.uint64(0xBF58476D1CE4E5B9)
"""Odd factor that spreads the bits of a number (SplitMix64): rows are told apart by 64 bits."""
ROWS = 65536
"""Rows turned into Python objects at a time."""


def distinct_rows(columns: Columns, fields: Iterable[str]) -> int:
    """Count the rows that differ in any metric, to all digits: in what is no field, number or count of ties.

    >>> columns = {"design": np.arange(3), "width": np.array([1, 2, 3]), "latency": np.array([7.0, 7.0, 5.0])}
    >>> distinct_rows(columns, ["width"])
    2
    """
    code = np.zeros(len(columns["design"]), dtype=np.uint64)
    for name, column in columns.items():
        if name in ("design", "ties", *fields):
            continue
        if column.dtype.kind in "biuf":
            bits = (column + 0.0).astype(np.float64).view(np.uint64)
        else:
            bits = np.unique(column.astype(str), return_inverse=True)[1].astype(np.uint64)
        code = (code ^ bits) * MIXING
        code ^= code >> np.uint64(29)
    return int(np.unique(code).size)


def save_table(columns: Columns, path: str | os.PathLike[str]) -> Path:
    """Write columns of equal length to ``.csv`` or ``.parquet`` and return the path.

    Numbers in CSV have as many digits as it takes to read them back unchanged.
    """
    target = Path(path)
    if target.suffix == ".csv":
        with whole(target) as part, part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for start in range(0, len(next(iter(columns.values()), ())), ROWS):
                lists = [column[start : start + ROWS].tolist() for column in columns.values()]
                writer.writerows(zip(*lists, strict=True))
    elif target.suffix == ".parquet":
        try:
            from pyarrow import parquet, table
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"{str(target)!r} needs pyarrow; .csv does not") from error
        cells = {n: [str(v) for v in c] if c.dtype.kind == "O" else c for n, c in columns.items()}
        with whole(target) as part:
            parquet.write_table(table(cells), part)
    else:
        raise ValueError(f"path must end in .csv or .parquet, got {str(path)!r}")
    return target
