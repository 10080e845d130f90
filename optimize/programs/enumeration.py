"""What sums over tabulated components can reach: all of it without rounding, or bounds if that is too much.

Components are joined field by field (bucket elimination): those that share a field are added up for each
of its choices, and of the partial sums with equal open fields only the nondominated ones go on. That loses
nothing, as what dominates a partial sum also dominates it with the same options added [1]_. Where there are
too many, neighbours are merged: the state that goes on is one of them, and beside its sums it carries the
least sums of all that were merged, so that what is left out is bounded from below.

References
----------
.. [1] G. L. Nemhauser and Z. Ullmann, "Discrete dynamic programming and capital allocation",
   Management Science 15(9), 1969.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import count
from math import inf
from typing import Any

import numpy as np

from optimize.programs.components import Tables
from optimize.programs.whole import WholeRow, added, at_most, from_limbs, least, limbs_needed, ranks, to_limbs
from optimize.search.pareto import FloatArray, IntArray, nondominated

BOUNDS = 10_000
"""States that tell how good what is left out may be, at most."""


@dataclass(frozen=True)
class _Part:
    """Partial choices: what they fix of shared fields, their sums, and the least sums merged into them.

    ``behind`` says what they are made of: a component and its cells, or two parts and their rows.
    """

    fields: tuple[str, ...]
    keys: IntArray
    sums: IntArray
    least: IntArray
    counts: FloatArray
    behind: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.sums)

    @cached_property
    def floor(self) -> IntArray:
        """The least sum of every row."""
        return least(self.least)

    def take(self, rows: Any) -> _Part:
        sums = self.sums[rows]
        behind = tuple(x[rows] if isinstance(x, np.ndarray) else x for x in self.behind)
        low = sums if self.least is self.sums else self.least[rows]
        return _Part(self.fields, self.keys[rows], sums, low, self.counts[rows], behind)

    def without(self, field: str) -> _Part:
        kept = [k for k, name in enumerate(self.fields) if name != field]
        return replace(self, fields=tuple(self.fields[k] for k in kept), keys=self.keys[:, kept])

    def cells(self, rows: IntArray) -> dict[int, IntArray]:
        """Return the cells of every component behind some rows."""
        if len(self.behind) == 2:
            return {self.behind[0]: self.behind[1][rows]}
        one, left, other, right = self.behind
        return one.cells(left[rows]) | other.cells(right[rows])


@dataclass(frozen=True, kw_only=True)
class Reached:
    """What an enumeration found."""

    cells: IntArray  # a choice for every nondominated vector of objectives that was found within the ceilings
    # Choices with exactly these sums, of those that no other beats in a row with a ceiling; only where
    # nothing was merged.
    counts: FloatArray
    # Sums of rows: every choice within the ceilings has none of them better, up to rounding.
    least: list[list[float]]
    merged: bool  # whether there were too many states: there may be choices that are as good as `least` says
    states: int  # most partial sums kept at a time


def enumerated(
    tables: Tables,
    cells: Sequence[IntArray],
    counts: Sequence[FloatArray],
    rows: Sequence[WholeRow],
    objectives: int,
    *,
    most: float = inf,
    deadline: float = inf,
) -> Reached | None:
    """Return what the sums of some cells per component can reach.

    ``cells``: their cells, in the order of the parts of `rows`; ``counts``: how many equal cells each of them
    stands for; ``rows``: the objectives first, then what has a ceiling; ``objectives``: how many there are;
    ``most``: pairs of partial choices looked at in one step, at most; ``deadline``: when to give up, on the
    clock of ``time.perf_counter``. Returns none if the time is over.
    """
    search = _Enumeration(tables, rows, most)
    part = search.run([search.leaf(*one) for one in zip(count(), cells, counts, strict=False)], deadline)
    return None if part is None else search.result(part, objectives)


class _Enumeration:
    def __init__(self, tables: Tables, rows: Sequence[WholeRow], most: float) -> None:
        self._tables, self._rows, self._most = tables, rows, most
        self._limbs = limbs_needed(rows)
        self._ceilings = [
            (k, to_limbs([row.ceiling], self._limbs)[0])
            for k, row in enumerate(rows)
            if row.ceiling is not None
        ]
        self.merged, self.dropped, self.states = False, False, 1

    def leaf(self, component: int, cells: IntArray, counts: FloatArray) -> _Part:
        """Return the partial choices of one component alone."""
        digits = {
            n: d for n, d in self._tables.digits(component, cells).items() if self._tables.owners[n] > 1
        }
        keys = np.stack(list(digits.values()), axis=1) if digits else np.zeros((len(cells), 0), np.int64)
        sums = np.stack([to_limbs(row.parts[component].tolist(), self._limbs) for row in self._rows], axis=1)
        return _Part(tuple(digits), keys, sums, sums, counts, (component, cells))

    def run(self, leaves: list[_Part], deadline: float) -> _Part | None:
        """Join all components; None if the time is over, an empty part if nothing meets the ceilings."""
        self._total = reduce(added, [leaf.floor for leaf in leaves])
        parts = [self._pruned(leaf, [leaf]) for leaf in leaves]
        while all(map(len, parts)) and (len(parts) > 1 or parts[0].fields):
            shared = {name for part in parts for name in part.fields}
            field = min(sorted(shared), key=lambda name: self._reach(parts, name)) if shared else None
            group = [part for part in parts if field is None or field in part.fields]
            parts = [part for part in parts if not any(part is one for one in group)]
            group.sort(key=len)
            joined = group.pop(0)
            while group and len(joined):
                if time.perf_counter() > deadline:
                    return None
                other = group.pop(0)
                joined = self._pruned(self._joined(joined, other), [joined, other])
            if field is not None and len(joined):
                joined = self._pruned(joined.without(field), [joined])
            parts.append(joined)
        return None if time.perf_counter() > deadline else min(parts, key=len)

    def _reach(self, parts: Iterable[_Part], field: str) -> float:
        """Return how many combinations of other fields the parts with a field depend on together."""
        scope = {name for part in parts if field in part.fields for name in part.fields} - {field}
        return float(np.prod([self._tables.sizes[name] for name in scope], dtype=float))

    def _codes(self, part: _Part, names: Iterable[str]) -> IntArray:
        """Return one number for the choices of some fields, below the number of states."""
        code = np.zeros(len(part), dtype=np.int64)
        for name in names:
            code = code * self._tables.sizes[name] + part.keys[:, part.fields.index(name)]
        return code

    def _pruned(self, part: _Part, made_of: Sequence[_Part]) -> _Part:
        """Drop what is dominated or cannot meet a ceiling whatever the other parts add."""
        rest = reduce(added, [-one.floor for one in made_of], self._total)
        good = np.ones(len(part), dtype=bool)
        for k, ceiling in self._ceilings:
            good &= at_most(added(part.least[:, k], rest[k]), ceiling)
        part = part.take(good)
        kept, counts = best_of_each(self._codes(part, part.fields), ranks(part.least), part.counts)
        self.states = max(self.states, len(kept))
        part = replace(part.take(kept), counts=counts)
        if len(part):
            self._total = added(rest, part.floor)
        return part

    def _joined(self, a: _Part, b: _Part) -> _Part:
        """Return all pairs that agree in the fields they share, of merged states if they were too many."""
        common = [name for name in a.fields if name in b.fields]
        while True:
            code_a, code_b = self._codes(a, common), self._codes(b, common)
            order = np.argsort(code_b, kind="stable")
            first = np.searchsorted(code_b[order], code_a, side="left")
            pairs = np.searchsorted(code_b[order], code_a, side="right") - first
            if pairs.sum() <= self._most or len(a) == len(b) == 1:
                break
            share = 0.9 * self._most / float(pairs.sum())
            if len(a) >= len(b):
                a = self._thinned(a, max(int(len(a) * share), 1))
            else:
                b = self._thinned(b, max(int(len(b) * share), 1))
        left = np.repeat(np.arange(len(a)), pairs)
        right = order[np.repeat(first - np.cumsum(pairs) + pairs, pairs) + np.arange(pairs.sum())]
        own = [k for k, name in enumerate(b.fields) if name not in common]
        sums = added(a.sums[left], b.sums[right])
        exact = a.least is a.sums and b.least is b.sums
        return _Part(
            (*a.fields, *(b.fields[k] for k in own)),
            np.concatenate([a.keys[left], b.keys[right][:, own]], axis=1),
            sums,
            sums if exact else added(a.least[left], b.least[right]),
            a.counts[left] * b.counts[right],
            (a, left, b, right),
        )

    def _thinned(self, part: _Part, target: int) -> _Part:
        """Merge states with equal fields that are near each other, by their places in every row."""
        self.merged = True
        places, codes = ranks(part.least, places=True), self._codes(part, part.fields)
        size = places.max(axis=0) + 1
        boxes, cuts = np.unique(codes, return_inverse=True)[1].reshape(-1), 1
        if boxes.max(initial=0) >= target:  # not even one for each choice of the open fields
            self.dropped = True
            return part.take(np.sort(np.argsort((places / size).sum(axis=1), kind="stable")[:target]))
        while True:
            finer = np.unique(codes, return_inverse=True)[1].reshape(-1)
            for k in range(places.shape[1]):
                finer = finer * (2 * cuts) + places[:, k] * (2 * cuts) // size[k]
                finer = np.unique(finer, return_inverse=True)[1].reshape(-1)
            if finer.max() >= target:
                break
            boxes, cuts = finer, 2 * cuts
        order = np.lexsort(((places / size).sum(axis=1), boxes))
        starts = np.flatnonzero(np.diff(boxes[order], prepend=-1))
        lowest, low = np.minimum.reduceat(places[order], starts), np.empty_like(part.least[: len(starts)])
        for k in range(places.shape[1]):
            some = np.empty(size[k], dtype=np.int64)
            some[places[:, k]] = np.arange(len(part))
            low[:, k] = part.least[some[lowest[:, k]], k]
        return replace(part.take(order[starts]), least=low)

    def result(self, part: _Part, objectives: int) -> Reached:
        """Return what is found and what bounds the rest."""
        good = np.ones(len(part), dtype=bool)
        for k, ceiling in self._ceilings:
            good &= at_most(part.sums[:, k], ceiling)
        found = np.flatnonzero(good)
        kept, counts = best_of_each(
            np.zeros(len(found), np.int64), ranks(part.sums[found][:, :objectives]), part.counts[found]
        )
        cells = part.cells(found[kept]) if len(kept) else {}
        bounds = [self._thinned(part, BOUNDS).least if self.merged and len(part) > BOUNDS else part.least]
        if self.dropped:
            ideal = [sum(min(column.tolist()) for column in row.parts) for row in self._rows]
            bounds.append(np.stack([to_limbs([n], self._limbs)[0] for n in ideal])[None])
        columns = zip(self._rows, np.concatenate(bounds).transpose(1, 0, 2), strict=True)
        values = [[row.value(n) for n in from_limbs(column)] for row, column in columns]
        return Reached(
            cells=np.array([cells[k] for k in range(len(cells))], dtype=np.int64)
            .reshape(len(self._tables.names), -1)
            .T,
            counts=counts,
            least=[list(one) for one in zip(*values, strict=True)],
            merged=self.merged,
            states=self.states,
        )


def best_of_each(key: IntArray, costs: Any, counts: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the rows, ascending, of distinct nondominated costs among those of equal key; their counts."""
    order = np.argsort(key, kind="stable")
    kept, sums = [order[:0]], [counts[:0]]
    for group in np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(order) else ():
        best = group[nondominated(costs[group])] if len(group) > 1 else group
        first, inverse = np.unique(costs[best], axis=0, return_index=True, return_inverse=True)[1:]
        kept.append(best[first])
        sums.append(np.bincount(inverse.reshape(-1), weights=counts[best]).astype(float))
    rows = np.concatenate(kept)
    ascending = np.argsort(rows)
    return rows[ascending], np.concatenate(sums)[ascending]
