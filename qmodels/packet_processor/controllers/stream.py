"""Sample of the accesses of packets to the channels of a `DramSystem`, followed at any rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.packet_processor.controllers.recursion import follow, numbers
from qmodels.packet_processor.following.recording import rotation
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.workload import Workload

ACCESSES, FEWEST = 40_000, 3_000
"""Accesses of a sample, about, and its fewest packets."""
SEED = 1
"""Of all that is drawn for a sample."""
WARM_UP = 0.2
"""Part of the time of a sample that is not measured."""
TABLE_ROWS = 1 << 40
"""Rows of table entries begin here, apart from those of blocks."""


class Pace(NamedTuple):
    """Order of the accesses of a packet; times in ns."""

    # write_gap, request_gap: between its writes, and between its reads.
    write_gap: float
    request_gap: float
    delivery: float  # time of one of its segments on the last link
    misses: float  # lookups of a packet that go to DRAM
    hold: float  # mean time between its writes and its reads
    # store, drain: time of the pointer memory to store and to drain a packet, without its segments.
    store: float
    drain: float
    # store_segment, drain_segment: and for each of its segments.
    store_segment: float
    drain_segment: float


class Ends(NamedTuple):
    """When the accesses of a sample came and ended, each flat. [ns]."""

    arrival: FloatArray
    end: FloatArray
    conflict: Any
    opened: Any
    time: float


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Packets whose accesses are followed; the same ones for every rate.

    Packets take consecutive blocks of runs that begin anywhere, are written at their pace, and are read
    an exponential hold later, one packet after the other as the pointer memory has it; times go round, so
    that the sample is stationary. Trials are left out: blocks are taken as they come.
    """

    dram: DramSystem  # the memory
    workload: Workload  # packets, in which rates do not matter
    # blocks, run_length: blocks of the free list, and mean length of the runs in which they are taken.
    blocks: float
    run_length: float
    pace: Pace  # how a packet's accesses follow one another
    times: int = 1  # how many times as large the sample is as others

    @cached_property
    def packets(self) -> Any:
        """The realised packets, at one packet a ns."""
        rng = np.random.default_rng([SEED, 0])
        mean = float(np.dot(*self.workload.segment_law))
        count = self.times * max(FEWEST, int(ACCESSES / (2 * mean + self.pace.misses)))
        if isinstance(self.workload.arrivals, Recorded):
            return rotation(self.workload.arrivals.trace, int(self.workload.segment_bytes)).sample(count)
        one = 8 * self.workload.sizes.mean_bytes
        return replace(self.workload, offered_gbps=one, load_factor=1.0).packets(rng, count)

    @cached_property
    def _drawn(self) -> dict[str, Any]:
        """Everything that does not depend on the rate: packets of the accesses, places, holds."""
        rng = np.random.default_rng([SEED, 1])
        sizes, count = self.packets.segments, self.packets.segments.size
        packet = np.repeat(np.arange(count), sizes)
        within = np.arange(packet.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        block = self._blocks(packet.size, rng)
        places = self.dram.address_map.locate(block, self.dram.geometry)
        channel, bank, row = (np.broadcast_to(part, block.shape) for part in places[:3])
        misses = np.floor(self.pace.misses + rng.random(count)).astype(np.int64)
        asking = np.repeat(np.arange(count), misses)
        g = self.dram.geometry
        return {
            "packet": packet,
            "within": within,
            "hold": rng.exponential(size=count),
            "asking": asking,
            "channel": np.concatenate([channel, channel, rng.integers(g.channels, size=asking.size)]),
            "bank": np.concatenate([bank, bank, rng.integers(g.channel_banks, size=asking.size)]),
            "row": np.concatenate([row, row, TABLE_ROWS + np.arange(asking.size)]),
            "write": np.repeat([1, 0, 0], [packet.size, packet.size, asking.size]),
        }

    def _blocks(self, count: int, rng: np.random.Generator) -> IntArray:
        """Return so many blocks in the order in which they are taken."""
        fresh = rng.random(count) < (1.0 / self.run_length if np.isfinite(self.run_length) else 0.0)
        fresh[0] = True
        first = np.flatnonzero(fresh)
        start = rng.integers(int(self.blocks), size=first.size)
        run = np.cumsum(fresh) - 1
        return np.asarray((start[run] + np.arange(count) - first[run]) % int(self.blocks), dtype=np.int64)

    @property
    def segments(self) -> IntArray:
        """Segments of each packet."""
        return np.asarray(self.packets.segments)

    def follow(self, rate: float, *, ahead: int = 0) -> Ends:
        """Return waits of writes, reads and lookups, in that order, at a rate of packets per ns.

        With ``ahead`` nothing is held, and reads are so many packets ahead of writes: those of the first
        ones wait when it begins.
        """
        d, pace, n = self._drawn, self.pace, numbers(self.dram)
        time = (self.packets.times_ns[-1] + 1.0) / rate
        begin = self.packets.times_ns / rate
        written = begin + self.segments * pace.write_gap + self._alone
        if ahead:
            read = np.concatenate([np.zeros(ahead), begin[: begin.size - ahead]])
        else:
            begin, read = self._through_pointers(begin, (written + d["hold"] * pace.hold) % time)
        arrival = np.concatenate(
            [
                begin[d["packet"]] + d["within"] * pace.write_gap,
                read[d["packet"]] + d["within"] * pace.request_gap,
                begin[d["asking"]],
            ]
        )
        ghz = self.dram.clock_ghz
        cycle = np.floor(arrival * ghz).astype(np.int64)
        ends, busy, opened = np.zeros(cycle.size, dtype=np.int64), *np.zeros((2, cycle.size), dtype=bool)
        order = np.lexsort((np.arange(cycle.size), cycle, d["channel"]))
        edges = np.searchsorted(d["channel"][order], np.arange(self.dram.geometry.channels + 1))
        for low, high in zip(edges[:-1], edges[1:], strict=True):
            here = order[low:high]
            one = (d[name][here] for name in ("bank", "row", "write"))
            ends[here], busy[here], opened[here] = follow(n, cycle[here], *one)
        return Ends(arrival, arrival + (ends - cycle) / ghz, busy, opened, time)

    def _through_pointers(self, store: FloatArray, drain: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return when the pointer memory begins with packets that come to be stored and to be drained."""
        pace, coming = self.pace, np.concatenate([store, drain])
        order = np.argsort(coming, kind="stable")
        work = np.concatenate(
            [pace.store + self.segments * pace.store_segment, pace.drain + self.segments * pace.drain_segment]
        )[order]
        done = np.cumsum(work)
        started = np.empty(coming.size)
        started[order] = done - work + np.maximum.accumulate(coming[order] - (done - work))
        return started[: store.size], started[store.size :]

    @property
    def _alone(self) -> float:
        """Time of a write in an idle memory, about. [ns]."""
        t = self.dram.timing
        return (self.dram.controller_cycles + t.t_rcd + t.cwl + t.burst) / t.clock_ghz
