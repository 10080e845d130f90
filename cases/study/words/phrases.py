"""Designs, limits and changes in words: the pieces that the sentences of an answer are made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from optimize.decisions.reasons import Alternative, Limit, Question
from optimize.spaces.stability import STABLE
from qmodels.systems.spec.conditions import plain, quantity

WORST = 2
"""Missed limits that are said of a design."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Phrases:
    """Says what a `Question` finds, in the units of its system."""

    question: Question  # what was asked and decided

    def number(self, row: int) -> int:
        """Return the number of a design."""
        return int(self.question.decision.table["design"][row])

    def point(self, row: int) -> dict[str, Any]:
        """Return the varied fields of a design."""
        return self.question.decision.model.space.point(self.number(row))

    def design(self, row: int) -> str:
        """Return ``design 7 (channels 2, link width 16)``, fields with one choice left out."""
        choices = self.question.decision.model.space.choices
        fields = (f"{words(n)} {said(v)}" for n, v in self.point(row).items() if len(choices[n]) > 1)
        return f"design {self.number(row)} ({', '.join(fields)})"

    def as_changed(self, to: Alternative) -> str:
        """Return a design by what it has other than the chosen one."""
        chosen = self.question.decision.chosen
        if chosen is None or chosen == to.row:
            return self.design(to.row)
        before = self.point(chosen)
        other = (f"{words(n)} {said(v)}" for n, v in self.point(to.row).items() if before[n] != v)
        return f"design {self.number(to.row)} ({', '.join(other)})"

    def quantity(self, metric: str, value: float) -> str:
        """Return a value of a metric with its unit."""
        return quantity(self.question.decision.model.space.base, metric, value)

    def value(self, metric: str, row: int) -> str:
        """Return a metric of a design with its interval."""
        return self.measured(metric, self.question.decision.interval(metric, row))

    def measured(self, metric: str, interval: tuple[float, float, float]) -> str:
        """Return a metric with its interval."""
        low, best, high = interval
        ends = "" if low == high else f" ({self.quantity(metric, low)} to {self.quantity(metric, high)})"
        return f"{words(metric)} {self.quantity(metric, best)}{ends}"

    def how(self, row: int) -> str:
        """Return where the values of a design come from."""
        decision = self.question.decision
        if decision.table["simulated"][row]:
            return "simulated"
        return "corrected, not simulated" if len(decision.simulated) else "analytic, not simulated"

    def limit(self, limit: Limit) -> str:
        """Return ``packet latency p99 at most 2 us``."""
        word = "at most" if limit.sign == "<=" else "at least"
        return f"{words(limit.metric)} {word} {self.quantity(limit.metric, limit.bound)}"

    def over(self, metric: str, sign: str, bound: float) -> str:
        """Return which limit is passed."""
        if metric == STABLE:
            return "it no longer keeps up"
        word = "exceeds" if sign == "<=" else "falls below"
        return f"{words(metric)} {word} {self.quantity(metric, bound)}"

    def fullest(self, resource: str, load: float) -> str:
        """Return ``dram buses at 67 %``."""
        return f"{resource} at {100 * load:.0f} %" if isfinite(load) else resource

    def fails(self, to: Alternative) -> str:
        """Return what a design fails on, and its fullest resource."""
        full = f" ({self.fullest(to.resource, to.load)})" if to.resource else ""
        if not to.stable:
            return f"it does not keep up{full}"
        return " and ".join(map(self._miss, to.missed[:WORST])) + full

    def _miss(self, limit: Limit) -> str:
        """Return by how much a limit is missed, or that it may be."""
        if not limit.missed:
            what = self.measured(limit.metric, (limit.low, limit.best, limit.high))
            return f"its {what} is not surely within the limit"
        ends = f"{self.quantity(limit.metric, limit.low)} to {self.quantity(limit.metric, limit.high)}"
        within = f", which lies within its interval ({ends})" if limit.unsure else ""
        what = f"its {words(limit.metric)} is {self.quantity(limit.metric, limit.best)}"
        return f"{what}, {off(limit)} the limit{within}"

    def that(self, metric: str, verb: str = "are") -> str:
        """Return how designs are that are better in a metric, or how one "is"."""
        if metric == "cost":
            return f"that {verb} cheaper"
        return f"with {'less' if self.question.sign(metric) > 0 else 'more'} {words(metric)}"

    def changes(self, to: Alternative, first: str = "") -> str:
        """Return all objectives and limited metrics of a design that differ, with the changes."""
        names = [name for name in dict.fromkeys([first or self.question.main, *to.changes]) if to.gain(name)]
        return ", ".join(self.change(to, name) for name in names) or "the same values"

    def change(self, to: Alternative, metric: str) -> str:
        """Return ``cost 23 mm2 (-23 %)``."""
        before, after = to.changes[metric]
        known = before and isfinite(before) and isfinite(after)
        share = f" ({'+' if after > before else ''}{percent(to.gain(metric))})" if known else ""
        return f"{words(metric)} {self.quantity(metric, after)}{share}"


def words(name: str) -> str:
    """Return the name of a metric, or of a field without the parts it is in, as words."""
    return name.rpartition(".")[2].replace("_", " ")


def said(value: Any) -> str:
    """Return the value of a field."""
    return plain(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def percent(share: float) -> str:
    """Return a share in percent, in three digits."""
    return f"{plain(100 * share)} %"


def off(limit: Limit) -> str:
    """Return by how much a limit is missed."""
    size = percent(-limit.room) if limit.room > -inf else "endlessly"
    return f"{size} {'over' if limit.sign == '<=' else 'below'}"
