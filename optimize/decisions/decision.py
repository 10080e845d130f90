"""The answer to a question about a space: how sure it is, what limits it; one design for scenarios."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np

from optimize.analysis.sizing import size
from optimize.checks import SIGNS, Range, sides, size_of
from optimize.search.exploration import Exploration, said_distinct
from optimize.search.feasibility import nearest_miss, objective_values
from optimize.search.pareto import BoolArray, FloatArray, IntArray, as_costs, ideal_distance, nondominated
from optimize.spaces.evaluation import LOAD, RESOURCE, STABLE, ends_of, metric_columns, saturated
from optimize.spaces.numbering import Columns
from optimize.spaces.running import distinct_rows
from qmodels.systems.spec.fields import get_field, replace_fields, takes_array

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


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One side of a constraint at a design."""

    # metric, sign: the metric and ``"<="`` or ``">="``.
    metric: str
    sign: str
    bound: float  # the limit
    # low, best, high: the metric at the design with its interval.
    low: float
    best: float
    high: float
    # By how much the best value keeps the limit, as a share of the limit; below 0 where it misses it.
    room: float

    @property
    def missed(self) -> bool:
        """Whether the best value is outside."""
        return self.room < 0

    @property
    def unsure(self) -> bool:
        """Whether the limit lies within the interval."""
        return self.low < self.bound < self.high


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """Another design beside the one chosen, or beside none."""

    row: int  # its row
    # Objectives and limited metrics: at the chosen design, and at this one.
    changes: dict[str, tuple[float, float]]
    # What it misses, the most first; of one that is no answer though its best values keep every limit, which
    # of them lie within its intervals.
    missed: tuple[Limit, ...]
    stable: bool  # whether it keeps up
    # resource, load: what fills up first, and how far.
    resource: str
    load: float

    @property
    def fails(self) -> bool:
        """Whether it is no answer."""
        return bool(self.missed) or not self.stable

    def gain(self, metric: str) -> float:
        """Return the relative change of a metric; of one that was 0 the difference."""
        before, after = self.changes[metric]
        if before == after:
            return 0.0
        return (after - before) / size_of(before)


@dataclass(frozen=True, kw_only=True)
class Move:
    """The neighbouring choice of one field, all others kept."""

    field: str
    before: Any
    after: Any
    to: Alternative


def limits_of(decision: Decision, row: int) -> tuple[Limit, ...]:
    """Return every side of every constraint at a design, the tightest first."""
    found = []
    for metric, way, bound in sides(decision.model.subject_to):
        low, best, high = decision.interval(metric, row)
        if np.isfinite(bound):
            room, ends = way * (bound - best) / size_of(bound), {"low": low, "best": best, "high": high}
            found.append(Limit(metric=metric, sign=SIGNS[way], bound=bound, room=room, **ends))
    return tuple(sorted(found, key=lambda one: one.room))


def bottleneck(decision: Decision, row: int) -> tuple[str, float]:
    """Return the resource that fills up first in a design and its load, as far as the model says."""
    table = decision.table
    load = float(table[LOAD][row]) if LOAD in table else float("nan")
    return str(table[RESOURCE][row]) if RESOURCE in table else "", load


def alternative(decision: Decision, row: int) -> Alternative:
    """Return a design beside the one chosen."""
    table, chosen = decision.table, decision.chosen
    at = row if chosen is None else chosen
    names = dict.fromkeys((*decision.model.objectives, *decision.model.subject_to))
    resource, load = bottleneck(decision, row)
    limits = limits_of(decision, row)
    missed = tuple(limit for limit in limits if limit.missed)
    if not missed and not decision.feasible[row]:
        missed = tuple(limit for limit in limits if limit.unsure)
    return Alternative(
        row=row,
        changes={name: (float(table[name][at]), float(table[name][row])) for name in names},
        missed=missed,
        stable=not saturated(table, decision.model.subject_to)[row],
        resource=resource,
        load=load,
    )


def moves(decision: Decision) -> tuple[Move, ...]:
    """Effect of the neighbouring choices of each field; of a field of words, of all its others."""
    space, table = decision.model.space, decision.table
    digits = space.digits(int(table["design"][decision.chosen]))
    found = []
    for axis, (name, values) in enumerate(space.choices.items()):
        others: list[int] = [k for k in range(len(values)) if k != digits[axis]]
        if name in space.numeric:
            order = sorted(range(len(values)), key=lambda k: values[k])
            place = order.index(digits[axis])
            others = [order[k] for k in (place - 1, place + 1) if 0 <= k < len(order)]
        for other in others:
            number = space.number_of([*digits[:axis], other, *digits[axis + 1 :]])
            design = int(space.numbers([int(number)])[0])
            row = int(np.searchsorted(table["design"], design))
            if row < len(table["design"]) and table["design"][row] == design:
                to = alternative(decision, row)
                found.append(Move(field=name, before=values[digits[axis]], after=values[other], to=to))
    return tuple(found)


def nearest(decision: Decision) -> int:
    """Return the row that comes nearest to being feasible."""
    model = decision.model
    costs = as_costs(objective_values(decision.table, model.objectives), model.maximized)
    return nearest_miss(decision.table, model.subject_to, costs)[0]


Evaluate = Callable[[Any], object]
Interval = tuple[float, float, float]

MOST = 8  # times the traffic up to which is looked
TOLERANCE = 3e-4  # of the range looked at: where a search for the traffic stops
TRIES = 3  # simulations that look for the traffic up to which a design keeps its limits


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Largest traffic a design carries within its limits."""

    # now, most: value of the field that scales the traffic, and the largest with which every limit is kept.
    now: float
    most: float
    # Low, best and high of the limited metrics in a simulation with that traffic; None: not simulated.
    simulated: Mapping[str, Interval] | None = None

    @property
    def change(self) -> float:
        """Relative change of the traffic."""
        return self.most / self.now - 1


def growth(
    decision: Decision, evaluate: Evaluate, traffic: str, *, factors: Mapping[str, float] | None = None
) -> Growth | None:
    """Return up to which traffic the chosen design keeps every limit; None if at no traffic.

    A metric that the decision puts by a factor above the model at this design is assumed to stay above it
    by that factor, if no other ``factors`` of model over truth are given.
    """
    at = decision.chosen
    if at is None:
        return None
    spec = decision.model.spec(at)
    now = float(get_field(spec, traffic))
    try:
        found = size(
            spec, evaluate, traffic, subject_to=_targets(decision, at, factors), within=(now, MOST * now),
            which="largest", tolerance=TOLERANCE, vectorized=takes_array(spec, traffic),
        )  # fmt: skip
    except ValueError:  # the system takes no other value there
        return None
    return None if found.value is None else Growth(now=now, most=float(found.value))


def simulated_growth(
    decision: Decision,
    evaluate: Evaluate,
    traffic: str,
    simulate: Callable[[list[Any]], Sequence[Any]],
    *,
    tries: int = TRIES,
) -> Growth | None:
    """Return up to which traffic the chosen design keeps every limit in simulations, with whole intervals.

    The model says where to look; each simulation that misses a limit corrects it. None kept after so many
    tries leaves the traffic as it is.
    """
    found = growth(decision, evaluate, traffic)
    if found is None or not tries:
        return found
    spec = decision.model.spec(decision.chosen or 0)
    for _ in range(tries):
        if found.most <= found.now:
            break
        more = replace_fields(spec, {traffic: found.most})
        columns = metric_columns(simulate([more])[0])
        # A limited field of the system stays as it is.
        limits = {name: ends for name, ends in decision.model.subject_to.items() if name in columns}
        ends = {name: _interval(columns, name) for name in limits}
        if not _over(limits, columns, ends):
            return replace(found, simulated=ends)
        ours, most = metric_columns(evaluate(more)), found.most
        worst = {name: ends[name][0 if limits[name][1] is None else 2] for name in limits}
        factors = {name: float(ours[name][0]) / true for name, true in worst.items() if true}
        sane = all(np.isfinite(one) and one > 0 for one in factors.values())
        again = growth(decision, evaluate, traffic, factors=factors) if sane and factors else None
        within = again is not None and found.now < again.most < most
        following = again.most if again is not None and within else (found.now * most) ** 0.5
        found = replace(found, most=following)
    row = decision.chosen or 0
    known = {name: decision.interval(name, row) for name in decision.model.subject_to}
    return replace(found, most=found.now, simulated=known)


def _interval(columns: Any, name: str) -> Interval:
    low, best, high = (float(columns.get(part, columns[name])[0]) for part in ends_of(name))
    return low, best, high


def _over(limits: Mapping[str, Range], columns: Any, ends: Mapping[str, Interval]) -> bool:
    """Return whether a simulation misses or may miss a limit."""
    unstable = STABLE in columns and not columns[STABLE][0]
    return unstable or any(way * ends[name][1 + way] > way * bound for name, way, bound in sides(limits))


def _targets(decision: Decision, row: int, factors: Mapping[str, float] | None = None) -> dict[str, Range]:
    """Limits on the modelled values of a design under which its corrected values keep the limits."""
    model, best = decision.model.table, decision.table
    targets: dict[str, Range] = {STABLE: (1.0, None)} if STABLE in model else {}
    for metric, (low, high) in decision.model.subject_to.items():
        ours, true = float(model[metric][row]), float(best[metric][row])
        factor = ours / true if true and np.isfinite(ours / true) and ours else 1.0
        factor = (factors or {}).get(metric, factor)
        targets[metric] = (None if low is None else low * factor, None if high is None else high * factor)
    return targets
