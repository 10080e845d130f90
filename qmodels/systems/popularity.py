"""How often each table entry is looked up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qmodels import _check
from qmodels._check import FloatArray, IntArray

MOST_ENTRIES = 10_000_000
"""Most entries of a popularity law, which is held as an array."""


@dataclass(frozen=True, kw_only=True)
class Zipf:
    r"""Zipf-like popularity: rank :math:`i = 1, 2, \ldots` is wanted in proportion to :math:`i^{-\alpha}`.

    Parameters
    ----------
    entries : int
        Entries of the table, at most 10 million.
    exponent : float
        :math:`\alpha \ge 0`; 0 makes all entries equally popular.

    References
    ----------
    .. [1] L. Breslau, P. Cao, L. Fan, G. Phillips, S. Shenker, "Web caching and Zipf-like
       distributions: evidence and implications", IEEE INFOCOM 1999.

    Examples
    --------
    >>> Zipf(entries=3, exponent=1).probabilities().round(4)
    array([0.5455, 0.2727, 0.1818])
    """

    entries: int
    exponent: float

    def __post_init__(self) -> None:
        one_number("popularity.entries", self.entries)
        one_number("popularity.exponent", self.exponent)
        _check.count("popularity.entries", self.entries, maximum=MOST_ENTRIES)
        _check.nonnegative("popularity.exponent", self.exponent)

    def probabilities(self) -> FloatArray:
        """Return the probability of each entry, most popular first (computed once, read-only)."""
        return _tables(int(self.entries), float(self.exponent))[0]

    def top_share(self, count: int) -> float:
        """Return the share of lookups that want one of the ``count`` most popular entries."""
        _check.count("count", count, minimum=0)
        return (
            float(_tables(int(self.entries), float(self.exponent))[1][min(count, self.entries) - 1])
            if count
            else 0.0
        )

    def sample(self, rng: np.random.Generator, count: int) -> IntArray:
        """Return so many independent entries, 0 being the most popular."""
        cumulative = _tables(int(self.entries), float(self.exponent))[1]
        return np.searchsorted(cumulative, rng.random(count), side="right")


def one_number(name: str, value: object) -> None:
    """Reject an array in a field that cannot be swept."""
    if np.ndim(value):  # type: ignore[arg-type]
        raise ValueError(f"{name} must be one number, not an array of them, got {value!r}")


@lru_cache(maxsize=16)
def _tables(entries: int, exponent: float) -> tuple[FloatArray, FloatArray]:
    """Probabilities and their sums, shared by equal laws."""
    weight = np.arange(1, entries + 1, dtype=float) ** -exponent
    sums = np.cumsum(weight)
    probabilities, cumulative = weight / sums[-1], sums / sums[-1]
    probabilities.flags.writeable = cumulative.flags.writeable = False
    return probabilities, cumulative
