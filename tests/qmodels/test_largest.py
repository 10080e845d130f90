"""The largest of independent times against closed forms."""

from __future__ import annotations

import pytest

from qmodels.numerics.largest import largest_moments


@pytest.mark.parametrize("count", [1, 2, 8, 64])
def test_of_exponential_times(count):
    mean, variance = largest_moments(mean=2.0, variance=4.0, count=count)
    assert mean == pytest.approx(2 * sum(1 / k for k in range(1, count + 1)), rel=2e-3)
    assert variance == pytest.approx(4 * sum(1 / k**2 for k in range(1, count + 1)), rel=1e-2)


def test_constant_times_end_with_the_last_start():
    assert largest_moments(mean=2.0, variance=0.0, count=1, start=[0.0, 5.0, 1.0]) == (7.0, 0.0)


def test_starts_far_apart_leave_the_last_alone():
    mean, variance = largest_moments(mean=1.0, variance=0.5, count=[4, 1], start=[0.0, 100.0])
    assert mean == pytest.approx(101.0, rel=1e-3) and variance == pytest.approx(0.5, rel=2e-2)
