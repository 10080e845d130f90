"""Tables of columns as CSV files."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of one length; the file appears whole or not at all."""
    part = Path(path).with_name(f".{Path(path).name}.part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    part.replace(path)
