"""Designs by number: the grid of all choices for some fields of a spec."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from optimize.spaces.constraints import Point
from optimize.spaces.structure import Conditions, Structure, cell_numbers
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.fields import find_fields, replace_paths

NAN = "NaN"
"""The kind of error of a model that returns what is no number."""

LONGEST = 200
"""Most characters that are kept of what an error says."""


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
