"""The picture of a topology: routers apart, a line a link, the numbers and roles of the nodes."""

from __future__ import annotations

import numpy as np
import pytest

from qmodels.noc import Topology
from qmodels.systems.noc.picture import LABELLED, positions

SHAPES = {
    "spidergon": {"nodes": 16},
    "ring": {"nodes": 5},
    "mesh": {"nodes": 24, "shape": (3, 4), "concentration": 2},
    "torus": {"nodes": 27, "shape": (3, 3, 3)},
    "crossbar": {"nodes": 6},
    "bus": {"nodes": 6},
    "custom": {"nodes": 4, "edges": ((0, 1), (1, 2), (2, 3), (3, 0), (1, 0))},
}


def drawn(topology):
    """Return the texts and the arrows of a topology's picture."""
    (axes,) = topology.plot().axes
    texts = {text.get_text() for text in axes.texts} - {""}
    return texts, [text.arrow_patch for text in axes.texts if getattr(text, "arrow_patch", None)]


@pytest.mark.parametrize("kind", SHAPES)
def test_every_link_and_node_is_drawn_once(kind):
    topology = Topology(kind=kind, **SHAPES[kind])
    places = positions(topology)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(len(places))
    assert places.shape == (topology.routers, 2) and apart.min() > 0.2
    (axes,) = topology.plot().axes
    for at, (low, high) in zip(places.T, (axes.get_xlim(), axes.get_ylim()), strict=True):
        assert low < at.min() and at.max() < high, "routers outside the picture"
    texts, arrows = drawn(topology)
    assert len(arrows) == len({tuple(sorted(link)) for link in topology.links})
    nodes = {str(node) for node in range(topology.nodes)}
    assert texts == ({f"{n}-{n + 1}" for n in range(0, 24, 2)} if kind == "mesh" else nodes)


def test_a_link_one_way_is_an_arrow_and_roles_have_colours():
    _, arrows = drawn(Topology(kind="custom", **SHAPES["custom"]))
    heads = [type(arrow.get_arrowstyle()).__name__ for arrow in arrows]
    assert sorted(heads) == ["Curve", "CurveFilledB", "CurveFilledB", "CurveFilledB"]
    figure = Topology(kind="ring", nodes=3, roles=("initiator", "memory", "both")).plot()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["initiator", "memory", "both"]
    assert len({text.get_color() for text in figure.axes[0].texts if text.get_text().isdigit()}) == 3


def test_many_nodes_are_not_numbered_and_a_notebook_shows_it_at_once():
    topology = Topology(kind="mesh", nodes=LABELLED * 2)
    assert drawn(topology)[0] == set()
    assert topology.plot()._repr_png_().startswith(b"\x89PNG")
