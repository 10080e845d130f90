"""The traffic that a decision bears, found by solving and by simulating on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optimize.analysis.sizing import size
from optimize.checks import SIGNS, Range, sides
from optimize.decisions.reasons import Question
from optimize.spaces.evaluation import LOAD, RESOURCE, STABLE, ends_of, metric_columns
from qmodels.systems.spec.fields import get_field, replace_fields, takes_array

Evaluate = Callable[[Any], object]
Interval = tuple[float, float, float]

MOST = 8
"""Times the traffic up to which is looked."""

LEAST = 1000
"""Share of the traffic, inverted, down to which is looked where nothing is feasible."""

TOLERANCE = 3e-4
"""Of the range looked at: where a search for the traffic stops."""

TRIES = 3
"""Simulations that look for the traffic up to which a design keeps its limits."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Largest traffic a design carries within its limits."""

    field: str  # the field that scales the traffic
    # now, most: its value, and the largest with which every limit is kept.
    now: float
    most: float
    # Which limits are missed just above: metric, sign, bound; of a design that does not keep up the word
    # "stable" alone.
    over: tuple[tuple[str, str, float], ...]
    # resource, load: what is fullest there, by the model.
    resource: str
    load: float
    # Low, best and high of the limited metrics in a simulation with that traffic; None: not simulated.
    simulated: Mapping[str, Interval] | None = None
    failed: float | None = None  # a value at which a simulation missed a limit

    @property
    def change(self) -> float:
        """Relative change of the traffic."""
        return self.most / self.now - 1


def growth(
    question: Question,
    evaluate: Evaluate,
    traffic: str,
    *,
    row: int | None = None,
    factors: Mapping[str, float] | None = None,
) -> Growth | None:
    """Return up to which traffic a design (default: the chosen one) keeps every limit; None if at no traffic.

    A metric that the decision puts by a factor above the model at this design is assumed to stay above it
    by that factor, if no other ``factors`` of model over truth are given.
    """
    decision = question.decision
    at = decision.chosen if row is None else row
    if at is None:
        return None
    spec = decision.model.spec(at)
    now = float(get_field(spec, traffic))
    reach = (now, MOST * now) if at == decision.chosen else (now / LEAST, now)
    targets = _targets(question, at, factors)
    try:
        found = size(
            spec, evaluate, traffic, subject_to=targets, within=reach, which="largest",
            tolerance=TOLERANCE, vectorized=takes_array(spec, traffic),
        )  # fmt: skip
    except ValueError:  # the system takes no other value there
        return None
    if found.value is None:
        return None
    over: tuple[tuple[str, str, float], ...] = ()
    resource, load = question.bottleneck(at)
    if found.misses is not None:
        columns = metric_columns(evaluate(replace_fields(spec, {traffic: float(found.misses)})))
        over = _missed(question, targets, columns)
        resource = str(columns[RESOURCE][0]) if RESOURCE in columns else resource
        load = float(columns[LOAD][0]) if LOAD in columns else load
    return Growth(field=traffic, now=now, most=float(found.value), over=over, resource=resource, load=load)


def simulated_growth(
    question: Question,
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
    found = growth(question, evaluate, traffic)
    if found is None or not tries:
        return found
    spec = question.decision.model.spec(question.decision.chosen or 0)
    for _ in range(tries):
        if found.most <= found.now:
            break
        more = replace_fields(spec, {traffic: found.most})
        columns = metric_columns(simulate([more])[0])
        # A limited field of the system stays as it is.
        limits = {name: ends for name, ends in question.subject_to.items() if name in columns}
        ends = {name: _interval(columns, name) for name in limits}
        over = _over(limits, columns, ends)
        if not over:
            return replace(found, simulated=ends)
        ours, most = metric_columns(evaluate(more)), found.most
        worst = {name: ends[name][0 if limits[name][1] is None else 2] for name in limits}
        factors = {name: float(ours[name][0]) / true for name, true in worst.items() if true}
        sane = all(np.isfinite(one) and one > 0 for one in factors.values())
        again = growth(question, evaluate, traffic, factors=factors) if sane and factors else None
        within = again is not None and found.now < again.most < most
        following = again.most if again is not None and within else (found.now * most) ** 0.5
        found = replace(found, most=following, failed=most, over=over)
    decision, row = question.decision, question.decision.chosen or 0
    known = {name: decision.interval(name, row) for name in question.subject_to}
    return replace(found, most=found.now, simulated=known)


def _interval(columns: Any, name: str) -> Interval:
    low, best, high = (float(columns.get(part, columns[name])[0]) for part in ends_of(name))
    return low, best, high


def _over(
    limits: Mapping[str, Range], columns: Any, ends: Mapping[str, Interval]
) -> tuple[tuple[str, str, float], ...]:
    """Return which limits a simulation misses or may miss."""
    if STABLE in columns and not columns[STABLE][0]:
        return ((STABLE, ">=", 1.0),)
    return tuple(
        (name, SIGNS[way], bound)
        for name, way, bound in sides(limits)
        if way * ends[name][1 + way] > way * bound
    )


def _targets(question: Question, row: int, factors: Mapping[str, float] | None = None) -> dict[str, Range]:
    """Limits on the modelled values of a design under which its corrected values keep the limits."""
    model, best = question.decision.model.table, question.decision.table
    targets: dict[str, Range] = {STABLE: (1.0, None)} if STABLE in model else {}
    for metric, (low, high) in question.subject_to.items():
        ours, true = float(model[metric][row]), float(best[metric][row])
        factor = ours / true if true and np.isfinite(ours / true) and ours else 1.0
        factor = (factors or {}).get(metric, factor)
        targets[metric] = (None if low is None else low * factor, None if high is None else high * factor)
    return targets


def _missed(
    question: Question, targets: Mapping[str, Range], columns: Any
) -> tuple[tuple[str, str, float], ...]:
    """Return which limits a point of the model misses, in the limits' own values."""
    found = [(STABLE, ">=", 1.0)] if STABLE in targets and not columns[STABLE][0] else []
    missed = {
        (name, way) for name, way, target in sides(targets) if way * float(columns[name][0]) > way * target
    }
    limits = [one for one in sides(question.subject_to) if one[0] != STABLE and one[:2] in missed]
    return (*found, *((name, SIGNS[way], bound) for name, way, bound in limits))
