"""The operating point of a packet processor: traffic, conflicts and work found, at one packet rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qmodels.allocator import TrialResult, allocation_trials
from qmodels.checks import FloatArray
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.memory import MemoryState, even_loads, memory_state, uneven_loads
from qmodels.packet_processor.networks.links import EngineState, PathState, engine_state, path_state
from qmodels.packet_processor.trials.conflicts import (
    BusyTimes,
    Conflicts,
    busy_times,
    conflicts,
    on_the_books,
    port_wait,
    trials,
)
from qmodels.packet_processor.trials.rows import read_stream, write_stream
from qmodels.packet_processor.variability import Variability
from qmodels.queues.general.paced import burst_work, mean_work

ITERATIONS = 80
DAMPING = 0.8
TOLERANCE = 1e-5


@dataclass(frozen=True, kw_only=True, eq=False)
class Balance:
    """Where the ring of trials, pace, row changes and busy banks settles; one value per design.

    Times in ns, rates per ns.

    Parameters
    ----------
    rate : ndarray
        Packets offered.
    intensity : dict of group to ndarray
        Traffic intensity of the most loaded resource of each group.
    available : ndarray
        Part of the time in which a channel is not refreshed.
    paths : PathState
        The two networks between the engines' own links.
    engine : EngineState
        An engine's own links.
    accesses : ndarray
        Pointer accesses of an allocation, mean over all segments.
    allocation : ndarray
        Pointer-memory time of one stored segment, mean.
    segment_gap, request_gap : ndarray
        Time between the segments of a packet on the request network, and between its reads.
    trains : ndarray
        Rows a packet visits in one direction: trains of accesses.
    blocked : ndarray
        What the ring is iterated on: accesses of an allocation by trials beyond one, or with closed
        pages the probability that the first block tried is rejected.
    busy : BusyTimes
        How long visits keep the places of a run busy.
    changes : ndarray
        Probability that an access opens its row, for writes and for reads, (2, designs).
    """

    rate: FloatArray
    intensity: dict[str, FloatArray]
    available: FloatArray
    paths: PathState
    engine: EngineState
    accesses: FloatArray
    allocation: FloatArray
    segment_gap: FloatArray
    request_gap: FloatArray
    trains: FloatArray
    blocked: FloatArray
    busy: BusyTimes
    changes: FloatArray

    @property
    def loads(self) -> dict[str, FloatArray]:
        """Share of its capacity that each group uses.

        Networks fill up before their links do, and DRAM is not there while it is refreshed.
        """
        return self.intensity | {
            "dram buses": self.intensity["dram buses"] / self.available,
            "dram banks": self.intensity["dram banks"] / self.available,
            "request links": self.paths.request.used,
            "response links": self.paths.response.used,
        }

    @property
    def load(self) -> FloatArray:
        """Share of its capacity that the fullest resource uses."""
        return np.max(list(self.loads.values()), axis=0)


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatingPoint(Balance):
    """State of every design at its packet rate; one value per design, times in ns, rates per ns.

    Parameters
    ----------
    trials : TrialResult
        Allocation trials of a segment of a large packet; one of a small packet takes one access.
    write_conflict, read_conflict : ndarray
        Probability that a segment meets its bank busy with another row.
    memory : MemoryState
        Banks and buses.
    bank_busy : ndarray
        Probability that a bank is not idle.
    store_wait, drain_wait, slice_wait : ndarray
        Work in front of the pointer memory as a packet to store and to drain finds it; work in
        front of an LLC slice.
    """

    trials: TrialResult
    write_conflict: FloatArray
    read_conflict: FloatArray
    memory: MemoryState
    bank_busy: FloatArray
    store_wait: FloatArray
    drain_wait: FloatArray
    slice_wait: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Round:
    """One round of the ring of trials, pace, row changes and busy banks; see `Balance` for its fields.

    ``found`` and ``wanted`` are the ``blocked`` and ``changes`` that follow from those it began with.
    """

    accesses: FloatArray
    allocation: FloatArray
    segment_gap: FloatArray
    engine: EngineState
    busy: BusyTimes
    found: FloatArray
    wanted: FloatArray


class _Ring:
    """The ring at given packet rates: what stays as it is from round to round."""

    def __init__(self, c: Columns, rate: FloatArray, arrivals: Variability) -> None:
        self.c, self.rate, self.arrivals = c, rate, arrivals
        mean = c.mean_segments
        self.trains = np.full_like(rate, mean) if c.closed_pages else c.rows.visits @ c.size_share
        self.request_gap = np.maximum(c.dequeue_accesses * c.pointer_time, c.request_time)
        spread = np.minimum(c.channels, np.maximum(mean / c.step, 1.0))
        self.drain_gap = np.maximum(self.request_gap, c.burst / spread)
        self.paths, self.port = path_state(c, rate), port_wait(c, rate)
        self.even, self.reads = even_loads(c), read_stream(c, rate, self.request_gap)
        self.from_reads, self.from_all = _others(c, rate, self.trains)

    def round(self, blocked: FloatArray, changes: FloatArray) -> _Round:
        """Return what follows from accesses beyond one and row changes."""
        c, rate, arrivals = self.c, self.rate, self.arrivals
        beyond = _closed_trials(c, blocked).mean_accesses - 1.0 if c.closed_pages else blocked
        accesses = 1.0 + (1.0 - c.small_part) * beyond
        allocation = (accesses + c.enqueue_accesses) * c.pointer_time
        segment_gap = np.maximum(allocation, c.segment_time)
        engine = engine_state(
            c, rate, self.paths, issue_gap=allocation, drain_gap=self.drain_gap, arrivals=arrivals
        )
        memory = memory_state(
            c,
            rate,
            self.even,
            trains=self.trains,
            changes=changes,
            request_gap=self.request_gap,
            arrivals=arrivals,
        )
        busy = busy_times(
            c, paths=self.paths, engine=engine, memory=memory, allocation=allocation, port=self.port
        )
        writes = write_stream(c, rate, segment_gap)
        with np.errstate(over="ignore", invalid="ignore"):
            if c.closed_pages:
                on_books = busy.read_way + memory.bank_wait + memory.held
                found = writes.meets(self.from_reads, np.minimum(on_books, 1e9), own_too=True)
                found, wanted = np.where(on_books < 1e9, found, 1.0), np.ones_like(changes)
            else:
                found = on_the_books(c, rate, busy, allocation, "extra")
                wanted = np.stack([writes.changes(self.from_reads), self.reads.changes(self.from_all)])
        return _Round(
            accesses=accesses,
            allocation=allocation,
            segment_gap=segment_gap,
            engine=engine,
            busy=busy,
            found=found,
            wanted=wanted,
        )

    def settle(self, blocked: FloatArray, changes: FloatArray) -> tuple[FloatArray, FloatArray, _Round]:
        """Return accesses beyond one and row changes that follow from themselves, and their round."""
        settled = np.zeros(blocked.shape, dtype=bool)
        pace, upward = np.full(blocked.shape, DAMPING), np.ones(blocked.shape, dtype=bool)
        for _ in range(ITERATIONS):
            last = self.round(blocked, changes)
            # Only when all have settled, so that all that follows from a settled design's state is of that
            # state, whatever the others of a sweep still do.
            if settled.all():
                break
            found, wanted = last.found, last.wanted
            moved = np.maximum(np.abs(found - blocked), np.abs(wanted - changes).max(axis=0))
            # Busy banks jump where a packet's segments just meet each other: half steps lead to the jump.
            pace = np.where((found > blocked) == upward, pace, pace / 2.0)
            upward = found > blocked
            # A settled design stays where it is: its answer does not depend on the others of a sweep.
            step = np.where(settled, 0.0, pace)
            blocked = blocked + step * (found - blocked)
            changes = changes + step * (wanted - changes)
            settled |= pace * moved < TOLERANCE
        return blocked, changes, last


def balance(
    c: Columns,
    rate: FloatArray,
    arrivals: Variability,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> Balance:
    """Return where all designs settle at the given packet rates.

    Busy banks cause trials, trials pace the segments, their pace keeps or breaks up row visits
    and loads links and banks, which makes banks busy: the ring is iterated with damping from
    the empty system, or from the trials and row changes at a similar rate.
    """
    ring = _Ring(c, rate, arrivals)
    opened = np.stack([ring.trains, ring.trains]) / c.mean_segments
    blocked, changes, last = ring.settle(*(start or (np.zeros_like(rate), opened)))
    return Balance(
        rate=rate,
        intensity=_intensity(c, rate, ring.paths, last.accesses, changes),
        available=1.0 - c.refreshing,
        paths=ring.paths,
        engine=last.engine,
        accesses=last.accesses,
        allocation=last.allocation,
        segment_gap=last.segment_gap,
        request_gap=ring.request_gap,
        trains=ring.trains,
        blocked=blocked,
        busy=last.busy,
        changes=changes,
    )


def _intensity(
    c: Columns, rate: FloatArray, paths: PathState, accesses: FloatArray, changes: FloatArray
) -> dict[str, FloatArray]:
    """Return the traffic intensity of the most loaded resource of each group."""
    mean = c.mean_segments
    data_work = 2 * mean * c.burst + changes.sum(axis=0) * mean * (c.opening - c.burst)
    return {
        "pointer memory": rate * sum(_pointer_work(c, accesses)),
        "llc slices": rate * c.lookups * c.slice_time * c.slice_peak,
        "request links": paths.request.peak,
        "response links": paths.response.peak,
        "dram buses": rate * c.burst * (2 * mean / c.channels + c.miss_rate * c.miss_channel_peak),
        "dram banks": rate * (data_work / c.places + c.miss_rate * c.miss_bank_peak * c.opening),
    }


def operate(c: Columns, rate: FloatArray, arrivals: Variability) -> OperatingPoint:
    """Return the operating point of all designs at the given packet rates."""
    b = balance(c, rate, arrivals)
    memory = memory_state(
        c,
        rate,
        uneven_loads(c, rate),
        trains=b.trains,
        changes=b.changes,
        request_gap=b.request_gap,
        arrivals=arrivals,
    )
    held = np.where(np.isfinite(memory.held), memory.held, 1e9)
    met = (_closed_conflicts if c.closed_pages else _open_conflicts)(c, b, held)
    store_wait, drain_wait = _pointer_waits(c, rate, b, met.trials, arrivals)
    slices = np.maximum(c.slices, 1.0)
    slice_wait = mean_work(
        train_rate=rate * c.lookups / slices,
        area=c.slice_time**2 / 2,
        intensity=rate * c.lookups * c.slice_time / slices,
    )
    return OperatingPoint(
        **vars(b),
        trials=met.trials,
        write_conflict=c.small_part * met.small + (1.0 - c.small_part) * met.large,
        read_conflict=met.read,
        memory=memory,
        bank_busy=np.minimum(memory.visit_rate * held, 1.0),
        store_wait=store_wait,
        drain_wait=drain_wait,
        slice_wait=np.where(c.slices > 0, slice_wait, 0.0),
    )


class _Met(NamedTuple):
    """Allocation trials, and the conflicts of writes of large and of small packets and of reads."""

    trials: TrialResult
    large: FloatArray
    small: FloatArray
    read: FloatArray


def _closed_conflicts(c: Columns, b: Balance, held: FloatArray) -> _Met:
    """Return trials and conflicts with closed pages at banks held for such a time."""
    from_reads, from_all = _others(c, b.rate, b.trains)
    tried = _closed_trials(c, b.blocked)
    met = write_stream(c, b.rate, b.segment_gap).meets(from_reads, held, own_too=True)
    queued = (c.square_segments / c.mean_segments - 1.0) / 2 * np.maximum(c.segment_time - b.allocation, 0.0)
    late = -np.expm1(-from_reads * np.minimum(queued + c.segment_time - c.request_time, held))
    still = np.minimum(met / np.where(b.blocked > 0, b.blocked, 1.0), 1.0)
    # VMS3's head is on a bank of the other half, which this packet has not used.
    other_list_busy = -np.expm1(-from_reads * held)
    large, small = (
        np.minimum(taken * still + (1.0 - taken) * late, met)
        for taken in (tried.taken_busy_probability, b.blocked * other_list_busy)
    )
    read = read_stream(c, b.rate, b.request_gap).meets(from_all, held, own_too=True)
    return _Met(tried, np.where(c.trials > 1, large, met), small, read)


def _open_conflicts(c: Columns, b: Balance, held: FloatArray) -> _Met:
    """Return trials and conflicts with open pages at banks held for such a time."""
    from_reads, from_all = _others(c, b.rate, b.trains)
    parts = conflict_parts(c, b)
    # Both lists' heads are busy: that of VMS3 is on a bank of the other half, which this packet has not used.
    small = np.minimum(np.expm1(-from_reads * held) ** 2 + parts.late, 1.0)
    met = read_stream(c, b.rate, b.request_gap).meets(from_all, held, own_too=False)
    return _Met(trials(c, b.rate, b.busy, b.allocation), parts.write, small, parts.read(met))


def conflict_parts(c: Columns, b: Balance) -> Conflicts:
    """Return the parts of the conflict probabilities with open pages."""
    return conflicts(
        c,
        b.rate,
        b.busy,
        b.engine,
        allocation=b.allocation,
        segment_gap=b.segment_gap,
        request_gap=b.request_gap,
    )


def _others(c: Columns, rate: FloatArray, trains: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the visits to a bank per time by reads and lookups, and by these and writes."""
    from_reads = rate * (trains + c.miss_rate) / c.places
    return from_reads, from_reads + rate * trains / c.places


def _closed_trials(c: Columns, rejected: FloatArray) -> TrialResult:
    """Return the trials with closed pages, where a block's bank is also busy with its own row."""
    again = _next_on_same_bank(c)
    return allocation_trials(
        busy=rejected,
        busy_again=np.clip(again + (1.0 - again) * rejected, 0.0, 1.0),
        alloc_trial_count=c.trials,
    )


def _next_on_same_bank(c: Columns) -> FloatArray:
    """Return the probability that the next block of the list is on the bank of the one before it."""
    leave = np.where(c.channels > 1, np.maximum(1.0 / c.step, 1.0 / c.bank_step), 1.0 / c.bank_step)
    return (1.0 - 1.0 / c.run_length) * (1.0 - leave)


def _pointer_work(c: Columns, accesses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the time the pointer memory works to store a packet, and to drain it, mean."""
    mean = c.mean_segments
    enqueue = c.enqueue_packet_accesses + mean * (accesses + c.enqueue_accesses)
    dequeue = c.dequeue_packet_accesses + mean * c.dequeue_accesses + returns(c) @ c.size_share
    return enqueue * c.pointer_time, dequeue * c.pointer_time


def returns(c: Columns) -> FloatArray:
    """Return the pointer accesses that return a packet's blocks, beyond one, by size."""
    return np.asarray(np.where(c.is_small, c.segments - 1.0, 0.0))


def _pointer_waits(
    c: Columns, rate: FloatArray, b: Balance, tried: TrialResult, arrivals: Variability
) -> tuple[FloatArray, FloatArray]:
    """Return the work packets to store and to drain find at the pointer memory.

    Packets come to be stored in the bursts of their arrival and find more work than there is at
    a random moment, when they come to be drained.
    """
    mean, time = c.mean_segments, c.pointer_time
    intensity = b.intensity["pointer memory"]
    enqueue, dequeue = _pointer_work(c, b.accesses)
    by_segment = np.where(c.is_small, 1.0, tried.mean_accesses[:, None]) + c.enqueue_accesses[:, None]
    stored, drained = (
        (work**2 @ c.size_share) - (work @ c.size_share) ** 2
        for work in (c.segments * by_segment, c.segments * c.dequeue_accesses[:, None] + returns(c))
    )
    variance = stored + drained + (1.0 - c.small_part) * mean * tried.accesses_variance
    area = (enqueue**2 + dequeue**2 + variance * time**2) / 2
    burst = burst_work(rate=rate, work=enqueue, arrival_scv=arrivals(intensity))
    storing, draining = (
        mean_work(train_rate=rate, area=area, intensity=intensity, burst=share * burst)
        for share in (1.0, np.minimum(intensity, 1.0))
    )
    return storing, draining
