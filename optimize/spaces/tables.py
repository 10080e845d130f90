"""Tables in files that other programs read."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

from optimize.spaces.numbering import Columns
from qmodels.systems.spec.whole import whole

ROWS = 65536
"""Rows turned into Python objects at a time."""


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
        parquet, table = needs_parquet(target)
        cells = {n: [str(v) for v in c] if c.dtype.kind == "O" else c for n, c in columns.items()}
        with whole(target) as part:
            parquet.write_table(table(cells), part)
    else:
        raise ValueError(f"path must end in .csv or .parquet, got {str(path)!r}")
    return target


def needs_parquet(path: Path) -> tuple[Any, Any]:
    """Return what of pyarrow writes a file; say what is missing without it."""
    try:
        from pyarrow import parquet, table
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{str(path)!r} needs pyarrow; .csv does not") from error
    return parquet, table
