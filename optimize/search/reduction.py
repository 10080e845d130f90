"""Reduction of designs to their front and tallies: the front of a union is that of its fronts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.search.feasibility import Exclusion, Goals, Tally, merged, nearest_miss
from optimize.search.pareto import FloatArray, IntArray, undominated
from optimize.spaces.chunk_store import array_text, text_array
from optimize.spaces.evaluation import stack
from optimize.spaces.numbering import Columns, Designs, Hole, joined
from optimize.spaces.space import Space

BoolArray = npt.NDArray[np.bool_]


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
    table = stack([part.table for part in some], designs, space)
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
        "table": {name: array_text(column) for name, column in one.table.items()},
        "costs": array_text(one.costs.reshape(-1)),
        "ties": array_text(one.ties),
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
        table={name: text_array(text) for name, text in record["table"].items()},
        costs=text_array(record["costs"]).reshape(-1, objectives),
        ties=text_array(record["ties"]),
        rank=None if record["rank"] is None else tuple(record["rank"]),
        alike=record["alike"],
        holes=tuple(Hole(**hole) for hole in record.get("holes", ())),
    )
