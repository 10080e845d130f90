"""Stationary laws: dense elimination, sparse factors and iteration against independent solutions."""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse.linalg import spsolve

from qmodels.markov import CTMC
from qmodels.markov.chains.stationary import (
    LARGEST_ERROR,
    SEPARATE,
    balance_residual,
    single_class_law,
    solve_irreducible,
)


def random_rates(seed, n, low=-9.0, high=9.0, density=0.5):
    """Rates over `high - low` decades on a random strongly connected graph."""
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(low, high, (n, n)) * (rng.random((n, n)) < density)
    ring = np.arange(n)
    rates[ring, (ring + 1) % n] += 10.0 ** rng.uniform(low, high, n)
    np.fill_diagonal(rates, 0.0)
    return rates


def exact_law(rates):
    """Solve the balance equations in 80 digits."""
    with mpmath.workdps(80):
        n = len(rates)
        balance = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                if i != j:
                    balance[j, i] = mpmath.mpf(float(rates[i, j]))
                    balance[i, i] -= mpmath.mpf(float(rates[i, j]))
        right = mpmath.matrix(n, 1)
        for i in range(n):
            balance[n - 1, i] = 1
        right[n - 1] = 1
        return np.array([float(x) for x in mpmath.lu_solve(balance, right)])


def tandem_rates(places, arrival_rate, servers=5):
    """M/M/c/K stations in tandem; a station whose successor is full stops (blocking before service)."""
    shape = tuple(k + 1 for k in places)
    jobs = np.indices(shape).reshape(len(shape), -1)
    state = np.arange(jobs.shape[1])
    step = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    moves = [(jobs[0] < places[0], step[0], np.full(state.size, arrival_rate))]
    for k in range(len(shape)):
        room = jobs[k + 1] < places[k + 1] if k + 1 < len(shape) else True
        onward = step[k + 1] if k + 1 < len(shape) else 0
        moves.append(((jobs[k] > 0) & room, onward - step[k], np.minimum(jobs[k], servers) * 1.0))
    rows = np.concatenate([state[go] for go, _, _ in moves])
    columns = np.concatenate([state[go] + by for go, by, _ in moves])
    values = np.concatenate([rate[go] for go, _, rate in moves])
    return sp.csr_array((values, (rows, columns)), shape=(state.size, state.size))


@given(st.integers(0, 10**6), st.integers(2, 9))
def test_the_elimination_is_exact_in_every_state_over_eighteen_decades(seed, n):
    rates = random_rates(seed, n)
    law, residual, used, _ = solve_irreducible(sp.csr_array(rates))
    assert_allclose(law, exact_law(rates), rtol=1e-13)  # measured 1e-15
    assert residual < 1e-14
    assert used == "gth"


@given(st.integers(0, 10**6), st.integers(2, 60))
def test_factors_are_exact_in_every_state_unless_they_say_that_they_cannot_be(seed, n):
    rates = sp.csr_array(random_rates(seed, n, -6, 6, 0.2))
    try:
        law, residual, _, _ = solve_irreducible(rates, method="direct")
    except RuntimeError as error:
        assert str(error) == SEPARATE
    else:
        assert residual < 1e-12
        assert_allclose(law, solve_irreducible(rates)[0], rtol=LARGEST_ERROR)


@given(st.integers(0, 10**6), st.integers(2, 60), st.floats(1e-9, 1e9))
def test_laws_of_the_law(seed, n, unit):
    """It sums to 1, balances, and does not depend on the unit of time or the order of the states."""
    rates = random_rates(seed, n, -3, 3, 0.2)
    law, residual, _, _ = solve_irreducible(sp.csr_array(rates))
    assert_allclose(law.sum(), 1.0, rtol=1e-14)
    assert np.all(law > 0)
    assert residual < 1e-14
    assert balance_residual(sp.csr_array(rates), law) == residual
    faster, _, _, _ = solve_irreducible(sp.csr_array(rates * unit))
    assert_allclose(faster, law, rtol=1e-12)
    order = np.random.default_rng(seed).permutation(n)
    for method in ("gth", "direct"):
        shuffled, _, _, _ = solve_irreducible(sp.csr_array(rates[np.ix_(order, order)]), method=method)
        assert_allclose(shuffled, law[order], rtol=1e-12)


@pytest.mark.parametrize("arrival_rate", [2.0, 5.0, 7.0])
@pytest.mark.parametrize("places", [(24, 24), (8, 8, 8), (700,), (2, 180)])
def test_methods_agree_with_a_general_solver_on_tandem_queues(places, arrival_rate):
    rates = tandem_rates(places, arrival_rate)
    n = rates.shape[0]
    generator = (rates - sp.diags_array(rates.sum(axis=1))).T.tocsc()
    reference = np.append(spsolve(generator[:-1, :-1], -generator[:-1, [-1]].toarray().ravel()), 1.0)
    reference /= reference.sum()
    direct, residual, _, _ = solve_irreducible(rates, method="direct")
    assert residual < 1e-14
    assert_allclose(direct, reference, atol=1e-11)
    dense, _, _, _ = solve_irreducible(rates, method="gth")
    assert_allclose(direct, dense, rtol=1e-11)
    iterated, residual, _, cycles = solve_irreducible(rates, method="iterative", tolerance=1e-13)
    assert residual <= 1e-13
    assert 0 < cycles < 1000
    assert_allclose(iterated, direct, atol=1e-10)
    assert n > 400


@pytest.mark.parametrize("ratio", [1e-6, 0.5, 1.0, 3.0, 1e6])
@pytest.mark.parametrize("method", ["gth", "direct"])
def test_a_birth_death_chain_beyond_the_range_of_floating_point(ratio, method):
    """Weights ratio^k span up to 18,000 decades; those that a double can hold are right."""
    n = 3000 if method == "direct" else 300
    rates = sp.diags_array([np.full(n - 1, ratio), np.ones(n - 1)], offsets=[1, -1]).tocsr()
    law, _, _, _ = solve_irreducible(rates, method=method)
    logs = np.arange(n) * np.log(ratio)
    expected = np.exp(logs - np.logaddexp.reduce(logs))
    kept = expected > 1e-285
    assert np.all(law[~kept] <= 1e-280)
    assert_allclose(law[kept], expected[kept], rtol=1e-11)


def hub(n):
    """One state linked both ways with all others: no pairs to lump, no thin separator but the hub."""
    rng = np.random.default_rng(n)
    rates = np.zeros((n, n))
    rates[0, 1:], rates[1:, 0] = rng.uniform(0.5, 2.0, (2, n - 1))
    return sp.csr_array(rates)


def complete(n):
    """Every pair linked: no separator at all."""
    rates = np.random.default_rng(n).uniform(0.5, 2.0, (n, n))
    np.fill_diagonal(rates, 0.0)
    return sp.csr_array(rates)


def islands(n):
    """Dense groups of 20 in a ring, linked by rates 1e-8: nearly decomposable."""
    groups = sp.block_diag([complete(20)] * (n // 20)).tolil()
    for k in range(0, n, 20):
        groups[k, (k + 20) % n] = 1e-8
    return groups.tocsr()


def branches(n):
    """Long arms from one centre: falls apart into many parts when the centre is taken out."""
    arms = [sp.diags_array([np.ones(29), np.full(29, 1.2)], offsets=[1, -1])] * (n // 30)
    tree = sp.block_diag([sp.csr_array((1, 1)), *arms]).tolil()
    for k in range(1, n, 30):
        tree[0, k] = 1.0
        tree[k, 0] = 1.5
    return tree.tocsr()


def expander(n):
    """A ring with three random links per state: any separator is large."""
    rng = np.random.default_rng(n)
    rates = np.roll(np.eye(n), 1, axis=1)
    rates[np.repeat(np.arange(n), 3), rng.integers(0, n, 3 * n)] = rng.exponential(size=3 * n)
    np.fill_diagonal(rates, 0.0)
    return sp.csr_array(rates)


def reset(n):
    """A tandem that can be emptied from every state."""
    places = int(np.sqrt(n)) - 1
    rates = tandem_rates((places, places), 4.0).toarray()
    rates[1:, 0] += 1e-3
    return sp.csr_array(rates)


@pytest.mark.parametrize("build", [hub, complete, islands, branches, expander, reset])
def test_shapes_that_are_hard_to_factor(build):
    rates = build(360)
    expected, _, _, _ = solve_irreducible(rates, method="gth")
    if build is islands:
        with pytest.raises(RuntimeError, match="^parts of the chain are all but separate"):
            solve_irreducible(rates, method="direct")
    else:
        direct, _, _, _ = solve_irreducible(rates, method="direct")
        assert_allclose(direct, expected, rtol=1e-12)
    iterated, _, _, _ = solve_irreducible(rates, method="iterative", tolerance=1e-14)
    assert_allclose(iterated, expected, rtol=1e-4 if build is islands else 1e-10)


def test_auto_iterates_where_factors_would_be_too_large(monkeypatch):
    rates = tandem_rates((30, 30), 4.0)
    assert solve_irreducible(rates)[2] == "gth"
    monkeypatch.setattr("qmodels.markov.chains.stationary.LARGEST_DENSE", 900)
    assert solve_irreducible(rates)[2] == "direct"
    monkeypatch.setattr("qmodels.markov.chains.stationary.LARGEST_DIRECT", 900)
    law, residual, method, cycles = solve_irreducible(rates)
    assert method == "iterative"
    assert residual <= 1e-12
    assert cycles > 0
    assert_allclose(law.sum(), 1.0)


def test_an_iteration_that_does_not_converge_says_so():
    with pytest.raises(RuntimeError) as caught:
        solve_irreducible(tandem_rates((30, 30), 5.0), method="iterative", max_iterations=3, tolerance=1e-20)
    message = str(caught.value)
    assert "stopped after 3 cycles at a residual of " in message
    assert "above the tolerance 1e-20: allow more max_iterations, or use method='direct'" in message


def two_wells(n, depth):
    """A line whose weights fall by exp(-depth) per state from both ends to the middle."""
    weight = -depth * np.minimum(np.arange(n), n - 1 - np.arange(n))
    up, down = np.exp(np.minimum(np.diff(weight), 0)), np.exp(np.minimum(-np.diff(weight), 0))
    return sp.diags_array([up, down], offsets=[1, -1]).tocsr()


def test_parts_that_are_all_but_separate_are_weighed_by_elimination_alone():
    law, _, _, _ = solve_irreducible(two_wells(1000, 5.0))  # a pass of weight 1e-1085
    assert_allclose(law[[0, -1]], (1 - np.exp(-5)) / 2, rtol=1e-10)
    with pytest.raises(RuntimeError, match="^parts of the chain are all but separate"):
        solve_irreducible(two_wells(300, 2.0), method="direct")


@pytest.mark.parametrize("arrival_rate", [1e-6, 0.05, 100.0, 1e6])
def test_tandems_at_extreme_loads(arrival_rate):
    """Most states weigh less than a double can tell from 0; those that weigh more are right."""
    rates = tandem_rates((150, 150), arrival_rate)
    law, residual, _, _ = solve_irreducible(rates, method="direct")
    assert residual < 1e-14
    iterated, _, _, _ = solve_irreducible(rates, method="iterative", tolerance=1e-13)
    assert_allclose(law, iterated, atol=1e-11)


def test_the_law_of_one_class_among_transient_states():
    rates = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    assert_allclose(single_class_law("phases", rates), [0.0, 0.6, 0.4], rtol=1e-15)
    with pytest.raises(ValueError, match="^phases must have one closed class of phases, got 2$"):
        single_class_law("phases", np.array([[0.0, 1.0, 1.0], [0, 0, 0], [0, 0, 0]]))


def test_rates_whose_ratio_no_double_holds_give_no_nan():
    """Two states: what rare is to frequent, 1e-400, is nothing; the dense elimination cannot tell."""
    generator = [[-1e100, 1e100], [1e-300, -1e-300]]
    found = CTMC(generator=generator).stationary()
    assert found.probability(0) < 1e-280 and found.probability(1) == 1.0
    with pytest.raises(RuntimeError, match="span too many orders of magnitude"):
        CTMC(generator=generator).stationary(method="gth")
