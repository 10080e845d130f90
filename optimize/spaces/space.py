"""The designs to choose from: a grid over the fields of a spec."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.spaces import batches
from optimize.spaces.choices import Column, choice_column, choice_values
from optimize.spaces.constraints import Constraint, Mask, Point, answer, tabulate
from optimize.spaces.fields import find_field, replace_paths
from optimize.spaces.structure import Conditions, Structure, cell_numbers, draw

Columns = dict[str, Column]
Designs = npt.NDArray[np.int64]

CHUNK = 1 << 20
"""Spaces up to this size are enumerated to draw from them; the first design is sought in such steps."""

DRAWS = 64
"""Rounds of drawing from a larger space, each of twice the designs still missing."""


class Space:
    """All combinations of the choices for some fields of a base spec.

    Designs are numbered by their place in the grid of all choices, in row-major order: the last
    field varies fastest. The numbers depend on the choices alone, neither on the conditions nor
    on the constraints. Nothing is enumerated until it is asked for.

    Parameters
    ----------
    base : dataclass instance
        The spec whose fields vary; all other fields keep their values.
    choices : mapping, optional
        ``{name: values}`` for names that are no Python identifiers, such as
        ``"dram.channels"``.
    constraints : sequence of callables
        Each takes a point (``{name: value}``) and returns whether it is a design at all. It must
        depend on the point only: it is called once per combination of the fields it reads.
    conditions : mapping, optional
        ``{name: {other: values}}``: the field ``name`` matters only where ``other`` matters and
        has one of these values (if there are several others: all of them). Elsewhere it has its
        first choice: points that differ only in fields that do not matter are one design, with
        the smallest of their numbers.
    **fields : sequence
        ``name=values``; a name is a dotted path or a unique end of one. Values are anything
        the field accepts; a NumPy array gives its elements as Python numbers.

    Attributes
    ----------
    base : dataclass instance
        As given.
    choices : dict of str to tuple
        The values of every field, by the name it was given.
    paths : dict of str to str
        The dotted path of every name.
    shape : tuple of int
        Number of choices of every field.

    Raises
    ------
    ValueError
        If there is no field, a field is unknown, ambiguous or given twice, a list of choices is
        empty or holds a value twice, or a condition names no field or no choice or is circular.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Memory:
    ...     channels: int = 1
    ...     banks: int = 8
    >>> space = Space(Memory(), channels=[1, 2, 4], banks=[4, 8])
    >>> space.size, space.point(3), space.spec(3)
    (6, {'channels': 2, 'banks': 8}, Memory(channels=2, banks=8))
    >>> space.batch([0, 2, 4])
    Memory(channels=array([1, 2, 4]), banks=array([4, 4, 4]))
    >>> space.grid()
    Memory(channels=array([[1],
           [2],
           [4]]), banks=array([[4, 8]]))

    The number of banks matters with two channels or more:

    >>> space = Space(Memory(), channels=[1, 2, 4], banks=[4, 8], conditions={"banks": {"channels": [2, 4]}})
    >>> space.size, space.designs()
    (5, array([0, 2, 3, 4, 5]))
    """

    def __init__(
        self,
        base: Any,
        choices: Mapping[str, Iterable[object]] | None = None,
        /,
        *,
        constraints: Sequence[Constraint] = (),
        conditions: Conditions | None = None,
        **fields: Iterable[object],
    ) -> None:
        self.base = base
        self.constraints = tuple(constraints)
        self.choices: dict[str, tuple[Any, ...]] = {}
        self.paths: dict[str, str] = {}
        for name, values in [*(choices or {}).items(), *fields.items()]:
            path = find_field(base, name)
            for other, taken in self.paths.items():
                if f"{path}.".startswith(f"{taken}.") or f"{taken}.".startswith(f"{path}."):
                    raise ValueError(f"choices {other!r} and {name!r} overlap: {taken} and {path}")
            self.choices[name] = choice_values(name, values)
            self.paths[name] = path
        if not self.choices:
            raise ValueError("a space needs at least one field with choices")
        for constraint in self.constraints:
            if not callable(constraint):
                raise ValueError(f"constraints must be callables on a point, got {constraint!r}")
        self.shape = tuple(len(values) for values in self.choices.values())
        self.structure = Structure(self.choices, conditions or {})
        self._columns = {name: choice_column(values) for name, values in self.choices.items()}
        self._strides = tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @cached_property
    def size(self) -> int:
        """Number of designs, those that a constraint excludes included."""
        return self.structure.count()

    @property
    def numeric(self) -> tuple[str, ...]:
        """Names of the fields whose choices are all numbers: those that can become arrays."""
        return tuple(name for name, column in self._columns.items() if column.dtype.kind in "iuf")

    @cached_property
    def _tables(self) -> dict[str, tuple[Constraint, tuple[tuple[int, ...], Mask] | None]]:
        tables: dict[str, tuple[Constraint, tuple[tuple[int, ...], Mask] | None]] = {}
        for k, constraint in enumerate(self.constraints):
            name = getattr(constraint, "__name__", type(constraint).__name__)
            name = f"{name} #{k + 1}" if name == "<lambda>" or name in tables else name
            tables[name] = constraint, tabulate(constraint, self.choices)
        return tables

    @property
    def coupled(self) -> tuple[str, ...]:
        """Names of the fields that constraints and conditions look at or switch: the others are free."""
        axes = {axis for axis in range(len(self.shape)) if len(self.structure.tied(axis)) > 1}
        for _, table in self._tables.values():
            axes.update(range(len(self.shape)) if table is None else table[0])
        return tuple(name for axis, name in enumerate(self.choices) if axis in axes)

    def count(self) -> int:
        """Return the number of designs that satisfy the constraints.

        Only combinations of the fields that a constraint reads are enumerated, constraints on
        different fields one after the other.
        """
        tables = [table for _, table in self._tables.values()]
        known = [table for table in tables if table is not None]
        if len(known) < len(tables):
            return self.designs().size
        groups: list[set[int]] = []
        for axes, _ in known:
            joined = [group for group in groups if group & set(axes)]
            groups = [group for group in groups if not group & set(axes)] + [set(axes).union(*joined)]
        read = set().union(*groups)
        total = 0
        for cell in self.structure.cells():
            part = math.prod(len(digits) for axis, digits in enumerate(cell) if axis not in read)
            for group in groups:
                allowed = np.ones([len(cell[axis]) for axis in sorted(group)], dtype=bool)
                for axes, table in known:
                    if group.issuperset(axes):
                        shape = [len(cell[axis]) if axis in axes else 1 for axis in sorted(group)]
                        allowed &= table[np.ix_(*(cell[axis] for axis in axes))].reshape(shape)
                part *= int(allowed.sum())
            total += part
        return total

    def digits(self, design: int) -> tuple[int, ...]:
        """Return which choice every field has in one design."""
        number = int(design)
        if not 0 <= number < math.prod(self.shape):
            raise ValueError(f"design must be a number from 0 to {math.prod(self.shape) - 1}, got {design!r}")
        digits = [number // stride % length for stride, length in zip(self._strides, self.shape, strict=True)]
        if self.structure.order:
            digits = [int(digit) for digit in self.structure.canonical([np.array(digit) for digit in digits])]
        return tuple(digits)

    def point(self, design: int) -> Point:
        """Return the varied fields of one design, ``{name: value}``."""
        digits = self.digits(design)
        return {
            name: values[digit] for (name, values), digit in zip(self.choices.items(), digits, strict=True)
        }

    def points(self) -> Iterator[Point]:
        """Yield the points of all designs that satisfy the constraints, in order."""
        return (self.point(design) for design in self.designs())

    def spec(self, design: int) -> Any:
        """Return the spec of one design; if the spec refuses it, the error names the point."""
        point = self.point(design)
        try:
            return replace_paths(self.base, {self.paths[name]: value for name, value in point.items()})
        except ValueError as error:
            raise ValueError(f"{_words(point)}: {error}") from error

    def label(self, design: int) -> str:
        """Return ``design 3 (channels=2, banks=8)``, for messages."""
        return f"design {int(design)} ({_words(self.point(design))})"

    def columns(self, designs: npt.ArrayLike | None = None) -> Columns:
        """Return the varied fields of some designs (default: all), one array per field."""
        digits = self.all_digits(self.numbers(designs))
        return {
            name: column[digit] for (name, column), digit in zip(self._columns.items(), digits, strict=True)
        }

    def batch(self, designs: npt.ArrayLike | None = None, arrays: Collection[str] | None = None) -> Any:
        """Return one spec whose varied fields hold arrays, for a model that broadcasts.

        Parameters
        ----------
        designs : array_like of int, optional
            Design numbers; all by default.
        arrays : collection of str, optional
            Fields that become arrays, by default all `numeric` ones. The others stay scalars
            and must have the same value in all these designs.
        """
        return batches.batch(self, self.numbers(designs), self.numeric if arrays is None else arrays)

    def grid(self, designs: npt.ArrayLike | None = None, arrays: Collection[str] | None = None) -> Any:
        """Return one spec whose fields hold their choices, each along an axis of its own.

        The arrays broadcast against each other: the k-th of m array fields has the shape
        ``(1, .., n_k, .., 1)`` with m axes. What a model derives from few fields stays small.

        Parameters
        ----------
        designs : array_like of int, optional
            Design numbers in ascending order, all combinations of some choices per field; by
            default all of the space.
        arrays : collection of str, optional
            Fields that become arrays, by default all `numeric` ones, see `batch`.
        """
        return batches.grid(self, self.numbers(designs), self.numeric if arrays is None else arrays)

    def groups(self, designs: npt.ArrayLike, arrays: Collection[str]) -> list[Designs]:
        """Split designs into those that agree in every field outside `arrays`, for `batch`."""
        return batches.groups(self, self.numbers(designs), arrays)

    def violations(self, designs: npt.ArrayLike | None = None) -> dict[str, npt.NDArray[np.bool_]]:
        """Return for every constraint, by its name, which of the designs (default: all) it excludes."""
        if not self.constraints:
            return {}
        result: dict[str, npt.NDArray[np.bool_]] = {}
        numbers = self.numbers(designs)
        for name, (constraint, known) in self._tables.items():
            if known is None:
                points = partial(_point_at, self, numbers)
                result[name] = ~answer(constraint, self.columns(numbers), points, numbers.size)
            else:
                axes, table = known
                here = table[tuple(self.all_digits(numbers, axes))] if axes else table
                result[name] = ~np.broadcast_to(here, numbers.shape)
        return result

    def designs(self) -> Designs:
        """Return the numbers of all designs that satisfy the constraints, ascending."""
        return self.admitted(self.numbers(None))

    def first(self) -> int | None:
        """Return the smallest number of a design that satisfies the constraints; None without any."""
        total = math.prod(self.shape)
        for start in range(0, total, CHUNK):
            numbers = np.unique(self.numbers(np.arange(start, min(start + CHUNK, total))))
            admitted = self.admitted(numbers)
            if admitted.size:
                return int(admitted[0])
        return None

    def sample(self, count: int, *, seed: int) -> Designs:
        """Return distinct designs drawn uniformly, ascending; the same for the same seed.

        A space of more than a million designs is not enumerated for it.

        Raises
        ------
        ValueError
            If the constraints leave fewer designs (beyond a million: if hardly one of many
            thousand draws passes).
        """
        if not (isinstance(count, (int, np.integer)) and count >= 0):
            raise ValueError(f"count must be a whole number >= 0, got {count!r}")
        rng = np.random.default_rng(seed)
        if self.size <= CHUNK:
            found = rng.permutation(self.designs())[:count]
        else:
            found = np.zeros(0, dtype=np.int64)
            for _ in range(DRAWS):
                if found.size >= count:
                    break
                drawn = draw(
                    self.structure.cells(), self._int64_strides(), 2 * (count - found.size) + 64, rng
                )
                found = np.concatenate([found, self.admitted(drawn)])
                found = found[np.sort(np.unique(found, return_index=True)[1])]
            found = found[:count]
        if found.size < count:
            raise ValueError(
                f"count must be at most the number of designs found ({found.size}), got {count!r}"
            )
        return np.sort(found)

    def column(self, name: str) -> Column:
        """Return the choices of a field as an array."""
        return self._columns[name]

    def admitted(self, numbers: Designs) -> Designs:
        """Return those of some checked design numbers that satisfy the constraints."""
        allowed = np.ones(numbers.size, dtype=bool)
        for bad in self.violations(numbers).values():
            allowed &= ~bad
        return numbers[allowed]

    def _int64_strides(self) -> tuple[int, ...]:
        if math.prod(self.shape) > np.iinfo(np.int64).max:
            raise ValueError(
                f"a space must have less than 2^63 combinations to be numbered, got {math.prod(self.shape)}"
            )
        return self._strides

    def all_digits(self, numbers: Designs, axes: Iterable[int] | None = None) -> list[Designs]:
        """Return which choice the fields (by their places; default: all) have in checked designs."""
        strides = self._int64_strides()
        chosen = range(len(self.shape)) if axes is None else axes
        return [numbers // strides[axis] % self.shape[axis] for axis in chosen]

    def numbers(self, designs: npt.ArrayLike | None) -> Designs:
        """Return design numbers as an array, checked; all of the space by default.

        A number of a point whose irrelevant fields are not at their first choice becomes that of
        its design.
        """
        if designs is None:
            strides = self._int64_strides()
            if not self.structure.order:
                return np.arange(self.size, dtype=np.int64)
            return np.sort(np.concatenate([cell_numbers(cell, strides) for cell in self.structure.cells()]))
        numbers = np.asarray(designs)
        if numbers.size == 0:
            return np.zeros(0, dtype=np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ValueError(f"designs must be a list of whole numbers, got {designs!r}")
        total = math.prod(self.shape)
        bad = numbers[(numbers < 0) | (numbers >= total)]
        if bad.size:
            raise ValueError(f"designs must be numbers from 0 to {total - 1}, got {bad[0]}")
        numbers = numbers.astype(np.int64)
        if not self.structure.order:
            return numbers
        return self.number_of(self.structure.canonical(self.all_digits(numbers)))

    def number_of(self, digits: Iterable[npt.ArrayLike]) -> Designs:
        """Return the numbers of designs given by which choice every field has."""
        number: Designs = np.zeros(1, dtype=np.int64)[0]
        for digit, stride in zip(digits, self._int64_strides(), strict=True):
            number = number + np.asarray(digit, dtype=np.int64) * stride
        return number

    def __repr__(self) -> str:
        grid = " x ".join(f"{name}[{len(values)}]" for name, values in self.choices.items())
        return f"Space({type(self.base).__name__}: {grid} = {self.size} designs)"


def _point_at(space: Space, numbers: Designs, k: int) -> Point:
    return space.point(numbers[k])


def _words(point: Point) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in point.items())
