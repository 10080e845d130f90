"""What an exploration keeps of designs that it does not keep: the front of a union is that of its fronts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from optimize.search.feasibility import Exclusion, Goals, Tally, merged, ranks
from optimize.search.pareto import FloatArray, IntArray, undominated
from optimize.spaces.chunk_store import array_text, text_array
from optimize.spaces.evaluation import stack
from optimize.spaces.numbering import Columns, Designs
from optimize.spaces.space import Space


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduction:
    """What is kept of a set of designs."""

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


def reduced(goals: Goals, table: Columns, seen: Columns, outside: tuple[int, ...]) -> Reduction:
    """Return what is kept of the designs of a table; `seen` has the columns as they are compared."""
    if not table["design"].size:
        costs = np.zeros((0, len(goals.objectives)))
        none = np.zeros(0, dtype=np.int64)
        return Reduction(
            designs=0, feasible=0, outside=outside, tallies=(), table=table, costs=costs, ties=none
        )
    feasible, tallies = goals.feasible(seen)
    rows, costs = np.flatnonzero(feasible), goals.costs(seen)
    ties = np.ones(len(costs), dtype=np.int64)
    rank, alike = None, True
    if rows.size:
        rows, ties = front_of(costs, ties, table["design"], rows)
    elif len(costs):
        endless, finite = ranks(seen, goals.subject_to, costs)
        rows = np.lexsort((finite, endless))[:1]
        rank = (float(endless[rows[0]]), float(finite[rows[0]]))
        alike = bool((endless == rank[0]).all() and (finite == rank[1]).all())
        ties = ties[rows]
    return Reduction(
        designs=len(costs),
        feasible=int(feasible.sum()),
        outside=outside,
        tallies=tallies,
        table={name: column[rows] for name, column in table.items()},
        costs=costs[rows],
        ties=ties,
        rank=rank,
        alike=alike,
    )


def front_of(
    costs: FloatArray, ties: IntArray, designs: Designs, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """Return those rows that hold the first design of each distinct point of their front, with all ties."""
    rows = rows[undominated(costs[rows])]
    rows = rows[np.lexsort((designs[rows], *costs[rows].T))]
    first = np.flatnonzero(np.r_[True, (costs[rows[1:]] != costs[rows[:-1]]).any(axis=1)])
    ties, rows = np.add.reduceat(ties[rows], first), rows[first]
    order = np.argsort(designs[rows])
    return rows[order], ties[order]


def union(parts: Sequence[Reduction], space: Space) -> Reduction:
    """Return what is kept of disjoint sets of designs."""
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
        rows, ties = front_of(costs, ties, designs, rows)
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
    )


def to_record(one: Reduction) -> dict[str, Any]:
    """Return what a store keeps of a reduction."""
    return {
        "counts": [one.designs, one.feasible, *one.outside],
        "tallies": [[asdict(exclusion), dict(counts)] for exclusion, counts in one.tallies],
        "table": {name: array_text(column) for name, column in one.table.items()},
        "costs": array_text(one.costs.reshape(-1)),
        "ties": array_text(one.ties),
        "rank": one.rank,
        "alike": one.alike,
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
    )
