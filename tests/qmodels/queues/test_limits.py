"""Laws, and the limits in which one model becomes another."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.laws import Deterministic, Empirical, Erlang, Exponential, HyperExponential
from qmodels.laws.of_law import renewal
from qmodels.queues import (
    engset,
    erlang_a,
    erlang_b,
    geog1,
    gg1_kingman,
    gg1_klb,
    gg1_lower_bound,
    gg1_marchal,
    gg1_upper_bound,
    ggc_allen_cunneen,
    ggc_kimura,
    ggc_whitt,
    gm1,
    gmc,
    md1,
    md1k,
    mdc,
    mek1,
    mg1,
    mg1_fb,
    mg1_fcfs,
    mg1_nonpreemptive,
    mg1_preemptive_resume,
    mg1_ps,
    mg1_setup,
    mg1_srpt,
    mg1_vacations,
    mg1k,
    mgcc,
    mginf,
    mh21,
    mm1,
    mm1_dps,
    mm1_ps,
    mm1k,
    mmc,
    mmc_finite,
    mmc_nonpreemptive,
    mmc_preemptive,
    mmcc,
    mmck,
    mminf,
    mxg1,
    polling,
    polling_limited,
    weighted_round_robin,
)
from qmodels.queues.general.mg1k import arrival_tails

intensities = st.floats(1e-3, 0.999)
rates = st.floats(1e-4, 1e4)
scvs = st.floats(0, 10)


def same(q, r, rtol=1e-12):
    for name in ("mean_waiting_time", "throughput", "utilization", "mean_number_in_system"):
        assert_allclose(getattr(q, name), getattr(r, name), rtol=rtol)


@given(rho=intensities, mu=rates, unit=rates, servers=st.integers(1, 40), room=st.integers(0, 50), scv=scvs)
def test_the_unit_of_time_rescales_times_only(rho, mu, unit, servers, room, scv):
    def all_models(lam, mu):
        yield mmc(arrival_rate=lam, service_rate=mu, servers=servers)
        yield mmck(arrival_rate=1.3 * lam, service_rate=mu, servers=servers, capacity=servers + room)
        yield mg1(arrival_rate=lam / servers, service_rate=mu, service_scv=scv)
        yield gg1_klb(arrival_rate=lam / servers, service_rate=mu, arrival_scv=2, service_scv=scv)
        yield erlang_a(arrival_rate=lam, service_rate=mu, servers=servers, patience_rate=mu / 7)
        yield mdc(arrival_rate=lam, service_rate=mu, servers=servers)
        yield gmc(arrival=Erlang(mean=1 / lam, phases=3), service_rate=mu, servers=servers)
        yield mg1_nonpreemptive(
            arrival_rate=[lam / servers / 3] * 3, mean_service_time=1 / mu, service_scv=scv
        )

    lam = rho * servers * mu
    for q, r in zip(all_models(lam, mu), all_models(lam * unit, mu * unit), strict=True):
        # Rounding of the rates is magnified by 1 / (1 - rho), that of GI/M/c's root by its power.
        tolerance = 1e-12 / (1 - rho) * (servers if q.model == "GI/M/c" else 1)
        assert_allclose(r.mean_waiting_time * unit, q.mean_waiting_time, rtol=tolerance, atol=1e-300)
        assert_allclose(r.mean_number_in_system, q.mean_number_in_system, rtol=tolerance)
        assert_allclose(r.utilization, q.utilization, rtol=1e-12)


@given(rho=intensities, mu=rates, servers=st.integers(2, 60))
def test_one_fast_server_waits_longer_and_responds_sooner(rho, mu, servers):
    lam = rho * servers * mu
    q = mmc(arrival_rate=lam, service_rate=mu, servers=servers)
    fast = mm1(arrival_rate=lam, service_rate=servers * mu)
    assert q.mean_waiting_time <= fast.mean_waiting_time * (1 + 1e-9)
    assert fast.mean_response_time <= q.mean_response_time * (1 + 1e-9)
    more = mmc(arrival_rate=lam, service_rate=mu, servers=servers + 1)
    assert more.mean_waiting_time < q.mean_waiting_time or q.mean_waiting_time < 1e-300


@given(rho=st.floats(0.01, 3.0), servers=st.integers(1, 30), room=st.integers(0, 200))
@example(rho=1.65234375, servers=1, room=69)
def test_more_room_loses_less_and_waits_longer(rho, servers, room):
    q, r = (
        mmck(arrival_rate=rho * servers, service_rate=1.0, servers=servers, capacity=servers + room + k)
        for k in (0, 1)
    )
    # Overloaded, both are 1 - 1 / rho but for rounding.
    assert r.blocking_probability <= q.blocking_probability * (1 + 1e-14)
    assert r.mean_waiting_time >= q.mean_waiting_time
    assert_allclose(q.throughput, q.arrival_rate * (1 - q.blocking_probability), rtol=1e-12)
    assert q.utilization <= 1


@given(rho=intensities, mu=rates)
def test_special_cases_of_mg1(rho, mu):
    lam = rho * mu
    same(mg1(arrival_rate=lam, service_rate=mu, service_scv=1), mm1(arrival_rate=lam, service_rate=mu), 1e-12)
    same(mg1(arrival_rate=lam, service_rate=mu, service_scv=0), md1(arrival_rate=lam, service_rate=mu))
    same(mek1(arrival_rate=lam, service_rate=mu, phases=1), mm1(arrival_rate=lam, service_rate=mu))
    same(
        mek1(arrival_rate=lam, service_rate=mu, phases=5),
        mg1(arrival_rate=lam, service_rate=mu, service_scv=0.2),
    )
    equal = mh21(arrival_rate=lam, probability=0.3, service_rates=(mu, mu))
    same(equal, mm1(arrival_rate=lam, service_rate=mu), 1e-12 / (1 - rho))
    one = mxg1(arrival_rate=lam, batch_mean=1, batch_scv=0, service_rate=mu, service_scv=3)
    same(one, mg1(arrival_rate=lam, service_rate=mu, service_scv=3))
    lone = mg1_setup(arrival_rate=lam, service_rate=mu, service_scv=3)
    same(lone, mg1(arrival_rate=lam, service_rate=mu, service_scv=3))
    nap = mg1_vacations(
        arrival_rate=lam, service_rate=mu, service_scv=3, vacation=Deterministic(mean=1e-14 / mu)
    )
    same(nap, mg1(arrival_rate=lam, service_rate=mu, service_scv=3), 1e-9)


@given(rho=intensities, servers=st.integers(1, 50))
def test_special_cases_of_many_servers(rho, servers):
    lam = rho * servers
    q = mmc(arrival_rate=lam, service_rate=1.0, servers=servers)
    same(
        mmck(arrival_rate=lam, service_rate=1.0, servers=servers, capacity=servers + 60_000),
        q,
        1e-11 / (1 - rho),
    )
    same(gmc(arrival=Exponential(mean=1 / lam), service_rate=1.0, servers=servers), q, 1e-11 / (1 - rho))
    same(mmc_nonpreemptive(arrival_rate=[lam], service_rate=1.0, servers=servers), q, 1e-12 / (1 - rho))
    same(mmc_preemptive(arrival_rate=[lam], service_rate=1.0, servers=servers), q, 1e-12 / (1 - rho))
    same(
        mmcc(arrival_rate=lam, service_rate=1.0, servers=servers),
        mgcc(arrival_rate=lam, service_rate=1.0, servers=servers),
    )
    loss = mmcc(arrival_rate=lam, service_rate=1.0, servers=servers).blocking_probability
    assert_allclose(loss, erlang_b(servers=servers, offered_load=lam), rtol=1e-13)
    for f in (ggc_allen_cunneen, ggc_kimura, ggc_whitt):
        same(f(arrival_rate=lam, service_rate=1.0, servers=servers, arrival_scv=1, service_scv=1), q, 1e-10)
    assert_allclose(
        mdc(arrival_rate=lam, service_rate=1.0, servers=servers).mean_waiting_time <= q.mean_waiting_time,
        True,
    )


@given(rho=intensities, scv=scvs, ca=st.floats(0.0, 10))
def test_two_moment_formulas_are_exact_for_poisson_arrivals_and_within_bounds(rho, scv, ca):
    exact = mg1(arrival_rate=rho, service_rate=1.0, service_scv=scv)
    args = {"arrival_rate": rho, "service_rate": 1.0, "service_scv": scv}
    for f in (gg1_kingman, gg1_klb, gg1_marchal):
        same(f(arrival_scv=1, **args), exact)
    same(ggc_kimura(servers=1, arrival_scv=1, **args), exact, 1e-11)
    same(ggc_allen_cunneen(servers=1, arrival_scv=ca, **args), gg1_kingman(arrival_scv=ca, **args))
    low = gg1_lower_bound(arrival_scv=ca, **args).mean_waiting_time
    high = gg1_upper_bound(arrival_scv=ca, **args).mean_waiting_time
    assert low <= high * (1 + 1e-12)
    assert low <= exact.mean_waiting_time * (1 + 1e-12)
    assert exact.mean_waiting_time <= gg1_upper_bound(arrival_scv=1, **args).mean_waiting_time * (1 + 1e-12)


@given(
    loads=st.lists(st.floats(0.0, 0.3), min_size=1, max_size=6),
    times=st.lists(st.floats(0.01, 100), min_size=6, max_size=6),
    scv=scvs,
)
def test_conservation_law_of_priorities_and_merging_of_classes(loads, times, scv):
    m1 = np.array(times[: len(loads)])
    loads = np.array(loads) * min(1.0, 0.95 / max(sum(loads), 1e-9))
    lam = loads / m1
    m2 = m1**2 * (1 + scv)
    w0, rho = np.dot(lam, m2) / 2, loads.sum()
    q = mg1_nonpreemptive(arrival_rate=lam, mean_service_time=m1, service_scv=scv)
    assert_allclose(np.dot(loads, q.mean_waiting_time), rho * w0 / (1 - rho), rtol=1e-10, atol=1e-300)
    assert np.all(np.diff(q.mean_waiting_time) >= -1e-12 * q.mean_waiting_time[:-1])
    top = mg1_preemptive_resume(arrival_rate=lam, mean_service_time=m1, service_scv=scv)
    alone = mg1(arrival_rate=lam[0], mean_service_time=m1[0], service_scv=scv)
    assert_allclose(top.mean_response_time[0], alone.mean_response_time, rtol=1e-12)
    assert np.all(top.mean_response_time[0] <= q.mean_response_time[0] * (1 + 1e-12))
    # A class of rate zero has the wait of a rare job: between its neighbours, and finite.
    with_none = mg1_nonpreemptive(
        arrival_rate=np.append(lam, 0.0), mean_service_time=np.append(m1, 1.0), service_scv=scv
    )
    assert np.isfinite(with_none.mean_waiting_time[-1])
    assert_allclose(with_none.mean_waiting_time[:-1], q.mean_waiting_time, rtol=1e-12)


def test_overloaded_lower_classes_leave_the_higher_ones_alone():
    q = mg1_nonpreemptive(arrival_rate=[0.3, 0.3, 0.6, 0.2], mean_service_time=1, service_scv=1)
    assert q.stable.tolist() == [True, True, False, False]
    assert_allclose(q.throughput, [0.3, 0.3, 0.4, 0.0])
    # The server never idles: the residual service is that of a busy server.
    assert_allclose(q.mean_waiting_time[:2], [1 / 0.7, 1 / 0.7 / 0.4])
    p = mg1_preemptive_resume(arrival_rate=[0.3, 0.3, 0.6, 0.2], mean_service_time=1, service_scv=1)
    assert_allclose(p.mean_response_time[:2], [1 / 0.7, 1 / 0.7 / 0.4])
    r = mmc_nonpreemptive(arrival_rate=[0.6, 0.6, 1.2], service_rate=1.0, servers=2)
    assert_allclose(r.mean_waiting_time[:2], [0.5 / 0.7, 0.5 / 0.7 / 0.4])
    assert r.stable.tolist() == [True, True, False]


@given(
    lam=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6),
    seed=st.integers(0, 10**6),
    load=st.floats(0.01, 0.98),
)
def test_pseudo_conservation_law_of_polling(lam, seed, load):
    rng = np.random.default_rng(seed)
    n = len(lam)
    b, scv, pause, spread = rng.uniform([[0.1], [0], [0], [0]], [[2], [3], [1], [2]], (4, n))
    lam = np.array(lam) + 1e-6
    lam *= load / np.dot(lam, b)
    words = [str(w) for w in rng.choice(["exhaustive", "gated"], n)]
    rho = lam * b
    total, r = rho.sum(), pause.sum()
    r2 = r**2 + np.dot(pause**2, spread)
    q = polling(
        arrival_rate=lam,
        mean_service_time=b,
        service_scv=scv,
        mean_switch_time=pause,
        switch_scv=spread,
        discipline=words,
    )
    signs = np.array([1 if w == "gated" else -1 for w in words])
    expected = total * np.dot(lam, b**2 * (1 + scv)) / (2 * (1 - total)) + total * r2 / (2 * r)
    expected += r / (2 * (1 - total)) * (total**2 + np.dot(signs, rho**2))
    assert_allclose(np.dot(rho, q.mean_waiting_time), expected, rtol=1e-11)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_one_polled_queue_is_a_queue_with_vacations(rho):
    q = polling(arrival_rate=[rho], mean_service_time=1, service_scv=2, mean_switch_time=0.7, switch_scv=0)
    away = mg1_vacations(
        arrival_rate=rho, mean_service_time=1, service_scv=2, vacation=Deterministic(mean=0.7)
    )
    assert_allclose(q.mean_waiting_time[0], away.mean_waiting_time, rtol=1e-13)
    # One job per vacation is a queue whose services include a vacation.
    if rho * 1.7 < 1:
        limited = polling_limited(
            arrival_rate=[rho], mean_service_time=1, service_scv=2, mean_switch_time=0.7, switch_scv=0
        )
        both = mg1_vacations(
            arrival_rate=rho, mean_service_time=1.7, service_scv=2 / 1.7**2, vacation=Deterministic(mean=0.7)
        )
        assert_allclose(limited.mean_waiting_time[0], both.mean_waiting_time, rtol=1e-13)


def test_without_switch_times_polling_obeys_the_conservation_law():
    lam, b = np.array([0.1, 0.3, 0.2]), np.array([1.0, 0.5, 2.0])
    expected = np.dot(lam, b**2 * 2) / 2 / (1 - np.dot(lam, b)) * np.dot(lam, b)
    for model, more in (
        (polling, {"discipline": "exhaustive"}),
        (polling, {"discipline": "gated"}),
        (polling_limited, {}),
        (weighted_round_robin, {"weights": [1, 2, 1]}),
    ):
        q = model(arrival_rate=lam, mean_service_time=b, service_scv=1, **more)
        assert_allclose(np.dot(lam * b, q.mean_waiting_time), expected, rtol=1e-12)


@given(rho=intensities, mu=rates)
def test_sharing(rho, mu):
    lam = rho * mu
    fcfs = mm1(arrival_rate=lam, service_rate=mu)
    for q in (mg1_ps(arrival_rate=lam, service_rate=mu), mm1_ps(arrival_rate=lam, service_rate=mu)):
        same(q, fcfs, 1e-12)
        assert_allclose(
            q.number_in_system_probability([0, 1, 5]), fcfs.number_in_system_probability([0, 1, 5])
        )
    assert mm1_ps(arrival_rate=lam, service_rate=mu).response_time_variance >= fcfs.response_time_variance
    equal = mm1_dps(arrival_rate=[lam / 4, 3 * lam / 4], service_rate=mu, weights=2)
    assert_allclose(equal.mean_response_time, fcfs.mean_response_time, rtol=1e-11 / (1 - rho))


@given(rho=st.floats(0.0, 0.999))
def test_sizes(rho):
    fcfs = mm1(arrival_rate=rho, service_rate=1.0)
    # Without knowledge of sizes the memoryless law makes all orders alike; SRPT beats them all.
    assert_allclose(
        mg1_fb(arrival_rate=rho, service=Exponential(mean=1.0)).mean_response_time,
        fcfs.mean_response_time,
        rtol=1e-12,
    )
    assert mg1_srpt(
        arrival_rate=rho, service=Exponential(mean=1.0)
    ).mean_response_time <= fcfs.mean_response_time * (1 + 1e-12)
    fixed = md1(arrival_rate=rho, service_rate=1.0)
    same(mg1_srpt(arrival_rate=rho, service=Deterministic(mean=1.0)), fixed, 1e-12)
    heavy = HyperExponential.balanced(mean=1.0, scv=8.0)
    sharing = mg1_ps(arrival_rate=rho, mean_service_time=1.0).mean_response_time
    fb = mg1_fb(arrival_rate=rho, service=heavy).mean_response_time
    srpt = mg1_srpt(arrival_rate=rho, service=heavy).mean_response_time
    assert srpt <= fb * (1 + 1e-12) and fb <= sharing * (1 + 1e-12)


def test_a_queue_far_too_busy_is_full_and_looks_no_farther_than_its_room():
    q = md1k(arrival_rate=[0.9, 1e9], service_rate=1.0, capacity=8)
    alone = md1k(arrival_rate=0.9, service_rate=1.0, capacity=8)
    assert_allclose(q.blocking_probability, [alone.blocking_probability, 1 - 1e-9], rtol=1e-14)
    assert_allclose(q.mean_waiting_time, [alone.mean_waiting_time, 7.0], rtol=1e-8)  # a gap of 1e-9
    # A million arrivals during a service are told from none of them.
    assert arrival_tails(renewal("service", Deterministic(mean=1.0)), np.array(1e9), 8)[1].shape == (64,)


@given(rho=st.floats(0.01, 2.0), capacity=st.integers(1, 60))
def test_mg1k_with_exponential_service_is_mm1k(rho, capacity):
    q = mg1k(arrival_rate=rho, service=Exponential(mean=1.0), capacity=capacity)
    r = mm1k(arrival_rate=rho, service_rate=1.0, capacity=capacity)
    same(q, r, 1e-12)
    assert_allclose(q.blocking_probability, r.blocking_probability, rtol=1e-12)
    n = np.arange(capacity + 3)
    assert_allclose(
        q.number_in_system_probability(n), r.number_in_system_probability(n), rtol=1e-11, atol=1e-300
    )


def test_large_rooms_and_populations():
    same(
        md1k(arrival_rate=0.8, service_rate=1.0, capacity=200), md1(arrival_rate=0.8, service_rate=1.0), 1e-12
    )
    many = mmc_finite(source_rate=0.8e-6, service_rate=1.0, servers=1, sources=10**6)
    same(many, mm1(arrival_rate=0.8, service_rate=1.0), 1e-4)
    crowd = engset(source_rate=5e-6, service_rate=1.0, servers=10, sources=10**6)
    assert_allclose(crowd.blocking_probability, erlang_b(servers=10, offered_load=5.0), rtol=1e-4)
    patient = erlang_a(arrival_rate=0.8, service_rate=1.0, servers=1, patience_rate=1e-12)
    same(patient, mm1(arrival_rate=0.8, service_rate=1.0), 1e-9)
    hasty = erlang_a(arrival_rate=5.0, service_rate=1.0, servers=3, patience_rate=1e12)
    loss = erlang_b(servers=3, offered_load=5.0)
    assert_allclose(hasty.abandonment_probability, loss, rtol=1e-9)
    turned = erlang_a(
        arrival_rate=5.0, service_rate=1.0, servers=3, patience_rate=1.0, balking_probability=1.0
    )
    assert_allclose(turned.blocking_probability, loss, rtol=1e-12)
    assert turned.mean_waiting_time == 0


def test_infinitely_many_servers():
    same(mminf(arrival_rate=3.0, service_rate=0.5), mginf(arrival_rate=3.0, mean_service_time=2.0))
    many = mmc(arrival_rate=3.0, service_rate=0.5, servers=200)
    assert_allclose(
        mminf(arrival_rate=3.0, service_rate=0.5).number_in_system_probability(np.arange(30)),
        many.number_in_system_probability(np.arange(30)),
        rtol=1e-12,
    )


def test_a_geometric_service_in_ever_shorter_slots_is_exponential():
    for slots in (10.0, 100.0, 1e6):
        q = geog1(arrival_rate=0.7 / slots, mean_service_time=slots, service_scv=1 - 1 / slots)
        assert q.mean_waiting_time / slots == pytest.approx(0.7 / 0.3, rel=3 / slots)


@given(rho=st.floats(0.05, 0.95), phases=st.integers(1, 8))
def test_gim1_between_deterministic_and_poisson_arrivals(rho, phases):
    waits = [
        gm1(arrival=law, service_rate=1.0).mean_waiting_time
        for law in (
            Deterministic(mean=1 / rho),
            Erlang(mean=1 / rho, phases=phases + 1),
            Exponential(mean=1 / rho),
            HyperExponential.balanced(mean=1 / rho, scv=4.0),
        )
    ]
    assert waits == sorted(waits)


def test_mixtures_of_one_are_plain():
    for mixture, plain in (
        (Empirical(values=[2.0], weights=[1.0]), Deterministic(mean=2.0)),
        (HyperExponential(probabilities=[1.0], means=[2.0]), Exponential(mean=2.0)),
    ):
        q, r = (mg1_fcfs(arrival_rate=0.4, service=law) for law in (mixture, plain))
        same(q, r, 1e-14)
        assert_allclose(q.waiting_time_tail([1.0, 5.0]), r.waiting_time_tail([1.0, 5.0]), rtol=1e-9)


def test_several_servers_hardly_used_are_waited_for_by_a_power_of_the_load():
    # Rounding left no change of sign to look for the root in: waits of seconds at loads of 1e-10.
    rates = np.logspace(-12, -6, 61)
    arrivals = [HyperExponential(probabilities=(0.78, 0.22), means=(0.43 / r, 3.02 / r)) for r in rates]
    for servers in (1, 2, 3):
        waits = [gmc(arrival=law, service_rate=0.06, servers=servers).mean_waiting_time for law in arrivals]
        assert_allclose(np.array(waits) / rates**servers, waits[0] / rates[0] ** servers, rtol=1e-3)
