"""Which design of a study is starred, and which simulated designs contradict the model."""

from __future__ import annotations

from dataclasses import dataclass

from cases.tables import number
from optimize.decisions.decision import Decision

SATURATED = "saturated in the simulation"


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The starred design of one workload, and what speaks against the others."""

    row: int | None  # row of the starred design in the analytic table; None if no design holds
    basis: str  # why that one, in words
    against_knee: str  # what contradicts the knee of the analytic front; empty if nothing does
    contradicted: dict[int, str]  # for each simulated design that contradicts the model, by number: how
    simulated: int  # how many designs were simulated
    by_simulation: bool = False  # whether the starred design was simulated


def recommend(decision: Decision) -> Recommendation:
    """Return what a decision recommends, and against what."""
    designs = decision.table["design"]
    words = {int(row): contradiction(decision, int(row)) for row in decision.contradicted}
    knee = decision.model.knee
    return Recommendation(
        row=decision.chosen,
        basis=decision.reason,
        against_knee="" if knee is None else words.get(knee, ""),
        contradicted={int(designs[row]): said for row, said in words.items()},
        simulated=len(decision.simulated),
        by_simulation=decision.chosen in decision.results,
    )


def contradiction(decision: Decision, row: int) -> str:
    """Return why a simulated design that the model calls feasible is none: saturated, or beyond a limit.

    Where its best values keep every limit, those are named beyond which an end of its intervals is.
    """
    table = decision.table
    if not table["stable"][row]:
        return SATURATED
    said: dict[bool, list[str]] = {True: [], False: []}
    for metric, (least, most) in decision.subject_to.items():
        low, value, high = decision.interval(metric, row)
        for bound, sign, end in ((least, -1, low), (most, 1, high)):
            if bound is None or max(sign * end, sign * value) <= sign * bound:
                continue
            missed = sign * value > sign * bound
            shown = number(value) if missed else f"{'up' if sign > 0 else 'down'} to {number(end)}"
            said[missed].append(f"{metric.replace('_', ' ')} {shown} in the simulation")
    return "; ".join(said[True] or said[False])
