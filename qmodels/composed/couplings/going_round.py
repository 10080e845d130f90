"""Jobs of a limited number and the parts they go round: what each meets when there are few of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from qmodels.checks import FloatArray
from qmodels.queues.markovian.mmc import mmc

_GRID = 1 - np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01, 0.003])
"""Shares of the rate at which the first resource is full for which tables are made."""
_SETTLED = 1e-13
_STATES = 4
"""Rounds in which the rate and the state that it leaves parts in are found."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """Times that a job spends at parts, by the rate of the jobs.

    Parameters
    ----------
    limit : float
        Rate at which the first resource is full, ``inf`` if none ever is. [1/ns]
    rates : array of float
        Rates below it, ascending from 0. [1/ns]
    times : mapping of str to array of float
        Mean time of a job at each part at these rates. [ns]
    servers : mapping of str to int
        Stations of several servers that no other jobs come to.
    alone : mapping of str to array of float
        Mean times of a job that meets no other, of parts where these depend on the rates. [ns]
    """

    limit: float
    rates: FloatArray
    times: Mapping[str, FloatArray]
    servers: Mapping[str, int] = field(default_factory=dict)
    alone: Mapping[str, FloatArray] = field(default_factory=dict)

    @cached_property
    def _all(self) -> FloatArray:
        return np.array([row for row in self.times.values()]).reshape(len(self.times), -1)

    @cached_property
    def wait_ratios(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """By station of several servers: rates, and its waits over those of M/M/c at these."""
        found = {}
        for part, servers in self.servers.items():
            row = self.times[part]
            if row.size < 2:
                found[part] = (np.zeros(1), np.ones(1))
                continue
            load = np.minimum(self.rates[1:] * row[0], servers * (1 - 1e-12))
            plain = mmc(
                arrival_rate=load / row[0], service_rate=1 / row[0], servers=servers
            ).mean_waiting_time
            ratio = np.divide(row[1:] - row[0], plain, out=np.ones(load.size), where=plain > 1e-9 * row[0])
            found[part] = (self.rates[1:], ratio)
        return found

    def total(self, rate: float) -> float:
        """Return the time at all parts at a rate."""
        if rate >= self.limit:
            return float("inf")
        return float(sum(np.interp(rate, self.rates, row) for row in self._all))

    def after(self, others: float) -> Profile:
        """Return the times by the rate of some jobs, besides that of others."""
        if others <= 0:
            return self
        end = min(self.limit, float(self.rates[-1]) if np.isinf(self.limit) else self.limit) - others
        rates = np.maximum(end, 1e-300) * _GRID
        times = {part: np.interp(others + rates, self.rates, row) for part, row in self.times.items()}
        alone = {part: np.interp(others + rates, self.rates, row) for part, row in self.alone.items()}
        return Profile(limit=self.limit - others, rates=rates, times=times, servers=self.servers, alone=alone)

    def met(self, found: FloatArray, part: int) -> float:
        """Return the time at a part for a job that finds so many of its kind there."""
        row = self._all[part]
        here = self.rates * row
        if found[part] <= here[-1]:
            return float(np.interp(found[part], here, row))
        slope = (row[-1] - row[-2]) / (here[-1] - here[-2]) if here.size > 1 and here[-1] > here[-2] else 0.0
        return float(row[-1] + (found[part] - here[-1]) * slope)

    def left(self, found: FloatArray, rate: float) -> FloatArray:
        """Return how much longer a job takes at parts as they are at a rate than as they are with so many."""
        shift = np.zeros(found.size)
        for part, row in self.alone.items():
            k = list(self.times).index(part)
            here = float(np.interp(found[k], self.rates * self.times[part], self.rates))
            shift[k] = np.interp(rate, self.rates, row) - np.interp(here, self.rates, row)
        return shift


def profile_of(
    times_at: Callable[[float], Mapping[str, float]],
    *,
    limit: float,
    most: float,
    servers: Mapping[str, int],
    alone_at: Callable[[float], Mapping[str, float]] | None = None,
) -> Profile:
    """Return the times at parts, from what they are at a rate.

    Parameters
    ----------
    times_at : callable
        Mean times of a job by part at a rate.
    limit : float
        Rate at which the first resource is full, ``inf`` if none ever is.
    most : float
        Rate up to which it is asked in that case.
    servers : mapping of str to int
        As in `Profile`.
    alone_at : callable, optional
        Mean times of a job that meets no other.
    """
    rates: list[float] = []
    rows: list[Mapping[str, float]] = []
    for rate in (limit * _GRID) if np.isfinite(limit) else most * np.linspace(0.0, 1.0, 4):
        row = times_at(float(rate))
        if not np.isfinite(list(row.values())).all():
            limit = min(limit, float(rate))  # Full earlier than a straight line says.
            break
        rates.append(float(rate))
        rows.append(row)
    times = {part: np.array([row.get(part, 0.0) for row in rows]) for part in (rows[0] if rows else ())}
    kept = {part: count for part, count in servers.items() if part in times and times[part][0] > 0}
    alone: dict[str, FloatArray] = {}
    if alone_at is not None:
        lone = [alone_at(rate) for rate in rates]
        alone = {part: np.array([row.get(part, 0.0) for row in lone]) for part in times}
        alone = {part: row for part, row in alone.items() if np.ptp(row) > 1e-9 * abs(row[0])}
    return Profile(limit=limit, rates=np.array(rates), times=times, servers=kept, alone=alone)


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

    References
    ----------
    .. [1] M. Reiser, S. S. Lavenberg, "Mean-value analysis of closed multichain queuing networks", J. ACM 27,
       1980.
    .. [2] M. Reiser, "Mean-value analysis and convolution method for queue-dependent servers in closed
       queueing networks", Performance Evaluation 1, 1981.
    """
    walkers = [*(_AtRegion(region) for region in regions), *_at_stations(profile)]
    rates, found, last = np.zeros(jobs), np.zeros(len(profile.times)), 0.0
    taken: list[float] = []
    for n in range(1, jobs + 1):
        at = np.array([profile.met(found, k) for k in range(found.size)])
        taken = [walker.time(last) for walker in walkers]
        for walker, time in zip(walkers, taken, strict=True):
            if walker.part >= 0:
                at[walker.part] = time
        inside, met = taken[: len(regions)], at
        rate = last
        for _ in range(_STATES if profile.alone else 1):
            at = met + profile.left(found, rate)
            whole = idle + sum(inside) + float(at.sum())
            rate = min(n / whole if whole > 0 else np.inf, profile.limit)
        found = rate * at
        for walker in walkers:
            walker.advance(rate)
        rates[n - 1] = rate
        if n > 1 and abs(rate - last) <= _SETTLED * rate:
            rates[n:] = rate
            break
        last = rate
    return Crowd(rates=rates, regions=tuple(taken[: len(regions)]))


class _AtRegion:
    """The probabilities of the numbers at a region, and what a job takes that meets them."""

    part = -1

    def __init__(self, region: Region) -> None:
        self.speeds, self.excess, self.law = region.speeds, region.excess, np.ones(1)

    def time(self, rate: float) -> float:
        """Return the time there of a job that goes round with those before."""
        down = self.speeds[np.minimum(np.arange(self.law.size), self.speeds.size - 1)]
        met = float(self.law @ (np.arange(1, self.law.size + 1) / down))
        return met + (1 - float(self.law[0])) * self.excess

    def advance(self, rate: float) -> None:
        """Let there be one job more, which go round at a rate."""
        up = rate / self.speeds[np.minimum(np.arange(self.law.size), self.speeds.size - 1)] * self.law
        self.law = np.concatenate([[max(1.0 - float(up.sum()), 0.0)], up])
        self.law /= self.law.sum()


class _AtStation(_AtRegion):
    """The same at a station of several servers, with its waits over those of M/M/c."""

    def __init__(self, part: int, own: float, servers: int, ratio: tuple[FloatArray, FloatArray]) -> None:
        super().__init__(Region(speeds=np.arange(1, servers + 1) / own))
        self.part, self.own, self.ratio = part, own, ratio

    def time(self, rate: float) -> float:
        """Return the time there of a job that goes round with those before."""
        return self.own + (super().time(rate) - self.own) * float(np.interp(rate, *self.ratio))


def _at_stations(profile: Profile) -> list[_AtStation]:
    names = list(profile.times)
    return [
        _AtStation(names.index(part), float(profile.times[part][0]), servers, profile.wait_ratios[part])
        for part, servers in profile.servers.items()
    ]
