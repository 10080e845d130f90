"""Calls that are refused, and the line that each is refused with: tables in ``tests/reference/refusals``.

There is a table for each room, of lines ``call => error`` behind the imports of their names. ``python
tests/test_refusals.py`` writes today's errors behind the calls, to be read in the change.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
TABLES = sorted((ROOT / "tests" / "reference" / "refusals").glob("*.txt"))


def reading(read: Callable[..., Any], content: str | bytes, name: str = "packets", **options: Any) -> Any:
    """Read a file of this content; an error calls it FILE."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        try:
            return read(path, **options)
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "FILE")) from None


def said(call: str, names: dict[str, Any]) -> str:
    """Return the error of a call, or that there is none."""
    try:
        eval(call, dict(names))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def today(text: str) -> list[str]:
    """Return the lines of a table with what is said today."""
    names: dict[str, Any] = {}
    lines = []
    for line in text.splitlines():
        if line.startswith(("import ", "from ")):
            exec(line, names)
        call, arrow, _ = line.partition(" => ")
        lines.append(f"{call} => {said(call, names)}" if arrow else line)
    return lines


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.stem)
def test_a_call_is_refused_with_its_line(table: Path) -> None:
    text = table.read_text()
    assert today(text) == text.splitlines()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in TABLES:
            path.write_text("\n".join(today(path.read_text())) + "\n")
