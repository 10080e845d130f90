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


def blocking(
    c: Columns, *, small: FloatArray, own: FloatArray, others: FloatArray, stored: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the probability that a packet, and that a segment, finds too few free blocks.

    A packet of n segments holds n blocks for its time in store: the loss link of Kaufman and
    Roberts, exact for Poisson packets whatever the law of that time. Packets of up to ``small``
    segments share the ``others`` blocks, larger ones have their ``own``. Lists that hold twelve
    standard deviations more than the mean demand never overflow. Lists of more than 16,384
    blocks that may overflow are computed in proportion as one of at most that many, which errs
    on the side of refusing. ``stored`` is the mean number of packets in store, finite; all have
    one value per design.
    """
    packets = np.zeros_like(stored)
    segments = np.zeros_like(stored)
    for most in np.unique(small):
        for chosen, capacity in ((c.segments > most, own), (c.segments <= most, others)):
            share = np.where(chosen, c.size_share, 0.0)
            mean, square = share @ c.segments, share @ c.segments**2
            demand = stored * mean + FAR * (np.sqrt(stored * square) + np.max(c.segments * chosen))
            close = (small == most) & (demand > capacity)
            if not chosen.any():
                continue
            for blocks in np.unique(capacity[close]):
                mine = close & (capacity == blocks)
                by_size = _by_size_at(c.segments[chosen], share[chosen], int(blocks), stored[mine])
                packets[mine] += by_size @ share[chosen]
                segments[mine] += by_size @ (share * c.segments)[chosen] / c.mean_segments
    return packets, segments


def _by_size_at(segments: FloatArray, share: FloatArray, capacity: int, jobs: FloatArray) -> FloatArray:
    """Return the blocking of each size, (designs, sizes), for designs with one capacity.

    Many designs whose demands lie close together share a table: blocking changes over a
    relative change of the demand of 1 / sqrt(capacity), which is resolved by `PER_SCALE` points.
    """
    if capacity == 0:
        return np.ones((jobs.size, segments.size))
    distinct, which = np.unique(np.round(jobs, 6), return_inverse=True)
    width = 1.0 / np.sqrt(min(capacity, LONGEST)) / PER_SCALE
    points = int(np.log(distinct[-1] / distinct[0]) / width) + 4 if distinct[0] > 0 else distinct.size
    if points >= distinct.size:
        return _by_size(segments, share, capacity, distinct)[which.reshape(-1)]
    from scipy.interpolate import CubicSpline

    table = np.geomspace(distinct[0], distinct[-1], points)
    known = np.log(np.maximum(_by_size(segments, share, capacity, table), 1e-300))
    spline = CubicSpline(np.log(table), known)
    return np.minimum(np.exp(spline(np.log(jobs))), 1.0)


def _by_size(segments: FloatArray, share: FloatArray, capacity: int, jobs: FloatArray) -> FloatArray:
    unit = ceil(capacity / LONGEST)
    return kaufman_roberts(
        servers=max(capacity // unit, 1),
        offered_load=jobs[:, None] * share / unit,
        units=segments.astype(int),
    )
