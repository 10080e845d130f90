"""Relative errors against evaluations with 50 digits, over the whole range of utilizations."""

import mpmath as mp
import numpy as np
import pytest

from qmodels.laws import Deterministic, Gamma
from qmodels.queues import (
    erlang_a,
    erlang_b,
    erlang_c,
    gm1,
    gmc,
    md1,
    md1k,
    mdc,
    mg1,
    mg1_nonpreemptive,
    mg1_preemptive_resume,
    mm1,
    mm1k,
    mmc,
    mmc_finite,
    mmc_nonpreemptive,
    mmc_preemptive,
    mmck,
    mxg1,
)

UTILIZATIONS = [1e-6, 1e-3, 0.1, 0.5, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6]


@pytest.fixture(autouse=True)
def fifty_digits():
    with mp.workdps(50):
        yield


def error(value, reference):
    """Relative error; a value below the range of doubles may be 0."""
    if abs(reference) < mp.mpf("1e-290"):
        return 0.0 if value < 1e-280 else 1.0
    return float(abs(mp.mpf(float(value)) / reference - 1))


def erlang_sums(a, c):
    """Return sum of a^n/n! below c, and a^c/c!."""
    term, total = mp.mpf(1), mp.mpf(0)
    for n in range(1, c + 1):
        total += term
        term *= a / n
    return total, term


@pytest.mark.parametrize("servers", [1, 2, 7, 64, 1000, 10_000])
def test_erlang_and_mmc(servers):
    worst = 0.0
    for rho in UTILIZATIONS:
        for mu in (1.0, 0.37):
            lam = rho * servers * mu
            below, top = erlang_sums(mp.mpf(lam) / mp.mpf(mu), servers)
            r = mp.mpf(lam) / (servers * mp.mpf(mu))
            waits = top / (1 - r) / (below + top / (1 - r))
            q = mmc(arrival_rate=lam, service_rate=mu, servers=servers)
            worst = max(worst, error(q.waiting_probability, waits))
            worst = max(worst, error(q.mean_waiting_time, waits / (servers * mp.mpf(mu) - lam)))
            if mu == 1.0:
                worst = max(worst, error(erlang_b(servers=servers, offered_load=lam), top / (below + top)))
                worst = max(worst, error(erlang_c(servers=servers, offered_load=lam), waits))
    assert worst < 1e-12


@pytest.mark.parametrize("servers", [1, 3, 64, 1000])
@pytest.mark.parametrize("places", [0, 1, 2, 100, 10**6])
def test_mmck(servers, places):
    worst = {}
    for rho in [*UTILIZATIONS, 1.0, 1 + 1e-9, 1 + 1e-4, 1.5, 1000.0]:
        mu = 0.77
        lam = rho * servers * mu
        exact_mu = mp.mpf(mu)
        r = mp.mpf(lam) / (servers * exact_mu)
        below, top = erlang_sums(mp.mpf(lam) / exact_mu, servers)
        m = places
        if r == 1:
            inner, queue, waiting = mp.mpf(m), mp.mpf(m + 1), mp.mpf(m) * (m + 1) / 2
        else:
            inner, queue = (1 - r**m) / (1 - r), (1 - r ** (m + 1)) / (1 - r)
            waiting = r * (1 - (m + 1) * r**m + m * r ** (m + 1)) / (1 - r) ** 2
        total = below + top * queue
        admitted = (below + top * inner) / total
        references = {
            "blocking_probability": top * r**m / total,
            "throughput": lam * admitted,
            "mean_waiting_time": top * waiting / total / (lam * admitted),
            "utilization": r * admitted,
            "waiting_probability": top * inner / total / admitted,
        }
        q = mmck(arrival_rate=lam, service_rate=mu, servers=servers, capacity=servers + places)
        for name, reference in references.items():
            worst[name] = max(worst.get(name, 0.0), error(getattr(q, name), reference))
    assert max(worst.values()) < 2e-13, worst


@pytest.mark.parametrize("scv", [0.0, 0.5, 1.0, 4.0, 100.0])
def test_mg1_mm1_and_batches(scv):
    worst = 0.0
    for rho in UTILIZATIONS:
        for m in (1.0, 0.3):
            lam = rho / m
            x, y = mp.mpf(lam), mp.mpf(m)
            m2 = y**2 * (1 + mp.mpf(scv))
            idle = 1 - x * y
            by_time = mg1(arrival_rate=lam, mean_service_time=m, service_scv=scv)
            worst = max(worst, error(by_time.mean_waiting_time, x * m2 / 2 / idle))
            z = mp.mpf(m)
            by_rate = mg1(arrival_rate=rho * m, service_rate=m, service_scv=scv)
            served = mp.mpf(rho * m)
            wait = served * (1 + mp.mpf(scv)) / (2 * z * (z - served))
            worst = max(worst, error(by_rate.mean_waiting_time, wait))
            batch = mp.mpf(rho * m / 7.3) * mp.mpf(7.3)
            q = mxg1(
                arrival_rate=rho * m / 7.3, batch_mean=7.3, batch_scv=0.2, service_rate=m, service_scv=scv
            )
            inner = batch * (1 + mp.mpf(scv)) / (2 * z * (z - batch))
            mates = (mp.mpf(7.3) * mp.mpf(1.2) - 1) / (2 * (z - batch))
            worst = max(worst, error(q.mean_waiting_time, inner + mates))
    q = mm1(arrival_rate=np.array(UTILIZATIONS), service_rate=1.0)
    for rho, wait in zip(UTILIZATIONS, q.mean_waiting_time, strict=True):
        worst = max(worst, error(wait, mp.mpf(rho) / (1 - mp.mpf(rho))))
    assert worst < 1e-14


def takacs(transform, servers):
    """Waiting probability and mean wait of GI/M/c with service rate 1, by bisection and Takacs' sum."""
    low, high = mp.mpf("1e-9"), mp.mpf(1)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < 1 - transform(servers * middle) else (low, middle)
    gap = mp.findroot(lambda e: e - (1 - transform(servers * e)), (low, high), tol=mp.mpf(10) ** -300)
    product, total = mp.mpf(1), mp.mpf(0)
    for j in range(1, servers + 1):
        a = transform(mp.mpf(j))
        product *= a / (1 - a)
        total += mp.binomial(servers, j) / (product * (1 - a)) * (servers * (1 - a) - j) / (servers * gap - j)
    waits = 1 / (1 + gap * total)
    return waits, waits / (servers * gap)


@pytest.mark.parametrize("servers", [1, 2, 5, 30])
@pytest.mark.parametrize("scv", [0, 0.25, 3.0])
def test_gim1_and_gimc(servers, scv):
    worst = 0.0
    for rho in (0.01, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6):
        mean = 1 / (rho * servers)
        if scv == 0:
            law, transform = Deterministic(mean=mean), lambda s, m=mean: mp.exp(-s * mp.mpf(m))
        else:
            law = Gamma(mean=mean, scv=scv)

            def transform(s, m=mean):
                return (1 + s * mp.mpf(m) * mp.mpf(scv)) ** (-1 / mp.mpf(scv))

        with mp.workdps(180):  # near a lone job per million the sum cancels a hundred digits
            waits, wait = takacs(transform, servers)
        q = gmc(arrival=law, service_rate=1.0, servers=servers)
        worst = max(worst, error(q.waiting_probability, waits), error(q.mean_waiting_time, wait))
        if servers == 1:
            q = gm1(arrival=law, service_rate=1.0)
            worst = max(worst, error(q.waiting_probability, waits), error(q.mean_waiting_time, wait))
    assert worst < 2e-12


def test_gimc_with_poisson_arrivals_and_ten_thousand_servers_is_mmc():
    for rho in (0.5, 0.9, 0.999, 1 - 1e-5):
        servers = 10_000
        # The mean is what is given exactly: rates differ by a rounding that 1 - rho magnifies.
        mean = 1 / (rho * servers)
        q, r = (
            gmc(arrival=Gamma(mean=mean, scv=1.0), service_rate=1.0, servers=servers),
            mmc(arrival_rate=1 / mean, service_rate=1.0, servers=servers),
        )
        if r.waiting_probability > 1e-280:
            assert q.waiting_probability == pytest.approx(r.waiting_probability, rel=1e-11)
            assert q.mean_waiting_time == pytest.approx(r.mean_waiting_time, rel=1e-10)


def test_mdc_with_one_server_has_the_moments_of_pollaczek_and_khinchine():
    rho = np.array(UTILIZATIONS)
    q, r = mdc(arrival_rate=rho, service_rate=1.0, servers=1), md1(arrival_rate=rho, service_rate=1.0)
    for name in ("mean_waiting_time", "waiting_time_variance"):
        np.testing.assert_allclose(getattr(q, name), getattr(r, name), rtol=2e-14)
    np.testing.assert_allclose(q.waiting_probability, rho, rtol=5e-14)


def test_mdc_against_its_roots():
    """Mean queue of M/D/c from the complex roots of z^c = exp(lam D (z - 1))."""
    for servers in (2, 4, 9):
        for rho in (0.3, 0.7, 0.95, 1 - 1e-6):
            load = mp.mpf(rho * servers)
            r = load / servers
            total = mp.mpf(0)
            for k in range(1, servers):
                turn = mp.expjpi(mp.mpf(2 * k) / servers)
                root = -mp.lambertw(-r * turn * mp.exp(-r)) / r
                total += 1 / (1 - root)
            waiting = (load**2 - servers * (servers - 1) + 2 * mp.re(total) * (servers - load)) / (
                2 * (servers - load)
            )
            q = mdc(arrival_rate=rho * servers, service_rate=1.0, servers=servers)
            assert error(q.mean_waiting_time, waiting / load) < 1e-12


@pytest.mark.parametrize("capacity", [1, 2, 3, 8, 30])
def test_md1k(capacity):
    for rho in (1e-3, 0.1, 0.9, 1.0, 1.2, 5.0):
        with mp.workdps(250):
            r = mp.mpf(rho)
            a = [mp.exp(-r)]
            for i in range(1, capacity + 2):
                a.append(a[-1] * r / i)
            pi = [mp.mpf(1)]
            for j in range(capacity - 1):
                inflow = pi[0] * a[j] + sum(pi[k] * a[j - k + 1] for k in range(1, j + 1))
                pi.append((pi[j] - inflow) / a[0])
            total = sum(pi)
            pi = [p / total for p in pi]
            lost = 1 - 1 / (pi[0] + r)
            waiting = sum((n - 1) * p for n, p in enumerate(pi) if n) / (pi[0] + r) + (capacity - 1) * lost
            q = md1k(arrival_rate=rho, service_rate=1.0, capacity=capacity)
            assert error(q.blocking_probability, lost) < 1e-13
            if capacity > 1:
                assert error(q.mean_waiting_time, waiting / (r * (1 - lost))) < 1e-13


@pytest.mark.parametrize(
    ("lam", "mu", "servers", "theta", "beta"),
    [
        (12, 1, 10, 0.2, 0.0),
        (12, 1, 10, 0.2, 0.3),
        (1e-5, 1, 1, 0.5, 0.5),
        (5, 1, 3, 1e4, 0.1),
        (500, 1, 500, 0.01, 0.0),
        (3, 1, 1, 2, 0.0),
        (50, 0.3, 20, 0.7, 0.2),
        (0.999999, 1, 1, 1e-3, 0.0),
    ],
)
def test_erlang_a(lam, mu, servers, theta, beta):
    """The birth-death chain, state by state."""
    rates = [mp.mpf(v) for v in (lam, mu, theta, beta)]
    arrive, serve, leave, balk = rates
    p, biggest = [mp.mpf(1)], mp.mpf(1)
    while p[-1] > biggest * mp.mpf("1e-30"):
        n = len(p)
        up = arrive if n - 1 < servers else arrive * (1 - balk)
        p.append(p[-1] * up / (min(n, servers) * serve + max(n - servers, 0) * leave))
        biggest = max(biggest, p[-1])
    total = sum(p)
    entering = sum(v * (arrive if n < servers else arrive * (1 - balk)) for n, v in enumerate(p)) / total
    queue = sum(max(n - servers, 0) * v for n, v in enumerate(p)) / total
    q = erlang_a(
        arrival_rate=lam, service_rate=mu, servers=servers, patience_rate=theta, balking_probability=beta
    )
    assert error(q.mean_waiting_time, queue / entering) < 1e-12
    assert error(q.abandonment_probability, leave * queue / entering) < 1e-12
    assert error(q.throughput, serve * sum(min(n, servers) * v for n, v in enumerate(p)) / total) < 1e-12
    assert abs(q.blocking_probability - float(1 - entering / arrive)) < 1e-14


@pytest.mark.parametrize("sources", [1, 5, 1000, 100_000])
@pytest.mark.parametrize("servers", [1, 4])
def test_finite_population(sources, servers):
    for source_rate in (1e-6, 1e-3, 0.05, 2.0):
        ratio = mp.mpf(source_rate)
        term, total, busy, queue = mp.mpf(1), mp.mpf(1), mp.mpf(0), mp.mpf(0)
        for n in range(1, min(sources, 20_000) + 1):
            term *= (sources - n + 1) * ratio / min(n, servers)
            total += term
            busy += min(n, servers) * term
            queue += max(n - servers, 0) * term
            if term < total * mp.mpf("1e-40"):
                break
        else:
            if sources > 20_000:
                continue
        q = mmc_finite(source_rate=source_rate, service_rate=1.0, servers=servers, sources=sources)
        assert error(q.throughput, busy / total) < 1e-11
        if queue > 0:
            assert error(q.mean_waiting_time, queue / busy) < 1e-11


def test_a_million_places():
    assert mm1k(arrival_rate=1.0, service_rate=1.0, capacity=10**6).blocking_probability == pytest.approx(
        1 / (10**6 + 1), rel=1e-15
    )
    q = md1k(arrival_rate=1.0, service_rate=1.0, capacity=10**6)
    # A heavily used M/D/1/K loses about one in 2 K; the chain of its phases is too large to solve otherwise.
    assert q.blocking_probability == pytest.approx(1 / (2 * 10**6), rel=1e-5)


def test_priorities_next_to_saturation():
    shares, means = [0.3, 0.37, 0.33], [0.7, 1.3, 0.11]
    for rho in UTILIZATIONS:
        lam = [rho * s / m for s, m in zip(shares, means, strict=True)]
        q = mg1_nonpreemptive(arrival_rate=lam, mean_service_time=means, service_scv=0.5)
        p = mg1_preemptive_resume(arrival_rate=lam, mean_service_time=means, service_scv=0.5)
        left, work, all_work = mp.mpf(1), mp.mpf(0), mp.mpf(0)
        for rate, m in zip(lam, means, strict=True):
            all_work += mp.mpf(rate) * mp.mpf(m) ** 2 * mp.mpf(1.5) / 2
        for k, (rate, m) in enumerate(zip(lam, means, strict=True)):
            before, x = left, mp.mpf(m)
            left -= mp.mpf(rate) * x
            work += mp.mpf(rate) * x**2 * mp.mpf(1.5) / 2
            assert error(q.mean_waiting_time[k], all_work / (before * left)) < 1e-14
            interrupted = x * (1 - before) / before
            assert error(p.mean_waiting_time[k], work / (before * left) + interrupted) < 1e-14
        rates = [rho * 3 * 0.7 * s for s in shares]
        q = mmc_nonpreemptive(arrival_rate=rates, service_rate=0.7, servers=3)
        exact = [mp.mpf(r) for r in rates]
        below, top = erlang_sums(sum(exact) / mp.mpf(0.7), 3)
        capacity = 3 * mp.mpf(0.7)
        idle = 1 - sum(exact) / capacity
        waits = top / idle / (below + top / idle)
        left = mp.mpf(1)
        for k, rate in enumerate(exact):
            before = left
            left -= rate / capacity
            assert error(q.mean_waiting_time[k], waits / capacity / (before * left)) < 1e-14


def test_preemptive_priorities_of_mmc_next_to_saturation():
    shares, servers = [0.3, 0.5, 0.2], 3
    for rho in UTILIZATIONS:
        rates = [rho * servers * s for s in shares]
        q = mmc_preemptive(arrival_rate=rates, service_rate=1.0, servers=servers)
        total, before = mp.mpf(0), mp.mpf(0)
        for k, rate in enumerate(rates):
            total += mp.mpf(rate)
            below, top = erlang_sums(total, servers)
            r = total / servers
            queue = top / (1 - r) / (below + top / (1 - r)) * r / (1 - r)
            assert error(q.mean_waiting_time[k], (queue - before) / mp.mpf(rate)) < 1e-14
            before = queue
