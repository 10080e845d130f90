"""Calls that are refused, and the line that each is refused with: ``refusals.txt`` in a folder of tests.

A table has lines ``call => error`` behind the imports of their names, and is collected as a test. ``python
tests/refusals.py`` writes today's errors behind the calls, to be read in the change.
"""

import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

TINY = re.compile(r"\b\d(\.\d+)?e-(1[6-9]|2\d)\b|\b0\.0e\+00\b")


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
    """Return the error of a call, or that there is none: without what Python guesses, and rounding as 0."""
    try:
        eval(call, dict(names))
    except Exception as error:
        text = re.sub(r"(unexpected keyword argument '\w+')\..*", r"\1", str(error))
        return f"{type(error).__name__}: {TINY.sub('0', text)}"
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


if __name__ == "__main__":
    tests = Path(__file__).parent
    sys.path.insert(0, str(tests.parent))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in tests.rglob("refusals.txt"):
            path.write_text("\n".join(today(path.read_text())) + "\n")
