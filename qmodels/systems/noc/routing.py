"""Routing in a network-on-chip: rules that give the routes between nodes, with the VC class of every hop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isqrt, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.noc.layout import Layout, distances
from qmodels.systems.noc.routes import ANY_CLASS, Integers, Routes, SourceRoute

ROUTINGS = ("default", "dimension-order", "across-first", "shortest", "up-down", "o1turn", "table")
"""Names of the routings, see `find_routes`."""

TIES = ("first", "split")

SPARSE = 16
"""Times as many as there are trips that keys may be for a table of all keys to take less than sorting."""


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
    if walks(topology, routing):
        return walk(next_hops(topology, routing == "up-down"), begin, end)
    return ring_routes(topology, begin, end, split=ties == "split")


def walks(topology: Layout, routing: str) -> bool:
    """Whether routes are found hop by hop, so that no two have a leg in common."""
    routing = topology.default_routing if routing == "default" else routing
    return routing in ("shortest", "up-down") or (routing != "table" and topology.kind in ("crossbar", "bus"))


def pairs_at_once(topology: Layout, routing: str) -> int:
    """Return for how many pairs of nodes routes are best found at a time; 0 for all.

    Routes that are walked take ten times the room of the paths they become. Where there are two dimensions
    or more, what pairs of other sources have in common with these is not worth a search.
    """
    if walks(topology, routing):
        return 1 << 13
    return 0 if routing == "table" or len(topology.dimensions) == 1 else 1 << 18


class _Trips(NamedTuple):
    """Where routes go: for each the pair of routers it joins, its share, and its first router.

    ``across`` is 1 with a cross link before the rest; ``here``, ``steps`` and ``classes``, of a row for each
    dimension, are the place it goes on from, how far it goes, and the class of its hops.
    """

    pair: Integers
    share: FloatArray
    begin: Integers
    across: Integers
    here: Integers
    steps: Integers
    classes: Integers


def ring_routes(topology: Layout, begin: Integers, end: Integers, *, split: bool) -> Routes:
    """Return routes along the dimensions, the last one first, with one cross link before on a Spidergon."""
    shape, wraps = topology.dimensions, topology.kind != "mesh"
    pair, share, across = np.arange(begin.size), np.ones(begin.size), np.zeros(begin.size, dtype=np.int8)
    if topology.kind == "spidergon":
        n = topology.nodes
        ahead = (end - begin) % n
        across = ((4 * ahead > n) & (4 * ahead < 3 * n)).astype(np.int8)
    at = (begin + across * np.int64(topology.nodes // 2)) % topology.routers
    here, there = _places(at, shape), _places(end, shape)
    length = np.array(shape, dtype=np.int32)[:, None]
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
        if pair.size > begin.size:
            order = np.argsort(pair, kind="stable")
            pair, share, across, steps, here = (
                pair[order], share[order], across[order], steps[:, order], here[:, order],
            )  # fmt: skip
    crosses = (here + steps < 0) | (here + steps >= length) if wraps else np.zeros_like(steps, dtype=bool)
    classes = np.where(crosses, np.int8(1), np.int8(0 if wraps else ANY_CLASS))
    if wraps:
        classes[np.array(shape) <= 2] = ANY_CLASS  # two routers are no ring
    trips = _Trips(pair, share, begin[pair], across, here, steps, classes)
    return _along(shape, trips, range(len(shape) - 1, -1, -1))


def o1turn_routes(topology: Layout, begin: Integers, end: Integers) -> Routes:
    """Return routes along the dimensions in the usual order for half of the packets, else the other way."""
    shape = topology.dimensions
    here, there = _places(begin, shape), _places(end, shape)
    pair, none = np.arange(begin.size), np.zeros(begin.size, dtype=np.int8)
    trips = _Trips(pair, np.full(pair.size, 0.5), begin, none, here, there - here, np.zeros_like(here))
    usual = _along(shape, trips, range(len(shape) - 1, -1, -1))
    other = _along(shape, trips._replace(classes=np.ones_like(here)), range(len(shape)))
    legs = np.stack([usual.legs, other.legs + usual.start.size - 1], axis=2)
    return Routes(
        pair=pair.repeat(2),
        share=trips.share.repeat(2),
        legs=legs.reshape(len(legs), -1),
        start=np.append(usual.start, usual.start[-1] + other.start[1:]),
        routers=np.concatenate([usual.routers, other.routers]),
        vc_class=np.concatenate([usual.vc_class, other.vc_class]),
    )


def _places(routers: Integers, shape: tuple[int, ...]) -> Integers:
    """Return where routers are in each dimension."""
    return np.stack(np.unravel_index(np.arange(prod(shape)), shape)).astype(np.int32)[:, routers]


def _along(shape: tuple[int, ...], trips: _Trips, order: Sequence[int]) -> Routes:
    """Return the routes of trips that go along one dimension after the other, in this order.

    They have a leg along the first dimension and one along the others, of which all pairs of nodes together
    have few that differ; those along one dimension alone have `_strides`.
    """
    begin, across, here = trips.begin, trips.across, trips.here.copy()
    parts = [(order[:1], trips.steps), (order[1:], trips.steps)]
    if len(shape) == 1:
        parts = [(order, steps[None]) for steps in _strides(here[0], trips.steps[0], shape[0])]
    legs, found = [], list[tuple[Integers, Integers, Integers]]()
    for axes, steps in parts:
        key, end, there = begin.astype(np.int64), begin, here.copy()
        for axis in axes:
            there[axis] += steps[axis]
            there[axis][there[axis] < 0] += shape[axis]
            there[axis][there[axis] >= shape[axis]] -= shape[axis]
            key = key * shape[axis] + there[axis]
            end = there[0] if len(shape) == 1 else end + (there[axis] - here[axis]) * prod(shape[axis + 1 :])
            # Also between two routers: half the way round a ring either way, and part of a trip in its class.
            for more in (2 * steps[axis] == -shape[axis], trips.classes[axis] == 1)[: 1 + (len(shape) == 1)]:
                key = 2 * key + more if more.any() else key
        key = 2 * key + across if across.any() else key
        some, number = _different(key)
        legs.append(number + sum(size.size for size, _, _ in found))
        mine = np.zeros((len(shape), some.size), dtype=np.int32)
        mine[list(axes)] = steps[list(axes)][:, some]
        classes = trips.classes[:, some]
        found.append(_walk_along(shape, begin[some], across[some], here[:, some], mine, classes, order))
        begin, across, here = end, np.zeros_like(across), there
    size, routers, vc_class = map(np.concatenate, zip(*found, strict=True))
    return Routes(
        pair=trips.pair,
        share=trips.share,
        legs=np.stack(legs),
        start=np.append(0, np.cumsum(size)),
        routers=routers,
        vc_class=vc_class,
    )


def _strides(here: Integers, steps: Integers, size: int) -> list[Integers]:
    """Return the steps to the next of few routers a stride apart, in strides from there, and those left."""
    stride, far = isqrt(size), np.abs(steps)
    first = np.minimum(far, np.where(steps > 0, -here, here) % stride)
    last = (far - first) % stride
    return [np.sign(steps) * part for part in (first, far - first - last, last)]


def _different(key: Integers) -> tuple[Integers, Integers]:
    """Return the places of different keys, one for each, and the number of each key among these."""
    most = int(key.max(initial=-1)) + 1
    if most > SPARSE * key.size:
        _, some, number = np.unique(key, return_index=True, return_inverse=True)
        return some, number.astype(np.int32)
    at = np.full(most, -1)
    at[key] = np.arange(key.size)
    used = at >= 0
    return at[used], (np.cumsum(used, dtype=np.int32) - 1)[key]


def _walk_along(
    shape: tuple[int, ...],
    begin: Integers,
    across: Integers,
    here: Integers,
    steps: Integers,
    classes: Integers,
    order: Sequence[int],
) -> tuple[Integers, Integers, Integers]:
    """Return the sizes of trips, all their routers, and the classes of the hops from each to the next."""
    size = across + np.abs(steps).sum(axis=0) + 1
    start = np.cumsum(size) - size
    left = np.arange(size.sum(), dtype=np.int32) - np.repeat((start + across).astype(np.int32), size)
    vc_class = np.full(left.size, ANY_CLASS, dtype=np.int8)
    routers = np.zeros(left.size, dtype=np.int32)
    for axis in order:
        far = np.repeat(np.abs(steps[axis]), size)
        if np.any(classes[axis] != ANY_CLASS):
            moving = (left >= 0) & (left < far)
            vc_class[moving] = np.repeat(classes[axis].astype(np.int8), size)[moving]
        place = np.repeat(here[axis], size) + np.clip(left, 0, far) * np.repeat(np.sign(steps[axis]), size)
        place[place < 0] += shape[axis]
        place[place >= shape[axis]] -= shape[axis]
        routers += place * np.int32(prod(shape[axis + 1 :]))
        left = left - far
    crossed = across > 0
    routers[start[crossed]] = begin[crossed]
    return size, routers, vc_class


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
        legs=np.arange(begin.size)[None],
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
        legs=np.arange(len(share))[None],
        start=np.append(0, np.cumsum(lengths)).astype(np.int64),
        routers=np.array(routers, dtype=np.int64),
        vc_class=np.full(len(routers), ANY_CLASS),
    )
