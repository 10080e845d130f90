"""Fronts of intervals against every corner of the intervals, and probabilities against closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimize.decisions.uncertain import front_membership
from optimize.search.pareto import nondominated

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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: front_membership([[1, 2]], [[1, 2], [3, 4]]), r"one shape, got \(1, 2\) and \(2, 2\)"),
        (
            lambda: front_membership([[1]], [[1]], admitted=[True, True]),
            r"admitted must have one entry per point \(1\)",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
