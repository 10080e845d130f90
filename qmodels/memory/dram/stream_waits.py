"""Waits of streams and traces when the oldest access goes first whose command may be given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.memory.dram.channel_visits import channel_visits
from qmodels.memory.dram.recursions.order import numbers, serve_in_order
from qmodels.memory.dram.sequence_waits import Paths, Runs, runs_of
from qmodels.systems.memory.dram_system import DramSystem

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
