"""Objectives and constraints as what a search wants small."""

from __future__ import annotations

import math
from dataclasses import dataclass

from optimize import checks


@dataclass(frozen=True, kw_only=True)
class Demand:
    """One side of a metric that the search wants small: ``sign * value``.

    Parameters
    ----------
    metric : str
        Its name.
    sign : {1, -1}
        Whether small or large values are wanted.
    limit : float
        Largest admissible ``sign * value``; infinite without a constraint.
    objective : bool
        Whether it is an objective, rather than a constraint only.
    """

    metric: str
    sign: int
    limit: float = math.inf
    objective: bool = False


def demands_of(
    minimize: tuple[str, ...], maximize: tuple[str, ...], ranges: dict[str, checks.Range]
) -> list[Demand]:
    """Return objectives and sides of ranges as what is wanted small, the objectives first."""
    signs = [(name, 1) for name in minimize] + [(name, -1) for name in maximize]
    limits: dict[tuple[str, int], float] = {}
    for name, (low, high) in ranges.items():
        if low is not None:
            limits[name, -1] = -low
        if high is not None:
            limits[name, 1] = high
    return [
        Demand(
            metric=name, sign=sign, limit=limits.get((name, sign), math.inf), objective=(name, sign) in signs
        )
        for name, sign in dict.fromkeys([*signs, *limits])
    ]
