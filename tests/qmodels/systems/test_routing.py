"""Routes: what each routing promises, against plain walks and searches that share no code."""

from __future__ import annotations

from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import crossbar, mesh, ring, spidergon, torus
from qmodels.noc import SourceRoute, concentrated_mesh, from_graph
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
        classes = routes.vc_class[routes.start[k] : routes.start[k + 1] - 1].tolist()
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
