"""Waits of streams and traces when the oldest access goes first whose command may be given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.memory.dram.channel_visits import channel_visits
from qmodels.memory.dram.command_times import numbers, serve_in_order
from qmodels.systems.memory.dram_system import DramSystem

STARTS = 512
"""Places of the sequence that runs start from."""
LONGEST = 256
"""Accesses of a run; longer ones continue at the mean pace."""
DENSE = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    r"""Runs of accesses that share a resource, by the number of accesses before the last one."""

    index: IntArray  # the accesses of each run
    # number, weight: accesses :math:`n` before the last one that are looked at, and the weight of each in
    # sums over :math:`1/n`.
    number: FloatArray
    weight: FloatArray
    ahead: FloatArray  # accesses of the whole system from the first of the run to the last
    share: float = 1.0  # share of the accesses that are in such runs

    def of(self, values: Any) -> FloatArray:
        """Return values of all accesses of the runs at the numbers, those of long runs at the mean pace."""
        length = self.index.shape[1] - 1
        short = self.number[self.number <= length].astype(int)
        values = np.asarray(values, dtype=float)
        known = values[:, short]
        pace = float((values[:, -1] - values[:, length // 2]).mean()) / (length - length // 2)
        beyond = self.number[short.size :] - length
        return np.hstack([known, known[:, -1:] + pace * beyond])

    def paths(self, time: FloatArray) -> Paths:
        """Return the paths of the runs, each once, with how many are alike."""
        rows, count = np.unique(np.hstack([self.ahead, np.maximum(time, 0.0)]), axis=0, return_counts=True)
        ahead, time = np.split(rows, 2, axis=1)
        share = self.share * count / count.sum()
        return Paths(weight=self.weight, ahead=ahead, time=time, share=share)


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    r"""Times of the paths that end at an access, for the waits that they make.

    An access waits for the longest of the paths that end at it, :math:`W = \max_n (T_n - A_n)^+`, with
    :math:`T_n` the time of a path of :math:`n` before it and :math:`A_n` the time in which they came, here
    of Erlang's law. By Spitzer's identity

    .. math:: E[W] = \sum_{n \ge 1} \frac{E[(T_n - A_n)^+]}{n},

    exact where the steps are independent; taken here as the mean over the places of the sequence.
    """

    weight: FloatArray  # of each number of accesses in sums over one by that number
    # ahead, time: accesses of the whole system from the first of a path to its last, and the time from the
    # arrival of the first until the last could be served, less what that takes alone, if all arrive together.
    ahead: FloatArray
    time: FloatArray
    share: FloatArray  # share of the accesses of each kind

    def waiting_time(self, rate: float) -> float:
        """Return the mean wait at a rate of the whole system. [cycles]."""
        from scipy.special import gammainc, gammaln

        if rate <= 0:
            return 0.0
        x, n = rate * self.time, self.ahead
        # E[(x - A)^+] by x P(n, x) - n P(n + 1, x), the latter by its recurrence.
        term = np.exp(n * np.log(np.maximum(x, 1e-300)) - x - gammaln(n + 1))
        more = np.maximum((x - n) * gammainc(n, x) + n * term, 0.0)
        return float(self.share @ (more @ self.weight)) / rate


def runs_of(chain: IntArray, key: IntArray, position: IntArray) -> Runs | None:
    """Return runs of a chain of accesses within each of which the key does not change.

    ``chain``: numbers of accesses, those of one key together and in their order; ``key``, ``position``: of
    each access of the chain: what it shares with others, and its number among all accesses.
    """
    length = LONGEST
    while length >= 4:
        ends = np.arange(length, chain.size)
        valid = ends[key[ends] == key[ends - length]] - length
        if 2 * valid.size >= chain.size - length * (key[-1] != key[0]) and valid.size:
            break
        length //= 2
    else:
        return None
    # At irregular places, that no period of the sequence may be hit alone.
    picked = (np.arange(STARTS) + np.arange(STARTS) * 0.618034 % 1) * valid.size / STARTS
    starts = valid[picked.astype(np.int64) % valid.size]
    place = starts[:, None] + np.arange(length + 1)
    grown = np.geomspace(DENSE + 1, max(length, DENSE + 1), 20).astype(int)
    grown = grown[grown <= length]
    short = np.unique(np.append(np.arange(1, min(DENSE, length) + 1), grown)).astype(int)
    number = np.append(short.astype(float), np.geomspace(length * 1.3, length * 400, 14))
    came = (position[place] - position[starts][:, None]).astype(float)
    runs = Runs(index=chain[place], number=number, weight=_weights(number), ahead=came[:, :1])
    ahead = np.maximum(runs.of(came), 1e-9)
    return Runs(index=chain[place], number=number, weight=runs.weight, ahead=ahead)


def _weights(number: FloatArray) -> FloatArray:
    """Return weights that sum a function over all whole numbers from its values at some, divided by each."""
    # Between two numbers the function is taken to be linear: the trapezoidal rule, ends once.
    step = np.diff(number)
    weight = np.zeros(number.size)
    weight[0] = 1.0
    weight[:-1] += (step - 1) / 2
    weight[1:] += (step + 1) / 2
    return np.asarray(weight / number)


CHECKED = 2048
"""Accesses whose banks are looked at for conflicts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shared:
    """Paths of accesses at a resource they share, and at the narrower ones that they share too."""

    there: Paths
    within: Paths | None

    def waiting_time(self, rate: float) -> float:
        """Wait that the resource adds, at a rate of the whole system. [cycles]."""
        less = self.within.waiting_time(rate) if self.within is not None else 0.0
        return max(self.there.waiting_time(rate) - less, 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamTimes:
    r"""Use of a channel's resources by a known sequence."""

    resources: dict[str, Shared]  # bus, bank group, row commands and bank, as far as the sequence uses them
    # ahead, after: of accesses: those of the whole system since the one before to its bank, and for how long
    # that one keeps it from when it need no longer wait.
    ahead: FloatArray
    after: FloatArray
    always: float  # share of the accesses that find their bank open at another row, whatever the load
    part: float  # share of the accesses of the system that the channel gets
    bank_time: float  # time of the busiest bank per access of the channel [cycles]
    row_hit_ratio: float  # accesses whose row is open

    def waiting_time(self, name: str, rate: Any) -> FloatArray:
        """Wait that a resource adds, at a rate of the channel. [cycles]."""
        shared = self.resources.get(name)
        if shared is None:
            return np.zeros(np.shape(rate))
        return np.reshape([shared.waiting_time(x / self.part) for x in np.ravel(rate)], np.shape(rate))

    def conflict_probability(self, rate: Any, wait: Any, busy: Any) -> FloatArray:
        r"""Return the share of the accesses that find their bank busy, at a rate of the channel.

        Notes
        -----
        That is where the access before to the bank keeps it for :math:`T` from when it need no longer
        wait, and comes a time :math:`A` earlier, of Erlang's law: :math:`P(W + T > A)`. Its wait
        :math:`W` is taken to be exponential where there is one, which is as often as the memory is ``busy``.
        """
        if self.after.size == 0:
            return np.full(np.shape(rate), self.always)
        found = [self._late(*point) for point in np.nditer(np.broadcast_arrays(rate, wait, busy))]
        return self.always + (1 - self.always) * np.reshape(found, np.shape(rate))

    def _late(self, rate: Any, wait: Any, busy: Any) -> float:
        from scipy.special import gammainc, gammaincc

        if rate <= 0:
            return 0.0
        arrivals, ahead = float(rate) / self.part, self.ahead
        at_once = gammainc(ahead, arrivals * self.after)
        if wait <= 0 or busy <= 0:
            return float(at_once.mean())
        ends = float(busy) / float(wait)
        both = arrivals + ends
        # The exponent is at most 0 where the rest of Erlang's law matters.
        rest = np.log(gammaincc(ahead, both * self.after) + 1e-300)
        log = ends * self.after + ahead * np.log(arrivals / both) + rest
        return float(np.minimum(at_once + float(busy) * np.exp(np.minimum(log, 0.0)), 1.0).mean())


def stream_times(spec: DramSystem, channel: int) -> StreamTimes:
    """Use of a channel by a sequence, which is followed once for all loads."""
    unloaded = replace(spec, controller_cycles=0, traffic=replace(spec.traffic, arrival_rate=1.0))
    return _stream_times(unloaded, channel)


@lru_cache(maxsize=256)
def _stream_times(spec: DramSystem, channel: int) -> StreamTimes:
    visits = channel_visits(spec, channel, np.random.default_rng(1))
    t, g, timing = spec.timing, spec.geometry, numbers(spec)
    closed = spec.page_policy == "closed"
    every = np.arange(visits.bank.size)
    opens = np.ones(every.size, dtype=bool) if closed else ~np.asarray(visits.hit)
    group = visits.bank // g.banks
    rank = visits.bank // g.rank_banks
    opening = np.where(opens, t.t_rcd + (0 if closed else t.t_rp), 0)

    def serve(index: IntArray, run: IntArray) -> Any:
        return serve_in_order(
            timing, run, 0 * index, visits.bank[index], visits.rows(run, index), visits.write[index]
        )

    def chained(key: IntArray, of: IntArray) -> Runs | None:
        order = of[np.argsort(key[of], kind="stable")]
        found = runs_of(order, key[order], visits.position[order]) if order.size > 8 else None
        return found and replace(found, share=of.size / every.size)

    resources = {}
    runs = chained(0 * every, every)
    if runs is not None:
        resources["bus"] = Shared(there=runs.paths(runs.number * t.burst + 0 * runs.ahead), within=None)
    runs = chained(group, every)
    if runs is not None and t.t_ccd_l > t.burst:
        steps = runs.number + 0 * runs.ahead
        resources["group"] = Shared(there=runs.paths(steps * t.t_ccd_l), within=runs.paths(steps * t.burst))
    rows = np.flatnonzero(opens)
    runs = chained(rank, rows)
    if runs is not None and t.row_gap > t.burst:
        steps = runs.number + 0 * runs.ahead
        apart = np.maximum(steps * max(t.t_rrd_s, t.burst), steps // 4 * t.t_faw)
        narrow = runs.paths(steps * t.burst)
        resources["few rows"] = Shared(there=runs.paths(apart), within=narrow)
        resources["many rows"] = Shared(there=runs.paths(steps * t.row_gap), within=narrow)
    order = np.argsort(visits.bank, kind="stable")
    column, _ = serve(order, visits.bank[order])
    last = np.flatnonzero(np.diff(visits.bank[order], append=-1))
    counts = np.diff(last, prepend=-1)
    demand = column[last] * counts / np.maximum(counts - 1, 1)
    previous, here = order[:-1], order[1:]
    same = visits.bank[previous] == visits.bank[here]
    previous, here = previous[same], here[same]
    # A row hit finds its bank busy only while the one before it waits for its column command.
    kept = np.where(visits.write[previous] == 1, t.write_cycle, t.read_cycle)
    after = np.where(opens[here], kept, opening[previous]).astype(float)
    ahead = np.maximum(visits.position[here] - visits.position[previous], 1).astype(float)
    pick = np.linspace(0, here.size - 1, min(here.size, CHECKED)).astype(int) if here.size else here
    ahead, after = ahead[pick], after[pick]
    result = StreamTimes(
        resources=resources,
        ahead=ahead,
        after=after,
        always=0.0 if closed else float(opens.mean()),
        part=visits.position.size / (visits.position[-1] + 1),
        bank_time=max(float(demand.max()) / every.size, t.burst * counts.max() / every.size),
        row_hit_ratio=1 - float(opens.mean()),
    )
    runs = chained(visits.bank, every)
    if runs is None:
        return result
    shape = runs.index.shape
    done = serve(runs.index.ravel(), np.repeat(np.arange(shape[0]), shape[1]))[0].reshape(shape)
    step = np.where(opens, max(t.row_gap, t.t_ccd_l), t.t_ccd_l)[runs.index]
    within = np.cumsum(step, axis=1) - step[:, :1]
    time = done - opening[runs.index]
    resources["bank"] = Shared(
        there=runs.paths(runs.of(time)), within=runs.paths(np.minimum(runs.of(within), runs.of(time)))
    )
    return result
