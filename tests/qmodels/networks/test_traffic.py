"""Traffic equations, visits and graphs as descriptions of routing."""

import networkx as nx
import numpy as np
import pytest
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: routing_matrix(nx.DiGraph()), "routing must have at least one station, got an empty graph"),
        (
            lambda: routing_matrix(nx.DiGraph([("a", "b")])),
            "routing must have a probability on every edge, got none on 'a' -> 'b'",
        ),
        (
            lambda: routing_matrix(closed_graph(("a", "b", 1.5))),
            r"routing\['a', 'b'\] must be in \[0, 1\], got 1.5",
        ),
        (
            lambda: routing_matrix(closed_graph(("a", "b", 0.7), ("a", "a", 0.7))),
            "routing out of a station must sum to at most 1, got 1.4 at station 'a'",
        ),
        (
            lambda: traffic_equations(arrival_rate=[1], routing=[[0.5, 0.6]]),
            r"routing must have the shape \(stations, stations\), .* got \(1, 2\)",
        ),
        (
            lambda: traffic_equations(arrival_rate=[1, 0], routing=[[0, 1], [0.6, 0.6]]),
            "routing out of a station must sum to at most 1, got 1.2 at station 1",
        ),
        (
            lambda: traffic_equations(arrival_rate=[1, 0, 0], routing=[[0, 1], [0, 0]]),
            r"arrival_rate must have the shape \(2,\) or \(2, classes\), got \(3,\)",
        ),
        (
            lambda: traffic_equations(arrival_rate=[1, 0], routing=[[[0, 1], [0, 0]]] * 3),
            r"arrival_rate must have the shape \(2, 3\), got \(2,\)",
        ),
        (
            lambda: traffic_equations(arrival_rate=[1, 0], routing=[[0, 1], [1, 0]]),
            "routing must let every job leave the network, got a part without a way out",
        ),
        (
            lambda: traffic_equations(arrival_rate={"a": 1}, routing=closed_graph(("a", "b", 1))),
            "arrival_rate must have a value for every station, got none for 'b'",
        ),
        (
            lambda: traffic_equations(arrival_rate={"ab": 1}, routing=closed_graph(("abc", "b", 1))),
            "arrival_rate must name stations of the network, got 'ab'; did you mean 'abc'?",
        ),
        (
            lambda: visit_ratios(routing=[[0, 0.5], [1, 0]]),
            "routing out of each station of a closed network must sum to 1, got 0.5 at station 0",
        ),
        (
            lambda: visit_ratios(routing=[[0, 1], [1, 0]], reference=3),
            "reference must be a station of the network, got 3",
        ),
        (
            lambda: visit_ratios(routing=[[0, 1], [0, 1]]),
            "reference must be a station to which every job returns, got 0",
        ),
        (
            lambda: visit_ratios(routing=np.zeros((2, 2, 2, 2))),
            "routing of a closed network must keep the class of a job, got 4 dimensions",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
