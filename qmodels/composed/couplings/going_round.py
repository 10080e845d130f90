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
    """

    limit: float
    rates: FloatArray
    times: Mapping[str, FloatArray]
    servers: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def _all(self) -> FloatArray:
        return np.array([row for row in self.times.values()]).reshape(len(self.times), -1)

    @cached_property
    def _waits(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """By station of several servers: its waits over those of M/M/c, and the rates."""
        found = {}
        for part, servers in self.servers.items():
            row = self.times[part]
            load = np.minimum(self.rates[1:] * row[0], servers * (1 - 1e-12))
            plain = mmc(arrival_rate=load / row[0], service_rate=1 / row[0], servers=servers).mean_waiting_time
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
        return Profile(limit=self.limit - others, rates=rates, times=times, servers=self.servers)

    def met(self, found: FloatArray, part: int) -> float:
        """Return the time at a part for a job that finds so many of its kind there."""
        row = self._all[part]
        here = self.rates * row
        if found[part] <= here[-1]:
            return float(np.interp(found[part], here, row))
        # A part that is nearly full serves at its limit.
        slope = 1 / self.limit if np.isfinite(self.limit) else 0.0
        return float(row[-1] + (found[part] - here[-1]) * slope)


def profile_of(
    times_at: Callable[[float], Mapping[str, float]], *, limit: float, most: float, servers: Mapping[str, int]
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
    return Profile(limit=limit, rates=np.array(rates), times=times, servers=kept)


@dataclass(frozen=True, kw_only=True, eq=False)
class Crowd:
    """What jobs do that go round, for 1, 2, ... of them.

    Parameters
    ----------
    rates : array of float
        Rates at which they go round. [1/ns]
    times : array of float
        Time of a round. [ns]
    """

    rates: FloatArray
    times: FloatArray


def going_round(
    profile: Profile, jobs: int, *, idle: float = 0.0, regions: Sequence[FloatArray] = ()
) -> Crowd:
    r"""Return the rates at which jobs go round, for 1 to so many of them.

    Parameters
    ----------
    profile : Profile
        Times at parts by the rate.
    jobs : int
        Jobs, at most.
    idle : float
        Time of a round that depends on nothing. [ns]
    regions : sequence of array
        Of each pool on the way, the rates at which 1, 2, ... jobs there leave it; the last holds for more.

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
    parts = list(profile.times)
    speeds = [(None, np.asarray(region)) for region in regions]
    for part, servers in profile.servers.items():
        row = profile.times[part]
        speeds.append((part, np.arange(1, servers + 1) / row[0]))
    laws = [np.ones(1) for _ in speeds]
    found, rates, times, last = np.zeros(len(parts)), np.zeros(jobs), np.zeros(jobs), 0.0
    for n in range(1, jobs + 1):
        at = np.array([profile.met(found, k) for k in range(len(parts))])
        extra = 0.0
        for (part, speed), law in zip(speeds, laws, strict=True):
            down = speed[np.minimum(np.arange(law.size), speed.size - 1)]
            time = float(law @ (np.arange(1, law.size + 1) / down))
            if part is None:
                extra += time
            else:
                k, (grid, ratio) = parts.index(part), profile._waits[part]
                own = float(profile.times[part][0])
                at[k] = own + (time - own) * float(np.interp(last, grid, ratio))
        round_time = idle + extra + float(at.sum())
        rate = min(n / round_time if round_time > 0 else np.inf, profile.limit)
        found = rate * at
        for k, ((_, speed), law) in enumerate(zip(speeds, laws, strict=True)):
            up = rate / speed[np.minimum(np.arange(law.size), speed.size - 1)] * law
            laws[k] = np.concatenate([[max(1.0 - float(up.sum()), 0.0)], up])
            laws[k] /= laws[k].sum()
        rates[n - 1], times[n - 1] = rate, n / rate if rate > 0 else np.inf
        if n > 1 and abs(rate - last) <= _SETTLED * rate:
            rates[n:] = rate
            times[n:] = np.arange(n + 1, jobs + 1) / rate
            break
        last = rate
    return Crowd(rates=rates, times=times)
