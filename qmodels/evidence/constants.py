"""The numbers in the models that no derivation gives, kept with what is known of each of them.

A group of constants is a named tuple whose docstring says what each is and in which unit; its values stand
in ``constants.csv``, where ``python -m cases.evidence constants`` keeps what data say of each.
"""

from __future__ import annotations

import csv
import inspect
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

FILE = Path(__file__).with_name("constants.csv")
NUMBERS = ("value", "best", "low", "high", "held_out", "worth")
COMMAND = "python -m cases.evidence constants"
"""What measures them anew."""

Group = TypeVar("Group")
_GROUPS: dict[str, type[Any]] = {}


@dataclass(frozen=True, kw_only=True)
class Constant:
    """One number in a model."""

    name: str  # group and field
    value: float  # what the model uses
    # best, low, high: what the command finds, and its interval of 95 %; NaN where data say nothing.
    best: float
    low: float
    high: float
    held_out: float  # mean size of the errors of systems that were left out [%]
    worth: float  # by how much the mean error grows where it is the better of 0 and 1 [points]
    data: str  # file of the measured systems
    # unit, meaning: as the docstring of the group says.
    unit: str = ""
    meaning: str = ""


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
    """Return the constants of all groups that were imported; `cases.evidence.constants` imports every one."""
    found = []
    for group, kind in sorted(_GROUPS.items()):
        for field in kind._fields:
            row: dict[str, Any] = dict(rows()[f"{group}.{field}"])
            row |= {name: float(row[name] or "nan") for name in NUMBERS}
            unit, meaning = described(kind, field)
            found.append(Constant(**row, unit=unit, meaning=meaning))
    return found


def described(kind: type[Any], field: str) -> tuple[str, str]:
    """Return unit and meaning of a field of a group, from the docstring of the named tuple."""
    # From Python 3.13 docstrings have no indentation.
    doc = inspect.cleandoc(kind.__doc__ or "")
    entry = re.search(rf"^(?:\w+, )*{field}(?:, \w+)* : float\n((?:    .*\n?)+)", doc, re.M)
    if entry is None:
        raise ValueError(f"docstring of {kind.__name__} must describe {field}, got {kind.__doc__!r}")
    text = " ".join(entry[1].split())
    unit = re.search(r" \[([^\]]+)\]$", text)
    return (unit[1], text[: unit.start()]) if unit else ("1", text)
