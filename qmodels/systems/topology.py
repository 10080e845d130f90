"""Topologies of a network-on-chip and the deterministic routes through them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isqrt
from typing import TYPE_CHECKING, Any

from qmodels import _check

if TYPE_CHECKING:
    import networkx as nx

KINDS = ("spidergon", "ring", "mesh", "custom")


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Nodes joined by directed links, with one route for each pair of nodes.

    Spidergon routes across-first: along the ring for up to a quarter of its length, otherwise
    over the cross link first and then along the ring [1]_. Rings take the shorter way
    (clockwise on a tie), meshes the columns before the rows (XY), custom graphs a shortest
    path that leaves each node for its lowest-numbered neighbour on one.

    Parameters
    ----------
    kind : {"spidergon", "ring", "mesh", "custom"}
        Shape. A mesh is the most square one with that many nodes.
    nodes : int
        Number of nodes, at least 2; even and at least 4 for a Spidergon.
    edges : tuple of (int, int)
        Directed links of a custom topology, see `from_graph`; empty for the others.

    Raises
    ------
    ValueError
        If the kind, the number of nodes or an edge is not allowed, or a custom graph is not
        strongly connected.

    References
    ----------
    .. [1] M. Coppola, R. Locatelli, G. Maruccia, L. Pieralisi, A. Scandurra, "Spidergon: a
       novel on-chip communication network", International Symposium on System-on-Chip, 2004.

    Examples
    --------
    >>> spidergon = Topology(kind="spidergon", nodes=8)
    >>> len(spidergon.links), spidergon.route(1, 6)
    (24, (1, 5, 6))
    """

    kind: str = "spidergon"
    nodes: int = 16
    edges: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        _check.choice("topology.kind", self.kind, KINDS)
        _check.count("topology.nodes", self.nodes, minimum=2)
        if self.kind == "spidergon" and (self.nodes < 4 or self.nodes % 2):
            raise ValueError(f"topology.nodes of a spidergon must be even and >= 4, got {self.nodes!r}")
        if (self.kind == "custom") != bool(self.edges):
            raise ValueError(
                f"topology.edges must be given for a custom topology and no other, got {self.edges!r}"
            )
        for edge in self.edges:
            if not (0 <= edge[0] < self.nodes and 0 <= edge[1] < self.nodes) or edge[0] == edge[1]:
                raise ValueError(
                    f"topology.edges must join two different nodes in 0..{self.nodes - 1}, got {edge!r}"
                )
        if self.kind == "custom":
            for target in range(self.nodes):
                if min(_distances_to(self, target)) < 0:
                    raise ValueError(f"topology.edges must reach node {target} from every node")

    @cached_property
    def links(self) -> tuple[tuple[int, int], ...]:
        """All directed links (from node, to node), in ascending order."""
        return tuple(sorted({link for node in range(self.nodes) for link in self._links_from(node)}))

    @cached_property
    def columns(self) -> int:
        """Columns of a mesh: the largest divisor of the node count up to its square root gives the rows."""
        rows = next(r for r in range(isqrt(self.nodes), 0, -1) if self.nodes % r == 0)
        return self.nodes // rows

    def route(self, source: int, target: int) -> tuple[int, ...]:
        """Return the nodes visited from source to target, both included."""
        path = [source]
        while path[-1] != target:
            path.append(self._next(path[0], path[-1], target))
        return tuple(path)

    def graph(self) -> nx.DiGraph[Any]:
        """Return the topology as a NetworkX directed graph."""
        import networkx as nx

        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_nodes_from(range(self.nodes))
        graph.add_edges_from(self.links)
        return graph

    def _links_from(self, node: int) -> list[tuple[int, int]]:
        n = self.nodes
        if self.kind == "custom":
            return [edge for edge in self.edges if edge[0] == node]
        if self.kind == "mesh":
            row, column = divmod(node, self.columns)
            steps = ((row, column - 1), (row, column + 1), (row - 1, column), (row + 1, column))
            rows = n // self.columns
            return [(node, r * self.columns + c) for r, c in steps if 0 <= r < rows and 0 <= c < self.columns]
        neighbours = {(node + 1) % n, (node - 1) % n}
        if self.kind == "spidergon":
            neighbours.add((node + n // 2) % n)
        return [(node, other) for other in neighbours]

    def _next(self, source: int, here: int, target: int) -> int:
        n = self.nodes
        ahead = (target - here) % n
        if self.kind == "custom":
            distance = _distances_to(self, target)
            return min(v for u, v in self.edges if u == here and distance[v] == distance[here] - 1)
        if self.kind == "mesh":
            row, column = divmod(here, self.columns)
            goal_row, goal_column = divmod(target, self.columns)
            if column != goal_column:
                return here + (1 if goal_column > column else -1)
            return here + (self.columns if goal_row > row else -self.columns)
        if self.kind == "spidergon" and here == source and n < 4 * ahead < 3 * n:
            return (here + n // 2) % n
        return (here + (1 if 2 * ahead <= n else -1)) % n


def from_graph(graph: nx.Graph[Any]) -> Topology:
    """Return the custom topology of a NetworkX graph; undirected edges become two links.

    Nodes must be the integers 0..n-1.

    Examples
    --------
    >>> import networkx as nx
    >>> from_graph(nx.star_graph(3)).route(1, 2)
    (1, 0, 2)
    """
    if set(graph.nodes) != set(range(graph.number_of_nodes())):
        raise ValueError(
            f"topology graph must have the nodes 0..n-1, got {sorted(map(str, graph.nodes))[:8]!r}"
        )
    directed = graph.to_directed()
    return Topology(kind="custom", nodes=directed.number_of_nodes(), edges=tuple(sorted(directed.edges())))


@lru_cache(maxsize=4096)
def _distances_to(topology: Topology, target: int) -> tuple[int, ...]:
    """Hops from every node to target (breadth first over reversed links); -1 where there is no path."""
    distance = [-1] * topology.nodes
    distance[target] = 0
    queue = deque([target])
    while queue:
        here = queue.popleft()
        for u, v in topology.edges:
            if v == here and distance[u] < 0:
                distance[u] = distance[here] + 1
                queue.append(u)
    return tuple(distance)
