"""How much room the routes of a network take, before they are found."""

from __future__ import annotations

from collections import deque

from qmodels.systems.noc.topology import Topology
from qmodels.systems.spec.cost import afford

PAIR_BYTES, HOP_BYTES = 500, 100
"""What a pair of nodes takes, and each channel of its route, in model or simulator. [bytes]

Peaks of processes that solve uniform traffic, less that of a small one, were 0.5 to 0.9 of it: crossbar of
700 nodes, ring of 400, torus 20 x 20, meshes 24 x 24 and 32 x 32.
"""
LOOKED = 8
"""Routers from which distances are found."""


def afford_routes(field: str, topology: Topology, pairs: float) -> None:
    """Refuse routes between so many pairs of nodes as take more memory than is allowed."""
    afford(field, topology.nodes, bytes=pairs * (PAIR_BYTES + HOP_BYTES * (_mean_distance(topology) + 2)))


def _mean_distance(topology: Topology) -> float:
    """Return the mean number of links from a router to all, over a few of them."""
    onward: dict[int, list[int]] = {}
    for source, target in topology.links:
        onward.setdefault(source, []).append(target)
    total = 0
    some = range(0, topology.routers, max(1, topology.routers // LOOKED))
    for start in some:
        distance, ahead = {start: 0}, deque([start])
        while ahead:
            here = ahead.popleft()
            for there in onward.get(here, ()):
                if there not in distance:
                    distance[there] = distance[here] + 1
                    ahead.append(there)
        total += sum(distance.values())
    return total / topology.routers / len(some)
