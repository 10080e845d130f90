"""Chains in continuous time and in steps: construction, transient behaviour, absorption, reducible chains."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import expm

from qmodels.markov import CTMC, DTMC
from qmodels.markov.chains import dtmc as dtmc_module
from qmodels.markov.chains import transient

seeds = st.integers(0, 10**6)


def random_generator(seed, n, low=-1.0, high=1.0, density=0.6):
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(low, high, (n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(rates, 0.0)
    return rates - np.diag(rates.sum(axis=1))


# Construction


def test_three_descriptions_of_one_chain():
    generator = np.array([[-3.0, 1.0, 2.0], [4.0, -4.0, 0.0], [0.0, 5.0, -5.0]])
    names = ["idle", "read", "write"]
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    for i, j in np.argwhere(generator > 0):
        graph.add_edge(names[i], names[j], rate=generator[i, j])

    def moves(name):
        i = names.index(name)
        return [(names[j], generator[i, j]) for j in range(3) if j != i]

    chains = [
        CTMC(generator=generator, states=names),
        CTMC(generator=sp.csc_matrix(generator), states=names),
        CTMC.from_graph(graph=graph),
        CTMC.from_transitions(initial_state="idle", transitions=moves),
    ]
    for chain in chains:
        assert chain.states == tuple(names)
        assert_allclose(chain.generator.toarray(), generator, rtol=1e-15)
        assert_allclose(chain.stationary().probabilities, chains[0].stationary().probabilities)
        assert repr(chain) == "CTMC with 3 states and 4 transitions"


def test_rates_to_one_state_add_up_and_a_loop_has_no_effect():
    chain = CTMC.from_transitions(
        initial_state=0, transitions=lambda s: [(1 - s, 1.0), (1 - s, 2.0), (s, 7.0), (1 - s, 0.0)]
    )
    assert_allclose(chain.generator.toarray(), [[-3, 3], [3, -3]])
    graph = nx.MultiDiGraph()
    graph.add_edge(0, 1, rate=1.0)
    graph.add_edge(0, 1, rate=2.0)
    graph.add_edge(1, 0, rate=3.0)
    graph.add_edge(1, 1, rate=9.0)
    assert_allclose(CTMC.from_graph(graph=graph).generator.toarray(), [[-3, 3], [3, -3]])


def test_large_rates_are_judged_by_their_own_magnitude():
    """A row of 1e9 whose sum is off by rounding is good; one that is off by 1e-6 of it is not."""
    third = 1e9 / 3
    CTMC(generator=[[-1e9, third, third, third], [1, -1, 0, 0], [1, 0, -1, 0], [1, 0, 0, -1]])
    tiny = CTMC(generator=[[-1e-9, 1e-9], [3e-9, -3e-9]])
    assert_allclose(tiny.stationary().probabilities, [0.75, 0.25], rtol=1e-15)
    with pytest.raises(ValueError, match="row 0 sums to 1000$"):
        CTMC(generator=[[-1e9, 1e9 + 1e3], [1.0, -1.0]])
    with pytest.raises(ValueError, match="row 1 sums to 1e-15$"):
        CTMC(generator=[[-1.0, 1.0], [2e-15, -1e-15]])


# Names


def test_starts_and_rewards_by_name_or_by_array():
    chain = CTMC(generator=[[-1, 1], [3, -3]], states=["up", "down"])
    for start in ("up", {"up": 1.0}, [1.0, 0.0], np.array([1.0, 0.0]), (1.0, 0.0)):
        assert_allclose(chain.start(start), [1.0, 0.0])
    law = chain.stationary()
    for reward in (lambda s: 4.0 * (s == "down"), {"down": 4.0}, [0.0, 4.0]):
        assert law.expected(reward) == 1.0
    assert law.probability("up") == 0.75
    assert chain.index("down") == 1
    numbered = CTMC(generator=[[-1, 1], [3, -3]])
    assert numbered.index(1) == 1
    assert_allclose(numbered.start(np.int64(1)), [0.0, 1.0])
    assert repr(law).startswith("StationaryDistribution of 2 states (1 closed classes, 0 transient states)")


# Transient behaviour


@given(seeds, st.integers(2, 7), st.floats(1e-3, 30.0))
def test_transient_law_is_the_matrix_exponential(seed, n, time):
    generator = random_generator(seed, n)
    chain = CTMC(generator=generator)
    assert_allclose(chain.transient(times=time, initial=0), expm(generator * time)[0], atol=1e-12)


@given(seeds, st.integers(2, 7), st.floats(1e-2, 1e4), st.floats(1e-2, 1e4))
def test_semigroup_and_mean_occupancy(seed, n, s, t):
    """Running s and then t is running s + t; over several methods of evaluation."""
    chain = CTMC(generator=random_generator(seed, n))
    halfway = chain.transient(times=s, initial=0)
    whole = chain.transient(times=s + t, initial=0)
    assert_allclose(chain.transient(times=t, initial=halfway), whole, atol=1e-12)
    spent = chain.occupancy(times=[s, s + t], initial=0)
    assert_allclose(spent.sum(axis=1), [s, s + t], rtol=1e-12)
    assert_allclose(
        spent[1], spent[0] + chain.occupancy(times=t, initial=halfway), rtol=1e-9, atol=1e-10 * (s + t)
    )


@given(seeds, st.integers(2, 6), st.floats(1e-9, 1e9))
def test_the_unit_of_time_does_not_matter(seed, n, unit):
    generator = random_generator(seed, n)
    times = np.array([0.1, 1.0, 50.0])
    slow, fast = CTMC(generator=generator), CTMC(generator=generator * unit)
    assert_allclose(
        fast.transient(times=times / unit, initial=0), slow.transient(times=times, initial=0), rtol=1e-10
    )
    assert_allclose(fast.absorption(absorbing=[0]).mean_time * unit, slow.absorption(absorbing=[0]).mean_time)


@pytest.mark.parametrize("time", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_two_states_with_rates_eighteen_decades_apart(time):
    up, down = 1e-9, 1e9
    chain = CTMC(generator=[[-up, up], [down, -down]])
    total = up + down
    expected = -up / total * np.expm1(-total * time)
    assert_allclose(chain.transient(times=time, initial=0)[1], expected, rtol=1e-13)


def test_a_slow_decay_behind_fast_changes():
    """Two fast states leak at 1e-6; the leak after any time is known to 1e-9."""
    chain = CTMC(generator=[[-1e6, 1e6, 0], [1e6, -1e6 - 1e-6, 1e-6], [0, 0, 0]])
    times = np.array([1.0, 1e3, 1e6, 1e7])
    leaked = chain.transient(times=times, initial=0)[:, 2]
    assert_allclose(leaked, -np.expm1(-0.5e-6 * times), rtol=1e-6)  # the chain itself differs by 1e-12 t


def test_methods_agree_where_they_meet(monkeypatch):
    generator = random_generator(4, 12)
    chain = CTMC(generator=generator)
    times = [0.0, 3.0, 100.0, 777.7]
    by_squaring = chain.transient(times=times, initial=3), chain.occupancy(times=times, initial=3)
    monkeypatch.setattr(transient, "LARGEST_EXACT", 0)
    by_terms = chain.transient(times=times, initial=3), chain.occupancy(times=times, initial=3)
    assert_allclose(by_terms[0], by_squaring[0], rtol=1e-11)
    assert_allclose(by_terms[1], by_squaring[1], rtol=1e-10)


def test_a_chain_too_stiff_and_too_large_to_run_says_so(monkeypatch):
    monkeypatch.setattr(transient, "LARGEST_EXACT", 1)
    monkeypatch.setattr(transient, "MOST_TERMS", 1000)
    chain = CTMC(generator=[[-1e4, 1e4, 0], [1e4, -1e4 - 1e-6, 1e-6], [0, 0, 0]])
    with pytest.raises(RuntimeError, match="stopped after 1024 of [0-9]+ terms without settling: ask for"):
        chain.transient(times=1.0, initial=0)


def test_a_chain_too_large_to_square_settles():
    """M/M/1/450 at load 0.8 long after the start, and the time it spent with an empty queue."""
    n, up, down = 451, 0.8, 1.0
    chain = CTMC.from_transitions(
        initial_state=0, transitions=lambda k: {k + 1: up * (k + 1 < n), k - 1: down * (k > 0)}
    )
    law = (1 - up) * up ** np.arange(n)
    found = chain.transient(times=[1.0, 1e7], initial=0)
    assert_allclose(found[1], law, atol=1e-12)
    idle = chain.occupancy(times=[1e6, 1e7], initial=0)[:, 0]
    assert_allclose((idle[1] - idle[0]) / 9e6, 1 - up, rtol=1e-10)
    small = expm(chain.generator.toarray()[:60, :60])[0]
    assert_allclose(found[0, :40], small[:40], atol=1e-13)


def test_shapes_follow_the_times():
    chain = CTMC(generator=[[-1, 1], [3, -3]])
    assert chain.transient(times=1.0, initial=0).shape == (2,)
    assert chain.transient(times=[[1.0, 2.0, 3.0]], initial=0).shape == (1, 3, 2)
    assert chain.accumulated_reward(reward=[1, 0], times=[1.0, 2.0], initial=0).shape == (2,)
    still = CTMC(generator=np.zeros((2, 2)))
    assert_allclose(still.transient(times=5.0, initial=1), [0, 1])
    assert_allclose(still.occupancy(times=5.0, initial=1), [0, 5])


# Absorption


@given(seeds, st.integers(3, 9))
def test_absorption_against_a_long_run_of_steps(seed, n):
    """Jump by jump: P^k for large k, and the holding times summed over all steps."""
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.1, 2.0, (n, n))
    rates[-2:] = 0.0
    np.fill_diagonal(rates, 0.0)
    chain = CTMC(generator=rates - np.diag(rates.sum(axis=1)))
    reward = rng.uniform(0.0, 3.0, n)
    found = chain.absorption(reward=reward)
    hold = np.zeros(n)
    hold[:-2] = 1 / rates[:-2].sum(axis=1)
    jump = rates * hold[:, None]
    jump[-2, -2] = jump[-1, -1] = 1.0
    visits, power = np.zeros((n, n)), np.eye(n)
    for _ in range(4000):
        visits += power
        power = power @ jump
    assert_allclose(found.probabilities, power[:, -2:], atol=1e-12)
    assert_allclose(found.mean_time, visits @ hold, rtol=1e-9)
    assert_allclose(found.mean_reward, visits @ (hold * reward), rtol=1e-9)
    assert found.targets == ((n - 2,), (n - 1,))


def test_large_chains_are_absorbed_like_small_ones():
    """M/M/1/K emptied from k jobs: the mean busy period of each job adds up."""
    n, up, down = 1500, 0.3, 1.0
    generator = sp.diags_array([np.full(n - 1, up), np.full(n - 1, down)], offsets=[1, -1]).tolil()
    generator.setdiag(-np.asarray(generator.sum(axis=1)).ravel())
    found = CTMC(generator=generator.tocsr()).absorption(absorbing=[0])
    expected = np.arange(5) / (down - up)  # the far end is out of reach
    assert_allclose(found.mean_time[:5], expected, rtol=1e-12)
    assert_allclose(found.probabilities[:, 0], 1.0, rtol=1e-12)


def test_gambling_is_fair():
    n = 11
    chain = CTMC.from_transitions(
        initial_state=5, transitions=lambda k: [] if k in (0, n - 1) else [(k - 1, 1.0), (k + 1, 1.0)]
    )
    found = chain.absorption(absorbing=[0, 10])
    fortune = np.array(chain.states)
    assert_allclose(found.probabilities[:, 1], fortune / 10, rtol=1e-13)
    assert_allclose(found.mean_time, fortune * (10 - fortune) / 2, rtol=1e-13)


def test_where_absorption_is_not_certain():
    """From b the chain ends in a or, as often, in the loop c-d that never comes back."""
    graph = nx.DiGraph()
    for source, target in [("b", "a"), ("b", "c"), ("c", "d"), ("d", "c")]:
        graph.add_edge(source, target, rate=1.0)
    chain = CTMC.from_graph(graph=graph)
    found = chain.absorption(absorbing=["a"], reward={"b": 6.0})
    by_name = dict(zip(chain.states, found.mean_time, strict=True))
    assert by_name == {"b": np.inf, "a": 0.0, "c": np.inf, "d": np.inf}
    assert_allclose(found.probabilities[:, 0], [0.5, 1.0, 0.0, 0.0])
    assert_allclose(found.mean_reward, [3.0, 0.0, 0.0, 0.0])
    ends = chain.absorption()
    assert ends.targets == (("a",), ("c", "d"))
    assert_allclose(ends.mean_time, [0.5, 0.0, 0.0, 0.0])


# Reducible chains


def reducible():
    rates = np.zeros((6, 6))
    rates[0, 1], rates[0, 3], rates[1, 0], rates[1, 5] = 1.0, 2.0, 1.0, 3.0
    rates[3, 4], rates[4, 3] = 1.0, 3.0
    return CTMC(generator=rates - np.diag(rates.sum(axis=1)), states=list("abcdef"))


def test_reducible_chains_are_reported():
    chain = reducible()
    assert [members.tolist() for members in chain.classes.closed] == [[2], [3, 4], [5]]
    assert chain.classes.transient.tolist() == [0, 1]
    assert not chain.classes.irreducible
    law = chain.stationary()
    assert law.class_weights is None
    assert_allclose(law.class_laws[1], [0.75, 0.25])
    with pytest.raises(ValueError, match="^initial must be given for a chain with 3 closed classes, "):
        _ = law.probabilities


def test_the_long_run_of_a_reducible_chain_follows_the_start():
    chain = reducible()
    # From a: to d with 2/3, else to b; from b: to f with 3/4, else back to a.
    to_d = (2 / 3) / (1 - 1 / 12)
    law = chain.stationary(initial="a")
    assert_allclose(law.class_weights, [0.0, to_d, 1 - to_d], rtol=1e-14)
    assert_allclose(law.probabilities, [0, 0, 0, 0.75 * to_d, 0.25 * to_d, 1 - to_d], rtol=1e-14)
    assert_allclose(chain.transient(times=1e4, initial="a"), law.probabilities, atol=1e-13)
    assert_allclose(chain.stationary(initial={"c": 0.5, "a": 0.5}).probabilities[2], 0.5)


def test_transient_states_before_one_closed_class():
    chain = CTMC(generator=[[-1.0, 1.0, 0.0], [0.0, -2.0, 2.0], [0.0, 1.0, -1.0]])
    law = chain.stationary()
    assert_allclose(law.probabilities, [0.0, 1 / 3, 2 / 3])
    assert chain.classes.transient.tolist() == [0]


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
