"""Waits along a sample path of a trace's packets (Lindley), for every design of a sweep."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.numerics.tables import distinct, remembered
from qmodels.packet_processor.balance import Balance
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.following.recording import Rotation, replayed, rotation_of
from qmodels.packet_processor.link_waits import Paths, inner_links, paths_of

KINDS = 5
"""Waits of write, read, lookup, and for the pointer memory to store and to drain."""
TOP, LEVEL = 0.15, 0.99
"""Part of the packets, the slowest, among which the 99th percentile is looked for."""
MEMORY = 100_000_000
"""Runs that are kept for other designs. [bytes]"""
PILED_UP = 0.005
"""Packets piled up for each that arrived above which a trace is taken to overload a design in the end."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One stream followed through one design."""

    mean: FloatArray  # mean of each wait [ns]
    beyond: float  # pointer accesses of an allocation beyond one, of packets whose blocks are tried
    growth: float  # packets by which the number in the system grew in a rotation, for each that arrived
    rank: int  # packets above the 99th percentile
    top: FloatArray  # waits of the slowest packets
    sizes: IntArray  # their segments
    asks: npt.NDArray[np.bool_]  # whether their lookup goes to DRAM
    place: FloatArray  # where its blocks are, as values of a standard normal law, evenly spread
    weight: FloatArray | None  # packets that each of them stands for; None if each is itself


@remembered(MEMORY, lambda one: one.mean.nbytes + one.top.nbytes + 3 * one.sizes.nbytes)
def run(
    rotation: Rotation, paths: Paths, rate: float, hold: float, miss: float, numbers: tuple[float, ...]
) -> Run:
    """Follow a rotation at a packet rate, with holds of that mean; the numbers are those of `recursion`."""
    from qmodels.packet_processor.following import recursion as r

    stream = replayed(rotation, hold * rate)
    z, count = np.array(numbers), stream.times.size
    engine, egress, missed, channel, bank = stream.drawn
    places = np.stack([engine * z[1], egress * z[1], channel * z[0], bank * z[3]]).astype(np.int64)
    asks = missed < miss
    places[2, ~asks] = -1
    out = np.zeros((r.BEYOND + 1, count))
    inside = np.arange(stream.lead, count)
    inner = inner_links(paths.noc, int(z[0]))
    room = r.room(z, count, inner)
    r.follow(z, stream.times / rate, stream.segments, stream.hold * hold, places, inner, room, out)
    rounding = 16.0 * np.finfo(float).eps * float(stream.times[-1]) / rate
    out[: r.ALONE][out[: r.ALONE] < rounding] = 0.0
    growth = _growth(out[: r.BEYOND].sum(axis=0), stream.times / rate, stream.lead)
    late, doubles = stream.late(hold * rate)
    for kind in (r.READ, r.DRAIN):
        out[kind, late] = out[kind, doubles]
    weight = None if stream.weight is None else stream.weight[inside]
    tried = inside[stream.segments[inside] > z[r.SMALL]]
    segments = np.ones(count) if stream.weight is None else stream.weight
    segments = (segments * stream.segments)[tried]
    # Sums, since a product of vectors wakes all cores for each run, and every core has a run of its own.
    beyond = (out[r.BEYOND, tried] / stream.segments[tried] * segments).sum()
    beyond /= max(float(segments.sum()), 1e-300)
    mean = np.average(out[: r.ALONE, inside], axis=1, weights=weight)
    # Banks that take turns part packets that find the same work: each wait is as many waits for others,
    # exponential with the mean, as make it up on average.
    for k in (r.WRITE, r.READ):
        apart = np.sqrt(np.maximum(out[k], 0.0) * mean[k])
        out[k] = np.maximum(out[k] + apart * (stream.spread[k] - 1.0), 0.0)
    latency = out[: r.BEYOND].sum(axis=0) + asks * z[r.TABLE]
    slow = max(int(TOP * inside.size), min(inside.size, 200))
    total = float(inside.size if weight is None else weight.sum())
    if weight is None:
        at = np.argpartition(latency[inside], inside.size - slow)[inside.size - slow :]
    else:
        at = np.argsort(latency[inside])[::-1]
        at = at[: max(int(np.searchsorted(np.cumsum(weight[at]), TOP * total)), slow)]
    weight, at = None if weight is None else weight[at], inside[at]
    return Run(
        mean=mean,
        beyond=float(beyond),
        growth=growth,
        rank=int((1.0 - LEVEL) * total),
        top=out[: r.ALONE, at],
        sizes=stream.segments[at],
        asks=asks[at],
        place=_normal(count)[at],
        weight=weight,
    )


def _growth(latency: FloatArray, arrive: FloatArray, lead: int) -> float:
    """Return the growth of the number in the system, by Little's law, over rotations and for each packet.

    From the later half of the lead-in to the end of the last rotation, whose packets are the same.
    """
    some = lead // 2
    parts = slice(lead - some, lead), slice(latency.size - some, None)
    early, late = (latency[p].sum() / max(float(np.ptp(arrive[p])), 1e-9) if some > 1 else 0.0 for p in parts)
    return float(late - early) / (latency.size - lead)


@dataclass(frozen=True, kw_only=True, eq=False)
class Followed:
    """Runs of all designs."""

    mean: FloatArray  # mean waits, see `Run`
    beyond: FloatArray  # see `Run`
    growth: FloatArray  # see `Run`
    runs: list[tuple[Run, IntArray]]  # and the designs each belongs to

    def quantile(
        self,
        *,
        segments: FloatArray,
        fixed: FloatArray,
        varies: FloatArray,
        missed: FloatArray,
        factor: FloatArray,
    ) -> FloatArray:
        """Return the 99th percentile of the latency of every design.

        Parameters
        ----------
        segments : ndarray
            Segments of packets of each size.
        fixed, varies : ndarray, (designs, sizes)
            Latency without waits and without lookups in DRAM, and its standard deviation over places.
        missed : ndarray
            Time of a lookup in DRAM without waits.
        factor : ndarray, (5, designs)
            Of each wait.
        """
        found, of_sizes = np.full(missed.size, -np.inf), np.concatenate([factor.T, fixed, varies], axis=1)
        for one, designs in self.runs:
            size = (segments[:, None] == one.sizes).astype(float)
            parts = np.concatenate([one.top, size, size * one.place])
            latency = of_sizes[designs] @ parts + one.asks * missed[designs][:, None]
            few = min(one.rank + 1, one.sizes.size)
            at = np.argpartition(latency, latency.shape[1] - few, axis=1)[:, -few:]
            slowest = np.take_along_axis(latency, at, 1)
            if one.weight is None:
                found[designs] = slowest.min(axis=1)
                continue
            order = np.argsort(-slowest, axis=1)
            weight = np.take_along_axis(one.weight[at], order, 1)
            place = np.minimum((np.cumsum(weight, axis=1) <= one.rank).sum(axis=1), few - 1)
            slowest = np.take_along_axis(slowest, order, 1)
            found[designs] = np.take_along_axis(slowest, place[:, None], 1)[:, 0]
        return found


@lru_cache(maxsize=8)
def _normal(count: int) -> FloatArray:
    """Return values of a standard normal law for packets: a van der Corput sequence of the law."""
    from scipy.special import ndtri

    level, left, digit = np.zeros(count), np.arange(count), 0.5
    while left.any():
        level += digit * (left & 1)
        left, digit = left >> 1, digit / 2.0
    return np.asarray(ndtri(np.maximum(level, digit)))


def _runs(rotation: Rotation, paths: Paths, designs: list[list[float]]) -> list[Run]:
    """Return a run of each of some designs, of which every core follows its own."""

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")  # which is another one in each thread
    def follow(design: list[float]) -> Run:
        *numbers, rate, hold, miss = design
        return run(rotation, paths, rate, hold, miss, tuple(numbers))

    if len(designs) == 1:
        return [follow(designs[0])]
    from qmodels.packet_processor.following import recursion

    recursion.follow.expect_many()
    first, others = follow(designs[0]), designs[1:]  # which sees to it that the machine code is there
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [first, *pool.map(follow, others)]


def followed(c: Columns, point: Balance) -> Followed:
    """Follow the trace through every design that keeps up on average; the others have no waits."""
    rate, router = point.rate, c.spec.noc.router
    stream = rotation_of(c.spec.workload)
    paths = paths_of(c.spec.noc.structure)
    allocation = (1.0 + c.enqueue_accesses) * c.pointer_time
    touched = np.maximum(c.segments / np.maximum(c.touched, 1.0), 1.0)
    piece = ((touched**2 @ c.size_share) / (touched @ c.size_share) + 1.0) / 2.0 * c.burst
    # Lists that differ in no size of packets share a run.
    small = np.append(0.0, c.segments)[np.searchsorted(c.segments, c.small, side="right")]
    run_length = np.where(np.isfinite(c.run_length), np.maximum(np.round(c.run_length), 1.0), 0.0)
    opening, ones = c.precharge + c.recovery, np.ones_like(rate)
    share = np.minimum(c.miss_rate, 1.0)
    reads = rate * c.burst * (c.mean_segments + share) / c.channels
    idle = c.lookups * np.where(c.slices > 0, 2 * c.bus_time + c.slice_time, 0.0)
    table = c.access + c.burst + 2 * (c.segment_time + c.request_time)
    columns = np.stack(
        [
            c.channels, ones * float(c.spec.noc.initiators), c.step, c.banks, c.bank_step,
            ones if c.closed_pages else c.row_blocks, c.burst, c.segment_time, c.request_time,
            c.enqueue_packet_accesses * c.pointer_time, allocation,
            c.dequeue_packet_accesses * c.pointer_time, c.dequeue_accesses * c.pointer_time,
            c.pointer_time, small, np.minimum(reads, 0.95), piece,
            router.buffer_flits * (point.response.links - 1.0) * c.cycle_time, opening,
            idle, table, c.trials, point.request.pipeline + c.access, run_length,
            # Blocked heads are followed, late credits are not.
            point.request.used / point.request.peak if c.late_credits else ones,
            rate, c.hold, share,
        ]
    )  # fmt: skip
    mean, growth, beyond = np.zeros((KINDS, rate.size)), np.zeros_like(rate), np.zeros_like(rate)
    mine, found = np.flatnonzero(point.load < 1.0), []
    if mine.size:
        keys, at = distinct(columns[:, mine])
        runs = _runs(stream, paths, keys.T.tolist())
        mean[:, mine] = np.array([one.mean for one in runs]).T[:, at]
        growth[mine] = np.array([one.growth for one in runs])[at]
        beyond[mine] = np.array([one.beyond for one in runs])[at]
        order, ends = np.argsort(at, kind="stable"), np.cumsum(np.bincount(at))
        found = list(zip(runs, np.split(mine[order], ends[:-1]), strict=True))
    return Followed(mean=mean, beyond=beyond, growth=growth, runs=found)
