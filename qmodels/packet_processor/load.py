"""The operating point of a packet processor: traffic, conflicts and work found, at one packet rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels._check import FloatArray
from qmodels.allocator import TrialResult, allocation_trials
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.links import EngineState, PathState, engine_state, path_state
from qmodels.packet_processor.rows import read_stream, write_stream
from qmodels.packet_processor.variability import Variability
from qmodels.queues.paced import burst_work, mean_work, train_area
from qmodels.queues.transient import wait_terms

ITERATIONS = 80
DAMPING = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatingPoint:
    """State of every design at its packet rate; one value per design, times in ns, rates per ns.

    Parameters
    ----------
    rate : ndarray
        Packets offered.
    intensity : dict of group to ndarray
        Traffic intensity of the most loaded resource of each group.
    paths : PathState
        The two networks between the engines' own links.
    engine : EngineState
        An engine's own links.
    trials : TrialResult
        Allocation trials of a segment.
    allocation : ndarray
        Pointer-memory time of one stored segment.
    segment_gap, request_gap : ndarray
        Time between the segments of a packet on the request network, and between its reads.
    trains : ndarray
        Rows a packet visits in one direction: trains of accesses.
    activations : ndarray
        Rows opened for the segments of a packet, written and read.
    train_opens : ndarray
        Probability that a train opens its row, for writes and for reads, (2, designs).
    write_conflict, read_conflict : ndarray
        Probability that a segment meets its bank busy with another row.
    bank_wait : ndarray
        Others' work in front of a bank.
    bank_busy : ndarray
        Probability that a bank is not idle.
    bus_wait, bus_intensity : ndarray
        Work of the other banks in front of a data bus; their traffic intensity.
    write_bus_wait, write_backlog : ndarray
        For writes: work of reads and lookups in front of the bus; work of earlier packets' writes.
    write_others : ndarray
        Traffic intensity of reads and lookups on a bus.
    write_overlap : ndarray
        Work per time that later packets' writes bring to the channel of a packet's writes.
    pointer_wait, slice_wait : ndarray
        Work in front of the pointer memory and of an LLC slice.
    """

    rate: FloatArray
    intensity: dict[str, FloatArray]
    paths: PathState
    engine: EngineState
    trials: TrialResult
    allocation: FloatArray
    segment_gap: FloatArray
    request_gap: FloatArray
    trains: FloatArray
    activations: FloatArray
    train_opens: FloatArray
    write_conflict: FloatArray
    read_conflict: FloatArray
    bank_wait: FloatArray
    bank_busy: FloatArray
    bus_wait: FloatArray
    bus_intensity: FloatArray
    write_bus_wait: FloatArray
    write_others: FloatArray
    write_backlog: FloatArray
    write_overlap: FloatArray
    pointer_wait: FloatArray
    slice_wait: FloatArray

    @property
    def stable(self) -> Any:
        """Whether every resource keeps up."""
        return np.max(list(self.intensity.values()), axis=0) < 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class _Memory:
    """Banks and buses at given row changes; one value per design, times in ns."""

    visit_rate: FloatArray
    occupancy: FloatArray
    accesses: FloatArray
    intensity: FloatArray
    bank_wait: FloatArray
    bus_wait: FloatArray
    bus_intensity: FloatArray
    write_bus_wait: FloatArray
    write_others: FloatArray
    write_backlog: FloatArray
    write_overlap: FloatArray

    @property
    def held(self) -> FloatArray:
        """Time a visit keeps its bank from others, waits for the bus included."""
        return self.occupancy + self.accesses * self.bus_wait


def operate(c: Columns, rate: FloatArray, arrivals: Variability) -> OperatingPoint:
    """Return the operating point of all designs at the given packet rates.

    Busy banks cause trials, trials pace the segments, their pace keeps or breaks up row visits
    and loads links and banks, which makes banks busy: the ring is iterated with damping from
    the empty system.
    """
    mean, banks = c.mean_segments, c.channels * c.banks
    closed = c.spec.dram.page_policy == "closed"
    trains = np.full_like(rate, mean) if closed else c.rows.visits @ c.size_share
    stay_on_bank = _next_on_same_bank(c)
    request_gap = np.maximum(c.dequeue_accesses * c.pointer_time, c.request_time)
    spread = np.minimum(c.channels, np.maximum(mean / c.step, 1.0))
    drain_gap = np.maximum(request_gap, c.burst / spread)
    paths = path_state(c, rate)
    reads = read_stream(c, rate, request_gap)
    rejected = np.zeros_like(rate)
    changes = np.stack([trains, trains]) / mean
    for _ in range(ITERATIONS):
        trials = allocation_trials(
            busy=rejected,
            busy_again=np.clip(stay_on_bank + (1.0 - stay_on_bank) * rejected, 0.0, 1.0),
            alloc_trial_count=c.trials,
        )
        allocation = (trials.mean_accesses + c.enqueue_accesses) * c.pointer_time
        segment_gap = np.maximum(allocation, c.segment_time)
        engine = engine_state(c, rate, issue_gap=allocation, drain_gap=drain_gap, arrivals=arrivals)
        memory = _memory(c, rate, trains, changes, request_gap, arrivals)
        queued = (c.square_segments / mean - 1.0) / 2 * np.maximum(c.segment_time - allocation, 0.0)
        read_transit = engine.inject_wait + paths.request_pipeline + c.request_time + paths.request_wait
        longer = queued + c.segment_time - c.request_time
        from_reads = rate * (trains + c.miss_rate) / banks
        from_all = from_reads + rate * trains / banks
        writes = write_stream(c, rate, segment_gap)
        on_books = read_transit + memory.bank_wait + memory.held
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.where(
                np.isfinite(on_books), writes.tried(from_reads, np.where(np.isfinite(on_books), on_books, 0.0)), 1.0
            )
            wanted = np.stack([writes.changes(from_reads), reads.changes(from_all)])
        if closed:
            wanted = np.ones_like(wanted)
        moved = max(np.abs(found - rejected).max(), np.abs(wanted - changes).max())
        rejected = rejected + DAMPING * (found - rejected)
        changes = changes + DAMPING * (wanted - changes)
        if moved < 1e-9:
            break
    held = np.where(np.isfinite(memory.held), memory.held, 1e9)
    met = writes.meets(from_reads, held, own_too=closed)
    late = -np.expm1(-from_reads * np.minimum(longer, held))
    still = np.minimum(met / np.where(rejected > 0, rejected, 1.0), 1.0)
    repaired = trials.taken_busy_probability * still + (1.0 - trials.taken_busy_probability) * late
    pointer_intensity, pointer_wait = _pointer(c, rate, trials, arrivals)
    even = np.maximum(c.slices, 1.0)
    slice_wait = mean_work(
        train_rate=rate * c.lookups / even,
        area=c.slice_time**2 / 2,
        intensity=rate * c.lookups * c.slice_time / even,
    )
    opening = c.precharge + c.burst + c.recovery
    data_work = 2 * mean * c.burst + changes.sum(axis=0) * mean * (opening - c.burst)
    return OperatingPoint(
        rate=rate,
        intensity={
            "pointer memory": pointer_intensity,
            "llc slices": rate * c.lookups * c.slice_time * c.slice_peak,
            "request links": paths.request_peak,
            "response links": paths.response_peak,
            "dram buses": rate * c.burst * (2 * mean / c.channels + c.miss_rate * c.miss_channel_peak),
            "dram banks": rate * (data_work / banks + c.miss_rate * c.miss_bank_peak * opening),
        },
        paths=paths,
        engine=engine,
        trials=trials,
        allocation=allocation,
        segment_gap=segment_gap,
        request_gap=request_gap,
        trains=trains,
        activations=changes.sum(axis=0) * mean,
        train_opens=np.minimum(changes * mean / trains, 1.0),
        write_conflict=np.where(c.trials > 1, np.minimum(repaired, met), met),
        read_conflict=reads.meets(from_all, held, own_too=closed),
        bank_wait=memory.bank_wait,
        bank_busy=np.minimum(memory.visit_rate * held, 1.0),
        bus_wait=memory.bus_wait,
        bus_intensity=memory.bus_intensity,
        write_bus_wait=memory.write_bus_wait,
        write_others=memory.write_others,
        write_backlog=memory.write_backlog,
        write_overlap=memory.write_overlap,
        pointer_wait=pointer_wait,
        slice_wait=np.where(c.slices > 0, slice_wait, 0.0),
    )


def _next_on_same_bank(c: Columns) -> FloatArray:
    """Return the probability that the next block of the list is on the bank of the one before it."""
    leave = np.where(c.channels > 1, np.maximum(1.0 / c.step, 1.0 / c.bank_step), 1.0 / c.bank_step)
    return (1.0 - 1.0 / c.run_length) * (1.0 - leave)


def _memory(
    c: Columns,
    rate: FloatArray,
    trains: FloatArray,
    changes: FloatArray,
    request_gap: FloatArray,
    arrivals: Variability,
) -> _Memory:
    """Return the state of banks and buses.

    A packet visits its banks in ``trains`` of accesses to one row, once to write and once to
    read; a train that has to open its row holds the bank longer by the opening. Trains of
    several banks take turns on the bus: an access finds the others' single accesses as in
    M/D/1, but one access of every train there is (processor sharing) the longer trains are.
    Reads and lookups find the writes' backlog if they need the very bank it stands at.
    """
    mean, banks = c.mean_segments, c.channels * c.banks
    closed = c.spec.dram.page_policy == "closed"
    around = (c.channels - 1.0) * c.step + 1.0
    opening = c.precharge + c.burst + c.recovery
    accesses = mean / trains
    long_accesses = accesses**2 if closed else np.maximum(c.rows.square @ c.size_share / trains, accesses**2)
    near = c.rows.within @ c.size_share > c.rows.across @ c.size_share
    area = c.miss_rate * opening**2 / 2
    opened = np.minimum(changes[1] * accesses, 1.0)
    for share, extra in ((opened, opening - c.burst), (1.0 - opened, 0.0)):
        area = area + trains * share * train_area(
            count=accesses,
            count_square=long_accesses,
            service=c.burst,
            spacing=request_gap * np.where(near, 1.0, around),
            first_extra=extra,
        )
    per_packet = 2 * trains + c.miss_rate
    work = 2 * mean * c.burst + changes.sum(axis=0) * mean * (opening - c.burst) + c.miss_rate * opening
    bus_intensity = rate * c.burst * (2 * mean + c.miss_rate) / c.channels * (1.0 - 1.0 / c.banks)
    turns = 1.0 - accesses / (2.0 * long_accesses)
    bus_wait = mean_work(
        train_rate=bus_intensity / c.burst,
        area=c.burst**2 * turns,
        intensity=bus_intensity,
        burst=burst_work(rate=rate, work=mean * c.burst / c.channels, arrival_scv=arrivals(bus_intensity)),
    )
    intensity = rate * work / banks
    others = rate * c.burst * (mean + c.miss_rate) / c.channels
    write_backlog, write_overlap = _write_backlog(c, rate, others, arrivals)
    return _Memory(
        visit_rate=rate * per_packet / banks,
        occupancy=work / per_packet,
        accesses=(2 * mean + c.miss_rate) / per_packet,
        intensity=intensity,
        bank_wait=mean_work(
            train_rate=rate / banks,
            area=area,
            intensity=intensity,
            burst=burst_work(rate=rate, work=work / banks / 2, arrival_scv=arrivals(intensity)),
        )
        + write_backlog / banks,
        bus_wait=bus_wait,
        bus_intensity=bus_intensity,
        write_bus_wait=mean_work(train_rate=others / c.burst, area=c.burst**2 * turns, intensity=others),
        write_others=others,
        write_backlog=write_backlog,
        write_overlap=write_overlap,
    )


def _write_backlog(c: Columns, rate: FloatArray, others: FloatArray, arrivals: Variability) -> tuple[FloatArray, FloatArray]:
    """Return the work of earlier packets' writes that a packet's writes find on their channel.

    The writes of successive packets follow one another through the address space: with a small
    step every packet leaves its part on all channels, a queue of its own; with a large one the
    packets of a chunk meet on one channel, a queue that starts empty with each chunk and takes
    all traffic until it ends. The larger of the two counts. Other accesses slow the channel.
    The second value is the work that later packets bring to that channel, per time.
    """
    mean = c.mean_segments
    burst = c.burst / np.maximum(1.0 - others, 1e-9)
    touched = np.minimum(c.channels[:, None], 1.0 + (c.segments - 1.0) / c.step[:, None])
    work = c.segments * burst[:, None] / touched
    square = work**2 @ c.size_share
    first = work @ c.size_share
    scv = square / first**2 - 1.0
    intensity = rate * first
    part = (touched @ c.size_share) / c.channels
    spread = mean_work(
        train_rate=rate * part,
        area=square / 2,
        intensity=intensity * part,
        burst=burst_work(rate=rate, work=first * part, arrival_scv=arrivals(np.minimum(intensity * part, 1.0))),
    )
    meet = first - (-np.expm1(-rate[:, None] * work) @ c.size_share) / rate
    terms = wait_terms(
        service_mean=first,
        service_scv=scv,
        gap_mean=1.0 / rate,
        gap_scv=arrivals(np.minimum(intensity, 1.0)),
        first=meet,
        limit=mean_work(train_rate=rate, area=square / 2, intensity=intensity),
        count=max(int(np.max(c.step / mean)), 2),
    )
    k = np.arange(1, len(terms) + 1)[:, None]
    together = (terms * np.maximum(1.0 - k * mean / c.step, 0.0)).sum(axis=0)
    next_together = np.where(c.channels > 1, np.maximum(part, 1.0 - mean / c.step), 1.0)
    return np.where(c.channels > 1, np.maximum(spread, together), spread), intensity * next_together


def _pointer(
    c: Columns, rate: FloatArray, trials: TrialResult, arrivals: Variability
) -> tuple[FloatArray, FloatArray]:
    """Return the pointer memory's traffic intensity and the work in front of it."""
    mean, square = c.mean_segments, c.square_segments
    time = c.pointer_time
    stored = trials.mean_accesses + c.enqueue_accesses
    enqueue = (c.enqueue_packet_accesses + mean * stored) * time
    dequeue = (c.dequeue_packet_accesses + mean * c.dequeue_accesses) * time
    variance = (square - mean**2) * (stored**2 + c.dequeue_accesses**2) + mean * trials.accesses_variance
    intensity = rate * (enqueue + dequeue)
    wait = mean_work(
        train_rate=rate,
        area=(enqueue**2 + dequeue**2 + variance * time**2) / 2,
        intensity=intensity,
        burst=burst_work(rate=rate, work=enqueue, arrival_scv=arrivals(intensity)),
    )
    return intensity, wait
