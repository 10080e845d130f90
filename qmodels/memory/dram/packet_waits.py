"""Waits of packets when the oldest access goes first whose command may be given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.memory.dram.channel_visits import Visits, channel_visits
from qmodels.memory.dram.command_times import numbers, serve_ready_first
from qmodels.systems.memory.dram_system import DramSystem, Packets, RandomBlocks

Serve = Callable[[Visits, IntArray, IntArray, IntArray], Any]
"""Of accesses of visits by their numbers, their runs and arrivals: when each is served, and whether its
bank was busy."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MetVisits:
    """Delays and conflicts of pairs of visits, integrated over the time between the two."""

    access: IntArray  # the accesses of all pairs, by their numbers
    # delay, conflict: delay and conflicts of each, such that their sums are those of a pair, mean [cycles^2,
    # cycles].
    delay: FloatArray
    conflict: FloatArray


def pair_slopes(
    spec: DramSystem, visits: Visits, serve: Serve, alone: IntArray, busy: Any, rng: np.random.Generator
) -> tuple[float, float]:
    r"""Slopes of the delays and conflicts of an access in the rate of visits, at low load.

    ``visits``: what the channel is asked for; ``alone``, ``busy``: what it makes of each visit in an idle
    system; ``rng``: times between the visits, one from each of as many parts of the time in which they can
    meet.

    To first order in the rate :math:`\nu` of Poisson visits only pairs meet. If :math:`\Delta(t)` is the
    sum of what two visits :math:`t` apart add to the delays of their accesses, :math:`k` in each, the mean
    delay of an access grows by :math:`\nu \int_0^\infty E[\Delta(t)]\,dt / k` (here without :math:`\nu`).
    """
    met = met_visits(spec, visits, serve, alone, busy, rng)
    return float(met.delay.sum() / visits.size), float(met.conflict.sum() / visits.size)


def met_visits(
    spec: DramSystem, visits: Visits, serve: Serve, alone: IntArray, busy: Any, rng: np.random.Generator
) -> MetVisits:
    """Delays and conflicts that pairs of visits add to each of their accesses; see `pair_slopes`.

    Packets and random accesses meet two by two, the first with the second, the third with the fourth; of
    others each meets the next. Arrivals are rounded down to whole cycles at a random phase, so that their
    mean distance is kept.
    """
    t, random = spec.timing, isinstance(spec.traffic, Packets | RandomBlocks)
    begin = np.flatnonzero(np.diff(visits.visit, prepend=-1))
    sizes = np.diff(begin, append=visits.visit.size)
    first = np.arange(0, visits.count - 1, 2 if random else 1)
    second = first + 1
    strata = rng.permutation(first.size)
    if isinstance(spec.traffic, RandomBlocks):
        # Every distance of the two banks equally often, and at all times.
        bank = visits.bank.copy()
        bank[second] = (bank[first] + first // 2) % spec.geometry.channel_banks
        visits = replace(visits, bank=bank)
        strata = np.arange(first.size)
    horizon = max(t.read_cycle, t.write_cycle if spec.traffic.write_fraction else 0, t.t_faw)
    longest = np.maximum.reduceat(alone, begin)[first] + horizon
    apart = (strata + rng.random(first.size)) / first.size * longest
    shift = np.floor(rng.random(first.size) + apart).astype(np.int64)
    chosen = np.column_stack([first, second]).ravel()
    ends = np.cumsum(sizes[chosen])
    index = np.arange(ends[-1]) - np.repeat(ends - sizes[chosen] - begin[chosen], sizes[chosen])
    run = np.repeat(np.arange(first.size), sizes[first] + sizes[second])
    later = visits.visit[index] == second[run]
    arrival = visits.offset[index] + np.where(later, shift[run], 0)
    if visits.offset.any():
        order = np.lexsort((later, arrival, run))
        index, run, arrival = index[order], run[order], arrival[order]
    column, found = serve(visits, index, run, arrival)
    weight = longest[run] / first.size
    delay = column - arrival - (alone[index] - visits.offset[index])
    return MetVisits(
        access=index, delay=weight * delay, conflict=weight * (found.astype(float) - busy[index])
    )


Moments = tuple[float, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class PacketTimes:
    """Use of a channel's resources by packets of ``size`` accesses each."""

    size: float  # accesses of a packet at the channel, mean of those that use it
    # Mean delay of an access in an idle system but for opening its row: by those of its packet [cycles]. This
    # and the next three are arrays where accesses of several kinds meet these packets.
    alone: Any
    delay: Any  # what an access is delayed by others per packet and cycle at low load [cycles^2]
    # conflict_alone, conflict: accesses that find their bank busy in an idle system, and what a packet per
    # cycle adds to it at low load.
    conflict_alone: Any
    conflict: Any
    # bus, row_commands: mean and second moment of the accesses, and of the row commands in a rank, of a
    # packet.
    bus: Moments
    row_commands: Moments
    bank: Moments  # mean and second moment of the time that a packet keeps a bank [cycles]
    banks: float  # banks of the channel that a packet uses, mean
    spread: bool  # whether the accesses of a packet arrive one after the other
    # Where packets of several kinds come together: of each kind that is read its share of those that are, its
    # size and ``alone``; and the last two of packets that are written.
    directions: tuple[tuple[tuple[float, float, float], ...], tuple[float, float]] | None = None
    # refreshed, anywhere: share of the accesses whose row only a refresh closed, and that of those whose
    # packet begins at any bank.
    refreshed: float = 0.0
    anywhere: float = 1.0
    # When the accesses of a packet alone get their bus, mean and last, from its arrival, the rows opened
    # [cycles].
    columns: tuple[float, float] = (0.0, 0.0)

    @property
    def bank_time(self) -> float:
        """Time that an access keeps its bank, mean. [cycles]."""
        return self.bank[0] * self.banks / self.size


def packet_times(spec: DramSystem) -> PacketTimes:
    """Use of a channel by packets; their sequence is followed once for all loads."""
    return _packet_times(replace(spec, controller_cycles=0, traffic=replace(spec.traffic, arrival_rate=1.0)))


@lru_cache(maxsize=256)
def _packet_times(spec: DramSystem) -> PacketTimes:
    rng = np.random.default_rng(1)
    visits = channel_visits(spec, 0, rng)
    t, g = spec.timing, spec.geometry

    def serve(which: Visits, index: IntArray, run: IntArray, arrival: IntArray) -> Any:
        rows = which.rows(run, index)
        return _served(spec, run, arrival, which.bank[index], rows, which.write[index])

    every = np.arange(visits.visit.size)
    column, busy = serve(visits, every, visits.visit, visits.offset)
    delay, conflict = pair_slopes(spec, visits, serve, column, busy, rng)
    order = np.lexsort((visits.bank, visits.visit))
    row, write = visits.rows(visits.visit, every)[order], visits.write[order]
    other = np.append(True, (np.diff(visits.visit[order]) != 0) | (np.diff(visits.bank[order]) != 0))
    opens = other | np.append(True, np.diff(row) != 0) | (spec.page_policy == "closed")
    first = np.flatnonzero(opens)
    hits = np.diff(first, append=order.size) - 1
    last = np.where(write[first] == 1, t.cwl + t.burst + t.t_wr, t.t_rtp)
    kept = np.maximum(t.t_rc, t.t_rcd + hits * t.t_ccd_l + last + t.t_rp)
    kept = np.bincount(np.cumsum(other[first]) - 1, weights=kept)
    rows = np.zeros((visits.count, g.ranks))
    np.add.at(rows, (visits.visit[order], visits.bank[order] // g.rank_banks), opens)
    opening = (t.t_rcd + (0 if spec.page_policy == "closed" else t.t_rp)) * float(opens.mean())
    return PacketTimes(
        size=visits.size,
        alone=float(np.mean(column - visits.offset)) - opening,
        delay=delay,
        conflict_alone=float(busy.mean()),
        conflict=conflict,
        bus=_moments(np.bincount(visits.visit).astype(float)),
        row_commands=_moments(rows),
        bank=_moments(kept),
        banks=kept.size / visits.count,
        spread=bool(visits.offset.any()),
        columns=_columns(visits, column),
    )


@lru_cache(maxsize=256)
def times_with_open_rows(spec: DramSystem) -> tuple[float, Moments]:
    """Return ``alone`` and ``columns`` of packets that find open the first row they need of each bank."""
    visits = channel_visits(spec, 0, np.random.default_rng(1))
    t, order = spec.timing, np.lexsort((visits.bank, visits.visit))
    assert visits.row is not None
    bank = np.append(True, (np.diff(visits.visit[order]) != 0) | (np.diff(visits.bank[order]) != 0))
    row = visits.row[order]
    later = row - row[np.maximum.accumulate(np.where(bank, np.arange(bank.size), 0))]
    rows = np.empty_like(row)
    rows[order] = later
    column, _ = _served(spec, visits.visit, visits.offset, visits.bank, rows, visits.write)
    opens = ~bank & np.append(False, np.diff(row) != 0)
    alone = float(np.mean(column - visits.offset)) - (t.t_rcd + t.t_rp) * float(opens.mean())
    return alone, _columns(visits, column)


def _served(
    spec: DramSystem, run: IntArray, arrival: IntArray, bank: IntArray, row: IntArray, write: IntArray
) -> Any:
    """Return when each access of runs is served, and whether its bank was busy."""
    passing = spec.row_hit_cap if spec.scheduler == "fr-fcfs" else 0
    return serve_ready_first(numbers(spec), passing, run, arrival, bank, row, write)


def _columns(visits: Visits, column: IntArray) -> Moments:
    """Return when the accesses of a visit get their bus, mean and last [cycles]."""
    begin = np.flatnonzero(np.diff(visits.visit, prepend=-1))
    return float(column.mean()), float(np.maximum.reduceat(column, begin).mean())


def _moments(values: Any) -> Moments:
    return float(values.mean()), float((values**2).mean())
