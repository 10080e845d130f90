"""A study as one self-contained HTML page: nothing is loaded from elsewhere."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from cases.study.page.data import page_data
from cases.study.parts import Study

HERE = Path(__file__).parent
LIBRARIES = ("d3", "plot")
SHARED = ("elements", "picture")
"""Our scripts that serve any page."""

SCRIPTS = (*SHARED, "study", "fronts", "parallel", "designs", "system", "traffic", "errors", "main")
"""Our scripts, in the order in which they build on one another."""


def page(study: Study) -> str:
    """Return the page of a study."""
    data = page_data(study)
    scripts = (*map(library, LIBRARIES), *(_text(f"{name}.js") for name in SCRIPTS))
    parts = {
        "TITLE": escape(data["title"]),
        "STYLE": _text("page.css"),
        # A script ends at the first "</script", also in a string.
        "DATA": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        "SCRIPTS": "".join(map(script, scripts)),
    }
    html = _text("page.html")
    for name, text in parts.items():
        html = html.replace(f"@{name}@", text)
    return html


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def library(name: str) -> str:
    """Return a library with the licence that asks to be in every copy."""
    (path,) = (HERE / "libraries").glob(f"{name}.*js")
    licence = _text(f"libraries/LICENSE-{name}")
    return f"/*\n{licence}*/\n{path.read_text(encoding='utf-8')}"


def shared() -> tuple[str, str]:
    """Return the style of all pages of ours, and the scripts that they share beside the libraries."""
    return _text("page.css"), "\n".join(_text(f"{name}.js") for name in SHARED)


def script(text: str) -> str:
    """Return the element that runs a script."""
    return f"<script>{text}</script>\n"
