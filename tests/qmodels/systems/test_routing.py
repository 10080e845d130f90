"""Routes: what each routing promises, against plain walks and searches that share no code."""

import math
from collections import Counter, defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import crossbar, mesh, ring, spidergon, torus
from qmodels.noc import SourceRoute, Topology, concentrated_mesh, from_graph, shared_bus
from qmodels.systems.noc.routing import find_routes

graphs = st.builds(
    lambda n, seed: from_graph(nx.compose(nx.gnp_random_graph(n, 0.3, seed=seed), nx.path_graph(n))),
    st.integers(2, 9),
    st.integers(0, 99),
)
rings = st.integers(3, 12).map(ring)
tori = st.tuples(st.integers(2, 5), st.integers(2, 5)).map(lambda shape: torus(*shape))


def all_pairs(topology, routing="default", **options):
    nodes = np.arange(topology.nodes)
    routes = find_routes(
        topology, routing, source=nodes.repeat(nodes.size), target=np.tile(nodes, nodes.size), **options
    )
    found = defaultdict(list)
    for k in range(routes.pair.size):
        pair = divmod(int(routes.pair[k]), nodes.size)
        legs = [slice(routes.start[leg], routes.start[leg + 1] - 1) for leg in routes.legs[:, k]]
        classes = [one for leg in legs for one in routes.vc_class[leg].tolist()]
        found[pair].append((routes.path(k), float(routes.share[k]), classes))
    return found


@given(topology=st.one_of(rings, tori), ties=st.sampled_from(["first", "split"]))
def test_shares_add_up_and_all_ways_are_minimal(topology, ties):
    shortest = dict(nx.all_pairs_shortest_path_length(topology.graph()))
    links = set(topology.links)
    for (source, target), routes in all_pairs(topology, ties=ties).items():
        assert sum(share for _, share, _ in routes) == 1
        assert len({path for path, _, _ in routes}) == len(routes)
        for path, _, _ in routes:
            assert (path[0], path[-1], len(path) - 1) == (source, target, shortest[source][target])
            assert set(zip(path, path[1:], strict=False)) <= links


@given(topology=tori)
def test_split_ties_load_both_ways_alike(topology):
    # The mirror image of a torus has the mirrored loads: only the tie-break tells left from right.
    load = defaultdict(float)
    for routes in all_pairs(topology, ties="split").values():
        for path, share, _ in routes:
            for hop in zip(path, path[1:], strict=False):
                load[hop] += share
    for (u, v), value in load.items():
        assert load[v, u] == pytest.approx(value)


@given(topology=st.one_of(rings, tori))
def test_class_one_is_for_packets_that_pass_the_ends_of_a_ring(topology):
    shape = topology.dimensions
    for routes in all_pairs(topology).values():
        for path, _, classes in routes:
            places = [np.unravel_index(router, shape) for router in path]
            for axis, size in enumerate(shape):
                moved = [
                    k for k, (a, b) in enumerate(zip(places, places[1:], strict=False)) if a[axis] != b[axis]
                ]
                passes = any(abs(int(places[k][axis]) - int(places[k + 1][axis])) > 1 for k in moved)
                expected = -1 if size <= 2 else int(passes)
                assert {classes[k] for k in moved} <= {expected}


@given(half=st.integers(2, 12))
def test_cross_links_are_in_no_class(half):
    topology = spidergon(2 * half)
    for routes in all_pairs(topology).values():
        for path, _, classes in routes:
            ahead = [(b - a) % (2 * half) for a, b in zip(path, path[1:], strict=False)]
            wraps = any({a, b} == {0, 2 * half - 1} for a, b in zip(path, path[1:], strict=False) if half > 2)
            for step, vc_class in zip(ahead, classes, strict=True):
                if step == half:
                    assert vc_class == -1
                elif half > 2:
                    assert vc_class == int(wraps)


def test_o1turn_goes_half_each_way():
    routes = all_pairs(mesh(3, 3), "o1turn")[0, 8]
    assert routes == [((0, 1, 2, 5, 8), 0.5, [0] * 4), ((0, 3, 6, 7, 8), 0.5, [1] * 4)]


def test_ties_of_shortest_routes():
    square = from_graph(nx.cycle_graph(4))
    assert all_pairs(square)[0, 2][0][0] == (0, 1, 2)
    assert all_pairs(square)[2, 0][0][0] == (2, 1, 0)


@given(topology=graphs)
def test_up_down_routes_never_go_up_after_down(topology):
    level = nx.single_source_shortest_path_length(topology.graph(), 0)
    shortest = dict(nx.all_pairs_shortest_path_length(topology.graph()))
    for (source, target), [(path, _, _)] in all_pairs(topology, "up-down").items():
        assert (path[0], path[-1]) == (source, target)
        ups = [(level[b], b) < (level[a], a) for a, b in zip(path, path[1:], strict=False)]
        assert ups == sorted(ups, reverse=True)
        assert len(path) - 1 >= shortest[source][target]
        assert len(set(path)) == len(path)


def test_routes_of_shared_routers():
    chip = concentrated_mesh(2, 2, concentration=2)
    assert all_pairs(chip)[0, 7][0][0] == (0, 1, 3)
    assert all_pairs(chip)[0, 1][0][0] == (0,)
    assert all_pairs(crossbar(3))[0, 2][0][0] == (0,)


def test_tables():
    table = [
        SourceRoute(source=0, target=2, routers=(0, 1, 2), share=0.25),
        SourceRoute(source=0, target=2, routers=(0, 3, 2), share=0.75),
    ]
    routes = find_routes(ring(4), "table", source=[0], target=[2], table=table)
    assert [routes.path(k) for k in range(2)] == [(0, 1, 2), (0, 3, 2)]
    assert routes.share.tolist() == [0.25, 0.75]


def one(routers, share=1.0):
    return [SourceRoute(source=0, target=2, routers=routers, share=share)]


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
