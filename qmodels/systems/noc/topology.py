"""Topologies of a network-on-chip: nodes, routers, directed links, and the usual routes through them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.guarded import guarded
from qmodels.systems.noc.layout import GRIDS, MOST_NODES, Layout, distances, grid_nodes
from qmodels.systems.noc.routes import HOP_BYTES, Routes
from qmodels.systems.noc.routing import find_routes, walks
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.text.reading import Place

if TYPE_CHECKING:
    import networkx as nx

LABELLED = 128
"""Most nodes that are numbered: more would hide the links."""

COLOURS = {"initiator": "#1f6fb4", "memory": "#d1610e", "both": "#6b7280"}


def positions(topology: Any) -> FloatArray:
    """Return where the routers stand: a circle, a grid, or as the links of a custom topology pull them."""
    if topology.kind in GRIDS:
        *outer, across = np.indices(topology.dimensions).reshape(len(topology.dimensions), -1).astype(float)
        places = np.stack([across, 0.0 - (outer[-1] if outer else 0 * across)], axis=1)
        for far in outer[:-1]:  # further dimensions: a grid beside the other, a little lower
            places += np.outer(far, [topology.columns + 0.6, -0.3])
        return np.asarray(places)
    if topology.kind == "custom":
        import networkx as nx

        found = nx.kamada_kawai_layout(topology.graph().to_undirected())
        return np.array([found[router] for router in range(topology.routers)])
    if topology.kind in ("crossbar", "bus"):
        return np.array([[0.4 * k, 0.0] for k in range(topology.routers)])
    angle = np.pi / 2 - 2 * np.pi * np.arange(topology.routers) / topology.routers
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def topology_figure(topology: Any) -> Any:
    """Return the figure: routers with the nodes they serve, links both ways as lines, others as arrows."""
    from matplotlib.lines import Line2D

    from qmodels.systems.spec.pictures import Shown

    places, links = positions(topology), set(topology.links)
    span = np.ptp(places, axis=0)
    size = np.clip(2.5 + 0.5 * span if topology.kind in GRIDS else (5.0, 5.0), 3.0, 12.0)
    figure = Shown(figsize=(float(size[0]), float(size[1]) + 0.4), layout="constrained")
    axes = figure.add_subplot()
    for u, v in sorted(links):
        if u < v or (v, u) not in links:
            style = "-" if (v, u) in links else "-|>"
            curve = f"arc3,rad={_bend(topology, u, v)}"
            look = {"arrowstyle": style, "color": "#9aa3ad", "lw": 1.4, "connectionstyle": curve}
            axes.annotate("", places[v], places[u], arrowprops={**look, "shrinkA": 9, "shrinkB": 9})
    framed = topology.nodes <= LABELLED and topology.kind not in ("crossbar", "bus")
    if not framed:  # else the frame of its nodes' numbers is the router
        square: Any = {"marker": "s", "facecolors": "white", "edgecolors": "#3d444d", "zorder": 2}
        axes.scatter(places[:, 0], places[:, 1], s=60, **square)
    _nodes(axes, topology, places)
    used = [role for role in COLOURS if role in (topology.roles or ("both",))]
    dots = [Line2D([], [], marker="o", linestyle="", color=COLOURS[role], label=role) for role in used]
    if topology.roles:
        figure.legend(handles=dots, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    axes.set_title(
        f"{topology.kind}: {topology.nodes} nodes, {topology.routers} routers, {len(links)} links",
        fontsize=10,
    )
    axes.update_datalim(places)  # what is annotated has no limits of its own
    axes.margins(0.15)
    axes.set_aspect("equal")
    axes.axis("off")
    return figure


def _bend(topology: Any, u: int, v: int) -> float:
    """Return the bend of a link: those that close a circle of a torus pass beside the others."""
    wraps = topology.kind == "torus" and np.abs(np.diff(_coordinates(topology, (u, v)), axis=1)).max() > 1
    return 0.25 if wraps else 0.0


def _coordinates(topology: Any, routers: tuple[int, int]) -> Any:
    return np.array(np.unravel_index(routers, topology.dimensions))


def _nodes(axes: Any, topology: Any, places: FloatArray) -> None:
    """Draw the numbers of the nodes, on their router or around one that serves many."""
    roles = topology.roles or ("both",) * topology.nodes
    nodes = np.arange(topology.nodes)
    routers = np.broadcast_to(topology.injects_into(nodes), nodes.shape)
    many = topology.kind in ("crossbar", "bus")
    angle = np.pi / 2 - 2 * np.pi * nodes / topology.nodes
    around = places.mean(axis=0) + np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for node in nodes if topology.nodes <= LABELLED else ():
        served = np.flatnonzero(routers == routers[node])
        spot, text = places[routers[node]], str(node)
        if many:
            ends = places[routers[node]], places[topology.ejects_from(node)]
            for end in ends:
                axes.plot(*zip(around[node], end, strict=True), color="#d0d5db", lw=0.9, zorder=1)
            spot = around[node]
            axes.scatter(*spot, s=210, color="white", edgecolors=COLOURS[roles[node]], zorder=2)
        elif len(served) > 1:
            if node != served[0]:
                continue
            text = f"{served[0]}-{served[-1]}"
        look = {"ha": "center", "va": "center", "fontsize": 8, "color": COLOURS[roles[node]], "zorder": 3}
        frame = None if many else {"boxstyle": "square", "fc": "white", "ec": "#3d444d"}
        axes.annotate(text, spot, bbox=frame, **look)
    if topology.nodes > LABELLED:
        colours = [COLOURS[roles[int(np.flatnonzero(routers == k)[0])]] for k in np.unique(routers)]
        axes.scatter(places[:, 0], places[:, 1], s=12, color=colours, zorder=3)


PAIR_BYTES = 220
"""What a pair of nodes takes in the model, where each channel of its route takes nothing. [bytes]

Peaks of processes that solve uniform traffic of 1,024 and 4,096 nodes, less that of a small one, were 0.7 to
0.9 of it; of walked routes, in a mesh 28 x 28, 0.8 of it and `HOP_BYTES`.
"""
LOOKED = 8
"""Routers from which distances are found."""


@dataclass(frozen=True, kw_only=True)
class Topology(Layout):
    """Nodes that inject and eject packets, on routers that are joined by directed links.

    Made by `qmodels.systems.noc.topology.spidergon`, `mesh` and so on. A router has one node, with
    these exceptions: ``concentration`` nodes share each router of a mesh or torus (node *n* is on
    router ``n // concentration``); a crossbar is one router with all nodes; a bus is the link from
    a router that all nodes inject into to one that all nodes eject from.

    Routers of grids are numbered with the last dimension fastest: rows before columns.

    Raises
    ------
    ValueError
        If the kind, the number of nodes, an edge or a role is not allowed, or a custom graph is not
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

    __toml_keys__: ClassVar[tuple[str, ...]] = ("rows", "columns")

    @classmethod
    def __from_toml__(cls, value: Any, place: Place) -> Any:
        """Read also a kind with its lengths, ``"mesh 8 8"``, and a grid by its rows and columns."""
        if isinstance(value, str):
            kind, *words = value.split() or [""]
            lengths = [int(word) if word.isdecimal() else word for word in words]
            value = {"kind": kind}
            if lengths:
                value |= {"shape": lengths} if kind in GRIDS or len(lengths) > 1 else {"nodes": lengths[0]}
        if isinstance(value, dict) and not set(cls.__toml_keys__).isdisjoint(value):
            sides = [value.get(name, 1) for name in cls.__toml_keys__]
            value = {k: v for k, v in value.items() if k not in cls.__toml_keys__} | {"shape": sides}
        if isinstance(value, dict) and value.get("shape") and "nodes" not in value:
            sides = place.at("shape").read(value["shape"], tuple[int, ...])
            value = {**value, "nodes": prod(sides) * value.get("concentration", 1)}
        return value

    @cached_property
    def _usual_routes(self) -> Routes:
        """The default routes between all pairs of nodes, by source and then by target."""
        nodes = np.arange(self.nodes)
        return find_routes(
            self, self.default_routing, source=nodes.repeat(self.nodes), target=np.tile(nodes, self.nodes)
        )

    def route(self, source: int, target: int) -> tuple[int, ...]:
        """Return the routers visited from a source node to a target node by the default routing."""
        return self._usual_routes.path(source * self.nodes + target)

    def plot(self) -> Any:
        """Return a matplotlib figure, which a notebook shows at once: routers, links, and what nodes are."""
        return topology_figure(self)

    def graph(self) -> nx.DiGraph[Any]:
        """Return the routers and links as a NetworkX directed graph."""
        import networkx as nx

        graph: nx.DiGraph[Any] = nx.DiGraph()
        graph.add_nodes_from(range(self.routers))
        graph.add_edges_from(self.links)
        return graph


def from_graph(graph: nx.Graph[Any], *, roles: tuple[str, ...] = ()) -> Topology:
    """Return the custom topology of a NetworkX graph; undirected edges become two links.

    Nodes must be the integers 0..n-1. Edges may have the attributes ``delay`` (cycles of wire beyond
    the first, 0 if left out) and ``width`` [bytes]: of all edges, or of none.

    Examples
    --------
    >>> import networkx as nx
    >>> from_graph(nx.star_graph(3)).route(1, 2)
    (1, 0, 2)
    """
    if not hasattr(graph, "to_directed"):
        raise ValueError(f"topology graph must be a graph of NetworkX, got {checks.shown(graph)}")
    if set(graph.nodes) != set(range(graph.number_of_nodes())):
        raise ValueError(
            f"topology graph must have the nodes 0..n-1, got {sorted(map(str, graph.nodes))[:8]!r}"
        )
    directed = graph.to_directed()
    edges = sorted(directed.edges())
    data = [directed.edges[edge] for edge in edges]
    widths = [d["width"] for d in data if "width" in d]
    if widths and len(widths) < len(edges):
        lacking = next(edge for edge, d in zip(edges, data, strict=True) if "width" not in d)
        raise ValueError(f"topology graph must give a width to all edges or none, got none for {lacking!r}")
    return Topology(
        kind="custom",
        nodes=directed.number_of_nodes(),
        edges=tuple(edges),
        edge_delays=tuple(d.get("delay", 0) for d in data) if any("delay" in d for d in data) else (),
        edge_widths=tuple(widths),
        roles=roles,
    )


def afford_routes(field: str, topology: Topology, pairs: float, routing: str = "default") -> None:
    """Refuse routes between n pairs of nodes that take more memory than is allowed."""
    hops = _mean_distance(topology) if walks(topology, routing) else 0.0
    routes = pairs * (1 + (routing == "o1turn"))
    afford(field, topology.nodes, bytes=routes * (PAIR_BYTES + HOP_BYTES * hops))


def _mean_distance(topology: Topology) -> float:
    """Return the mean number of links from a router to all, over a few of them."""
    some = range(0, topology.routers, max(1, topology.routers // LOOKED))
    found = distances(topology.routers, topology.links, list(some))
    return float(np.where(np.isinf(found), 0.0, found).mean())


@guarded
def ring(nodes: int, *, delay: int = 0) -> Topology:
    """Return a ring with links both ways.

    Examples
    --------
    >>> ring(6).route(4, 1)
    (4, 5, 0, 1)
    """
    return Topology(kind="ring", nodes=nodes, delay=delay)


@guarded
def spidergon(nodes: int, *, delay: int = 0) -> Topology:
    """Return a Spidergon: a ring of an even number of nodes with links across.

    Examples
    --------
    >>> spidergon(16).route(0, 6)
    (0, 8, 7, 6)
    """
    return Topology(kind="spidergon", nodes=nodes, delay=delay)


@guarded
def mesh(*shape: int, delay: int = 0) -> Topology:
    """Return a mesh of rows and columns, or of any other number of dimensions.

    Examples
    --------
    >>> mesh(3, 4).route(0, 9)
    (0, 1, 5, 9)
    >>> mesh(2, 2, 2).nodes
    8
    """
    return Topology(kind="mesh", nodes=grid_nodes(shape), shape=shape, delay=delay)


@guarded
def torus(*shape: int, delay: int = 0) -> Topology:
    """Return a torus; ``torus(k, k)`` is the k-ary 2-cube. A folded one has links of delay 1.

    Examples
    --------
    >>> torus(4, 4).route(0, 15)
    (0, 3, 15)
    """
    return Topology(kind="torus", nodes=grid_nodes(shape), shape=shape, delay=delay)


@guarded
def concentrated_mesh(*shape: int, concentration: int = 4, delay: int = 0) -> Topology:
    """Return a mesh whose routers have several nodes each.

    Examples
    --------
    >>> concentrated_mesh(2, 2).route(1, 14)
    (0, 1, 3)
    """
    checks.one_number("topology.concentration", concentration)
    checks.count("topology.concentration", concentration, maximum=MOST_NODES)
    return Topology(
        kind="mesh",
        nodes=grid_nodes(shape) * concentration,
        shape=shape,
        concentration=concentration,
        delay=delay,
    )


@guarded
def crossbar(nodes: int) -> Topology:
    """Return one router with all nodes.

    Examples
    --------
    >>> crossbar(4).route(0, 3)
    (0,)
    """
    return Topology(kind="crossbar", nodes=nodes)


@guarded
def shared_bus(nodes: int, *, delay: int = 0) -> Topology:
    """Return a bus: one link that all packets take in turn.

    Examples
    --------
    >>> shared_bus(4).route(0, 3), shared_bus(4).links
    ((0, 1), ((0, 1),))
    """
    return Topology(kind="bus", nodes=nodes, delay=delay)
