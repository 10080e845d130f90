"""Numbers in limbs against Python's own fractions."""

from __future__ import annotations

from fractions import Fraction
from math import fsum, nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimize.programs.whole import (
    added,
    at_most,
    combined,
    from_limbs,
    least,
    limbs_needed,
    ranks,
    to_limbs,
    whole_row,
)

numbers = st.one_of(
    st.sampled_from([0.0, 5e-324, -5e-324, 1e-300, 1.0, -1.0, 0.1, 3.0, 1e300]),
    st.floats(-1e9, 1e9),
    st.builds(lambda digit, power: digit * 10.0**power, st.integers(-9, 9), st.integers(-15, 9)),
)
parts = st.lists(st.lists(numbers, min_size=1, max_size=4), min_size=1, max_size=3)


def exact(row, number):
    return Fraction(number) * Fraction(2) ** row.exponent


@settings(max_examples=200, deadline=None, derandomize=True)
@given(parts, numbers, st.integers(-2, 2))
def test_a_ceiling_is_what_rounds_to_the_bound(values, bound, steps):
    """Sums near the bound, to the last bit, half-way between two numbers included."""
    first = [values[0][0], *(part[-1] for part in values[1:])]
    near = fsum(first)
    for _ in range(abs(steps)):
        near = nextafter(near, np.inf if steps > 0 else -np.inf)
    for limit in (bound, near):
        row = whole_row([np.array(part) for part in values], limit)
        for part, whole in zip(values, row.parts, strict=True):
            assert [exact(row, n) for n in whole.tolist()] == [Fraction(x) for x in part]
        total = sum(part[k] for part, k in zip(row.parts, [0] + [-1] * len(row.parts[1:]), strict=True))
        assert row.value(total) == fsum(first)
        assert (total <= row.ceiling) == (fsum(first) <= limit)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), numbers)
def test_limbs_add_and_compare_as_the_numbers_do(pairs, bound):
    columns = [np.array(column) for column in zip(*pairs, strict=True)]
    row = whole_row([*columns, np.array([bound])])
    count = limbs_needed([row])
    left, right, (end,) = (to_limbs(part.tolist(), count) for part in row.parts)
    total = added(left, right)
    sums = [a + b for a, b in zip(*(part.tolist() for part in row.parts[:2]), strict=True)]
    assert from_limbs(total) == sums
    assert at_most(total, end).tolist() == [n <= row.parts[2][0] for n in sums]
    assert from_limbs(least(total[:, None]))[0] == min(sums)
    for places in (False, True):
        order = ranks(total[:, None], places=places)[:, 0].tolist()
        assert [[x < y for x in order] for y in order] == [[x < y for x in sums] for y in sums]
    assert sorted(set(order)) == list(range(len(set(sums))))


@given(st.lists(numbers, min_size=2, max_size=2), st.lists(st.floats(0, 1e6), min_size=2, max_size=2))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_weighted_sums_of_rows_are_not_rounded(values, weights):
    rows = [whole_row([np.array([value])], value) for value in values]
    total = combined(rows, weights)
    expected = sum(Fraction(w) * Fraction(v) for w, v in zip(weights, values, strict=True))
    assert exact(total, total.parts[0][0]) == expected
    ceilings = sum(Fraction(w) * exact(r, r.ceiling) for w, r in zip(weights, rows, strict=True))
    assert exact(total, total.ceiling) == ceilings


def test_short_numbers_take_one_limb():
    row = whole_row([np.arange(1000.0), np.array([0.5, 2.5])])
    assert limbs_needed([row]) == 1 and row.exponent == -1
    assert limbs_needed([whole_row([np.array([1e9, 1e-15])])]) == 3
    assert whole_row([np.zeros(3)]).value(0) == 0 == pytest.approx(whole_row([np.zeros(0)]).value(0))
