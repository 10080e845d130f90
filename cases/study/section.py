"""A heading, sentences and a table: the unit of a report, for a terminal and a page alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any

from cases.tables import number, text_table

WIDTH = 110
"""Columns of a terminal that sentences take."""


def _wrapped(line: str) -> str:
    # No line ends between a number and its unit.
    kept = re.sub(r"(?<=\d) (?=\S)", "\u00a0", line)
    text = fill(kept, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return text.replace("\u00a0", " ")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, sentences and a table.

    Parameters
    ----------
    title : str
        Heading.
    lines : sequence of str
        Sentences above the table.
    headings : sequence of str
        Column headings with units; empty without a table.
    rows : sequence of sequence
        Numbers and words.
    """

    title: str
    lines: Sequence[str] = ()
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()

    def text(self) -> str:
        """Return the section for a terminal."""
        parts = [self.title, *(_wrapped(line) for line in self.lines)]
        if self.rows:
            parts.append(text_table(self.headings, self.rows))
        return "\n".join(parts)

    def html(self) -> str:
        """Return the section for a page."""
        body = "".join(f"<p>{escape(line)}</p>" for line in self.lines)
        if self.rows:
            cells = ["".join(f"<th>{escape(word)}</th>" for word in self.headings)]
            cells += ["".join(f"<td>{escape(number(value))}</td>" for value in row) for row in self.rows]
            body += f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
        return f"<h3>{escape(self.title)}</h3>{body}"
