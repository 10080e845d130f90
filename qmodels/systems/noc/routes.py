"""Routes through a network-on-chip as data: tables, arrays, channels, and circles of waiting packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.spec.docstrings import Documented

Vertex = tuple[int, int]
Integers = npt.NDArray[np.integer[Any]]
"""Whole numbers of any width: long tables take less room in narrow ones."""

PIECE = 1 << 18
"""Hops that are looked at together, so that what is made of them stays in the cache of a processor."""

ANY_CLASS = -1
"""Class of a hop that may use every virtual channel."""


@dataclass(frozen=True, kw_only=True)
class SourceRoute(Documented):
    """One entry of a source's routing table."""

    # source, target: Nodes
    source: int
    target: int
    routers: tuple[int, ...]  # Routers visited, both ends included
    # Part of the packets between the two nodes that take this route; the shares of a pair add up to 1
    share: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Routes:
    """Routes of many pairs of nodes, one after the other."""

    pair: Integers  # of each route the position of its pair of nodes in the arrays asked for
    share: FloatArray  # part of the pair's packets that take the route
    start: Integers  # where each route begins in ``routers``; one more at the end
    routers: Integers  # routers visited, both ends included
    # Class of the hop from each of ``routers`` to the next: 0 or 1, -1 for any (and at the last).
    vc_class: Integers

    def path(self, route: int) -> tuple[int, ...]:
        """Return the routers of one route."""
        return tuple(self.routers[self.start[route] : self.start[route + 1]].tolist())


INJECTION, LINK, EJECTION = 0, 1, 2
"""Kinds of channels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PathTable:
    """Channels, and flows with their paths.

    Every node has an injection channel into a router and an ejection channel out of one, used or
    not.
    """

    virtual_channels: int  # virtual channels of each channel
    channel_names: tuple[str, ...]  # injection of node 0, 1, ..., links, ejection of node 0, 1, ...
    channel_kind: Integers  # `INJECTION`, `LINK` or `EJECTION`
    # channel_from, channel_to: routers, -1 for a network interface.
    channel_from: Integers
    channel_to: Integers
    channel_delay: Integers  # cycles of wire beyond the first [cycles]
    channel_cycles_per_flit: Integers  # 1, or more for a link narrower than the network's [cycles]
    # source, target: nodes of each flow.
    source: Integers
    target: Integers
    flits: Integers  # flits of a packet; 1 where packets say how long they are
    priority: Integers  # 0 (first) to 7
    weight: FloatArray  # for weighted arbitration
    circuit: npt.NDArray[np.bool_]  # whether the flow has a path of its own
    path_start: Integers  # where the path of each flow begins; one more at the end
    path_channel: Integers  # channels from injection to ejection
    # path_vc_low, path_vc_high: virtual channels that may be used on each, from low to high - 1.
    path_vc_low: Integers
    path_vc_high: Integers

    def path(self, flow: int) -> tuple[str, ...]:
        """Return the names of the channels of one flow."""
        mine = self.path_channel[self.path_start[flow] : self.path_start[flow + 1]]
        return tuple(self.channel_names[c] for c in mine)


class Piece(NamedTuple):
    """Some flows that follow one another."""

    flows: slice
    hops: slice
    lengths: Integers  # channels of each path
    last: Integers  # the last hop of each path, counted from the first of the piece


def pieces(table: PathTable) -> Iterator[Piece]:
    """Yield all flows, `PIECE` hops or one flow at a time."""
    start, first = table.path_start, 0
    while first < len(start) - 1:
        stop = int(np.searchsorted(start, start[first] + PIECE, side="right")) - 1
        stop = max(stop, first + 1)
        ends = start[first : stop + 1]
        yield Piece(
            slice(first, stop), slice(int(ends[0]), int(ends[-1])), np.diff(ends), ends[1:] - 1 - ends[0]
        )
        first = stop


def along_paths(reduce: np.ufunc, table: PathTable, values: FloatArray) -> FloatArray:
    """Return the sum, or another reduction, of the values of all channels on the path of each flow."""
    found = np.empty(table.path_start.size - 1)
    for piece in pieces(table):
        first = table.path_start[piece.flows] - piece.hops.start
        found[piece.flows] = reduce.reduceat(values[table.path_channel[piece.hops]], first)
    return found


@dataclass(frozen=True, eq=False)
class Onward:
    """Numbers for pairs of channels of which the second leaves the router that the first ends at."""

    router: Integers  # where each channel ends
    place: Integers  # of each channel among those that leave its router
    channels: Integers  # that leave each router, by place

    def pairs(self, path: Integers) -> Integers:
        """Return the numbers of each channel of a path and the next; where paths end they say nothing."""
        following = np.append(path[1:], path[-1:])
        return np.asarray(path * self.place.dtype.type(self.channels.shape[1]) + self.place[following])

    def both(self, pair: Integers) -> tuple[Integers, Integers]:
        """Return the two channels of pairs."""
        first, place = np.divmod(pair, self.channels.shape[1])
        return first, self.channels[self.router[first], place]


def onward(table: PathTable) -> Onward:
    """Return where channels lead on to."""
    leaves = table.channel_from.astype(np.int64)
    count = np.bincount(leaves[leaves >= 0], minlength=int(table.channel_to.max(initial=0)) + 1)
    order = np.argsort(leaves, kind="stable")[np.count_nonzero(leaves < 0) :]
    most = int(count.max(initial=1))
    place: Integers = np.zeros(leaves.size, dtype=np.int32 if leaves.size * most < 2**31 else np.int64)
    place[order] = np.arange(order.size) - np.repeat(np.cumsum(count) - count, count)
    channels = np.zeros((count.size, most), dtype=np.int64)
    channels[leaves[order], place[order]] = order
    return Onward(table.channel_to, place, channels)


def may_deadlock(circle: tuple[str, ...]) -> dict[str, bool]:
    """Doubt about packets that may wait for each other in a circle of virtual channels, if there is one."""
    if not circle:
        return {}
    found = f"packets may deadlock: {len(circle)} virtual channels in a circle from {circle[0]}"
    return {f"{found}; the numbers hold as long as they do not": True}


def find_deadlock(table: PathTable) -> tuple[str, ...] | None:
    """Return the channels of a circle in which packets may wait for each other, or None.

    ``table``: the paths of all flows with the virtual channels of every hop. Returns channels with their
    virtual channels, each waiting for the next and the last for the first.

    The channel dependency graph [1]_ has an edge from a virtual channel of a channel to each that a
    packet in it may take next. Without a circle in it no deadlock is possible. With one, packets on
    other virtual channels may still get through where routes leave a choice: the check is then
    pessimistic. Circuits have virtual channels of their own, for which nobody else waits. Network
    interfaces are taken to have room for everything that is ejected, so that requests never wait
    for responses.

    References
    ----------
    .. [1] W. J. Dally, C. L. Seitz, "Deadlock-free message routing in multiprocessor interconnection
       networks", IEEE Transactions on Computers C-36(5), 1987, theorem 1.
    """
    ways = onward(table)
    limits, use = vc_limits(table)
    shape = (ways.place.size * ways.channels.shape[1], len(limits), len(limits))
    seen = np.zeros(prod(shape) + 1, dtype=bool)  # the last for what is no turn
    for piece in pieces(table):
        turn, used = ways.pairs(table.path_channel[piece.hops]), use(piece.hops)
        if len(limits) > 1:
            turn = (turn * len(limits) + used) * len(limits) + np.append(used[1:], used[-1:])
        turn[piece.last] = -1
        if table.circuit[piece.flows].any():
            turn[np.repeat(table.circuit[piece.flows], piece.lengths)] = -1
        seen[turn] = True
    pair, here, there = np.unravel_index(np.flatnonzero(seen[:-1]), shape)
    first, second = ways.both(pair)
    rows = np.column_stack([first, limits[here], second, limits[there]])
    turns = sorted(map(tuple, rows.tolist()))
    # Virtual channels that every hop uses alike are one vertex: the pieces between all limits in use.
    cuts = sorted({0, table.virtual_channels, *(turn[k] for turn in turns for k in (1, 2, 4, 5))})
    spans = list(zip(cuts, cuts[1:], strict=False))
    after: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for channel, low, high, following, next_low, next_high in turns:
        for k, (a, b) in enumerate(spans):
            if low <= a and b <= high:
                after.setdefault((channel, k), []).extend(
                    (following, j) for j, (c, d) in enumerate(spans) if next_low <= c and d <= next_high
                )
    graph = _circles(after)
    if not graph:
        return None
    import networkx as nx

    circle = [vertex for vertex, _ in nx.find_cycle(nx.DiGraph(graph), min(graph))]
    names = (spans[k] for _, k in circle)
    return tuple(
        f"{table.channel_names[channel]} vc {a}" + (f"-{b - 1}" if b - a > 1 else "")
        for (channel, _), (a, b) in zip(circle, names, strict=True)
    )


def _circles(after: Mapping[Vertex, Sequence[Vertex]]) -> dict[Vertex, list[Vertex]]:
    """Return the part of a graph from each of whose vertices a circle leads back to it."""
    from scipy.sparse import coo_array, csgraph

    number = {vertex: k for k, vertex in enumerate({*after, *chain.from_iterable(after.values())})}
    edges = [(number[vertex], number[other]) for vertex, others in after.items() for other in others]
    if not edges:
        return {}
    rows, columns = np.array(edges).T
    graph = coo_array((np.ones(rows.size), (rows, columns)), shape=(len(number), len(number)))
    component = csgraph.connected_components(graph.tocsr(), connection="strong")[1]
    inside = component[rows] == component[columns]
    vertices, found = list(number), dict[Vertex, list[Vertex]]()
    for row, column in zip(rows[inside].tolist(), columns[inside].tolist(), strict=True):
        found.setdefault(vertices[row], []).append(vertices[column])
    return found


def vc_limits(table: PathTable) -> tuple[Integers, Callable[[slice], Integers]]:
    """Return the different limits of virtual channels, low and high, and what numbers those of hops."""
    v = table.virtual_channels + 1
    number = np.zeros(v * v, dtype=np.int64)

    def uses(hops: slice) -> Integers:
        return np.asarray(table.path_vc_low[hops] * np.int64(v) + table.path_vc_high[hops])

    for piece in pieces(table):
        number[uses(piece.hops)] = 1
    found = np.flatnonzero(number)
    number[found] = np.arange(found.size)
    limits = np.stack(np.divmod(found, v), axis=1)
    return limits, (lambda hops: number[uses(hops)]) if found.size > 1 else lambda hops: np.zeros(1, np.int64)
