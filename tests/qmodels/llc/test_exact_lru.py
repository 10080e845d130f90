from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.qmodels.llc.exact_lru import exact_lru_hit_ratios


def by_stack_orders(p: np.ndarray, capacity: int) -> np.ndarray:
    """Stationary law of the move-to-front list: draws without replacement (W. F. King, 1971)."""
    hits = np.zeros(len(p))
    for order in permutations(range(len(p))):
        weight, rest = 1.0, 1.0
        for item in order:
            weight *= p[item] / rest
            rest = max(rest - p[item], 1e-300)
        for item in order[:capacity]:
            hits[item] += weight
    return hits


@settings(derandomize=True, deadline=None, max_examples=10)
@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6), st.data())
def test_against_all_orders_of_the_stack(weights, data):
    p = np.array(weights) / np.sum(weights)
    capacity = data.draw(st.integers(0, len(p)))
    assert_allclose(
        exact_lru_hit_ratios(popularity=p, capacity=capacity), by_stack_orders(p, capacity), atol=1e-9
    )


def test_holds_as_many_lines_as_fit():
    p = np.arange(1, 61) ** -0.8
    p /= p.sum()
    for capacity in (1, 30, 59):
        assert_allclose(exact_lru_hit_ratios(popularity=p, capacity=capacity).sum(), capacity, atol=1e-8)


def test_nonsense():
    with pytest.raises(ValueError, match="popularity must have at most 128 lines, got 200"):
        exact_lru_hit_ratios(popularity=np.ones(200) / 200, capacity=3)
    with pytest.raises(ValueError, match="capacity must be a whole number >= 0, got 1.5"):
        exact_lru_hit_ratios(popularity=[1.0], capacity=1.5)
