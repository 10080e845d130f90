"""Checks and storage of the fields of a law: numbers and nested tuples of them."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray

SUM_TOLERANCE = 1e-9
"""Largest relative error of a sum of probabilities or a balance of rates."""


def keep(law: Any, **values: Any) -> None:
    """Set checked values on a frozen law."""
    for name, value in values.items():
        object.__setattr__(law, name, value)


def number_of(rule: Any) -> Any:
    """Return a field of a law that is a number with a check."""
    return field(metadata={"rule": rule})


def number(name: str, check: Any, value: Any) -> float:
    """Return one checked number."""
    checks.one_number(name, value)
    return float(check(name, value))


def numeric(name: str, check: Any, value: Any) -> Any:
    """Return one checked number, or an array of them: a sweep."""
    array = check(name, value)
    if not array.size:
        raise ValueError(f"{name} must hold a number, got {checks.shown(value)}")
    return array if array.ndim else array.item()


def whole(name: str, value: Any, *, minimum: int = 1, maximum: int = checks.LARGEST_COUNT) -> int:
    """Return one whole number from a minimum to a maximum."""
    checks.one_number(name, value)
    return int(checks.count(name, value, minimum=minimum, maximum=maximum))


def nested(array: FloatArray) -> Any:
    """Return an array as nested tuples."""
    return tuple(nested(row) for row in array) if array.ndim > 1 else tuple(array.tolist())


def numbers(name: str, check: Any, value: Any, size: int | None) -> FloatArray:
    """Return a checked list of numbers, of the given size unless that is None."""
    array: FloatArray = check(name, value)
    if array.ndim != 1 or array.size == 0 or size not in (None, array.size):
        wanted = "a list of numbers" if size is None else f"a list of {size} numbers"
        raise ValueError(f"{name} must be {wanted}, got shape {array.shape}")
    return array


def weights(name: str, value: Any) -> FloatArray:
    """Return probabilities that sum to 1."""
    array = numbers(name, checks.probability, value, None)
    if abs(array.sum() - 1) > SUM_TOLERANCE:
        raise ValueError(f"{name} must sum to 1, got {float(array.sum())!r}")
    return array / array.sum()


def square(name: str, value: Any, size: int | None) -> FloatArray:
    """Return a square matrix, of the given size unless that is None."""
    array = checks.finite(name, value)
    if (
        array.ndim != 2
        or array.shape[0] != array.shape[1]
        or not array.size
        or size not in (None, len(array))
    ):
        wanted = "square" if size is None else f"of shape ({size}, {size})"
        raise ValueError(f"{name} must be {wanted}, got shape {array.shape}")
    return array


def off_diagonal(name: str, array: FloatArray) -> None:
    """Require rates >= 0 off the diagonal."""
    off = array - np.diag(array.diagonal())
    if np.any(off < 0):
        row, column = np.argwhere(off < 0)[0].tolist()
        raise ValueError(
            f"{name} must be >= 0 off the diagonal, got {off[row, column]:g} in row {row}, column {column}"
        )


def zero_sums(name: str, array: FloatArray) -> None:
    """Require rows that sum to 0."""
    sums = array.sum(axis=1)
    if np.any(np.abs(sums) > SUM_TOLERANCE * np.abs(array).sum(axis=1)):
        row = int(np.argmax(np.abs(sums)))
        raise ValueError(f"{name} must have rows that sum to 0, row {row} sums to {sums[row]:.12g}")


def stationary(generator: FloatArray) -> FloatArray:
    """Return the stationary law of a generator with one closed class."""
    system = np.vstack([generator.T / max(np.abs(generator).max(), 1e-300), np.ones(len(generator))])
    right = np.zeros(len(generator) + 1)
    right[-1] = 1.0
    law, _, rank, _ = np.linalg.lstsq(system, right, rcond=None)
    if rank < len(generator):
        raise ValueError("d0 + d1 must have phases that all reach one another, got separate groups")
    return np.maximum(law, 0.0)
