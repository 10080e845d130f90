"""Popularity of table entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import floor, log

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.spec.docstrings import Documented
from qmodels.systems.spec.ranges import Declared, count, nonnegative

MOST_ENTRIES = 10_000_000
"""Most entries of a law that is held as an array."""
MOST_RANKS = 2**40
HEAD = 4096
BINS_PER_E_FOLD = 128


@dataclass(frozen=True, kw_only=True)
class Zipf(Declared, prefix="popularity."):
    r"""Zipf-like popularity: rank :math:`i = 1, 2, \ldots` is wanted as :math:`(i+s)^{-\alpha}`.

    With a shift this is the Zipf-Mandelbrot law.

    References
    ----------
    .. [1] L. Breslau, P. Cao, L. Fan, G. Phillips, S. Shenker, "Web caching and Zipf-like
       distributions: evidence and implications", IEEE INFOCOM 1999.

    Examples
    --------
    >>> Zipf(entries=3, exponent=1).probabilities().round(4)
    array([0.5455, 0.2727, 0.1818])
    """

    # Entries of the table, at most 2**40; beyond 10 million only `groups` is available
    entries: int = count(maximum=MOST_RANKS)
    exponent: float = nonnegative()  # :math:`\alpha \ge 0`; 0 makes all entries equally popular
    shift: float = nonnegative(0.0)  # :math:`s \ge 0`, which flattens the head; 0 is Zipf's law

    def probabilities(self) -> FloatArray:
        """Return the probability of each entry, most popular first (computed once, read-only)."""
        return _tables(self)[0]

    def top_share(self, count: int) -> float:
        """Return the share of lookups that want one of the ``count`` most popular entries."""
        checks.count("count", count, minimum=0)
        return float(_tables(self)[1][min(count, self.entries) - 1]) if count else 0.0

    def sample(self, rng: np.random.Generator, count: int) -> IntArray:
        """Return n independent entries, 0 being the most popular."""
        return np.searchsorted(_tables(self)[1], rng.random(count), side="right")

    def groups(self) -> tuple[FloatArray, FloatArray]:
        """Return groups of neighbouring ranks: the mean probability of an entry, and how many there are.

        The first 4,096 ranks stand alone; the bins after them are 0.8 % wide, so that any smooth
        function of the probability is averaged to within a few millionths.
        """
        first = np.arange(1, min(HEAD, self.entries) + 1, dtype=float)
        starts = np.array([])
        if self.entries > HEAD:
            bins = max(1, round(BINS_PER_E_FOLD * log(self.entries / HEAD)))
            starts = np.unique(np.round(np.geomspace(HEAD + 1, self.entries + 1, bins + 1)))
        count = np.concatenate((np.ones(len(first)), np.diff(starts)))
        edges = starts - 0.5 + self.shift
        if self.exponent == 1.0:
            weight = np.diff(np.log(edges))
        else:
            power = 1.0 - self.exponent
            weight = np.diff(edges**power) / power
        weight = np.concatenate(((first + self.shift) ** -self.exponent, weight))
        return weight / count / weight.sum(), count


@dataclass(frozen=True, kw_only=True)
class GeometricPopularity(Declared, prefix="popularity."):
    r"""Geometric popularity: each rank is wanted ``ratio`` times as often as the one before it.

    Examples
    --------
    >>> GeometricPopularity(entries=3, ratio=0.5).probabilities().round(4)
    array([0.5714, 0.2857, 0.1429])
    """

    entries: int = count(maximum=MOST_ENTRIES)  # Entries of the table, at most 10 million
    ratio: float  # In (0, 1]; 1 makes all entries equally popular

    def _check_relations(self) -> None:
        if not 0 < self.ratio <= 1:
            raise ValueError(f"popularity.ratio must be above 0 and at most 1, got {self.ratio!r}")

    def probabilities(self) -> FloatArray:
        """Return the probability of each entry, most popular first (computed once, read-only)."""
        return _tables(self)[0]

    def groups(self) -> tuple[FloatArray, FloatArray]:
        """Return the probability of an entry, and how many there are of each: one."""
        return self.probabilities(), np.ones(self.entries)


@dataclass(frozen=True, kw_only=True)
class MeasuredPopularity(Documented):
    """Popularity in proportion to counts, such as those of a trace's flows.

    Examples
    --------
    >>> MeasuredPopularity.from_keys("abacab").probabilities().round(4)
    array([0.5   , 0.3333, 0.1667])
    """

    # How often each entry was wanted; at least one is positive. Arrays and lists become tuples
    counts: tuple[float, ...]

    def __post_init__(self) -> None:
        counts = checks.nonnegative("popularity.counts", self.counts)
        if not isinstance(self.counts, tuple) and counts.ndim == 1:
            object.__setattr__(self, "counts", tuple(counts.tolist()))
        if counts.ndim != 1 or not counts.sum() > 0:
            raise ValueError(f"popularity.counts must have a positive count, got {checks.shown(self.counts)}")

    @classmethod
    def from_keys(cls, keys: Iterable[object]) -> MeasuredPopularity:
        """Return the popularity of whatever the keys name, such as a trace's flows, most popular first."""
        from collections import Counter

        if keys is None:
            raise ValueError(
                "keys must name what was wanted, got None: a trace without addresses has no flows"
            )
        return cls(counts=tuple(count for _, count in Counter(keys).most_common()))

    @property
    def entries(self) -> int:
        """Number of entries."""
        return len(self.counts)

    def probabilities(self) -> FloatArray:
        """Return the probability of each entry (computed once, read-only)."""
        return _tables(self)[0]

    def groups(self) -> tuple[FloatArray, FloatArray]:
        """Return the different probabilities of an entry, and how many entries have each."""
        values, count = np.unique(self.probabilities(), return_counts=True)
        return values[::-1], count[::-1].astype(float)


Popularity = Zipf | GeometricPopularity | MeasuredPopularity


@lru_cache(maxsize=16)
def _tables(law: Popularity) -> tuple[FloatArray, FloatArray]:
    """Probabilities and their sums, shared by equal laws."""
    if isinstance(law, MeasuredPopularity):
        weight = np.asarray(law.counts, dtype=float)
    elif isinstance(law, GeometricPopularity):
        # Ranks beyond the smallest float weigh nothing; NumPy would warn about them.
        ranks = law.entries if law.ratio == 1 else min(law.entries, floor(-700 / log(law.ratio)) + 1)
        weight = np.zeros(law.entries)
        weight[:ranks] = law.ratio ** np.arange(ranks)
    else:
        if law.entries > MOST_ENTRIES:
            rule = f"at most {MOST_ENTRIES} where each entry has a number of its own"
            raise ValueError(f"popularity.entries must be {rule}, got {law.entries!r}")
        weight = (np.arange(1, law.entries + 1, dtype=float) + law.shift) ** -law.exponent
    sums = np.cumsum(weight)
    probabilities, cumulative = weight / sums[-1], sums / sums[-1]
    probabilities.flags.writeable = cumulative.flags.writeable = False
    return probabilities, cumulative
