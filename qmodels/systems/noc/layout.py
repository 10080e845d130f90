"""Where nodes, routers and links of a network-on-chip are: shapes, checks and what follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.ranges import Declared, choice, count

KINDS = ("spidergon", "ring", "mesh", "torus", "crossbar", "bus", "custom")
ROLES = ("initiator", "memory", "both")
GRIDS = ("mesh", "torus")


MOST_NODES = 4096
"""Tables of a rate or a route for every pair of them fit in memory."""


def grid_nodes(shape: tuple[int, ...]) -> int:
    """Return the number of nodes of a grid, from those in each dimension."""
    for side in shape:
        checks.one_number("topology.shape", side)
        checks.count("topology.shape", side, maximum=MOST_NODES)
    return prod(shape)


def distances(count: int, links: Sequence[tuple[int, int]], start: Any = None) -> FloatArray:
    """Return the number of links from each of n places to each, or from some alone; ``inf`` to no avail."""
    from scipy.sparse import coo_array, csgraph

    rows, columns = np.array(links, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(rows.size), (rows, columns)), shape=(count, count)).tocsr()
    return np.asarray(csgraph.shortest_path(graph, unweighted=True, indices=start))


@dataclass(frozen=True, kw_only=True)
class Layout(Declared, prefix="topology."):
    """The fields of a `qmodels.systems.noc.topology.Topology`, which adds the routes through it."""

    kind: str = choice("spidergon", KINDS)  # Shape. Links run both ways, on the ring of a Spidergon as well
    # Number of nodes, at least 2; even and at least 4 for a Spidergon
    nodes: int = count(16, minimum=2, maximum=MOST_NODES)
    # Directed links of a custom topology, see `from_graph`; empty for the others
    edges: tuple[tuple[int, int], ...] = ()
    # Routers of a mesh or torus in each dimension; by default two dimensions, as square as possible. Two
    # routers of a torus are joined by one link each way, not two
    shape: tuple[int, ...] = ()
    concentration: int = count(1)  # Nodes that share a router of a mesh or torus
    # Cycles of wire of every link beyond the one of the router's output. [cycles]
    delay: int = count(0, minimum=0)
    # The same link by link, in the order of ``edges``, for a custom topology. [cycles]
    edge_delays: tuple[int, ...] = ()
    # Width of each link of a custom topology; a flit takes several cycles on a link that is narrower than the
    # network's. [bytes]
    edge_widths: tuple[int, ...] = ()
    roles: tuple[str, ...] = ()  # What each node is; by default both

    def _check_relations(self) -> None:
        if self.kind == "spidergon" and (self.nodes < 4 or self.nodes % 2):
            raise ValueError(f"topology.nodes of a spidergon must be even and >= 4, got {self.nodes!r}")
        self._check_grid()
        if self.roles:
            if len(self.roles) != self.nodes:
                raise ValueError(f"topology.roles must be {self.nodes} words, got {len(self.roles)}")
            for role in self.roles:
                checks.choice("topology.roles", role, ROLES)
        self._check_edges()

    def _check_grid(self) -> None:
        if self.kind not in GRIDS:
            if self.shape:
                raise ValueError(
                    f"topology.shape must be left out for all but {', '.join(GRIDS)}, got {self.shape!r}"
                )
            if self.concentration != 1:
                raise ValueError(
                    f"topology.concentration must be 1 for all but {', '.join(GRIDS)}, "
                    f"got {self.concentration!r}"
                )
            return
        for length in self.shape:
            checks.count("topology.shape", length)
        if self.nodes % self.concentration:
            raise ValueError(
                f"topology.nodes must be a multiple of the concentration {self.concentration}, "
                f"got {self.nodes!r}"
            )
        if self.shape and prod(self.shape) * self.concentration != self.nodes:
            raise ValueError(
                f"topology.shape must hold {self.nodes // self.concentration} routers, got {self.shape!r}"
            )

    def _check_edges(self) -> None:
        if (self.kind == "custom") != bool(self.edges):
            raise ValueError(
                f"topology.edges must be given for a custom topology and no other, got {self.edges!r}"
            )
        for edge in self.edges:
            if not (0 <= edge[0] < self.nodes and 0 <= edge[1] < self.nodes) or edge[0] == edge[1]:
                raise ValueError(
                    f"topology.edges must join two different nodes in 0..{self.nodes - 1}, got {edge!r}"
                )
        if len(set(self.edges)) < len(self.edges):
            twice = next(e for k, e in enumerate(self.edges) if e in self.edges[:k])
            raise ValueError(f"topology.edges must be different, got {twice!r} twice")
        for name, least in (("edge_delays", 0), ("edge_widths", 1)):
            values = getattr(self, name)
            if values and len(values) != len(self.edges):
                raise ValueError(
                    f"topology.{name} must be one number for each of the {len(self.edges)} edges, "
                    f"got {len(values)}"
                )
            if values:
                checks.count(f"topology.{name}", values, minimum=least)
        if self.kind == "custom":
            self._check_connected()

    def _check_connected(self) -> None:
        back = [(v, u) for u, v in self.edges]
        for links, what in ((self.edges, "reach node {} from node 0"), (back, "reach node 0 from node {}")):
            out = np.flatnonzero(np.isinf(distances(self.nodes, links, 0)))
            if out.size:
                raise ValueError(f"topology.edges must {what.format(out[0])}")

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """Routers in each dimension; of a ring or Spidergon along the ring, of the others their number."""
        if self.kind not in GRIDS:
            return ({"crossbar": 1, "bus": 2}.get(self.kind, self.nodes),)
        if self.shape:
            return self.shape
        routers = self.nodes // self.concentration
        rows = next(r for r in range(isqrt(routers), 0, -1) if routers % r == 0)
        return rows, routers // rows

    @property
    def routers(self) -> int:
        """Number of routers."""
        return prod(self.dimensions)

    @property
    def columns(self) -> int:
        """Routers in the last dimension, the columns of a mesh."""
        return self.dimensions[-1]

    @cached_property
    def links(self) -> tuple[tuple[int, int], ...]:
        """All directed links (from router, to router), in ascending order."""
        if self.kind == "custom":
            return tuple(sorted(self.edges))
        if self.kind == "bus":
            return ((0, 1),)
        here = np.arange(self.routers).reshape(self.dimensions)
        pairs = []
        for axis, length in enumerate(self.dimensions):
            ahead = np.roll(here, -1, axis)
            kept = np.arange(length) < length - (1 if self.kind == "mesh" else 0)
            if length > 1:
                pairs.append(np.stack([here, ahead], -1).compress(kept, axis).reshape(-1, 2))
        if self.kind == "spidergon":
            pairs.append(np.stack([here, (here + self.nodes // 2) % self.nodes], -1))
        return tuple(sorted({link for both in pairs for u, v in both.tolist() for link in ((u, v), (v, u))}))

    @cached_property
    def link_delays(self) -> tuple[int, ...]:
        """Cycles of wire beyond the first, in the order of `links`."""
        own = dict(zip(self.edges, self.edge_delays, strict=False))
        return tuple(own.get(link, self.delay) for link in self.links)

    @cached_property
    def link_widths(self) -> tuple[int, ...]:
        """Width in bytes of each link in the order of `links`, 0 for the network's own."""
        own = dict(zip(self.edges, self.edge_widths, strict=False))
        return tuple(own.get(link, 0) for link in self.links)

    def injects_into(self, node: Any) -> Any:
        """Return the router that a node (or an array of them) injects into."""
        return node * 0 if self.kind in ("crossbar", "bus") else node // self.concentration

    def ejects_from(self, node: Any) -> Any:
        """Return the router that a node (or an array of them) ejects from."""
        return self.injects_into(node) + (1 if self.kind == "bus" else 0)

    @property
    def initiators(self) -> tuple[int, ...]:
        """Nodes that may send requests."""
        return tuple(n for n in range(self.nodes) if not self.roles or self.roles[n] != "memory")

    @property
    def memories(self) -> tuple[int, ...]:
        """Nodes that hold a memory channel."""
        return tuple(n for n in range(self.nodes) if not self.roles or self.roles[n] != "initiator")

    @property
    def default_routing(self) -> str:
        """The routing that the shape suggests, see `qmodels.systems.noc.routing.ROUTINGS`."""
        return {"spidergon": "across-first", "custom": "shortest"}.get(self.kind, "dimension-order")
