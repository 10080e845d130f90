from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.allocator import allocation_trials

checks = settings(derandomize=True, deadline=None, max_examples=60)
chances = st.floats(0.0, 1.0)


def by_enumeration(q: float, w: float, most: int) -> tuple[float, float, float, float]:
    """Walk the tree of trials one by one: rejections, accesses, their square, taken busy."""
    rejected = mean = square = taken = 0.0
    reach = 1.0
    for trial in range(1, most + 1):
        busy = q if trial == 1 else w
        stop = reach * (1 - busy) if trial < most else reach
        cost = 1 if trial == 1 else trial + 1  # trial - 1 reads, the link to the tail, the head
        rejected += stop * (trial - 1)
        mean += stop * cost
        square += stop * cost**2
        if trial == most:
            taken = reach * busy
        reach *= busy
    return rejected, mean, square - mean**2, taken


@checks
@given(chances, chances, st.integers(1, 12))
def test_equals_the_tree_of_trials(q: float, w: float, most: int) -> None:
    result = allocation_trials(busy=q, busy_again=w, alloc_trial_count=most)
    rejected, mean, variance, taken = by_enumeration(q, w, most)
    assert_allclose(result.mean_rejected, rejected, atol=1e-12)
    assert_allclose(result.mean_accesses, mean, rtol=1e-12)
    assert_allclose(result.accesses_variance, variance, atol=1e-9)
    assert_allclose(result.taken_busy_probability, taken, atol=1e-12)


@checks
@given(chances, chances, st.integers(1, 12))
def test_more_trials_never_take_more_busy_banks(q: float, w: float, most: int) -> None:
    fewer, more = (allocation_trials(busy=q, busy_again=w, alloc_trial_count=t) for t in (most, most + 1))
    assert more.taken_busy_probability <= fewer.taken_busy_probability + 1e-15
    assert more.mean_accesses >= fewer.mean_accesses - 1e-12
    assert more.mean_accesses <= most + 2


def test_one_trial_is_the_plain_list_and_arrays_broadcast() -> None:
    result = allocation_trials(busy=[0.1, 0.9], busy_again=0.5, alloc_trial_count=[[1], [3]])
    assert result.mean_accesses.shape == (2, 2)
    assert_allclose(result.mean_accesses[0], 1.0)
    assert_allclose(result.taken_busy_probability[0], [0.1, 0.9])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"busy": 1.5}, r"busy must be in \[0, 1\], got 1.5"),
        ({"busy_again": np.nan}, r"busy_again must be in \[0, 1\], got nan"),
        ({"alloc_trial_count": 0}, "alloc_trial_count must be a whole number >= 1, got 0"),
        ({"alloc_trial_count": 1.5}, "alloc_trial_count must be a whole number >= 1, got 1.5"),
    ],
)
def test_nonsense(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        allocation_trials(**({"busy": 0.1, "busy_again": 0.1, "alloc_trial_count": 2} | change))
