"""Pages of the reference that the code says: written before the documentation is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machinery import api, architecture, commands, fields, models


def setup(app: Any) -> dict[str, bool]:
    """Write the pages when a build begins."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "generated"))
    app.connect("autodoc-process-docstring", _initials, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def pages() -> Iterator[tuple[str, str]]:
    """Yield name and text of every generated page."""
    for one in (api, fields, commands, models, architecture):
        yield from one.pages()


def write(folder: Path) -> None:
    """Write all pages, those that have changed only: what has not is not read again."""
    found = {folder / name: text for name, text in pages()}
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.rglob("*.*"):
        if path not in found:
            path.unlink()


def _initials(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Keep the initial of an author at the beginning of a source from being read as the letter of a list."""
    lines[:] = [re.sub(r"^(\s*\.\. \[\w+\] )(?=[A-Z]\. )", r"\1\\", line) for line in lines]
