"""A part of a network as one station."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.networks import flow_equivalent, mva


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    inside=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=4),
    outside=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=3),
    servers=st.lists(st.integers(1, 3), min_size=4, max_size=4),
    people=st.integers(1, 12),
)
def test_aggregation_is_exact_in_a_product_form_network(inside, outside, servers, people):
    counts = servers[: len(inside)]
    rates = flow_equivalent(population=people, mean_service_time=inside, servers=counts)
    whole = mva(
        population=people,
        mean_service_time=[*outside, *inside],
        servers=[1] * len(outside) + counts,
        think_time=0.5,
    )
    last = len(outside)
    small = mva(
        population=people, mean_service_time=[*outside, 1.0], rate_multiplier={last: rates}, think_time=0.5
    )
    assert_allclose(small.system_throughput, whole.system_throughput, rtol=1e-11)
    assert_allclose(small.mean_number_in_system[:last], whole.mean_number_in_system[:last], rtol=1e-10)
    assert_allclose(small.mean_number_in_system[last], whole.mean_number_in_system[last:].sum(), rtol=1e-10)


def test_admission_limit():
    part = {"mean_service_time": [1.0, 3.0, 3.0], "visits": [1, 0.5, 0.5]}
    free = flow_equivalent(population=6, **part)
    held = flow_equivalent(population=6, admitted=2, **part)
    assert_allclose(held[:2], free[:2])
    assert_allclose(held[2:], free[1])
    assert_allclose(flow_equivalent(population=3, admitted=9, **part), free[:3])
    # One at a time: M/M/1 with the whole part as its service.
    assert_allclose(flow_equivalent(population=3, admitted=1, **part), np.full(3, 1 / 4.0))
    with pytest.raises(ValueError, match="admitted must be a whole number >= 1, got 0"):
        flow_equivalent(population=3, admitted=0, **part)
    with pytest.raises(ValueError, match="population must be a whole number >= 1, got 0"):
        flow_equivalent(population=0, **part)
