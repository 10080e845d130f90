"""Operations whose accesses cross on their way: what a write meets that was not there at its allocation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from qmodels.numerics.kernels import part
from qmodels.packet_processor.numbers import (
    AROUND,
    CHUNK,
    DEQUEUE,
    DEQUEUE_PACKET,
    ENGINES,
    ENQUEUE_PACKET,
    MEAN,
    MISSES,
    OTHER_RUN,
    PLACES,
    POINTER,
    REQUEST,
    REQUEST_GAP,
    ROWS,
    SEGMENT,
)  # fmt: skip

PLACES_ON_WAY = 4
"""Parts of its way through a packet, in the middle of which an access is followed."""
VISITS, WITHIN, ACROSS = range(3)
"""Writes: the first at its place, one right behind another of its packet, one a round behind it."""


@part
def crossings(
    rate: Any,
    z: Any,
    sizes: Any,
    rows: Any,
    near: Any,
    held: Any,
    wait: Any,
    intensity: Any,
    port: Any,
    allocation: Any,
    gap: Any,
    read_busy: Any,
    write_busy: Any,
    each: Any,
) -> Any:
    r"""Return conflicts of a segment's write, mean, by what crosses it on its way.

    Reads; the part of these in which more reads of the same packet follow, which meet the writes as often;
    lookups of others; writes of a packet stored after it, on another run, which meet these as often.

    ``near`` and ``held`` are how much denser packets are just after a packet, and after a hold; ``wait`` and
    ``intensity`` are those of an engine's link, ``port`` is the wait for a channel's port; ``read_busy`` and
    ``write_busy`` are how long a bank is busy with a read and a write that came to it, and ``each`` how much
    longer with one more read behind.

    The operation of a packet of n segments ends when the last of them is on its way. With gaps
    :math:`g_a` of allocations and :math:`g_w` of segments on an engine's link, a write that e others
    follow is at its bank :math:`n (g_w - g_a) - e g_w` and a constant later. An operation that
    begins in that time, and whose first access to the bank is fast enough, comes between; the waits at
    the two engines' links add a difference, taken as a Laplace variable, and two operations of one engine
    do not cross. It is a conflict if the bank is still busy with it: of a train of m accesses r
    apart, one must have come within the shorter of the time b for which it keeps the bank and the
    time since the packet's own last write there, for beginnings within :math:`b + (m - 1) \min(b, r)`.
    """
    a, w, constant = allocation, gap, z[SEGMENT] + port
    wait = max(wait if wait < 1e9 else 1e9, 1e-6)
    scale = wait * math.sqrt(2.0 / min(max(intensity, 1e-3), 1.0) - 1.0)
    number = z[MEAN] / z[ROWS]
    spacing, start = train(z, sizes, rows)
    ready = z[REQUEST] + z[REQUEST_GAP] + z[DEQUEUE_PACKET] * z[POINTER]
    stored = z[ENQUEUE_PACKET] * z[POINTER] + a + constant
    operations = waiting_operations(rate, z, sizes, a)
    reads, between, lookups, writes = 0.0, 0.0, 0.0, 0.0
    for s in range(sizes.shape[1]):
        n, share = sizes[0, s], sizes[1, s] / z[MEAN] / PLACES_ON_WAY
        last = n * (w - a) + a - w + constant
        span = visit_span(z, n, rows[VISITS, s])
        come = rate * (operations + n * a + z[ENQUEUE_PACKET] * z[POINTER])
        own = -math.expm1(-2.0 * come) / 2.0 / rate
        for kind in range(3):
            # Latest place among n, the way from there on, and the time since what came before at its place.
            behind, way, before = n - 1.0 - span, span, np.inf
            if kind == WITHIN:
                behind, way, before = 0.0, n - 1.0, w
            elif kind == ACROSS:
                behind, way, before = 0.0, max(n - z[AROUND], 0.0), w * z[AROUND]
            weight = rows[kind, s] * share
            if weight == 0.0:
                continue
            for k in range(PLACES_ON_WAY):
                place = behind + (k + 0.5) / PLACES_ON_WAY * way
                at = last - ready - place * w
                whole, split = over(
                    at, z, number, spacing, start, z[REQUEST_GAP], read_busy, each, before, own, scale, kind
                )
                reads, between = reads + weight * whole, between + weight * split
                if z[MISSES] > 0.0:
                    at = last + a - z[REQUEST] - place * (w - a)
                    lookups += weight * ahead(at, min(read_busy, before), 0.0, scale)
                at = last - stored - place * w
                whole, _ = over(at, z, number, spacing, start, w, write_busy, each, before, own, scale, kind)
                writes += weight * whole
    others = rate * (1.0 - 1.0 / z[ENGINES]) / z[PLACES]
    visits = others * z[ROWS]
    return (
        visits * held * reads,
        visits * held * between,
        others * near * z[MISSES] * lookups,
        visits * near * z[OTHER_RUN] * writes,
    )


@part
def over(
    window: Any,
    z: Any,
    number: Any,
    spacing: Any,
    start: Any,
    pace: Any,
    busy: Any,
    each: Any,
    before: Any,
    own: Any,
    scale: Any,
    kind: Any,
) -> Any:
    """Return the mean time in which trains of accesses cross, and the part of it between those of a train.

    In one visit ``number`` accesses come to a place ``spacing`` paces apart, the first ``start`` paces late.
    """
    gap = max(spacing * pace, z[SEGMENT]) if kind == WITHIN else spacing * pace
    least = min(busy + (number - 1.0) * max(each - gap, 0.0), before)
    inside = (number - 1.0) * min(least, gap)
    whole, split = 0.0, 0.0
    for k in range(PLACES_ON_WAY):
        begin = window - (k + 0.5) / PLACES_ON_WAY * start * pace
        whole += ahead(begin, least + inside, own, scale) / PLACES_ON_WAY
        split += ahead(begin, inside, own, scale) / PLACES_ON_WAY
    return whole, split


@part
def ahead(window: Any, longest: Any, own: Any, scale: Any) -> Any:
    """Return the mean time in which an operation may come, with a Laplace difference of the ways.

    It begins at most ``window`` and not more than ``longest`` before that after the end of the packet's own
    operation; all that come while this one takes ``own`` begin at its end.
    """
    late, begun = beyond(window, scale)
    early, over = beyond(window - longest, scale)
    return late - early + own * (begun - over)


@part
def beyond(x: Any, scale: Any) -> Any:
    """Return the mean of the positive part of x and the difference, and the probability that there is one."""
    tail = math.exp(-abs(x) / scale) / 2.0
    return max(x, 0.0) + scale * tail, 1.0 - tail if x > 0.0 else tail


@part
def visit_span(z: Any, n: Any, visits: Any) -> Any:
    """Segments, of the n of a packet, between the first and the last of its visits."""
    return min(z[CHUNK] * max(visits - 1.0, 0.0), n * (1.0 - 1.0 / visits))


@part
def train(z: Any, sizes: Any, rows: Any) -> Any:
    """Return the paces between the accesses of a packet to a place, mean, and those before the first one."""
    near, far, start = 0.0, 0.0, 0.0
    for s in range(sizes.shape[1]):
        near += rows[WITHIN, s] * sizes[1, s]
        far += rows[ACROSS, s] * sizes[1, s]
        start += visit_span(z, sizes[0, s], rows[VISITS, s]) * rows[VISITS, s] * sizes[1, s]
    return (near + far * z[AROUND]) / max(near + far, 1e-12), start / z[ROWS]


@part
def waiting_operations(rate: Any, z: Any, sizes: Any, allocation: Any) -> Any:
    """Return the wait at the pointer memory, in M/G/1, before the operation that stores a packet.

    As many reading operations come from the packet's arrival to the end of its own operation as are the next
    one after it; only one is the next, and every other operation reads.
    """
    mean, square = 0.0, 0.0
    for s in range(sizes.shape[1]):
        store = sizes[0, s] * allocation + z[ENQUEUE_PACKET] * z[POINTER]
        drain = (z[DEQUEUE_PACKET] + sizes[0, s] * z[DEQUEUE]) * z[POINTER]
        mean += (store + drain) * sizes[1, s]
        square += (store * store + drain * drain) * sizes[1, s]
    return rate * square / 2.0 / (1.0 - min(rate * mean, 0.99))
