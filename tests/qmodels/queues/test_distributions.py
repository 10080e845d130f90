"""Distributions of number, waiting and response time, and their quantiles."""

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.laws import Deterministic, Empirical, Erlang, Exponential, HyperExponential
from qmodels.queues import erlang_a, gm1, gmc, md1, mdc, mek1, mg1_fcfs, mh21, mm1, mmc, mmck, mminf

# Models with every distribution, at several loads, with the tolerance their method deserves.
MODELS = [
    (lambda: mm1(arrival_rate=0.8, service_rate=1.0), 1e-11),
    (lambda: mmc(arrival_rate=2.6, service_rate=1.0, servers=3), 1e-11),
    (lambda: mmc(arrival_rate=1.0, service_rate=1.0, servers=2), 1e-11),
    (lambda: mmck(arrival_rate=3.5, service_rate=1.0, servers=3, capacity=9), 1e-11),
    (lambda: mmck(arrival_rate=0.7, service_rate=1.0, servers=1, capacity=6), 1e-11),
    (lambda: gm1(arrival=Erlang(mean=1.2, phases=2), service_rate=1.0), 1e-11),
    (lambda: gmc(arrival=Erlang(mean=0.3, phases=2), service_rate=1.0, servers=4), 1e-11),
    (lambda: md1(arrival_rate=0.8, service_rate=1.0), 1e-11),
    (lambda: mdc(arrival_rate=3.4, service_rate=1.0, servers=4), 1e-11),
    (lambda: mek1(arrival_rate=0.8, service_rate=1.0, phases=4), 1e-8),
    (lambda: mh21(arrival_rate=0.2, probability=0.9, service_rates=(1.0, 0.2)), 1e-8),
]


def integral(f, width, end, order=6):
    """Integral over [0, end] by Gauss quadrature on equal pieces."""
    x, w = np.polynomial.legendre.leggauss(order)
    t = np.arange(0, end, width)[:, None] + width / 2 * (x + 1)
    return float((f(t) @ w).sum() * width / 2)


@pytest.mark.parametrize(("make", "tolerance"), MODELS)
def test_tails_integrate_to_the_means(make, tolerance):
    q = make()
    for tail, mean in (
        (q.waiting_time_tail, q.mean_waiting_time),
        (q.response_time_tail, q.mean_response_time),
    ):
        # Constant services bend the tail at their multiples: pieces must end there.
        assert integral(tail, 0.25, 25 * q.response_time_quantile(0.9)) == pytest.approx(mean, rel=1e-8)


@pytest.mark.parametrize(("make", "tolerance"), MODELS)
def test_quantiles_invert_the_tails(make, tolerance):
    q = make()
    levels = np.array([0.5, 0.9, 0.99, 0.9999])
    for tail, quantile in (
        (q.waiting_time_tail, q.waiting_time_quantile),
        (q.response_time_tail, q.response_time_quantile),
    ):
        t = quantile(levels)
        assert np.all(np.diff(t) >= 0)
        inside = t > 0
        assert_allclose(tail(t[inside]), 1 - levels[inside], rtol=1e-7)
        assert quantile(1.0) == np.inf
    assert q.waiting_time_quantile(0.0) == 0
    assert q.waiting_time_tail(0.0) == pytest.approx(float(q.waiting_probability), rel=1e-9)
    assert q.response_time_tail(0.0) == pytest.approx(1, rel=1e-14)
    assert float(q.waiting_time_quantile(1 - float(q.waiting_probability) * 1.01)) == 0


def test_numbers_in_system_sum_to_one_and_have_the_mean():
    n = np.arange(800)
    for q in (
        mm1(arrival_rate=0.9, service_rate=1.0),
        mmc(arrival_rate=13.0, service_rate=1.0, servers=15),
        mmck(arrival_rate=20.0, service_rate=1.0, servers=15, capacity=40),
        mminf(arrival_rate=12.0, service_rate=1.0),
        gm1(arrival=Deterministic(mean=1.1), service_rate=1.0),
        md1(arrival_rate=0.9, service_rate=1.0),
        mdc(arrival_rate=13.0, service_rate=1.0, servers=15),
        mg1_fcfs(arrival_rate=0.9, service=Exponential(mean=1.0)),
        mg1_fcfs(arrival_rate=0.5, service=HyperExponential.balanced(mean=1.0, scv=4.0)),
        mg1_fcfs(arrival_rate=0.5, service=Empirical(values=[0.5, 1.5], weights=[0.5, 0.5])),
    ):
        law = q.number_in_system_probability(n)
        assert law.sum() == pytest.approx(1, rel=1e-12)
        assert np.dot(law, n) == pytest.approx(float(q.mean_number_in_system), rel=1e-11)
        assert np.all(law >= 0)


def test_pmf_of_mmc_is_accurate_far_below_the_mean():
    with mp.workdps(40):
        load = mp.mpf(9000)
        terms = [load**n / mp.factorial(n) for n in (8000, 8999)]
        below = mp.mpf(0)
        term = mp.mpf(1)
        for k in range(10_000):
            below += term
            term *= load / (k + 1)
        total = below + term / (1 - load / 10_000)
        q = mmc(arrival_rate=9000.0, service_rate=1.0, servers=10_000)
        for n, t in zip((8000, 8999), terms, strict=True):
            assert float(abs(mp.mpf(float(q.number_in_system_probability(n))) / (t / total) - 1)) < 1e-12


@pytest.mark.parametrize("rho", [0.3, 0.8, 0.99])
def test_wait_of_md1_against_its_alternating_series(rho):
    """Erlang's series, whose terms alternate and need hundreds of digits at long waits."""
    q = md1(arrival_rate=rho, service_rate=1.0)
    with mp.workdps(120):
        for t in (0.0, 0.3, 1.0, 1.5, 5.0, 20.25):
            r, total = mp.mpf(rho), mp.mpf(0)
            for k in range(int(t) + 1):
                x = r * (k - mp.mpf(t))
                total += x**k / mp.factorial(k) * mp.exp(-x)
            exact = 1 - (1 - r) * total
            if exact > 1e-12:
                assert float(abs(mp.mpf(float(q.waiting_time_tail(t))) / exact - 1)) < 1e-11


def test_inversion_against_formulas():
    t = np.array([0.01, 0.1, 1.0, 5.0, 20.0, 60.0])
    q = mg1_fcfs(arrival_rate=0.8, service=Exponential(mean=1.0))
    assert_allclose(q.waiting_time_tail(t), 0.8 * np.exp(-0.2 * t), atol=2e-11, rtol=0)
    assert_allclose(q.response_time_tail(t), np.exp(-0.2 * t), atol=2e-9, rtol=0)
    assert q.response_time_quantile(0.99) == pytest.approx(np.log(100) / 0.2, rel=1e-8)
    # Constant services: right to 1e-5 away from the bends, and the exact sum is in md1.
    q, r = (
        mg1_fcfs(arrival_rate=0.8, service=Deterministic(mean=1.0)),
        md1(arrival_rate=0.8, service_rate=1.0),
    )
    t = np.array([0.5, 1.5, 2.5, 7.3, 20.1])
    assert_allclose(q.waiting_time_tail(t), r.waiting_time_tail(t), atol=1e-5, rtol=0)


def test_variances_are_those_of_the_tails():
    for make, _ in MODELS:
        q = make()
        if q.waiting_time_variance is None:
            continue
        second = integral(
            lambda t, q=q: 2 * t * q.waiting_time_tail(t), 0.25, 25 * q.response_time_quantile(0.9)
        )
        assert second - q.mean_waiting_time**2 == pytest.approx(float(q.waiting_time_variance), rel=1e-6)


def test_time_in_queue_of_impatient_jobs():
    q = erlang_a(arrival_rate=12.0, service_rate=1.0, servers=10, patience_rate=0.2)
    assert integral(q.waiting_time_tail, 0.1, 12.0) == pytest.approx(float(q.mean_waiting_time), rel=1e-10)
    assert q.waiting_time_tail(0.0) == pytest.approx(float(q.waiting_probability), rel=1e-12)
    assert q.waiting_time_tail(q.waiting_time_quantile(0.7)) == pytest.approx(0.3, rel=1e-10)


def test_arrays_and_overload():
    q = mmc(arrival_rate=[0.5, 1.5, 2.0, 3.0], service_rate=1.0, servers=2)
    assert q.response_time_quantile(0.9).shape == (4,)
    assert (
        np.isinf(q.response_time_quantile(0.9)[2:]).all() and np.isinf(q.waiting_time_quantile(0.9)[2:]).all()
    )
    assert q.waiting_time_tail(5.0)[2:].tolist() == [1, 1]
    assert q.number_in_system_probability(3)[2:].tolist() == [0, 0]
    assert q.response_time_quantile([[0.5], [0.9]]).shape == (2, 4)
    for model in (
        md1(arrival_rate=[0.5, 2.0], service_rate=1.0),
        mdc(arrival_rate=[0.5, 2.0], service_rate=1.0, servers=[1, 2]),
        mek1(arrival_rate=[0.5, 2.0], service_rate=1.0, phases=3),
        gm1(arrival=Deterministic(mean=np.array([2.0, 0.5])), service_rate=1.0),
    ):
        assert (
            np.isfinite(model.response_time_quantile(0.9)[0])
            and model.response_time_quantile(0.9)[1] == np.inf
        )
        assert model.response_time_tail(3.0)[1] == 1
        assert model.number_in_system_probability(2)[1] == 0
        assert model.number_in_system_probability(2).shape == (2,)
    idle = mm1(arrival_rate=0.0, service_rate=1.0)
    assert idle.waiting_time_quantile(0.99) == 0
    assert idle.response_time_quantile(0.5) == pytest.approx(np.log(2))
    assert md1(arrival_rate=0.0, service_rate=2.0).response_time_quantile(0.5) == pytest.approx(0.5)
