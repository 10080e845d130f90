"""The operating point of a packet processor: traffic, conflicts and work found, at one packet rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qmodels.allocator import TrialResult
from qmodels.checks import FloatArray
from qmodels.packet_processor.balance import (
    Balance,
    balance,
    closed_trials,
    others_at_bank,
    pointer_work,
    returns,
)
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.memory import MemoryState, memory_state, uneven_loads
from qmodels.packet_processor.trials.conflicts import Conflicts, conflicts, trials
from qmodels.packet_processor.trials.rows import read_stream, write_stream
from qmodels.queues.general.paced import mean_work


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatingPoint(Balance):
    """State of every design at its packet rate; one value per design, times in ns, rates per ns."""

    # Allocation trials of a segment of a large packet; one of a small packet takes one access.
    trials: TrialResult
    # write_conflict, read_conflict: probability that a segment meets its bank busy with another row.
    write_conflict: FloatArray
    read_conflict: FloatArray
    memory: MemoryState  # banks and buses
    bank_busy: FloatArray  # probability that a bank is not idle
    # pointer_wait, slice_wait: work in front of the pointer memory, and of an LLC slice.
    pointer_wait: FloatArray
    slice_wait: FloatArray


def operate(c: Columns, rate: FloatArray) -> OperatingPoint:
    """Return the operating point of all designs at the given packet rates."""
    b = balance(c, rate)
    memory = memory_state(
        c, rate, uneven_loads(c, rate), trains=b.trains, changes=b.changes, request_gap=b.request_gap
    )
    held = np.where(np.isfinite(memory.held), memory.held, 1e9)
    met = (_closed_conflicts if c.closed_pages else _open_conflicts)(c, b, held)
    if c.memory is not None:
        met = _followed_conflicts(c, met, c.memory.at(rate))
    pointer_wait = _pointer_wait(c, rate, b, met.trials)
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
        pointer_wait=pointer_wait,
        slice_wait=np.where(c.slices > 0, slice_wait, 0.0),
    )


class _Met(NamedTuple):
    """Allocation trials, and the conflicts of writes of large and of small packets and of reads."""

    trials: TrialResult
    large: FloatArray
    small: FloatArray
    read: FloatArray


def _followed_conflicts(c: Columns, met: _Met, found: dict[str, FloatArray]) -> _Met:
    """Return conflicts behind controllers: those that were followed, of which trials avoid a part."""
    large = np.where(c.trials > 1, np.minimum(met.large, found["write_conflict"]), found["write_conflict"])
    return met._replace(large=large, read=found["read_conflict"])


def _closed_conflicts(c: Columns, b: Balance, held: FloatArray) -> _Met:
    """Return trials and conflicts with closed pages at banks held for such a time."""
    from_reads, from_all = others_at_bank(c, b.rate, b.trains)
    tried = closed_trials(c, b.blocked)
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
    from_reads, from_all = others_at_bank(c, b.rate, b.trains)
    parts = conflict_parts(c, b)
    others = from_all * b.crowd.held + b.rate * c.miss_rate * (b.crowd.asked - b.crowd.held) / c.places
    # Both lists' heads are busy: that of VMS3 is on a bank of the other half, which this packet has not used.
    small = np.minimum(np.expm1(-from_reads * held) ** 2 + parts.late, 1.0)
    met = read_stream(c, b.rate, b.request_gap).meets(others, held, own_too=False)
    return _Met(trials(c, b.rate, b.busy, b.crowd, b.allocation), parts.write, small, parts.read(met))


def conflict_parts(c: Columns, b: Balance) -> Conflicts:
    """Return the parts of the conflict probabilities with open pages."""
    return conflicts(
        c,
        b.rate,
        b.busy,
        b.crowd,
        b.engine,
        allocation=b.allocation,
        segment_gap=b.segment_gap,
        request_gap=b.request_gap,
    )


def _pointer_wait(c: Columns, rate: FloatArray, b: Balance, tried: TrialResult) -> FloatArray:
    """Return the work in front of the pointer memory at a random moment."""
    mean, time = c.mean_segments, c.pointer_time
    enqueue, dequeue = pointer_work(c, b.accesses)
    by_segment = np.where(c.is_small, 1.0, tried.mean_accesses[:, None]) + c.enqueue_accesses[:, None]
    stored, drained = (
        (work**2 @ c.size_share) - (work @ c.size_share) ** 2
        for work in (c.segments * by_segment, c.segments * c.dequeue_accesses[:, None] + returns(c))
    )
    variance = stored + drained + (1.0 - c.small_part) * mean * tried.accesses_variance
    area = (enqueue**2 + dequeue**2 + variance * time**2) / 2
    return np.asarray(mean_work(train_rate=rate, area=area, intensity=b.intensity["pointer memory"]))
