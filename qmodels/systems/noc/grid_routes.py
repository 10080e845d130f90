"""Routes along the dimensions of rings, grids and Spidergons, for many pairs of routers at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.noc.layout import Layout
from qmodels.systems.noc.routes import ANY_CLASS, Routes


class _Trips(NamedTuple):
    """Where routes go: for each the pair of routers it joins, its share, and its first router.

    ``across`` is 1 with a cross link before the rest; ``here``, ``steps`` and ``classes``, of a row for each
    dimension, are the place it goes on from, how far it goes, and the class of its hops.
    """

    pair: IntArray
    share: FloatArray
    begin: IntArray
    across: IntArray
    here: IntArray
    steps: IntArray
    classes: IntArray


def ring_routes(topology: Layout, begin: IntArray, end: IntArray, *, split: bool) -> Routes:
    """Return routes along the dimensions, the last one first, with one cross link before on a Spidergon."""
    shape, wraps = topology.dimensions, topology.kind != "mesh"
    pair, share, across = np.arange(begin.size), np.ones(begin.size), np.zeros(begin.size, dtype=np.int64)
    if topology.kind == "spidergon":
        n = topology.nodes
        ahead = (end - begin) % n
        across = ((4 * ahead > n) & (4 * ahead < 3 * n)).astype(np.int64)
    at = (begin + across * (topology.nodes // 2)) % topology.routers
    here, there = np.stack(np.unravel_index(at, shape)), np.stack(np.unravel_index(end, shape))
    length = np.array(shape)[:, None]
    steps = there - here
    if wraps:
        ahead = steps % length
        steps = np.where(2 * ahead <= length, ahead, ahead - length)
        for axis, size in enumerate(shape):
            tied = 2 * steps[axis] == size
            if split and size > 2 and tied.any():
                double = np.flatnonzero(tied)
                other = steps[:, double].copy()
                other[axis] *= -1
                share[double] /= 2
                steps = np.concatenate([steps, other], axis=1)
                here = np.concatenate([here, here[:, double]], axis=1)
                pair, share = np.append(pair, pair[double]), np.append(share, share[double])
                across = np.append(across, across[double])
        order = np.argsort(pair, kind="stable")
        pair, share, across, steps, here = (
            pair[order], share[order], across[order], steps[:, order], here[:, order],
        )  # fmt: skip
    crosses = (here + steps < 0) | (here + steps >= length) if wraps else np.zeros_like(steps, dtype=bool)
    classes = np.where(crosses, 1, 0 if wraps else ANY_CLASS)
    if wraps:
        classes[np.array(shape) <= 2] = ANY_CLASS  # two routers are no ring
    trips = _Trips(pair, share, begin[pair], across, here, steps, classes)
    return _along(shape, trips, range(len(shape) - 1, -1, -1))


def o1turn_routes(topology: Layout, begin: IntArray, end: IntArray) -> Routes:
    """Return routes along the dimensions in the usual order for half of the packets, else the other way."""
    shape = topology.dimensions
    here, there = np.stack(np.unravel_index(begin, shape)), np.stack(np.unravel_index(end, shape))
    pair, none = np.arange(begin.size), np.zeros(begin.size, dtype=np.int64)
    trips = _Trips(pair, np.full(pair.size, 0.5), begin, none, here, there - here, np.zeros_like(here))
    usual, other = range(len(shape) - 1, -1, -1), range(len(shape))
    both = [_along(shape, trips, usual), _along(shape, trips._replace(classes=np.ones_like(here)), other)]
    return _interleave(both)


def _interleave(parts: Sequence[Routes]) -> Routes:
    """Return the routes of all parts, sorted by pair."""
    pair = np.concatenate([part.pair for part in parts])
    hops = np.concatenate([np.diff(part.start) for part in parts])
    first = np.concatenate(
        [part.start[:-1] + sum(p.routers.size for p in parts[:k]) for k, part in enumerate(parts)]
    )
    order = np.argsort(pair, kind="stable")
    start = np.append(0, np.cumsum(hops[order]))
    where = np.repeat(first[order] - start[:-1], hops[order]) + np.arange(start[-1])
    return Routes(
        pair=pair[order],
        share=np.concatenate([part.share for part in parts])[order],
        start=start,
        routers=np.concatenate([part.routers for part in parts])[where],
        vc_class=np.concatenate([part.vc_class for part in parts])[where],
    )


def _along(shape: tuple[int, ...], trips: _Trips, order: Sequence[int]) -> Routes:
    """Return the routes of trips that go along one dimension after the other, in this order."""
    pair, share, begin, across, here, steps, classes = trips
    hops = across + np.abs(steps).sum(axis=0)
    size = hops + 1
    start = np.append(0, np.cumsum(size))
    left = np.arange(start[-1], dtype=np.int32) - np.repeat((start[:-1] + across).astype(np.int32), size)
    vc_class = np.full(left.size, ANY_CLASS, dtype=np.int8)
    routers = np.zeros(left.size, dtype=np.int32)
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    for axis in order:
        far = np.repeat(np.abs(steps[axis]).astype(np.int32), size)
        if np.any(classes[axis] != ANY_CLASS):
            moving = (left >= 0) & (left < far)
            vc_class[moving] = np.repeat(classes[axis].astype(np.int8), size)[moving]
        moved = np.clip(left, 0, far) * np.repeat(np.sign(steps[axis]).astype(np.int32), size)
        place = np.repeat(here[axis].astype(np.int32), size) + moved
        place[place < 0] += shape[axis]
        place[place >= shape[axis]] -= shape[axis]
        routers += place * np.int32(strides[axis])
        left = left - far
    crossed = across > 0
    routers[start[:-1][crossed]] = begin[crossed]
    return Routes(pair=pair, share=share, start=start, routers=routers, vc_class=vc_class)
