"""Waits of packets at the memory behind controllers, tabulated over its load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.numerics.tables import distinct
from qmodels.packet_processor.controller_stream import WARM_UP, Ends, Pace, Sample
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_system import DramSystem, RandomBlocks
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.traffic.arrivals import OnOff, modelled

LOADS = np.array([0.001, 0.01, 0.04, 0.12, 0.25, 0.45, 0.6, 0.7, 0.8, 0.9, 0.96])
"""Parts of its capacity at which the memory is followed."""
BUSY = 0.5
"""Load from which on it takes a sample that is `LONGER`, and so does the capacity."""
LONGER = 3
ROUNDS, NEARLY = 8, 0.01
"""Steps to the capacity, and by how much reads that are done may differ there from those that come."""
BACKLOG = 400
"""Packets whose reads wait while the capacity is measured: many, as when the memory is full."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Met:
    """Waits of packets; an array of loads each, or of loads and sizes. Times in ns."""

    # written, returned: from when the first write (read) of a packet is at the memory until the last is done
    # (its last segment delivered), by size, mean.
    written: Any
    returned: Any
    # written_variance, returned_variance: their variances.
    written_variance: Any
    returned_variance: Any
    # read, write, lookup, lookup_square: latency of single accesses, and second moment of that of lookups.
    read: Any
    write: Any
    lookup: Any
    lookup_square: Any
    # write_conflict, read_conflict, write_opened, read_opened: parts of the accesses of packets that meet a
    # conflict, and that open their row.
    write_conflict: Any
    read_conflict: Any
    write_opened: Any
    read_opened: Any


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """`Met` at `LOADS`, and the packets per ns that the memory carries."""

    met: Met
    capacity: float

    def at(self, rate: FloatArray) -> dict[str, FloatArray]:
        """Return waits at rates of packets per ns; beyond the last load as there.

        Interpolated after multiplication by the idle part, which takes the pole out of waits.
        """
        load = np.clip(rate / self.capacity, LOADS[0], LOADS[-1])
        above = np.clip(np.searchsorted(LOADS, load), 1, LOADS.size - 1)
        part = (load - LOADS[above - 1]) / (LOADS[above] - LOADS[above - 1])
        idle = 1.0 - LOADS
        found = {}
        for field in fields(Met):
            values = getattr(self.met, field.name)
            wide = (slice(None),) + (None,) * (values.ndim - 1)
            scaled = values * idle[wide]
            low, high = scaled[above - 1], scaled[above]
            found[field.name] = (low + part[wide] * (high - low)) / (1.0 - load)[wide]
        return found


@lru_cache(maxsize=256)
def table(sample: Sample, sizes: tuple[int, ...]) -> Table:
    """Return waits of packets of some sizes at the memory of a sample."""
    # Copies: what they draw is not kept with the key of this cache.
    shorter, longer, order = replace(sample), replace(sample, times=LONGER), np.array(sizes)
    capacity = _capacity(longer)
    each = []
    for load in LOADS:
        one = shorter if load < BUSY else longer
        each.append(_reduced(one, one.follow(load * capacity), order))
    names = [field.name for field in fields(Met)]
    return Table(
        met=Met(**{name: np.array([one[name] for one in each]) for name in names}), capacity=capacity
    )


def _capacity(sample: Sample) -> float:
    """Return the packets per ns at which a backlog of reads neither grows nor shrinks behind the writes."""
    g, t = sample.dram.geometry, sample.dram.timing
    mean = float(sample.segments.mean())
    rate = g.channels * t.clock_ghz / t.burst / (2 * mean + sample.pace.misses)
    reads = slice(int(sample.segments.sum()), None)
    ahead = min(BACKLOG, sample.segments.size // 4)  # of a short trace
    for _ in range(ROUNDS):
        ends = sample.follow(rate, ahead=ahead)
        # After the end the reads that were ahead are missing.
        window = (WARM_UP * ends.time, ends.time * (1.0 - ahead / sample.segments.size))
        came, left = (
            np.count_nonzero((x[reads] > window[0]) & (x[reads] <= window[1]))
            for x in (ends.arrival, ends.end)
        )
        rate *= (1.0 + left / came) / 2
        if abs(left - came) < NEARLY * came:
            break
    return rate


def _reduced(sample: Sample, ends: Ends, sizes: Any) -> dict[str, Any]:
    """Return means and variances of what is measured of a sample; the first accesses are left out."""
    segments = sample.segments
    total = int(segments.sum())
    counted = ends.arrival > WARM_UP * ends.time
    took = ends.end - ends.arrival
    write, read = slice(0, total), slice(total, 2 * total)
    lookups = took[2 * total :][counted[2 * total :]]
    lookups = lookups if lookups.size else took[read][counted[read]]
    first = np.cumsum(segments) - segments
    result = {
        "read": took[read][counted[read]].mean(),
        "write": took[write][counted[write]].mean(),
        "lookup": lookups.mean(),
        "lookup_square": (lookups**2).mean(),
        "write_conflict": ends.conflict[write][counted[write]].mean(),
        "read_conflict": ends.conflict[read][counted[read]].mean(),
        "write_opened": ends.opened[write][counted[write]].mean(),
        "read_opened": ends.opened[read][counted[read]].mean(),
    }
    for name, part, service in (("written", write, 0.0), ("returned", read, sample.pace.delivery)):
        start = ends.arrival[part][first]
        good = start > WARM_UP * ends.time
        moments = [_last(ends.end[part], first, segments, start, good, n, service) for n in sizes]
        result[name], result[f"{name}_variance"] = np.transpose(moments)
    return result


def _last(
    end: FloatArray, first: Any, segments: Any, start: FloatArray, good: Any, size: int, service: float
) -> tuple[float, float]:
    """Return mean and variance until the first so many accesses of a packet are done, and delivered.

    A link that delivers one after the other has done so at ``max_k (end_(k) + (n - k + 1) s)``. Packets of
    at least that size count: of their first segments the last is done as that of smaller ones.
    """
    long = good & (segments >= min(size, int(segments[good].max())))
    size = min(size, int(segments[long].min()))
    done = end[first[long][:, None] + np.arange(size)] - start[long][:, None]
    if service > 0:
        done = np.sort(done, axis=1) + service * np.arange(size, 0, -1)
    last = done.max(axis=1)
    return float(last.mean()), float(last.var())


DIGITS = 3
"""Decimals of a time in ns up to which designs share a table."""
MISSES = 20.0
"""Designs share a table if their misses of a packet agree to one over that."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Controlled:
    """The memory of each design."""

    tables: tuple[Table, ...]  # of the paces there are
    which: IntArray  # the table of each design

    @property
    def capacity(self) -> FloatArray:
        """Packets per ns that the memory of each design carries."""
        return np.array([one.capacity for one in self.tables])[self.which]

    def at(self, rate: FloatArray) -> dict[str, FloatArray]:
        """Return waits of packets at their rates, see `Met`; one row per design."""
        found: dict[str, FloatArray] = {}
        for number, one in enumerate(self.tables):
            mine = self.which == number
            if not mine.any():
                continue
            for name, value in one.at(rate[mine]).items():
                found.setdefault(name, np.empty((rate.size, *value.shape[1:])))[mine] = value
        return found


def check_controlled(spec: PacketProcessor) -> None:
    """Refuse what the model of a memory behind controllers does not take."""
    memory, arrivals = spec.dram, spec.workload.arrivals
    if not isinstance(memory, DramSystem):
        return
    if memory.scheduler == "in-order":
        raise ValueError(
            "dram.scheduler must be oldest-ready-first or fr-fcfs for the model of a packet processor (the "
            "simulator takes all), got 'in-order'"
        )
    trials = int(np.max(spec.free_list.alloc_trial_count))
    if memory.page_policy == "closed" and trials > 1:
        raise ValueError(
            "free_list.alloc_trial_count must be 1 with closed pages of a DramSystem for the model, whose "
            f"latency is up to four times too high otherwise (the simulator takes all), got {trials}"
        )
    if not isinstance(memory.address_map, Interleaved):
        raise ValueError(
            "dram.address_map must be Interleaved for the model of a packet processor (the simulator takes "
            f"all), got {type(memory.address_map).__name__}"
        )
    if isinstance(arrivals, OnOff) and np.ndim(arrivals.on_packets) + np.ndim(arrivals.peak_to_mean):
        raise ValueError(
            "workload.arrivals must have one number in each field with a DramSystem, got an array"
        )


def controlled(
    spec: PacketProcessor, flat: Mapping[str, FloatArray], misses: FloatArray
) -> Controlled | None:
    """Return the memories of designs whose columns are given; None of a `Dram`.

    ``flat``: columns by name, see `qmodels.packet_processor.design.Columns`; ``misses``: lookups of a packet
    that go to DRAM.
    """
    if not isinstance(spec.dram, DramSystem):
        return None
    paces = np.stack(
        [
            np.maximum((1.0 + flat["enqueue_accesses"]) * flat["pointer_time"], flat["segment_time"]),
            np.maximum(flat["dequeue_accesses"] * flat["pointer_time"], flat["request_time"]),
            flat["segment_time"],
            np.round(misses * MISSES) / MISSES,
            flat["hold"],
            flat["enqueue_packet_accesses"] * flat["pointer_time"],
            flat["dequeue_packet_accesses"] * flat["pointer_time"],
            (1.0 + flat["enqueue_accesses"]) * flat["pointer_time"],
            flat["dequeue_accesses"] * flat["pointer_time"],
            flat["run_length"],
        ]
    ).round(DIGITS)
    keys, which = distinct(paces)
    memory = replace(spec.dram, traffic=RandomBlocks())
    load = spec.workload
    workload = type(load)(
        arrivals=modelled("workload.arrivals", load.arrivals),
        sizes=load.sizes,
        segment_bytes=load.segment_bytes,
    )
    sizes = tuple(int(size) for size in load.segment_law[0])
    blocks = float(np.max(spec.free_list.segments))
    tables = [
        table(
            Sample(dram=memory, workload=workload, blocks=blocks, run_length=float(run), pace=Pace(*pace)),
            sizes,
        )
        for *pace, run in keys.T.tolist()
    ]
    return Controlled(tables=tuple(tables), which=which)
