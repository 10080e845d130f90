"""Why a decision is what it is: what limits it, on what others fail, the traffic that it bears."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimize.analysis.sizing import size
from optimize.checks import SIGNS, Range, sides, size_of
from optimize.decisions.decision import Decision
from optimize.search.feasibility import nearest_miss, objective_values
from optimize.search.pareto import as_costs
from optimize.spaces.evaluation import LOAD, RESOURCE, STABLE, ends_of, metric_columns, saturated
from qmodels.systems.spec.fields import get_field, replace_fields, takes_array


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

    # now, most: the field that scales the traffic, and its largest value with which every limit is kept.
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
