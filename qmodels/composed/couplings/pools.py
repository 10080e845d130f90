"""Pools and what is done while their tokens are held: jobs wait for tokens, and fewer jobs inside wait less.

A window of a flow is a pool around its whole program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.couplings.closed_mva import PopulationTable, closed_mva
from qmodels.composed.couplings.rate_profile import Profile
from qmodels.composed.moments import NOTHING, Moments
from qmodels.laws.of_law import formulas
from qmodels.markov.processes.qbd import first_passage
from qmodels.systems.laws.times import PhaseType

FULL = 1 - 1e-9
"""Share of the most that can be taken from which on there are too many jobs."""
MANY = 300
"""Jobs for which it does not matter how many more there are."""
POISSON = PhaseType(initial=(1.0,), generator=((-1.0,),))
_OUTSIDE = np.geomspace(1e5, 1e-3, 160)
"""Times outside, in holds of a job alone, for which tables are made; the last row is that of none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """Wait and hold at a pool."""

    wait: Moments  # for tokens
    hold: float  # mean time that one is held [ns]
    taken: float  # rate at which they are taken [1/ns]
    most: float  # rate at which they can be taken at most [1/ns]
    busy: float  # share of the tokens that are held, mean over time
    lost: float = 0.0  # share of the jobs that find none and are lost

    @property
    def load(self) -> float:
        """Share of the tokens that those who come would hold, above 1 if there are too few."""
        if self.taken < self.most:
            return self.busy
        return self.taken / self.most if self.most > 0 else np.inf

    def staying(self, time: float) -> Pool:
        """Wait and hold scaled to a sum."""
        now = self.wait.mean + self.hold
        if not 0 < now < np.inf:
            return self
        return replace(self, wait=self.wait.stretched(time / now), hold=self.hold * time / now)


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolSubnetwork:
    """The inside of a pool."""

    profile: Profile  # what is done there, by the rate at which tokens of all copies together are taken
    tokens: int  # tokens of a copy, in those that a job takes
    copies: int  # copies, each with the same share of the jobs
    scv: float = 1.0  # squared coefficient of variation of the time inside of a job alone
    noise: Mapping[str, float] = field(default_factory=dict)  # the same of its time at each part
    # Whether a station there is shared by all, who then do not leave in the order they came in.
    shared: bool = False
    # What is done there by jobs of which there are no more than tokens, if it differs.
    few: Profile | None = None

    def speeds(self, rate: float) -> FloatArray:
        """Return the rates at which 1, 2, ... jobs inside a copy leave it, if tokens are taken at a rate."""
        return self._population(self.few or self.profile, rate, min(self.tokens, MANY))[1].rates

    def speeds_of(self, rate: float, jobs: float) -> FloatArray:
        """Return the same for all of so many jobs that have tokens: beyond `MANY` as fast for each."""
        speeds, number = self.speeds(rate), np.arange(1, int(min(self.tokens, jobs)) + 1)
        if number.size <= speeds.size:
            return speeds
        full = max(self.profile.limit / self.copies, float(speeds[-1]))
        more = np.minimum(speeds[-1] * number[speeds.size :] / speeds.size, full)
        return np.concatenate([speeds, more])

    def leaving_scv(self, rate: float) -> float:
        """Return the variability of what leaves a copy in the long run where all its tokens are held."""
        profile, table = self._population(self.few or self.profile, rate, min(self.tokens, MANY))
        return leaving_scv(profile, table.found, self.noise)

    @cached_property
    def departure_scv_ratio(self) -> float:
        """Variability of what leaves where all tokens are held, over that of exponential services."""
        profile, table = self._population(self.few or self.profile, 0.0, min(self.tokens, MANY))
        exponential = leaving_scv(profile, table.found, dict.fromkeys(self.noise, 1.0))
        return leaving_scv(profile, table.found, self.noise) / exponential

    def most(self, rate: float) -> float:
        """Return the rate at which tokens of all copies are taken at most, if they are taken at one."""
        if self.tokens > MANY:
            alone = self.alone(rate)
            return min(self.profile.limit, self.tokens * self.copies / max(alone, 1e-300))
        return float(self.speeds(rate)[-1]) * self.copies

    def alone(self, rate: float) -> float:
        """Return the time inside of a job that meets those of other copies alone. [ns]."""
        return self.profile.after(rate - rate / self.copies, self.copies).total(0.0)

    def unlimited(self, rate: float) -> FloatArray:
        """Return the same as if there were tokens for all."""
        return self._population(self.profile, rate, MANY)[1].rates

    def _population(self, profile: Profile, rate: float, jobs: int) -> tuple[Profile, PopulationTable]:
        others = round(rate * (self.copies - 1) / self.copies, 15)
        key = (id(profile), others, jobs)
        if key not in self._known:
            here = profile.after(others, self.copies)
            self._known[key] = here, closed_mva(here, jobs)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[int, float, int], tuple[Profile, PopulationTable]]:
        return {}

    def times_of(self, hold: float) -> dict[str, float]:
        """Return at which parts a token that is held so long spends the time. [ns]."""
        profile = self.few or self.profile
        times = profile.times_near(profile.rate_of(hold))
        total = sum(times.values())
        return {part: time * hold / total for part, time in times.items()} if total > 0 else times

    def rate_at(self, hold: float) -> float:
        """Return the rate at which a stream from outside would hold tokens so long."""
        return (self.few or self.profile).rate_of(hold)


def open_pool(
    inside: PoolSubnetwork, rate: float, *, gaps: PhaseType, plain: float | None = None, stalled: float = 0.0
) -> Pool:
    r"""Wait and hold at a pool whose jobs arrive at a rate.

    ``rate``: jobs that come to all copies [1/ns]; ``gaps``: law of the times between them at a copy, of mean
    1; ``plain``: time that a job would be inside if there were tokens for all; what the profile says if left
    out [ns]; ``stalled``: mean wait for pauses in which all tokens are held, by those who come at random
    [ns].

    The part of the system that is inside as one station of rate :math:`X(n)` with n jobs, the throughput of
    n jobs that go round inside (Norton's theorem [1]_); jobs beyond the tokens wait in front: a
    quasi-birth-death process. What is waited inside is multiplied by r, which makes it right where there are
    tokens for all; the wait for tokens by :math:`f = (c_a^2 + c_d^2)/(c_a^2 + 1)`, the jobs of that station
    leaving by chance while those inside do as `leaving_scv` says. No fewer jobs are done sooner, unless they
    share a server: what they wait outside they wait in order, by f if that is less. Behind pauses jobs also
    wait for those who waited for them, :math:`\rho/(1-\rho)` times as long, as at a server with vacations.

    References
    ----------
    .. [1] K. M. Chandy, U. Herzog, L. Woo, "Parametric analysis of queuing networks", IBM J. Res. Dev. 19,
       1975.
    """
    own, tokens = rate / inside.copies, inside.tokens
    alone = inside.alone(rate)
    plain = inside.profile.total(rate) if plain is None else plain
    if tokens > MANY and plain < np.inf:
        most = inside.most(rate)
        return Pool(wait=NOTHING, hold=plain, taken=rate, most=most, busy=own * plain / tokens)
    speeds = inside.speeds(rate)
    most = float(speeds[-1])
    if own >= most * FULL:
        endless = Moments(np.inf, np.inf)
        hold = tokens / most if most > 0 else np.inf  # others fill a part inside
        return Pool(wait=endless, hold=hold, taken=rate, most=most * inside.copies, busy=1.0)
    held, queued, waits, decay = _numbers(own, speeds, gaps)
    everyone = _numbers(own, inside.unlimited(rate), gaps)
    waits_beyond = max((everyone[0] + everyone[1]) / own - alone, 0.0)
    ratio = (
        (plain - alone) / waits_beyond if waits_beyond > 1e-12 * alone and alone <= plain < np.inf else 1.0
    )
    bursts = float(formulas(gaps).scv)  # of times between arrivals of mean 1
    served = (bursts + inside.leaving_scv(rate)) / (bursts + 1)
    wait = queued / own * served
    if bursts > 1 + 1e-9:  # More of those who come in bursts wait than of those who come at random.
        waits = min(max(waits, wait * decay / served), 1.0)
    hold = alone + min(max(held / own - alone, 0.0), waits_beyond) * ratio
    # Of those who share a server, what is waited outside is waited in order.
    outside = queued / max(queued + held - own * alone, 1e-300) if inside.shared else 0.0
    least = alone + waits_beyond * (ratio - min(outside, 1.0) * max(ratio - served, 0.0)) - hold
    paused = stalled * own / (most - own)
    # What they wait for outside instead of inside, and pauses, they wait for no longer than they hold tokens.
    longer = max(least if least > wait else 0.0, paused)
    waits, wait = max(waits, min(longer / hold, 1.0)), max(wait, least) + paused
    return Pool(wait=_wait(wait, waits), hold=hold, taken=rate, most=most * inside.copies, busy=held / tokens)


def _numbers(rate: float, speeds: FloatArray, gaps: PhaseType) -> tuple[float, float, float, float]:
    """Mean numbers inside and waiting, share of the time in which jobs would wait, and decay of the wait."""
    moves = rate * np.array(gaps.generator)
    up = np.outer(np.maximum(-moves.sum(axis=1), 0.0), gaps.initial)
    eye, last = np.eye(len(up)), float(speeds[-1])
    way_back = first_passage(up, moves - np.diag(np.diag(moves)), last * eye)
    ratio = up @ np.linalg.inv(last * eye - moves - up @ way_back)
    ratios = [ratio]
    for slower, faster in zip(speeds[-2::-1], speeds[:0:-1], strict=True):
        ratios.append(up @ np.linalg.inv(slower * eye - moves - faster * ratios[-1]))
    balance = moves + float(speeds[0]) * ratios[-1]
    balance[:, -1] = 1.0
    levels = [np.linalg.solve(balance.T, eye[-1])]
    for each in reversed(ratios):
        levels.append(levels[-1] @ each)
    beyond = np.linalg.inv(eye - ratio)
    at = levels[-1]
    law = np.array([level.sum() for level in levels])
    total = float(law.sum() + (levels[-1] @ ratio @ beyond).sum())
    number = float(law @ np.arange(law.size)) / total
    number += float((levels[-1] @ ratio @ beyond @ (speeds.size * eye + beyond)).sum()) / total
    queued = float((at @ ratio @ beyond @ beyond).sum()) / total
    decay = last * (1 - float(np.abs(np.linalg.eigvals(ratio)).max()))
    return number - queued, queued, float((at @ beyond).sum()) / total, decay


def _wait(mean: float, waits: float) -> Moments:
    """Return a wait of a mean, exponential for the share of jobs that wait."""
    return Moments(mean, max(2 * mean**2 / waits - mean**2, 0.0) if waits > 0 else 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClosedPool:
    r"""Wait and hold of a fixed number of jobs at one copy of a pool, by the rate at which they take tokens.

    The station of `open_pool` and a delay: n jobs there come at a rate proportional to n. The time of the
    delay follows from the rate.
    """

    inside: PoolSubnetwork  # its inside
    jobs: int  # jobs that may come to a copy

    def at(self, rate: float) -> Pool:
        """Wait and hold if tokens of all copies together are taken at a rate."""
        copies, tokens = self.inside.copies, self.inside.tokens
        if self.inside.speeds(rate)[0] <= 0:  # others fill a part inside
            return Pool(wait=Moments(np.inf, np.inf), hold=np.inf, taken=rate, most=0.0, busy=1.0)
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
            number, tokens = np.arange(self.jobs + 1), self.inside.tokens
            known = self.inside.speeds_of(rate, self.jobs)
            down = known[np.minimum(number[1:], known.size) - 1]
            alone = np.append(0.0, np.cumsum(np.log((self.jobs - number[:-1]) / down)))
            weight = alone - number * np.log(_OUTSIDE / float(speeds[0]))[:, None]
            law = np.exp(weight - weight.max(axis=1, keepdims=True))
            law = np.vstack([law / law.sum(axis=1, keepdims=True), number == self.jobs])
            taken = law[:, 1:] @ down
            queued, held = law @ np.maximum(number - tokens, 0), law @ np.minimum(number, tokens)
            rows = taken, queued / taken, held / taken, law[:, tokens:].sum(axis=1)
            self._known[id(speeds)] = np.column_stack(rows)
        return self._known[id(speeds)]


def leaving_scv(profile: Profile, found: Sequence[float], noise: Mapping[str, float]) -> float:
    r"""Return the variance of the number of jobs that leave in a long time, over its mean.

    ``profile``: times at parts by the rate; ``found``: how many a job finds at each part; ``noise``: squared
    coefficient of variation of all that a job alone takes at a part; parts that are not there take it from
    the others.

    A part with :math:`L_k` jobs is left :math:`1 / L_k'` more often for each job more, :math:`L_k'(\lambda)`
    being the number that an open stream leaves there, and as unevenly as its services are. Of what happens
    at a part only so much is left in the end that no jobs get lost on the way round:

    .. math:: c^2 = \sum_k w_k^2 c_k^2, \quad w_k = L_k' / \sum_j L_j'.

    A single job is a renewal process, a full server leaves as it serves: exact in both limits. Balanced
    exponential servers have 1/m of m, which with many jobs is 2/3 for two of them [1]_. Derived here.

    References
    ----------
    .. [1] Y. Nazarathy, G. Weiss, "The asymptotic variance rate of the output process of finite capacity
       birth-death queues", Queueing Systems 59, 2008.
    """
    weights = np.array([profile.slope(number, k) for k, number in enumerate(found)])
    known = np.array([part in noise for part in profile.parts], dtype=bool)
    total = float(weights[known].sum()) if known.size else 0.0
    if not total > 0:
        return 1.0
    each = np.array([noise.get(part, 0.0) for part in profile.parts])
    return float((weights[known] / total) ** 2 @ each[known])
