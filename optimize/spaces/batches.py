"""Specs that stand for many designs: flat arrays, or arrays that span a grid."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from optimize.spaces.numbering import Column, Designs, Grid
from qmodels.systems.spec.fields import replace_paths

SMALL = 64
"""Designs per grid below which flat arrays are better: a call of a model costs more than an array."""


def batch(space: Grid, numbers: Designs, arrays: Collection[str]) -> Any:
    """Do the work of `Space.batch` for checked design numbers."""
    digits = dict(zip(space.choices, space.all_digits(numbers), strict=True))
    own = {name: space.column(name)[digit] for name, digit in digits.items() if name in arrays}
    return _with_arrays(space, own, digits, numbers)


def grid(space: Grid, numbers: Designs, arrays: Collection[str]) -> Any:
    """Do the work of `Space.grid` for checked design numbers."""
    digits = dict(zip(space.choices, space.all_digits(numbers), strict=True))
    own = {name: _present(digit) for name, digit in digits.items() if name in arrays}
    if not _is_product(digits, own, numbers.size):
        sizes = " x ".join(f"{name}[{len(digit)}]" for name, digit in own.items())
        raise ValueError(
            "designs of a grid must be all combinations of some choices, ascending,"
            f" got {numbers.size} designs for {sizes or 'no field'}"
        )
    return span(space, digits | own, numbers, arrays)


def span(space: Grid, digits: Mapping[str, Designs], numbers: Designs, arrays: Collection[str]) -> Any:
    """Return the spec of designs that are all combinations of the digits of every field."""
    own = [name for name in digits if name in arrays]
    spans = {
        name: space.column(name)[digits[name]].reshape([-1 if other == name else 1 for other in own])
        for name in own
    }
    return _with_arrays(space, spans, digits, numbers)


def groups(space: Grid, numbers: Designs, arrays: Collection[str]) -> list[Designs]:
    """Do the work of `Space.groups` for checked design numbers."""
    if numbers.size == 0:
        return []
    axes = [axis for axis, name in enumerate(space.choices) if name not in arrays]
    key = np.zeros(numbers.size, dtype=np.int64)
    for axis, digit in zip(axes, space.all_digits(numbers, axes), strict=True):
        key = key * space.shape[axis] + digit
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    return np.split(numbers[order], cuts)


def boxes(
    space: Grid, numbers: Designs, arrays: Collection[str], chunk: int
) -> Iterator[tuple[Designs, tuple[int, ...] | None]]:
    """Split ascending designs into parts of at most `chunk` for `grid`, as few as it takes.

    Fields that constraints and conditions tie are held where the designs are no full grid; what is
    left over, such as the rest of an interrupted exploration, comes in parts for `batch`.

    Yields the shape of the grid that the designs span; None for flat arrays.
    """
    for group in groups(space, numbers, arrays):
        parts = [group]
        if _shape(space, group, arrays) is None:
            free = [name for name in arrays if name not in space.coupled]
            parts = groups(space, group, free)
            if len(parts) * SMALL > group.size or any(_shape(space, part, arrays) is None for part in parts):
                for start in range(0, group.size, chunk):
                    yield group[start : start + chunk], None
                continue
        for part in parts:
            shape = _shape(space, part, arrays)
            assert shape is not None
            for box in Cuts(shape, chunk):
                block = part.reshape(shape)[tuple(slice(*ends) for ends in box)]
                yield block.reshape(-1), block.shape


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


def _shape(space: Grid, numbers: Designs, arrays: Collection[str]) -> tuple[int, ...] | None:
    """Return the shape of the grid that designs span over the array fields; None if it is none."""
    digits = dict(zip(space.choices, space.all_digits(numbers), strict=True))
    own = {name: _present(digit) for name, digit in digits.items() if name in arrays}
    return tuple(map(len, own.values())) if _is_product(digits, own, numbers.size) else None


def _present(digits: Designs) -> Designs:
    return np.flatnonzero(np.bincount(digits)).astype(np.int64)  # np.unique is ten times slower


def _is_product(digits: Mapping[str, Designs], own: Mapping[str, Designs], count: int) -> bool:
    shape = tuple(map(len, own.values()))
    if np.prod(shape, dtype=float) != count:
        return False
    return all(
        (digits[name].reshape(shape) == digit.reshape([-1 if other == name else 1 for other in own])).all()
        for name, digit in own.items()
    )


def _with_arrays(
    space: Grid, arrays: Mapping[str, Column], digits: Mapping[str, Designs], numbers: Designs
) -> Any:
    values: dict[str, object] = dict(arrays)
    for name, digit in digits.items():
        if name not in arrays:
            if digit.size == 0 or (digit != digit[0]).any():
                raise ValueError(f"{name} must have one value in a batch, as it cannot be an array")
            values[name] = space.choices[name][digit[0]]
    try:
        return replace_paths(space.base, {space.paths[name]: value for name, value in values.items()})
    except (TypeError, ValueError) as error:
        for design in numbers:
            space.spec(design)  # names the first design that the spec refuses
        raise ValueError(f"{type(space.base).__name__} takes no arrays: {error}") from error
