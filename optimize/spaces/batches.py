"""Specs that stand for many designs: flat arrays, or arrays that span a grid."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from optimize.spaces.choices import Column
from optimize.spaces.numbering import Designs, Grid
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
    spans = {
        name: space.column(name)[digit].reshape([-1 if other == name else 1 for other in own])
        for name, digit in own.items()
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

    Yields
    ------
    tuple of (designs, shape)
        The shape of the grid that the designs span; None for flat arrays.
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
            for piece in _slices(shape, chunk):
                block = part.reshape(shape)[piece]
                yield block.reshape(-1), block.shape


def _slices(shape: tuple[int, ...], chunk: int) -> Iterator[tuple[slice, ...]]:
    """Yield slices of at most `chunk` elements: whole inner axes, runs of one axis, single outer ones."""
    axis, inner = len(shape), 1
    while axis > 0 and inner * shape[axis - 1] <= chunk:
        axis -= 1
        inner *= shape[axis]
    if axis == 0:
        yield (slice(None),) * len(shape)
        return
    run = max(chunk // inner, 1)
    for outer in np.ndindex(shape[: axis - 1]):
        for start in range(0, shape[axis - 1], run):
            yield (*(slice(k, k + 1) for k in outer), slice(start, start + run))


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
