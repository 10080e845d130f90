"""Pools and what is done while their tokens are held: jobs wait for tokens, and fewer jobs inside wait less.

A window of a flow is a pool around its whole program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.couplings.going_round import Profile, going_round
from qmodels.composed.moments import Span
from qmodels.queues.distributions import birth_death_law

_OUTSIDE = np.concatenate([np.geomspace(1e5, 1e-3, 160), [0.0]])
"""Times outside, in holds of a job alone, for which tables are made."""


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Inside:
    """The inside of a pool.

    Parameters
    ----------
    profile : Profile
        What is done there, by the rate at which tokens of all copies together are taken.
    tokens : int
        Tokens of a copy, in those that a job takes.
    copies : int
        Copies, each with the same share of the jobs.
    """

    profile: Profile
    tokens: int
    copies: int

    def speeds(self, rate: float) -> FloatArray:
        """Return the rates at which 1, 2, ... jobs inside one copy leave it, if tokens are taken at a rate."""
        others = round(rate * (self.copies - 1) / self.copies, 15)
        if others not in self._known:
            self._known[others] = going_round(self.profile.after(others), self.tokens).rates
        return self._known[others]

    @cached_property
    def _known(self) -> dict[float, FloatArray]:
        return {}

    def rate_at(self, hold: float) -> float:
        """Return the rate at which a stream from outside would hold tokens so long."""
        if not hold > self.profile.total(0.0):
            return 0.0
        low, high = 0.0, min(self.profile.limit, 1e6 * float(self.profile.rates[-1]))
        if self.profile.total(float(self.profile.rates[-1])) < hold:
            return float(self.profile.rates[-1])
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.profile.total(middle) < hold else (low, middle)
        return low


def open_pool(inside: Inside, rate: float, *, arrival_scv: float, hold_scv: float) -> Pool:
    r"""Return what jobs that come at a rate meet at a pool.

    Parameters
    ----------
    inside : Inside
        Its inside.
    rate : float
        Jobs that come to all copies. [1/ns]
    arrival_scv, hold_scv : float
        Squared coefficients of variation of the times between arrivals, and of the time inside.

    Notes
    -----
    The part of the system that is inside as one station of rate :math:`X(n)` with n jobs, the throughput of
    n jobs that go round inside (Norton's theorem [1]_); jobs beyond the tokens wait in front. The wait is
    multiplied by :math:`(c_a^2 + c_s^2)/2`. Exact for Poisson arrivals and a product form inside.

    References
    ----------
    .. [1] K. M. Chandy, U. Herzog, L. Woo, "Parametric analysis of queuing networks", IBM J. Res. Dev. 19,
       1975.
    """
    own, tokens = rate / inside.copies, inside.tokens
    speeds = inside.speeds(rate)
    most = float(speeds[-1])
    if own >= most:
        endless = Span(np.inf, np.inf)
        return Pool(wait=endless, hold=tokens / most, taken=rate, most=most * inside.copies, busy=1.0)
    law = birth_death_law(np.full(tokens, own), speeds)
    # Beyond the tokens the numbers are geometric.
    ratio = own / most
    tail = law[-1] * ratio / (1 - ratio)
    held = float(law @ np.arange(tokens + 1) + tail * tokens) / (1 + tail)
    queued = float(law[-1] * ratio / (1 - ratio) ** 2) / (1 + tail)
    waits = float(law[-1] + tail) / (1 + tail)
    mean = queued / own * (arrival_scv + hold_scv) / 2
    return Pool(
        wait=_wait(mean, waits), hold=held / own, taken=rate, most=most * inside.copies, busy=held / tokens
    )


def _wait(mean: float, waits: float) -> Span:
    """Return a wait of a mean, exponential for the share of jobs that wait."""
    return Span(mean, max(2 * mean**2 / waits - mean**2, 0.0) if waits > 0 else 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClosedPool:
    r"""What jobs of a fixed number meet at one copy of a pool, by the rate at which they take tokens.

    Parameters
    ----------
    inside : Inside
        Its inside.
    jobs : int
        Jobs that may come to a copy.

    Notes
    -----
    The station of `open_pool` and a delay: n jobs there come at a rate proportional to n. The time of the
    delay follows from the rate.
    """

    inside: Inside
    jobs: int

    def at(self, rate: float) -> Pool:
        """Return what is met if tokens of all copies together are taken at a rate."""
        copies, tokens = self.inside.copies, self.inside.tokens
        own, rows = rate / copies, self._rows(rate)
        wait, hold, waits = (float(np.interp(own, rows[:, 0], rows[:, k])) for k in (1, 2, 3))
        most = float(rows[-1, 0])
        return Pool(
            wait=_wait(wait, waits),
            hold=hold,
            taken=rate,
            most=most * copies,
            busy=min(own * hold / tokens, 1.0),
        )

    @cached_property
    def _known(self) -> dict[int, FloatArray]:
        return {}

    def _rows(self, rate: float) -> FloatArray:
        """Return rate, wait, hold and share that waits for many times outside, by ascending rate."""
        speeds = self.inside.speeds(rate)
        if id(speeds) not in self._known:
            number = np.arange(self.jobs + 1)
            down = speeds[np.minimum(number[1:], self.inside.tokens) - 1]
            rows = []
            for outside in _OUTSIDE / float(speeds[0]):
                law = np.eye(number.size)[-1]
                if outside:
                    law = birth_death_law((self.jobs - number[:-1]) / outside, down)
                taken = float(law[1:] @ down)
                queued = float(law @ np.maximum(number - self.inside.tokens, 0))
                held = float(law @ np.minimum(number, self.inside.tokens))
                rows.append((taken, queued / taken, held / taken, float(law[self.inside.tokens :].sum())))
            self._known[id(speeds)] = np.array(rows)
        return self._known[id(speeds)]
