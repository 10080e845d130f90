"""The packets of a recorded trace that a model follows: one rotation of periodic traffic.

Nothing depends on the packet that a recording begins with: what is drawn for a packet follows from the
packets around it, and a rotation is followed from where a queue is empty at any load.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.traffic.arrivals import Packets, Recorded, Workload
from qmodels.systems.traffic.sizes import segment_count
from qmodels.systems.traffic.trace import Trace

SEED = 11
"""Of what is drawn for each packet of a trace."""
WINDOWS, ERRORS = 512, 2.0
"""Most windows in which a trace's load is looked at, and the standard errors that it has to exceed 1 by."""
HOLDS = 5.0
"""Mean holds until the store is filled, and as many reads come as writes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Packets in the order of their arrival, and what is drawn for each; equal only to itself."""

    times: FloatArray  # arrival times [mean gaps]
    segments: IntArray  # segments
    drawn: FloatArray  # uniform numbers: engine, egress, whether a lookup misses, its channel, its bank
    hold: FloatArray  # holds [mean hold]
    spread: FloatArray  # exponential numbers of mean 1, for the writes and for the reads


def overloaded(stream: Stream, load: FloatArray, hold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the part of the time in which a trace offers more than a design carries, and the backlog.

    Looked at in windows of `HOLDS` mean holds, in which writes have become reads, a hold being given in
    mean gaps; the backlog is the most work that the windows leave undone on the way, as time of the
    fullest resource [mean gaps].
    """
    part, worst = np.zeros_like(load), np.zeros_like(load)
    end = float(stream.times[-1])
    for mean in np.unique(hold):
        count = max(int(end / max(HOLDS * mean, end / WINDOWS)), 1) if end > 0 else 1
        mine = hold == mean
        window = np.minimum((stream.times / max(end, 1e-300) * count).astype(np.int64), count - 1)
        work = np.bincount(window, weights=stream.segments, minlength=count)
        each = stream.segments.size / count
        square = float((stream.segments.astype(float) ** 2).mean() / stream.segments.mean() ** 2)
        offered = load[mine] * (work / work.mean())[:, None]
        part[mine] = (offered > 1.0 + ERRORS * np.sqrt(square / each)).mean(axis=0)
        left = np.zeros(offered.shape[1])
        for now in offered:
            left = np.maximum(left + (now - 1.0) * end / count, 0.0)
            worst[mine] = np.maximum(worst[mine], left)
    return part, np.where(part > 0, worst, 0.0)


Keys = npt.NDArray[np.uint64]

ENOUGH, LONGEST = 12_000, 64_000
"""Packets up to which a rotation is followed several times, each with other holds and engines, and beyond
which a part of it is followed."""
LEAST_LEAD = 500
"""Packets that are followed before those that are measured, if the rotation has them."""
AROUND = 8
"""Packets on each side of one from which its number is made."""
GAP_STEPS = 16.0
"""Steps in which a gap doubles that are told apart there: far coarser than the rounding of times."""
BLOCK, LOAD = 500, 0.7
"""Packets of the blocks of which some are followed, and load of the server that is idle between them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rotation(Stream):
    """A trace from the packet before which a queue is empty at any load; times begin with 0."""

    bytes: IntArray  # sizes [bytes]
    keys: Keys  # random numbers of 64 bits, one for each packet
    picked: IntArray  # the packets that are followed, in order
    weight: FloatArray  # packets that each of them stands for
    doubt: str  # how well those stand for all; empty where they are all

    def sample(self, count: int) -> Packets:
        """Return consecutive packets from one of them by chance on, at most all, at one a ns on average."""
        which = int(np.argmin(self.keys)) + np.arange(min(count, self.times.size))
        turn, at = np.divmod(which, self.times.size)
        times = self.times[at] + turn * float(self.times.size)
        return Packets(times_ns=times - times[0], bytes=self.bytes[at], segments=self.segments[at])


@dataclass(frozen=True, kw_only=True, eq=False)
class Replayed(Stream):
    """Rotations in a row, led in by the end of the last one."""

    lead: int  # packets of the lead-in
    weight: FloatArray | None  # what each packet counts, the lead-in's included; None if all count the same

    def late(self, hold: float) -> tuple[IntArray, IntArray]:
        """Return the packets that are read after the end, beside fewer than they would be, and their doubles.

        Only those that the lead-in has as well, where they are read as they would be.
        """
        count = self.times.size - self.lead
        again = np.arange(count, self.times.size)
        end = self.times[-1] + self.times[self.lead] - self.times[self.lead - 1]
        late = again[self.times[again] + hold * self.hold[again] > end]
        return late, late - count


def rotation_of(workload: Workload) -> Rotation:
    """Return the rotation of a workload whose arrivals are a trace."""
    arrivals = workload.arrivals
    assert isinstance(arrivals, Recorded)
    return rotation(arrivals.trace, int(workload.segment_bytes))


@lru_cache(maxsize=16)
def rotation(trace: Trace, segment_bytes: int) -> Rotation:
    """Return the rotation of a trace, in which a mean gap parts the last packet from the first."""
    segments = segment_count(trace.bytes, segment_bytes)
    times = trace.times_ns * trace.packet_rate
    # Before no other packet has come as much less work than time has passed, at equal mean rates.
    before = (np.cumsum(segments) - segments) * (times.size / segments.sum())
    first = int(np.argmin(before - times))
    gaps = np.roll(np.append(1.0, np.diff(times)), -first)
    segments, sizes = np.roll(segments, -first), np.roll(trace.bytes, -first)
    keys = _keys(sizes, gaps / trace.packet_rate)
    picked, weight, doubt = np.arange(times.size), np.ones(times.size), ""
    if times.size > LONGEST:
        work = LOAD * segments / segments.mean()
        waits = _waits(gaps, work)
        picked, weight = _picked(waits, keys)
        doubt = _doubt(_waits(gaps[picked], work[picked]), weight, waits)
    return Rotation(
        times=np.append(0.0, np.cumsum(gaps[1:])),
        segments=segments,
        bytes=sizes,
        **_drawn(keys),
        keys=keys,
        picked=picked,
        weight=weight,
        doubt=doubt,
    )


def _waits(gaps: FloatArray, work: FloatArray) -> FloatArray:
    """Return the waits at one server that begins empty, by Lindley's recursion [mean gaps]."""
    change = np.append(0.0, work[:-1] - gaps[1:])
    total = np.cumsum(change)
    return np.asarray(total - np.minimum.accumulate(total))


def _picked(waits: FloatArray, keys: Keys) -> tuple[IntArray, FloatArray]:
    """Return the packets that are followed where they cannot all be, and what each of them counts.

    All of the blocks with the longest waits, as many as half of them, and of the others every so many'th in
    the order of their waits. Blocks begin at packets that a server finds idle, at some of them by chance.
    """
    idle = waits == 0.0
    apart = 2 ** max(round(np.log2(BLOCK * idle.mean())), 0)
    begin = np.flatnonzero(idle & (keys % np.uint64(apart) == 0))
    begin = np.unique(np.concatenate([[0], begin, np.arange(0, keys.size, LONGEST // 4)]))
    sizes = np.diff(np.append(begin, keys.size))
    order = np.argsort(-np.add.reduceat(waits, begin) / sizes, kind="stable")
    whole = int(np.searchsorted(np.cumsum(sizes[order]), LONGEST // 2, side="right"))
    rest = order[whole:]
    each = -(-int(sizes[rest].sum()) // (LONGEST // 2))
    sampled = rest[each // 2 :: each]
    weight = np.zeros(begin.size)
    weight[order[:whole]] = 1.0
    weight[sampled] = sizes[rest].sum() / sizes[sampled].sum()
    of_packets = np.repeat(weight, sizes)
    picked = np.flatnonzero(of_packets)
    return picked, of_packets[picked]


def _doubt(some: FloatArray, weight: FloatArray, every: FloatArray) -> str:
    """Uncertainty of the waits of the packets that are followed, in words."""
    order = np.argsort(-some)
    place = int(np.searchsorted(np.cumsum(weight[order]), 0.01 * every.size))
    mean = np.average(some, weights=weight) / every.mean() - 1.0
    tail = some[order[min(place, some.size - 1)]] / max(float(np.quantile(every, 0.99)), 1e-9) - 1.0
    return (
        f"{some.size} of the trace's {every.size} packets are followed: at a server with a load of "
        f"{LOAD:.0%} their waits are {mean:+.1%} (mean) and {tail:+.1%} (99th percentile) off"
    )


def replayed(stream: Rotation, hold: float) -> Replayed:
    """Part of a rotation that is followed, with holds of that mean [mean gaps]."""
    rounds = max(1, -(-ENOUGH // stream.times.size))
    return _replayed(
        stream, rounds, min(int(np.ceil(HOLDS * hold)) + LEAST_LEAD, rounds * stream.picked.size)
    )


@lru_cache(maxsize=8)
def _replayed(stream: Rotation, rounds: int, lead: int) -> Replayed:
    size = stream.picked.size
    which = np.arange(-lead, rounds * size) % (rounds * size)
    at = stream.picked[which % size]
    # In front of a block that is followed without the one before it a server is idle.
    gaps = np.append(stream.times.size - stream.times[-1], np.diff(stream.times))
    keys = [stream.keys if k == 0 else _mixed(stream.keys + np.uint64(k)) for k in range(rounds)]
    return Replayed(
        times=np.cumsum(gaps[at]),
        segments=stream.segments[at],
        **_drawn(np.concatenate([one[stream.picked] for one in keys])[which]),
        lead=lead,
        weight=None if size == stream.times.size else stream.weight[which % size],
    )


def _drawn(keys: Keys) -> dict[str, FloatArray]:
    """Random draws for packets of these keys: see `Stream`."""
    uniform = np.stack([_uniform(keys, k) for k in range(8)])
    exponential = -np.log1p(-uniform[5:])
    return {"drawn": uniform[:5], "hold": exponential[0], "spread": exponential[1:]}


def _uniform(keys: Keys, number: int) -> FloatArray:
    """Return one of the uniform numbers that belong to each key, in [0, 1)."""
    mixed = _mixed(keys + np.uint64((number + 1) * 0x9E3779B97F4A7C15 % 2**64))
    return (mixed >> np.uint64(11)).astype(float) * 2.0**-53


def _mixed(x: Keys) -> Keys:
    """Return the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _keys(sizes: IntArray, gaps_ns: FloatArray) -> Keys:
    """Return a number for each packet, made from the sizes and gaps around it; equal ones are counted."""
    steps = np.round(GAP_STEPS * np.log2(np.maximum(gaps_ns, 1e-3))).astype(np.int64)
    own = _mixed(_mixed(sizes.astype(np.uint64) + np.uint64(SEED << 32)) + steps.astype(np.uint64))
    keys = np.zeros_like(own)
    for k in range(-AROUND, AROUND + 1):
        keys = _mixed(keys + np.roll(own, k))
    _, kind = np.unique(keys, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    first = np.searchsorted(kind[order], np.arange(kind.max() + 1))
    again = np.empty(keys.size, dtype=np.int64)
    again[order] = np.arange(keys.size) - first[kind[order]]
    return _mixed(keys + again.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
