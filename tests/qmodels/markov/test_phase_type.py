"""Phase-type laws: functions, operations and fitting against integration and closed forms."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.linalg import expm

from qmodels.laws import (
    Erlang,
    Exponential,
    Gamma,
    HyperExponential,
    PhaseType,
    formulas,
    phase_type,
    scaled,
)
from qmodels.markov import (
    ph_canonical,
    ph_convolution,
    ph_from_moments,
    ph_maximum,
    ph_minimum,
    ph_mixture,
    third_moment_bounds,
)
from qmodels.queues import mg1_fcfs

seeds = st.integers(0, 10**6)
PHASE = formulas(phase_type(Exponential(mean=1.0)))


def random_law(seed, n):
    rng = np.random.default_rng(seed)
    rates = rng.exponential(size=(n, n)) * (rng.random((n, n)) < 0.6)
    np.fill_diagonal(rates, 0.0)
    leave = rng.exponential(size=n) + 0.05
    generator = rates - np.diag(rates.sum(axis=1) + leave)
    return formulas(PhaseType(initial=rng.dirichlet(np.ones(n)), generator=generator))


def random_series(seed, n):
    rng = np.random.default_rng(seed)
    rates = 10.0 ** rng.uniform(-1, 1, n)
    generator = np.diag(-rates) + np.diag(rates[:-1], k=1)
    return PhaseType(initial=rng.dirichlet(np.full(n, 0.5)), generator=generator)


def integral(function, law):
    return quad(function, 0, 60 * law.mean, limit=400, epsabs=1e-13, epsrel=1e-12)[0]


# Functions


@settings(max_examples=5)
@given(seeds, st.integers(1, 5))
def test_functions_agree_with_the_matrix_exponential_and_with_each_other(seed, n):
    law = random_law(seed, n)
    x = law.mean * np.array([0.0, 0.01, 0.5, 1.0, 3.0, 10.0])
    tails = [law.initial @ expm(law.generator * t) @ np.ones(n) for t in x]
    assert_allclose(law.tail(x), tails, rtol=1e-11)
    assert_allclose(law.cdf(x), 1 - np.array(tails), atol=1e-14)
    assert_allclose(
        law.density(x), [law.initial @ expm(law.generator * t) @ law.exit_rates for t in x], rtol=1e-11
    )
    for k in (1, 2, 3):
        assert_allclose(
            law.moment(k), integral(lambda t, k=k: k * t ** (k - 1) * law.tail(t), law), rtol=1e-8
        )
    assert_allclose(law.laplace(0.7), integral(lambda t: np.exp(-0.7 * t) * law.density(t), law), rtol=1e-8)
    assert_allclose(law.residual_complement(0.7), 1 - (1 - law.laplace(0.7)) / (0.7 * law.mean), rtol=1e-11)
    p = np.array([0.0, 0.3, 0.999, 1.0])
    q = law.quantile(p)
    assert_allclose(law.tail(q[:3]), 1 - p[:3], rtol=1e-10)
    assert q[3] == np.inf


@pytest.mark.parametrize(
    ("law", "twin"),
    [
        (Erlang(mean=2.0, phases=3), Gamma(mean=2.0, scv=1 / 3)),
        (
            HyperExponential(probabilities=[0.3, 0.7], means=[1e-2, 40.0]),
            HyperExponential(probabilities=[0.3, 0.7], means=[1e-2, 40.0]),
        ),
    ],
)
def test_a_phase_type_law_is_a_service_law(law, twin):
    law, twin = formulas(phase_type(law)), formulas(twin)
    x = np.array([1e-6, 0.1, 1.0, 30.0, 200.0])
    s = np.array([1e-9, 0.1, 2.0, 1j, 50 + 3j])
    rates = np.array([0.1, 3.0])
    assert_allclose(law.tail(x), twin.tail(x), rtol=1e-10)  # measured 7e-12 where 200,000 phases pass
    assert_allclose(law.laplace(s), twin.laplace(s), rtol=1e-14)
    assert_allclose(law.residual_complement(s), twin.residual_complement(s), rtol=1e-13)
    assert_allclose(law.poisson_counts(rates, 200), twin.poisson_counts(rates, 200), rtol=1e-13)
    for k in range(4):
        assert_allclose(law.moment(k), twin.moment(k), rtol=1e-14)
        assert_allclose(law.truncated_moment(k, x), twin.truncated_moment(k, x), rtol=1e-9)
        assert_allclose(law.tail_moment(k, x), twin.tail_moment(k, x), rtol=1e-9)
    queues = [mg1_fcfs(arrival_rate=0.3 / law.mean, service=service) for service in (law, twin)]
    assert_allclose(queues[0].mean_waiting_time, queues[1].mean_waiting_time, rtol=1e-13)
    assert_allclose(
        queues[0].waiting_time_tail([1.0, 9.0]), queues[1].waiting_time_tail([1.0, 9.0]), rtol=1e-7
    )


@pytest.mark.parametrize("seed", range(3))
def test_expectations_by_quadrature(seed):
    law = random_law(seed, 4)
    assert_allclose(law.expect(lambda x: np.ones(x.shape)), 1.0, rtol=1e-9)
    assert_allclose(law.expect(lambda x: x**2), law.moment(2), rtol=1e-9)
    peaked, twin = formulas(phase_type(Erlang(mean=3.0, phases=100))), formulas(Gamma(mean=3.0, scv=0.01))
    assert_allclose(peaked.expect(np.sqrt), twin.expect(np.sqrt), rtol=1e-9)


def test_deep_tails_and_small_times_keep_their_digits():
    law = formulas(phase_type(HyperExponential(probabilities=[0.5, 0.5], means=[1.0, 1e-4])))
    x = np.array([1.0, 30.0, 300.0])
    assert_allclose(law.tail(x), 0.5 * np.exp(-x), rtol=1e-8)  # 3e6 passages of the fast phase
    five, twenty = (formulas(phase_type(Erlang(mean=1.0, phases=n))) for n in (5, 20))
    assert_allclose(five.cdf(1e-9), (5e-9) ** 5 / 120, rtol=1e-8)
    with mpmath.workdps(30):
        exact = [float(mpmath.gammainc(20, 20 * mpmath.mpf(t), regularized=True)) for t in (0.1, 1, 10, 30)]
    assert_allclose(twenty.tail([0.1, 1.0, 10.0, 30.0]), exact, rtol=1e-12)


def test_constructors():
    cox = PhaseType.coxian(means=[1.0, 2.0, 3.0], continuations=[0.5, 0.1])
    assert_allclose(cox.mean, 1 + 0.5 * 2 + 0.05 * 3)
    assert_allclose(formulas(scaled(cox, 10.0)).moment(2), 100 * formulas(cox).moment(2))
    assert len(cox.initial) == 3


# Operations


@settings(max_examples=settings.default.max_examples // 3)
@given(seeds, st.integers(1, 3), st.integers(1, 3))
def test_minimum_maximum_and_sum_by_integration(seed, n, m):
    a, b = random_law(seed, n), random_law(seed + 1, m)
    low, high, total = (formulas(of(a, b)) for of in (ph_minimum, ph_maximum, ph_convolution))
    x = np.array([0.1, 1.0, 4.0]) * a.mean
    assert_allclose(low.tail(x), a.tail(x) * b.tail(x), rtol=1e-10)
    assert_allclose(high.cdf(x), a.cdf(x) * b.cdf(x), rtol=1e-10)
    assert_allclose(low.mean, integral(lambda t: a.tail(t) * b.tail(t), a), rtol=1e-8)
    assert_allclose(low.mean + high.mean, a.mean + b.mean, rtol=1e-12)
    at = float(x[1])
    assert_allclose(
        total.cdf(at), quad(lambda t: a.density(t) * b.cdf(at - t), 0, at, epsrel=1e-11)[0], rtol=1e-8
    )
    assert_allclose(total.mean, a.mean + b.mean, rtol=1e-12)
    variances = [float(law.scv * law.mean**2) for law in (a, b, total)]
    assert_allclose(variances[2], variances[0] + variances[1], rtol=1e-11)
    mixed = formulas(ph_mixture([0.25, 0.75], [a, b]))
    assert_allclose(mixed.tail(x), 0.25 * a.tail(x) + 0.75 * b.tail(x), rtol=1e-11)


def test_a_mixture_of_three_laws():
    parts, weights = [random_law(seed, n) for seed, n in ((1, 2), (2, 1), (3, 3))], [0.5, 0.2, 0.3]
    x = np.array([0.1, 1.0, 4.0])
    exact = sum(weight * law.tail(x) for weight, law in zip(weights, parts, strict=True))
    assert_allclose(formulas(ph_mixture(weights, parts)).tail(x), exact, rtol=1e-11)


@given(seeds, st.integers(1, 6))
def test_canonical_form(seed, n):
    """The same law in the series form with ascending rates; a second application changes nothing."""
    rng = np.random.default_rng(seed)
    rates = np.triu(rng.exponential(size=(n, n)), k=1)
    total = rates.sum(axis=1) + rng.exponential(size=n) + 0.05
    law = formulas(PhaseType(initial=rng.dirichlet(np.ones(n)), generator=rates - np.diag(total)))
    form = formulas(ph_canonical(law))
    steps = -form.generator.diagonal()
    assert np.all(np.diff(steps) >= 0)
    assert_allclose(form.generator, np.diag(-steps) + np.diag(steps[:-1], k=1))
    x = law.mean * np.array([0.1, 1.0, 5.0])
    assert_allclose(form.tail(x), law.tail(x), rtol=1e-8)
    assert_allclose(ph_canonical(form).initial, form.initial, atol=1e-9)


# Fitting


@given(st.floats(0.006, 200.0), st.floats(1e-9, 1e9))
def test_two_moments(scv, mean):
    law = ph_from_moments(mean=mean, scv=scv)
    assert_allclose([law.mean, law.scv], [mean, scv], rtol=1e-11)
    assert len(law.initial) == (2 if scv > 1 else np.ceil(1 / scv - 1e-9))


@given(seeds, st.integers(2, 12), st.floats(1e-6, 1e6))
def test_three_moments_of_any_acyclic_law_are_matched_with_no_more_phases(seed, n, unit):
    law = formulas(scaled(random_series(seed, n), unit))
    found = formulas(ph_from_moments(mean=law.mean, scv=law.scv, third_moment=float(law.moment(3))))
    assert found.phases <= n
    for k in (1, 2, 3):
        assert_allclose(found.moment(k), law.moment(k), rtol=2e-9)


@given(seeds, st.integers(2, 9))
def test_moments_of_acyclic_laws_lie_within_the_bounds(seed, n):
    law = formulas(random_series(seed, n))
    bounds = third_moment_bounds(scv=law.scv, phases=n)
    assert bounds is not None
    third = float(law.moment(3)) / law.mean**3
    assert bounds[0] * (1 - 1e-9) <= third <= bounds[1] * (1 + 1e-9)


@pytest.mark.parametrize("n", [2, 3, 7, 20, 50])
@pytest.mark.parametrize("position", [0.0, 0.05, 0.5, 1.0])
def test_the_bounds_are_reached(n, position):
    for scv in (1 / n, 1.05 / n, 1 / (n - 1) - 1e-9, 0.97, 1.5, 30.0):
        bounds = third_moment_bounds(scv=scv, phases=n)
        if bounds is None:
            continue
        reached = 1.0 if scv < 3 / (n + 1) else 1 + 1e-6
        third = reached * bounds[0] + position * (min(bounds[1], 3 * bounds[0]) - bounds[0])
        law = ph_from_moments(mean=3.0, scv=scv, third_moment=27 * third, max_phases=n)
        assert_allclose(formulas(law).moment(3), 27 * third, rtol=2e-9)


@pytest.mark.parametrize("short", [4e-9, 1e-8, 1.7e-7, 1e-6])
def test_both_bounds_are_reached_just_beside_the_exponential_law(short):
    for third in third_moment_bounds(scv=1 - short, phases=2):
        law = ph_from_moments(mean=1.0, scv=1 - short, third_moment=third, max_phases=2)
        assert len(law.initial) == 2
        assert_allclose(formulas(law).moment(3), third, rtol=2e-9)


def test_the_exponential_law_is_recognised():
    assert ph_from_moments(mean=2.0, scv=1.0, third_moment=48.0).initial == (1.0,)
    assert ph_from_moments(mean=2.0, scv=1.0).initial == (1.0,)


# Errors


def test_laws_with_short_lives_are_not_mistaken_for_eternal_ones():
    short, usual = (formulas(phase_type(Erlang(mean=m, phases=3))) for m in (1e-9, 1.0))
    assert_allclose(short.tail(1e-9), usual.tail(1.0), rtol=1e-14)


def test_two_moments_next_to_the_exponential_and_to_every_erlang_law():
    near = 1 + np.array([-1e-16, -1e-15, -1e-13, -1e-12, -1e-9, -1e-7, 1e-15, 1e-12, 1e-9])
    for scv in np.concatenate([near, np.outer(1 / np.arange(2, 12), near).ravel()]):
        law = ph_from_moments(mean=1.0, scv=scv)
        assert law.mean == pytest.approx(1, rel=1e-9) and law.scv == pytest.approx(scv, rel=1e-8)
