"""Sums without rounding: floating-point numbers as whole multiples of a power of two, in limbs of 60 bits.

A floating-point number is a whole number times a power of two, and sums of those are exact. Numbers of
one row share the power, so that 1e9 and 1e-15 add up to a whole number of 133 bits; the vectors below
hold it in as many 64-bit limbs as it takes, the most significant one first and signed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import frexp, inf, nextafter
from operator import or_
from typing import Any

import numpy as np

from optimize.search.pareto import FloatArray, IntArray

LIMB = 60
MASK = (1 << LIMB) - 1

Exact = np.ndarray[Any, Any]
"""Python's whole numbers in an array of objects."""


@dataclass(frozen=True)
class WholeRow:
    """One row of a program: a whole number per component and cell, times two to the exponent.

    ``ceiling`` is the largest sum allowed, None if all are.
    """

    parts: list[Exact]
    exponent: int
    ceiling: int | None = None

    def value(self, number: int) -> float:
        """Return a sum, correctly rounded."""
        return number / (1 << -self.exponent) if self.exponent < 0 else float(number << self.exponent)

    def shifted(self, exponent: int) -> WholeRow:
        """Return the same row in a finer unit."""
        by = 1 << (self.exponent - exponent)
        ceiling = None if self.ceiling is None else self.ceiling * by
        return WholeRow([part * by for part in self.parts], exponent, ceiling)


def whole_row(parts: Sequence[FloatArray], bound: float = inf) -> WholeRow:
    """Return finite values in whole numbers; the ceiling is what still rounds to the bound."""
    pairs = [[frexp(value) for value in values.tolist()] for values in parts]
    ends = [frexp(end) for end in (bound, nextafter(bound, inf)) if -inf < end < inf]
    exponents = [e for values in (*pairs, ends) for m, e in values if m]
    low = min(exponents, default=0)
    *number, edge = [
        np.array([int(m * 2.0**53) << (e - low if m else 0) for m, e in values] + [0], dtype=object)[:-1] * 2
        for values in (*pairs, ends)
    ]
    ceiling = None
    if len(edge) == 2:
        here, there = edge.tolist()
        middle = (here + there) // 2  # exact; what is half-way is rounded to the even one of the two
        even = (here // (there - here)) % 2 == 0
        ceiling = middle if even else middle - 1
    return _shortest(WholeRow(number, low - 54, ceiling))


def _shortest(row: WholeRow) -> WholeRow:
    """Return a row in the coarsest unit of its values; a ceiling between its multiples comes down to one."""
    bits = reduce(or_, (n for part in row.parts for n in part.tolist()), 0)
    by = max((bits & -bits).bit_length() - 1, 0)
    ceiling = None if row.ceiling is None else row.ceiling >> by
    return WholeRow([part >> by for part in row.parts], row.exponent + by, ceiling)


def combined(rows: Sequence[WholeRow], weights: Sequence[float]) -> WholeRow:
    """Return the sum of rows times weights >= 0, without rounding; ceilings add up as well."""
    exact = [Fraction(weight) for weight in weights]
    powers = [weight.denominator.bit_length() - 1 for weight in exact]
    low = min(row.exponent - power for row, power in zip(rows, powers, strict=True))
    scaled = [
        WholeRow([part * weight.numerator for part in row.parts], row.exponent - power,
                 None if row.ceiling is None else row.ceiling * weight.numerator).shifted(low)
        for row, weight, power in zip(rows, exact, powers, strict=True)
    ]  # fmt: skip
    parts = [
        np.sum(list(of_component), axis=0) for of_component in zip(*(r.parts for r in scaled), strict=True)
    ]
    ceilings = [row.ceiling for row in scaled if row.ceiling is not None]
    return WholeRow(parts, low, sum(ceilings) if len(ceilings) == len(scaled) else None)


def limbs_needed(rows: Sequence[WholeRow]) -> int:
    """Return how many limbs hold every sum over components, with a bit to spare."""
    most = 1
    for row in rows:
        most = max(most, sum(max(map(abs, part.tolist()), default=0) for part in row.parts))
        most = max(most, abs(row.ceiling or 0))
    return -(-(most.bit_length() + 2) // LIMB)


def to_limbs(numbers: Sequence[int], count: int) -> IntArray:
    """Return whole numbers as an array of shape (numbers, limbs)."""
    top = count - 1
    columns = [[n >> (LIMB * top) for n in numbers]]
    columns += [[(n >> (LIMB * (top - k))) & MASK for n in numbers] for k in range(1, count)]
    return np.array(columns, dtype=np.int64).reshape(count, len(numbers)).T


def from_limbs(limbs: IntArray) -> list[int]:
    """Return the whole numbers of an array of shape (numbers, limbs)."""
    numbers = limbs[:, 0].tolist()
    for column in limbs.T[1:].tolist():
        numbers = [(n << LIMB) + limb for n, limb in zip(numbers, column, strict=True)]
    return numbers


def added(a: IntArray, b: IntArray) -> IntArray:
    """Return sums of arrays of limbs (..., limbs), carried over."""
    total = a + b
    for k in range(total.shape[-1] - 1, 0, -1):
        total[..., k - 1] += total[..., k] >> LIMB
        total[..., k] &= MASK
    return total


def ranks(limbs: IntArray, *, places: bool = False) -> IntArray:
    """Return what orders numbers (n, rows, limbs) in their row: themselves where short, or their places."""
    result = np.empty(limbs.shape[:2], dtype=np.int64)
    for row in range(limbs.shape[1]):
        column = limbs[:, row]
        column = column[:, (column != column[:1]).any(axis=0)]  # limbs that are all equal order nothing
        if column.shape[1] == 1 and not places and np.abs(column).max() < 1 << 53:
            result[:, row] = column[:, 0]
            continue
        order = np.lexsort(column.T[::-1]) if column.shape[1] else np.arange(len(column))
        new = (column[order[1:]] != column[order[:-1]]).any(axis=1)
        result[order, row] = np.concatenate([[0], np.cumsum(new)])[: len(column)]
    return result


def least(limbs: IntArray) -> IntArray:
    """Return the smallest number of every row, (rows, limbs) of (n, rows, limbs)."""
    result = np.empty(limbs.shape[1:], dtype=np.int64)
    for row in range(limbs.shape[1]):
        column = limbs[:, row]
        for k in range(limbs.shape[2]):
            result[row, k] = column[:, k].min()
            column = column[column[:, k] == result[row, k]]
    return result


def at_most(limbs: IntArray, bound: IntArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Tell which numbers (n, limbs) are at most a bound (limbs)."""
    good = limbs[:, -1] <= bound[-1]
    for k in range(limbs.shape[1] - 2, -1, -1):
        good = (limbs[:, k] < bound[k]) | ((limbs[:, k] == bound[k]) & good)
    return np.asarray(good)
