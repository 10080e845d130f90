from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.llc import best_division, divided_cache, highest_miss_ratio, shared_cache, slice_shares
from qmodels.systems.traffic.popularity import Zipf


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    st.lists(st.tuples(st.floats(0.1, 1.0), st.floats(0.0, 1.5)), min_size=2, max_size=3), st.integers(2, 6)
)
def test_the_best_division_is_that_of_trying_all(tenants, ways):
    share = np.array([s for s, _ in tenants])
    share /= share.sum()
    laws = [Zipf(entries=40, exponent=a).probabilities() for _, a in tenants]
    best = best_division(shares=share, popularities=laws, lines=4 * ways, unit=4)
    tried = max(
        divided_cache(shares=share, popularities=laws, lines=4 * np.array(division)).hit_ratio
        for division in product(range(ways + 1), repeat=len(laws))
        if sum(division) == ways
    )
    assert_allclose(best.hit_ratio, tried, rtol=1e-9)
    assert best.lines.sum() == 4 * ways


def test_sharing_gives_equals_equal_parts():
    laws = [Zipf(entries=50, exponent=0.8).probabilities()] * 2
    shared = shared_cache(shares=[0.5, 0.5], popularities=laws, lines=30)
    divided = divided_cache(shares=[0.5, 0.5], popularities=laws, lines=[15, 15])
    assert_allclose(shared.lines, [15, 15])
    assert_allclose(shared.hit_ratios, divided.hit_ratios)


def test_skipping():
    assert_allclose(highest_miss_ratio(llc_time=[0, 50, 100, 200], memory_time=100), [1, 0.5, 0, 0])


def test_slices_share_all_requests():
    p = Zipf(entries=1000, exponent=1.0).probabilities()
    for hashing in ("modulo", "xor", "mixed"):
        shares = slice_shares(popularity=p, slices=8, hashing=hashing)
        assert_allclose(shares.sum(), 1.0)
        assert shares.shape == (8,)
        assert slice_shares(popularity=p, slices=1, hashing=hashing) == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: shared_cache(shares=[0.5, 0.4], popularities=[[1.0], [1.0]], lines=1),
            r"shares must be one row that sums to 1, got \[0.5, 0.4\]",
        ),
        (
            lambda: shared_cache(shares=[0.5, 0.5], popularities=[[1.0]], lines=1),
            "popularities must have one law for each of 2 tenants, got 1",
        ),
        (
            lambda: divided_cache(shares=[1.0], popularities=[[1.0]], lines=[1, 2]),
            r"lines must have one number for each of 1 tenants, got \[1, 2\]",
        ),
        (
            lambda: best_division(shares=[1.0], popularities=[[1.0]], lines=5, unit=2),
            "unit must divide the 5 lines, got 2",
        ),
        (
            lambda: slice_shares(popularity=[1.0], slices=3, hashing="xor"),
            "slices must be a power of two for XOR hashing, got 3",
        ),
        (lambda: highest_miss_ratio(llc_time=1, memory_time=0), "memory_time must be finite and > 0, got 0"),
    ],
)
def test_nonsense(call, message):
    with pytest.raises(ValueError, match=message):
        call()
