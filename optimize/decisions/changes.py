"""What would change a decision, found by solving on: traffic, a limit, a value beyond the choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize.analysis.sized import Size
from optimize.analysis.sizing import size
from optimize.checks import Range, size_of
from optimize.decisions.reasons import Question
from optimize.spaces.evaluation import metric_columns
from optimize.spaces.stability import LOAD, RESOURCE, STABLE
from qmodels.systems.spec.fields import get_field, replace_fields, takes_array

Evaluate = Callable[[Any], object]

MOST = 8
"""Times the traffic, or a field's end, up to which is looked."""

LEAST = 1000
"""Share of the traffic, inverted, down to which is looked where nothing is feasible."""

TOLERANCE = 3e-4
"""Of the range looked at: where a search for the traffic stops."""

CANDIDATES = 3
"""Designs, those that miss least, that are asked for a change that would make them feasible."""


@dataclass(frozen=True, kw_only=True)
class Growth:
    """How much traffic a design takes."""

    field: str  # the field that scales the traffic
    # now, most: its value, and the largest with which every limit is kept.
    now: float
    most: float
    # Which limits are missed just above: metric, sign, bound; of a design that does not keep up the word
    # "stable" alone.
    over: tuple[tuple[str, str, float], ...]
    # resource, load: what is fullest there.
    resource: str
    load: float

    @property
    def change(self) -> float:
        """Relative change of the traffic."""
        return self.most / self.now - 1


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change that makes a design feasible."""

    what: str  # "limit" or "traffic" or "field": what is changed
    name: str  # the metric whose limit, or the field
    # before, after: its value.
    before: float
    after: float
    row: int  # the design that is feasible then; of a field the other fields' choices are its

    @property
    def change(self) -> float:
        """Relative size of the change."""
        return abs(self.after - self.before) / size_of(self.before)


def growth(question: Question, evaluate: Evaluate, traffic: str, *, row: int | None = None) -> Growth | None:
    """Return up to which traffic a design (default: the chosen one) keeps every limit; None if at no traffic.

    A metric that the decision puts by a factor above the model at this design is assumed to stay above it
    by that factor.
    """
    decision = question.decision
    at = decision.chosen if row is None else row
    if at is None:
        return None
    spec = decision.model.spec(at)
    now = float(get_field(spec, traffic))
    reach = (now, MOST * now) if at == decision.chosen else (now / LEAST, now)
    found = _sized(question, evaluate, spec, at, traffic, reach, "largest")
    if found is None or found.value is None:
        return None
    over: tuple[tuple[str, str, float], ...] = ()
    resource, load = question.bottleneck(at)
    if found.misses is not None:
        columns = metric_columns(evaluate(replace_fields(spec, {traffic: float(found.misses)})))
        over = _missed(question, at, columns)
        resource = str(columns[RESOURCE][0]) if RESOURCE in columns else resource
        load = float(columns[LOAD][0]) if LOAD in columns else load
    return Growth(field=traffic, now=now, most=float(found.value), over=over, resource=resource, load=load)


def mending(question: Question, evaluate: Evaluate, traffic: str | None) -> tuple[Change, ...]:
    """Return single changes that make a design feasible where none is, the smallest first.

    One for each limit that may be moved alone, one of the traffic, and one for each field whose choices do
    not reach far enough; of the designs that miss least.
    """
    decision = question.decision
    changes = []
    for limit, excluded in question.excluded_alone():
        if excluded.size:
            row = int(excluded[0])
            to = float(decision.table[limit.metric][row])
            changes.append(Change(what="limit", name=limit.metric, before=limit.bound, after=to, row=row))
    rows = question.nearly(CANDIDATES)
    if traffic is not None and traffic not in decision.model.space.paths.values():
        found = [
            (one.most, row, one.now) for row in rows if (one := growth(question, evaluate, traffic, row=row))
        ]
        if found:
            most, row, now = max(found)
            changes.append(Change(what="traffic", name=traffic, before=now, after=most, row=row))
    for name in decision.model.space.numeric:
        changes += _beyond(question, evaluate, name, rows[0])
    return tuple(sorted(changes, key=lambda one: one.change))


def _beyond(question: Question, evaluate: Evaluate, name: str, row: int) -> list[Change]:
    """Return the value of a field beyond its choices, if there is one, that makes a design feasible."""
    space = question.decision.model.space
    spec, values = space.spec(int(question.decision.table["design"][row])), space.choices[name]
    least, most = min(values), max(values)
    ends = [((most, MOST * most), "smallest")] if most > 0 else []
    if least > 0:
        ends.append(((max(least // MOST, 1) if isinstance(least, int) else least / MOST, least), "largest"))
    found = []
    for within, which in ends:
        sized = _sized(question, evaluate, spec, row, space.paths[name], within, which)
        if sized is not None and sized.value is not None and sized.value not in values:
            end = most if which == "smallest" else least
            found.append(Change(what="field", name=name, before=end, after=float(sized.value), row=row))
    return found


def _sized(
    question: Question,
    evaluate: Evaluate,
    spec: Any,
    row: int,
    field: str,
    within: tuple[Any, Any],
    which: str,
) -> Size | None:
    try:
        return size(
            spec,
            evaluate,
            field,
            subject_to=_targets(question, row),
            within=within,
            which=which,
            tolerance=TOLERANCE,
            vectorized=takes_array(spec, field),
        )
    except ValueError:  # the system takes no other value there
        return None


def _targets(question: Question, row: int) -> dict[str, Range]:
    """Return what the model has to say at a design for the corrected values to keep the limits."""
    model, best = question.decision.model.table, question.decision.table
    targets: dict[str, Range] = {STABLE: (1.0, None)} if STABLE in model else {}
    for metric, (low, high) in question.subject_to.items():
        ours, true = float(model[metric][row]), float(best[metric][row])
        factor = ours / true if true and np.isfinite(ours / true) and ours else 1.0
        targets[metric] = (None if low is None else low * factor, None if high is None else high * factor)
    return targets


def _missed(question: Question, row: int, columns: Any) -> tuple[tuple[str, str, float], ...]:
    """Return which limits a point of the model misses, in the limits' own values."""
    found: list[tuple[str, str, float]] = []
    for metric, (low, high) in _targets(question, row).items():
        value = float(columns[metric][0])
        if metric == STABLE:
            found += [] if value else [(STABLE, ">=", 1.0)]
            continue
        least, most = question.subject_to[metric]
        if low is not None and least is not None and value < low:
            found.append((metric, ">=", least))
        if high is not None and most is not None and value > high:
            found.append((metric, "<=", most))
    return tuple(found)
