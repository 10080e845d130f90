"""Formulas take symbols and fractions as well as arrays; servers and rates for targets are their inverse."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from qmodels.queues import (
    erlang_b,
    erlang_b_servers,
    erlang_c,
    erlang_c_servers,
    largest_rate,
    md1k,
    mm1,
    mm1k,
    mmc,
    mmck,
    smallest_whole,
)
from qmodels.queues.disciplines.priority import priority_waiting_time
from qmodels.queues.general.gg1 import (
    daley_bound,
    kingman_waiting_time,
    klb_exponent,
    marchal_waiting_time,
    marshall_bound,
)
from qmodels.queues.general.mg1 import mg1_waiting_time, mg1_waiting_time_variance
from qmodels.queues.markovian.erlang import erlang_b_step, erlang_c_from_b
from qmodels.queues.markovian.mmc import mm1_waiting_time, mmc_waiting_time
from qmodels.queues.markovian.mmck import mmck_blocking, mmck_waiting_time

lam, mu, ca, cs = sp.symbols("lambda mu c_a c_s", positive=True)


def erlang(servers, load):
    """Loss and delay probability from the recurrence."""
    blocking = 1
    for n in range(1, servers + 1):
        blocking = erlang_b_step(n, load, blocking)
    return blocking, erlang_c_from_b(blocking, load / servers)


def test_limits_and_identities_in_symbols():
    wait = mg1_waiting_time(lam, 1 / mu, (1 + cs) / mu**2)
    assert sp.simplify(wait.subs(cs, 1) - mm1_waiting_time(lam / mu, mu - lam)) == 0
    assert sp.limit(wait, lam, 0) == 0 and sp.limit(wait * (mu - lam), lam, mu) == (1 + cs) / 2
    for formula in (kingman_waiting_time, marchal_waiting_time):
        assert sp.simplify(formula(lam, 1 / mu, 1, cs) - wait) == 0
    assert klb_exponent(lam / mu, sp.Integer(1), cs, smooth=True) == 0
    assert klb_exponent(lam / mu, sp.Integer(1), cs, smooth=False) == 0
    gap = sp.simplify(daley_bound(lam, 1 / mu, ca, cs) - kingman_waiting_time(lam, 1 / mu, ca, cs))
    assert sp.simplify(gap - ca / mu) == 0
    assert sp.limit(marshall_bound(lam, 1 / mu, cs) / wait, lam, mu) == (cs - 1) / (cs + 1)
    _, waits = erlang(2, lam / mu)
    two = mmc_waiting_time(1 / mu, 2, waits, 1 - lam / (2 * mu))
    assert sp.simplify(two - lam**2 / (mu * (4 * mu**2 - lam**2))) == 0
    assert sp.simplify(priority_waiting_time(lam / mu**2, 1, 1 - lam / mu) - lam / mu / (mu - lam)) == 0
    m3 = 6 / mu**3
    variance = mg1_waiting_time_variance(lam, 1 / mu, 2 / mu**2, m3)
    rho = lam / mu
    assert sp.simplify(variance - (2 - rho) * rho / (mu - lam) ** 2) == 0


def test_finite_room_in_symbols():
    rho = lam / mu
    places = 4  # M/M/1/5
    powers = [rho**j for j in range(places + 1)]
    loss, queue, last = rho / (1 + rho), sum(powers), powers[-1]
    blocking = mmck_blocking(1 - loss, loss, queue, last)
    textbook = (1 - rho) * rho**5 / (1 - rho**6)
    assert sp.simplify(blocking - textbook) == 0
    index = sum(j * p for j, p in enumerate(powers)) / queue
    wait = mmck_waiting_time(lam, 1 - loss + loss * (queue - last), loss, queue, index)
    q = mmck(arrival_rate=0.6, service_rate=0.9, servers=1, capacity=5)
    at = {lam: sp.Rational(3, 5), mu: sp.Rational(9, 10)}
    assert float(wait.subs(at)) == pytest.approx(float(q.mean_waiting_time), rel=1e-14)
    assert float(blocking.subs(at)) == pytest.approx(
        float(mm1k(arrival_rate=0.6, service_rate=0.9, capacity=5).blocking_probability), rel=1e-14
    )


def test_erlang_b_of_many_servers_goes_on_where_the_recurrence_ends():
    """The recurrence here, to 2^15 servers and a few beyond, and the integral of 1/B in mpmath."""
    servers, loads = np.array([32769, 33000, 40000]), np.array([0.9, 0.999, 1.0, 1.01, 3.0])
    for c in servers.tolist():
        for a in (loads * c).tolist():
            blocking = 1.0
            for n in range(1, c + 1):
                blocking = erlang_b_step(n, a, blocking)
            assert erlang_b(offered_load=a, servers=c) == pytest.approx(blocking, rel=1e-11)
    c, a = 10**12, mpmath.mpf(10**12 + 10**6)
    width = a / mpmath.sqrt(c)
    with mpmath.workdps(40):
        whole = mpmath.quad(
            lambda t: mpmath.exp(c * mpmath.log1p(t / a) - t), [k * width for k in range(0, 20, 2)]
        )
    assert erlang_b(offered_load=float(a), servers=c) == pytest.approx(float(1 / whole), rel=1e-11)


@given(load=st.floats(0.0, 300.0), target=st.floats(1e-9, 0.999))
def test_erlang_servers_are_the_smallest(load, target):
    c = int(erlang_b_servers(offered_load=load, blocking_probability=target))
    assert erlang_b(servers=c, offered_load=load) <= target
    assert c == 1 or erlang_b(servers=c - 1, offered_load=load) > target
    c = int(erlang_c_servers(offered_load=load, waiting_probability=target))
    assert erlang_c(servers=c, offered_load=load) <= target and c > load
    assert c == 1 or erlang_c(servers=c - 1, offered_load=load) > target


@given(lam=st.floats(0.1, 200.0), target=st.floats(1e-6, 10.0))
def test_smallest_servers_for_a_mean_wait(lam, target):
    c = smallest_whole(
        mmc, "servers", lambda q: q.mean_waiting_time <= target, arrival_rate=lam, service_rate=1.0
    )
    assert mmc(arrival_rate=lam, service_rate=1.0, servers=c).mean_waiting_time <= target
    assert c == 1 or mmc(arrival_rate=lam, service_rate=1.0, servers=c - 1).mean_waiting_time > target


def test_other_targets():
    def in_time(q):
        return q.response_time_quantile(0.99) <= 5

    c = smallest_whole(mmc, "servers", in_time, arrival_rate=8, service_rate=1)
    assert mmc(arrival_rate=8, service_rate=1, servers=c).response_time_tail(5) <= 0.01
    assert mmc(arrival_rate=8, service_rate=1, servers=c - 1).response_time_tail(5) > 0.01
    size = smallest_whole(
        mm1k, "capacity", lambda q: q.blocking_probability <= 1e-6, arrival_rate=0.8, service_rate=1
    )
    assert [
        mm1k(arrival_rate=0.8, service_rate=1, capacity=k).blocking_probability <= 1e-6
        for k in (size - 1, size)
    ] == [
        False,
        True,
    ]
    assert smallest_whole(mmc, "servers", lambda q: True, minimum=7, arrival_rate=8, service_rate=1) == 7


def test_largest_rate_is_not_rounded_up():
    rate = largest_rate(
        mm1, "arrival_rate", lambda q: q.mean_response_time <= 10, maximum=1.0, service_rate=1.0
    )
    assert mm1(arrival_rate=rate, service_rate=1.0).mean_response_time <= 10
    assert mm1(arrival_rate=np.nextafter(rate, 1), service_rate=1.0).mean_response_time > 10
    assert rate == pytest.approx(0.9, rel=1e-15)
    rare = largest_rate(
        md1k,
        "arrival_rate",
        lambda q: q.blocking_probability <= 1e-9,
        maximum=5.0,
        service_rate=1.0,
        capacity=20,
    )
    assert md1k(arrival_rate=rare, service_rate=1.0, capacity=20).blocking_probability <= 1e-9
    assert md1k(arrival_rate=np.nextafter(rare, 9), service_rate=1.0, capacity=20).blocking_probability > 1e-9
    tiny = largest_rate(
        mm1, "arrival_rate", lambda q: q.mean_waiting_time <= 1e-200, maximum=1.0, service_rate=1.0
    )
    assert tiny == pytest.approx(1e-200, rel=1e-12)
    assert largest_rate(mm1, "arrival_rate", lambda q: True, maximum=3.0, service_rate=1.0) == 3.0


def test_a_target_out_of_reach_is_found_out_in_a_moment():
    asked = []

    def model(servers: int, **rates: float):
        asked.append(servers)
        return mmc(servers=servers, **rates)

    with pytest.raises(ValueError, match="^maximum must meet the target"):
        smallest_whole(
            model,
            "servers",
            lambda q: q.mean_response_time < 0.5,
            maximum=2**40,
            arrival_rate=3,
            service_rate=1,
        )
    assert len(asked) < 50  # and none of them counts to its number of servers: that took minutes


def test_servers_of_loads_that_no_recurrence_reaches():
    counts = erlang_b_servers(offered_load=[4e4, 1e9], blocking_probability=0.01)
    for load, c in zip((4e4, 1e9), counts, strict=True):
        assert erlang_b(offered_load=load, servers=c) <= 0.01 < erlang_b(offered_load=load, servers=c - 1)
