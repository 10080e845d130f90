"""Birth-death chains against the balance equations in high precision and elimination."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.markov import CTMC, birth_death, birth_death_infinite

seeds = st.integers(0, 10**6)


def random_rates(seed, n, decades):
    rng = np.random.default_rng(seed)
    return 10.0 ** rng.uniform(-decades, decades, (2, n))


@given(seeds, st.integers(1, 40), st.floats(0, 9))
def test_against_a_general_chain(seed, n, decades):
    up, down = random_rates(seed, n, decades)
    found = birth_death(birth_rates=up, death_rates=down)
    chain = CTMC.from_transitions(
        initial_state=0,
        transitions=lambda k: {k + 1: (*up, 0.0)[k], k - 1: (0.0, *down)[k]},
    )
    expected = chain.stationary()
    kept = expected.probabilities > 1e-290
    assert_allclose(found.probabilities[kept], expected.probabilities[kept], rtol=1e-12)
    assert_allclose(found.mean_number, expected.expected(lambda k: k), rtol=1e-12)
    mean = found.mean_number
    assert_allclose(
        found.number_variance, expected.expected(lambda k: (k - mean) ** 2), rtol=1e-10, atol=1e-300
    )
    assert_allclose(found.throughput, expected.expected(lambda k: up[k] if k < n else 0.0), rtol=1e-12)
    assert_allclose(found.tail(0), 1.0)


@pytest.mark.parametrize(("n", "decades"), [(3000, 9.0), (20_000, 0.1)])
def test_long_products_in_high_precision(n, decades):
    up, down = random_rates(n, n, decades)
    found = birth_death(birth_rates=up, death_rates=down)
    with mpmath.workdps(40):
        weights = [mpmath.mpf(1)]
        for birth, death in zip(up.tolist(), down.tolist(), strict=True):
            weights.append(weights[-1] * mpmath.mpf(birth) / mpmath.mpf(death))
        total = mpmath.fsum(weights)
        logs = np.array([float(mpmath.log(w / total)) for w in weights])
        exact = np.array([float(w / total) for w in weights])
    kept = exact > 1e-290
    assert_allclose(found.probabilities[kept], exact[kept], rtol=1e-13)
    assert_allclose(found.log_probabilities, logs, rtol=1e-13, atol=1e-14)


@given(st.floats(0.01, 0.999), st.floats(1e-6, 1e6), st.integers(1, 6))
def test_a_geometric_tail_is_the_chain_without_end(ratio, unit, head):
    """M/M/1 whatever the number of states spelled out; the unit of time only scales the throughput."""
    up, down = np.full(head, ratio * unit), np.full(head, unit)
    found = birth_death(birth_rates=up, death_rates=down, repeating=True)
    n = np.arange(30)
    assert found.stable
    assert_allclose(found.probability(n), (1 - ratio) * ratio**n, rtol=1e-12)
    assert_allclose(found.tail(n), ratio**n, rtol=1e-12)
    assert_allclose(found.mean_number, ratio / (1 - ratio), rtol=1e-11)
    assert_allclose(found.number_variance, ratio / (1 - ratio) ** 2, rtol=1e-10)
    assert_allclose(found.throughput, ratio * unit, rtol=1e-12)


@pytest.mark.parametrize("ratio", [1.0, 1.5])
def test_overload(ratio):
    found = birth_death(birth_rates=[1.0, 3.0 * ratio], death_rates=[1.0, 3.0], repeating=True)
    assert not found.stable and found.probabilities.size == 3
    assert found.mean_number == found.number_variance == np.inf
    assert_allclose(found.probability([0, 5]), 0.0)
    assert_allclose(found.tail([1, 5]), 0.0)
    assert found.throughput == 3.0  # that of the highest state


def test_a_repeating_chain_that_ends_before_it_repeats():
    found = birth_death(birth_rates=[1.0, 0.0, 5.0], death_rates=[1.0, 1.0, 1.0], repeating=True)
    assert found.stable
    assert_allclose(found.probabilities, [0.5, 0.5, 0.0, 0.0])


def test_infinitely_many_servers_are_poisson():
    found = birth_death_infinite(birth_rate=lambda n: np.full(n.shape, 7.0), death_rate=lambda n: n)
    assert found.stable
    assert 0 < found.truncation_bound <= 1e-15
    assert_allclose([found.mean_number, found.number_variance, found.throughput], 7.0, rtol=1e-13)


def test_a_chain_of_functions_that_ends():
    found = birth_death_infinite(birth_rate=lambda n: np.maximum(3.0 - n, 0.0), death_rate=lambda n: 2.0 * n)
    assert found.truncation_bound == 0.0
    assert_allclose(found.mean_number, 1.0, rtol=1e-14)  # three machines, each down a third of the time


def test_functions_without_a_steady_state():
    found = birth_death_infinite(
        birth_rate=lambda n: np.ones(n.shape), death_rate=lambda n: np.ones(n.shape), max_states=1000
    )
    assert not found.stable
    assert found.mean_number == np.inf


def test_rates_whose_ratio_no_double_holds():
    up = birth_death(birth_rates=[1e100], death_rates=[1e-300])
    assert up.probabilities.tolist() == [0.0, 1.0] and up.mean_number == 1.0
    assert_allclose(up.log_probabilities, [-400 * np.log(10), 0.0], rtol=1e-14)
    back = birth_death(birth_rates=[1e-300, 1e100], death_rates=[1e100, 1e-300])
    assert_allclose(back.probabilities, [0.5, 0.0, 0.5], rtol=1e-14)
    assert not birth_death(birth_rates=[1e100], death_rates=[1e-300], repeating=True).stable
    rare = birth_death(birth_rates=[1e-300], death_rates=[1e100], repeating=True)
    assert rare.stable and rare.probabilities[0] == 1.0 and rare.mean_number == 0.0
