"""What a solver with tolerances may have overlooked, found by exact enumeration of the rest.

A solver of linear programs tells sums apart down to some 1e-9 of the largest coefficient. Losses of
1e-1 and 1e-11 in one table are the same to it, so what it calls optimal need not be. Here the
choices that no known one equals or beats are enumerated in whole numbers: a floating-point number
is a whole number of a power of two, and sums of those are exact.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import frexp, inf, nextafter
from typing import Any

import numpy as np

from optimize.programs.program import Program, best_of_each
from optimize.search.pareto import FloatArray, IntArray, nondominated

PAIRS = 300_000
"""Partial choices looked at in one step, at most: about a second."""

MANTISSA = 53
"""Bits of a floating-point number."""

Column = np.ndarray[Any, Any]
"""Exact whole numbers: int64 where all sums fit, Python's otherwise."""


@dataclass(frozen=True)
class _Part:
    """Partial choices: what they fix of the shared fields, their exact sums and their cells."""

    fields: tuple[str, ...]
    keys: IntArray
    sums: list[Column]
    cells: IntArray

    def __len__(self) -> int:
        return len(self.cells)

    def take(self, rows: Any) -> _Part:
        return _Part(self.fields, self.keys[rows], [column[rows] for column in self.sums], self.cells[rows])

    def without(self, field: str) -> _Part:
        kept = [k for k, name in enumerate(self.fields) if name != field]
        return _Part(tuple(self.fields[k] for k in kept), self.keys[:, kept], self.sums, self.cells)


def overlooked(
    program: Program, known: Sequence[dict[str, int]], deadline: float = inf
) -> list[dict[str, int]] | None:
    """Return a choice for every vector of objectives that is missing among the known ones.

    Parameters
    ----------
    program : Program
        Components, objectives and budgets.
    known : sequence of dict
        Choices within the budgets, the more of the front the faster.
    deadline : float
        When to give up, on the clock of ``time.perf_counter``.

    Returns
    -------
    list of dict or None
        With the known ones they have the exact sums of the whole front; None if there are too
        many partial choices to look at, or no time.

    Notes
    -----
    Components are joined field by field (bucket elimination): those that share a field are added
    up for each of its choices, and of the partial sums with equal open fields only the
    nondominated ones go on. A partial sum is dropped as well if a known choice equals or beats
    whatever it can still become.
    """
    exact = _Exact(program, known)
    parts = exact.parts()
    while len(parts) > 1 or parts[0].fields:
        shared = {name for part in parts for name in part.fields}
        field = min(shared, key=lambda name: exact.reach(parts, name)) if shared else None
        group = [part for part in parts if field is None or field in part.fields]
        parts = [part for part in parts if not any(part is one for one in group)]
        group.sort(key=len)
        joined = group.pop(0)
        while group:
            other = group.pop(0)
            pairs = _join(joined, other, exact.sizes)
            if pairs is None or time.perf_counter() > deadline:
                return None
            joined = exact.pruned(pairs, [*group, *parts])
        if field is not None:
            joined = exact.pruned(joined.without(field), parts)
        parts.append(joined)
    choices = [_choice(program, row) for row in exact.pruned(parts[0], []).cells.tolist()]
    return [choice for choice in choices if program.within(choice)]


class _Exact:
    """The rows of a program in whole numbers, and what the known choices leave open."""

    def __init__(self, program: Program, known: Sequence[dict[str, int]]) -> None:
        self._program = program
        self.sizes = program.tables.sizes
        self._count = len(program.objectives)
        self._columns: list[list[Column]] = []
        self._bounds: list[int] = []
        for row in program.rows:
            kept = [values[cells] for values, cells in zip(row.values, program.cells, strict=True)]
            # The correctly rounded sum may not exceed the bound, so the exact one not its successor.
            bound = [] if row.bound == inf else [nextafter(row.bound, inf)]
            *columns, bounds = _whole([*kept, np.array(bound)])
            self._columns.append(columns)
            self._bounds += bounds.tolist()
        position = [{int(cell): k for k, cell in enumerate(cells)} for cells in program.cells]
        rows = [
            [position[part][cell] for part, cell in enumerate(program.cells_of(choice))] for choice in known
        ]
        self._known: list[Column] = [
            np.sum([column[[row[k] for row in rows]] for k, column in enumerate(columns)], axis=0)
            for columns in self._columns[: self._count]
        ]

    def parts(self) -> list[_Part]:
        """Return every component alone."""
        tables, result = self._program.tables, []
        for k, cells in enumerate(self._program.cells):
            digits = {name: d for name, d in tables.digits(k, cells).items() if tables.owners[name] > 1}
            chosen = np.full((len(cells), len(tables.names)), -1, dtype=np.int64)
            chosen[:, k] = cells
            keys = np.stack(list(digits.values()), axis=1) if digits else np.zeros((len(cells), 0), np.int64)
            result.append(_Part(tuple(digits), keys, [columns[k] for columns in self._columns], chosen))
        return result

    def reach(self, parts: Iterable[_Part], field: str) -> int:
        """Return how many combinations of other fields the parts with a field depend on together."""
        scope = {name for part in parts if field in part.fields for name in part.fields} - {field}
        return int(np.prod([self.sizes[name] for name in scope], dtype=float))

    def pruned(self, part: _Part, others: Sequence[_Part]) -> _Part:
        """Drop what cannot become a new point of the front."""
        if not all(map(len, (part, *others))):
            return part.take(slice(0, 0))
        final = [column + sum(min(o.sums[k]) for o in others) for k, column in enumerate(part.sums)]
        good = np.ones(len(part), dtype=bool)
        for column, bound in zip(final[self._count :], self._bounds, strict=True):
            good &= np.asarray(column <= bound, dtype=bool)
        if len(self._known[0]):
            good[good] = ~_covered([column[good] for column in final[: self._count]], self._known)
        part = part.take(good)
        key = _codes(part.keys, [self.sizes[name] for name in part.fields])
        return part.take(best_of_each(key, _ranks(part.sums)))


def _join(a: _Part, b: _Part, sizes: dict[str, int]) -> _Part | None:
    """Return all pairs that agree in the fields they share; None if they are too many."""
    common = [name for name in a.fields if name in b.fields]
    own = [k for k, name in enumerate(b.fields) if name not in common]
    code_a, code_b = (
        _codes(part.keys[:, [part.fields.index(name) for name in common]], [sizes[name] for name in common])
        for part in (a, b)
    )
    order = np.argsort(code_b, kind="stable")
    first = np.searchsorted(code_b[order], code_a, side="left")
    count = np.searchsorted(code_b[order], code_a, side="right") - first
    if count.sum() > PAIRS:
        return None
    left = np.repeat(np.arange(len(a)), count)
    right = order[np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())]
    return _Part(
        (*a.fields, *(b.fields[k] for k in own)),
        np.concatenate([a.keys[left], b.keys[right][:, own]], axis=1),
        [x[left] + y[right] for x, y in zip(a.sums, b.sums, strict=True)],
        np.maximum(a.cells[left], b.cells[right]),
    )


def _whole(arrays: list[FloatArray]) -> list[Column]:
    """Return finite numbers as whole multiples of one power of two, exactly."""
    parts = [[frexp(value) for value in values.tolist()] for values in arrays]
    exponents = [exponent for values in parts for mantissa, exponent in values if mantissa]
    low = min(exponents, default=0)
    # The sum over all components and a bound have to fit as well.
    bits = max(exponents, default=0) - low + MANTISSA + len(arrays).bit_length() + 1
    dtype = np.int64 if bits < 63 else object
    return [
        np.array([int(m * 2**MANTISSA) << max(e - low, 0) for m, e in values], dtype=dtype)
        for values in parts
    ]


def _codes(keys: IntArray, sizes: list[int]) -> IntArray:
    codes = np.zeros(len(keys), dtype=np.int64)
    for column, size in zip(keys.T, sizes, strict=True):
        codes = codes * size + column
    return codes


def _ranks(columns: list[Column]) -> FloatArray:
    """Return the places of exact numbers among their column's, which compare like them."""
    return np.stack([np.unique(column, return_inverse=True)[1].astype(float) for column in columns], axis=1)


def _covered(columns: list[Column], known: list[Column]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which points a known one equals or beats in every objective."""
    size = len(columns[0])
    ranks = _ranks([np.concatenate(pair) for pair in zip(columns, known, strict=True)])
    points, front = ranks[:size], np.unique(ranks[size:], axis=0)
    front = front[nondominated(front)]
    covered = np.zeros(size, dtype=bool)
    chunk = max(1, 4_000_000 // len(front))
    for start in range(0, size, chunk):
        some = points[start : start + chunk]
        beaten = np.ones((len(some), len(front)), dtype=bool)
        for k in range(points.shape[1]):
            beaten &= front[:, k] <= some[:, k, None]
        covered[start : start + chunk] = beaten.any(axis=1)
    return covered


def _choice(program: Program, cells: list[int]) -> dict[str, int]:
    choice: dict[str, int] = {}
    for k, cell in enumerate(cells):
        choice |= {name: int(row[0]) for name, row in program.tables.digits(k, [cell]).items()}
    return {name: choice[name] for name in program.tables.sizes}
