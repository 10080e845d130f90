"""Packets refused because the free list is too short."""

from __future__ import annotations

from math import ceil

import numpy as np

from qmodels._check import FloatArray
from qmodels.packet_processor.design import Columns
from qmodels.queues.erlang import kaufman_roberts

FAR = 12.0
LONGEST = 16384
PER_SCALE = 2


def blocking(c: Columns, capacity: FloatArray, stored: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probability that a packet, and that a segment, finds too few free blocks.

    A packet of n segments holds n blocks for its time in store: the loss link of Kaufman and
    Roberts, exact for Poisson packets whatever the law of that time. A list that holds twelve
    standard deviations more than the mean demand never overflows. A list of more than 16,384
    blocks that may overflow is computed in proportion as one of at most that many, which errs
    on the side of refusing. ``stored`` is the mean number of packets in store, finite; it and the
    capacity have one value per design.
    """
    packets = np.zeros_like(stored)
    segments = np.zeros_like(stored)
    demand = stored * c.mean_segments + FAR * (np.sqrt(stored * c.square_segments) + c.segments.max())
    close = demand > capacity
    for blocks in np.unique(capacity[close]):
        mine = close & (capacity == blocks)
        by_size = _by_size_at(c, int(blocks), stored[mine])
        packets[mine] = by_size @ c.size_share
        segments[mine] = by_size @ (c.size_share * c.segments / c.mean_segments)
    return packets, segments


def _by_size_at(c: Columns, capacity: int, jobs: FloatArray) -> FloatArray:
    """Return the blocking of each size, (designs, sizes), for designs with one capacity.

    Many designs whose demands lie close together share a table: blocking changes over a
    relative change of the demand of 1 / sqrt(capacity), which is resolved by `PER_SCALE` points.
    """
    distinct, which = np.unique(np.round(jobs, 6), return_inverse=True)
    width = 1.0 / np.sqrt(min(capacity, LONGEST)) / PER_SCALE
    points = int(np.log(distinct[-1] / distinct[0]) / width) + 4
    if points >= distinct.size:
        return _by_size(c, capacity, distinct)[which.reshape(-1)]
    from scipy.interpolate import CubicSpline

    table = np.geomspace(distinct[0], distinct[-1], points)
    known = np.log(np.maximum(_by_size(c, capacity, table), 1e-300))
    spline = CubicSpline(np.log(table), known)
    return np.minimum(np.exp(spline(np.log(jobs))), 1.0)


def _by_size(c: Columns, capacity: int, jobs: FloatArray) -> FloatArray:
    unit = ceil(capacity / LONGEST)
    return kaufman_roberts(
        servers=max(capacity // unit, 1),
        offered_load=jobs[:, None] * c.size_share / unit,
        units=c.segments.astype(int),
    )
