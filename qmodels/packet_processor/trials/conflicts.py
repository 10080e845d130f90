"""Conflicts and trials with open pages: what keeps banks busy, and what comes between two writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qmodels.allocator import TrialResult
from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.memory import MemoryState
from qmodels.packet_processor.networks.links import EngineState, PathState
from qmodels.packet_processor.trials.crossings import crossings
from qmodels.packet_processor.trials.walk import KINDS


class ConflictLaw(NamedTuple):
    """What remains of the conflicts that are counted one by one.

    Parameters
    ----------
    old_run : float
        Part of the writes of an old run that keep their bank as long as if they opened their row.
    read_kept : float
        Part of the reads' conflicts that trials leave alone.
    read_cut : float
        Read conflicts for each conflict of a write that was forced upon a busy bank.
    """

    old_run: float
    read_kept: float
    read_cut: float


LAW = kept(ConflictLaw, "packet_processor.conflicts")


@dataclass(frozen=True, kw_only=True, eq=False)
class BusyTimes:
    """How long visits keep the places of a run busy; one value per design, in ns.

    On the allocator's books a place is busy from the moment an access is issued; for a write that
    comes to the bank, as much later as it takes to get there.
    """

    reads: FloatArray  # from the issue of a packet's reads until the bank is free, (designs, arcs)
    # lookup, write: the same for a lookup and for the writes of a packet.
    lookup: FloatArray
    write: FloatArray
    # way, service: from the allocation of a block until its write is at the bank, and from then on.
    way: FloatArray
    service: FloatArray
    read_way: FloatArray  # from the issue of a read until it is at its bank
    # after, each: from a lone access that comes to a bank until that is free, and by how much later for each
    # more.
    after: FloatArray
    each: FloatArray
    rest: FloatArray  # from a random write that comes to a bank until that is free


class Crowd(NamedTuple):
    """How many times more packets come than on average, see `qmodels.packet_processor.trials.density`."""

    near: FloatArray  # while a packet's writes are on their way
    held: FloatArray  # while it is read, and on other runs than its own
    asked: FloatArray  # while it is read, with their lookups


def crowd(c: Columns, rate: FloatArray) -> Crowd:
    """Return how dense packets are while writes are on their way, and while packets are read."""
    way = c.mean_segments * c.segment_time + c.opening
    cut = np.minimum(c.mean_segments / c.run_length, 1.0)
    held, asked = (c.density.held(rate * c.hold, part) for part in (cut, np.inf))
    return Crowd(near=c.density.near(rate * way), held=held, asked=asked)


def busy_times(
    c: Columns,
    *,
    paths: PathState,
    engine: EngineState,
    memory: MemoryState,
    allocation: FloatArray,
    port: FloatArray,
    changes: FloatArray,
) -> BusyTimes:
    """Return how long visits keep the places of a run busy, with the wait for a channel's ``port``.

    Visits of reads open their row, and a write does, as often as the ``changes`` of writes and reads say.
    """
    trains = c.rows.visits @ c.size_share
    opened = np.minimum(changes[1] * c.mean_segments / trains, 1.0)
    hit = c.opening - c.burst
    with np.errstate(over="ignore", invalid="ignore"):
        shared = engine.inject_wait + paths.request.pipeline + paths.request.wait + paths.request.blocked
        shared = shared + port
        service = memory.bank_wait + c.opening
        one = shared + c.request_time + service + memory.bus_wait
        read = one - (1.0 - opened) * hit
        each = np.maximum(c.burst + memory.bus_wait, c.burst / np.maximum(1.0 - memory.bus_others, 1e-9))
        late = (c.square_segments / c.mean_segments - 1.0) / 2 * np.maximum(c.segment_time - allocation, 0.0)
        way = allocation + c.segment_time + shared
        written = service + memory.write_bus_wait + memory.write_backlog
        times = {
            "reads": read[:, None] + (c.walks.reads - 1.0) * each[:, None],
            "lookup": one,
            "write": late + way + written,
            "way": way,
            "service": written,
            "read_way": shared + c.request_time,
            "after": service + memory.bus_wait - (1.0 - opened) * hit,
            "rest": written - (1.0 - changes[0]) * (hit + memory.bank_wait),
            "each": each,
        }
    # A bank that never becomes free counts as busy for very long.
    return BusyTimes(**{name: np.nan_to_num(np.minimum(time, 1e9), nan=1e9) for name, time in times.items()})


def port_wait(c: Columns, rate: FloatArray) -> FloatArray:
    """Return how long a channel's port is taken by the writes of the packet before.

    Successive packets fill the same chunk with a large step: they are on their way to one channel.
    """
    work = c.segments * c.segment_time[:, None] / c.touched
    same = np.maximum((c.touched @ c.size_share) / c.channels, 1.0 - c.mean_segments / c.step)
    left = work + np.expm1(-rate[:, None] * work) / rate[:, None]
    return np.where(c.channels > 1, same, 1.0) * (left @ c.size_share)


def on_the_books(
    c: Columns, rate: FloatArray, busy: BusyTimes, crowd: Crowd, allocation: FloatArray, kind: str
) -> FloatArray:
    """Return what an allocation by trials meets, one of `trials.walk.KINDS`, mean.

    Reads on the packet's own run count as well: without them the accesses come out up to 1.4 % too low.
    """
    visits = c.walks.by_visits(
        kind,
        busy=busy.reads,
        lone=busy.lookup,
        pace=allocation,
        rate=rate * crowd.asked,
        lone_rate=rate * crowd.near,
        lookups=c.miss_rate,
    )
    cut = 1.0 / c.run_length
    return visits + c.walks.by_starts(kind, busy=busy.write, pace=allocation, rate=rate * crowd.near, cut=cut)


def trials(
    c: Columns, rate: FloatArray, busy: BusyTimes, crowd: Crowd, allocation: FloatArray
) -> TrialResult:
    """Return the trials of a segment that takes its block by trials."""
    met, forced, extra, square = (on_the_books(c, rate, busy, crowd, allocation, kind) for kind in KINDS)
    return TrialResult(
        mean_rejected=np.where(c.trials > 1, extra - met, 0.0),
        mean_accesses=1.0 + extra,
        accesses_variance=np.maximum(square - extra**2, 0.0),
        taken_busy_probability=np.minimum(forced, 1.0),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Conflicts:
    """Parts of the conflict probabilities of a segment; one value per design."""

    forced: FloatArray  # the block was taken on a bank still busy when its write is there
    starts: FloatArray  # writes of the run before and of the run after meet
    late: FloatArray  # a write meets what was not there when its block was taken
    spread: FloatArray  # part of it in which reads come between writes; the reads meet these as often

    @property
    def write(self) -> FloatArray:
        """Probability that a write meets its bank busy with another row."""
        return np.minimum(self.forced + self.starts + self.late, 1.0)

    def read(self, met: FloatArray) -> FloatArray:
        """Return the probability that a read does, from that of visits by single accesses."""
        return np.minimum(LAW.read_kept * met + self.spread + LAW.read_cut * (self.forced + self.starts), 1.0)


def conflicts(
    c: Columns,
    rate: FloatArray,
    busy: BusyTimes,
    crowd: Crowd,
    engine: EngineState,
    *,
    allocation: FloatArray,
    segment_gap: FloatArray,
    request_gap: FloatArray,
) -> Conflicts:
    r"""Return the parts of the conflict probabilities.

    A block is forced upon a busy bank as the walk of `qmodels.packet_processor.trials.walk` says,
    and its write conflicts if the bank is still busy when the write gets there. Beyond that operations of
    the pointer memory cross on their way, see `qmodels.packet_processor.trials.crossings`.
    """
    forced = c.walks.by_visits(
        "forced",
        busy=busy.reads - busy.way[:, None],
        lone=busy.lookup - busy.way,
        pace=segment_gap,
        rate=rate * crowd.held,
        lone_rate=rate * crowd.near,
        lookups=c.miss_rate,
    )
    crossed = crossings(
        c,
        rate,
        engine,
        port=port_wait(c, rate),
        read_busy=busy.after,
        write_busy=busy.service,
        each=busy.each,
        near=crowd.near,
        held=crowd.held,
        allocation=allocation,
        segment_gap=segment_gap,
        request_gap=request_gap,
    )
    cut, dense = 1.0 / c.run_length, rate * crowd.near
    left = busy.rest + LAW.old_run * (busy.service - busy.rest)
    met = c.walks.by_starts("forced", busy=left, pace=segment_gap, rate=dense, cut=cut)
    taken, alone = (
        c.walks.by_starts("forced", busy=busy.write, pace=allocation, rate=dense, cut=cut, first=first)
        for first in (False, True)
    )
    avoided = np.divide(taken, alone, out=np.ones_like(rate), where=alone > 0)
    return Conflicts(
        forced=forced,
        starts=met + 2.0 * avoided * crossed.writes,
        late=crossed.reads + crossed.lookups,
        spread=crossed.between,
    )
