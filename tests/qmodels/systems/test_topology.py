"""Routes are valid and minimal; the Spidergon has its published properties."""

from __future__ import annotations

import math
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels.noc import Topology, from_graph


def joined_graph(nodes, seed):
    """Return a random graph that a star keeps in one piece."""
    return nx.compose(nx.gnp_random_graph(nodes, 0.3, seed=seed), nx.star_graph(nodes - 1))


spidergons = st.integers(2, 18).map(lambda half: Topology(kind="spidergon", nodes=2 * half))
topologies = st.one_of(
    spidergons,
    st.integers(2, 24).map(lambda nodes: Topology(kind="ring", nodes=nodes)),
    st.integers(2, 24).map(lambda nodes: Topology(kind="mesh", nodes=nodes)),
    st.builds(joined_graph, st.integers(2, 9), st.integers(0, 99)).map(from_graph),
)


@given(topology=topologies)
def test_routes_are_minimal_paths_over_links(topology):
    links = set(topology.links)
    shortest = dict(nx.all_pairs_shortest_path_length(topology.graph()))
    for source in range(topology.nodes):
        for target in range(topology.nodes):
            route = topology.route(source, target)
            assert (route[0], route[-1]) == (source, target)
            assert set(zip(route, route[1:], strict=False)) <= links
            assert len(route) - 1 == shortest[source][target]


@given(topology=topologies)
def test_links_are_distinct_and_run_both_ways(topology):
    assert list(topology.links) == sorted(set(topology.links))
    assert {(v, u) for u, v in topology.links} == set(topology.links)
    assert set(topology.graph().edges) == set(topology.links)


@given(topology=spidergons)
def test_spidergon_degree_diameter_and_distances(topology):
    # Sums of distances by counting nodes at each distance; diameter ceil(N/4).
    n = topology.nodes
    assert set(Counter(u for u, _ in topology.links).values()) == {3}
    hops = [len(topology.route(0, target)) - 1 for target in range(n)]
    m = n // 4
    assert max(hops) == math.ceil(n / 4)
    assert sum(hops) == (2 * m * m + 2 * m - 1 if n % 4 == 0 else 2 * m * m + 4 * m + 1)


@given(topology=spidergons)
def test_spidergon_takes_the_cross_link_first_and_once(topology):
    n = topology.nodes
    for target in range(1, n):
        route = topology.route(0, target)
        across = [k for k, (u, v) in enumerate(zip(route, route[1:], strict=False)) if (v - u) % n == n // 2]
        assert across == ([0] if n < 4 * target < 3 * n else [])


@pytest.mark.parametrize("m", [1, 2, 4, 8])
def test_spidergon_link_loads_under_uniform_traffic(m):
    # Uniform traffic over N = 4m nodes: m^2 routes cross a ring link, 2m - 1 a cross link.
    topology = Topology(kind="spidergon", nodes=4 * m)
    n = topology.nodes
    load = Counter()
    for source in range(n):
        for target in range(n):
            route = topology.route(source, target)
            load.update(zip(route, route[1:], strict=False))
    for u, v in topology.links:
        across = (v - u) % n == n // 2
        assert load[u, v] == (2 * m - 1 if across else m * m)


@pytest.mark.parametrize(("nodes", "columns"), [(16, 4), (12, 4), (7, 7), (2, 2), (20, 5)])
def test_mesh_is_the_most_square_one(nodes, columns):
    topology = Topology(kind="mesh", nodes=nodes)
    assert topology.columns == columns
    assert nx.is_isomorphic(topology.graph().to_undirected(), nx.grid_2d_graph(columns, nodes // columns))


def test_mesh_routes_columns_before_rows():
    assert Topology(kind="mesh", nodes=16).route(0, 10) == (0, 1, 2, 6, 10)


def test_ring_ties_go_clockwise():
    assert Topology(kind="ring", nodes=6).route(4, 1) == (4, 5, 0, 1)


def test_custom_ties_go_to_the_lowest_neighbour():
    assert from_graph(nx.cycle_graph(4)).route(0, 2) == (0, 1, 2)
    assert from_graph(nx.DiGraph([(0, 1), (1, 2), (2, 0)])).route(0, 2) == (0, 1, 2)


def test_graph_nodes_must_be_numbered():
    with pytest.raises(ValueError, match=r"topology graph must have the nodes 0..n-1, got \['a', 'b'\]"):
        from_graph(nx.Graph([("a", "b")]))
