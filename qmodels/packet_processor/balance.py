"""Where trials, pace, row changes and busy banks of a packet processor settle, at one packet rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.allocator import TrialResult, allocation_trials
from qmodels.checks import FloatArray
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.memory import even_loads, memory_state
from qmodels.packet_processor.networks.links import EngineState, PathState, engine_state, path_state
from qmodels.packet_processor.trials.conflicts import (
    BusyTimes,
    Crowd,
    busy_times,
    crowd,
    on_the_books,
    port_wait,
)
from qmodels.packet_processor.trials.rows import read_stream, write_stream

ITERATIONS = 80
DAMPING = 0.8
TOLERANCE = 1e-5


@dataclass(frozen=True, kw_only=True, eq=False)
class Pace:
    """What follows from the trials and row changes of a round of the ring; one value per design."""

    engine: EngineState  # an engine's own links
    accesses: FloatArray  # pointer accesses of an allocation, mean over all segments
    allocation: FloatArray  # pointer-memory time of one stored segment, mean
    segment_gap: FloatArray  # time between the segments of a packet on the request network
    busy: BusyTimes  # how long visits keep the places of a run busy


@dataclass(frozen=True, kw_only=True, eq=False)
class Balance(Pace):
    """Where the ring of trials, pace, row changes and busy banks settles; one value per design.

    Times in ns, rates per ns.
    """

    rate: FloatArray  # packets offered
    crowd: Crowd  # how much denser packets come around a packet
    intensity: dict[str, FloatArray]  # traffic intensity of the most loaded resource of each group
    # Part of the time in which a channel is not refreshed; behind controllers the part of the bus that is
    # used when the memory carries no more.
    available: FloatArray
    paths: PathState  # the two networks between the engines' own links
    request_gap: FloatArray  # time between the reads of a packet
    trains: FloatArray  # rows a packet visits in one direction: trains of accesses
    # What the ring is iterated on: accesses of an allocation by trials beyond one, or with closed pages the
    # probability that the first block tried is rejected.
    blocked: FloatArray
    changes: FloatArray  # probability that an access opens its row, for writes and for reads, (2, designs)

    @property
    def loads(self) -> dict[str, FloatArray]:
        """Share of its capacity that each group uses.

        Networks fill up before their links do, and DRAM is not there while it is refreshed; behind
        controllers the bus is full when the memory carries no more.
        """
        memory = [name for name in ("dram buses", "dram banks") if name in self.intensity]
        carried = {name: self.intensity[name] / self.available for name in memory}
        return (
            self.intensity
            | carried
            | {"request links": self.paths.request.used, "response links": self.paths.response.used}
        )

    @property
    def load(self) -> FloatArray:
        """Share of its capacity that the fullest resource uses."""
        return np.max(list(self.loads.values()), axis=0)


class _Ring:
    """The ring at given packet rates: what stays as it is from round to round."""

    def __init__(self, c: Columns, rate: FloatArray) -> None:
        self.c, self.rate = c, rate
        mean = c.mean_segments
        self.trains = np.full_like(rate, mean) if c.closed_pages else c.rows.visits @ c.size_share
        self.request_gap = np.maximum(c.dequeue_accesses * c.pointer_time, c.request_time)
        spread = np.minimum(c.channels, np.maximum(mean / c.step, 1.0))
        self.drain_gap = np.maximum(self.request_gap, c.burst / spread)
        self.crowd = crowd(c, rate)
        self.paths, self.port = path_state(c, rate), port_wait(c, rate)
        self.even, self.reads = even_loads(c), read_stream(c, rate, self.request_gap)
        self.from_reads, self.from_all = others_at_bank(c, rate, self.trains)
        met = None if c.memory is None else c.memory.at(rate)
        self.opened = None if met is None else np.stack([met["write_opened"], met["read_opened"]])

    def round(self, blocked: FloatArray, changes: FloatArray) -> tuple[Pace, FloatArray, FloatArray]:
        """Return what follows from accesses beyond one and row changes, and these as they follow from it."""
        c, rate = self.c, self.rate
        beyond = closed_trials(c, blocked).mean_accesses - 1.0 if c.closed_pages else blocked
        accesses = 1.0 + (1.0 - c.small_part) * beyond
        allocation = (accesses + c.enqueue_accesses) * c.pointer_time
        segment_gap = np.maximum(allocation, c.segment_time)
        engine = engine_state(c, rate, self.paths, issue_gap=allocation, drain_gap=self.drain_gap)
        memory = memory_state(
            c, rate, self.even, trains=self.trains, changes=changes, request_gap=self.request_gap
        )
        busy = busy_times(
            c,
            paths=self.paths,
            engine=engine,
            memory=memory,
            allocation=allocation,
            port=self.port,
            changes=changes,
        )
        writes = write_stream(c, rate, segment_gap)
        with np.errstate(over="ignore", invalid="ignore"):
            if c.closed_pages:
                on_books = busy.read_way + memory.bank_wait + memory.held
                found = writes.meets(self.from_reads, np.minimum(on_books, 1e9), own_too=True)
                found, wanted = np.where(on_books < 1e9, found, 1.0), np.ones_like(changes)
            else:
                found = on_the_books(c, rate, busy, self.crowd, allocation, "extra")
                wanted = np.stack([writes.changes(self.from_reads), self.reads.changes(self.from_all)])
            if self.opened is not None:
                wanted = self.opened
        pace = Pace(
            accesses=accesses, allocation=allocation, segment_gap=segment_gap, engine=engine, busy=busy
        )
        return pace, found, wanted

    def settle(self, blocked: FloatArray, changes: FloatArray) -> tuple[Pace, FloatArray, FloatArray]:
        """Return the round whose accesses beyond one and row changes follow from themselves, and these."""
        settled = np.zeros(blocked.shape, dtype=bool)
        pace, upward = np.full(blocked.shape, DAMPING), np.ones(blocked.shape, dtype=bool)
        for _ in range(ITERATIONS):
            last, found, wanted = self.round(blocked, changes)
            # Only when all have settled, so that all that follows from a settled design's state is of that
            # state, whatever the others of a sweep still do.
            if settled.all():
                break
            moved = np.maximum(np.abs(found - blocked), np.abs(wanted - changes).max(axis=0))
            # Busy banks jump where a packet's segments just meet each other: half steps lead to the jump.
            pace = np.where((found > blocked) == upward, pace, pace / 2.0)
            upward = found > blocked
            # A settled design stays where it is: its answer does not depend on the others of a sweep.
            step = np.where(settled, 0.0, pace)
            blocked = blocked + step * (found - blocked)
            changes = changes + step * (wanted - changes)
            settled |= pace * moved < TOLERANCE
        return last, blocked, changes


def balance(c: Columns, rate: FloatArray, start: tuple[FloatArray, FloatArray] | None = None) -> Balance:
    """Return where all designs settle at the given packet rates.

    Busy banks cause trials, trials pace the segments, their pace keeps or breaks up row visits
    and loads links and banks, which makes banks busy: the ring is iterated with damping from
    the empty system, or from the trials and row changes at a similar rate.
    """
    ring = _Ring(c, rate)
    opened = np.stack([ring.trains, ring.trains]) / c.mean_segments
    last, blocked, changes = ring.settle(*(start or (np.zeros_like(rate), opened)))
    intensity = _intensity(c, rate, ring.paths, last.accesses, changes)
    available = 1.0 - c.refreshing
    if c.memory is not None:
        available = intensity["dram buses"] * c.memory.capacity / rate
    return Balance(
        **vars(last),
        rate=rate,
        crowd=ring.crowd,
        intensity=intensity,
        available=available,
        paths=ring.paths,
        request_gap=ring.request_gap,
        trains=ring.trains,
        blocked=blocked,
        changes=changes,
    )


def _intensity(
    c: Columns, rate: FloatArray, paths: PathState, accesses: FloatArray, changes: FloatArray
) -> dict[str, FloatArray]:
    """Return the traffic intensity of the most loaded resource of each group."""
    mean = c.mean_segments
    data_work = 2 * mean * c.burst + changes.sum(axis=0) * mean * (c.opening - c.burst)
    banks = {"dram banks": rate * (data_work / c.places + c.miss_rate * c.miss_bank_peak * c.opening)}
    return {
        "pointer memory": rate * sum(pointer_work(c, accesses)),
        "llc slices": rate * c.lookups * c.slice_time * c.slice_peak,
        "request links": paths.request.peak,
        "response links": paths.response.peak,
        "dram buses": rate * c.burst * (2 * mean / c.channels + c.miss_rate * c.miss_channel_peak),
        **(banks if c.memory is None else {}),
    }


def others_at_bank(c: Columns, rate: FloatArray, trains: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the visits to a bank per time by reads and lookups, and by these and writes."""
    from_reads = rate * (trains + c.miss_rate) / c.places
    return from_reads, from_reads + rate * trains / c.places


def closed_trials(c: Columns, rejected: FloatArray) -> TrialResult:
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


def pointer_work(c: Columns, accesses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the time the pointer memory works to store a packet, and to drain it, mean."""
    mean = c.mean_segments
    enqueue = c.enqueue_packet_accesses + mean * (accesses + c.enqueue_accesses)
    dequeue = c.dequeue_packet_accesses + mean * c.dequeue_accesses + returns(c) @ c.size_share
    return enqueue * c.pointer_time, dequeue * c.pointer_time


def returns(c: Columns) -> FloatArray:
    """Return the pointer accesses that return a packet's blocks, beyond one, by size."""
    return np.asarray(np.where(c.is_small, c.segments - 1.0, 0.0))
