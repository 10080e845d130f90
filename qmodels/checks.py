"""The one place that words an argument error.

Every checker takes the argument's name and value, returns the value as a float (or
integer) array or scalar, and raises a ``ValueError`` that names the argument, the rule
and the offending value: ``servers must be a whole number >= 1, got 1.5``.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from datetime import date, timedelta
from numbers import Integral
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Numeric = Annotated[Any, "a number or an array"]
"""A number, or an array of them where a spec describes a sweep: fields of specs so annotated may be swept."""


LONGEST = 100
"""Characters of a wrong value that an error shows."""


def shown(value: object) -> str:
    """Return a wrong value as an error shows it: in one line that is not too long."""
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _fail(name: str, rule: str, value: object) -> ValueError:
    return ValueError(f"{name} must be {rule}, got {shown(value)}")


def numbers(name: str, value: Any) -> FloatArray:
    """Return real numbers, infinities and NaN among them; what merely converts to them is refused."""
    parts = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        raise _fail(name, "an array without a mask (fill it, or drop what is masked)", value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise _fail(name, _NUMERIC, value) from None
    rule = _NOT_A_NUMBER.get(array.dtype.kind)
    if array.dtype.kind == "O":
        rule = next((rule for rule in map(_not_a_number, array.flat) if rule), None)
    if rule:
        raise _fail(name, rule, value)
    try:
        return np.asarray(array, dtype=float)
    except (TypeError, ValueError):
        raise _fail(name, _NUMERIC, value) from None
    except OverflowError:
        raise _fail(name, "a number below 1.8e308", value) from None


_NUMERIC = "a number or an array of numbers"
_NOT_A_NUMBER = {
    "b": "a number, not a truth value",
    "c": "a number, not a complex one",
    "m": "a number, not a span of time with a unit of its own",
    "M": "a number, not a date",
    "S": _NUMERIC,
    "U": _NUMERIC,
}
"""Kinds of NumPy arrays that would become floats without a word and mean something else: the rule."""


def _not_a_number(item: Any) -> str | None:
    if isinstance(item, np.ndarray | np.generic):
        return _NOT_A_NUMBER.get(item.dtype.kind)
    kinds = {bool: "b", complex: "c", timedelta: "m", date: "M", bytes: "S", str: "U", type(None): "U"}
    return next((_NOT_A_NUMBER[kind] for what, kind in kinds.items() if isinstance(item, what)), None)


def _require(name: str, rule: str, array: npt.NDArray[Any], good: npt.NDArray[np.bool_] | np.bool_) -> None:
    if not np.all(good):
        raise _fail(name, rule, array[~np.asarray(good)].flat[0] if array.ndim else array[()])


LARGEST = 1e100
"""Beyond it a number is a slip, and products of three would leave the range of a float."""


def _within_range(name: str, array: FloatArray) -> FloatArray:
    size = np.abs(array)
    _require(name, f"at most {LARGEST:g} in size", array, (size <= LARGEST) | np.isinf(size))
    return array


def finite(name: str, value: Any) -> FloatArray:
    """Return finite numbers of any sign."""
    array = numbers(name, value)
    _require(name, "finite", array, np.isfinite(array))
    return _within_range(name, array)


def nonnegative(name: str, value: Any) -> FloatArray:
    """Return finite numbers >= 0."""
    array = numbers(name, value)
    _require(name, "finite and >= 0", array, np.isfinite(array) & (array >= 0))
    return _within_range(name, array)


def positive(name: str, value: Any) -> FloatArray:
    """Return finite numbers > 0."""
    array = numbers(name, value)
    _require(name, "finite and > 0", array, np.isfinite(array) & (array > 0))
    return _within_range(name, array)


def at_least(name: str, value: Any, minimum: float) -> FloatArray:
    """Return numbers >= minimum; infinity is allowed."""
    array = numbers(name, value)
    _require(name, f">= {minimum:g}", array, array >= minimum)
    return _within_range(name, array)


def probability(name: str, value: Any) -> FloatArray:
    """Return numbers in [0, 1]."""
    array = numbers(name, value)
    _require(name, "in [0, 1]", array, (array >= 0) & (array <= 1))
    return array


LARGEST_COUNT = 2**53 - 1
"""Up to here a whole number is the same as int64 and as float64, and no other number rounds to it."""


def count(name: str, value: Any, *, minimum: int = 1, maximum: int = LARGEST_COUNT) -> IntArray:
    """Return whole numbers in [minimum, maximum]."""
    array = numbers(name, value)
    rule = f"a whole number >= {minimum}"
    good = np.isfinite(array) & (array >= minimum) & (array == np.floor(array))
    if maximum < LARGEST_COUNT or np.any(good & (array > maximum)):
        rule = f"a whole number from {minimum} to {maximum}"
        good &= array <= maximum
    _require(name, rule, array, good)
    return array.astype(np.int64)


def seed(value: object) -> None:
    """Require a whole number >= 0 of any size."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise _fail("seed", "a whole number >= 0", value)


def one_number(name: str, value: object) -> None:
    """Reject an array in a field that cannot be swept."""
    if isinstance(value, list | tuple) or np.ndim(value):  # type: ignore[arg-type]
        raise _fail(name, "one number, not an array of them", value)


def path(name: str, value: object) -> None:
    """Require the name of a file."""
    if not isinstance(value, str | os.PathLike) or "\n" in os.fsdecode(value):
        raise _fail(name, "the path of a file, in one line", value)


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return one of the allowed words; the error names them and the nearest."""
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        near = nearest(str(value), words)
        raise ValueError(f"{name} must be one of {', '.join(words)}, got {shown(value)}{near}")
    return str(value)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known word closest to a misspelt one, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
