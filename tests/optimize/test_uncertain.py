"""Fronts of intervals against every corner of the intervals, and probabilities against closed forms."""

from __future__ import annotations

import itertools
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimize.search.pareto import nondominated
from optimize.search.uncertain import front_membership, front_probability

intervals = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(intervals, st.booleans())
def test_what_is_sure_holds_for_all_values_in_the_intervals(drawn, up):
    low = np.array([(a, c) for a, _, c, _ in drawn], dtype=float)
    high = np.array([(a + b, c + d) for a, b, c, d in drawn], dtype=float)
    maximize = [False, up]
    member = front_membership(low, high, maximize=maximize)
    always, ever = np.ones(len(low), dtype=bool), np.zeros(len(low), dtype=bool)
    for corner in itertools.product(
        *([lo, hi] if lo < hi else [lo] for lo, hi in zip(low.flat, high.flat, strict=True))
    ):
        front = nondominated(np.array(corner).reshape(low.shape), maximize=maximize)
        always &= front
        ever |= front
    # Sure answers are right; a point is left open only if the corners are not all the same.
    assert (member.on <= always).all() and (member.off <= ~ever).all()
    assert (member.on | member.off | member.undecided).all() and not (member.on & member.off).any()
    assert member.on.tolist() == always.tolist()


def test_constraints_that_are_open_leave_membership_open():
    low, high = [[1, 1], [2, 2], [3, 3]], [[1, 1], [2, 2], [3, 3]]
    member = front_membership(low, high, admitted=[False, True, True], possible=[True, True, True])
    assert member.on.tolist() == [False, False, False]
    assert member.off.tolist() == [False, False, True]
    member = front_membership(low, high, admitted=[False, True, True], possible=[False, True, True])
    assert member.on.tolist() == [False, True, False] and member.off.tolist() == [True, False, True]


def test_saturated_points_are_off():
    member = front_membership([[1, np.inf], [2, 2], [1, 1]], [[1, np.inf], [2, 3], [1, np.inf]])
    assert member.off.tolist() == [True, False, False] and member.undecided.tolist() == [False, True, True]


def test_two_points_have_the_probability_of_a_difference():
    """The second is on the front unless it is larger in the one uncertain objective."""
    best = [[10.0, 1.0], [11.0, 1.0]]
    half = np.array([[1.0, 0.0], [1.5, 0.0]])
    sigma = np.hypot(1.0, 1.5) / NormalDist().inv_cdf(0.975)
    expected = NormalDist().cdf(-1.0 / sigma)
    draws = 20000
    result = front_probability(best, best - half, best + half, draws=draws, seed=1)
    error = np.sqrt(expected * (1 - expected) / draws)
    assert abs(result[1] - expected) < 4 * error and abs(result[0] - (1 - expected)) < 4 * error
    at_99 = front_probability(best, best - half, best + half, level=0.99, draws=draws, seed=1)
    assert at_99[1] < result[1]


def test_exact_points_have_probabilities_of_their_front():
    points = np.random.default_rng(0).integers(0, 6, (60, 3)).astype(float)
    expected = nondominated(points, maximize=[False, True, False])
    result = front_probability(points, points, points, maximize=[False, True, False], draws=3)
    assert result.tolist() == expected.astype(float).tolist()
    assert front_probability(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 2))).tolist() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: front_membership([[1, 2]], [[1, 2], [3, 4]]), r"one shape, got \(1, 2\) and \(2, 2\)"),
        (
            lambda: front_membership([[1]], [[1]], admitted=[True, True]),
            r"admitted must have one entry per point \(1\)",
        ),
        (lambda: front_probability([[1]], [[1]], [[1], [2]]), "best, low and high must have one shape"),
        (lambda: front_probability([[1]], [[1]], [[1]], level=1), "level must be between 0 and 1, got 1"),
        (lambda: front_probability([[1]], [[1]], [[1]], draws=0), "draws must be a whole number >= 1, got 0"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
