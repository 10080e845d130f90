"""Waits of packets when the oldest access goes first whose command may be given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import IntArray
from qmodels.memory.dram.channel_visits import Visits, channel_visits
from qmodels.memory.dram.recursions.order import numbers
from qmodels.memory.dram.recursions.ready import serve_ready_first
from qmodels.memory.dram.visit_pairs import pair_slopes
from qmodels.systems.memory.dram_system import DramSystem

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
    # size and ``alone``; and the size of packets that are written.
    directions: tuple[tuple[tuple[float, float, float], ...], float] | None = None
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
    t, g, timing = spec.timing, spec.geometry, numbers(spec)
    passing = spec.row_hit_cap if spec.scheduler == "fr-fcfs" else 0

    def serve(which: Visits, index: IntArray, run: IntArray, arrival: IntArray) -> Any:
        return serve_ready_first(
            timing, passing, run, arrival, which.bank[index], which.rows(run, index), which.write[index]
        )

    every = np.arange(visits.visit.size)
    column, busy = serve(visits, every, visits.visit, visits.offset)
    delay, conflict = pair_slopes(spec, visits, serve, column, busy, rng)
    begin = np.flatnonzero(np.diff(visits.visit, prepend=-1))
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
        columns=(float(column.mean()), float(np.maximum.reduceat(column, begin).mean())),
    )


def _moments(values: Any) -> Moments:
    return float(values.mean()), float((values**2).mean())
