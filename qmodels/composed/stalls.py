"""Delays that few jobs meet, such as refreshes, and quantiles of times with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc

from qmodels.composed.moments import LEAST_SCV, Moments, without

_STEPS = 8
"""Into which a delay is cut."""


@dataclass(frozen=True)
class Stall:
    """A delay that happens or not, evenly spread up to twice its mean."""

    probability: float = 0.0  # that it happens
    mean: float = 0.0  # of the delay where it does [ns]
    every: float = inf  # time from one to the next, where all that come meanwhile are delayed alike [ns]

    @property
    def variance(self) -> float:
        """Variance of the delay, which is mostly none. [ns2]."""
        return self.probability * self.mean**2 * (4 / 3 - self.probability)


class Late(NamedTuple):
    """Wait for bursts: exponential for those that wait."""

    mean: float = 0.0  # over all jobs [ns]
    decay: float = inf  # rate at which its tail decays [1/ns]

    @property
    def probability(self) -> float:
        """Probability that a job waits."""
        return min(self.mean * self.decay, 1.0) if self.mean > 0 else 0.0

    @property
    def moments(self) -> Moments:
        """Mean and variance."""
        share = self.probability
        return Moments(self.mean, share * (2 - share) / self.decay**2 if self.mean > 0 else 0.0)


def after_another(stalls: Sequence[Stall], count: float = 1.0) -> Stall:
    """Return the delay of independent ones, all of them so often, as if at most one happened."""
    used = [stall for stall in stalls if stall.probability > 0]
    if len(used) == 1 and count == 1:
        return used[0]
    none = float(np.prod([1 - stall.probability for stall in used])) ** count
    total = count * sum(stall.probability * stall.mean for stall in used)
    return Stall(1 - none, total / (1 - none)) if none < 1 else Stall()


def one_stall(shares: Sequence[float], stalls: Sequence[Stall]) -> Stall:
    """Return the delay that is one of several at random."""
    parts = [(share * s.probability, s.mean) for share, s in zip(shares, stalls, strict=True)]
    total = sum(part for part, _ in parts)
    return Stall(total, sum(part * mean for part, mean in parts) / total) if total > 0 else Stall()


def quantile_of(mixture: Sequence[tuple[float, Moments, Stall, Late]], p: float) -> float:
    """Return the quantile of a time that is one of several, each a sum of a gamma law and of delays.

    The first of the delays happens or not, the second is exponential for those that have it.
    """
    parts = [part for share, span, stall, late in mixture for part in _plain(share, span, stall, late)]
    ends = [span.quantile(p) + later for _, span, later in parts]
    if not ends or not np.isfinite(ends).all() or min(ends) == max(ends):
        return max(ends, default=0.0)

    def above(time: float) -> float:
        return sum(share * _below(span, time - later) for share, span, later in parts) - p

    low, high = min(ends), max(ends)
    if above(high) <= 0 or above(low) >= 0:
        return high if above(high) <= 0 else low
    return float(brentq(above, low, high))


def _plain(share: float, span: Moments, stall: Stall, late: Late) -> list[tuple[float, Moments, float]]:
    """Return times of gamma laws that begin later, each with its share."""
    if not span.finite or share <= 0:
        return [(share, span, 0.0)]
    begins = [(share, 0.0)]
    if stall.probability > 0:
        span = without(span, Moments(stall.probability * stall.mean, stall.variance))
        later = 2 * stall.mean * (np.arange(_STEPS) + 0.5) / _STEPS
        each = share * stall.probability / _STEPS
        begins = [(share * (1 - stall.probability), 0.0), *((each, float(more)) for more in later)]
    if late.mean > 0:
        # Where nearly all wait, a part of the wait is the same for all.
        span = without(span, late.moments)
        always = max(late.mean - late.probability / late.decay, 0.0)
        waits = [(1 - late.probability, always)]
        waits += [(late.probability * part, always + each / late.decay) for part, each in _EXPONENTIAL]
        begins = [(part * some, first + more) for part, first in begins for some, more in waits]
    return [(part, span, first) for part, first in begins]


def _exponential(steps: int, last: float) -> list[tuple[float, float]]:
    """Return steps of an exponential law of mean 1, each with its probability and its mean."""
    ends = np.append(np.linspace(0.0, last, steps), np.inf)
    tails = np.exp(-ends)
    partial = (np.where(np.isfinite(ends), ends, 0.0) + 1) * tails
    share = -np.diff(tails)
    return list(zip(share.tolist(), (-np.diff(partial) / share).tolist(), strict=True))


_EXPONENTIAL = _exponential(49, 8.0)


def _below(span: Moments, time: float) -> float:
    if span.scv < LEAST_SCV or time <= 0:
        return float(time >= span.mean)
    return float(gammainc(1 / span.scv, time / (span.mean * span.scv)))
