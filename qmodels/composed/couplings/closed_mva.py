"""Jobs of a limited number and the parts they go round: what each meets when there are few of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.couplings.rate_profile import Profile

MOST_NUMBERS = 100
"""Of more jobs the rates with as many numbers of them, in geometric steps, are found; all others between."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """A pool on the way of jobs that go round, with what is inside."""

    speeds: FloatArray  # rates at which 1, 2, ... jobs there leave it; the last holds for more [1/ns]
    scv: float = 1.0  # squared coefficient of variation of the time inside of a job alone

    @property
    def excess(self) -> float:
        """Excess over an exponential time until a job leaves where all tokens are held. [ns]."""
        slowest, fastest = float(self.speeds[0]), float(self.speeds[-1])
        return (self.scv - 1) / 2 / fastest * slowest / fastest


class AtRegion:
    """The probabilities of the numbers at a region, and what a job takes that meets them."""

    part = -1

    def __init__(self, region: Region, jobs: int) -> None:
        self.excess, self.rate = region.excess, 0.0
        self.tokens = region.speeds.size
        self.down = region.speeds[np.minimum(np.arange(jobs), region.speeds.size - 1)]
        self.times, self.law = np.arange(1, jobs + 1) / self.down, np.ones(1)
        self.slowness = np.cumsum(np.log(np.maximum(self.down, 1e-300)))

    def growth(self, rate: float, jobs: int) -> float:
        """Largest probability of at most so many jobs over that of none, at a rate."""
        # Where others fill all there is, as in a round of a fixed point, there is no law of numbers.
        if rate <= self.down[0] or self.down[0] <= 0:
            return 1.0
        return float(np.exp(np.max(np.arange(1, jobs + 1) * np.log(rate) - self.slowness[:jobs])))

    def holds_back(self, rate: float, jobs: int) -> bool:
        """Return whether so many jobs go round as slowly as they leave, though more would leave faster."""
        now, most = float(self.down[jobs - 1]), float(self.down[jobs - 1 :].max())
        return NEARLY * now < rate < NEARLY * most

    def corrected(self, time: float, held: float, rate: float) -> float:
        """Return a time there as the region's own law makes it for jobs that find all tokens held."""
        return time + held * self.excess

    def begun(self) -> float:
        """Return the time there of a job that goes round with those before, as if nothing varied more."""
        return float(self.law @ self.times[: self.law.size])

    def time(self) -> float:
        """Return the time there of a job that goes round with those before."""
        return self.corrected(self.begun(), float(self.law[self.tokens :].sum()), self.rate)

    def advance(self, rate: float) -> None:
        """Let there be one job more, which go round at a rate."""
        up = rate / self.down[: self.law.size] * self.law
        self.law = np.concatenate([[max(1.0 - float(up.sum()), 0.0)], up])
        self.law /= self.law.sum()
        self.rate = rate

    def joining(self, others: FloatArray) -> tuple[FloatArray, float]:
        """Return the rates if the jobs come here too, and what all of them take here.

        Parameters
        ----------
        others : array of float
            Rates at which 1, 2, ... jobs go round elsewhere.
        """
        up, down = np.append(0.0, np.cumsum(np.log(others))), np.append(0.0, self.slowness)
        number = np.arange(others.size + 1)

        def at(n: int) -> tuple[float, float]:
            weight = -up[n::-1] - down[: n + 1]
            law = np.exp(weight - weight.max())
            rate = float(law[1:] @ self.down[:n]) / float(law.sum())
            time = float(law @ number[: n + 1]) / float(law.sum()) / rate
            more = self.corrected(time, float(law[self.tokens :].sum() / law.sum()), rate)
            return n / (n / rate + more - time), more

        some = number[1:]
        if some.size > MOST_NUMBERS:
            some = np.unique(np.geomspace(1, others.size, MOST_NUMBERS).round().astype(np.int64))
        rates = np.interp(number[1:], some, [at(n)[0] for n in some.tolist()])
        return rates, at(others.size)[1]


class AtStation(AtRegion):
    """The same at a station of several servers, with its waits over those of M/M/c."""

    def __init__(
        self, part: int, own: float, servers: int, ratio: tuple[FloatArray, FloatArray], jobs: int
    ) -> None:
        super().__init__(Region(speeds=np.arange(1, servers + 1) / own), jobs)
        self.part, self.own, self.ratio = part, own, ratio

    def corrected(self, time: float, held: float, rate: float) -> float:
        """Return a time there as the station's own law makes it."""
        return self.own + (time - self.own) * float(np.interp(rate, *self.ratio))


_SETTLED = 1e-13
NEARLY = 1 - 1e-6
MOST_GROWTH = 1e6
"""By which factor rounding errors of the probability of an empty region may grow with the jobs to come."""
MOST = 1e12
"""Rate of jobs that nothing holds elsewhere. [1/ns]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PopulationTable:
    """Throughput and times of closed jobs, for 1, 2, ... of them."""

    rates: FloatArray  # rates at which they go round [1/ns]
    regions: tuple[float, ...] = ()  # of all of them, the time of a round that each takes at the regions [ns]
    found: tuple[float, ...] = ()  # how many the last of them finds at each part
    left: tuple[float, ...] = ()  # how many are at each part with it


def closed_mva(
    profile: Profile, jobs: int, *, idle: float = 0.0, regions: Sequence[Region] = ()
) -> PopulationTable:
    r"""Throughput for populations 1..N, by mean value analysis.

    ``profile``: times at parts by the rate; ``idle``: time of a round that depends on nothing [ns];
    ``regions``: the pools on the way.

    Mean value analysis [1]_: a job meets what n - 1 jobs leave at each part, and takes there what an open
    stream answers that has as many at the part. Regions, and stations of several servers, by the
    probabilities of the numbers there [2]_, for stations multiplied by what their waits are over those of
    M/M/c. Exact for what has a product form; no more than the first full resource carries.
    Where a region of many jobs is next to never empty the recursion is not stable; the law of the number
    there then follows from the rates with as many jobs elsewhere (Norton's theorem), region by region.

    References
    ----------
    .. [1] M. Reiser, S. S. Lavenberg, "Mean-value analysis of closed multichain queuing networks", J. ACM 27,
       1980.
    .. [2] M. Reiser, "Mean-value analysis and convolution method for queue-dependent servers in closed
       queueing networks", Performance Evaluation 1, 1981.
    """
    walkers = [AtRegion(region, jobs) for region in regions]
    for part, count in profile.servers.items():
        own = profile.parts.index(part), profile.first[part]
        walkers.append(AtStation(*own, count, profile.wait_ratios[part], jobs))
    rates, found, last = np.zeros(jobs), [0.0] * len(profile.parts), 0.0
    taken: list[float] = []
    for n in range(1, jobs + 1):
        met = tuple(found)
        at = [profile.met(number, k) for k, number in enumerate(met)]
        taken = [walker.time() for walker in walkers]
        for walker, time in zip(walkers, taken, strict=True):
            if walker.part >= 0:
                at[walker.part] = time
        inside = taken[: len(regions)]
        _come_back(profile, walkers, met, at, idle + sum(inside))
        at, rate = _round(profile, at, found, n, idle + sum(inside), last)
        found = [rate * time for time in at]
        for walker in walkers:
            walker.advance(rate)
        if any(walker.growth(rate, n) > MOST_GROWTH for walker in walkers):
            return _by_numbers(profile, jobs, idle, walkers)
        rates[n - 1] = rate
        held_back = any(walker.holds_back(rate, n) for walker in walkers)
        if n > 1 and abs(rate - last) <= _SETTLED * rate and not held_back:
            rates[n:] = rate
            break
        last = rate
    return PopulationTable(rates=rates, regions=tuple(taken[: len(regions)]), found=met, left=tuple(found))


def _come_back(
    profile: Profile, walkers: Sequence[AtRegion], met: Sequence[float], at: list[float], rest: float
) -> None:
    """Shorten times at stations for jobs that are back before the service ends that began as they left.

    A job that comes at random meets services of which more than half of their mean is left if they vary more
    than exponential ones; one that is back at once meets one that has just begun. Both take exponential times
    here, the way round and the service.
    """
    begun = {profile.parts.index(part): end for part, end in profile.ends.items() if part in profile.parts}
    soon = {k: ((1 + met[k]) / end, 1 / end) for k, end in begun.items() if end > 0}
    soon |= {one.part: (one.begun(), one.own / one.tokens) for one in walkers if isinstance(one, AtStation)}
    whole = rest + sum(at)
    for k, (time, service) in soon.items():
        if time < at[k]:
            away = whole - at[k]
            at[k] = time + (at[k] - time) * away / (away + service)


def _round(
    profile: Profile, met: Sequence[float], found: Sequence[float], jobs: int, rest: float, rate: float
) -> tuple[list[float], float]:
    """Return the times at parts, as the rate of so many jobs leaves them, and that rate."""
    for _ in range(profile.states):
        at = [time + more for time, more in zip(met, profile.left(found, rate), strict=True)]
        whole = rest + sum(at)
        last, rate = rate, profile.below(jobs / whole if whole > 0 else np.inf)
        if rate == last:
            break
    return at, rate


def _by_numbers(profile: Profile, jobs: int, idle: float, walkers: Sequence[AtRegion]) -> PopulationTable:
    """Throughput by the laws of the numbers at each region and elsewhere, region by region."""
    own = {walker.part for walker in walkers}
    outside, found, rate = np.zeros(jobs), [0.0] * len(profile.parts), 0.0
    for n in range(1, jobs + 1):
        last = tuple(found)
        met = [0.0 if k in own else profile.met(number, k) for k, number in enumerate(last)]
        at, rate = _round(profile, met, last, n, idle, rate)
        outside[n - 1 :] = min(rate, MOST)
        found = [rate * time if time else 0.0 for time in at]
        if n > 1 and abs(outside[n - 1] - outside[n - 2]) <= _SETTLED * outside[n - 1]:
            break
    times = []
    for walker in (one for one in walkers if one.part < 0):
        rates = outside
        for other in (*(one for one in walkers if one is not walker), walker):
            rates, time = other.joining(rates)
        times.append(time)
    if not times:
        rates = outside
        for walker in walkers:
            rates, _ = walker.joining(rates)
    rates = np.minimum(rates, profile.below(float(rates[-1])))
    return PopulationTable(rates=rates, regions=tuple(times), found=last, left=tuple(found))
