"""Designs by number: the grid of all choices for some fields, and specs that stand for many designs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from optimize.spaces.structure import Conditions, Point, Structure, cell_numbers
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.fields import find_fields, replace_paths

NAN = "NaN"  # the kind of error of a model that returns what is no number
LONGEST = 200  # most characters that are kept of what an error says


class MisuseError(ValueError):
    """A call that makes no sense whatever the design."""


STOPS = (MisuseError, MemoryError, OSError, ImportError)
"""What ends an exploration: the call or the machine is at fault, not the design."""


@dataclass(frozen=True, kw_only=True)
class Hole:
    """Designs at which the model had no answer but one kind of error."""

    error: str  #: Name of the exception, or ``"NaN"``
    designs: int  #: How many designs
    first: int  #: The number of the first of them
    line: str  #: What the model said there, in one line

    def __str__(self) -> str:
        return f"{self.error}: {self.line}"


class Found(NamedTuple):
    """The metrics of those designs that have any, and the errors at the others."""

    designs: Designs
    columns: Columns
    errors: Mapping[int, str]  # of a design its kind, a colon and a line


def said(error: BaseException) -> str:
    """Return the kind of an error and what it says, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:LONGEST]}"


def holes_of(errors: Mapping[int, str]) -> tuple[Hole, ...]:
    """Return the holes of designs with their errors."""
    told = ((design, text.split(": ", 1)) for design, text in errors.items())
    return joined(Hole(error=kind, designs=1, first=design, line=line) for design, (kind, line) in told)


def joined(holes: Iterable[Hole]) -> tuple[Hole, ...]:
    """Return the holes of disjoint sets of designs as those of all, one for each kind, by their first design.

    >>> one, other = (Hole(error="KeyError", designs=2, first=first, line="x") for first in (5, 3))
    >>> joined([one, other])
    (Hole(error='KeyError', designs=4, first=3, line='x'),)
    """
    found: dict[str, Hole] = {}
    for hole in sorted(holes, key=lambda one: one.first):
        known = found.get(hole.error)
        found[hole.error] = replace(known, designs=known.designs + hole.designs) if known else hole
    return tuple(found.values())


Column = npt.NDArray[Any]
Columns = dict[str, Column]
Designs = npt.NDArray[np.int64]
SMALL = 64  # designs per grid below which flat arrays are better: a call of a model costs more than an array


class Grid:
    """Grid of `optimize.spaces.space.Space`, without its constraints.

    ``base``: the spec whose fields vary; ``choices``: the fields and their values; ``conditions``: which
    fields matter where.
    """

    def __init__(
        self, base: Any, choices: Iterable[tuple[str, Iterable[object]]], conditions: Conditions
    ) -> None:
        given = list(choices)
        self.base = base
        self.paths = find_fields(base, [name for name, _ in given], "choices")
        self.choices = {name: choice_values(name, values) for name, values in given}
        if not self.choices:
            raise ValueError("a space needs at least one field with choices")
        self.shape = tuple(len(values) for values in self.choices.values())
        self.structure = Structure(self.choices, conditions)
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

    @property
    def coupled(self) -> tuple[str, ...]:
        """Names of the fields that conditions look at or switch: the others are free."""
        return tuple(name for axis, name in enumerate(self.choices) if len(self.structure.tied(axis)) > 1)

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

    def column(self, name: str) -> Column:
        """Return the choices of a field as an array."""
        return self._columns[name]

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance between the numbers of designs that differ by one choice of a field, for every field."""
        if math.prod(self.shape) > np.iinfo(np.int64).max:
            raise ValueError(
                f"a space must have less than 2^63 combinations to be numbered, got {math.prod(self.shape)}"
            )
        return self._strides

    def all_digits(self, numbers: Designs, axes: Iterable[int] | None = None) -> list[Designs]:
        """Return which choice the fields (by their places; default: all) have in checked designs."""
        strides = self.strides
        chosen = range(len(self.shape)) if axes is None else axes
        return [numbers // strides[axis] % self.shape[axis] for axis in chosen]

    def numbers(self, designs: npt.ArrayLike | None) -> Designs:
        """Return design numbers as an array, checked; all of the space by default.

        A number of a point whose irrelevant fields are not at their first choice becomes that of
        its design.
        """
        if designs is None:
            strides = self.strides
            most = max(self.choices, key=lambda name: len(self.choices[name]))
            afford(f"choices of {most}", len(self.choices[most]), designs=float(self.size))
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
        for digit, stride in zip(digits, self.strides, strict=True):
            number = number + np.asarray(digit, dtype=np.int64) * stride
        return number

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
        numbers, own = self.numbers(designs), self.numeric if arrays is None else arrays
        digits = self._by_name(numbers)
        columns = {name: self.column(name)[digit] for name, digit in digits.items() if name in own}
        return self._with_arrays(columns, digits, numbers)

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
        numbers, names = self.numbers(designs), self.numeric if arrays is None else arrays
        own, whole = self._present(numbers, names)
        if not whole:
            sizes = " x ".join(f"{name}[{len(digit)}]" for name, digit in own.items())
            raise ValueError(
                "designs of a grid must be all combinations of some choices, ascending,"
                f" got {numbers.size} designs for {sizes or 'no field'}"
            )
        return self.span(self._by_name(numbers) | own, numbers, names)

    def span(self, digits: Mapping[str, Designs], numbers: Designs, arrays: Collection[str]) -> Any:
        """Return the spec of designs that are all combinations of the digits of every field."""
        own = [name for name in digits if name in arrays]
        spans = {
            name: self.column(name)[digits[name]].reshape([-1 if other == name else 1 for other in own])
            for name in own
        }
        return self._with_arrays(spans, digits, numbers)

    def groups(self, designs: npt.ArrayLike, arrays: Collection[str]) -> list[Designs]:
        """Split designs into those that agree in every field outside `arrays`, for `batch`."""
        numbers = self.numbers(designs)
        if numbers.size == 0:
            return []
        axes = [axis for axis, name in enumerate(self.choices) if name not in arrays]
        key = np.zeros(numbers.size, dtype=np.int64)
        for axis, digit in zip(axes, self.all_digits(numbers, axes), strict=True):
            key = key * self.shape[axis] + digit
        order = np.argsort(key, kind="stable")
        return np.split(numbers[order], np.flatnonzero(np.diff(key[order])) + 1)

    def boxes(
        self, numbers: Designs, arrays: Collection[str], chunk: int
    ) -> Iterator[tuple[Designs, tuple[int, ...] | None]]:
        """Split ascending designs into parts of at most `chunk` for `grid`, as few as it takes.

        Fields that constraints and conditions tie are held where the designs are no full grid; what is
        left over, such as the rest of an interrupted exploration, comes in parts for `batch`.

        Yields the shape of the grid that the designs span; None for flat arrays.
        """
        for group in self.groups(numbers, arrays):
            parts = [group]
            if self._shape(group, arrays) is None:
                parts = self.groups(group, [name for name in arrays if name not in self.coupled])
                if len(parts) * SMALL > group.size or any(self._shape(one, arrays) is None for one in parts):
                    for start in range(0, group.size, chunk):
                        yield group[start : start + chunk], None
                    continue
            for part in parts:
                shape = self._shape(part, arrays)
                assert shape is not None
                for box in Cuts(shape, chunk):
                    block = part.reshape(shape)[tuple(slice(*ends) for ends in box)]
                    yield block.reshape(-1), block.shape

    def _shape(self, numbers: Designs, arrays: Collection[str]) -> tuple[int, ...] | None:
        """Return the shape of the grid that designs span over the array fields; None if it is none."""
        own, whole = self._present(numbers, arrays)
        return tuple(map(len, own.values())) if whole else None

    def _by_name(self, numbers: Designs) -> dict[str, Designs]:
        return dict(zip(self.choices, self.all_digits(numbers), strict=True))

    def _present(self, numbers: Designs, arrays: Collection[str]) -> tuple[dict[str, Designs], bool]:
        """Return the digits that occur in each array field, and whether designs are all combinations."""
        digits = self._by_name(numbers)
        # np.unique is ten times slower.
        own = {name: np.flatnonzero(np.bincount(digits[name])) for name in digits if name in arrays}
        shape = tuple(map(len, own.values()))
        return own, np.prod(shape, dtype=float) == numbers.size and all(
            (digits[name].reshape(shape) == one.reshape([-1 if other == name else 1 for other in own])).all()
            for name, one in own.items()
        )

    def _with_arrays(
        self, arrays: Mapping[str, Column], digits: Mapping[str, Designs], numbers: Designs
    ) -> Any:
        values: dict[str, object] = dict(arrays)
        for name, digit in digits.items():
            if name not in arrays:
                if digit.size == 0 or (digit != digit[0]).any():
                    raise ValueError(f"{name} must have one value in a batch, as it cannot be an array")
                values[name] = self.choices[name][digit[0]]
        try:
            return replace_paths(self.base, {self.paths[name]: value for name, value in values.items()})
        except (TypeError, ValueError) as error:
            for design in numbers:
                self.spec(design)  # names the first design that the spec refuses
            raise ValueError(f"{type(self.base).__name__} takes no arrays: {error}") from error


class Cuts(Sequence[tuple[tuple[int, int], ...]]):
    """Boxes of at most so many elements that make up a grid: the first and the end digit of each axis.

    Inner axes stay whole, one is cut into runs of equal length but for one, outer ones are single: what
    a model computes once for all of a box is cut as little as can be.

    Examples
    --------
    >>> list(Cuts((2, 5), 3))
    [((0, 1), (0, 3)), ((0, 1), (3, 5)), ((1, 2), (0, 3)), ((1, 2), (3, 5))]
    """

    def __init__(self, shape: tuple[int, ...], chunk: int) -> None:
        axis, inner = len(shape), 1
        while axis > 0 and inner * shape[axis - 1] <= chunk:
            axis -= 1
            inner *= shape[axis]
        self._whole = tuple((0, length) for length in shape[axis:])
        self._outer = shape[: max(axis - 1, 0)]
        self._length = shape[axis - 1] if axis else 1
        parts = math.ceil(self._length / max(chunk // inner, 1))
        self._run = math.ceil(self._length / parts)
        self._parts = math.ceil(self._length / self._run)
        self._cut = axis > 0

    def __len__(self) -> int:
        return math.prod(self._outer) * self._parts

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < len(self):
            raise IndexError(k)
        outer, part = divmod(int(k), self._parts)
        single = tuple((int(d), int(d) + 1) for d in np.unravel_index(outer, self._outer))
        start = part * self._run
        run = ((start, min(start + self._run, self._length)),) if self._cut else ()
        return (*single, *run, *self._whole)


def distinct(numbers: Designs) -> Designs:
    """Return the distinct ones of some numbers, ascending; `numpy.unique` (2.4) takes fifty times as long."""
    ordered = np.sort(numbers)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])[: ordered.size]]


def _words(point: Point) -> str:
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in point.items()}
    return ", ".join(f"{name}={value!r}" for name, value in plain.items())


def choice_values(name: str, values: Iterable[object]) -> tuple[Any, ...]:
    """Return the choices of a field as a tuple: at least one, none twice."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a sequence of choices, got {values!r}")
    result = tuple(values)
    if not result:
        raise ValueError(f"{name} must have at least one choice, got {values!r}")
    try:
        distinct = len(set(result)) == len(result)
    except TypeError:  # values that cannot be hashed are compared one by one
        distinct = False
    for k, value in enumerate(() if distinct else result):
        if value in result[:k]:
            raise ValueError(f"{name} must have distinct choices, got {value!r} twice")
    return result


def choice_column(values: tuple[Any, ...]) -> Column:
    """Return choices as an array: numbers, truth values or words; anything else as objects."""
    for kind in (bool, str):
        if all(isinstance(value, kind) for value in values):
            return np.array(values)
    if all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        column[k] = value
    return column
