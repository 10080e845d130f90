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
class Moments:
    """A time by its mean and its variance. [ns, ns2].

    Examples
    --------
    >>> Moments(2.0, 1.0) + Moments(3.0, 4.0)
    Moments(mean=5.0, variance=5.0)
    """

    mean: float
    variance: float

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.mean + other.mean, self.variance + other.variance)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return self.variance / self.mean**2 if 0 < self.mean < inf else 0.0

    @property
    def finite(self) -> bool:
        """Whether the time has a mean and a variance."""
        return self.mean < inf and self.variance < inf

    def stretched(self, factor: float) -> Moments:
        """Return the time multiplied by a factor."""
        return self if factor == 1.0 else Moments(self.mean * factor, self.variance * factor**2)

    def quantile(self, p: float) -> float:
        """Return the quantile of the gamma law of these moments."""
        if not self.finite:
            return inf
        if self.scv < LEAST_SCV:
            return self.mean
        return float(gammaincinv(1 / self.scv, p)) * self.mean * self.scv


NOTHING = Moments(0.0, 0.0)


def without(span: Moments, less: Moments) -> Moments:
    """Return a time without an independent part of it."""
    return Moments(max(span.mean - less.mean, 0.0), max(span.variance - less.variance, 0.0))


def mixture_of(shares: Sequence[float], spans: Sequence[Moments]) -> Moments:
    """Return the time that is one of several at random."""
    pairs = [(share, span) for share, span in zip(shares, spans, strict=True) if share > 0]
    if not all(span.finite for _, span in pairs):
        return Moments(inf, inf)
    mean = sum(share * span.mean for share, span in pairs)
    return Moments(mean, sum(share * (span.variance + (span.mean - mean) ** 2) for share, span in pairs))


def sum_of_n(law: FloatArray, span: Moments) -> Moments:
    """Return the sum of so many independent times as a law of 0, 1, 2, ... says.

    >>> sum_of_n(np.array([0.0, 0.5, 0.0, 0.5]), Moments(1.0, 2.0))
    Moments(mean=2.0, variance=5.0)
    """
    if not span.finite:
        return span
    mean, variance = moments_of(law)
    return Moments(mean * span.mean, mean * span.variance + variance * span.mean**2)


def moments_of(law: FloatArray) -> tuple[float, float]:
    """Return mean and variance of a number from the probabilities of 0, 1, 2, ..."""
    numbers = np.arange(law.size)
    mean = float(law @ numbers)
    return mean, max(float(law @ numbers**2) - mean**2, 0.0)


def max_of_n(spans: Sequence[Moments], counts: Sequence[float] | None = None) -> Moments:
    r"""Return the largest of independent times.

    ``counts``: how many there are of each; one if left out.

    With gamma laws :math:`F_i` of the two moments each, :math:`E[M] = \int (1 - \prod F_i^{n_i})` and
    :math:`E[M^2] = \int 2t (1 - \prod F_i^{n_i})`. Exact for exponential times, Erlang ones and constants.
    """
    powers = np.ones(len(spans)) if counts is None else np.asarray(counts, dtype=float)
    if not all(span.finite for span in spans):
        return Moments(inf, inf)
    if len(spans) == 1 and powers[0] == 1:
        return spans[0]
    moving = [(s, n) for s, n in zip(spans, powers, strict=True) if s.scv >= LEAST_SCV]
    floor = max((s.mean for s in spans if s.scv < LEAST_SCV), default=0.0)
    if not moving:
        return Moments(floor, 0.0)
    end = max(s.mean + _REACH * sqrt(s.variance) * (1 + np.log1p(n)) for s, n in moving)
    # Denser near 0, where some laws are steep.
    times = floor + max(end - floor, floor * LEAST_SCV) * np.linspace(0.0, 1.0, _POINTS) ** 2
    return Moments(*integrated(times, ((s.mean, s.variance, n, 0.0) for s, n in moving)))


def max_of_random_n(law: FloatArray, span: Moments) -> Moments:
    """Return the largest of so many independent times as a law of 0, 1, 2, ... says."""
    numbers = np.flatnonzero(law)
    return mixture_of(
        law[numbers].tolist(), [max_of_n([span], [n]) if n else NOTHING for n in numbers.tolist()]
    )


def max_of_staggered(count: int, apart: float, span: Moments) -> Moments:
    """Return when the last of independent times ends that begin one after the other."""
    starts = apart * np.arange(count)
    # Of many, those that begin late are the last.
    kept = starts[-_ROW:]
    mean, variance = largest_moments(mean=span.mean, variance=span.variance, count=1, start=kept)
    return Moments(mean, variance)
