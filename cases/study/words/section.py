"""A heading, sentences and a table: the unit of a report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from cases.tables import text_table

WIDTH = 110
"""Columns of a terminal that sentences take."""

SHORT = {
    "interleaving_step": "step",
    "alloc_trial_count": "trials",
    "link_width": "link B",
    "packet_latency": "latency ns",
    "packet_latency_p99": "p99 ns",
    "saturation_data_rate": "saturates Gb/s",
    "energy_per_packet": "energy nJ",
    "cost": "cost mm2",
    "write_conflict_probability": "write conflicts",
}
"""Fields and metrics in the headings of tables."""


def _wrapped(line: str) -> str:
    # No line ends between a number and its unit.
    kept = re.sub(r"(?<=\d) (?=\S)", "\u00a0", line)
    text = fill(kept, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return text.replace("\u00a0", " ")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, sentences and a table."""

    title: str  # heading
    lines: Sequence[str] = ()  # sentences above the table
    headings: Sequence[str] = ()  # column headings with units; empty without a table
    rows: Sequence[Sequence[Any]] = ()  # numbers and words

    def text(self) -> str:
        """Return the section for a terminal."""
        parts = [self.title, *(_wrapped(line) for line in self.lines)]
        if self.rows:
            parts.append(text_table(self.headings, self.rows))
        return "\n".join(parts)
