"""Which fields of a space matter where, and which combinations of them constraints admit.

A design is a choice number ("digit") per field. Where a field does not matter, its digit is 0.
The designs are a disjoint union of full products of digits, the `cells`: from them follow the
number of designs, their numbers and a uniform sample, without looking at each.

A constraint is a plain function of one point. Which fields it reads is found by running it: it is
followed through its choices like a decision tree, and its answer kept as a table over the fields
it reads. A constraint on three fields is called once per combination of their choices, however
many designs there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.checks import nearest
from optimize.search.pareto import BoolArray

Digits = npt.NDArray[np.int64]
Cell = tuple[Digits, ...]  # digits per axis; the designs of a cell are all their combinations
Conditions = Mapping[str, Mapping[str, Iterable[object]]]


class Structure:
    """The conditions of a space.

    ``choices``: the values of every field; ``conditions``: ``{field: {other: values}}``: the field matters
    only where every other one matters and has one of its values.
    """

    def __init__(self, choices: Mapping[str, tuple[Any, ...]], conditions: Conditions) -> None:
        axes = {name: axis for axis, name in enumerate(choices)}
        self.shape = tuple(map(len, choices.values()))
        self.parents: dict[int, dict[int, BoolArray]] = {}
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
        result, matters = list(digits), dict[int, BoolArray]()
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
                parents = self.parents.get(axis, {}).items()
                here = all(matters[other] and bool(ok[digits[other][0]]) for other, ok in parents)
                for members in classes if here else [zero]:
                    extended.append((digits | {axis: members}, matters | {axis: here}))
            cells = extended
        return [tuple(digits[axis] for axis in range(len(self.shape))) for digits, _ in cells]

    def count(self, rules: Sequence[tuple[Sequence[int], BoolArray]] = ()) -> int:
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


Point = dict[str, Any]
Constraint = Callable[[Point], bool]

CALLS = 100_000  # calls after which a constraint counts as one that reads too much for a table
SPOT_CHECKS = 64
"""Designs for which a constraint called with arrays is compared with itself called one by one."""


class _Unread(BaseException):
    """Asks for the value of a field; no Exception, so that no constraint handles it."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Partial(Mapping[str, Any]):
    """A point of which only some fields are known yet."""

    def __init__(self, names: Sequence[str], known: Mapping[str, Any]) -> None:
        self._names, self._known = names, known

    def __getitem__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        if name in self._names:
            raise _Unread(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def tabulate(
    constraint: Constraint, choices: Mapping[str, tuple[Any, ...]]
) -> tuple[tuple[int, ...], BoolArray] | None:
    """Return the axes a constraint reads and its answers over their choices.

    None if it takes too many calls, or cannot be asked with a point that is no dict.
    """
    axes = {name: axis for axis, name in enumerate(choices)}
    leaves: list[tuple[dict[str, int], bool]] = []
    stack: list[dict[str, int]] = [{}]
    for _ in range(CALLS):
        if not stack:
            break
        digits = stack.pop()
        known = {name: choices[name][digit] for name, digit in digits.items()}
        try:
            leaves.append((digits, bool(constraint(_Partial(tuple(choices), known)))))  # type: ignore[arg-type]
        except _Unread as unread:
            stack.extend(digits | {unread.name: digit} for digit in range(len(choices[unread.name])))
        except Exception:  # the same call with a real point tells the user
            return None
    if stack:
        return None
    read = sorted({axes[name] for digits, _ in leaves for name in digits})
    names = list(choices)
    if np.prod([float(len(choices[names[axis]])) for axis in read]) > 64 * CALLS:
        return None
    table = np.zeros([len(choices[names[axis]]) for axis in read], dtype=bool)
    for digits, answer in leaves:
        table[tuple(digits.get(names[axis], slice(None)) for axis in read)] = answer
    return tuple(read), table


def answer(
    constraint: Constraint, columns: Mapping[str, npt.NDArray[Any]], point: Callable[[int], Point], count: int
) -> BoolArray:
    """Return the answers of a constraint that has no table for `count` points.

    It is called with the columns in place of a point if that gives one answer per design, the same
    as for single points where that is checked; else with one point after the other.
    """
    sample = np.unique(np.linspace(0, count - 1, SPOT_CHECKS).astype(int)) if count else range(0)
    try:
        result = np.asarray(constraint(dict(columns)))
        if result.shape == (count,) and result.dtype == bool:
            if all(bool(constraint(point(k))) == result[k] for k in sample):
                return result
    except Exception:  # it takes no arrays, or fails for single points too, which is shown below
        pass
    return np.array([bool(constraint(point(k))) for k in range(count)], dtype=bool)
