"""Argument errors of this package: one line with the rule and the offending value."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

Range = tuple[float | None, float | None]  # an inclusive range of a metric; None leaves a side open


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the closest known words, or the list of all of them."""
    names = list(dict.fromkeys(known))
    close = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(map(repr, close))}?"
    return f"; known are {', '.join(names)}" if names else ""


def choice(name: str, value: str, allowed: Iterable[str]) -> str:
    """Return one of the allowed words."""
    words = list(allowed)
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(words)}, got {value!r}")
    return value


def whole(name: str, value: object, *, least: int) -> None:
    """Refuse what is no whole number from the least on."""
    if not (isinstance(value, (int, np.integer)) and value >= least):
        raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")


def reals(name: str, value: object) -> npt.NDArray[np.float64]:
    """Return real numbers as floats; words, dates, complex and missing (masked) ones are refused.

    >>> reals("loss", [1, 2.5])
    array([1. , 2.5])
    """
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        array = np.array(None)
    if array.dtype.kind not in "biuf" or np.ma.is_masked(value):
        raise ValueError(f"{name} must be real numbers, got {' '.join(repr(value).split())}")
    return array.astype(float)


def share(name: str, value: float) -> None:
    """Refuse what is not between 0 and 1."""
    if not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")


def names(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    """Return one name or several as a tuple without repetitions."""
    result = (value,) if isinstance(value, str) else tuple(value)
    for word in result:
        if not isinstance(word, str):
            raise ValueError(f"{name} must be names of metrics, got {word!r}")
        if result.count(word) > 1:
            raise ValueError(f"{name} must name a metric once, got {word!r} twice")
    return result


def objectives(
    minimize: str | Iterable[str], maximize: str | Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the minimised and the maximised metrics as tuples; none may be both."""
    down, up = names("minimize", minimize), names("maximize", maximize)
    for word in down:
        if word in up:
            raise ValueError(f"objective {word!r} must be minimised or maximised, not both")
    return down, up


def ranges(name: str, value: Mapping[str, Range] | None) -> dict[str, Range]:
    """Return ``{metric: (low, high)}`` with low <= high."""
    result: dict[str, Range] = {}
    for metric, bounds in (value or {}).items():
        try:
            low, high = (None if bound is None else float(bound) for bound in bounds)
        except (TypeError, ValueError):
            raise ValueError(f"{name}[{metric!r}] must be a pair (low, high), got {bounds!r}") from None
        if low != low or high != high or (low is not None and high is not None and low > high):
            raise ValueError(f"{name}[{metric!r}] must have low <= high, got {bounds!r}")
        result[metric] = (low, high)
    return result


SIGNS = {-1: ">=", 1: "<="}


def sides(ranges: Mapping[str, Range]) -> list[tuple[str, int, float]]:
    """Return metric, sign and bound of the closed sides of ranges: ``sign * value <= sign * bound``."""
    return [
        (metric, sign, bound)
        for metric, ends in ranges.items()
        for sign, bound in zip(SIGNS, ends, strict=True)
        if bound is not None
    ]


def size_of(bound: float) -> float:
    """Scale of the miss of a bound: its size, or 1 where that is (next to) 0 or infinite."""
    return abs(bound) if np.finfo(float).tiny <= abs(bound) < math.inf else 1.0
