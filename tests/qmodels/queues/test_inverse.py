from __future__ import annotations

import numpy as np
import pytest
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
    smallest_whole,
)


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
