"""The answer to a question about a space, how sure everything is, and one design for several scenarios."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np

from optimize.checks import Range
from optimize.search.exploration import Exploration, said_distinct
from optimize.search.feasibility import objective_values
from optimize.search.pareto import BoolArray, FloatArray, IntArray, as_costs, ideal_distance, nondominated
from optimize.spaces.evaluation import ends_of
from optimize.spaces.numbering import Columns
from optimize.spaces.running import distinct_rows

LEVEL = 0.9  # share of the designs that the intervals of a decision are to cover
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


@dataclass(frozen=True, kw_only=True, eq=False)
class RobustChoice:
    r"""The regret of every design under every scenario.

    Notes
    -----
    Under scenario w every objective :math:`f_k`, to be minimised, is scaled so that its best value on the
    front of w is 0 and its worst 1, as for the knee (`optimize.knee_index`). With

    .. math:: d_w(x) = \Bigl(\sum_k \Bigl(\frac{f_{kw}(x) - f_{kw}^{best}}{f_{kw}^{worst} -
        f_{kw}^{best}}\Bigr)^2\Bigr)^{1/2}, \qquad r_w(x) = d_w(x) - \min_y d_w(y),

    the least distance is that of the knee, which would be chosen if w were known to come, and the regret is
    what is lost by having chosen x instead: 0.1 is a tenth of the range of one objective. The choice is that
    of Savage's minimax regret [1]_, of equals the one with least regrets in sum, then the first. An objective
    that is the same all over a front is scaled by its size, so that with a single one the regret is relative.

    References
    ----------
    .. [1] L. J. Savage, "The theory of statistical decision", Journal of the American Statistical Association
       46(253), 1951.
    """

    names: tuple[str, ...]  #: The scenarios
    designs: IntArray  #: Numbers of the designs that all scenarios have, ascending
    #: How much farther a design is from the ideal point of a scenario than its best design; infinite where
    #: the design is not feasible
    regret: FloatArray
    best: tuple[int | None, ...]  #: The best design of each scenario, None where none is feasible
    #: The design of least greatest regret among those that are feasible under all; None if none is
    chosen: int | None

    def regret_of(self, design: int) -> dict[str, float]:
        """Return the regret of a design under each scenario."""
        column = int(np.searchsorted(self.designs, design))
        if column >= self.designs.size or self.designs[column] != design:
            raise ValueError(f"design must be one that all scenarios have, got {design}")
        return dict(zip(self.names, self.regret[:, column].tolist(), strict=True))

    @property
    def feasible(self) -> int:
        """Count of designs that are feasible under all scenarios."""
        return int(np.isfinite(self.regret).all(axis=0).sum())


def robust_choice(
    tables: Mapping[str, Columns],
    feasible: Mapping[str, BoolArray],
    *,
    minimize: tuple[str, ...] = (),
    maximize: tuple[str, ...] = (),
) -> RobustChoice:
    """Return the regret of each design under each scenario, and the design that is robust over all.

    Parameters
    ----------
    tables : mapping of str to columns
        Of each scenario the column ``design`` and the objectives, of designs of one space.
    feasible : mapping of str to ndarray of bool
        Which rows of a table satisfy the constraints of their scenario.
    minimize, maximize : tuple of str
        The objectives.

    Raises
    ------
    ValueError
        If there is no scenario or no objective, or if scenarios have no design in common.

    Examples
    --------
    Two designs that are best under one of two scenarios each, and one that is nearly as good under both:

    >>> import numpy as np
    >>> designs = {"design": np.array([0, 1, 2]), "cost": np.array([1.0, 1.0, 1.0])}
    >>> tables = {"small packets": {**designs, "latency": np.array([10.0, 20.0, 11.0])},
    ...           "large packets": {**designs, "latency": np.array([60.0, 40.0, 44.0])}}
    >>> every = {name: np.full(3, True) for name in tables}
    >>> found = robust_choice(tables, every, minimize=("latency", "cost"))
    >>> found.best, found.chosen, {name: round(r, 3) for name, r in found.regret_of(2).items()}
    ((0, 1), 2, {'small packets': 0.1, 'large packets': 0.1})
    """
    objectives, mask = (*minimize, *maximize), [False] * len(minimize) + [True] * len(maximize)
    if not tables or not objectives:
        raise ValueError("robust_choice needs scenarios and objectives, got none")
    designs = np.unique(reduce(np.intersect1d, [table["design"] for table in tables.values()]))
    if not designs.size:
        raise ValueError("scenarios must have designs in common, got none")
    regret = np.full((len(tables), designs.size), np.inf)
    best: list[int | None] = []
    for k, (name, table) in enumerate(tables.items()):
        rows = np.flatnonzero(feasible[name])
        costs = as_costs(np.stack([table[one][rows].astype(float) for one in objectives], axis=1), mask)
        front = costs[nondominated(costs)]
        distance = ideal_distance(costs, front) if len(front) else np.full(len(costs), np.inf)
        best.append(int(table["design"][rows[distance.argmin()]]) if rows.size else None)
        shared = np.isin(table["design"][rows], designs)
        columns = np.searchsorted(designs, table["design"][rows][shared])
        regret[k, columns] = (distance - distance.min(initial=np.inf))[shared]
    worst = regret.max(axis=0)
    chosen = None
    if np.isfinite(worst).any():
        order = np.lexsort((designs, regret.sum(axis=0), worst))
        chosen = int(designs[order[0]])
    return RobustChoice(names=tuple(tables), designs=designs, regret=regret, best=tuple(best), chosen=chosen)
