"""Markovian arrival processes: rates, correlations, superposition and fitting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.laws import MAP, Erlang, Exponential, markovian, scaled
from qmodels.markov import (
    CTMC,
    index_of_dispersion,
    lag_correlation,
    map_from_correlation,
    map_superposition,
)

seeds = st.integers(0, 10**6)


def random_process(seed, n):
    rng = np.random.default_rng(seed)
    quiet, marks = rng.exponential(size=(2, n, n)) * (rng.random((2, n, n)) < 0.6) + 0.02
    np.fill_diagonal(quiet, 0.0)
    return MAP(d0=quiet - np.diag((quiet + marks).sum(axis=1)), d1=marks)


def gaps_by_inverse(process):
    """Moments of one gap and joint mean of two, by plain inversion."""
    inverse = np.linalg.inv(-np.array(process.d0))
    step = inverse @ np.array(process.d1)
    left = np.linalg.svd((step - np.eye(len(step))).T)[2][-1]
    law = left / left.sum()
    ones = np.ones(len(law))
    mean = law @ inverse @ ones
    second = 2 * law @ inverse @ inverse @ ones
    joint = [law @ inverse @ np.linalg.matrix_power(step, k) @ inverse @ ones for k in (1, 2, 5)]
    return mean, second, np.array(joint)


@given(seeds, st.integers(1, 5), st.floats(1e-9, 1e9))
def test_moments_and_correlations(seed, n, unit):
    process = random_process(seed, n)
    mean, second, joint = gaps_by_inverse(process)
    assert_allclose(process.rate, 1 / mean, rtol=1e-11)
    assert_allclose(process.mean, mean, rtol=1e-11)
    assert_allclose(process.scv, second / mean**2 - 1, rtol=1e-10)
    expected = (joint - mean**2) / (second - mean**2)
    assert_allclose(lag_correlation(process, [1, 2, 5]), expected, atol=1e-12)
    assert lag_correlation(process, 1).shape == ()
    faster = scaled(process, 1 / unit)
    assert_allclose(faster.rate, process.rate * unit, rtol=1e-12)
    assert_allclose(faster.scv, process.scv, rtol=1e-10)
    assert_allclose(index_of_dispersion(faster), index_of_dispersion(process), rtol=1e-7)


@given(seeds, st.integers(1, 4))
def test_dispersion_of_counts_is_that_of_the_gaps_with_their_correlations(seed, n):
    process = random_process(seed, n)
    correlations = lag_correlation(process, np.arange(1, 400))
    assert_allclose(index_of_dispersion(process), process.scv * (1 + 2 * correlations.sum()), rtol=1e-9)


@given(seeds, st.integers(1, 3), st.integers(1, 3))
def test_superposition(seed, n, m):
    """Rates add up, and so do the asymptotic variances of the counts."""
    a, b = random_process(seed, n), random_process(seed + 1, m)
    both = map_superposition([a, b])
    assert len(both.d0) == n * m
    assert_allclose(both.rate, a.rate + b.rate, rtol=1e-12)
    variances = a.rate * index_of_dispersion(a) + b.rate * index_of_dispersion(b)
    assert_allclose(both.rate * index_of_dispersion(both), variances, rtol=1e-9)
    assert_allclose(both.stationary, np.kron(a.stationary, b.stationary), rtol=1e-11)


def test_special_cases():
    poisson = markovian(Exponential(mean=1 / 3.0))
    assert_allclose([poisson.rate, poisson.scv, index_of_dispersion(poisson)], [3.0, 1.0, 1.0], rtol=1e-14)
    renewal = markovian(Erlang(mean=0.5, phases=3))
    assert_allclose([renewal.rate, renewal.scv], [2.0, 1 / 3], rtol=1e-14)
    assert_allclose(lag_correlation(renewal, [1, 2]), 0.0, atol=1e-15)
    assert_allclose(index_of_dispersion(renewal), 1 / 3, rtol=1e-12)
    many = map_superposition([poisson] * 4)
    assert_allclose([many.rate, many.scv], [12.0, 1.0], rtol=1e-14)
    # On and off: a renewal process, hyperexponential gaps.
    on_off = MAP.mmpp(generator=[[-2.0, 2.0], [3.0, -3.0]], rates=[5.0, 0.0])
    assert_allclose(on_off.scv, 1 + 2 * 5.0 * 2.0 / (2.0 + 3.0) ** 2, rtol=1e-13)
    assert_allclose(lag_correlation(on_off, 1), 0.0, atol=1e-15)


def test_the_variance_of_a_modulated_count():
    """Index of dispersion of an MMPP: 1 + 2 cov(rate) / mean rate, from the chain's covariance function."""
    generator = np.array([[-1.0, 0.7, 0.3], [0.2, -0.5, 0.3], [1.0, 1.0, -2.0]])
    rates = np.array([4.0, 1.0, 0.5])
    process = MAP.mmpp(generator=generator, rates=rates)
    chain = CTMC(generator=generator)
    law = chain.stationary().probabilities
    horizon = 200.0
    spent = np.array([chain.occupancy(times=horizon, initial=i) for i in range(3)])
    covariance = (law * rates) @ (spent @ rates - horizon * (law @ rates))
    assert_allclose(index_of_dispersion(process), 1 + 2 * covariance / (law @ rates), rtol=1e-9)


@given(
    st.floats(1e-6, 1e6),
    st.floats(0.3, 20.0),
    st.floats(0.02, 0.9),
    st.floats(-0.9, 0.99).filter(lambda g: abs(g) > 0.05),
)
def test_fit_to_correlation(rate, scv, share, decay):
    lag1 = share * decay
    between = scv * share
    smaller = (1 - np.sqrt(between / (1 + between))) / 2
    if decay < -smaller / (1 - smaller):
        with pytest.raises(
            ValueError, match=r"^decay must be >= -0\.[0-9]+ for this scv and lag1_correlation"
        ):
            map_from_correlation(rate=rate, scv=scv, lag1_correlation=lag1, decay=decay)
        return
    process = map_from_correlation(rate=rate, scv=scv, lag1_correlation=lag1, decay=decay)
    assert_allclose([process.rate, process.scv], [rate, scv], rtol=1e-10)
    assert_allclose(
        lag_correlation(process, [1, 2, 3, 6]), lag1 * decay ** np.array([0, 1, 2, 5]), atol=1e-11
    )


def test_fit_without_correlation_is_a_renewal_process():
    process = map_from_correlation(rate=2.0, scv=0.4, lag1_correlation=0.0, decay=0.5)
    assert len(process.d0) == 3
    assert_allclose([process.rate, process.scv], [2.0, 0.4])


def test_phases_that_are_left_for_good_do_not_matter():
    process = MAP(d0=[[-3.0, 1.0], [0.0, -2.0]], d1=[[1.0, 1.0], [0.0, 2.0]])
    assert_allclose([process.rate, process.scv], [2.0, 1.0])
    assert_allclose(process.stationary, [0.0, 1.0], atol=1e-15)
