"""The one place that words an argument error.

Every checker takes the argument's name and value, returns the value as a float (or
integer) array or scalar, and raises a ``ValueError`` that names the argument, the rule
and the offending value: ``servers must be a whole number >= 1, got 1.5``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Numeric = Any
"""A number, or an array of them where a spec describes a sweep."""


def _fail(name: str, rule: str, value: object) -> ValueError:
    shown = value.item() if isinstance(value, np.generic) else value
    return ValueError(f"{name} must be {rule}, got {shown!r}")


def _numbers(name: str, value: Any) -> FloatArray:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise _fail(name, "a number or an array of numbers", value) from None
    if np.asarray(value).dtype == bool:
        raise _fail(name, "a number, not a truth value", value)
    return array


def _require(name: str, rule: str, array: npt.NDArray[Any], good: npt.NDArray[np.bool_] | np.bool_) -> None:
    if not np.all(good):
        raise _fail(name, rule, array[~np.asarray(good)].flat[0] if array.ndim else array[()])


def finite(name: str, value: Any) -> FloatArray:
    """Return finite numbers of any sign."""
    array = _numbers(name, value)
    _require(name, "finite", array, np.isfinite(array))
    return array


def nonnegative(name: str, value: Any) -> FloatArray:
    """Return finite numbers >= 0."""
    array = _numbers(name, value)
    _require(name, "finite and >= 0", array, np.isfinite(array) & (array >= 0))
    return array


def positive(name: str, value: Any) -> FloatArray:
    """Return finite numbers > 0."""
    array = _numbers(name, value)
    _require(name, "finite and > 0", array, np.isfinite(array) & (array > 0))
    return array


def at_least(name: str, value: Any, minimum: float) -> FloatArray:
    """Return numbers >= minimum; infinity is allowed."""
    array = _numbers(name, value)
    _require(name, f">= {minimum:g}", array, array >= minimum)
    return array


def probability(name: str, value: Any) -> FloatArray:
    """Return numbers in [0, 1]."""
    array = _numbers(name, value)
    _require(name, "in [0, 1]", array, (array >= 0) & (array <= 1))
    return array


def count(name: str, value: Any, *, minimum: int = 1, maximum: int | None = None) -> IntArray:
    """Return whole numbers in [minimum, maximum]."""
    array = _numbers(name, value)
    rule = f"a whole number >= {minimum}"
    good = np.isfinite(array) & (array >= minimum) & (array == np.floor(array))
    if maximum is not None:
        rule = f"a whole number from {minimum} to {maximum}"
        good &= array <= maximum
    _require(name, rule, array, good)
    return array.astype(np.int64)


def one_number(name: str, value: object) -> None:
    """Reject an array in a field that cannot be swept."""
    if np.ndim(value):  # type: ignore[arg-type]
        raise ValueError(f"{name} must be one number, not an array of them, got {value!r}")


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return one of the allowed words; the error names them and the nearest."""
    words = list(allowed)
    if value not in words:
        raise ValueError(
            f"{name} must be one of {', '.join(words)}, got {value!r}{nearest(str(value), words)}"
        )
    return str(value)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known word closest to a misspelt one, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
