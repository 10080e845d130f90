"""Operations whose accesses cross on their way: what a write meets that was not there at its allocation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.networks.links import EngineState

PLACES = (np.arange(4) + 0.5) / 4.0
"""Parts of its way through a packet at which an access is followed."""


KINDS = range(3)
NEAR = 1
"""Writes: the first at its place, one right behind another of its packet, one a round behind it."""


class Crossings(NamedTuple):
    """Conflicts of a segment's write, mean, by what crosses it; one value per design."""

    reads: FloatArray  # reads
    # Part of these in which more reads of the same packet follow; they meet the writes as often.
    between: FloatArray
    lookups: FloatArray  # lookups of others
    writes: FloatArray  # writes of a packet stored after it, on another run; they meet these as often


class _Train(NamedTuple):
    """What comes to a place in one visit: ``number`` accesses ``gap`` apart, the first ``start`` late."""

    number: FloatArray
    gap: FloatArray
    start: FloatArray


def crossings(
    c: Columns,
    rate: FloatArray,
    engine: EngineState,
    *,
    port: FloatArray,
    read_busy: FloatArray,
    write_busy: FloatArray,
    each: FloatArray,
    near: FloatArray,
    held: FloatArray,
    allocation: FloatArray,
    segment_gap: FloatArray,
    request_gap: FloatArray,
) -> Crossings:
    r"""Return what writes meet on their way.

    ``port`` is the wait for a channel's port; ``read_busy`` and ``write_busy`` are how long a bank is busy
    with a read and a write that came to it, and ``each`` how much longer with one more read behind; ``near``
    and ``held`` are how much denser packets are just after a packet, and after a hold.

    The operation of a packet of n segments ends when the last of them is on its way. With gaps
    :math:`g_a` of allocations and :math:`g_w` of segments on an engine's link, a write that e others
    follow is at its bank :math:`n (g_w - g_a) - e g_w` and a constant later. An operation that
    begins in that time, and whose first access to the bank is fast enough, comes between; the waits at
    the two engines' links add a difference, taken as a Laplace variable, and two operations of one engine
    do not cross. It is a conflict if the bank is still busy with it: of a train of m accesses r
    apart, one must have come within the shorter of the time b for which it keeps the bank and the
    time since the packet's own last write there, for beginnings within :math:`b + (m - 1) \min(b, r)`.
    """
    n, visits = c.segments, c.rows.visits
    time = {name: value[:, None] for name, value in (("a", allocation), ("w", segment_gap))}
    last = n * (time["w"] - time["a"]) + time["a"] - time["w"] + (c.segment_time + port)[:, None]
    pointer = c.pointer_time[:, None]
    ready = (c.request_time + request_gap)[:, None] + c.dequeue_packet_accesses[:, None] * pointer
    span = np.minimum(c.walks.chunk[:, None] * np.maximum(visits - 1.0, 0.0), n * (1.0 - 1.0 / visits))
    # Writes by what came before them at their place: (number, latest place among n, time since then).
    kinds = (
        (visits, n - 1.0 - span, span, np.full_like(time["w"], np.inf)),
        (c.rows.within, np.zeros_like(span), n - 1.0 + 0.0 * span, time["w"]),
        (
            c.rows.across,
            np.zeros_like(span),
            np.maximum(n - c.around[:, None], 0.0),
            time["w"] * c.around[:, None],
        ),
    )
    own = _before_next(c, rate, n * time["a"] + c.enqueue_packet_accesses[:, None] * pointer)
    wait = np.maximum(np.nan_to_num(engine.inject_wait, posinf=1e9), 1e-6)
    scale = (wait * np.sqrt(2.0 / np.clip(engine.inject_intensity, 1e-3, 1.0) - 1.0))[:, None]
    other_engine = 1.0 - 1.0 / float(c.spec.noc.initiators)
    share = c.size_share / c.mean_segments
    per_packet = visits @ c.size_share

    def over(
        ahead: FloatArray, pace: FloatArray, busy: FloatArray, train: _Train | None, kind: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean over the segments of all packets, and the part between accesses of the train."""
        number, behind, way, before = kinds[kind]
        whole = split = np.zeros_like(number)
        for part in PLACES:
            window = ahead - (behind + part * way) * pace
            if train is None:
                whole = whole + _ahead(window, np.minimum(busy[:, None], before), 0.0, scale)
                continue
            gap = train.gap if kind != NEAR else np.maximum(train.gap, c.segment_time)
            queued = (train.number - 1.0) * np.maximum(each - gap, 0.0)
            least = np.minimum((busy + queued)[:, None], before)
            inside = (train.number - 1.0)[:, None] * np.minimum(least, gap[:, None])
            for place in PLACES:
                start = window - place * train.start[:, None]
                whole = whole + _ahead(start, least + inside, own, scale) / len(PLACES)
                split = split + _ahead(start, inside, own, scale) / len(PLACES)
        return (number * whole) @ share / len(PLACES), (number * split) @ share / len(PLACES)

    reads, writes = (_train(c, per_packet, gap) for gap in (request_gap, segment_gap))
    visits_of_reads = rate * held * other_engine * per_packet / c.places
    by_reads = [over(last - ready, time["w"], read_busy, reads, kind) for kind in KINDS]
    asked = rate * near * other_engine * c.miss_rate / c.places
    alone = last + time["a"] - c.request_time[:, None]
    stored = c.enqueue_packet_accesses[:, None] * pointer + time["a"] + (c.segment_time + port)[:, None]
    other_run = 1.0 - (1.0 - 1.0 / c.run_length) ** (c.square_segments / c.mean_segments)
    following = rate * near * other_engine * other_run * per_packet / c.places
    return Crossings(
        reads=visits_of_reads * sum(whole for whole, _ in by_reads),
        between=visits_of_reads * sum(split for _, split in by_reads),
        lookups=asked * sum(over(alone, time["w"] - time["a"], read_busy, None, kind)[0] for kind in KINDS),
        writes=following * sum(over(last - stored, time["w"], write_busy, writes, kind)[0] for kind in KINDS),
    )


def _before_next(c: Columns, rate: FloatArray, store: FloatArray) -> FloatArray:
    """Return the time in which as many reading operations come as are the next one after storing a packet.

    They come from its arrival at the pointer memory, in M/G/1, to the end of its own operation (``store``);
    only one is the next, and every other operation reads.
    """
    pointer = c.pointer_time[:, None]
    drain = (c.dequeue_packet_accesses[:, None] + c.segments * c.dequeue_accesses[:, None]) * pointer
    busy = np.minimum(rate * ((store + drain) @ c.size_share), 0.99)
    waits = rate * ((store**2 + drain**2) @ c.size_share) / 2.0 / (1.0 - busy)
    come = rate[:, None] * (waits[:, None] + store)
    return np.asarray(-np.expm1(-2.0 * come) / 2.0 / rate[:, None])


def _train(c: Columns, per_packet: FloatArray, gap: FloatArray) -> _Train:
    """Return the accesses of one packet to one place, mean over places."""
    near, far = c.rows.within @ c.size_share, c.rows.across @ c.size_share
    later = np.maximum(near + far, 1e-12)
    visits = c.rows.visits
    span = np.minimum(
        c.walks.chunk[:, None] * np.maximum(visits - 1.0, 0.0), c.segments * (1.0 - 1.0 / visits)
    )
    return _Train(
        number=c.mean_segments / per_packet,
        gap=gap * (near + far * c.around) / later,
        start=gap * ((span * visits) @ c.size_share) / per_packet,
    )


def _ahead(window: FloatArray, longest: FloatArray, own: FloatArray | float, scale: FloatArray) -> FloatArray:
    """Return the mean time in which an operation may come, with a Laplace difference of the ways.

    It begins at most ``window`` and not more than ``longest`` before that after the end of the packet's own
    operation; all that come while this one takes ``own`` begin at its end.
    """

    def part(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        tail = np.exp(-np.abs(x) / scale) / 2.0
        return np.maximum(x, 0.0) + scale * tail, np.where(x > 0, 1.0 - tail, tail)

    (late, begun), (early, over) = part(window), part(window - longest)
    return np.asarray(late - early + own * (begun - over))
