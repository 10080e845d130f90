"""Tables and pictures: aligned text, CSV with units, JSON without infinities; PNG, SVG or PDF."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from qmodels.systems.spec.metrics import METRICS, is_relative
from qmodels.systems.spec.whole import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ERROR = "error: "  # prefix of the columns that hold the error which an answer states of its metrics
BIAS = "bias: "  # prefix of the columns that hold its signed mean, below 0 where the model is too low
WORDS = {"": None, "True": True, "False": False}
_UNITS = {"interleaving_step": "segments", "link_width": "bytes"}


def unit(name: str) -> str:
    """Return the unit of a column of a study's tables, "1" for a share or a plain number, "" for words."""
    if name.startswith((ERROR, BIAS)):
        return "%" if is_relative(name.partition(": ")[2]) else "points"
    if name in ("stable", "validated", "doubts", "bottleneck", "short"):
        return ""
    stem = name.removesuffix("_low").removesuffix("_high").partition("[")[0]
    return METRICS[stem].unit if stem in METRICS else _UNITS.get(name, "1")


def heading(name: str) -> str:
    """Return a column's name with its unit.

    >>> heading("packet_latency"), heading("channels"), heading("link_width")
    ('packet_latency [ns]', 'channels', 'link_width [bytes]')
    """
    return f"{name} [{unit(name)}]" if unit(name) not in ("", "1") else name


def many(count: int, what: str) -> str:
    """Return a number of things in words.

    >>> many(1, "design"), many(0, "design")
    ('1 design', '0 designs')
    """
    return f"{count} {what}" + ("" if count == 1 else "s")


def number(value: Any) -> str:
    """Return a number with four significant digits, words as they are.

    >>> [number(value) for value in (313.3032, 0.02252, 12345.6, 7, float("inf"), True, "dram buses")]
    ['313.3', '0.02252', '12346', '7', 'inf', 'yes', 'dram buses']
    """
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.0f}" if 1e4 <= abs(float(value)) < 1e15 else f"{value:.4g}"
    return str(value)


def sentence(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """Return a sentence in lines behind ``first``, further ones behind ``rest``; a number keeps its unit.

    >>> sentence("It takes 12 ns at most", 14, "- ")
    ['- It takes', '  12 ns at', '  most']
    """
    rest = " " * len(first) if rest is None else rest
    kept = re.sub(r"(?<=\d) (?=\S)", "\u00a0", text)
    lines = wrap(kept, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]


def text_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, indent: str = "  ") -> str:
    """Return an aligned table; columns of numbers are set flush right.

    >>> print(text_table(["design", "cost mm2"], [[7, 23.316], [144, 20.8]], indent=""))
    design  cost mm2
         7     23.32
       144      20.8
    """
    rows = list(rows)
    cells = [list(map(number, row)) for row in rows]
    right = [
        all(isinstance(row[k], (int, float, np.number)) and not isinstance(row[k], bool) for row in rows)
        for k in range(len(headings))
    ]
    width = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]

    def line(words: Sequence[str]) -> str:
        parts = (
            word.rjust(w) if r else word.ljust(w) for word, w, r in zip(words, width, right, strict=True)
        )
        return (indent + "  ".join(parts)).rstrip()

    return "\n".join(map(line, [list(headings), *cells]))


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for the guide.

    >>> print(markdown_table(["a", "b"], [["1", "2"]]))
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [f"| {' | '.join(row)} |" for row in (headings, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(headings), *lines[1:]])


def with_table(text: str, table: str) -> str:
    r"""Return a text in which the table with the same first line is replaced.

    >>> with_table("before\n| a |\n|---|\n| 1 |\nafter\n", "| a |\n|---|\n| 2 |")
    'before\n| a |\n|---|\n| 2 |\nafter\n'
    """
    lines, new = text.split("\n"), table.split("\n")
    start = lines.index(new[0])
    end = next(k for k in range(start, len(lines)) if not lines[k].startswith("|"))
    return "\n".join([*lines[:start], *new, *lines[end:]])


def csv_text(columns: Mapping[str, Iterable[Any]]) -> str:
    """Return columns as CSV; the header has the units, numbers are written in full."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([heading(name) for name in columns])
    plain = (
        np.asarray(column).tolist() if isinstance(column, np.ndarray) else column
        for column in columns.values()
    )
    writer.writerows(zip(*plain, strict=True))
    return buffer.getvalue()


def columns_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns, None where a row has no such entry.

    >>> columns_of([{"a": 1}, {"a": 2, "b": 3}])
    {'a': [1, 2], 'b': [None, 3]}
    """
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def rows_of(columns: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return columns as rows.

    >>> rows_of({"a": [1, 2], "b": [3, 4]})
    [{'a': 1, 'b': 3}, {'a': 2, 'b': 4}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV: numbers, True and False as such, None for what is empty.

    The unit in a heading, in brackets, is left out.
    """
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name.partition(" [")[0]: typed(word) for name, word in row.items()}
            for row in csv.DictReader(file)
        ]


def typed(word: str) -> Any:
    """Parse a word of a CSV as a number, a truth value or text.

    >>> [typed(word) for word in ("7", "7.0", "", "True", "13-15")]
    [7, 7.0, None, True, '13-15']
    """
    if word in WORDS:
        return WORDS[word]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


def plain(value: Any) -> Any:
    """Return a value in JSON's types. Infinite numbers (waits in a saturated design) and NaN become None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def json_text(value: Any, indent: int | None = 2) -> str:
    """Return a value as JSON, see `plain`; without indentation much of it takes a fifth of the time."""
    return json.dumps(plain(value), indent=indent, allow_nan=False, ensure_ascii=False) + "\n"


FORMATS = (".png", ".svg", ".pdf")
GREY, BLUE, ORANGE, GREEN = "#c8ccd0", "#1f6fb4", "#d1610e", "#2e7d32"
SHADES = ("#6b4c9a", "#9e9ac8", "#1f6fb4", "#6baed6", "#a6761d", "#e6ab02", "#d1610e")
"""Of the shares of the latency, in their order."""


def require_format(path: Path) -> None:
    """Refuse a picture file of another format before any work is done."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"plot must be a file that ends in {', '.join(FORMATS)}, got {str(path)!r}")


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the file appears whole or not at all."""
    import matplotlib

    # A fixed salt and no date: the same study gives the same file.
    with whole(path) as part, matplotlib.rc_context({"svg.hashsalt": "qmodels", "svg.fonttype": "path"}):
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
        figure.savefig(part, format=path.suffix[1:].lower(), dpi=150, metadata=metadata)


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """Return a figure without a screen, and its axes in rows and columns."""
    from qmodels.systems.spec.pictures import Shown

    figure = Shown(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(color="#e8e8e8", linewidth=0.6)
        one.set_axisbelow(True)
    return figure, axes
