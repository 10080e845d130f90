"""Designs at which a model has no answer: they are passed over, counted by kind of error, and told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from optimize.spaces.numbering import Columns, Designs

NAN = "NaN"
"""The kind of error of a model that returns what is no number."""

LONGEST = 200
"""Most characters that are kept of what an error says."""


class MisuseError(ValueError):
    """A call that makes no sense whatever the design."""


STOPS = (MisuseError, MemoryError, OSError, ImportError)
"""What ends an exploration: the call or the machine is at fault, not the design."""


@dataclass(frozen=True, kw_only=True)
class Hole:
    """Designs at which the model had no answer but one kind of error."""

    error: str  # Name of the exception, or ``"NaN"``
    designs: int  # How many designs
    first: int  # The number of the first of them
    line: str  # What the model said there, in one line

    def __str__(self) -> str:
        return f"{self.error}: {self.line}"


class Found(NamedTuple):
    """The metrics of those designs that have any, and the errors at the others."""

    designs: Designs
    columns: Columns
    errors: Mapping[int, str]  # of a design its kind, a colon and a line


def said(error: BaseException) -> str:
    """Return the kind of an error and what it says, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:LONGEST]}"


def holes_of(errors: Mapping[int, str]) -> tuple[Hole, ...]:
    """Return the holes of designs with their errors."""
    found = []
    for design, text in errors.items():
        kind, line = text.split(": ", 1)
        found.append(Hole(error=kind, designs=1, first=design, line=line))
    return joined(found)


def joined(holes: Iterable[Hole]) -> tuple[Hole, ...]:
    """Return the holes of disjoint sets of designs as those of all, one for each kind, by their first design.

    >>> one, other = (Hole(error="KeyError", designs=2, first=first, line="x") for first in (5, 3))
    >>> joined([one, other])
    (Hole(error='KeyError', designs=4, first=3, line='x'),)
    """
    found: dict[str, Hole] = {}
    for hole in sorted(holes, key=lambda one: one.first):
        known = found.get(hole.error)
        found[hole.error] = replace(known, designs=known.designs + hole.designs) if known else hole
    return tuple(found.values())
