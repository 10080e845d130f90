"""Tails and quantiles of one in 10^15 and beyond, against forms that share nothing with the models."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import single_station, solve
from qmodels.laws import (
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Formulas,
    Gamma,
    HyperExponential,
    PhaseType,
    formulas,
)
from qmodels.markov import map_ph_1
from qmodels.queues import md1, mdc, mek1, mg1_fcfs, mh21

LEVELS = 1 - np.array([0.7, 0.1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
"""Beyond the last, 1 - p has no digits."""


def by_matrices(load: float, service: PhaseType):
    return map_ph_1(arrivals=Exponential(mean=1 / (load / service.mean)), service=service)


def assert_same_tails(q, reference, rtol):
    for kind in ("waiting", "response"):
        quantile, tail = f"{kind}_time_quantile", f"{kind}_time_tail"
        right = np.array([float(getattr(reference, quantile)(p)) for p in LEVELS])
        assert_allclose(getattr(q, quantile)(LEVELS), right, rtol=rtol, atol=rtol)
        times = np.array([0.3, 2.0, 10.0, 60.0])
        assert_allclose(getattr(q, tail)(times), getattr(reference, tail)(times), rtol=10 * rtol)


def test_the_quantile_that_was_eight_times_too_long():
    q = mek1(arrival_rate=0.5, service_rate=1, phases=3)
    assert q.response_time_quantile(1 - 1e-12) == pytest.approx(33.40063797, abs=1e-7)


@pytest.mark.parametrize("load", [1e-6, 0.01, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("phases", [1, 3, 10])
def test_erlang_service_by_matrices(load, phases):
    reference = by_matrices(load, Erlang(mean=1, phases=phases))
    assert_same_tails(mek1(arrival_rate=load, service_rate=1, phases=phases), reference, 1e-8)


@pytest.mark.parametrize("load", [1e-6, 0.01, 0.5, 0.9, 0.99])
@pytest.mark.parametrize(
    "p, rates",
    [
        (0.9, (2.0, 0.2)),
        (1 - 1e-9, (1.0, 0.01)),  # the slow kind shows at one in 10^9 only
        (1e-12, (3.0, 1.0)),
        (0.5, (1.0, 1.0)),
        (0.5, (1.0, 1 + 1e-9)),  # poles as close as that
        (0.25, (1.0, 4.0)),
    ],
)
def test_hyperexponential_service_by_matrices(load, p, rates):
    service = HyperExponential(probabilities=[p, 1 - p], means=1 / np.array(rates))
    q = mh21(arrival_rate=load / service.mean, probability=p, service_rates=rates)
    assert_same_tails(q, by_matrices(load, service), 1e-9)


def test_hyperexponential_service_of_many_kinds_sweeps_and_sums_to_the_mean():
    law = HyperExponential(probabilities=[0.6, 0.3, 0.0999, 1e-4], means=[1.0, 1.0, 10.0, 1000.0])
    loads = np.array([[0.0, 0.1], [0.8, 1.5]])
    q = mg1_fcfs(arrival_rate=loads / law.mean, service=law)
    deep = q.response_time_quantile(1 - 1e-14)
    assert deep.shape == (2, 2) and np.all(np.diff(deep.ravel()[:3]) > 0) and np.isinf(deep[1, 1])
    assert q.waiting_time_quantile(1 - 1e-14)[0, 0] == 0
    assert deep[0, 0] == pytest.approx(1000 * np.log(1e-4 / 1e-14), rel=1e-3)
    service = HyperExponential(probabilities=law.probabilities, means=law.means)
    assert_allclose(deep[1, 0], by_matrices(0.8, service).response_time_quantile(1 - 1e-14), rtol=1e-9)


def test_phase_type_service_by_matrices():
    service = PhaseType(initial=[0.5, 0.3, 0.2], generator=[[-1, 0.5, 0], [0.2, -3, 1], [0, 0.1, -0.5]])
    for load in (1e-3, 0.7):
        q = mg1_fcfs(arrival_rate=[load / service.mean, 2.0], service=service)
        reference = by_matrices(load, service)
        assert_allclose(
            q.response_time_quantile(LEVELS[:, None])[:, 0],
            reference.response_time_quantile(LEVELS),
            rtol=1e-9,
        )
        assert q.stable.tolist() == [True, False]


@pytest.mark.parametrize("scv, load", [(0.3, 0.6), (2.5, 0.2), (10.0, 0.9)])
def test_gamma_service_by_quadrature_of_the_transform(scv, load):
    """Bromwich's integral with 60 digits, on a line to the left of 0 and right of the first pole."""
    q = mg1_fcfs(arrival_rate=load, service=Gamma(mean=1.0, scv=scv))
    times = q.waiting_time_quantile(1 - np.array([1e-3, 1e-12]))
    with mpmath.workdps(60):
        shape, rho = 1 / mpmath.mpf(scv), mpmath.mpf(load)

        def transform(s):
            residual = (1 - (1 + s / shape) ** (-shape)) / s
            return (1 - (1 - rho) / (1 - rho * residual)) / s

        for t in times:
            exact = mpmath.invertlaplace(transform, mpmath.mpf(float(t)), method="talbot", degree=60)
            assert float(q.waiting_time_tail(t) / exact) == pytest.approx(1, abs=1e-7)


def test_a_network_of_one_station_answers_as_its_model_does():
    mixed = HyperExponential(probabilities=(0.5, 0.5), means=(0.5, 1.5))
    for service in (Erlang(mean=1.0, phases=3), mixed):
        net = single_station(arrivals=Exponential(mean=2.0), service=service)
        answer = solve(net)
        reference = by_matrices(0.5, service)
        for p in (1 - 1e-9, 1 - 1e-15):
            assert float(answer.result.response_time_quantile(p)) == pytest.approx(
                float(reference.response_time_quantile(p)), rel=1e-9
            )


def test_constant_times_are_right_or_refused():
    rare = 1 - np.array([1e-3, 1e-6, 1e-9, 1e-15])
    by_sum, by_transform = (
        md1(arrival_rate=0.5, service_rate=1),
        mg1_fcfs(arrival_rate=0.5, service=Deterministic(mean=1.0)),
    )
    assert_allclose(by_transform.waiting_time_quantile(rare), by_sum.waiting_time_quantile(rare), rtol=1e-5)
    idle = mg1_fcfs(arrival_rate=1e-3, service=Empirical(values=[0.9, 1.1], weights=[0.5, 0.5]))
    with pytest.raises(ValueError, match="^p must be a level that the inversion of the transform resolves"):
        idle.waiting_time_quantile(1 - 1e-9)


class Own(Formulas):
    """A gamma law of which only moments, density and borders are known."""

    def __init__(self, mean: float, scv: float) -> None:
        known = formulas(Gamma(mean=mean, scv=scv))
        self.mean, self.moment, self.density, self.breaks = mean, known.moment, known.density, known.breaks
        self.tail_moment = known.tail_moment

    moment = tail_moment = breaks = None  # set above


def test_a_law_of_ones_own_is_resolved_to_the_inversions_error_and_refused_beyond():
    own = mg1_fcfs(arrival_rate=0.5, service=Own(1.0, 0.5))
    known = mg1_fcfs(arrival_rate=0.5, service=Gamma(mean=1.0, scv=0.5))
    assert own.response_time_quantile(1 - 1e-6) == pytest.approx(
        known.response_time_quantile(1 - 1e-6), rel=1e-4
    )
    with pytest.raises(ValueError, match="^p must be a level that the inversion"):
        own.response_time_quantile(1 - 1e-12)


def exact_md1_tail(rho: float, t: float) -> float:
    """Erlang's sum, which cancels hundreds of digits."""
    with mpmath.workdps(400):
        r, x = mpmath.mpf(rho), mpmath.mpf(t)
        terms = (
            (r * (j - x)) ** j / mpmath.factorial(j) * mpmath.exp(r * (x - j)) for j in range(int(t) + 1)
        )
        return float(1 - (1 - r) * mpmath.fsum(terms))


@pytest.mark.parametrize("rho", [1e-9, 1e-3, 0.1, 0.5, 0.9, 0.99])
def test_md1_tails_down_to_the_smallest_doubles(rho):
    q = md1(arrival_rate=rho, service_rate=1)
    for t in (0.5, 1.5, 5.25, 25.5, 60.7, 200.5):
        exact = exact_md1_tail(rho, t)
        if exact > 1e-290:
            assert q.waiting_time_tail(t) == pytest.approx(exact, rel=1e-10)


def test_mdc_tails_fall_at_their_rate_at_any_depth():
    """The tail is exp(-c y t) at last, with y = rho (e^y - 1); y by bisection here."""
    for rho, c in ((0.3, 1), (0.3, 4), (0.9, 20), (0.99, 3)):
        low, high = 1e-6 * (1 - rho), 60.0
        while high - low > 1e-14 * high:
            y = (low + high) / 2
            low, high = (y, high) if y > rho * np.expm1(y) else (low, y)
        q = mdc(arrival_rate=rho * c, service_rate=1, servers=c)
        t = 200 / (c * y)
        ratio = q.waiting_time_tail(t + 1) / q.waiting_time_tail(t)
        assert ratio == pytest.approx(np.exp(-c * y), rel=1e-6)
