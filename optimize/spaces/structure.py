"""Which fields of a space matter where: conditional fields, counted and numbered by structure.

A design is a choice number ("digit") per field. Where a field does not matter, its digit is 0.
The designs are a disjoint union of full products of digits, the `cells`: from them follow the
number of designs, their numbers and a uniform sample, without looking at each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.checks import nearest

Digits = npt.NDArray[np.int64]
Cell = tuple[Digits, ...]
"""Digits per axis; the designs of a cell are all their combinations."""

Conditions = Mapping[str, Mapping[str, Iterable[object]]]


class Structure:
    """The conditions of a space.

    ``choices``: the values of every field; ``conditions``: ``{field: {other: values}}``: the field matters
    only where every other one matters and has one of its values.
    """

    def __init__(self, choices: Mapping[str, tuple[Any, ...]], conditions: Conditions) -> None:
        axes = {name: axis for axis, name in enumerate(choices)}
        self.shape = tuple(map(len, choices.values()))
        self.parents: dict[int, dict[int, npt.NDArray[np.bool_]]] = {}
        self.conditions: dict[str, dict[str, list[object]]] = {}
        for name, parents in conditions.items():
            for word in (name, *parents):
                if word not in axes:
                    raise ValueError(
                        f"conditions must name fields of the space, got {word!r}{nearest(word, axes)}"
                    )
            own, allowed = {other: list(values) for other, values in parents.items()}, {}
            for other, wanted in own.items():
                for value in wanted:
                    if value not in choices[other]:
                        raise ValueError(
                            f"conditions[{name!r}] must hold choices of {other!r}, got {value!r};"
                            f" known are {', '.join(map(repr, choices[other]))}"
                        )
                allowed[axes[other]] = np.array([value in wanted for value in choices[other]], dtype=bool)
            if allowed:
                self.parents[axes[name]], self.conditions[name] = allowed, own
        names = list(choices)
        self.order: list[int] = []
        """Conditional axes, each after those it depends on."""
        while len(self.order) < len(self.parents):
            rest = [axis for axis in self.parents if axis not in self.order]
            ready = [axis for axis in rest if not set(self.parents[axis]) & set(rest)]
            if not ready:
                circle = ", ".join(names[axis] for axis in rest)
                raise ValueError(
                    f"conditions must not be circular, got fields that depend on each other: {circle}"
                )
            self.order.extend(ready)

    def tied(self, axis: int) -> frozenset[int]:
        """Return the axes that a condition ties to this one directly, itself included."""
        children = {child for child, parents in self.parents.items() if axis in parents}
        return frozenset({axis, *self.parents.get(axis, ()), *children})

    def canonical(self, digits: Sequence[Digits]) -> list[Digits]:
        """Return digits per axis with 0 for every field that does not matter."""
        result, matters = list(digits), dict[int, npt.NDArray[np.bool_]]()
        for axis in self.order:
            matters[axis] = np.ones(digits[axis].shape, dtype=bool)
            for other, allowed in self.parents[axis].items():
                matters[axis] &= allowed[digits[other]] & matters.get(other, np.True_)
            result[axis] = np.where(matters[axis], result[axis], 0)
        return result

    def cells(self, axes: Iterable[int] | None = None) -> list[Cell]:
        """Return disjoint products of digits that make up all designs.

        ``axes``: only these axes, with all that conditions tie to them; the digits of the others are 0.
        """
        wanted = set(range(len(self.shape)) if axes is None else axes)
        free = [axis for axis in range(len(self.shape)) if axis not in self.parents]
        zero = np.zeros(1, dtype=np.int64)
        cells: list[tuple[dict[int, Digits], dict[int, bool]]] = [({}, {})]
        for axis in [*free, *self.order]:
            classes = self._classes(axis) if axis in wanted else [zero]
            extended = []
            for digits, matters in cells:
                here = self._matters(axis, digits, matters)
                for members in classes if here else [zero]:
                    extended.append((digits | {axis: members}, matters | {axis: here}))
            cells = extended
        return [tuple(digits[axis] for axis in range(len(self.shape))) for digits, _ in cells]

    def count(self, rules: Sequence[tuple[Sequence[int], npt.NDArray[np.bool_]]] = ()) -> int:
        """Return the number of designs that rules admit: fields that nothing ties together multiply.

        ``rules``: tables of what is admitted over some axes, ascending.
        """
        blocks = _joined([axes for axes, _ in rules])
        total = 1
        for group in _joined([*map(self.tied, range(len(self.shape))), *blocks]):
            within = [block for block in blocks if block <= group]
            count = 0
            for cell in self.cells(group):
                part = math.prod(len(cell[axis]) for axis in group.difference(*within))
                for block in within:
                    allowed = np.ones([len(cell[axis]) for axis in sorted(block)], dtype=bool)
                    for axes, table in rules:
                        if block.issuperset(axes):
                            shape = [len(cell[axis]) if axis in axes else 1 for axis in sorted(block)]
                            allowed &= table[np.ix_(*(cell[axis] for axis in axes))].reshape(shape)
                    part *= int(allowed.sum())
                count += part
            total *= count
        return total

    def _matters(self, axis: int, digits: Mapping[int, Digits], matters: Mapping[int, bool]) -> bool:
        return all(
            matters[other] and bool(allowed[digits[other][0]])
            for other, allowed in self.parents.get(axis, {}).items()
        )

    def _classes(self, axis: int) -> list[Digits]:
        """Return the digits of an axis by what they make other fields do; all together if nothing."""
        asked = [parents[axis] for parents in self.parents.values() if axis in parents]
        if not asked:
            return [np.arange(self.shape[axis], dtype=np.int64)]
        kinds = np.unique(np.stack(asked), axis=1, return_inverse=True)[1].reshape(-1)
        return [np.flatnonzero(kinds == kind) for kind in range(kinds.max() + 1)]


def _joined(sets: Iterable[Iterable[int]]) -> list[set[int]]:
    """Return sets of axes, those that overlap as one."""
    found: list[set[int]] = []
    for one in map(set, sets):
        met = [other for other in found if other & one]
        found = [other for other in found if not other & one] + [one.union(*met)]
    return found


def cell_numbers(cell: Cell, strides: Sequence[int]) -> Digits:
    """Return the numbers of the designs of a cell in row-major order of its digits."""
    numbers = np.zeros(1, dtype=np.int64)
    for digits, stride in zip(cell, strides, strict=True):
        numbers = (numbers[:, None] + digits * stride).reshape(-1)
    return numbers


def draw(cells: Sequence[Cell], strides: Sequence[int], count: int, rng: np.random.Generator) -> Digits:
    """Return the numbers of designs drawn uniformly and independently from disjoint cells."""
    weights = np.array([math.prod(map(len, cell)) for cell in cells], dtype=float)
    which = rng.choice(len(cells), size=count, p=weights / weights.sum())
    numbers = np.zeros(count, dtype=np.int64)
    for k in np.unique(which):
        rows = np.flatnonzero(which == k)
        for digits, stride in zip(cells[k], strides, strict=True):
            numbers[rows] += digits[rng.integers(len(digits), size=rows.size)] * stride
    return numbers
