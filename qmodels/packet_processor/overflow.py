"""Packets refused because the free list is too short."""

from __future__ import annotations

from functools import lru_cache
from math import ceil

import numpy as np

from qmodels.checks import FloatArray
from qmodels.packet_processor.design import Columns
from qmodels.queues.markovian.erlang import kaufman_roberts

FAR = 12.0
LONGEST = 16384
PER_SCALE = 2
KEPT, ROW = 100_000, 32
"""Numbers of a table that are kept for the next designs; a row takes as much memory as some more."""
NEIGHBOURS = np.arange(-3.0, 5.0)
"""Points of the table a design is read off, counted from the one below it."""


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
                by_size = blocked_by_size(c.segments[chosen], share[chosen], int(blocks), stored[mine])
                packets[mine] += by_size @ share[chosen]
                segments[mine] += by_size @ (share * c.segments)[chosen] / c.mean_segments
    return packets, segments


def blocked_by_size(segments: FloatArray, share: FloatArray, capacity: int, jobs: FloatArray) -> FloatArray:
    """Return the blocking of each size, (designs, sizes), for designs with one capacity.

    ``segments``, ``share``: blocks of each size of packets, and the share of each in the packets; ``jobs``:
    packets of all sizes that would be in store without a limit, mean, of each design.

    Exact by `qmodels.queues.markovian.erlang.kaufman_roberts`, lists of more than `LONGEST` blocks in
    proportion. Many designs whose demands lie close together share a table: blocking changes over a
    relative change of the demand of 1 / sqrt(capacity), which is resolved by `PER_SCALE` points.
    The points are fixed and each design is read off those around it, alone as in a sweep. Demands that
    leave `FAR` standard deviations free block nobody.
    """
    blocked = np.ones((jobs.size, segments.size))
    if capacity == 0:
        return blocked
    # Nothing in store, or far from full: refused is only what never fits.
    blocked[:] = segments > capacity
    demand = jobs * (share @ segments) + FAR * (np.sqrt(jobs * (share @ segments**2)) + segments.max())
    some = (jobs > 0) & (demand > capacity)
    if not some.any():
        return blocked
    place = np.log(jobs[some]) * np.sqrt(min(capacity, LONGEST)) * PER_SCALE
    around = np.floor(place)[:, None] + NEIGHBOURS
    points, which = np.unique(around, return_inverse=True)
    known = _logarithms(tuple(segments.tolist()), tuple(share.tolist()), capacity, points)
    known = known[which.reshape(around.shape)]
    weight = _lagrange(place - np.floor(place))
    blocked[some] = np.minimum(np.exp(np.einsum("dk,dkn->dn", weight, known)), 1.0)
    return blocked


def _lagrange(part: FloatArray) -> FloatArray:
    """Return the weights of the values at `NEIGHBOURS` in the polynomial through them, at parts of a step."""
    other = ~np.eye(NEIGHBOURS.size, dtype=bool)
    apart = np.where(other, NEIGHBOURS[:, None] - NEIGHBOURS, 1.0).prod(axis=1)
    return np.asarray(np.where(other, part[:, None, None] - NEIGHBOURS, 1.0).prod(axis=2) / apart)


def _logarithms(
    segments: tuple[float, ...], share: tuple[float, ...], capacity: int, points: FloatArray
) -> FloatArray:
    """Return the logarithms of the blocking of each size at points of the table; each is computed once."""
    known, length = _known(segments, share, capacity), min(capacity, LONGEST)
    if len(known) * (len(segments) + ROW) > KEPT:
        known.clear()
    new = np.array([point for point in points.tolist() if point not in known])
    if new.size:
        jobs, unit = np.exp(new / np.sqrt(length) / PER_SCALE), ceil(capacity / LONGEST)
        table = kaufman_roberts(
            servers=max(capacity // unit, 1),
            offered_load=jobs[:, None] * share / unit,
            units=np.array(segments).astype(int),
        )
        known.update(zip(new.tolist(), np.log(np.maximum(table, 1e-300)), strict=True))
    return np.array([known[point] for point in points.tolist()])


@lru_cache(maxsize=64)
def _known(segments: tuple[float, ...], share: tuple[float, ...], capacity: int) -> dict[float, FloatArray]:
    return {}
