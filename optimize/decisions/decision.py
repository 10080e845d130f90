"""The answer to a question about a space: a design that was simulated, and how sure everything else is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.checks import Range
from optimize.search.exploration import Exploration, said_distinct
from optimize.search.feasibility import objective_values
from optimize.search.pareto import FloatArray, IntArray, ideal_distance
from optimize.spaces.evaluation import ends_of
from optimize.spaces.numbering import Columns
from optimize.spaces.running import distinct_rows

BoolArray = npt.NDArray[np.bool_]

LEVEL = 0.9
"""Share of the designs that the intervals of a decision are to cover."""

TIED = 0.01
"""Distance to the ideal, each objective scaled by its range on the front, by which designs are not told
apart: less than the intervals of their simulations (chosen in view)."""


class Interrupted(KeyboardInterrupt):
    """Raised by a simulation on Ctrl-C, with its finished ``results`` by place of the spec."""

    def __init__(self, results: dict[int, Any]) -> None:
        super().__init__()
        self.results = results


def lead(
    model: Exploration,
    table: Columns,
    corrected: Collection[str],
    front: IntArray,
    chosen: int,
    rows: IntArray,
) -> FloatArray:
    """Return by how much rows at the good ends of their intervals are nearer to the ideal than a choice."""
    ends = {name: "_low" if name in model.minimize else "_high" for name in corrected}
    names = tuple(name + ends.get(name, "") for name in model.objectives)
    values, good = (objective_values(table, metrics) for metrics in (model.objectives, names))
    points = np.vstack([values[[chosen]], good[rows]])
    far = ideal_distance(points, values[front], maximize=model.maximized)
    return np.asarray(far[0] - far[1:])


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Decision:
    """Every design with intervals, which were simulated, and the one to take; made by `optimize.decide`."""

    model: Exploration  #: Every design by the model
    #: The same rows. A corrected metric ``m`` has ``m`` (best), ``m_low`` and ``m_high``, the ends of its 90
    #: % interval: of a simulated design the simulation's, of the others calibrated on the simulated ones.
    #: Other metrics are the model's own, ``stable`` of a simulated design the simulation's. ``simulated``
    #: says which rows were simulated
    table: Columns
    corrected: tuple[str, ...]  #: Metrics that have intervals
    simulated: IntArray  #: Rows that were simulated, in their order
    results: dict[int, Any]  #: What the simulation returned, by row
    #: Whether the best values of a row satisfy the constraints and it keeps up; of a simulated one its whole
    #: intervals have to, if those of any simulated design do
    feasible: BoolArray
    front: IntArray  #: Rows that no other dominates by the best values, ascending
    #: Row of the recommended design, simulated unless nothing was; None if none is feasible
    chosen: int | None
    reason: str  #: Why that one, in words
    open: IntArray  #: Rows, not simulated, that could enter the front within their intervals
    settled: bool  #: Whether no row is open
    budget: float  #: Time allowed for simulations, infinite if their number was limited. [s]
    seconds: float  #: Time spent on them. [s]
    interrupted: bool  #: Whether the user stopped them
    subject_to: dict[str, Range] = field(default_factory=dict)  #: The limits ``{metric: (low, high)}``
    failed: dict[int, str] = field(default_factory=dict)  #: Why rows could not be simulated

    def interval(self, metric: str, row: int) -> tuple[float, float, float]:
        """Return low, best and high of a metric of a design; of one without interval its value thrice."""
        names = ends_of(metric) if metric in self.corrected else (metric,) * 3
        low, best, high = (float(self.table[name][row]) for name in names)
        return low, best, high

    @property
    def rivals(self) -> IntArray:
        """Open rows that could be chosen instead within their intervals.

        With the good ends of their intervals they lie nearer to the ideal of the front than the chosen one by
        more than `TIED`; of one objective, and where none is chosen, all open rows.
        """
        if self.chosen is None or len(self.model.objectives) == 1:
            return self.open
        return self.open[self._lead > TIED]

    @property
    def rivals_lead(self) -> float:
        """By how much a rival is nearer to the ideal of the front at most, in the front's ranges.

        Of a decision with a choice.
        """
        return float(np.max(self._lead, initial=0.0))

    @cached_property
    def _lead(self) -> FloatArray:
        """By how much each open row could be nearer to the ideal of the front than the chosen one."""
        assert self.chosen is not None
        return lead(self.model, self.table, self.corrected, self.front, self.chosen, self.open)

    @property
    def contradicted(self) -> IntArray:
        """Simulated rows that the model called feasible and their simulation does not."""
        rows = self.simulated
        return rows[self.model.feasible[rows] & ~self.feasible[rows]]

    @property
    def distinct_front(self) -> int:
        """Designs of the front that differ in any metric."""
        table = {name: column[self.front] for name, column in self.table.items()}
        return distinct_rows(table, self.model.space.choices)

    def __str__(self) -> str:
        total, done = len(self.feasible), len(self.simulated)
        kept = "" if self.model.complete else " of its front alone"
        lines = [
            f"{total} designs by the model{kept}{said_distinct(self.model.distinct_designs)}"
            f", {done} simulated in {self.seconds:.0f} s" + (", interrupted" if self.interrupted else ""),
            f"front: {len(self.front)} designs{said_distinct(self.distinct_front)}, "
            + ("settled" if self.settled else f"open: {len(self.open)} more could enter it"),
        ]
        if self.failed:
            lines.append(f"{len(self.failed)} could not be simulated: {next(iter(self.failed.values()))}")
        if self.chosen is None:
            return "\n".join([f"recommended: none: {self.reason}", *lines])
        label = self.model.space.label(int(self.table["design"][self.chosen]))
        values = []
        for name in dict.fromkeys((*self.model.objectives, *self.subject_to)):
            low, best, high = self.interval(name, self.chosen)
            values.append(f"{name} {best:.5g}" + (f" [{low:.5g}, {high:.5g}]" if high > low else ""))
        return "\n".join([f"recommended: {label}: {self.reason}", "  " + ", ".join(values), *lines])

    __repr__ = __str__
