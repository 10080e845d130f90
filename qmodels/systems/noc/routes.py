"""Routes through a network-on-chip as data: tables, arrays, channels, and circles of waiting packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.docstrings import Documented

Integers = npt.NDArray[np.integer[Any]]
"""Whole numbers of any width: long tables take less room in narrow ones."""

HOP_BYTES = 50
"""What a channel of a route takes where it is walked or simulated. [bytes]"""

PIECE = 1 << 18
"""Hops or flows looked at together, so that what is made of them stays in the cache of a processor."""

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
    """Routes of many pairs of nodes, made of legs that they share."""

    pair: Integers  # of each route the position of its pair of nodes in the arrays asked for
    share: FloatArray  # part of the pair's packets that take the route
    legs: Integers  # numbers of the legs of each route, shape (legs of a route, routes)
    start: Integers  # where each leg begins in ``routers``; one more at the end
    # Routers visited by each leg, both ends included: the next leg begins where one ends.
    routers: Integers
    # Class of the hop from each of ``routers`` to the next: 0 or 1, -1 for any (and at the last).
    vc_class: Integers

    def path(self, route: int) -> tuple[int, ...]:
        """Return the routers of one route."""
        parts = [self.routers[self.start[k] : self.start[k + 1]].tolist() for k in self.legs[:, route]]
        return (*parts[0], *chain.from_iterable(part[1:] for part in parts[1:]))


INJECTION, LINK, EJECTION = 0, 1, 2
"""Kinds of channels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    """Paths of flows: an injection channel, legs of links, an ejection channel.

    Flows share legs where routes go along one dimension after the other, so that large networks take room
    for each flow and not for each of its hops. Elsewhere a flow has one leg of its own.
    """

    virtual_channels: int  # virtual channels of each channel
    first: Integers  # injection channel of each flow
    last: Integers  # ejection channel of each flow
    legs: Integers  # numbers of the legs of each flow, shape (legs of a flow, flows)
    leg_start: Integers  # where each leg begins in ``link``; one more at the end
    link: Integers  # channels of all legs
    # vc_low, vc_high: virtual channels that may be used on each, from low to high - 1.
    vc_low: Integers
    vc_high: Integers

    def of(self, flows: Sequence[int]) -> Paths:
        """Return the paths of some flows."""
        return replace(self, first=self.first[flows], last=self.last[flows], legs=self.legs[:, flows])

    @cached_property
    def sizes(self) -> Integers:
        """Links of each leg."""
        return np.diff(self.leg_start)

    @cached_property
    def hops(self) -> Integers:
        """Channels of each path."""
        return np.asarray(2 + self.over_legs(np.add, self.sizes))

    def over_legs(self, reduce: np.ufunc, of_leg: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sum, or another reduction, of values of the legs of each flow."""
        found = of_leg[self.legs[0]]
        for leg in self.legs[1:]:
            found = reduce(found, of_leg[leg])
        return found

    def within_legs(self, reduce: np.ufunc, values: FloatArray) -> FloatArray:
        """Return the sum, or another reduction from 0 on, of the values of the links of each leg."""
        if not values.size:
            return np.zeros(self.sizes.size)
        found = reduce.reduceat(np.append(values, 0.0), self.leg_start[:-1])
        return np.asarray(np.where(self.sizes > 0, found, 0.0))

    def along(self, reduce: np.ufunc, values: FloatArray) -> FloatArray:
        """Return the sum, or the largest, of the values of all channels on the path of each flow."""
        if reduce is np.maximum and np.ptp(values) == 0:
            return np.full(self.first.size, values[0])
        ends = reduce(values[self.first], values[self.last])
        return np.asarray(reduce(ends, self.over_legs(reduce, self.within_legs(reduce, values[self.link]))))

    def by_leg(self, values: FloatArray) -> FloatArray:
        """Return the sum of the values of all flows over each leg."""
        return np.sum([np.bincount(leg, values, minlength=self.sizes.size) for leg in self.legs], axis=0)

    def by_channel(self, values: FloatArray, channels: int) -> FloatArray:
        """Return the sum of the values of all flows over each channel."""
        found = np.bincount(self.link, np.repeat(self.by_leg(values), self.sizes), minlength=channels)
        for end in (self.first, self.last):
            found = found + np.bincount(end, values, minlength=channels)
        return np.asarray(found, dtype=float)

    def joints(
        self, of_link: Integers, first: Integers, last: Integers
    ) -> Iterator[tuple[int, Integers, Integers, Integers]]:
        """Yield flows, and values where two channels follow one another on their paths but not in a leg.

        ``of_link``: values of all links of legs; ``first``, ``last``: of the ends of paths. The number of
        legs before the second channel comes first.
        """
        padded = np.append(of_link, np.zeros(1, dtype=of_link.dtype))
        heads, tails, used = padded[self.leg_start[:-1]], padded[self.leg_start[1:] - 1], self.sizes > 0
        for begin in range(0, first.size, PIECE):
            some = slice(begin, begin + PIECE)
            before, flows = first[some], np.arange(begin, min(begin + PIECE, first.size))
            for number, leg in enumerate(self.legs[:, some]):
                inside = used[leg]
                yield number, flows[inside], before[inside], heads[leg[inside]]
                before = np.where(inside, tails[leg], before)
            yield len(self.legs), flows, before, last[some]

    @cached_property
    def start(self) -> Integers:
        """Where the path of each flow begins in ``channel``; one more at the end."""
        return np.append(0, np.cumsum(self.hops)).astype(np.int64)

    def by_hop(self, of_link: Integers, first: Any, last: Any) -> Integers:
        """Return values of all channels of all paths; see `joints`."""
        afford("flows", self.first.size, bytes=HOP_BYTES * float(self.start[-1]))
        found = np.empty(int(self.start[-1]), dtype=of_link.dtype)
        at, ends = self.start[:-1], self.start[1:] - 1
        found[at], found[ends] = first, last
        at = at + 1
        for leg in self.legs:
            size = self.sizes[leg]
            inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
            found[np.repeat(at, size) + inside] = of_link[np.repeat(self.leg_start[leg], size) + inside]
            at = at + size
        return found

    @cached_property
    def channel(self) -> Integers:
        """Channels of all paths, from injection to ejection."""
        return self.by_hop(self.link, self.first, self.last)

    @cached_property
    def low(self) -> Integers:
        """The first virtual channel that may be used on each of ``channel``."""
        return self.by_hop(self.vc_low, 0, 0)

    @cached_property
    def high(self) -> Integers:
        """The one behind the last."""
        return self.by_hop(self.vc_high, self.virtual_channels, self.virtual_channels)

    @cached_property
    def limits(self) -> tuple[Integers, Integers, int]:
        """The different limits of virtual channels, low and high, and which each link has, and ends have."""
        v = self.virtual_channels + 1
        alike = self.vc_low.strides == self.vc_high.strides == (0,)
        some = slice(1 if alike else None)
        uses = np.append(self.vc_low[some] * np.int16(v) + self.vc_high[some], np.int16(v - 1))
        found = np.flatnonzero(np.bincount(uses))
        number = np.searchsorted(found, uses)
        of_link = np.broadcast_to(number[0], self.link.shape) if alike else number[:-1]
        return np.stack(np.divmod(found, v), axis=1), of_link, int(number[-1])


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
    paths: Paths

    def path(self, flow: int) -> tuple[str, ...]:
        """Return the names of the channels of one flow."""
        return tuple(self.channel_names[c] for c in self.paths.of([flow]).channel)


class Piece(NamedTuple):
    """Some legs that follow one another."""

    legs: slice
    links: slice
    sizes: Integers  # links of each leg
    last: Integers  # the last link of each leg that has any, counted from the first of the piece


def pieces(paths: Paths) -> Iterator[Piece]:
    """Yield all legs, `PIECE` links or one leg at a time."""
    start, first = paths.leg_start, 0
    while first < len(start) - 1:
        stop = int(np.searchsorted(start, start[first] + PIECE, side="right")) - 1
        stop = max(stop, first + 1)
        ends, sizes = start[first : stop + 1], paths.sizes[first:stop]
        last = (ends[1:] - 1 - ends[0])[sizes > 0]
        yield Piece(slice(first, stop), slice(int(ends[0]), int(ends[-1])), sizes, last)
        first = stop


@dataclass(frozen=True, eq=False)
class Onward:
    """Numbers for pairs of channels of which the second leaves the router that the first ends at."""

    router: Integers  # where each channel ends
    place: Integers  # of each channel among those that leave its router
    channels: Integers  # that leave each router, by place

    def pairs(self, first: Integers, second: Integers) -> Integers:
        """Return the numbers of channels and the next ones."""
        return np.asarray(first * self.place.dtype.type(self.channels.shape[1]) + self.place[second])

    def along(self, path: Integers) -> Integers:
        """Return the numbers of each channel of a path and the next; where paths end they say nothing."""
        return self.pairs(path, np.append(path[1:], path[-1:]))

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
    ways, paths = onward(table), table.paths
    limits, used, of_ends = paths.limits
    shape = (ways.place.size * ways.channels.shape[1], len(limits), len(limits))
    seen = np.zeros(prod(shape) + 1, dtype=bool)  # the last for what is no turn
    waits = paths.by_leg((~table.circuit).astype(float)) > 0

    def turns(pair: Integers, before: Integers, after: Integers) -> Integers:
        return (pair * len(limits) + before) * len(limits) + after if len(limits) > 1 else pair

    for piece in pieces(paths):
        mine = used[piece.links]
        turn = turns(ways.along(paths.link[piece.links]), mine, np.append(mine[1:], mine[-1:]))
        turn[piece.last] = -1
        turn[~np.repeat(waits[piece.legs], piece.sizes)] = -1
        seen[turn] = True
    channels, ends = (
        paths.joints(paths.link, paths.first, paths.last),
        np.broadcast_to(of_ends, table.source.size),
    )
    for (legs, some, before, after), (_, _, here, there) in zip(
        channels, paths.joints(used, ends, ends), strict=True
    ):
        if 0 < legs < len(paths.legs):  # interfaces are in no circle
            turn = turns(ways.pairs(before, after), here, there)
            seen[np.where(table.circuit[some], -1, turn)] = True
    pair, here, there = np.unravel_index(np.flatnonzero(seen[:-1]), shape)
    first, second = ways.both(pair)
    rows = np.column_stack([first, limits[here], second, limits[there]])
    rows = rows[np.lexsort(rows.T[::-1])]
    # Virtual channels that every hop uses alike are one vertex: the pieces between all limits in use.
    cuts = np.unique([0, table.virtual_channels, *rows[:, [1, 2, 4, 5]].ravel()])
    spans = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    number = np.arange(len(spans))
    within = [(rows[:, low, None] <= cuts[:-1]) & (cuts[1:] <= rows[:, low + 1, None]) for low in (1, 4)]
    fits = within[0][:, :, None] & within[1][:, None, :]
    tails, heads = (
        np.broadcast_to((rows[:, column, None] * number.size + number).reshape(form), fits.shape)[fits]
        for column, form in ((0, (-1, number.size, 1)), (3, (-1, 1, number.size)))
    )
    graph = _circles(tails, heads)
    if not graph:
        return None
    import networkx as nx

    circle = [divmod(vertex, number.size) for vertex, _ in nx.find_cycle(nx.DiGraph(graph), min(graph))]
    return tuple(
        f"{table.channel_names[channel]} vc {spans[k][0]}"
        + (f"-{spans[k][1] - 1}" if spans[k][1] - spans[k][0] > 1 else "")
        for channel, k in circle
    )


def _circles(tails: Integers, heads: Integers) -> dict[int, list[int]]:
    """Return the part of a graph, given its edges, from each of whose vertices a circle leads back to it."""
    from scipy.sparse import coo_array, csgraph

    count = int(max(tails.max(initial=-1), heads.max(initial=-1))) + 1
    graph = coo_array((np.ones(tails.size), (tails, heads)), shape=(count, count))
    component = csgraph.connected_components(graph.tocsr(), connection="strong")[1]
    inside = component[tails] == component[heads]
    found = dict[int, list[int]]()
    for tail, head in zip(tails[inside].tolist(), heads[inside].tolist(), strict=True):
        found.setdefault(tail, []).append(head)
    return found
