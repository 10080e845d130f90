"""The numbers in the models that no derivation gives, kept with what is known of each of them.

A group of constants is a named tuple whose docstring says what each is and in which unit; its values stand
in ``constants.csv``, which ``python -m cases.fits NAME --write`` brings up to date.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

FILE = Path(__file__).with_name("constants.csv")
TAGS = {
    "fitted": "the command finds it from the data",
    "assumed": "nothing was fitted or derived: its meaning says what it stands for",
}

Group = TypeVar("Group")
_GROUPS: dict[str, type[Any]] = {}


@dataclass(frozen=True, kw_only=True)
class Constant:
    """One number in a model."""

    name: str  # group and field
    value: float  # what the model uses
    # best, low, high: what the command finds, and its interval of 95 %; NaN where nothing is fitted.
    best: float
    low: float
    high: float
    held_out: float  # mean size of the errors, in the form of the fit, of rows that were left out [%]
    tag: str  # one of `TAGS`
    # fit, data: the fit, and the file that it is made of.
    fit: str
    data: str
    # unit, meaning: as the docstring of the group says.
    unit: str = ""
    meaning: str = ""

    @property
    def command(self) -> str:
        """What fits it anew."""
        return f"python -m cases.fits {self.fit}" if self.fit else ""


@cache
def rows() -> dict[str, dict[str, str]]:
    """Return the rows of ``constants.csv`` by the name of the constant."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def kept(kind: type[Group], group: str) -> Group:
    """Return the kept values of a group of constants."""
    _GROUPS.setdefault(group, kind)
    make: Any = kind
    found: Group = make(*(float(rows()[f"{group}.{name}"]["value"]) for name in make._fields))
    return found


def constants() -> list[Constant]:
    """Return the constants of all groups that were imported; `cases.fits` imports every one."""
    found = []
    for group, kind in sorted(_GROUPS.items()):
        for field in kind._fields:
            row: dict[str, Any] = dict(rows()[f"{group}.{field}"])
            row |= {name: float(row[name] or "nan") for name in ("value", "best", "low", "high", "held_out")}
            unit, meaning = described(kind, field)
            found.append(Constant(**row, unit=unit, meaning=meaning))
    return found


def described(kind: type[Any], field: str) -> tuple[str, str]:
    """Return unit and meaning of a field of a group, from the docstring of the named tuple."""
    entry = re.search(
        rf"^    (?:\w+, )*{field}(?:, \w+)* : float\n((?:        .*\n?)+)", kind.__doc__ or "", re.M
    )
    if entry is None:
        raise ValueError(f"docstring of {kind.__name__} must describe {field}, got {kind.__doc__!r}")
    text = " ".join(entry[1].split())
    unit = re.search(r" \[([^\]]+)\]$", text)
    return (unit[1], text[: unit.start()]) if unit else ("1", text)
