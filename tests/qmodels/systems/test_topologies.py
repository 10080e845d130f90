"""Topologies by name: sizes, links and roles; and from files."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import crossbar, mesh, ring, spidergon, torus
from qmodels.noc import Topology, concentrated_mesh, from_graph, shared_bus

shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).filter(lambda s: np.prod(s) > 1).map(tuple)


@given(shape=shapes)
def test_grids_are_those_of_networkx(shape):
    for make, periodic in ((mesh, False), (torus, True)):
        if periodic and 1 in shape:
            continue  # NetworkX joins a router of a dimension of 1 to itself
        grid = nx.grid_graph(dim=tuple(reversed(shape)), periodic=periodic)
        number = {
            place: int(np.ravel_multi_index(tuple(np.atleast_1d(place)), shape)) for place in grid.nodes
        }
        want = {(number[u], number[v]) for u, v in grid.to_directed().edges}
        assert set(make(*shape).links) == want


def test_nodes_of_a_concentrated_mesh_share_routers():
    chip = concentrated_mesh(2, 3, concentration=4)
    assert (chip.nodes, chip.routers) == (24, 6)
    assert chip.injects_into(np.array([0, 3, 4, 23])).tolist() == [0, 0, 1, 5]
    assert chip.route(0, 3) == (0,)
    assert Topology(kind="mesh", nodes=24, concentration=4).dimensions == (2, 3)


def test_crossbar_and_bus():
    assert (crossbar(5).routers, crossbar(5).links) == (1, ())
    assert (shared_bus(5).routers, shared_bus(5).links) == (2, ((0, 1),))
    assert {shared_bus(5).route(s, t) for s in range(5) for t in range(5)} == {(0, 1)}


def test_delays_of_links():
    assert set(torus(3, 3, delay=1).link_delays) == {1}
    assert set(ring(4).link_delays) == {0}
    graph = nx.DiGraph()
    graph.add_edge(1, 0, delay=4, width=8)
    graph.add_edge(0, 1, width=16)
    chip = from_graph(graph)
    assert (chip.links, chip.link_delays, chip.link_widths) == (((0, 1), (1, 0)), (0, 4), (16, 8))


def test_a_width_for_some_edges_only_is_an_error():
    graph = nx.DiGraph([(0, 1), (1, 0)])
    graph.edges[0, 1]["width"] = 8
    with pytest.raises(ValueError, match=r"must give a width to all edges or none, got none for \(1, 0\)"):
        from_graph(graph)


def test_roles():
    chip = Topology(kind="ring", nodes=3, roles=("initiator", "memory", "both"))
    assert (chip.initiators, chip.memories) == ((0, 2), (1, 2))
    assert spidergon(4).initiators == spidergon(4).memories == (0, 1, 2, 3)
