"""Why a decision is what it is, each claim with its value: what limits it, on what others fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize.checks import Range, size_of
from optimize.decisions.decision import Decision
from optimize.search.feasibility import misses, nearest_miss, objective_values
from optimize.search.pareto import FloatArray, IntArray, as_costs, knee_index, nondominated
from optimize.spaces.evaluation import LOAD, RESOURCE, saturated
from optimize.spaces.numbering import Columns

TRIED = 64
"""Values of a limit, the nearest first, at which its relaxation looks for another choice."""


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


@dataclass(frozen=True, kw_only=True)
class Relaxation:
    """Value of a limit at which another design is chosen."""

    limit: Limit
    bound: float
    to: Alternative

    @property
    def change(self) -> float:
        """Relative change of the limit."""
        return abs(self.bound - self.limit.bound) / size_of(self.limit.bound)


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """Question and decision; its methods are the claims that need no further model call."""

    decision: Decision  # the decision
    main: str = ""  # the objective by which designs are called better; the first by default

    def __post_init__(self) -> None:
        object.__setattr__(self, "main", self.main or self.decision.model.objectives[0])

    @property
    def subject_to(self) -> dict[str, Range]:
        """The limits."""
        return self.decision.model.subject_to

    @property
    def metrics(self) -> tuple[str, ...]:
        """Objectives and limited metrics."""
        return tuple(dict.fromkeys((*self.decision.model.objectives, *self.subject_to)))

    def sign(self, metric: str) -> int:
        """Return 1 where more is worse: a minimised metric, or one that is limited from above alone."""
        model = self.decision.model
        if metric in model.objectives:
            return 1 if metric in model.minimize else -1
        return -1 if self.subject_to[metric][1] is None else 1

    def limits(self, row: int) -> tuple[Limit, ...]:
        """Return every side of every constraint at a design, the tightest first."""
        found = []
        for metric, (least, most) in self.subject_to.items():
            low, best, high = self.decision.interval(metric, row)
            for sign, bound, way in ((">=", least, -1), ("<=", most, 1)):
                if bound is not None and np.isfinite(bound):
                    room = way * (bound - best) / size_of(bound)
                    found.append(
                        Limit(metric=metric, sign=sign, bound=bound, low=low, best=best, high=high, room=room)
                    )
        return tuple(sorted(found, key=lambda one: one.room))

    def bottleneck(self, row: int) -> tuple[str, float]:
        """Return the resource that fills up first in a design and its load, as far as the model says."""
        table = self.decision.table
        load = float(table[LOAD][row]) if LOAD in table else float("nan")
        return str(table[RESOURCE][row]) if RESOURCE in table else "", load

    def alternative(self, row: int) -> Alternative:
        """Return a design beside the one chosen."""
        table, chosen = self.decision.table, self.decision.chosen
        at = row if chosen is None else chosen
        resource, load = self.bottleneck(row)
        limits = self.limits(row)
        missed = tuple(limit for limit in limits if limit.missed)
        if not missed and not self.decision.feasible[row]:
            missed = tuple(limit for limit in limits if limit.unsure)
        return Alternative(
            row=row,
            changes={name: (float(table[name][at]), float(table[name][row])) for name in self.metrics},
            missed=missed,
            stable=not saturated(table, self.subject_to)[row],
            resource=resource,
            load=load,
        )

    def _better(self) -> IntArray:
        """Return the rows that are better than the chosen one in the main objective, the next first."""
        cost = self.sign(self.main) * self.decision.table[self.main].astype(float)
        rows = np.flatnonzero(cost < cost[self.decision.chosen])
        return rows[np.argsort(-cost[rows], kind="stable")]

    def failing(self) -> tuple[Alternative, IntArray] | None:
        """Return the infeasible design, better in the main objective, that fails least; and all of them."""
        rows = self._better()
        rows = np.sort(rows[~self.decision.feasible[rows]])
        if not rows.size:
            return None
        return self.alternative(int(rows[self._closest(rows)])), rows

    def trade(self) -> tuple[Alternative, int] | None:
        """Return the next design of the front that is better in the main objective; and their number."""
        rows = self._better()
        rows = rows[np.isin(rows, self.decision.front)]
        return (self.alternative(int(rows[0])), rows.size) if rows.size else None

    def moves(self) -> tuple[Move, ...]:
        """Effect of the neighbouring choices of each field; of a field of words, of all its others."""
        space, table = self.decision.model.space, self.decision.table
        digits = space.digits(int(table["design"][self.decision.chosen]))
        found = []
        for axis, (name, values) in enumerate(space.choices.items()):
            others: list[int] = [k for k in range(len(values)) if k != digits[axis]]
            if name in space.numeric:
                order = sorted(range(len(values)), key=lambda k: values[k])
                place = order.index(digits[axis])
                others = [order[k] for k in (place - 1, place + 1) if 0 <= k < len(order)]
            for other in others:
                number = space.number_of([*digits[:axis], other, *digits[axis + 1 :]])
                row = self._row_of(int(space.numbers([int(number)])[0]))
                if row is not None:
                    to = self.alternative(row)
                    found.append(Move(field=name, before=values[digits[axis]], after=values[other], to=to))
        return tuple(found)

    def bought(self) -> tuple[str, ...]:
        """Return the metrics of which the largest improvement is sought: the main one and one other."""
        tight = [limit.metric for limit in self.limits(self.decision.chosen or 0) if limit.room < 1]
        others = [name for name in self.decision.model.objectives if name != self.main]
        return tuple(dict.fromkeys([self.main, *[*tight, *others][:1]]))

    def buys(self, metric: str) -> Move | None:
        """Return the move that improves a metric most; None if none does.

        One that was simulated does only if its interval and that of the chosen design do not meet.
        """
        moves = [one for one in self.moves() if self.sign(metric) * one.to.gain(metric) < 0]
        moves = [one for one in moves if not self._alike(metric, one.to.row)]
        return min(moves, key=lambda one: self.sign(metric) * one.to.gain(metric), default=None)

    def _alike(self, metric: str, row: int) -> bool:
        """Return whether simulations do not tell a design from the chosen one."""
        decision = self.decision
        low, _, high = decision.interval(metric, row)
        least, _, most = decision.interval(metric, decision.chosen or 0)
        return row in decision.results and low <= most and least <= high

    def named(self) -> list[int]:
        """Return the designs that an answer names beside the chosen one, each once."""
        decision = self.decision
        if decision.chosen is None or not decision.model.complete:
            return []
        beside = self.trade() or self.failing()
        moves = [self.buys(metric) for metric in self.bought()]
        rows = [] if beside is None else [beside[0].row]
        rows += [one.to.row for one in moves if one is not None]
        rows += [one.to.row for one in self.relaxations()[:1]]
        rows += [] if decision.model.knee is None else [decision.model.knee]
        return [row for row in dict.fromkeys(rows) if row != decision.chosen]

    def relaxations(self) -> tuple[Relaxation, ...]:
        """Return for each limit the least change after which another design is chosen, the least first."""
        found = []
        for limit, rows, values in self.excluded_alone():
            # Designs of one value come in together.
            for count in 1 + np.flatnonzero(np.append(np.diff(values) != 0, True))[:TRIED]:
                row = self._chosen_of(rows[:count])
                if row is not None:
                    bound = float(values[count - 1])
                    found.append(Relaxation(limit=limit, bound=bound, to=self.alternative(row)))
                    break
        return tuple(sorted(found, key=lambda one: one.change))

    def excluded_alone(self) -> Iterator[tuple[Limit, IntArray, FloatArray]]:
        """Yield each limit, the rows that it alone excludes, the nearest first, and what would admit each.

        A simulated design is admitted with its whole interval.
        """
        table, row = self.decision.table, self.decision.chosen or 0
        ends = {"<=": self._simulated("high"), ">=": self._simulated("low")}
        missed = {
            key: miss
            for sign in ends
            for key, miss in misses(ends[sign], self.subject_to).items()
            if key[1] == sign
        }
        costs = as_costs(
            objective_values(table, self.decision.model.objectives), self.decision.model.maximized
        )
        good = ~saturated(table, self.subject_to) & ~np.isposinf(costs).any(axis=1)
        for limit in self.limits(row):
            key = limit.metric, limit.sign, limit.bound
            others = np.all([good, *(miss == 0 for name, miss in missed.items() if name != key)], axis=0)
            rows = np.flatnonzero(others & (missed[key] > 0) & np.isfinite(missed[key]))
            rows = rows[np.argsort(missed[key][rows], kind="stable")]
            yield limit, rows, ends[limit.sign][limit.metric][rows].astype(float)

    def _simulated(self, end: str) -> Columns:
        """Return the table with the limited metrics of simulated designs at an end of their intervals."""
        table, rows = dict(self.decision.table), self.decision.simulated
        for name in self.subject_to:
            if name in self.decision.corrected:
                table[name] = table[name].copy()
                table[name][rows] = table[f"{name}_{end}"][rows]
        return table

    def _chosen_of(self, rows: IntArray) -> int | None:
        """Return which of some rows would be chosen if all were feasible; None if it is none of them."""
        decision, before = self.decision, len(self.decision.front)
        every = np.concatenate([decision.front, rows])
        values = objective_values(decision.table, decision.model.objectives)[every]
        front = np.flatnonzero(nondominated(values, maximize=decision.model.maximized))
        knee = knee_index(values[front], maximize=decision.model.maximized)
        return None if knee is None or front[knee] < before else int(every[front[knee]])

    def _row_of(self, design: int) -> int | None:
        designs = self.decision.table["design"]
        row = int(np.searchsorted(designs, design))
        return row if row < len(designs) and designs[row] == design else None

    def nearly(self, count: int) -> list[int]:
        """Return the rows that come nearest to being feasible, the nearest first."""
        left = np.arange(len(self.decision.feasible))
        found: list[int] = []
        while left.size and len(found) < count:
            found.append(int(left[self._closest(left)]))
            left = left[left != found[-1]]
        return found

    def _closest(self, rows: IntArray) -> int:
        """Return which of some rows comes nearest to being feasible."""
        table = {name: column[rows] for name, column in self.decision.table.items()}
        model = self.decision.model
        costs = as_costs(objective_values(table, model.objectives), model.maximized)
        return nearest_miss(table, self.subject_to, costs)[0]
