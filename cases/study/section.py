"""A heading, sentences and a table: the unit of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cases.tables import text_table


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
        parts = [self.title, *(f"  {line}" for line in self.lines)]
        if self.rows:
            parts.append(text_table(self.headings, self.rows))
        return "\n".join(parts)
