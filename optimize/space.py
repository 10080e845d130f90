"""The designs to choose from: a grid over the fields of a spec."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.fields import find_field, replace_paths

Column = npt.NDArray[Any]
Columns = dict[str, Column]
Designs = npt.NDArray[np.int64]
Point = dict[str, Any]
Constraint = Callable[[Point], bool]


class Space:
    """All combinations of the choices for some fields of a base spec.

    Designs are numbered ``0 .. size - 1`` in row-major order: the last field varies fastest.
    The numbers depend on the choices alone, not on the constraints. Nothing is enumerated
    until it is asked for.

    Parameters
    ----------
    base : dataclass instance
        The spec whose fields vary; all other fields keep their values.
    choices : mapping, optional
        ``{name: values}`` for names that are no Python identifiers, such as
        ``"dram.channels"``.
    constraints : sequence of callables
        Each takes a point (``{name: value}``) and returns whether it is a design at all.
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
        If there is no field, a field is unknown, ambiguous or given twice, or a list of
        choices is empty or holds a value twice.

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
    """

    def __init__(
        self,
        base: Any,
        choices: Mapping[str, Iterable[object]] | None = None,
        /,
        *,
        constraints: Sequence[Constraint] = (),
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
            self.choices[name] = _values(name, values)
            self.paths[name] = path
        if not self.choices:
            raise ValueError("a space needs at least one field with choices")
        for constraint in self.constraints:
            if not callable(constraint):
                raise ValueError(f"constraints must be callables on a point, got {constraint!r}")
        self.shape = tuple(len(values) for values in self.choices.values())
        self._columns = {name: _column(values) for name, values in self.choices.items()}

    @property
    def size(self) -> int:
        """Number of designs, those that a constraint excludes included."""
        return math.prod(self.shape)

    @property
    def numeric(self) -> tuple[str, ...]:
        """Names of the fields whose choices are all numbers: those that can become arrays."""
        return tuple(name for name, column in self._columns.items() if column.dtype.kind in "iuf")

    def digits(self, design: int) -> tuple[int, ...]:
        """Return which choice every field has in one design."""
        rest = int(design)
        if not 0 <= rest < self.size:
            raise ValueError(f"design must be a number from 0 to {self.size - 1}, got {design!r}")
        digits = []
        for length in reversed(self.shape):
            rest, digit = divmod(rest, length)
            digits.append(digit)
        return tuple(reversed(digits))

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
        digits = np.unravel_index(self.numbers(designs), self.shape)
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
        numbers = self.numbers(designs)
        varied = set(self.numeric if arrays is None else arrays)
        values: dict[str, object] = {}
        for name, digit in zip(self.choices, np.unravel_index(numbers, self.shape), strict=True):
            if name in varied:
                values[name] = self._columns[name][digit]
            elif len(set(digit.tolist())) == 1:
                values[name] = self.choices[name][digit[0]]
            else:
                raise ValueError(f"{name} must have one value in a batch, as it cannot be an array")
        try:
            return replace_paths(self.base, {self.paths[name]: value for name, value in values.items()})
        except (TypeError, ValueError) as error:
            for design in numbers:
                self.spec(design)  # names the first design that the spec refuses
            raise ValueError(f"{type(self.base).__name__} takes no arrays: {error}") from error

    def groups(self, designs: npt.ArrayLike, arrays: Collection[str]) -> list[Designs]:
        """Split designs into those that agree in every field outside `arrays`, for `batch`."""
        numbers = self.numbers(designs)
        key = np.zeros(numbers.size, dtype=np.int64)
        for name, digit in zip(self.choices, np.unravel_index(numbers, self.shape), strict=True):
            if name not in arrays:
                key = key * len(self.choices[name]) + digit
        order = np.argsort(key, kind="stable")
        cuts = np.flatnonzero(np.diff(key[order])) + 1
        return [numbers[part] for part in np.split(order, cuts) if part.size]

    def violations(self, designs: npt.ArrayLike | None = None) -> dict[str, npt.NDArray[np.bool_]]:
        """Return for every constraint, by its name, which of the designs it excludes."""
        result: dict[str, npt.NDArray[np.bool_]] = {}
        if self.constraints:
            numbers = self.numbers(designs)
            points = [self.point(design) for design in numbers]
            for k, constraint in enumerate(self.constraints):
                name = getattr(constraint, "__name__", type(constraint).__name__)
                name = f"{name} #{k + 1}" if name == "<lambda>" or name in result else name
                result[name] = np.array([not constraint(point) for point in points], dtype=bool)
        return result

    def designs(self) -> Designs:
        """Return the numbers of all designs that satisfy the constraints."""
        allowed = np.ones(self.size, dtype=bool)
        for bad in self.violations().values():
            allowed &= ~bad
        return np.flatnonzero(allowed)

    def numbers(self, designs: npt.ArrayLike | None) -> Designs:
        """Return design numbers as an array, checked; all of the space by default."""
        if designs is None:
            return np.arange(self.size, dtype=np.int64)
        numbers = np.asarray(designs)
        if numbers.size == 0:
            return np.zeros(0, dtype=np.int64)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise ValueError(f"designs must be a list of whole numbers, got {designs!r}")
        bad = numbers[(numbers < 0) | (numbers >= self.size)]
        if bad.size:
            raise ValueError(f"designs must be numbers from 0 to {self.size - 1}, got {bad[0]}")
        return numbers.astype(np.int64)

    def __repr__(self) -> str:
        grid = " x ".join(f"{name}[{len(values)}]" for name, values in self.choices.items())
        return f"Space({type(self.base).__name__}: {grid} = {self.size} designs)"


def _words(point: Point) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in point.items())


def _values(name: str, values: Iterable[object]) -> tuple[Any, ...]:
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


def _column(values: tuple[Any, ...]) -> Column:
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
