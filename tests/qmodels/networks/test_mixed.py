"""Mixed networks against balance equations and their open and closed limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.networks import bcmp, mixed, mva


@pytest.mark.parametrize("servers", [[1, 1], [1, 3], [2, 3], [6, np.inf]])
def test_against_balance_equations(chain, servers):
    # The open class is cut off at 22 jobs, beyond which the probability is below 1e-11.
    times = [[1.0, 1.0], [2.0, 3.0]]
    line = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    number, flow = chain(
        population=[0, 3],
        times=times,
        routing=[line, line],
        think_time=[0.0, 2.0],
        rate=lambda i, n: min(n, servers[i]),
        arrivals=[0.1, 0.0],
        room=22,
    )
    r = mixed(
        arrival_rate=[0.1, 0],
        population=[0, 3],
        mean_service_time=times,
        think_time=[0, 2.0],
        servers=servers,
    )
    assert_allclose(r.mean_number_in_system, number, rtol=1e-9)
    assert_allclose(r.throughput, flow, rtol=1e-9)
    assert r.kind == "exact" and r.stable.all()


@given(
    load=st.floats(0.0, 0.9),
    servers=st.lists(st.integers(1, 5), min_size=2, max_size=2),
    people=st.integers(1, 8),
    unit=st.floats(1e-6, 1e6),
)
def test_laws(load, servers, people, unit):
    times = np.array([[1.0, 0.5], [0.3, 2.0]])
    rate = load * min(servers[0] / 1.0, servers[1] / 0.3)
    network = {"mean_service_time": times, "servers": servers}
    r = mixed(arrival_rate=[rate, 0], population=[0, people], think_time=[0, 1.5], **network)
    assert_allclose(r.mean_number_in_network[1] + r.system_throughput[1] * 1.5, people, rtol=1e-10)
    assert_allclose(r.mean_number_in_network[0], rate * r.system_response_time[0], rtol=1e-10, atol=1e-15)
    assert np.all(r.station_utilization <= 1 + 1e-12)
    # The open class alone is faster, the closed class alone too.
    alone = bcmp(arrival_rate=[rate], mean_service_time=times[:, :1], servers=servers)
    assert np.all(r.mean_response_time[:, 0] >= alone.mean_response_time[:, 0] * (1 - 1e-10))
    closed = mva(population=people, mean_service_time=times[:, 1], servers=servers, think_time=1.5)
    assert r.system_throughput[1] <= closed.system_throughput * (1 + 1e-10)
    if load == 0:
        assert_allclose(r.system_throughput[1], closed.system_throughput, rtol=1e-12)
    s = mixed(
        arrival_rate=[rate / unit, 0],
        population=[0, people],
        mean_service_time=times * unit,
        servers=servers,
        think_time=[0, 1.5 * unit],
    )
    assert_allclose(s.mean_number_in_system, r.mean_number_in_system, rtol=1e-7, atol=1e-12)


def test_closed_class_that_thinks_long_leaves_the_open_network():
    network = {"mean_service_time": [[1.0, 0.5], [0.3, 2.0]], "servers": [3, 1]}
    r = mixed(arrival_rate=[1.5, 0], population=[0, 1], think_time=[0, 1e9], **network)
    alone = bcmp(arrival_rate=[1.5], mean_service_time=[1.0, 0.3], servers=[3, 1])
    assert_allclose(r.mean_response_time[:, 0], alone.mean_response_time[:, 0], rtol=1e-8)
    # A single closed job meets the open network as an arrival from outside would.
    assert_allclose(r.mean_response_time[0, 1], 0.5 * alone.mean_response_time[0, 0], rtol=1e-8)


def test_many_servers_and_jobs_stay_finite():
    r = mixed(
        arrival_rate={"open": 1990.0},
        population={"closed": 500},
        mean_service_time=[1.0],
        servers=2000,
        think_time=3.0,
    )
    assert r.classes == ("open", "closed")
    assert np.isfinite(r.mean_number_in_system).all() and r.stable.all()
    assert_allclose(r.mean_number_in_network[1] + 3 * r.system_throughput[1], 500, rtol=1e-9)
    # Nearly full with the open class: the closed class gets what it leaves, up to a rounding.
    assert 0 < r.throughput[0, 1] < 10 * (1 + 1e-14)


def test_overload_by_the_open_classes():
    r = mixed(
        arrival_rate=[1.5, 0, 0],
        population=[0, 4, 3],
        visits=[[1, 0, 1], [1, 1, 0]],
        mean_service_time=[[1.0, 1.0, 1.0], [0.2, 0.3, 0.1]],
    )
    assert r.stable.tolist() == [[False, True, False], [True, True, True]]
    assert_allclose(r.throughput[0], [1.0, 0, 0])
    assert_allclose(r.station_utilization[0], 1.0)
    # Class 2 rests at the overloaded station, class 1 never goes there.
    assert_allclose(r.mean_number_in_system[:, 2], [3, 0])
    assert r.system_throughput[2] == 0 and np.isinf(r.mean_response_time[0, 2])
    assert_allclose(r.mean_number_in_network[1], 4)
    assert np.isfinite(r.mean_response_time[1]).all()
    everywhere = mixed(arrival_rate=[1.5, 0], population=[0, 4], mean_service_time=[1.0, 0.9])
    assert_allclose(everywhere.mean_number_in_system[:, 1], [2, 2])
    assert np.isinf(everywhere.mean_response_time).all() and not everywhere.stable.any()
