"""Why a decision is what it is, each claim with its value: what limits it, on what others fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize.checks import SIGNS, Range, sides, size_of
from optimize.decisions.decision import Decision
from optimize.search.feasibility import nearest_miss, objective_values
from optimize.search.pareto import IntArray, as_costs
from optimize.spaces.evaluation import LOAD, RESOURCE, saturated


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """Question and decision; its methods are the claims that need no further model call."""

    decision: Decision  # the decision

    @property
    def subject_to(self) -> dict[str, Range]:
        """The limits."""
        return self.decision.model.subject_to

    @property
    def metrics(self) -> tuple[str, ...]:
        """Objectives and limited metrics."""
        return tuple(dict.fromkeys((*self.decision.model.objectives, *self.subject_to)))

    def limits(self, row: int) -> tuple[Limit, ...]:
        """Return every side of every constraint at a design, the tightest first."""
        found = []
        for metric, way, bound in sides(self.subject_to):
            low, best, high = self.decision.interval(metric, row)
            if np.isfinite(bound):
                room = way * (bound - best) / size_of(bound)
                sign = SIGNS[way]
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
