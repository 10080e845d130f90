"""Pools and what is done while their tokens are held: jobs wait for tokens, and fewer jobs inside wait less.

A window of a flow is a pool around its whole program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from qmodels.checks import FloatArray
from qmodels.composed.moments import Span
from qmodels.queues.markovian.birth_death import birth_death_law

STEPS = 60
"""Bisections for a rate."""

_GRID = 1 - np.array([1.0, 0.85, 0.7, 0.55, 0.4, 0.28, 0.18, 0.1, 0.05, 0.02, 0.005])
_STATES = 4096
"""States beyond the tokens of a chain without an end are summed up in closed form, no more than so many."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Inside:
    """How long tokens are held, by the rate at which they are taken.

    Parameters
    ----------
    limit : float
        Rate at which the first resource inside is full. [1/ns]
    rates : array of float
        Rates below it, ascending from 0. [1/ns]
    holds : array of float
        Mean times that a token is held at these rates. [ns]
    """

    limit: float
    rates: FloatArray
    holds: FloatArray

    @cached_property
    def _curve(self) -> Any:
        # Without the pole at the limit the curve is nearly straight.
        return PchipInterpolator(self.rates, self.holds * self._distance(self.rates))

    def _distance(self, rate: Any) -> Any:
        return 1 - rate / self.limit if np.isfinite(self.limit) else np.ones_like(rate)

    def hold(self, rate: Any) -> Any:
        """Return how long a token is held if they are taken at a rate; ``inf`` from the limit on."""
        rate = np.asarray(rate, dtype=float)
        below = np.clip(rate, 0.0, self.rates[-1])
        held = self._curve(below) / np.maximum(self._distance(np.minimum(rate, self.limit)), 1e-300)
        return np.where(rate < self.limit, held, np.inf)

    def carried(self, inside: FloatArray, others: float = 0.0) -> FloatArray:
        """Return the rates at which so many jobs inside leave, besides those of other copies of the pool.

        Each meets the others: of n jobs one sees a share (n - 1) / n of the rate, as in Schweitzer's
        approximation, which is exact for one queue and for balanced ones.
        """
        low, high = np.zeros(inside.size), np.full(inside.size, min(self.limit, 1e300))
        idle = float(self.hold(others))
        high = np.minimum(high, inside / idle if idle > 0 else high)
        for _ in range(STEPS):
            middle = (low + high) / 2
            with np.errstate(invalid="ignore"):
                number = middle * self.hold(others + middle * (inside - 1) / inside)
            less = np.where(np.isnan(number), False, number < inside)
            low, high = np.where(less, middle, low), np.where(less, high, middle)
        return (low + high) / 2

    def rate_at(self, hold: float) -> float:
        """Return the rate at which tokens are held so long."""
        if hold <= float(self.hold(0.0)):
            return 0.0
        low, high = 0.0, self.limit if np.isfinite(self.limit) else float(self.rates[-1])
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if float(self.hold(middle)) < hold else (low, middle)
        return low


def inside_of(hold_at: Callable[[float], float], limit: float, most: float) -> Inside:
    """Return how long tokens are held, from what it is at a rate.

    Parameters
    ----------
    hold_at : callable
        Mean time that a token is held at a rate.
    limit : float
        Rate at which the first resource inside is full, ``inf`` if none ever is.
    most : float
        Rate up to which it is asked in that case.
    """
    end = limit if np.isfinite(limit) else most
    grid = _GRID if np.isfinite(limit) else np.linspace(0.0, 1.0, 3)
    rates, holds = [], []
    for rate in end * grid:
        held = hold_at(rate)
        if not np.isfinite(held):
            # Full earlier than a straight line says.
            limit = min(limit, rate)
            break
        rates.append(rate)
        holds.append(held)
    return Inside(limit=limit, rates=np.array(rates), holds=np.array(holds))


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """What jobs meet at a pool.

    Parameters
    ----------
    wait : Span
        For tokens.
    hold : float
        Mean time that one is held. [ns]
    taken : float
        Rate at which they are taken. [1/ns]
    most : float
        Rate at which they can be taken at most. [1/ns]
    busy : float
        Share of the tokens that are held, mean over time.
    """

    wait: Span
    hold: float
    taken: float
    most: float
    busy: float

    def halfway(self, other: Pool) -> Pool:
        """Return what is met in the middle between two answers."""
        if not (self.wait.finite and other.wait.finite):
            return self
        middle = Span((self.wait.mean + other.wait.mean) / 2, (self.wait.variance + other.wait.variance) / 2)
        return replace(self, wait=middle, hold=(self.hold + other.hold) / 2)


def open_pool(
    *, inside: Inside, tokens: int, rate: float, copies: int, arrival_scv: float, hold_scv: float
) -> Pool:
    r"""Return what jobs that come at a rate meet at one copy of a pool.

    Parameters
    ----------
    inside : Inside
        How long tokens are held, by the rate of all copies together.
    tokens : int
        Tokens of a copy, in those that a job takes.
    rate : float
        Jobs that come to all copies. [1/ns]
    copies : int
        Copies, each with the same share of the jobs.
    arrival_scv, hold_scv : float
        Squared coefficients of variation of the times between arrivals, and of the time inside.

    Notes
    -----
    The part of the system that is inside as one station of rate :math:`X(n)` with n jobs, the throughput of
    n jobs that go round inside (Norton's theorem); jobs beyond the tokens wait in front. The wait is
    multiplied by :math:`(c_a^2 + c_s^2)/2`. Exact for Poisson arrivals and a balanced product form inside.

    References
    ----------
    .. [1] K. M. Chandy, U. Herzog, L. Woo, "Parametric analysis of queuing networks", IBM J. Res. Dev. 19,
       1975.
    """
    own = rate / copies
    speeds = inside.carried(np.arange(1, tokens + 1, dtype=float), others=rate - own)
    most = float(speeds[-1])
    if own >= most:
        endless = Span(np.inf, np.inf)
        return Pool(wait=endless, hold=tokens / most, taken=rate, most=most * copies, busy=1.0)
    up = np.full(tokens, own)
    law = birth_death_law(up, speeds)
    # Beyond the tokens the numbers are geometric.
    ratio = own / most
    tail = law[-1] * ratio / (1 - ratio)
    total = 1 + tail
    held = float(law @ np.arange(tokens + 1) + tail * tokens) / total
    queued = float(law[-1] * ratio / (1 - ratio) ** 2) / total
    waits = float(law[-1] + tail) / total
    spread = (arrival_scv + hold_scv) / 2
    mean = queued / own * spread
    behind = mean / waits if waits > 0 else 0.0
    return Pool(
        wait=Span(mean, max(2 * waits * behind**2 - mean**2, 0.0)),
        hold=held / own,
        taken=rate,
        most=most * copies,
        busy=held / tokens,
    )


def closed_pool(
    *, inside: Inside, tokens: int, jobs: float, outside: float, rate: float, copies: int
) -> Pool:
    r"""Return what jobs of a fixed number meet at one copy of a pool.

    Parameters
    ----------
    inside, tokens, copies
        As for `open_pool`.
    jobs : float
        Jobs that may come to all copies.
    outside : float
        Mean time from giving tokens back to coming again. [ns]
    rate : float
        Rate at which others take tokens of other copies, if there are any, for what they meet. [1/ns]

    Notes
    -----
    The station of `open_pool` and a delay of the time outside: n jobs there come at the rate
    n / outside.
    """
    number = max(int(round(jobs / copies)), 1)
    sizes = np.arange(1, number + 1)
    others = rate * (copies - 1) / copies
    speeds = inside.carried(np.minimum(sizes, tokens).astype(float), others=others)
    if outside <= 0:
        law = np.eye(number + 1)[-1]
    else:
        law = birth_death_law((number - np.arange(number)) / outside, speeds)
    taken = float(law[1:] @ speeds)
    held = float(law @ np.minimum(np.arange(number + 1), tokens))
    queued = float(law @ np.maximum(np.arange(number + 1) - tokens, 0))
    mean = queued / taken
    waits = float(law[tokens:].sum())
    behind = mean / waits if waits > 0 else 0.0
    return Pool(
        wait=Span(mean, max(2 * waits * behind**2 - mean**2, 0.0)),
        hold=held / taken,
        taken=taken * copies,
        most=float(speeds[-1]) * copies,
        busy=held / tokens,
    )
