"""Pools and what is done while their tokens are held: jobs wait for tokens, and fewer jobs inside wait less.

A window of a flow is a pool around its whole program.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.couplings.going_round import Profile, going_round
from qmodels.composed.moments import Span
from qmodels.laws.of_law import formulas
from qmodels.markov.processes.qbd import qbd
from qmodels.queues.distributions import birth_death_law
from qmodels.systems.laws.phases import PhaseType

FULL = 1 - 1e-9
"""Share of the most that can be taken from which on there are too many jobs."""
_MANY = 300
"""Jobs for which it does not matter how many more there are."""
POISSON = PhaseType(initial=(1.0,), generator=((-1.0,),))
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
    lost : float
        Share of the jobs that find none and are lost.
    """

    wait: Span
    hold: float
    taken: float
    most: float
    busy: float
    lost: float = 0.0

    def staying(self, time: float) -> Pool:
        """Return what is met if waiting and holding take a time together."""
        now = self.wait.mean + self.hold
        if not 0 < now < np.inf:
            return self
        return replace(self, wait=self.wait.stretched(time / now), hold=self.hold * time / now)


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
    scv : float
        Squared coefficient of variation of the time inside of a job alone.
    """

    profile: Profile
    tokens: int
    copies: int
    scv: float = 1.0

    def speeds(self, rate: float) -> FloatArray:
        """Return the rates at which 1, 2, ... jobs inside a copy leave it, if tokens are taken at a rate."""
        others = round(rate * (self.copies - 1) / self.copies, 15)
        if others not in self._known:
            self._known[others] = going_round(self.profile.after(others), self.tokens).rates
        return self._known[others]

    @cached_property
    def _known(self) -> dict[float, FloatArray]:
        return {}

    def wait_ratio(self, rate: float) -> float:
        """Return what an open stream waits inside over what it would at the rates of going round."""
        own = rate / self.copies
        profile = self.profile.after(round(rate - own, 15))
        alone, stream = self.profile.total(rate - own), self.profile.total(rate)
        if not stream < np.inf or stream - alone <= 1e-9 * stream:
            return 1.0
        speeds = going_round(profile, _MANY).rates
        if own >= speeds[-1] * FULL:
            return 1.0
        held, queued, _ = _numbers(own, speeds, POISSON)
        waited = (held + queued) / own - alone
        return (stream - alone) / waited if waited > 1e-9 * stream else 1.0

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


def open_pool(inside: Inside, rate: float, *, gaps: PhaseType) -> Pool:
    r"""Return what jobs that come at a rate meet at a pool.

    Parameters
    ----------
    inside : Inside
        Its inside.
    rate : float
        Jobs that come to all copies. [1/ns]
    gaps : PhaseType
        Law of the times between them at a copy, of mean 1.

    Notes
    -----
    The part of the system that is inside as one station of rate :math:`X(n)` with n jobs, the throughput of
    n jobs that go round inside (Norton's theorem [1]_); jobs beyond the tokens wait in front: a
    quasi-birth-death process. The wait is multiplied by :math:`(c_a^2 + c_s^2)/(c_a^2 + 1)`, where
    :math:`c_s^2` goes from that of a job alone to 1 as more are inside; what is waited for inside, by
    what an open stream waits there over what it would with that station.

    References
    ----------
    .. [1] K. M. Chandy, U. Herzog, L. Woo, "Parametric analysis of queuing networks", IBM J. Res. Dev. 19,
       1975.
    """
    own, tokens = rate / inside.copies, inside.tokens
    speeds = inside.speeds(rate)
    most = float(speeds[-1])
    if own >= most * FULL:
        endless = Span(np.inf, np.inf)
        return Pool(wait=endless, hold=tokens / most, taken=rate, most=most * inside.copies, busy=1.0)
    held, queued, waits = _numbers(own, speeds, gaps)
    served = 1 + (inside.scv - 1) * float(speeds[0]) / most
    spread = (gaps_scv(gaps) + served) / (gaps_scv(gaps) + 1)
    alone = inside.profile.total(rate - own)
    return Pool(
        wait=_wait(queued / own * spread, waits),
        hold=alone + max(held / own - alone, 0.0) * inside.wait_ratio(rate),
        taken=rate,
        most=most * inside.copies,
        busy=held / tokens,
    )


def gaps_scv(gaps: PhaseType) -> float:
    """Return the squared coefficient of variation of times between arrivals of mean 1."""
    return float(formulas(gaps).scv)


def _numbers(rate: float, speeds: FloatArray, gaps: PhaseType) -> tuple[float, float, float]:
    """Return how many are inside and how many wait, mean, and the share of the time in which some would."""
    tokens = speeds.size
    if len(gaps.initial) == 1:
        law = birth_death_law(np.full(tokens, rate), speeds)
        # Beyond the tokens the numbers are geometric.
        ratio = rate / float(speeds[-1])
        beyond = law[-1] * ratio / (1 - ratio)
        total = 1 + beyond
        held = float(law @ np.arange(tokens + 1) + beyond * tokens)
        return held / total, float(beyond / (1 - ratio)) / total, float(law[-1] + beyond) / total
    moves = rate * np.array(gaps.generator)
    up = np.outer(np.maximum(-moves.sum(axis=1), 0.0), gaps.initial)
    m = len(up)
    eye = np.eye(m)
    boundary = np.zeros(((tokens + 1) * m,) * 2)
    for n in range(tokens + 1):
        here = slice(n * m, (n + 1) * m)
        boundary[here, here] = moves - (speeds[n - 1] * eye if n else 0.0)
        if n:
            boundary[here, (n - 1) * m : n * m] = speeds[n - 1] * eye
        if n < tokens:
            boundary[here, (n + 1) * m : (n + 2) * m] = up
    ends = np.zeros((boundary.shape[0], m))
    ends[-m:] = up
    down = speeds[-1] * eye
    found = qbd(
        up=up,
        local=moves - down,
        down=down,
        boundary_local=boundary,
        boundary_up=ends,
        boundary_down=np.hstack([np.zeros((m, tokens * m)), down]),
    )
    law = found.boundary.reshape(-1, m).sum(axis=1)
    above = 1 - float(law.sum())
    held = float(law @ np.arange(tokens + 1)) + above * tokens
    return held, float(found.mean_level), float(law[-1]) + above


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
