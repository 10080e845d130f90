"""How a paper's numbers are kept in its folder ``data``: the published as TOML, the found as CSV."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cases.tables import columns_of, write_table


def data_folder(case: str) -> Path:
    """Return the folder that keeps the numbers of a case."""
    return Path(__file__).parent / case / "data"


@cache
def published(case: str) -> dict[str, Any]:
    """Return the published numbers of a case, and their tags."""
    return read_toml(data_folder(case) / "published.toml")


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def plain_row(row: Any) -> dict[str, Any]:
    """Return a row, a dataclass or a mapping, as a dictionary."""
    return asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row)


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Write rows as CSV, numbers in full."""
    write_table(path, columns_of(map(plain_row, rows)))
