"""Which designs a set of goals admits, what excludes the others, and the fronts of parts as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from optimize.checks import SIGNS, Range, sides, size_of
from optimize.search.pareto import BoolArray, FloatArray, IntArray, as_costs, undominated
from optimize.spaces import evaluation
from optimize.spaces.numbering import Column, Columns, Designs, Hole, joined
from optimize.spaces.space import Space

Tally = tuple["Exclusion", Counter[str]]
"""What one constraint excludes, and which resource fills up first in how many of these designs."""


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """Number of designs that one constraint excludes, and the least miss among them."""

    #: One side of a ``subject_to`` range (``"cost <= 40"``), the name of a constraint of the space,
    #: ``"stable"``, or that an objective is finite (``"latency < inf"``)
    constraint: str
    designs: int  #: Number of designs that violate it, whatever else they violate
    #: Number of the excluded design that misses least, the first of equals; None for a constraint without a
    #: measure, if all miss it by an infinite amount, or if none is excluded
    nearest: int | None = None
    #: Its value; of a design that is not stable, the load of its fullest resource
    value: float | None = None
    #: How far the value is outside the range, or the load above 1; infinite, and alone, where it is for all
    miss: float | None = None
    resources: str = ""  #: Of designs that are not stable, which resources fill up first

    def __str__(self) -> str:
        text = f"{self.constraint} excludes {self.designs} designs"
        if self.resources:
            text += f" ({self.resources})"
        if self.nearest is None:
            return text if self.miss is None else f"{text}; all miss it by an infinite amount"
        what = f"a load of {self.value:.4g}" if self.constraint == evaluation.STABLE else f"{self.value:.6g}"
        return f"{text}; the nearest is design {self.nearest} with {what}, off by {self.miss:.4g}"


@dataclass(frozen=True, kw_only=True)
class Demand:
    """One side of a metric that the search wants small: ``sign * value``."""

    metric: str  # its name
    sign: int  # : whether small or large values are wanted
    limit: float = np.inf  # largest admissible ``sign * value``; infinite without a constraint
    objective: bool = False  # whether it is an objective, rather than a constraint only


@dataclass(frozen=True, kw_only=True)
class Objectives:
    """The names of what is wanted small and large, and the ranges that hold."""

    minimize: tuple[str, ...]  #: The minimised objectives
    maximize: tuple[str, ...]  #: The maximised ones
    subject_to: dict[str, Range]  #: The limits ``{metric: (low, high)}``

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives, the minimised ones first."""
        return self.minimize + self.maximize

    @property
    def maximized(self) -> tuple[bool, ...]:
        """Whether an objective is maximised, in that order: the mask of the pareto functions."""
        return (False,) * len(self.minimize) + (True,) * len(self.maximize)


@dataclass(frozen=True, kw_only=True)
class Goals(Objectives):
    """Goals of an exploration, and the standing of its designs."""

    def demands(self) -> list[Demand]:
        """Return objectives and sides of ranges as what is wanted small, the objectives first."""
        signs = [(name, 1) for name in self.minimize] + [(name, -1) for name in self.maximize]
        limits = {(name, sign): sign * bound for name, sign, bound in sides(self.subject_to)}
        return [
            Demand(
                metric=name,
                sign=sign,
                limit=limits.get((name, sign), np.inf),
                objective=(name, sign) in signs,
            )
            for name, sign in dict.fromkeys([*signs, *limits])
        ]

    def costs(self, table: Columns) -> FloatArray:
        """Return the objectives of all rows, the maximised ones negated."""
        return as_costs(objective_values(table, self.objectives), self.maximized)

    def feasible(self, table: Columns) -> tuple[BoolArray, tuple[Tally, ...]]:
        """Return which rows keep up, are finite in the objectives and in the ranges; what excludes others.

        There is a tally for designs that do not keep up, one for each objective, and one for each side of
        a range, in that order and whether or not it excludes any.
        """
        full = evaluation.saturated(table, self.subject_to)
        feasible = ~full
        found = [_unstable(table, np.flatnonzero(full))]
        worst = [(n, "<", np.inf) for n in self.minimize] + [(n, ">", -np.inf) for n in self.maximize]
        for name, sign, bound in worst:
            rows = np.flatnonzero((table[name] == bound) & ~full)
            one = _exclusion(f"{name} {sign} {bound}", rows, rows, np.full(rows.size, np.inf))
            found.append((one, evaluation.resources(table, rows)))
            feasible[rows] = False
        for (name, sign, bound), miss in misses(table, self.subject_to).items():
            feasible &= miss == 0
            rows = np.flatnonzero(miss > 0)
            limit = f"{name} {sign} {bound:g}"
            one = _exclusion(limit, table["design"][rows], table[name][rows], miss[rows])
            found.append((one, Counter()))
        return feasible, tuple(found)

    def said(self, tallies: tuple[Tally, ...]) -> tuple[Exclusion, ...]:
        """Return the tallies to report: of the ranges in any case, of the others if there is any."""
        return tuple(
            replace(one, resources=evaluation.words(counts))
            for k, (one, counts) in enumerate(tallies)
            if one.designs or k > len(self.objectives)
        )


def merged(first: Tally, second: Tally) -> Tally:
    """Join the tallies of one constraint over two disjoint sets of designs."""
    (one, counts), (other, more) = first, second
    known = [each for each in (one, other) if each.nearest is not None]
    best = min(known, key=lambda each: (each.miss, each.nearest)) if known else one if one.designs else other
    return replace(best, designs=one.designs + other.designs), counts + more


def objective_values(table: Columns, objectives: tuple[str, ...]) -> FloatArray:
    """Return columns of a table side by side; text is no objective."""
    for name in objectives:
        if table[name].dtype.kind not in "biuf":
            raise ValueError(f"objective {name!r} must be a number, got {table[name][:1].tolist()[0]!r}")
    return np.stack([table[name].astype(float) for name in objectives], axis=1)


def misses(table: Columns, subject_to: dict[str, Range]) -> dict[tuple[str, str, float], FloatArray]:
    """Return the miss of each row at each side of the ranges, 0 if inside."""
    result = {}
    for name, sign, bound in sides(subject_to):
        column = objective_values(table, (name,))[:, 0]
        with np.errstate(invalid="ignore"):
            distance = np.abs(column - bound)
        result[name, SIGNS[sign], bound] = np.where(sign * column > sign * bound, distance, 0.0)
    return result


def violation(table: Columns, subject_to: dict[str, Range]) -> FloatArray:
    """Return the summed miss of each row: relative to the ends, but for 0 and infinity.

    To a row that is not stable the excess of its load over 1 is added, or 1 if the load is not known.
    """
    return np.sum(_shortfalls(table, subject_to), axis=0)


def _shortfalls(table: Columns, subject_to: dict[str, Range]) -> list[FloatArray]:
    """Return the terms of `violation`."""
    full = evaluation.saturated(table, subject_to)
    too_much = np.zeros(full.size)
    measure = evaluation.excess(table, np.flatnonzero(full))
    too_much[full] = 1.0 if measure is None else measure[1]
    return [too_much, *(miss / size_of(bound) for (_, _, bound), miss in misses(table, subject_to).items())]


def _exclusion(constraint: str, designs: IntArray, values: Column, miss: FloatArray) -> Exclusion:
    one = Exclusion(constraint=constraint, designs=miss.size)
    if not miss.size:
        return one
    k = int(miss.argmin())
    if np.isinf(miss[k]):
        return replace(one, miss=float(miss[k]))
    return replace(one, nearest=int(designs[k]), value=float(values[k]), miss=float(miss[k]))


def _unstable(table: Columns, rows: IntArray) -> Tally:
    measure, counts = evaluation.excess(table, rows), evaluation.resources(table, rows)
    if measure is None:
        return Exclusion(constraint=evaluation.STABLE, designs=rows.size), counts
    return _exclusion(evaluation.STABLE, table["design"][rows], *measure), counts


def nearest_miss(
    table: Columns, subject_to: dict[str, Range], costs: FloatArray
) -> tuple[int, tuple[float, float], bool]:
    """Return the row that is nearest to being feasible, how far it is, and whether all are so far.

    How far: in how much it is infinitely far, and the distance in all else.
    """
    terms = np.stack(_shortfalls(table, subject_to))
    endless = np.isinf(terms).sum(axis=0) + np.isposinf(costs).sum(axis=1)
    finite = terms.sum(axis=0, where=np.isfinite(terms))
    row = int(np.lexsort((finite, endless))[0])
    alike = bool((endless == endless[row]).all() and (finite == finite[row]).all())
    return row, (float(endless[row]), float(finite[row])), alike


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduction:
    """Front and tallies of a set of designs."""

    # designs, feasible: how many there are, and how many are feasible.
    designs: int
    feasible: int
    outside: tuple[int, ...]  # how many points of the grid each constraint of the space excludes
    tallies: tuple[Tally, ...]  # what each limit excludes
    # One row for each distinct point of the front, that of its first design, ascending; if none is feasible,
    # the row that misses least.
    table: Columns
    costs: FloatArray  # objectives of the rows as they are compared, all minimised
    ties: IntArray  # how many designs have these
    # How far the row that misses least is from being feasible (see `ranks`).
    rank: tuple[float, float] | None = None
    alike: bool = True  # whether all designs are so far from it
    holes: tuple[Hole, ...] = ()  # designs without an answer, which count nowhere else

    @property
    def looked(self) -> int:
        """Number of designs evaluated, those without an answer included."""
        return self.designs + sum(hole.designs for hole in self.holes)


def judged(
    goals: Goals, table: Columns, seen: Columns, outside: tuple[int, ...] = (), holes: tuple[Hole, ...] = ()
) -> tuple[Reduction, BoolArray, IntArray]:
    """Reduce the designs of a table: the feasible ones, and the front with all that tie.

    `seen` has the columns as they are compared.
    """
    none = np.zeros(0, dtype=np.int64)
    if not table["design"].size:
        empty = Reduction(
            designs=0, feasible=0, outside=outside, tallies=(), table=table, ties=none, holes=holes,
            costs=np.zeros((0, len(goals.objectives))),
        )  # fmt: skip
        return empty, none.astype(bool), none
    feasible, tallies = goals.feasible(seen)
    costs = goals.costs(seen)
    front = np.flatnonzero(feasible)
    front = front[undominated(costs[front])]
    rank, alike = None, True
    if front.size:
        rows, ties = _distinct(costs, np.ones(len(costs), dtype=np.int64), table["design"], front)
    else:
        row, rank, alike = nearest_miss(seen, goals.subject_to, costs)
        rows, ties = np.array([row]), np.ones(1, dtype=np.int64)
    kept = Reduction(
        designs=len(costs),
        feasible=int(feasible.sum()),
        outside=outside,
        tallies=tallies,
        table={name: column[rows] for name, column in table.items()},
        costs=costs[rows],
        ties=ties,
        rank=rank,
        alike=alike,
        holes=holes,
    )
    return kept, feasible, front


def _distinct(
    costs: FloatArray, ties: IntArray, designs: Designs, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """Return those rows of a front that hold the first design of each distinct point, with all ties."""
    rows = rows[np.lexsort((designs[rows], *costs[rows].T))]
    first = np.flatnonzero(np.r_[True, (costs[rows[1:]] != costs[rows[:-1]]).any(axis=1)])
    ties, rows = np.add.reduceat(ties[rows], first), rows[first]
    order = np.argsort(designs[rows])
    return rows[order], ties[order]


def union(parts: Sequence[Reduction], space: Space) -> Reduction:
    """Join the reductions of disjoint sets of designs."""
    some = [part for part in parts if part.designs] or parts[:1]
    tallies = some[0].tallies
    for part in some[1:]:
        tallies = tuple(map(merged, tallies, part.tallies))
    designs = np.concatenate([part.table["design"] for part in some])
    table = evaluation.stack([part.table for part in some], designs, space)
    costs = np.concatenate([part.costs for part in some])
    ties = np.concatenate([part.ties for part in some])
    feasible = np.concatenate([np.full(len(part.ties), part.feasible > 0) for part in some])
    rank, alike = None, True
    rows = np.flatnonzero(feasible)
    if rows.size:
        rows, ties = _distinct(costs, ties, designs, rows[undominated(costs[rows])])
    elif designs.size:
        best = min(range(len(some)), key=lambda k: (some[k].rank, designs[k]))
        rows, ties, rank = np.array([best]), ties[[best]], some[best].rank
        alike = all(part.alike and part.rank == rank for part in some)
    return Reduction(
        designs=sum(part.designs for part in parts),
        feasible=sum(part.feasible for part in parts),
        outside=tuple(map(sum, zip(*(part.outside for part in parts), strict=True))),
        tallies=tallies,
        table={name: column[rows] for name, column in table.items()},
        costs=costs[rows],
        ties=ties,
        rank=rank,
        alike=alike,
        holes=joined(hole for part in parts for hole in part.holes),
    )


def to_record(one: Reduction) -> dict[str, Any]:
    """Return a reduction in the form of a store."""
    return {
        "counts": [one.designs, one.feasible, *one.outside],
        "tallies": [[asdict(exclusion), dict(counts)] for exclusion, counts in one.tallies],
        "table": {name: evaluation.array_text(column) for name, column in one.table.items()},
        "costs": evaluation.array_text(one.costs.reshape(-1)),
        "ties": evaluation.array_text(one.ties),
        "rank": one.rank,
        "alike": one.alike,
        "holes": [asdict(hole) for hole in one.holes],
    }


def from_record(record: dict[str, Any], objectives: int) -> Reduction:
    """Return the reduction of a record."""
    designs, feasible, *outside = record["counts"]
    return Reduction(
        designs=designs,
        feasible=feasible,
        outside=tuple(outside),
        tallies=tuple((Exclusion(**said), Counter(counts)) for said, counts in record["tallies"]),
        table={name: evaluation.text_array(text) for name, text in record["table"].items()},
        costs=evaluation.text_array(record["costs"]).reshape(-1, objectives),
        ties=evaluation.text_array(record["ties"]),
        rank=None if record["rank"] is None else tuple(record["rank"]),
        alike=record["alike"],
        holes=tuple(Hole(**hole) for hole in record.get("holes", ())),
    )
