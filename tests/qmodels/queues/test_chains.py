"""Models that claim to be exact, against Markov chains of the same systems solved as linear equations."""

from itertools import product

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.laws import Exponential, HyperExponential
from qmodels.queues import (
    engset,
    engset_time_congestion,
    geod1,
    geog1,
    geoxg1,
    kaufman_roberts,
    mg1_nonpreemptive,
    mg1_preemptive_resume,
    mg1_setup,
    mg1_vacations,
    mg1k,
    mgcc,
    mm1_dps,
    mmc_balking,
    mmc_finite,
    mmc_nonpreemptive,
    mmc_preemptive,
    mmck,
    mxg1,
    polling,
    polling_limited,
    state_dependent,
    weighted_round_robin,
)


def test_mmck_and_its_number_in_system(chain):
    lam, mu, servers, capacity = 2.3, 0.9, 3, 9

    def moves(n):
        yield min(n + 1, capacity), lam if n < capacity else 0.0
        if n:
            yield n - 1, min(n, servers) * mu

    p = chain(moves, 0)
    q = mmck(arrival_rate=lam, service_rate=mu, servers=servers, capacity=capacity)
    law = np.array([p[n] for n in range(capacity + 1)])
    assert_allclose(q.number_in_system_probability(np.arange(capacity + 2)), np.append(law, 0), rtol=1e-12)
    assert q.blocking_probability == pytest.approx(law[-1], rel=1e-12)
    assert q.mean_number_in_system == pytest.approx(np.dot(law, np.arange(capacity + 1)), rel=1e-12)


def test_engset_separates_time_and_call_congestion(chain):
    nu, mu, servers, sources = 0.3, 0.7, 3, 6

    def moves(n):
        if n < servers:
            yield n + 1, (sources - n) * nu
        if n:
            yield n - 1, n * mu

    p = chain(moves, 0)
    asking = {n: (sources - n) * nu * v for n, v in p.items()}
    q = engset(source_rate=nu, service_rate=mu, servers=servers, sources=sources)
    assert q.blocking_probability == pytest.approx(asking[servers] / sum(asking.values()), rel=1e-12)
    assert q.arrival_rate == pytest.approx(sum(asking.values()), rel=1e-12)
    assert q.throughput == pytest.approx(sum(n * mu * v for n, v in p.items()), rel=1e-12)
    busy = engset_time_congestion(servers=servers, sources=sources, source_load=nu / mu)
    assert busy == pytest.approx(p[servers], rel=1e-12)
    assert busy > q.blocking_probability
    assert engset(source_rate=nu, service_rate=mu, servers=3, sources=3).blocking_probability == 0


def test_finite_population_and_state_dependent_rates(chain):
    nu, mu, servers, sources = 0.2, 0.8, 2, 7

    def moves(n):
        if n < sources:
            yield n + 1, (sources - n) * nu
        if n:
            yield n - 1, min(n, servers) * mu

    p = chain(moves, 0)
    law = np.array([p[n] for n in range(sources + 1)])
    q = mmc_finite(source_rate=nu, service_rate=mu, servers=servers, sources=sources)
    assert_allclose(q.number_in_system_probability(np.arange(sources + 1)), law, rtol=1e-12)
    r = state_dependent(
        arrival_rates=[(sources - n) * nu for n in range(sources)],
        service_rates=[min(n, servers) * mu for n in range(1, sources + 1)],
        servers=servers,
    )
    for name in (
        "throughput",
        "mean_waiting_time",
        "mean_service_time",
        "waiting_probability",
        "utilization",
    ):
        assert getattr(q, name) == pytest.approx(getattr(r, name), rel=1e-12)
    assert q.mean_number_in_system == pytest.approx(np.dot(law, np.arange(sources + 1)), rel=1e-12)
    asking = law * (sources - np.arange(sources + 1))
    assert q.waiting_probability == pytest.approx(asking[servers:].sum() / asking.sum(), rel=1e-12)


def test_rates_of_any_spread_do_not_overflow():
    up, down = np.full(2000, 1e100), np.full(2000, 1e-200)
    q = state_dependent(arrival_rates=np.append(up, up), service_rates=np.append(down, down * 1e300))
    assert np.isfinite(q.mean_number_in_system) and q.throughput > 0


def test_balking(chain):
    joining, lam, mu, servers = [1.0, 0.8, 0.6, 0.3], 1.7, 0.9, 2

    def moves(n):
        if n < len(joining):
            yield n + 1, lam * joining[n]
        if n:
            yield n - 1, min(n, servers) * mu

    p = chain(moves, 0)
    q = mmc_balking(arrival_rate=lam, service_rate=mu, servers=servers, joining_probabilities=joining)
    joined = sum(p[n] * b for n, b in enumerate(joining))
    assert q.blocking_probability == pytest.approx(1 - joined, rel=1e-12)
    assert q.mean_number_in_system == pytest.approx(sum(n * v for n, v in p.items()), rel=1e-12)
    waiting = sum(max(n - servers, 0) * v for n, v in p.items())
    assert q.mean_waiting_time == pytest.approx(waiting / (lam * joined), rel=1e-12)


def test_kaufman_roberts_by_enumeration_and_insensitive_special_cases():
    loads, widths, size = [1.5, 0.8, 0.4], [1, 2, 5], 9
    weights, blocked = 0.0, np.zeros(3)
    for state in product(*[range(size // w + 1) for w in widths]):
        used = np.dot(state, widths)
        if used <= size:
            weight = np.prod([a**n / float(mp.factorial(n)) for a, n in zip(loads, state, strict=True)])
            weights += weight
            blocked += weight * (used + np.array(widths) > size)
    got = kaufman_roberts(servers=size, offered_load=loads, units=widths)
    assert_allclose(got, blocked / weights, rtol=1e-13)
    alone = kaufman_roberts(servers=20, offered_load=[12.0], units=[1])
    loss = mgcc(arrival_rate=3.0, mean_service_time=4.0, servers=20).blocking_probability
    assert alone[0] == pytest.approx(loss, rel=1e-13)
    assert kaufman_roberts(servers=4, offered_load=[1.0, 1.0], units=[1, 5])[1] == 1
    huge = kaufman_roberts(servers=20_000, offered_load=[[5000.0, 1000.0], [9000.0, 2000.0]], units=[2, 10])
    assert huge.shape == (2, 2) and np.all((huge > 0) & (huge < 1)) and np.all(huge[:, 1] > huge[:, 0])


def test_mg1k_with_two_phases_of_service(chain):
    """Hyperexponential service: the chain remembers the branch of the job in service."""
    lam, branches, capacity = 1.1, [(0.4, 0.5), (0.6, 1.5)], 6  # (probability, mean)

    def moves(state):
        n, branch = state
        if n < capacity:
            for b, (p, _) in enumerate(branches):
                if n == 0:
                    yield (1, b), lam * p
                elif b == branch:
                    yield (n + 1, branch), lam
        if n:
            rate = 1 / branches[branch][1]
            if n == 1:
                yield (0, 0), rate
            else:
                for b, (p, _) in enumerate(branches):
                    yield (n - 1, b), rate * p

    p = chain(moves, (0, 0))
    full = sum(v for (n, _), v in p.items() if n == capacity)
    waiting = sum(max(n - 1, 0) * v for (n, _), v in p.items())
    service = HyperExponential(probabilities=[0.4, 0.6], means=[0.5, 1.5])
    q = mg1k(arrival_rate=lam, service=service, capacity=capacity)
    assert q.blocking_probability == pytest.approx(full, rel=1e-12)
    assert q.mean_number_in_queue == pytest.approx(waiting, rel=1e-12)
    law_of_n = [sum(v for (n, _), v in p.items() if n == k) for k in range(capacity + 1)]
    assert_allclose(q.number_in_system_probability(np.arange(capacity + 1)), law_of_n, rtol=1e-12)


def two_classes(lam, mu, servers, preemptive, cut):
    """Transitions of two priority classes at exponential servers; states: served 1, 2, waiting 1, 2."""

    def moves(state):
        s1, s2, w1, w2 = state
        free = servers - s1 - s2
        for k in (0, 1):
            if (w1, w2)[k] >= cut:
                continue
            if free:
                yield (s1 + (k == 0), s2 + (k == 1), w1, w2), lam[k]
            elif k == 0 and preemptive and s2:
                yield (s1 + 1, s2 - 1, w1, w2 + 1), lam[0]
            else:
                yield (s1, s2, w1 + (k == 0), w2 + (k == 1)), lam[k]
        for k, busy in enumerate((s1, s2)):
            if busy:
                after = [s1 - (k == 0), s2 - (k == 1), w1, w2]
                if w1:
                    after[0] += 1
                    after[2] -= 1
                elif w2:
                    after[1] += 1
                    after[3] -= 1
                yield tuple(after), busy * mu[k]

    return moves


@pytest.mark.parametrize("preemptive", [False, True])
def test_priorities_of_mm1_with_two_rates(chain, preemptive):
    lam, mu = (0.2, 0.25), (1.0, 0.7)
    p = chain(two_classes(lam, mu, 1, preemptive, 70), (0, 0, 0, 0))
    model = mg1_preemptive_resume if preemptive else mg1_nonpreemptive
    q = model(arrival_rate=lam, mean_service_time=[1 / m for m in mu], service_scv=1)
    for k in (0, 1):
        inside = sum((s[k] + s[2 + k]) * v for s, v in p.items())
        assert q.mean_number_in_system[k] == pytest.approx(inside, rel=1e-9)


@pytest.mark.parametrize("preemptive", [False, True])
def test_priorities_of_mmc(chain, preemptive):
    lam, servers = (0.5, 0.6), 2
    p = chain(two_classes(lam, (1.0, 1.0), servers, preemptive, 40), (0, 0, 0, 0))
    q = (mmc_preemptive if preemptive else mmc_nonpreemptive)(
        arrival_rate=lam, service_rate=1.0, servers=servers
    )
    for k in (0, 1):
        inside = sum((s[k] + s[2 + k]) * v for s, v in p.items())
        assert q.mean_number_in_system[k] == pytest.approx(inside, rel=1e-8)


def busy_period(laws, rates, s):
    total = sum(rates)
    g = mp.mpf(0)
    for _ in range(600):
        g = sum(r / total * b(s + total - total * g) for r, b in zip(rates, laws, strict=True))
    return g


def test_second_moments_of_nonpreemptive_priorities_from_their_transform():
    """Transform of the wait of class k (Conway, Maxwell and Miller), expanded at 0."""
    q = mg1_nonpreemptive(
        arrival_rate=[0.2, 0.3, 0.1],
        mean_service_time=[1, 0.8, 1.5],
        service_scv=[1, 0, 0.5],
        service_third_moment=[6, 0.8**3, 1.5**3 * 1.5 * 2],
    )
    with mp.workdps(60):
        rates = [mp.mpf("0.2"), mp.mpf("0.3"), mp.mpf("0.1")]
        laws = [
            lambda s: 1 / (1 + s),
            lambda s: mp.exp(-s * mp.mpf("0.8")),
            lambda s: (1 + s * mp.mpf("0.75")) ** -2,
        ]
        load = mp.mpf("0.2") + mp.mpf("0.24") + mp.mpf("0.15")
        for k in range(3):

            def transform(s, k=k):
                higher = sum(rates[:k])
                z = s + (higher * (1 - busy_period(laws[:k], rates[:k], s)) if k else 0)
                below = sum(r * (1 - b(z)) for r, b in zip(rates[k + 1 :], laws[k + 1 :], strict=True))
                return ((1 - load) * z + below) / (s - rates[k] * (1 - laws[k](z)))

            step = mp.mpf("1e-8")
            samples = mp.matrix([transform(step * j) - 1 for j in range(1, 6)])
            powers = mp.matrix([[(step * j) ** i for i in range(1, 6)] for j in range(1, 6)])
            first, second = mp.lu_solve(powers, samples)[:2]
            assert float(-first) == pytest.approx(q.mean_waiting_time[k], rel=1e-12)
            assert float(2 * second - first**2) == pytest.approx(q.waiting_time_variance[k], rel=1e-12)


def test_variance_of_preemptive_priorities_from_busy_periods():
    """With one rate, a job of the lower class responds after n + 1 busy periods of the higher one."""
    lam1, lam2, mu = 0.3, 0.4, 1.0
    q = mg1_preemptive_resume(
        arrival_rate=[lam1, lam2], mean_service_time=1 / mu, service_scv=1, service_third_moment=6 / mu**3
    )
    rho = (lam1 + lam2) / mu
    period, variance = 1 / (mu - lam1), (mu + lam1) / (mu - lam1) ** 3
    jobs, spread = 1 / (1 - rho), rho / (1 - rho) ** 2
    assert q.mean_response_time[1] == pytest.approx(jobs * period, rel=1e-13)
    assert q.response_time_variance[1] == pytest.approx(jobs * variance + spread * period**2, rel=1e-13)
    assert q.response_time_variance[0] == pytest.approx(1 / (mu - lam1) ** 2, rel=1e-13)


@pytest.mark.parametrize("discipline", ["exhaustive", "gated", "limited"])
def test_polling_of_two_queues(chain, discipline):
    lam, mu, switch = (0.1, 0.3), (1.0, 1.5), (0.5, 0.2)
    if discipline == "limited":
        lam, mu, switch = (0.2, 0.2), (1.0, 1.0), (0.1, 0.1)
    cut = 17

    def moves(state):
        place, n1, n2, gate = state
        n = [n1, n2]
        for k in (0, 1):
            if n[k] < cut:
                m = list(n)
                m[k] += 1
                yield (place, *m, gate), lam[k]
        at = place // 2
        if place % 2:
            after = 1 - at
            if n[after]:
                yield (2 * after, n1, n2, n[after] if discipline == "gated" else 0), 1 / switch[at]
            else:
                yield (2 * after + 1, n1, n2, 0), 1 / switch[at]
            return
        m = list(n)
        m[at] -= 1
        stays = gate > 1 if discipline == "gated" else discipline == "exhaustive" and m[at] > 0
        yield (place if stays else place + 1, *m, max(gate - 1, 0) if stays else 0), mu[at]

    p = chain(moves, (1, 0, 0, 0))
    waits = [sum((s[1 + k] - (s[0] == 2 * k)) * v for s, v in p.items()) / lam[k] for k in (0, 1)]
    times = {"mean_service_time": [1 / m for m in mu], "mean_switch_time": switch, "switch_scv": 1}
    model = polling_limited if discipline == "limited" else polling
    words = {} if discipline == "limited" else {"discipline": discipline}
    q = model(arrival_rate=lam, service_scv=1, **times, **words)
    assert_allclose(q.mean_waiting_time, waits, rtol=1e-6)


def test_weighted_round_robin_is_within_its_stated_error(chain):
    """Two queues without switch times; the load-weighted sum is exact, the shares are approximate."""

    def waits(lam, weights, cut):
        def moves(state):
            at, left, *n = state
            for k in (0, 1):
                if n[k] < cut:
                    m = list(n)
                    m[k] += 1
                    yield ((k, weights[k], *m) if at < 0 else (at, left, *m)), lam[k]
            if at >= 0:
                m = list(n)
                m[at] -= 1
                if left > 1 and m[at]:
                    yield (at, left - 1, *m), 1.0
                elif m[1 - at]:
                    yield (1 - at, weights[1 - at], *m), 1.0
                elif m[at]:
                    yield (at, weights[at], *m), 1.0
                else:
                    yield (-1, 0, *m), 1.0

        p = chain(moves, (-1, 0, 0, 0))
        return np.array([sum((s[2 + k] - (s[0] == k)) * v for s, v in p.items()) / lam[k] for k in (0, 1)])

    for lam, weights in [
        ((0.3, 0.3), (1, 1)),
        ((0.3, 0.3), (1, 3)),
        ((0.15, 0.45), (1, 4)),
        ((0.45, 0.15), (2, 1)),
    ]:
        exact = waits(lam, weights, 30)
        q = weighted_round_robin(arrival_rate=lam, mean_service_time=1, service_scv=1, weights=weights)
        assert np.dot(q.mean_waiting_time, lam) == pytest.approx(np.dot(exact, lam), rel=1e-5)
        assert_allclose(q.mean_waiting_time, exact, rtol=1e-5 if weights == (1, 1) else 0.15)


def test_discriminatory_sharing(chain):
    lam, mu, weight, cut = (0.2, 0.3), (1.0, 0.8), (3.0, 1.0), 60

    def moves(state):
        shares = sum(g * n for g, n in zip(weight, state, strict=True))
        for k in (0, 1):
            m = list(state)
            if m[k] < cut:
                m[k] += 1
                yield tuple(m), lam[k]
            if state[k]:
                m = list(state)
                m[k] -= 1
                yield tuple(m), mu[k] * weight[k] * state[k] / shares

    p = chain(moves, (0, 0))
    q = mm1_dps(arrival_rate=lam, service_rate=mu, weights=weight)
    for k in (0, 1):
        assert q.mean_number_in_system[k] == pytest.approx(sum(s[k] * v for s, v in p.items()), rel=1e-9)


@pytest.mark.parametrize("kind", ["multiple", "single", "setup", "threshold"])
def test_vacations_and_setups(chain, kind):
    lam, mu, away, cut = 0.5, 1.0, 0.4, 120  # `away` is the rate at which a vacation or set-up ends

    def moves(state):
        n, place = state
        if n < cut:
            begins = kind == "single" and place == "idle"
            begins |= kind == "threshold" and place == "off" and n + 1 == 3
            wakes = kind == "setup" and place == "off"
            yield (n + 1, "on" if begins else "setup" if wakes else place), lam
        if place == "on" and n:
            rest = {"multiple": "away", "single": "away", "setup": "off", "threshold": "off"}[kind]
            yield (n - 1, "on" if n > 1 else rest), mu
        if place == "away" and (n or kind == "single"):
            yield (n, "on" if n else "idle"), away
        if place == "setup":
            yield (n, "on"), away

    start = (0, "off" if kind in ("setup", "threshold") else "away")
    p = chain(moves, start)
    inside = sum(n * v for (n, _), v in p.items())
    pause = Exponential(mean=1 / away)
    common = {"arrival_rate": lam, "service_rate": mu, "service_scv": 1}
    if kind in ("multiple", "single"):
        q = mg1_vacations(vacation=pause, multiple=kind == "multiple", **common)
    elif kind == "setup":
        q = mg1_setup(setup=pause, **common)
    else:
        q = mg1_setup(threshold=3, **common)
    assert q.mean_number_in_system == pytest.approx(inside, rel=1e-9)


def test_batches(chain):
    lam, mu, sizes, cut = 0.15, 1.0, {1: 0.5, 4: 0.3, 6: 0.2}, 300

    def moves(n):
        for size, p in sizes.items():
            if n + size <= cut:
                yield n + size, lam * p
        if n:
            yield n - 1, mu

    p = chain(moves, 0)
    g1, g2 = (sum(s**k * v for s, v in sizes.items()) for k in (1, 2))
    q = mxg1(arrival_rate=lam, batch_mean=g1, batch_second_moment=g2, service_rate=mu, service_scv=1)
    assert q.mean_number_in_system == pytest.approx(sum(n * v for n, v in p.items()), rel=1e-9)
    assert q.arrival_rate == pytest.approx(lam * g1, rel=1e-15)


def clocked_work(arrivals, service, cut):
    """Stationary law of the work found at a slot boundary: u becomes max(u + new - 1, 0)."""
    new = np.zeros(cut)
    power = np.eye(1, cut)[0]
    for probability in arrivals:
        new += probability * power
        power = np.convolve(power, service)[:cut]
    matrix = np.zeros((cut, cut))
    for u in range(cut):
        for x in np.flatnonzero(new):
            if u + x - 1 < cut:
                matrix[u, max(u + x - 1, 0)] += new[x]
    matrix += np.diag(1 - matrix.sum(axis=1))
    system = np.vstack([(matrix - np.eye(cut)).T[1:], np.ones(cut)])
    return np.linalg.solve(system, np.eye(cut)[-1])


def test_clocked_queues():
    cut = 400
    service = np.zeros(7)
    service[[2, 3, 6]] = 0.5, 0.3, 0.2
    m1, m2 = np.dot(service, np.arange(7)), np.dot(service, np.arange(7) ** 2)
    work = clocked_work([0.8, 0.2], service, cut)
    q = geog1(arrival_rate=0.2, mean_service_time=m1, service_scv=m2 / m1**2 - 1)
    assert q.mean_waiting_time == pytest.approx(np.dot(work, np.arange(cut)), rel=1e-10)

    arrivals = [0.85, 0.08, 0.04, 0.03]
    lam, lam2 = (np.dot(arrivals, np.arange(4) ** k) for k in (1, 2))
    work = clocked_work(arrivals, service, cut)
    pairs = lam2 - lam
    q = geoxg1(
        arrival_rate=lam, arrival_variance=lam2 - lam**2, mean_service_time=m1, service_scv=m2 / m1**2 - 1
    )
    ahead = np.dot(work, np.arange(cut)) + pairs / (2 * lam) * m1
    assert q.mean_waiting_time == pytest.approx(ahead, rel=1e-10)

    fixed = np.eye(1, 5, 4)[0]
    work = clocked_work([0.8, 0.2], fixed, cut)
    q = geod1(arrival_rate=0.2, service_slots=4)
    tail = 1 - np.cumsum(work)
    assert_allclose(q.waiting_time_tail(np.arange(60)), tail[:60], rtol=0, atol=1e-13)
    for p in (0.1, 0.5, 0.9, 0.999):
        slot = int(q.waiting_time_quantile(p))
        assert tail[slot] <= 1 - p + 1e-14 and (slot == 0 or tail[slot - 1] > 1 - p)
        assert q.response_time_quantile(p) == slot + 4
