"""Routes through a network-on-chip as data: tables, arrays, channels, and circles of waiting packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray

Integers = npt.NDArray[np.integer[Any]]
"""Whole numbers of any width: long tables take less room in narrow ones."""

ANY_CLASS = -1
"""Class of a hop that may use every virtual channel."""


@dataclass(frozen=True, kw_only=True)
class SourceRoute:
    """One entry of a source's routing table.

    Parameters
    ----------
    source, target : int
        Nodes.
    routers : tuple of int
        Routers visited, both ends included.
    share : float
        Part of the packets between the two nodes that take this route; the shares of a pair add up
        to 1.
    """

    source: int
    target: int
    routers: tuple[int, ...]
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
    v = table.virtual_channels + 1
    vertex = (table.path_channel.astype(np.int64) * v + table.path_vc_low) * v + table.path_vc_high
    inside = np.ones(vertex.size, dtype=bool)
    inside[table.path_start[1:] - 1] = False
    inside[np.repeat(table.circuit, np.diff(table.path_start))] = False
    most = len(table.channel_names) * v * v
    here = np.flatnonzero(inside)
    both = np.unique(vertex[here] * most + vertex[here + 1])
    turns = [(*_parts(one // most, v), *_parts(one % most, v)) for one in both.tolist()]
    # Virtual channels that every hop uses alike are one vertex: the pieces between all limits in use.
    cuts = sorted({0, table.virtual_channels, *(turn[k] for turn in turns for k in (1, 2, 4, 5))})
    pieces = list(zip(cuts, cuts[1:], strict=False))
    after: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for channel, low, high, following, next_low, next_high in turns:
        for k, (a, b) in enumerate(pieces):
            if low <= a and b <= high:
                after.setdefault((channel, k), []).extend(
                    (following, j) for j, (c, d) in enumerate(pieces) if next_low <= c and d <= next_high
                )
    import networkx as nx

    try:
        circle = [vertex for vertex, _ in nx.find_cycle(nx.DiGraph(after), sorted(after))]
    except nx.NetworkXNoCycle:
        return None
    names = (pieces[k] for _, k in circle)
    return tuple(
        f"{table.channel_names[channel]} vc {a}" + (f"-{b - 1}" if b - a > 1 else "")
        for (channel, _), (a, b) in zip(circle, names, strict=True)
    )


def _parts(vertex: int, v: int) -> tuple[int, int, int]:
    """Return channel and the limits of its virtual channels."""
    return vertex // (v * v), vertex // v % v, vertex % v
