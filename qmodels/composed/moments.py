"""Times by their first two moments: in series, one of several, the last of several, so many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from scipy.special import gammaincinv

from qmodels.checks import FloatArray
from qmodels.numerics.largest import integrated, largest_moments

LEAST_SCV = 1e-6
"""Squared coefficient of variation below which a time counts as constant."""

_POINTS = 400
_ROW = 32
"""Last ones of a row that are looked at."""

_REACH = 14.0
"""Standard deviations beyond the mean up to which the law of the last of several is integrated."""


@dataclass(frozen=True)
class Span:
    """A time by its mean and its variance. [ns, ns2].

    Examples
    --------
    >>> Span(2.0, 1.0) + Span(3.0, 4.0)
    Span(mean=5.0, variance=5.0)
    """

    mean: float
    variance: float

    def __add__(self, other: Span) -> Span:
        return Span(self.mean + other.mean, self.variance + other.variance)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return self.variance / self.mean**2 if 0 < self.mean < inf else 0.0

    @property
    def finite(self) -> bool:
        """Whether the time has a mean and a variance."""
        return self.mean < inf and self.variance < inf

    def stretched(self, factor: float) -> Span:
        """Return the time multiplied by a factor."""
        return self if factor == 1.0 else Span(self.mean * factor, self.variance * factor**2)

    def quantile(self, p: float) -> float:
        """Return the quantile of the gamma law of these moments."""
        if not self.finite:
            return inf
        if self.scv < LEAST_SCV:
            return self.mean
        return float(gammaincinv(1 / self.scv, p)) * self.mean * self.scv


NOTHING = Span(0.0, 0.0)


def one_of(shares: Sequence[float], spans: Sequence[Span]) -> Span:
    """Return the time that is one of several at random."""
    pairs = [(share, span) for share, span in zip(shares, spans, strict=True) if share > 0]
    if not all(span.finite for _, span in pairs):
        return Span(inf, inf)
    mean = sum(share * span.mean for share, span in pairs)
    return Span(mean, sum(share * (span.variance + (span.mean - mean) ** 2) for share, span in pairs))


def so_many(law: FloatArray, span: Span) -> Span:
    """Return the sum of so many independent times as a law of 0, 1, 2, ... says.

    >>> so_many(np.array([0.0, 0.5, 0.0, 0.5]), Span(1.0, 2.0))
    Span(mean=2.0, variance=5.0)
    """
    if not span.finite:
        return span
    mean, variance = moments_of(law)
    return Span(mean * span.mean, mean * span.variance + variance * span.mean**2)


def moments_of(law: FloatArray) -> tuple[float, float]:
    """Return mean and variance of a number from the probabilities of 0, 1, 2, ..."""
    numbers = np.arange(law.size)
    mean = float(law @ numbers)
    return mean, max(float(law @ numbers**2) - mean**2, 0.0)


def last_of(spans: Sequence[Span], counts: Sequence[float] | None = None) -> Span:
    r"""Return the largest of independent times.

    ``counts``: how many there are of each; one if left out.

    With gamma laws :math:`F_i` of the two moments each, :math:`E[M] = \int (1 - \prod F_i^{n_i})` and
    :math:`E[M^2] = \int 2t (1 - \prod F_i^{n_i})`. Exact for exponential times, Erlang ones and constants.
    """
    powers = np.ones(len(spans)) if counts is None else np.asarray(counts, dtype=float)
    if not all(span.finite for span in spans):
        return Span(inf, inf)
    if len(spans) == 1 and powers[0] == 1:
        return spans[0]
    moving = [(s, n) for s, n in zip(spans, powers, strict=True) if s.scv >= LEAST_SCV]
    floor = max((s.mean for s in spans if s.scv < LEAST_SCV), default=0.0)
    if not moving:
        return Span(floor, 0.0)
    end = max(s.mean + _REACH * sqrt(s.variance) * (1 + np.log1p(n)) for s, n in moving)
    # Denser near 0, where some laws are steep.
    times = floor + max(end - floor, floor * LEAST_SCV) * np.linspace(0.0, 1.0, _POINTS) ** 2
    return Span(*integrated(times, ((s.mean, s.variance, n, 0.0) for s, n in moving)))


def last_of_law(law: FloatArray, span: Span) -> Span:
    """Return the largest of so many independent times as a law of 0, 1, 2, ... says."""
    numbers = np.flatnonzero(law)
    return one_of(law[numbers].tolist(), [last_of([span], [n]) if n else NOTHING for n in numbers.tolist()])


def last_of_row(count: int, apart: float, span: Span) -> Span:
    """Return when the last of independent times ends that begin one after the other."""
    starts = apart * np.arange(count)
    # Of many, those that begin late are the last.
    kept = starts[-_ROW:]
    mean, variance = largest_moments(mean=span.mean, variance=span.variance, count=1, start=kept)
    return Span(mean, variance)
