"""Jobs of a limited number and the parts they go round: what each meets when there are few of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qmodels.checks import FloatArray
from qmodels.queues.markovian.mmc import mmc

_GRID = 1 - np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01, 0.003])
"""Shares of the rate at which the first resource is full for which tables are made."""
_SETTLED = 1e-13
MOST_GROWTH = 1e6
"""By which factor rounding errors of the probability of an empty region may grow with the jobs to come."""
MOST_NUMBERS = 100
"""Of more jobs the rates with as many numbers of them, in geometric steps, are found; all others between."""
MOST = 1e12
"""Rate of jobs that nothing holds elsewhere. [1/ns]"""
_STATES = 4
"""Rounds in which the rate and the state that it leaves parts in are found."""


Times = Callable[[float], Mapping[str, float]]


class Profile:
    """Times that a job spends at parts, by the rate of the jobs; parts are asked as far as is needed.

    Parameters
    ----------
    times_at : callable
        Mean times of a job by part at a rate. [ns]
    limit : float
        Rate at which the first resource is full, ``inf`` if none ever is. [1/ns]
    rates : array of float
        Rates below it at which parts are asked, ascending from 0; between them times are interpolated.
    servers : mapping of str to int
        Stations of several servers that no other jobs come to.
    alone_at : callable, optional
        Mean times of a job that meets no other at parts as they are at a rate, where that depends on it.
    """

    def __init__(
        self,
        times_at: Times,
        *,
        limit: float,
        rates: FloatArray,
        servers: Mapping[str, int],
        alone_at: Times | None = None,
    ) -> None:
        self._times_at, self._limit, self._asked = times_at, limit, rates.tolist()
        self._alone_at = alone_at
        self._rates: list[float] = []
        self.first = dict(times_at(self._asked[0]))
        self.parts = tuple(self.first)
        self._rows: list[list[float]] = [[] for _ in self.parts]
        self._here: list[list[float]] = [[] for _ in self.parts]
        self._lone: list[list[float]] = [[] for _ in self.parts]
        if not self._next():
            self.first, self.parts = {}, ()
            self._rows, self._here, self._lone = [], [], []
        self.servers = {part: count for part, count in servers.items() if self.first.get(part, 0.0) > 0}

    def _next(self) -> bool:
        """Ask at the next rate; return whether there was one that nothing is full at."""
        if len(self._rates) == len(self._asked):
            return False
        rate = self._asked[len(self._rates)]
        times = self._times_at(rate) if self._rates else self.first
        if not all(time < np.inf for time in times.values()):
            # Full earlier than a straight line says.
            self._limit, self._asked = min(self._limit, rate), self._asked[: len(self._rates)]
            return False
        self._rates.append(rate)
        for part, row, here in zip(self.parts, self._rows, self._here, strict=True):
            row.append(times.get(part, 0.0))
            here.append(rate * row[-1])
        if self._alone_at is not None:
            alone = self._alone_at(rate)
            for part, row in zip(self.parts, self._lone, strict=True):
                row.append(alone.get(part, 0.0))
        return True

    def _reach(self, rate: float) -> None:
        """Ask as far as a rate."""
        while (not self._rates or self._rates[-1] < rate) and self._next():
            pass

    @property
    def limit(self) -> float:
        """Rate at which the first resource is full. [1/ns]."""
        self._reach(np.inf)
        return self._limit

    @property
    def rates(self) -> FloatArray:
        """All rates at which nothing is full."""
        self._reach(np.inf)
        return np.array(self._rates)

    @property
    def times(self) -> dict[str, FloatArray]:
        """Mean time of a job at each part at these rates. [ns]."""
        self._reach(np.inf)
        return {part: np.array(row) for part, row in zip(self.parts, self._rows, strict=True)}

    @cached_property
    def wait_ratios(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """By station of several servers: rates, and its waits over those of M/M/c at these."""
        found = {}
        rates, times = (self.rates, self.times) if self.servers else (np.zeros(0), {})
        for part, servers in self.servers.items():
            row = times[part]
            if row.size < 2:
                found[part] = (np.zeros(1), np.ones(1))
                continue
            load = np.minimum(rates[1:] * row[0], servers * (1 - 1e-12))
            plain = mmc(
                arrival_rate=load / row[0], service_rate=1 / row[0], servers=servers
            ).mean_waiting_time
            ratio = np.divide(row[1:] - row[0], plain, out=np.ones(load.size), where=plain > 1e-9 * row[0])
            found[part] = (rates[1:], ratio)
        return found

    def total(self, rate: float) -> float:
        """Return the time at all parts at a rate."""
        self._reach(rate)
        if rate >= self._limit:
            return float("inf")
        return float(sum(np.interp(rate, self._rates, row) for row in self._rows))

    def rate_of(self, total: float) -> float:
        """Return the rate at which all parts together take so long, the last one if they never do."""
        if not self._rates:
            return 0.0
        known = [sum(row[0] for row in self._rows)]
        while known[-1] < total:
            if len(known) == len(self._rates) and not self._next():
                return self._rates[-1]
            known.append(sum(row[len(known)] for row in self._rows))
        return float(np.interp(total, known, self._rates[: len(known)])) if known[0] < total else 0.0

    def below(self, rate: float) -> float:
        """Return a rate, or that at which the first resource is full."""
        self._reach(rate)
        return min(rate, self._limit)

    def after(self, others: float) -> Profile:
        """Return the times by the rate of some jobs, besides that of others."""
        if others <= 0:
            return self
        known, times, limit = self.rates, self.times, self.limit
        end = min(limit, float(known[-1]) if np.isinf(limit) else limit) - others
        rates = np.maximum(end, 1e-300) * _GRID

        def times_at(rate: float) -> dict[str, float]:
            return {part: float(np.interp(others + rate, known, row)) for part, row in times.items()}

        alone_at = self._alone_at
        shifted = None if alone_at is None else lambda rate: alone_at(others + rate)
        return Profile(times_at, limit=limit - others, rates=rates, servers=self.servers, alone_at=shifted)

    def met(self, found: float, part: int) -> float:
        """Return the time at a part for a job that finds so many of its kind there."""
        row, here = self._rows[part], self._here[part]
        while found > here[-1] and self._next():
            pass
        if found <= here[-1]:
            k = bisect_right(here, found) - 1
            # Where a part takes nothing but rounding errors numbers need not ascend.
            if k == len(here) - 1 or found == here[k] or here[k + 1] <= here[k]:
                return row[k]
            return (row[k + 1] - row[k]) / (here[k + 1] - here[k]) * (found - here[k]) + row[k]
        slope = (row[-1] - row[-2]) / (here[-1] - here[-2]) if len(here) > 1 and here[-1] > here[-2] else 0.0
        return row[-1] + (found - here[-1]) * slope

    @property
    def states(self) -> int:
        """Rounds in which a rate and the state that it leaves parts in are found."""
        return 1 if self._alone_at is None else _STATES

    def left(self, found: Sequence[float], rate: float) -> list[float]:
        """Return how much longer a job takes at parts as they are at a rate than as they are with so many."""
        if self._alone_at is None:
            return [0.0] * len(found)
        self._reach(rate)
        shift = []
        for number, row, here in zip(found, self._lone, self._here, strict=True):
            with_them = float(np.interp(number, here, self._rates))
            shift.append(float(np.interp(rate, self._rates, row) - np.interp(with_them, self._rates, row)))
        return shift


def profile_of(
    times_at: Times,
    *,
    limit: float,
    most: float,
    servers: Mapping[str, int],
    alone_at: Times | None = None,
) -> Profile:
    """Return the times at parts, from what they are at a rate.

    Parameters
    ----------
    times_at, limit, servers, alone_at
        As in `Profile`.
    most : float
        Rate up to which parts are asked if none is ever full.
    """
    rates = limit * _GRID if np.isfinite(limit) else most * np.linspace(0.0, 1.0, 4)
    return Profile(times_at, limit=limit, rates=rates, servers=servers, alone_at=alone_at)


@dataclass(frozen=True, kw_only=True, eq=False)
class Crowd:
    """What jobs do that go round, for 1, 2, ... of them.

    Parameters
    ----------
    rates : array of float
        Rates at which they go round. [1/ns]
    regions : tuple of float
        Of all of them, the time of a round that each takes at the regions. [ns]
    """

    rates: FloatArray
    regions: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """A pool on the way of jobs that go round, with what is inside.

    Parameters
    ----------
    speeds : array of float
        Rates at which 1, 2, ... jobs there leave it; the last holds for more. [1/ns]
    scv : float
        Squared coefficient of variation of the time inside of a job alone.
    """

    speeds: FloatArray
    scv: float = 1.0

    @property
    def excess(self) -> float:
        """What a job in service has left beyond an exponential one, if it is served alone. [ns]."""
        slowest, fastest = float(self.speeds[0]), float(self.speeds[-1])
        return (self.scv - 1) / 2 / fastest * slowest / fastest


def going_round(profile: Profile, jobs: int, *, idle: float = 0.0, regions: Sequence[Region] = ()) -> Crowd:
    r"""Return the rates at which jobs go round, for 1 to so many of them.

    Parameters
    ----------
    profile : Profile
        Times at parts by the rate.
    jobs : int
        Jobs, at most.
    idle : float
        Time of a round that depends on nothing. [ns]
    regions : sequence of Region
        The pools on the way.

    Notes
    -----
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
    walkers = [*(_AtRegion(region, jobs) for region in regions), *_at_stations(profile, jobs)]
    rates, found, last = np.zeros(jobs), [0.0] * len(profile.parts), 0.0
    taken: list[float] = []
    for n in range(1, jobs + 1):
        at = [profile.met(number, k) for k, number in enumerate(found)]
        taken = [walker.time() for walker in walkers]
        for walker, time in zip(walkers, taken, strict=True):
            if walker.part >= 0:
                at[walker.part] = time
        inside = taken[: len(regions)]
        at, rate = _round(profile, at, found, n, idle + sum(inside), last)
        found = [rate * time for time in at]
        for walker in walkers:
            walker.advance(rate)
        if any(walker.growth(rate, n) > MOST_GROWTH for walker in walkers):
            return _by_numbers(profile, jobs, idle, walkers)
        rates[n - 1] = rate
        if n > 1 and abs(rate - last) <= _SETTLED * rate:
            rates[n:] = rate
            break
        last = rate
    return Crowd(rates=rates, regions=tuple(taken[: len(regions)]))


def _round(
    profile: Profile, met: Sequence[float], found: Sequence[float], jobs: int, rest: float, rate: float
) -> tuple[list[float], float]:
    """Return the times at parts, as the rate of so many jobs leaves them, and that rate."""
    for _ in range(profile.states):
        at = [time + more for time, more in zip(met, profile.left(found, rate), strict=True)]
        whole = rest + sum(at)
        rate = profile.below(jobs / whole if whole > 0 else np.inf)
    return at, rate


def _by_numbers(profile: Profile, jobs: int, idle: float, walkers: Sequence[_AtRegion]) -> Crowd:
    """Return what jobs do by the laws of their numbers at one region and elsewhere, each for itself."""
    own = {walker.part for walker in walkers}
    outside, found, rate = np.zeros(jobs), [0.0] * len(profile.parts), 0.0
    for n in range(1, jobs + 1):
        met = [0.0 if k in own else profile.met(number, k) for k, number in enumerate(found)]
        at, rate = _round(profile, met, found, n, idle, rate)
        outside[n - 1] = min(rate, MOST)
        found = [rate * time if time else 0.0 for time in at]
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
    return Crowd(rates=np.minimum(rates, profile.below(float(rates[-1]))), regions=tuple(times))


class _AtRegion:
    """The probabilities of the numbers at a region, and what a job takes that meets them."""

    part = -1

    def __init__(self, region: Region, jobs: int) -> None:
        self.excess, self.rate = region.excess, 0.0
        self.down = region.speeds[np.minimum(np.arange(jobs), region.speeds.size - 1)]
        self.times, self.law = np.arange(1, jobs + 1) / self.down, np.ones(1)
        self.slowness = np.cumsum(np.log(np.maximum(self.down, 1e-300)))

    def growth(self, rate: float, jobs: int) -> float:
        """Return how much more often a number of at most so many jobs than none is there at a rate."""
        # Where others fill all there is, as in a round of a fixed point, there is no law of numbers.
        if rate <= self.down[0] or self.down[0] <= 0:
            return 1.0
        return float(np.exp(np.max(np.arange(1, jobs + 1) * np.log(rate) - self.slowness[:jobs])))

    def corrected(self, time: float, busy: float, rate: float) -> float:
        """Return a time there as the region's own law makes it."""
        return time + busy * self.excess

    def time(self) -> float:
        """Return the time there of a job that goes round with those before."""
        met = float(self.law @ self.times[: self.law.size])
        return self.corrected(met, 1 - float(self.law[0]), self.rate)

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
            more = self.corrected(time, 1 - float(law[0] / law.sum()), rate)
            return n / (n / rate + more - time), more

        some = number[1:]
        if some.size > MOST_NUMBERS:
            some = np.unique(np.geomspace(1, others.size, MOST_NUMBERS).round().astype(np.int64))
        rates = np.interp(number[1:], some, [at(n)[0] for n in some.tolist()])
        return rates, at(others.size)[1]


class _AtStation(_AtRegion):
    """The same at a station of several servers, with its waits over those of M/M/c."""

    def __init__(
        self, part: int, own: float, servers: int, ratio: tuple[FloatArray, FloatArray], jobs: int
    ) -> None:
        super().__init__(Region(speeds=np.arange(1, servers + 1) / own), jobs)
        self.part, self.own, self.ratio = part, own, ratio

    def corrected(self, time: float, busy: float, rate: float) -> float:
        """Return a time there as the station's own law makes it."""
        return self.own + (time - self.own) * float(np.interp(rate, *self.ratio))


def _at_stations(profile: Profile, jobs: int) -> list[_AtStation]:
    return [
        _AtStation(profile.parts.index(part), profile.first[part], servers, profile.wait_ratios[part], jobs)
        for part, servers in profile.servers.items()
    ]
