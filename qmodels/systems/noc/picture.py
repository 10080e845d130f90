"""The picture of a topology: where its routers stand, its links, and what each node is."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.noc.layout import GRIDS

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
