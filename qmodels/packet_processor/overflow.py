"""Packets refused because the free list is too short."""

from __future__ import annotations

from math import ceil

import numpy as np

from qmodels._check import FloatArray
from qmodels.packet_processor.design import Columns
from qmodels.queues.erlang import kaufman_roberts

FAR = 12.0
LONGEST = 16384


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
    if close.any():
        cases = np.stack([capacity, np.round(stored, 6)])[:, close]
        unique, inverse = np.unique(cases, axis=1, return_inverse=True)
        by_size = np.array([_by_size(c, int(blocks), jobs) for blocks, jobs in unique.T])[
            inverse.reshape(-1)
        ]
        packets[close] = by_size @ c.size_share
        segments[close] = by_size @ (c.size_share * c.segments / c.mean_segments)
    return packets, segments


def _by_size(c: Columns, capacity: int, jobs: float) -> FloatArray:
    unit = ceil(capacity / LONGEST)
    return kaufman_roberts(
        servers=max(capacity // unit, 1),
        offered_load=jobs * c.size_share / unit,
        units=c.segments.astype(int),
    )
