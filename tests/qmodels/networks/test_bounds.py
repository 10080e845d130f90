"""Bounds hold the exact solution, and published tables."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.networks import (
    asymptotic_bounds,
    balanced_job_bounds,
    geometric_bounds,
    mva,
    proportional_bounds,
    throughput_curve,
)

ALL = (asymptotic_bounds, balanced_job_bounds, proportional_bounds, geometric_bounds)


@given(
    demands=st.lists(st.sampled_from([0.05, 0.3, 0.7, 1.0]) | st.floats(0.01, 3.0), min_size=1, max_size=6),
    people=st.integers(1, 80),
    think=st.sampled_from([0.0, 0.5, 30.0]),
)
def test_exact_mva_is_within(demands, people, think):
    r = mva(population=people, mean_service_time=demands, think_time=think)
    for bounds in ALL:
        b = bounds(population=people, mean_service_time=demands, think_time=think)
        assert b.throughput_lower <= r.system_throughput * (1 + 1e-12)
        assert b.throughput_upper >= r.system_throughput * (1 - 1e-12)
        assert b.response_time_lower <= r.system_response_time * (1 + 1e-12) + 1e-12
        assert b.response_time_upper >= r.system_response_time * (1 - 1e-12) - 1e-12
        if b.mean_number_lower is not None:
            assert np.all(b.mean_number_lower <= r.mean_number_in_system + 1e-10)
            assert np.all(b.mean_number_upper >= r.mean_number_in_system - 1e-10)


@given(
    demands=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=4),
    servers=st.lists(st.sampled_from([1, 2, 5]), min_size=4, max_size=4),
    people=st.integers(1, 30),
)
def test_asymptotic_bounds_of_several_servers(demands, servers, people):
    network = {
        "population": people,
        "mean_service_time": demands,
        "servers": servers[: len(demands)],
        "think_time": 1.0,
    }
    b, r = asymptotic_bounds(**network), mva(**network)
    assert b.throughput_lower <= r.system_throughput * (1 + 1e-12)
    assert b.throughput_upper >= r.system_throughput * (1 - 1e-12)


def test_bounds_meet_where_they_must():
    people = np.arange(1, 40)
    balanced = {"population": people, "mean_service_time": [0.5, 0.5, 0.5]}
    exact = throughput_curve(population=39, mean_service_time=[0.5] * 3)
    for bounds in (balanced_job_bounds, proportional_bounds, geometric_bounds):
        b = bounds(**balanced)
        assert_allclose(b.throughput_lower, exact, rtol=1e-12)
        assert_allclose(b.throughput_upper, exact, rtol=1e-12)
    for bounds in ALL:
        one = bounds(population=1, mean_service_time=[1.0, 2.0], think_time=4.0)
        assert_allclose(one.throughput_lower, 1 / 7, rtol=1e-12)
        many = bounds(population=10**7, mean_service_time=[1.0, 2.0])
        assert_allclose(many.throughput_upper, 0.5, rtol=1e-6)


def test_published_table_of_proportional_bounds():
    # Hsieh and Lam 1987, table IV, as quoted in the tests of GNU Octave queueing 1.2.7 (qncspb).
    people = [2, 5, 10, 20, 80]
    b = proportional_bounds(population=people, mean_service_time=[0.1, 0.1, 0.09, 0.08])
    assert_allclose(b.throughput_lower, [4.3174, 6.6600, 8.0219, 8.8672, 9.6736], atol=1e-4)
    assert_allclose(b.throughput_upper, [4.3174, 6.7297, 8.2700, 9.3387, 10.000], atol=1e-4)


def test_delay_stations_and_unvisited_stations_are_not_queues():
    plain = {"mean_service_time": [1.0, 2.0], "think_time": 5.0}
    same = {"mean_service_time": [1.0, 2.0, 3.0, 0.0], "servers": [1, 1, np.inf, 1], "think_time": 2.0}
    for bounds in ALL:
        a, b = bounds(population=[3, 9], **plain), bounds(population=[3, 9], **same)
        assert_allclose(a.throughput_lower, b.throughput_lower, rtol=1e-14)
        assert_allclose(a.throughput_upper, b.throughput_upper, rtol=1e-14)


def test_printing_and_table():
    b = asymptotic_bounds(population=[1, 2], mean_service_time=[1.0])
    assert repr(b).splitlines()[0] == "asymptotic bounds (bound)"
    frame = b.to_pandas()
    assert list(frame["population"]) == [1, 2] and len(frame.columns) == 5
