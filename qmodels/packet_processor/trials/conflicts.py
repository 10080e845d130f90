"""Conflicts and trials with open pages: what keeps banks busy, and what comes between two writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qmodels.allocator import TrialResult
from qmodels.checks import FloatArray
from qmodels.constants import kept
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.memory import MemoryState
from qmodels.packet_processor.networks.links import EngineState, PathState
from qmodels.packet_processor.trials.walk import KINDS


class ConflictLaw(NamedTuple):
    """What the load of an engine's link does to conflicts, and trials to those of reads.

    Parameters
    ----------
    overlap_loss : float
        Relative loss of overlaps of two packets' accesses, per unit of injection load.
    read_spread : float
        Time by which a packet's reads are spread apart, per unit of injection load. [segments on a link]
    read_followed : float
        Part of the later reads of a visit that come between the writes behind one that was forced upon
        its bank, per unit of injection load.
    read_kept : float
        Part of the reads' conflicts that trials leave alone.
    read_cut : float
        Read conflicts for each conflict of a write that was forced upon a busy bank.
    """

    overlap_loss: float
    read_spread: float
    read_followed: float
    read_kept: float
    read_cut: float


LAW = kept(ConflictLaw, "packet_processor.conflicts")


@dataclass(frozen=True, kw_only=True, eq=False)
class BusyTimes:
    """How long visits keep the places of a run busy; one value per design, in ns.

    On the allocator's books a place is busy from the moment an access is issued; for a write that
    comes to the bank, as much later as it takes to get there.

    Parameters
    ----------
    reads : ndarray
        From the issue of a packet's reads until the bank is free, (designs, arcs).
    lookup, write : ndarray
        The same for a lookup and for the writes of a packet.
    way, service : ndarray
        From the allocation of a block until its write is at the bank, and from then on.
    read_way : ndarray
        From the issue of a read until it is at its bank.
    """

    reads: FloatArray
    lookup: FloatArray
    write: FloatArray
    way: FloatArray
    service: FloatArray
    read_way: FloatArray


def busy_times(
    c: Columns,
    *,
    paths: PathState,
    engine: EngineState,
    memory: MemoryState,
    allocation: FloatArray,
    port: FloatArray,
) -> BusyTimes:
    """Return how long visits keep the places of a run busy, with the wait for a channel's ``port``."""
    with np.errstate(over="ignore", invalid="ignore"):
        shared = engine.inject_wait + paths.request.pipeline + paths.request.wait + paths.request.blocked
        shared = shared + port
        service = memory.bank_wait + c.opening
        one = shared + c.request_time + service + memory.bus_wait
        each = np.maximum(c.burst + memory.bus_wait, c.burst / np.maximum(1.0 - memory.bus_others, 1e-9))
        late = (c.square_segments / c.mean_segments - 1.0) / 2 * np.maximum(c.segment_time - allocation, 0.0)
        way = allocation + c.segment_time + shared
        written = service + memory.write_bus_wait + memory.write_backlog / c.banks
        times = {
            "reads": one[:, None] + (c.walks.reads - 1.0) * each[:, None],
            "lookup": one,
            "write": late + way + written,
            "way": way,
            "service": written,
            "read_way": shared + c.request_time,
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
    c: Columns, rate: FloatArray, busy: BusyTimes, allocation: FloatArray, kind: str
) -> FloatArray:
    """Return what an allocation by trials meets, one of `trials.walk.KINDS`, mean."""
    visits = c.walks.by_visits(
        kind, busy=busy.reads, lone=busy.lookup, pace=allocation, rate=rate, lookups=c.miss_rate
    )
    cut = 1.0 / c.run_length
    return visits + c.walks.by_starts(kind, busy=busy.write, pace=allocation, rate=rate, cut=cut)


def trials(c: Columns, rate: FloatArray, busy: BusyTimes, allocation: FloatArray) -> TrialResult:
    """Return the trials of a segment that takes its block by trials."""
    met, forced, extra, square = (on_the_books(c, rate, busy, allocation, kind) for kind in KINDS)
    return TrialResult(
        mean_rejected=np.where(c.trials > 1, extra - met, 0.0),
        mean_accesses=1.0 + extra,
        accesses_variance=np.maximum(square - extra**2, 0.0),
        taken_busy_probability=np.minimum(forced, 1.0),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Conflicts:
    """Parts of the conflict probabilities of a segment; one value per design.

    Parameters
    ----------
    forced : ndarray
        The block was taken on a bank still busy when its write is there.
    starts : ndarray
        Writes of the run before and of the run after meet on their way.
    overlaps : ndarray
        Reads were issued after the allocation and are at the bank before the write.
    spread : ndarray
        More reads of the same packet come between the writes that follow; the reads meet
        these writes as often.
    following : ndarray
        Reads of a visit to a place behind its first one.
    """

    forced: FloatArray
    starts: FloatArray
    overlaps: FloatArray
    spread: FloatArray
    following: FloatArray

    @property
    def late(self) -> FloatArray:
        """Probability that a write meets what was not there when its block was taken."""
        return self.overlaps + self.spread

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
    engine: EngineState,
    *,
    allocation: FloatArray,
    segment_gap: FloatArray,
    request_gap: FloatArray,
) -> Conflicts:
    r"""Return the parts of the conflict probabilities.

    Notes
    -----
    A block is forced upon a busy bank as the walk of `qmodels.packet_processor.trials.walk` says,
    and its write conflicts if the bank is still busy when the write gets there. Beyond that two operations of
    the pointer memory overlap on their way: the writes of n segments are at their banks
    :math:`n (g_w - g_a)` later than they were allocated, for gaps of segments :math:`g_w` on the
    network and :math:`g_a` at the allocator. A packet drained in that window, at rate :math:`\nu`
    in a place, overtakes the last of them. The waits of the two at their engines' links add a
    difference, taken as a Laplace variable. Later reads of the same visit each come between two
    writes while these follow one another in the place.
    """
    w, load = c.walks, engine.inject_intensity
    forced = w.by_visits(
        "forced",
        busy=busy.reads - busy.way[:, None],
        lone=busy.lookup - busy.way,
        pace=segment_gap,
        rate=rate,
        lookups=c.miss_rate,
    )
    per_packet = c.rows.visits @ c.size_share
    following = (c.mean_segments - per_packet) / (per_packet + c.miss_rate)
    by_size = _overtaken(
        c, rate, engine, allocation=allocation, segment_gap=segment_gap, request_gap=request_gap
    )
    in_a_row = by_size * np.minimum(1.0, (w.ring * w.chunk)[:, None] / c.segments)
    apart = (request_gap + LAW.read_spread * load * c.segment_time) / segment_gap
    return Conflicts(
        forced=forced,
        starts=_at_starts(c, rate, busy, segment_gap),
        overlaps=by_size.sum(axis=1) * np.maximum(1.0 - LAW.overlap_loss * load, 0.0),
        spread=in_a_row.sum(axis=1) * following * apart + LAW.read_followed * load * following * forced,
        following=following,
    )


def _at_starts(c: Columns, rate: FloatArray, busy: BusyTimes, segment_gap: FloatArray) -> FloatArray:
    """Return the probability that writes of the run before and of the run after meet on their way."""
    cut = 1.0 / c.run_length
    met, alone = (
        c.walks.by_starts("forced", busy=busy.service, pace=segment_gap, rate=rate, cut=cut, first=first)
        for first in (False, True)
    )
    avoided = np.divide(met, alone, out=np.ones_like(rate), where=alone > 0)
    other_run = 1.0 - (1.0 - cut) ** (c.square_segments / c.mean_segments)
    engines = float(c.spec.noc.initiators)
    between = (1.0 - 1.0 / engines) * rate * c.mean_segments * other_run / c.places
    return met + avoided * between * segment_gap * (1.0 + 1.0 / c.walks.chunk)


def _overtaken(
    c: Columns,
    rate: FloatArray,
    engine: EngineState,
    *,
    allocation: FloatArray,
    segment_gap: FloatArray,
    request_gap: FloatArray,
) -> FloatArray:
    """Return the conflicts of a segment with packets drained while writes are on their way, by size."""
    size, visits, w = c.segments, c.rows.visits, c.walks
    spread_over = np.minimum(visits, w.ring[:, None])
    before_last = np.minimum(w.chunk[:, None] * (spread_over - 1.0), size * (1.0 - 1.0 / spread_over)) / 2.0
    per_packet = visits @ c.size_share
    first_read = (before_last * visits) @ c.size_share / per_packet * request_gap
    ahead = c.segment_time - c.request_time - c.dequeue_packet_accesses * c.pointer_time - first_read
    window = size * np.maximum(segment_gap - allocation, 0.0)[:, None] - segment_gap[:, None] * before_last
    window = window + (ahead + port_wait(c, rate))[:, None]
    wait = np.maximum(np.nan_to_num(engine.inject_wait, posinf=1e9), 1e-6)
    scale = (wait * np.sqrt(2.0 / np.clip(engine.inject_intensity, 1e-3, 1.0) - 1.0))[:, None]
    window = np.maximum(window, 0.0) + scale / 2.0 * np.exp(-np.abs(window) / scale)
    by_size = visits * (rate * (per_packet + c.miss_rate) / c.places)[:, None] * window
    return by_size * c.size_share / c.mean_segments
