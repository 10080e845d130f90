"""Chains in discrete time, against powers of the matrix and counting."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.markov import CTMC, DTMC
from qmodels.markov.chains import dtmc as dtmc_module

seeds = st.integers(0, 10**6)


def random_matrix(seed, n):
    rng = np.random.default_rng(seed)
    matrix = rng.exponential(size=(n, n)) * (rng.random((n, n)) < 0.7) + 1e-3
    return matrix / matrix.sum(axis=1, keepdims=True)


@given(seeds, st.integers(1, 9))
def test_stationary_law_is_the_limit_of_powers(seed, n):
    matrix = random_matrix(seed, n)
    law = DTMC(transition_matrix=matrix).stationary()
    assert_allclose(law.probabilities, np.linalg.matrix_power(matrix, 10**6)[0], rtol=1e-8)
    assert_allclose(law.probabilities @ matrix, law.probabilities, rtol=1e-12)
    assert law.residual < 1e-14
    as_rates = CTMC(generator=matrix - np.eye(n))
    assert_allclose(as_rates.stationary().probabilities, law.probabilities, rtol=1e-12)


@given(seeds, st.integers(2, 6), st.integers(0, 40), st.integers(0, 40))
def test_steps_and_visits(seed, n, first, second):
    matrix = random_matrix(seed, n)
    chain = DTMC(transition_matrix=matrix)
    steps = [first, first + second]
    found = chain.transient(steps=steps, initial=0)
    assert_allclose(found, [np.linalg.matrix_power(matrix, k)[0] for k in steps], rtol=1e-10)
    visits = chain.occupancy(steps=steps, initial=0)
    assert_allclose(visits.sum(axis=1), steps, rtol=1e-12)
    counted = sum((np.linalg.matrix_power(matrix, k)[0] for k in range(first)), np.zeros(n))
    assert_allclose(visits[0], counted, rtol=1e-10)
    assert_allclose(chain.transient(steps=second, initial=found[0]), found[1], rtol=1e-10)


def test_squaring_and_stepping_agree(monkeypatch):
    chain = DTMC(transition_matrix=random_matrix(3, 5))
    steps = [0, 1, 100, 4097]
    squared = chain.transient(steps=steps, initial=2), chain.occupancy(steps=steps, initial=2)
    monkeypatch.setattr(dtmc_module, "LARGEST_EXACT", 0)
    stepped = chain.transient(steps=steps, initial=2), chain.occupancy(steps=steps, initial=2)
    assert_allclose(squared[0], stepped[0], rtol=1e-12)
    assert_allclose(squared[1], stepped[1], rtol=1e-12)


@given(seeds, st.integers(3, 8))
def test_absorption_against_powers(seed, n):
    matrix = random_matrix(seed, n)
    matrix[-2:] = np.eye(n)[-2:]
    found = DTMC(transition_matrix=matrix).absorption(reward=np.arange(n))
    visits, power = np.zeros((n, n)), np.eye(n)
    for _ in range(20_000):
        visits += power
        power = power @ matrix
    visits[:, -2:] = 0.0
    assert_allclose(found.probabilities, power[:, -2:], rtol=1e-8)
    assert_allclose(found.mean_time, visits.sum(axis=1), rtol=1e-8)
    assert_allclose(found.mean_reward, visits @ np.arange(n), rtol=1e-8)


@pytest.mark.parametrize(
    ("edges", "period"),
    [
        ([(0, 1), (1, 0)], 2),
        ([(0, 1), (1, 2), (2, 0)], 3),
        ([(0, 1), (1, 2), (2, 0), (1, 0)], 1),
        ([(0, 1), (1, 2), (2, 3), (3, 0), (1, 0)], 2),
        ([(0, 0)], 1),
        ([(0, 1), (1, 1)], 1),
        ([(0, 1), (1, 0), (2, 3), (3, 4), (4, 5), (5, 2)], 2),
        ([(0, 1), (0, 2), (1, 0), (2, 0), (2, 2)], 1),
    ],
)
def test_periods(edges, period):
    graph = nx.DiGraph(edges)
    for node in graph:
        for _, target in graph.out_edges(node):
            graph.edges[node, target]["probability"] = 1 / graph.out_degree(node)
    chain = DTMC.from_graph(graph=graph)
    assert chain.period == period
    closed = nx.attracting_components(graph)
    cycles = [len(c) for part in closed for c in nx.simple_cycles(graph.subgraph(part))]
    assert np.gcd.reduce(cycles) == period


def test_descriptions_agree():
    matrix = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    graph = nx.DiGraph()
    for i, j in np.argwhere(matrix > 0):
        graph.add_edge(int(i), int(j), probability=matrix[i, j])
    for chain in (
        DTMC(transition_matrix=sp.coo_array(matrix)),
        DTMC.from_graph(graph=graph),
        DTMC.from_transitions(initial_state=0, transitions=lambda i: dict(enumerate(matrix[i].tolist()))),
    ):
        assert_allclose(chain.transition_matrix.toarray(), matrix, rtol=1e-15)
        assert list(chain.states) == [0, 1, 2]
        assert repr(chain) == "DTMC with 3 states and 5 transitions"
