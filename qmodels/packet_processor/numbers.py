"""The numbers of each design that the kernels read: those of its columns that no rate changes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.packet_processor import link_waits as links
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.link_waits import NETWORK, network_columns

(
    MEAN, SQUARE, ENGINES, HELD_POWER, CLOSED, BEHIND, LAW, MISSES, LOOKUPS, HOLD, SEGMENT, REQUEST, CHANNELS,
    BANKS, PLACES, STEP, AROUND, BURST, OPENING, ROWS, TRAINS, LONG, SPACING, POINTER, ENQUEUE, DEQUEUE,
    ENQUEUE_PACKET, DEQUEUE_PACKET, SMALL, SMALL_PART, REQUEST_GAP, DRAIN_GAP, SLICES, SLICE_TIME, CUT,
    CUT_PACKET, OTHER_RUN, SAME, WRITE_NEAR, WRITE_NEAR_OWN, WRITE_FAR, WRITE_FAR_OWN, FAR_PACKETS, READ_NEAR,
    READ_FAR, NEIGHBOURS, IN_ROW, OWN_BEFORE, OWN_CUT, AGAIN, TRIALS, CHUNK, PACKETS,
    STORED, SHARE, ROW, FIRST_ROW, REQUESTS,
) = range(58)  # fmt: skip
"""Columns of a design; from ``REQUESTS`` on those of the network of requests, see `network_columns`, then
those of responses."""
RESPONSES = REQUESTS + NETWORK


class Shared(NamedTuple):
    """Numbers that the designs of a sweep share, and arrays of those that differ."""

    sizes: FloatArray  # segments of a packet, and the share of such packets, (2, sizes)
    density: FloatArray  # see `qmodels.packet_processor.trials.density`, (laws, scales)
    # start, links: of each group of designs alike the first of its links; share of the packets, probability
    # that another one follows, and weight of the wait of each link.
    start: IntArray
    links: FloatArray
    blocking: FloatArray  # see `qmodels.packet_processor.link_waits`
    # visits, starts: tables of the walks, (walks, arcs, kinds, points) and (walks, kinds, points).
    visits: FloatArray
    starts: FloatArray
    # arcs, reads: see `qmodels.packet_processor.trials.walk.TrialColumns`.
    arcs: FloatArray
    reads: FloatArray
    rows: FloatArray  # visits of a packet to rows, accesses within one and across, (designs, 3, sizes)


def numbers(c: Columns) -> tuple[FloatArray, Shared]:
    """Return the numbers of all designs, a row each, and what they share."""
    mean, share, rows, walks = c.mean_segments, c.size_share, c.rows, c.walks
    visits, within, across = (part @ share for part in (rows.visits, rows.within, rows.across))
    trains = np.full_like(visits, mean) if c.closed_pages else visits
    square = (mean / trains) ** 2
    if not c.closed_pages:
        square = np.maximum(rows.square @ share / trains, square)
    request_gap = np.maximum(c.dequeue_accesses * c.pointer_time, c.request_time)
    spread = np.minimum(c.channels, np.maximum(mean / c.step, 1.0))
    several, around, kept, engines = c.channels > 1, c.around, 1.0 - 1.0 / c.run_length, c.spec.noc.initiators
    touched = (c.touched @ share) / c.channels
    # The run of the free list leaves its row with a chunk, or several times inside one longer than a row.
    step = np.where(several, c.step, c.row_run)
    inside = np.maximum(step / c.row_run - 1.0, 0.0) / np.maximum(step - 1.0, 1.0)
    earlier, in_row = (c.square_segments / mean - 1.0) / 2.0, _run_blocks_in_row(c)
    leave = np.where(several, np.maximum(1.0 / c.step, 1.0 / c.bank_step), 1.0 / c.bank_step)
    requests, responses, links_of, start, blocking = network_columns(c)
    columns: list[Any] = [
        mean, c.square_segments, engines, (engines - 1.0) ** links.LAW.engines, c.closed_pages,
        c.memory is not None, c.density.law if c.density.law.size else 0.0, c.miss_rate, c.lookups, c.hold,
        c.segment_time, c.request_time, c.channels, c.banks, c.places, c.step, around, c.burst, c.opening,
        visits, trains, square, request_gap * np.where(within > across, 1.0, around), c.pointer_time,
        c.enqueue_accesses, c.dequeue_accesses, c.enqueue_packet_accesses, c.dequeue_packet_accesses, c.small,
        c.small_part, request_gap, np.maximum(request_gap, c.burst / spread), c.slices, c.slice_time,
        1.0 / c.run_length, np.minimum(mean / c.run_length, 1.0), 1.0 - kept ** (c.square_segments / mean),
        np.where(several, np.maximum(touched, 1.0 - mean / c.step), 1.0),
        kept * (1.0 - 1.0 / step) * (1.0 - inside), _same_packet(c, np.ones_like(around)),
        kept**around / step * (1.0 - np.minimum(step / c.row_run, 1.0)), _same_packet(c, around),
        1.0 + (around - 1.0) / mean, within / mean, across / mean,
        np.maximum(in_row / (mean / visits), 1.0), in_row, earlier, 1.0 - kept**earlier,
        kept * (1.0 - leave), c.trials, walks.chunk, walks.packets, walks.segments,
        walks.share, walks.row, walks.first, *requests, *responses,
    ]  # fmt: skip
    z = np.empty((c.channels.size, len(columns)))
    for number, column in enumerate(columns):
        z[:, number] = column
    shared = Shared(
        sizes=np.stack([c.segments, share]),
        density=np.stack(c.density.tables),
        start=start,
        links=links_of,
        blocking=blocking,
        visits=walks.visits,
        starts=walks.starts,
        arcs=np.ascontiguousarray(walks.arcs),
        reads=np.ascontiguousarray(walks.reads),
        rows=np.stack([rows.visits, rows.within, rows.across], axis=1),
    )
    return z, shared


def _same_packet(c: Columns, back: FloatArray) -> FloatArray:
    """Return the probability that the segment so many before a random one belongs to its packet."""
    return np.maximum(c.segments - back[:, None], 0.0) @ c.size_share / c.mean_segments


def _run_blocks_in_row(c: Columns) -> FloatArray:
    """Return the blocks a random block's run has in its row, mean.

    The j-th next block of the row is j blocks on in the run within a chunk, and j rounds' share
    of all channels beyond.
    """
    rows = c.row_run[:, None]
    j = np.arange(1.0, rows.max())
    beyond = np.minimum(j / c.step[:, None], 1.0)
    kept = (1.0 - 1.0 / c.run_length)[:, None]
    in_run = (1.0 - beyond) * kept**j + beyond * kept ** (j * c.channels[:, None])
    return np.asarray(1.0 + 2.0 * (np.maximum(1.0 - j / rows, 0.0) * in_run).sum(axis=1))
