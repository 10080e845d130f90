"""Outcomes of all programs: how the search ended, what is proven, what it took."""

from __future__ import annotations

from dataclasses import dataclass

SUMS = "optimize, dynamic programming"
"""What solved it where no solver was asked."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramOutcome:
    """End of a search."""

    # "optimal": proven, within the tolerance or resolution that the outcome states; "feasible": a solution
    # that was not proven optimal; "infeasible": proven that there is none; "time limit": no solution in time
    status: str
    # ``|objective - bound| / |objective|`` unless said otherwise, 0 if proven; None without both
    gap: float | None
    seconds: float  # Wall time, model building included
    solver: str  # What solved it
    message: str = ""  # Why there is no solution, or empty

    @property
    def proven(self) -> bool:
        """Whether the status is proven: the solution is optimal, or there is none."""
        return self.status in ("optimal", "infeasible")


def gap_of(objective: float | None, bound: float | None) -> float | None:
    """Return the distance of an objective from its bound, relative to it; None without both.

    >>> gap_of(-4.0, -5.0), gap_of(0.0, 0.0), gap_of(3.0, None)
    (0.25, 0.0, None)
    """
    if objective is None or bound is None:
        return None
    return abs(objective - bound) / abs(objective) if objective else float(objective != bound)
