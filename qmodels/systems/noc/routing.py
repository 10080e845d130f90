"""Routing in a network-on-chip: rules that give the routes between nodes, with the VC class of every hop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.noc.layout import Layout, distances
from qmodels.systems.noc.routes import ANY_CLASS, Routes, SourceRoute

ROUTINGS = ("default", "dimension-order", "across-first", "shortest", "up-down", "o1turn", "table")
"""Names of the routings, see `find_routes`."""

TIES = ("first", "split")


def find_routes(
    topology: Layout,
    routing: str = "default",
    *,
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    ties: str = "first",
    table: Sequence[SourceRoute] = (),
) -> Routes:
    """Return the routes between pairs of nodes.

    Parameters
    ----------
    topology : Topology or its Layout
        Routers and links.
    routing : str
        "dimension-order" goes along the last dimension first (in a mesh of rows and columns: XY), in
        rings and tori the shorter way round; "o1turn" goes half of the packets of a mesh so and half
        with the dimensions in the opposite order. "across-first" is that of a Spidergon: along the
        ring for up to a quarter of its length, otherwise over the cross link and then along the
        ring. "shortest" takes the fewest hops and leaves each router for its lowest-numbered
        neighbour on such a path. "up-down" takes the fewest hops among the paths that go up a
        breadth-first tree from router 0 and then down, on which no deadlock is possible, again by
        the lowest-numbered neighbour. "table" looks up ``table``. "default" is across-first on a
        Spidergon, shortest on a custom graph and dimension-order elsewhere.
    source, target : array of int
        Nodes.
    ties : {"first", "split"}
        Which way round a ring or torus to a router that is equally far both ways: clockwise (to the
        next higher number), or half of the packets each way.
    table : sequence of SourceRoute
        For the routing "table".

    Returns
    -------
    Routes
        Sorted by pair.

    Raises
    ------
    ValueError
        If the routing does not fit the topology, or a table lacks a pair, has shares that do not add
        up to 1, or has a route over links that do not exist.

    Notes
    -----
    VC classes: packets that pass from the last router of a ring to the first or back, in a dimension,
    use class 1 on all hops in it, the others class 0; neither can close the ring then [1]_. The
    hops of o1turn have class 0 with the usual order and 1 with the other. The rest is in no class.

    References
    ----------
    .. [1] W. J. Dally, C. L. Seitz, "Deadlock-free message routing in multiprocessor interconnection
       networks", IEEE Transactions on Computers C-36(5), 1987 (the class here is fixed for the
       dimension when a packet enters it; its proof is the check in `qmodels.systems.noc.routes`).

    Examples
    --------
    >>> routes = find_routes(Layout(kind="ring", nodes=4), source=[0, 3], target=[2, 0], ties="split")
    >>> [(routes.path(k), float(routes.share[k])) for k in range(3)]
    [((0, 1, 2), 0.5), ((0, 3, 2), 0.5), ((3, 0), 1.0)]
    """
    checks.choice("routing", routing, ROUTINGS)
    checks.choice("ties", ties, TIES)
    if routing == "default":
        routing = topology.default_routing
    source, target = np.broadcast_arrays(
        checks.count("source", source, minimum=0, maximum=topology.nodes - 1),
        checks.count("target", target, minimum=0, maximum=topology.nodes - 1),
    )
    source, target = source.ravel(), target.ravel()
    if table and routing != "table":
        raise ValueError(f"routes must be left out unless routing is 'table', got {len(table)} of them")
    if routing == "table":
        return table_routes(topology, table, source, target)
    begin, end = topology.injects_into(source), topology.ejects_from(target)
    fitting = {topology.default_routing, "shortest", "up-down", "table"}
    if topology.kind == "mesh":
        fitting.add("o1turn")
    if routing not in fitting:
        words = ", ".join(word for word in ROUTINGS if word in fitting)
        raise ValueError(f"routing of a {topology.kind} must be one of {words}, got {routing!r}")
    if routing == "o1turn":
        return o1turn_routes(topology, begin, end)
    if routing in ("shortest", "up-down") or topology.kind in ("crossbar", "bus"):
        return walk(next_hops(topology, routing == "up-down"), begin, end)
    return ring_routes(topology, begin, end, split=ties == "split")


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


def walk(following: IntArray, begin: IntArray, end: IntArray) -> Routes:
    """Return routes that look up the next state, ``following[state, target]``, until they arrive.

    States from the number of routers on are routers again, in the second phase of a route.
    """
    routers = following.shape[1]
    state, columns = begin.copy(), [begin % routers]
    while np.any(state % routers != end):
        state = np.where(state % routers == end, state, following[state, end])
        columns.append(state % routers)
    grid = np.stack(columns, axis=1)
    arrived = np.argmax(grid == end[:, None], axis=1)
    inside = np.arange(grid.shape[1]) <= arrived[:, None]
    return Routes(
        pair=np.arange(begin.size),
        share=np.ones(begin.size),
        start=np.append(0, np.cumsum(arrived + 1)),
        routers=grid[inside],
        vc_class=np.full(int(inside.sum()), ANY_CLASS),
    )


@lru_cache(maxsize=16)
def next_hops(topology: Layout, up_down: bool) -> IntArray:
    """Return the next state from each state to each router, the lowest-numbered one on a shortest path.

    With ``up_down`` state r + routers is router r after a hop down, from where only hops down lead on.
    """
    n, links = topology.routers, topology.links
    steps: list[tuple[int, int]] = list(links)
    if up_down:
        for u, v in links:
            if (v, u) not in set(links):
                raise ValueError(f"routing 'up-down' needs links both ways, got {u}->{v} alone")
        level = distances(n, links)[0]
        is_up = {(u, v): (level[v], v) < (level[u], u) for u, v in links}
        steps = [(u, v) if is_up[u, v] else (u, v + n) for u, v in links]
        steps += [(u + n, v + n) for u, v in links if not is_up[u, v]]
    states = 2 * n if up_down else n
    distance = distances(states, steps)
    distance = np.minimum(distance[:, :n], distance[:, -n:])
    following = np.full((states, n), -1, dtype=np.int64)
    for u, v in sorted(steps, key=lambda step: (step[1] % n, step[1]), reverse=True):
        following[u, distance[v] < distance[u]] = v
    return following


def table_routes(
    topology: Layout, table: Sequence[SourceRoute], source: IntArray, target: IntArray
) -> Routes:
    """Return the routes of a table between pairs of nodes; checks the whole table."""
    known: dict[tuple[int, int], list[SourceRoute]] = {}
    links = set(topology.links)
    for entry in table:
        name = f"routes[{entry.source} to {entry.target}]"
        path = entry.routers
        ends = (topology.injects_into(entry.source), topology.ejects_from(entry.target))
        if not path or (path[0], path[-1]) != ends:
            raise ValueError(f"{name} must lead from router {ends[0]} to {ends[1]}, got {path!r}")
        for hop in zip(path, path[1:], strict=False):
            if hop not in links:
                raise ValueError(f"{name} must go over links, got {hop[0]}->{hop[1]}")
        if not 0 < entry.share <= 1:
            raise ValueError(f"{name} must have a share in (0, 1], got {entry.share!r}")
        known.setdefault((entry.source, entry.target), []).append(entry)
    for (s, t), entries in known.items():
        total = sum(entry.share for entry in entries)
        if abs(total - 1) > 1e-9:
            raise ValueError(f"routes[{s} to {t}] must have shares that add up to 1, got {total!r}")
    pair, share, lengths = [], [], []
    routers: list[int] = []
    for k, (s, t) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        if (s, t) not in known:
            raise ValueError(f"routes must have one from node {s} to {t}, got none")
        for entry in known[s, t]:
            pair.append(k)
            share.append(entry.share)
            lengths.append(len(entry.routers))
            routers.extend(entry.routers)
    return Routes(
        pair=np.array(pair, dtype=np.int64),
        share=np.array(share, dtype=float),
        start=np.append(0, np.cumsum(lengths)).astype(np.int64),
        routers=np.array(routers, dtype=np.int64),
        vc_class=np.full(len(routers), ANY_CLASS),
    )
