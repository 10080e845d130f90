"""Queues with Markovian arrivals against closed forms, truncated chains and one another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad

from qmodels.laws import (
    MAP,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    HyperExponential,
    PhaseType,
    Uniform,
    formulas,
    scaled,
)
from qmodels.markov import CTMC, gi_ph_1, map_g_1, map_g_1_k, map_map_1, map_ph_1, map_ph_c, map_superposition
from qmodels.markov.processes import map_queues as map_queues_module
from qmodels.markov.processes.arrival_process import Arrivals
from qmodels.queues import gmc, mg1
from tests.qmodels.markov.test_arrival_process import random_process

seeds = st.integers(0, 10**6)
UNIT = Exponential(mean=1.0)


def random_service(seed, n):
    rng = np.random.default_rng(seed + 17)
    rates = rng.exponential(size=(n, n)) * 0.5
    np.fill_diagonal(rates, 0.0)
    leave = rng.exponential(size=n) + 0.1
    return PhaseType(initial=rng.dirichlet(np.ones(n)), generator=rates - np.diag(rates.sum(axis=1) + leave))


def finite_chain(arrivals, service, capacity):
    """MAP/PH/1/K state by state, from the rules alone."""
    arrivals, service = Arrivals("arrivals", arrivals), formulas(service)
    n, m = arrivals.phases, service.phases

    def moves(state):
        jobs, i, j = state
        for k in range(n):
            if k != i:
                yield (jobs, k, j), arrivals.d0[i, k]
            if jobs == 0:
                for first in range(m):
                    yield (1, k, first), arrivals.d1[i, k] * service.initial[first]
            elif jobs < capacity:
                yield (jobs + 1, k, j), arrivals.d1[i, k]
            elif k != i:
                yield (jobs, k, j), arrivals.d1[i, k]
        if jobs:
            for k in range(m):
                if k != j:
                    yield (jobs, i, k), service.generator[j, k]
                if jobs == 1:
                    yield (0, i, 0), service.exit_rates[j] / m
                else:
                    yield (jobs - 1, i, k), service.exit_rates[j] * service.initial[k]

    return CTMC.from_transitions(initial_state=(0, 0, 0), transitions=moves).stationary()


# MAP/PH/1


@pytest.mark.parametrize("load", [1e-6, 0.3, 0.9, 1 - 2.0**-10, 1 - 2.0**-20])
@pytest.mark.parametrize(
    "service",
    [
        Exponential(mean=1.0),
        Erlang(mean=1.0, phases=4),
        HyperExponential(probabilities=[0.25, 0.75], means=[2.0, 2 / 3]),
    ],
)
def test_poisson_arrivals_give_pollaczek_and_khinchine(service, load):
    """Mean and variance of the wait from three moments of the service time, to 1e-16 over the idle time."""
    found = map_ph_1(arrivals=Exponential(mean=1 / load), service=service)
    law = formulas(service)
    wait = load * float(law.moment(2)) / 2 / (1 - load)
    variance = wait**2 + load * float(law.moment(3)) / 3 / (1 - load)
    limit = max(1e-12, 2e-15 / (1 - load))
    assert_allclose(found.mean_waiting_time, wait, rtol=limit)
    assert_allclose(found.waiting_time_variance, variance, rtol=2 * limit)
    assert_allclose(found.utilization, load, rtol=1e-14)
    assert_allclose(found.waiting_probability, load, rtol=limit)
    service_variance = service.scv * service.mean**2
    assert_allclose(found.response_time_variance, variance + service_variance, rtol=2 * limit)
    assert found.stable


def test_mm1_in_full():
    found = map_ph_1(arrivals=Exponential(mean=1 / 0.8), service=Exponential(mean=1.0))
    n, t = np.arange(50), np.array([0.0, 0.5, 3.0, 40.0])
    assert_allclose(found.number_in_system_probability(n), 0.2 * 0.8**n, rtol=1e-12)
    assert_allclose(found.waiting_time_tail(t), 0.8 * np.exp(-0.2 * t), rtol=1e-12)
    assert_allclose(found.response_time_tail(t), np.exp(-0.2 * t), rtol=1e-12)
    assert_allclose(found.response_time_quantile(0.99), np.log(100) / 0.2, rtol=1e-11)


def test_poisson_arrivals_and_hyperexponential_services_in_full():
    """M/H2/1: the two exponents of the wait are the roots of a quadratic."""
    p, m1, m2, lam = 0.2, 3.0, 0.5, 0.7
    service = HyperExponential(probabilities=[p, 1 - p], means=[m1, m2])
    found = map_ph_1(arrivals=Exponential(mean=1 / lam), service=service)
    rho = lam * (p * m1 + (1 - p) * m2)
    # (1 - rho) s / (s - lam + lam B(s)) has the poles of s m1 m2 (s - lam) + ... below.
    poles = np.roots([m1 * m2, m1 + m2 - lam * m1 * m2, 1 - lam * (m1 + m2) + lam * (p * m2 + (1 - p) * m1)])
    # W(s) = (1 - rho) (1 + m1 s)(1 + m2 s) / (m1 m2 (s - s1)(s - s2)): partial fractions give the tail.
    top = (1 - rho) * (1 + m1 * poles) * (1 + m2 * poles)
    parts = top / (m1 * m2 * (poles - poles[::-1]))
    t = np.array([0.1, 1.0, 10.0])
    expected = (parts / -poles) @ np.exp(np.outer(poles, t))
    assert_allclose(found.waiting_time_tail(t), expected, rtol=1e-11)


@given(seeds, st.integers(1, 3), st.integers(1, 3), st.floats(0.05, 0.6))
def test_against_a_large_finite_chain(seed, n, m, load):
    arrivals, service = random_process(seed, n), random_service(seed, m)
    arrivals = scaled(arrivals, arrivals.rate * service.mean / load)
    found = map_ph_1(arrivals=arrivals, service=service)
    chain = finite_chain(arrivals, service, 40)
    jobs = np.array([chain.expected(lambda s, k=k: s[0] == k) for k in range(25)])
    assert_allclose(found.number_in_system_probability(np.arange(25)), jobs, rtol=1e-6, atol=1e-12)
    assert_allclose(found.mean_number_in_system, chain.expected(lambda s: s[0]), rtol=1e-5)
    busy = chain.expected(lambda s: (s[0] > 0) * sum(arrivals.d1[s[1]])) / arrivals.rate
    assert_allclose(found.waiting_probability, busy, rtol=1e-6)


@settings(max_examples=settings.default.max_examples // 3)
@given(seeds, st.integers(1, 3), st.integers(1, 2), st.floats(0.05, 0.9))
def test_distributions_agree_with_the_moments(seed, n, m, load):
    arrivals, service = random_process(seed, n), random_service(seed, m)
    arrivals = scaled(arrivals, arrivals.rate * service.mean / load)
    found = map_ph_1(arrivals=arrivals, service=service)
    assert_allclose(found.waiting_time_tail(0.0), found.waiting_probability, rtol=1e-11)
    assert_allclose(found.response_time_tail(0.0), 1.0, rtol=1e-11)
    end = float(found.response_time_quantile(1 - 1e-12))
    for tail, mean, variance in (
        (found.waiting_time_tail, found.mean_waiting_time, found.waiting_time_variance),
        (found.response_time_tail, found.mean_response_time, found.response_time_variance),
    ):
        assert_allclose(quad(tail, 0, end, epsrel=1e-9, limit=200)[0], mean, rtol=1e-6)
        second = quad(lambda t, tail=tail: 2 * t * tail(t), 0, end, epsrel=1e-9, limit=200)[0]
        assert_allclose(second - float(mean) ** 2, variance, rtol=1e-5, atol=1e-12)


@given(seeds, st.floats(1e-9, 1e9))
def test_the_unit_of_time(seed, unit):
    arrivals, service = random_process(seed, 2), random_service(seed, 2)
    arrivals = scaled(arrivals, arrivals.rate * service.mean / 0.7)
    slow = map_ph_1(arrivals=arrivals, service=service)
    fast = map_ph_1(arrivals=scaled(arrivals, 1 / unit), service=scaled(service, 1 / unit))
    assert_allclose(fast.mean_waiting_time * unit, slow.mean_waiting_time, rtol=1e-10)
    assert_allclose(fast.mean_number_in_system, slow.mean_number_in_system, rtol=1e-10)


@pytest.mark.parametrize("load", [1.0, 1.3])
def test_overload(load):
    found = map_ph_1(arrivals=Exponential(mean=1 / load), service=Erlang(mean=1.0, phases=2))
    assert not found.stable
    assert found.mean_waiting_time == found.mean_number_in_system == np.inf
    assert found.utilization == found.throughput == 1.0
    assert found.number_in_system_probability(3) == 0.0
    assert found.waiting_time_tail(3.0) == found.response_time_tail(3.0) == 1.0
    assert found.waiting_time_quantile(0.5) == np.inf


def test_variances_of_large_systems_are_left_out(monkeypatch):
    monkeypatch.setattr(map_queues_module, "LARGEST_SYSTEM", 3)
    found = map_ph_1(arrivals=Exponential(mean=1 / 0.5), service=Erlang(mean=1.0, phases=2))
    assert found.waiting_time_variance is None
    assert_allclose(found.mean_waiting_time, 0.75, rtol=1e-13)


# MAP/MAP/1


@given(seeds, st.integers(1, 3), st.floats(0.05, 0.9))
def test_renewal_services_are_map_ph_1(seed, n, load):
    arrivals, law = random_process(seed, n), random_service(seed, 2)
    arrivals = scaled(arrivals, arrivals.rate * law.mean / load)
    one = map_ph_1(arrivals=arrivals, service=law)
    two = map_map_1(arrivals=arrivals, service=law)
    for name in (
        "mean_waiting_time",
        "waiting_probability",
        "waiting_time_variance",
        "response_time_variance",
    ):
        assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-9)
    t = np.array([0.3, 2.0, 9.0])
    assert_allclose(two.response_time_tail(t), one.response_time_tail(t), rtol=1e-9)


def test_correlated_services_against_a_finite_chain():
    service = MAP.mmpp(generator=[[-0.1, 0.1], [0.4, -0.4]], rates=[2.0, 0.5])

    def moves(state):
        jobs, mode = state
        if jobs < 300:
            yield (jobs + 1, mode), 1.0
        if jobs:
            yield (jobs, 1 - mode), (0.1, 0.4)[mode]
            yield (jobs - 1, mode), (2.0, 0.5)[mode]

    chain = CTMC.from_transitions(initial_state=(0, 0), transitions=moves).stationary()
    found = map_map_1(arrivals=Exponential(mean=1 / 1.0), service=service)
    assert_allclose(found.mean_number_in_system, chain.expected(lambda s: s[0]), rtol=1e-9)
    assert_allclose(found.utilization, chain.expected(lambda s: s[0] > 0), rtol=1e-9)
    assert not map_map_1(arrivals=Exponential(mean=1 / 1.7), service=service).stable


# MAP/G/1/K


@given(seeds, st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.floats(0.01, 3.0))
def test_finite_room_state_by_state(seed, n, m, capacity, load):
    arrivals, service = random_process(seed, n), random_service(seed, m)
    arrivals = scaled(arrivals, arrivals.rate * service.mean / load)
    found = map_g_1_k(arrivals=arrivals, service=service, capacity=capacity)
    chain = finite_chain(arrivals, service, capacity)
    jobs = [chain.expected(lambda s, k=k: s[0] == k) for k in range(capacity + 2)]
    assert_allclose(found.number_in_system_probability(np.arange(capacity + 2)), jobs, rtol=1e-10)
    lost = chain.expected(lambda s: (s[0] == capacity) * sum(arrivals.d1[s[1]])) / arrivals.rate
    assert_allclose(found.blocking_probability, lost, rtol=1e-10)
    assert_allclose(found.throughput, arrivals.rate * (1 - lost), rtol=1e-10)
    assert_allclose(found.mean_number_in_system, chain.expected(lambda s: s[0]), rtol=1e-10)
    waiting = chain.expected(lambda s: (0 < s[0] < capacity) * sum(arrivals.d1[s[1]]))
    assert_allclose(found.waiting_probability, waiting / found.throughput, rtol=1e-10, atol=1e-15)


def test_rare_losses_keep_their_digits():
    """M/D/1/K has losses of 1e-25 here; twice the same process is the process of twice the rate."""
    twice = map_superposition([MAP.mmpp(generator=[[-1.0, 1.0], [2.0, -2.0]], rates=[0.05, 0.05])] * 2)
    service = Deterministic(mean=1.0)
    found = map_g_1_k(arrivals=twice, service=service, capacity=20)
    plain = map_g_1_k(arrivals=Exponential(mean=1 / 0.1), service=service, capacity=20)
    assert 0 < plain.blocking_probability < 1e-24
    assert_allclose(found.blocking_probability, plain.blocking_probability, rtol=1e-10)


def test_one_place_is_the_loss_system_of_any_service():
    for service in (Deterministic(mean=2.0), Gamma(mean=2.0, scv=7.0)):
        found = map_g_1_k(arrivals=Exponential(mean=1 / 0.5), service=service, capacity=1)
        assert_allclose(found.blocking_probability, 0.5, rtol=1e-12)
        assert found.mean_waiting_time == 0.0


def test_much_room_is_no_limit():
    burst = MAP.mmpp(generator=[[-0.5, 0.5], [0.2, -0.2]], rates=[1.2, 0.1])
    service = Erlang(mean=1.0, phases=3)
    free = map_ph_1(arrivals=burst, service=service)
    roomy = map_g_1_k(arrivals=burst, service=service, capacity=300)
    assert_allclose(roomy.mean_waiting_time, free.mean_waiting_time, rtol=1e-9)
    assert roomy.blocking_probability < 1e-10


def test_overload_fills_the_room():
    found = map_g_1_k(arrivals=Exponential(mean=1 / 50.0), service=Deterministic(mean=1.0), capacity=200)
    assert found.stable
    assert_allclose(found.throughput, 1.0, rtol=1e-12)
    assert_allclose(found.utilization, 1.0, rtol=1e-12)


def test_a_service_law_with_rare_eternities():
    """One service in 1e9 takes 1e7 times as long: the room is full meanwhile."""
    service = Empirical(values=[1.0, 1e7], weights=[1 - 1e-9, 1e-9])
    found = map_g_1_k(arrivals=Exponential(mean=1 / 0.5), service=service, capacity=4)
    mean = service.mean
    usual = map_g_1_k(arrivals=Exponential(mean=1 / 0.5), service=Deterministic(mean=1.0), capacity=4)
    assert_allclose(found.utilization, found.throughput * mean, rtol=1e-12)
    cycles = 1e-9 * 1e7 * usual.throughput  # time in long services per unit of usual time
    expected = (usual.number_in_system_probability(4) + cycles) / (1 + cycles)
    assert_allclose(found.number_in_system_probability(4), expected, rtol=1e-4)


@given(seeds, st.integers(1, 3), st.integers(1, 3), st.floats(0.05, 0.95))
def test_one_server_of_phases_is_the_same_in_every_model(seed, n, m, load):
    arrivals, service = random_process(seed, n), random_service(seed, m)
    arrivals = scaled(arrivals, arrivals.rate * formulas(service).mean / load)
    found = map_ph_1(arrivals=arrivals, service=service)
    for other in (
        map_g_1(arrivals=arrivals, service=service),
        map_ph_c(arrivals=arrivals, service=service, servers=1),
    ):
        assert_allclose(other.mean_waiting_time, found.mean_waiting_time, rtol=1e-8)
        assert_allclose(other.waiting_probability, found.waiting_probability, rtol=1e-9)
    gaps = PhaseType(
        initial=random_service(seed + 1, n).initial, generator=random_service(seed + 1, n).generator
    )
    gaps = scaled(gaps, formulas(service).mean / load / gaps.mean)
    found, other = map_ph_1(arrivals=gaps, service=service), gi_ph_1(arrival=gaps, service=service)
    for name in (
        "mean_waiting_time",
        "waiting_probability",
        "waiting_time_variance",
        "response_time_variance",
    ):
        assert_allclose(getattr(other, name), getattr(found, name), rtol=1e-8, err_msg=name)


@pytest.mark.parametrize(
    ("load", "wait"), [(0.1, 0.7215), (0.2, 9.03), (0.35, 27.7), (0.5, 45.3), (0.8, 134.1), (0.9, 276.3)]
)
def test_bursts_at_a_server_of_constant_time(load, wait):
    """Bursts of 40 at 6 times the mean rate; Lindley's recursion over 9 million jobs is within 2 %."""
    burst = MAP.mmpp(generator=[[-6 / 40, 6 / 40], [6 / 40 / 5, -6 / 40 / 5]], rates=[6.0, 0.0])
    found = map_g_1(arrivals=scaled(burst, 1 / load), service=Deterministic(mean=1.0))
    assert found.mean_waiting_time == pytest.approx(wait, rel=2e-3)


def test_uniform_gaps_and_services():
    """Against the integral of Lindley's equation in steps of a thousandth of a service."""
    gaps, unit = Uniform(low=0.0, high=2.0), Exponential(mean=0.7)
    exact = gmc(arrival=gaps, service_rate=1 / 0.7, servers=1)
    found = gi_ph_1(arrival=gaps, service=unit)
    assert_allclose(found.mean_waiting_time, exact.mean_waiting_time, rtol=1e-10)
    assert_allclose(found.waiting_probability, exact.waiting_probability, rtol=1e-10)
    service = Uniform(low=0.2, high=1.2)
    plain = mg1(arrival_rate=1.0, mean_service_time=0.7, service_scv=service.scv)
    assert_allclose(
        map_g_1(arrivals=UNIT, service=service).mean_waiting_time, plain.mean_waiting_time, rtol=1e-10
    )


@pytest.mark.parametrize("servers", [2, 3, 5])
def test_several_servers(servers):
    gaps = Erlang(mean=1.3 / servers, phases=3)
    exact = gmc(arrival=gaps, service_rate=1.0, servers=servers)
    found = map_ph_c(arrivals=gaps, service=UNIT, servers=servers)
    assert_allclose(found.mean_waiting_time, exact.mean_waiting_time, rtol=1e-10)
    assert_allclose(found.waiting_probability, exact.waiting_probability, rtol=1e-10)
    # A service of two equal exponential branches is exponential: more states, the same numbers.
    twice = map_ph_c(
        arrivals=gaps, service=HyperExponential(probabilities=[0.3, 0.7], means=[1, 1]), servers=servers
    )
    n = np.arange(3 * servers)
    assert_allclose(twice.number_in_system_probability(n), found.number_in_system_probability(n), rtol=1e-9)
    full = map_ph_c(arrivals=scaled(gaps, 0.5), service=UNIT, servers=servers)
    assert not full.stable and full.mean_waiting_time == np.inf and full.throughput == servers


def test_several_servers_against_the_chain_state_by_state():
    """H2/E2/2 up to 60 jobs, from the rules alone: the phase of each server's service, 0 where idle."""
    p, fast, slow, mu, most = 0.2, 0.3, 2.0, 2.0, 60

    def moves(state):
        jobs, gap, *busy = state
        rate = (fast, slow)[gap]
        for after, share in ((0, p), (1, 1 - p)):
            if jobs < most:
                into = sorted([1, *busy])[1:] if jobs < 2 else busy  # the idle ones are first
                yield (jobs + 1, after, *into), rate * share
            else:
                yield (jobs, after, *busy), rate * share
        for k, phase in enumerate(busy):
            if phase == 1:
                yield (jobs, gap, *sorted([*busy[:k], 2, *busy[k + 1 :]])), mu
            elif phase == 2:
                yield (jobs - 1, gap, *sorted([*busy[:k], 1 if jobs > 2 else 0, *busy[k + 1 :]])), mu

    chain = CTMC.from_transitions(initial_state=(0, 0, 0, 0), transitions=moves).stationary()
    gaps = HyperExponential(probabilities=[p, 1 - p], means=[1 / fast, 1 / slow])
    found = map_ph_c(arrivals=gaps, service=Erlang(mean=1.0, phases=2), servers=2)
    assert_allclose(found.mean_number_in_system, chain.expected(lambda s: s[0]), rtol=1e-6)


def test_errors_of_several_servers():
    with pytest.raises(ValueError, match=r"servers must be one number, got shape \(2,\)"):
        map_ph_c(arrivals=UNIT, service=UNIT, servers=[1, 2])
    with pytest.raises(ValueError, match="servers must ask for at most"):
        map_ph_c(arrivals=UNIT, service=Erlang(mean=1.0, phases=8), servers=16)
