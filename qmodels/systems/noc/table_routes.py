"""Routes that are looked up: by the next hop towards a target, and in a source's table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np

from qmodels.checks import IntArray
from qmodels.systems.noc.layout import Layout
from qmodels.systems.noc.routes import ANY_CLASS, Routes, SourceRoute


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
    n = topology.routers
    links = topology.links
    steps: list[tuple[int, int]] = list(links)
    if up_down:
        level = _levels(n, links)
        is_up = {(u, v): (level[v], v) < (level[u], u) for u, v in links}
        steps = [(u, v) if is_up[u, v] else (u, v + n) for u, v in links]
        steps += [(u + n, v + n) for u, v in links if not is_up[u, v]]
    states = 2 * n if up_down else n
    back: list[list[int]] = [[] for _ in range(states)]
    ahead: list[list[int]] = [[] for _ in range(states)]
    for u, v in steps:
        back[v].append(u)
        ahead[u].append(v)
    following = np.full((states, n), -1, dtype=np.int64)
    far = states + 1
    for target in range(n):
        distance = [far] * states
        todo = [target, target + n] if up_down else [target]
        for state in todo:
            distance[state] = 0
        for state in todo:
            for before in back[state]:
                if distance[before] == far:
                    distance[before] = distance[state] + 1
                    todo.append(before)
        for state in range(states):
            if 0 < distance[state] < far:
                nearer = (v for v in ahead[state] if distance[v] < distance[state])
                following[state, target] = min(nearer, key=lambda v: (v % n, v))
    return following


def _levels(routers: int, links: Sequence[tuple[int, int]]) -> list[int]:
    """Return the distance from router 0; links must run both ways for a route up to exist."""
    both = set(links)
    for u, v in links:
        if (v, u) not in both:
            raise ValueError(f"routing 'up-down' needs links both ways, got {u}->{v} alone")
    level, queue = {0: 0}, [(0, 0)]
    while queue:
        depth, here = heappop(queue)
        for u, v in links:
            if u == here and v not in level:
                level[v] = depth + 1
                heappush(queue, (depth + 1, v))
    return [level[r] for r in range(routers)]


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
