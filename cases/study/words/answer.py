"""The answer to a question about designs in sentences, each with the values it was made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cases.study.words.phrases import Phrases, percent, said, words
from optimize.decisions.changes import Change, Evaluate, Growth, growth, mending
from optimize.decisions.decision import Decision
from optimize.decisions.reasons import Question
from optimize.search.pareto import IntArray
from optimize.spaces.stability import STABLE
from qmodels.systems.spec.conditions import plain
from qmodels.systems.spec.fields import find_field, get_field

TRAFFIC = ("load_factor", "injection_rate", "rate", "arrival_rate")
"""Fields that scale what a system is offered: the first that a spec has."""


@dataclass(frozen=True)
class Claim:
    """A sentence of an answer and what it was made from."""

    # What it answers: ``recommended``, ``overruled``, ``limited by``, ``better``, ``buys most``, ``traffic``,
    # ``limit``, ``how sure``; where there is no answer ``not feasible``, ``nearest``, ``feasible with``.
    about: str
    text: str  # the sentence
    values: dict[str, Any] = field(default_factory=dict)  # its values, in the units of the metrics


@dataclass(frozen=True, kw_only=True, eq=False)
class Words(Phrases):
    """Puts what a `Question` finds into sentences.

    Parameters
    ----------
    question : Question
        What was asked and decided.
    evaluate : callable
        The model, for what needs solving on; see `optimize.explore`.
    rate : callable, optional
        Says the traffic that a system is offered, given the value of its traffic field.
    grown : Growth, optional
        How much traffic a simulation bore out; by default that is the model's word.
    """

    evaluate: Evaluate
    rate: Callable[[float], str] | None = None
    grown: Growth | None = None

    def claims(self) -> tuple[Claim, ...]:
        """Return the answer, the recommendation first; or that there is none, and what would help."""
        decision = self.question.decision
        row = decision.chosen
        if row is None:
            return self._nothing()
        if not decision.model.complete:  # what is said of other designs may hold of none that was kept
            kept = [self._recommended(row), self._overruled(row), self._limited(row), self._growth()]
            return tuple(claim for claim in [*kept, self._sure(row)[0]] if claim is not None)
        made = [self._recommended(row), self._overruled(row), self._limited(row), self._better()]
        made += self._buys()
        made += [self._growth(), self._relaxed(), *self._sure(row)]
        return tuple(claim for claim in made if claim is not None)

    @property
    def traffic(self) -> str | None:
        """The field that scales the traffic; None if the system has none, or it is varied."""
        return traffic_field(self.question.decision)

    def _rate(self, value: float) -> str:
        return f"{words(self.traffic or '')} {plain(value)}" if self.rate is None else self.rate(value)

    def _recommended(self, row: int) -> Claim:
        decision = self.question.decision
        values = ", ".join(self.value(metric, row) for metric in self.question.metrics)
        text = f"{self.design(row)}: {values} ({self.how(row)}). Why: {decision.reason}."
        intervals = {metric: decision.interval(metric, row) for metric in self.question.metrics}
        return Claim("recommended", text, {"design": self.number(row), "intervals": intervals})

    def _overruled(self, row: int) -> Claim | None:
        """Return which design the model alone would have chosen, and what speaks against it."""
        knee = self.question.decision.model.knee
        if knee is None or knee == row:
            return None
        to = self.question.alternative(knee)
        how = "simulated" if self.question.decision.table["simulated"][knee] else "corrected"
        against = self.fails(to) if to.fails else self.changes(to)
        text = f"The model alone would have chosen {self.as_changed(to)}; {how}, {against}."
        return Claim(
            "overruled", text, {"design": self.number(knee), "changes": to.changes, "missed": to.missed}
        )

    def _limited(self, row: int) -> Claim | None:
        resource, load = self.question.bottleneck(row)
        said = [f"The fullest resource is {self.fullest(resource, load)}."] if resource else []
        limits = self.question.limits(row)
        if limits:
            room = limits[0].room
            how = f"missed by {percent(-room)}" if room < 0 else f"{percent(room)} of room"
            said.append(f"The tightest limit is {self.limit(limits[0])}: {how}.")
        values = {"resource": resource, "load": load, "limits": limits}
        return Claim("limited by", " ".join(said), values) if said else None

    def _better(self) -> Claim:
        """Return what the next design that is better in the main objective costs, or fails on."""
        question, that = self.question, self.that(self.question.main)
        one = self.that(question.main, "is")
        trade, failing = question.trade(), question.failing()
        if trade is not None:
            to, count = trade
            text = f"Of {count} designs on the front {that} the next is {self.as_changed(to)}: "
            text += f"{self.changes(to)} ({self.how(to.row)})."
            return Claim("better", text, _values(self.number(to.row), count, to))
        unproven = question.unproven()
        if unproven:
            text = f"{unproven} designs {that} may do as well, but no simulation has borne one out."
            return Claim("better", text, {"design": None, "count": unproven})
        if failing is None:
            return Claim("better", f"There is no design {one}.", {"design": None, "count": 0})
        to, rows = failing
        count = len(rows)
        sure = "surely " * any(limit.unsure for limit in to.missed)
        many = f"The only design {one} fails"
        if count > 1:
            many = f"None of {count} designs {that} is {sure}an answer"
        change = self.change(to, question.main)
        text = f"{many}{self._known(rows) * (count > 1)}: {self.as_changed(to)} with {change} comes nearest, "
        text += f"but {self.fails(to)} ({self.how(to.row)})."
        return Claim("better", text, _values(self.number(to.row), count, to))

    def _known(self, rows: IntArray) -> str:
        """Return how it is known that designs are no answer: simulated, by their intervals, or not."""
        decision = self.question.decision
        if not decision.corrected:
            return ""
        simulated, unsure = (int(np.isin(rows, some).sum()) for some in (decision.simulated, decision.open))
        rest = f"{unsure} others could be one within their intervals" if unsure else "the others by intervals"
        return f" ({simulated} simulated, {rest})"

    def _buys(self) -> list[Claim]:
        """Return which neighbouring choice improves the main objective, and the tightest limit, most."""
        question, claims = self.question, []
        more = " by more than simulations resolve" if len(question.decision.simulated) else ""
        for metric in question.bought():
            move = question.buys(metric)
            if move is None:
                resolved = more if metric in question.decision.corrected else ""
                text = f"No neighbouring choice of one field improves the {words(metric)}{resolved}."
                claims.append(Claim("buys most", text, {"metric": metric, "field": None}))
                continue
            text = f"{words(move.field).capitalize()} {said(move.after)} instead of {said(move.before)}"
            text += f" improves the {words(metric)} most: {self.changes(move.to, first=metric)}"
            text += f" ({self.how(move.to.row)})"
            text += f"; but {self.fails(move.to)}." if move.to.fails else "."
            values = {"metric": metric, "field": move.field, "before": move.before, "after": move.after}
            claims.append(Claim("buys most", text, values | {"changes": move.to.changes}))
        return claims

    def _growth(self) -> Claim | None:
        traffic, found = self.traffic, self.grown
        if found is None and traffic is not None:
            found = growth(self.question, self.evaluate, traffic)
        if found is None:
            return None
        values = {"change": found.change, "most": found.most, "over": found.over, "resource": found.resource}
        stops = [one for one in found.over if one[0] == STABLE] or found.over
        what = " and ".join(self.over(*one) for one in stops)
        full = f", with {self.fullest(found.resource, found.load)}" if found.resource else ""
        to = f"by {percent(found.change)} (to {self._rate(found.most)})"
        if found.simulated is None:
            until = f"until {what}{full}" if what else "at least"
            return Claim("traffic", f"By the model alone the traffic may grow {to} {until}.", values)
        values |= {"simulated": found.simulated, "failed": found.failed}
        if found.failed is not None:
            may = what.replace("exceeds", "may exceed").replace("falls", "may fall")
            fails = f"ith {self._rate(found.failed)} {may} (simulated)"
            if not found.change:
                return Claim("traffic", f"W{fails}: no more traffic is borne out.", values)
        there = ", ".join(self.measured(metric, ends) for metric, ends in found.simulated.items())
        text = f"The traffic may grow {to}: simulated there, {there or 'it keeps up'}"
        if found.failed is not None:
            text += f"; w{fails}"
        elif what:
            text += f"; by the model no further, as {what}{full}"
        return Claim("traffic", f"{text}.", values)

    def _relaxed(self) -> Claim | None:
        """Return the limit whose least relaxation changes the choice."""
        relaxations = self.question.relaxations()
        if not relaxations:
            return None
        least = relaxations[0]
        metric, way = least.limit.metric, "more" if least.limit.sign == "<=" else "less"
        text = (
            f"Were the limit of the {words(metric)} {percent(least.change)} {way} "
            f"({self.quantity(metric, least.bound)}), {self.as_changed(least.to)} would be chosen: "
            f"{self.changes(least.to)} ({self.how(least.to.row)})."
        )
        values = {"metric": metric, "bound": least.bound, "change": least.change}
        return Claim("limit", text, values | {"design": self.number(least.to.row)})

    def _sure(self, row: int) -> list[Claim]:
        decision = self.question.decision
        simulated, count = bool(decision.table["simulated"][row]), len(decision.simulated)
        unsure = [limit for limit in self.question.limits(row) if limit.unsure]
        text = (
            "The recommended design was simulated" if simulated else "It is the model's word: not simulated"
        )
        text += "".join(f"; the limit {self.limit(one)} lies within its interval" for one in unsure)
        claims = [Claim("how sure", f"{text}.", {"simulated": simulated, "unsure": unsure})]
        values = {"settled": decision.settled, "open": len(decision.open), "simulated": count}
        if not decision.corrected:
            return claims
        text = f"Settled: within the intervals no other design could enter the front ({count} simulated)."
        if not decision.settled:
            text = (
                f"Not settled: {len(decision.open)} designs that were not simulated could still enter the "
                f"front ({count} simulated). A longer --budget settles more."
            )
        return [*claims, Claim("how sure", text, values)]

    def _nothing(self) -> tuple[Claim, ...]:
        """Return which limit and resource exclude all designs, and the smallest changes that do not."""
        question = self.question
        if count := int(question.decision.feasible.sum()):
            text = f"No design is recommended: {question.decision.reason}. {count} designs keep every limit "
            text += "by their best values, but no simulation has borne one out."
            return (Claim("not feasible", text, {"alone": (), "count": count}),)
        near = question.alternative(question.nearly(1)[0])
        nearest = f"The nearest is {self.design(near.row)}: {self.fails(near)}."
        values = {"design": self.number(near.row), "missed": near.missed, "resource": near.resource}
        closest = Claim("nearest", nearest, values | {"load": near.load})
        model = question.decision.model
        if not model.complete:
            counts = "; ".join(f"{one.constraint} excludes {one.designs}" for one in model.excluded)
            text = f"No design is feasible, of {model.solved}: {counts}."
            return (Claim("not feasible", text, {"excluded": model.excluded}), closest)
        alone = question.blocking()
        limits = [f"meets {self.limit(one)}" for one in question.limits(near.row) if one.metric in alone]
        what = "keeps up with the traffic" if STABLE in alone else " and none ".join(limits)
        text = f"No design is feasible: none {what or 'meets all limits together, though some meet each'}."
        claims = [Claim("not feasible", text, {"alone": alone}), closest]
        for change in mending(question, self.evaluate, self.traffic):
            claims.append(Claim("feasible with", self._mends(change), {"change": change}))
        if len(claims) == 2:
            claims.append(
                Claim("feasible with", "No change of one limit, of the traffic or of one field helps.")
            )
        return tuple(claims)

    def _mends(self, change: Change) -> str:
        if change.what == "limit":
            moved = f"a {words(change.name)} of {self.quantity(change.name, change.after)}"
            moved += f" allowed ({percent(change.change)} from the limit; {self.how(change.row)})"
        elif change.what == "traffic":
            moved = f"{percent(change.change)} less traffic ({self._rate(change.after)})"
        else:
            end = "from" if change.after < change.before else "up to"
            moved = f"{words(change.name)} {plain(change.after)}, beyond its choices"
            moved += f" ({end} {plain(change.before)}), else as"
            return f"Feasible by the model with {moved} {self.design(change.row)}."
        who = "" if change.what == "limit" else " by the model"
        return f"Feasible{who} with {moved}: {self.design(change.row)}."


def traffic_field(decision: Decision) -> str | None:
    """Return the field that scales the traffic of a decision; None if there is none, or it is varied."""
    space = decision.model.space
    for name in TRAFFIC:
        try:
            path = find_field(space.base, name)
        except ValueError:
            continue
        number = isinstance(get_field(space.base, path), (int, float))
        return path if number and path not in space.paths.values() else None
    return None


def question_of(decision: Decision) -> Question:
    """Return a decision with the cost as the main objective if it is one."""
    return Question(decision=decision, main="cost" if "cost" in decision.model.objectives else "")


def claims_of(
    decision: Decision,
    evaluate: Evaluate,
    rate: Callable[[float], str] | None = None,
    grown: Growth | None = None,
) -> tuple[Claim, ...]:
    """Return the answer that a decision gives."""
    return Words(question=question_of(decision), evaluate=evaluate, rate=rate, grown=grown).claims()


def _values(design: int, count: int, to: Any) -> dict[str, Any]:
    return {"design": design, "count": count, "changes": to.changes, "missed": to.missed, "load": to.load}
