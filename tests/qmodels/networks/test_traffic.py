"""Traffic equations, visits and graphs as descriptions of routing."""

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.networks import routing_matrix, traffic_equations, visit_ratios


@st.composite
def routings(draw, least_loss=0.05):
    size = draw(st.integers(1, 5))
    weights = np.array(
        draw(
            st.lists(
                st.lists(st.just(0.0) | st.floats(1e-6, 1.0), min_size=size, max_size=size),
                min_size=size,
                max_size=size,
            )
        )
    )
    kept = np.array([1 - (draw(st.floats(least_loss, 1.0)) if least_loss else 0.0) for _ in range(size)])
    total = weights.sum(axis=1)
    return weights * np.where(total > 0, kept / np.where(total > 0, total, 1), 0)[:, None]


@given(routing=routings(), entering=st.lists(st.floats(0.0, 10.0), min_size=5, max_size=5))
def test_flow_is_conserved(routing, entering):
    gamma = np.array(entering[: len(routing)])
    rates = traffic_equations(arrival_rate=gamma, routing=routing)
    # By the Neumann series: what arrives after 0, 1, 2, ... visits.
    wave, total = gamma.copy(), gamma.copy()
    for _ in range(2000):
        wave = wave @ routing
        total += wave
    assert_allclose(rates, total, rtol=1e-9, atol=1e-12)
    assert_allclose(rates @ (1 - routing.sum(axis=1)), gamma.sum(), rtol=1e-9, atol=1e-12)


def test_classes_share_have_their_own_or_change():
    line, loop = np.array([[0, 1.0], [0, 0]]), np.array([[0, 0.5], [0.5, 0]])
    gamma = np.array([[1.0, 2.0], [0.5, 0.0]])
    shared = traffic_equations(arrival_rate=gamma, routing=line)
    assert_allclose(shared, [[1, 2], [1.5, 2]])
    own = traffic_equations(arrival_rate=gamma, routing=[line, loop])
    assert_allclose(own[:, 0], shared[:, 0])
    assert_allclose(own[:, 1], traffic_equations(arrival_rate=gamma[:, 1], routing=loop))
    # Every job that leaves station 0 turns into class 1 at station 1.
    change = np.zeros((2, 2, 2, 2))
    change[0, :, 1, 1] = 1.0
    assert_allclose(traffic_equations(arrival_rate=gamma, routing=change), [[1, 2], [0.5, 3]])


@given(routing=routings(least_loss=0.0))
def test_visits_are_a_fixed_point(routing):
    size = len(routing)
    # A way home from everywhere, and to everywhere, makes every station recurrent.
    mixed = 0.5 * routing + 0.5 / size
    mixed /= mixed.sum(axis=1, keepdims=True)
    visits = visit_ratios(routing=mixed, reference=size - 1)
    assert visits[size - 1] == 1
    assert_allclose(visits @ mixed, visits, rtol=1e-12)


def test_visits_of_classes_and_of_stations_never_met():
    cycle = np.array([[0, 1.0, 0], [1, 0, 0], [1, 0, 0]])
    assert_allclose(visit_ratios(routing=cycle), [1, 1, 0])
    other = np.array([[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]])
    assert_allclose(visit_ratios(routing=[cycle, other]), [[1, 1], [1, 0.5], [0, 0.5]])
    # The row of a station that the class does not visit is of no account.
    assert_allclose(visit_ratios(routing=[[0, 1, 0], [1, 0, 0], [0, 0, 0]]), [1, 1, 0])


def test_graph_is_a_description_and_parallel_paths_add():
    graph = nx.MultiDiGraph()
    graph.add_node("a")
    graph.add_edge("a", "b", probability=0.25)
    graph.add_edge("a", "b", probability=0.25)
    stations, matrix = routing_matrix(graph)
    assert stations == ("a", "b")
    assert_allclose(matrix, [[0, 0.5], [0, 0]])
    rates = traffic_equations(arrival_rate={"b": 1.0, "a": 2.0}, routing=graph)
    assert_allclose(rates, [2, 2])


def closed_graph(*edges):
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(edges, weight="probability")
    return graph
