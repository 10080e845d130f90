"""Times of a job at the parts it goes round, by the rate of the jobs: asked as far as is needed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np

from qmodels.checks import FloatArray
from qmodels.queues.markovian.mmc import mmc

_GRID = 1 - np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01, 0.003])
"""Shares of the rate at which the first resource is full for which tables are made."""
_LEFT = np.sort(np.append(_GRID, [0.01, 0.02, 0.035, 0.06]))
"""The same where parts are found as others have left them: that changes most with the first few jobs."""
_FEW = np.array([0.0, 0.3, 0.55, 0.75, 0.9, 0.97])
"""The same where each is dear: the time at a queue is nearly straight in the number that one finds."""
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
    local : mapping of str to int
        Servers of stations of which each job uses the copy at its own place.
    ends : mapping of str to float
        Of stations of one server, the rate at which it is full. [1/ns]
    """

    def __init__(
        self,
        times_at: Times,
        *,
        limit: float,
        rates: FloatArray,
        servers: Mapping[str, int],
        alone_at: Times | None = None,
        local: Mapping[str, int] = MappingProxyType({}),
        ends: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.local, self.ends = local, ends
        self._times_at, self._limit, self._asked = times_at, limit, rates.tolist()
        self._alone_at = alone_at
        self.first = dict(times_at(self._asked[0]))
        # How many of the rates are known to be below the limit, and the last of them below one that counted.
        self._count, self._at = 1, 0
        if not all(time < np.inf for time in self.first.values()):
            self.first, self._alone_at, self._count = {}, None, 0
            self._limit, self._asked = min(limit, self._asked[0]), []
        self.parts = tuple(self.first)
        # By the number of the rate, as far as parts were asked there: times, and those alone.
        self._rows = {0: list(self.first.values())}
        self._lone: dict[int, list[float]] = {}
        self._near: dict[int, int] = {}
        self._traced: set[int] = set()  # parts that others leave traces in
        self._last: tuple[tuple[float, ...], dict[int, float]] = (), {}
        self.servers = {part: count for part, count in servers.items() if self.first.get(part, 0.0) > 0}

    def _row(self, k: int) -> list[float]:
        """Return the times at a rate."""
        if k not in self._rows:
            times = self._times_at(self._asked[k])
            self._rows[k] = [times.get(part, 0.0) for part in self.parts]
        return self._rows[k]

    def _alone(self, k: int) -> list[float]:
        """Return the times at a rate of a job that meets no other."""
        if k not in self._lone:
            alone = self._alone_at(self._asked[k]) if self._alone_at is not None else {}
            self._lone[k] = row = [alone.get(part, 0.0) for part in self.parts]
            self._traced |= {part for part, time in enumerate(row) if time != self._alone(0)[part]}
        return self._lone[k]

    def _know(self, k: int) -> bool:
        """Return whether nothing is full up to a rate: what is not at one is not at those below."""
        last = min(k, len(self._asked) - 1)
        if last >= self._count:
            if not self._is_free(last):
                # Full earlier than a straight line says.
                full, last = last, self._count - 1
                while full - last > 1:
                    middle = (full + last) // 2
                    full, last = (full, middle) if self._is_free(middle) else (middle, last)
                self._limit, self._asked = min(self._limit, self._asked[full]), self._asked[:full]
            self._count = last + 1
        return k < self._count

    def _is_free(self, k: int) -> bool:
        return all(time < np.inf for time in self._row(k))

    def _reach(self, rate: float) -> None:
        """Know as far as a rate."""
        if self._count and rate > self._asked[self._count - 1]:
            self._know(bisect_left(self._asked, rate))

    def _number(self, k: int, part: int) -> float:
        return self._asked[k] * self._row(k)[part]

    def _below(self, found: float, part: int) -> int:
        """Return the last rate at which no more than so many are at a part; numbers ascend with it."""
        if found <= 0:
            return 0
        k = min(self._near.get(part, self._at), self._count - 1)
        while k > 0 and self._number(k, part) > found:
            k -= 1
        while k + 1 < self._count and self._number(k + 1, part) <= found:
            k += 1
        self._near[part] = k
        return k

    def _at_rate(self, rate: float) -> list[float]:
        """Interpolate between the rows of two rates; beyond the last one that is known its row."""
        k = bisect_right(self._asked, rate, 0, self._count)
        if k == 0 or k == self._count:
            return self._row(k - 1 if k else 0)
        step, width = rate - self._asked[k - 1], self._asked[k] - self._asked[k - 1]
        return [(b - a) / width * step + a for a, b in zip(self._row(k - 1), self._row(k), strict=True)]

    @property
    def limit(self) -> float:
        """Rate at which the first resource is full. [1/ns]."""
        self._reach(np.inf)
        return self._limit

    @property
    def rates(self) -> FloatArray:
        """All rates at which nothing is full."""
        self._reach(np.inf)
        return np.array(self._asked)

    def times_near(self, rate: float) -> dict[str, float]:
        """Return the mean time of a job at each part at a rate, the last known one's beyond. [ns]."""
        self._reach(rate)
        return dict(zip(self.parts, self._at_rate(rate), strict=True))

    @property
    def times(self) -> dict[str, FloatArray]:
        """Mean time of a job at each part at these rates. [ns]."""
        rows = [self._row(k) for k in range(self.rates.size)]
        return {part: np.array([row[k] for row in rows]) for k, part in enumerate(self.parts)}

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
        return float(sum(self._at_rate(rate)))

    def rate_of(self, total: float) -> float:
        """Return the rate at which all parts together take so long, the last one if they never do."""
        if not self._count or sum(self._row(0)) >= total:
            return 0.0
        while sum(self._row(self._count - 1)) < total:
            if not self._know(self._count):
                return float(self._asked[-1])
        k = bisect_left(range(self._count), total, key=lambda k: sum(self._row(k)))
        known = [sum(self._row(k - 1)), sum(self._row(k))]
        return float(np.interp(total, known, self._asked[k - 1 : k + 1]))

    def below(self, rate: float) -> float:
        """Return a rate, or that at which the first resource is full."""
        self._reach(rate)
        self._at = max(bisect_right(self._asked, rate, 0, self._count) - 1, 0)
        return min(rate, self._limit)

    def after(self, others: float, copies: int) -> Profile:
        """Return the times by the rate of the jobs of one place of several, besides that of the others.

        At stations of their own place they meet none of the others.
        """
        if others <= 0:
            return self
        known, times, limit = self.rates, self.times, self.limit
        whole = float(known[-1]) if np.isinf(limit) else limit
        apart = all(part in self.local for part, row in times.items() if row.any())
        end = whole / copies if apart else whole - others
        rates = np.maximum(end, 1e-300) * (_GRID if self._alone_at is None else _LEFT)

        def times_at(rate: float) -> dict[str, float]:
            met = {part: copies * rate if part in self.local else others + rate for part in times}
            return {part: float(np.interp(met[part], known, row)) for part, row in times.items()}

        alone_at = self._alone_at
        return Profile(
            times_at,
            limit=end if np.isfinite(limit) else limit,
            rates=rates,
            servers={**self.servers, **{part: count for part, count in self.local.items() if count > 1}},
            alone_at=None if alone_at is None else lambda rate: alone_at(others + rate),
        )

    def met(self, found: float, part: int) -> float:
        """Return the time at a part for a job that finds so many of its kind there."""
        while found > self._number(self._count - 1, part) and self._know(self._count):
            pass
        k = self._below(found, part)
        # Beyond the last of them along the line to it.
        other = k + 1 if k + 1 < self._count else k - 1
        time = self._row(k)[part]
        here = self._asked[k] * time
        if found <= here or other < 0:
            return time
        width = self._number(other, part) - here
        # Where a part takes nothing but rounding errors numbers need not ascend.
        if width * (other - k) <= 0:
            return time
        return (self._row(other)[part] - time) / width * (found - here) + time

    def slope(self, found: float, part: int) -> float:
        """Slope of the number at a part by the rate, where so many are there. [ns]."""
        while (found > self._number(self._count - 1, part) or self._count < 2) and self._know(self._count):
            pass
        numbers = np.array([self._number(k, part) for k in range(self._count)])
        # Where there are none, what one takes alone.
        slopes = np.diff(numbers) / np.diff(self._asked[: self._count])
        middle = np.append(0.0, (numbers[1:] + numbers[:-1]) / 2)
        return float(np.interp(found, middle, np.append(self._row(0)[part], slopes)))

    @property
    def states(self) -> int:
        """Rounds in which a rate and the state that it leaves parts in are found."""
        return 1 if self._alone_at is None else _STATES

    def left(self, found: Sequence[float], rate: float) -> list[float]:
        """Excess of times at parts in their state at a rate over those in their state with so many."""
        if self._alone_at is None:
            return [0.0] * len(found)
        self._reach(rate)
        more = [0.0] * len(found)
        if not more:
            return more
        self._alone_at_rate(rate, 0)  # which tells what is traced
        state = self._count, len(self._traced), *found
        if self._last[0] != state:
            traced = (part for part in range(len(found)) if part in self._traced)
            self._last = state, {part: self._alone_with(found[part], part) for part in traced}
        for part, then in self._last[1].items():
            more[part] = self._alone_at_rate(rate, part) - then
        return more

    def _alone_with(self, found: float, part: int) -> float:
        """Return the time alone at a part in its state with so many."""
        k = self._below(found, part)
        here, rate = self._number(k, part), self._asked[k]
        if here < found and k + 1 < self._count:
            width = self._number(k + 1, part) - here
            rate = (self._asked[k + 1] - rate) / width * (found - here) + rate
        return self._alone_at_rate(rate, part)

    def _alone_at_rate(self, rate: float, part: int) -> float:
        """Return the time alone at a part in its state at a rate."""
        k = bisect_right(self._asked, rate, 0, self._count)
        before = self._alone(k - 1 if k else 0)[part]
        if k == 0 or k == self._count:
            return before
        step, width = rate - self._asked[k - 1], self._asked[k] - self._asked[k - 1]
        return (self._alone(k)[part] - before) / width * step + before


def profile_of(
    times_at: Times,
    *,
    limit: float,
    most: float,
    servers: Mapping[str, int],
    alone_at: Times | None = None,
    local: Mapping[str, int] = MappingProxyType({}),
    ends: Mapping[str, float] = MappingProxyType({}),
    dear: bool = False,
) -> Profile:
    """Return the times at parts, from what they are at a rate.

    ``most``: rate up to which parts are asked if none is ever full; ``dear``: ask as seldom as can be.
    """
    shares = _FEW if dear else _GRID if alone_at is None else _LEFT
    rates = limit * shares if np.isfinite(limit) else most * np.linspace(0.0, 1.0, 4)
    return Profile(
        times_at, limit=limit, rates=rates, servers=servers, alone_at=alone_at, local=local, ends=ends
    )
