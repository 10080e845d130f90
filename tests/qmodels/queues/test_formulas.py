"""The formula cores are plain arithmetic: they take symbols and fractions as well as arrays."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp

from qmodels.queues import erlang_b, mm1k, mmck
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
