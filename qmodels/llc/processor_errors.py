"""How far the model of the LLC-slice processor was found to be from its simulation, and where."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from qmodels.systems.cache.llc_processor import LlcProcessor

FILE = Path(__file__).with_name("processor_errors.csv")
NEARLY_FULL = (0.75, 1.1)
VARIED = ("cores", "slices", "capacity", "channels", "line_bytes", "load")
"""What was varied, apart from the law of the entries; a design is inside if each is between two values."""


@dataclass(frozen=True, kw_only=True)
class MeasuredError:
    """Differences between model and simulation, over the designs of an architecture that were tried.

    Parameters
    ----------
    designs : int
        How many.
    blocking : float
        Largest difference of the blocking probability.
    mean_waiting, waiting : float
        Mean and largest relative difference of the mean waiting time.
    """

    designs: int
    blocking: float
    mean_waiting: float
    waiting: float

    def __str__(self) -> str:
        return (
            f"error in {self.designs} simulated designs: blocking at most {100 * self.blocking:.1f} points, "
            f"waiting {100 * self.mean_waiting:.1f} % on average, {100 * self.waiting:.0f} % at most"
        )


@cache
def error_rows() -> tuple[dict[str, Any], ...]:
    """Return the designs with what was simulated and solved (``cases.published.llc3d.errors``)."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return tuple(
            {
                name: value if name in ("architecture", "assignment") else float(value)
                for name, value in row.items()
            }
            for row in rows
        )


@cache
def measured_error(architecture: str) -> MeasuredError:
    """Return what was found for an architecture where the LLC is not nearly full."""
    rows = [
        row
        for row in error_rows()
        if row["architecture"] == architecture and not nearly_full(row["llc_load"])
    ]
    blocking = [abs(row["blocking_model"] - row["blocking_simulated"]) for row in rows]
    waiting = [abs(row["waiting_model"] / row["waiting_simulated"] - 1) for row in rows]
    return MeasuredError(
        designs=len(rows),
        blocking=max(blocking),
        mean_waiting=sum(waiting) / len(waiting),
        waiting=max(waiting),
    )


def nearly_full(llc_load: float) -> bool:
    """Return whether the LLC has long queues that come and go, where the model may be far off.

    Parameters
    ----------
    llc_load : float
        What the LLC would have to do if no request were refused, over what it can do.
    """
    return NEARLY_FULL[0] < llc_load < NEARLY_FULL[1]


def is_validated(spec: LlcProcessor, *, llc_load: float) -> bool:
    """Return whether the model's error was measured in a range around a design.

    Every field that was varied is between two values that were tried, the others are as they were,
    and the LLC is not nearly full.
    """
    rows = error_rows()
    values: Mapping[str, float] = {name: getattr(spec, name) for name in VARIED} | {
        "entries": spec.popularity.entries,
        "exponent": spec.popularity.exponent,
    }
    inside = all(min(row[n] for row in rows) <= v <= max(row[n] for row in rows) for n, v in values.items())
    free = {*VARIED, "architecture", "popularity", "assignment", "time_unit_ns", "packet_bytes"}
    default = LlcProcessor()
    same = all(getattr(spec, f.name) == getattr(default, f.name) for f in fields(spec) if f.name not in free)
    return inside and same and spec.popularity.shift == 0 and not nearly_full(llc_load)
