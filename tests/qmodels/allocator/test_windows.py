from __future__ import annotations

from itertools import product
from math import isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from qmodels.allocator.trial_states import canonical, distinct, draw_any, draw_others, draw_window

checks = settings(derandomize=True, deadline=None, max_examples=50)
windows = st.lists(st.integers(0, 5), min_size=1, max_size=5).map(tuple)


@checks
@given(windows, st.permutations(range(6)))
def test_renaming_banks_changes_nothing(window: tuple[int, ...], names: list[int]) -> None:
    assert canonical(window) == canonical([names[bank] for bank in window])
    assert canonical(canonical(window)) == canonical(window)
    assert len(distinct(window)) == max(canonical(window)) + 1


@checks
@given(st.integers(0, 4), st.integers(0, 3), st.integers(1, 6))
def test_draws_are_those_of_all_equally_likely_words(known: int, count: int, banks: int) -> None:
    known = min(known, banks)
    by_name: dict[tuple[int, ...], float] = {}
    for word in product(range(banks), repeat=count):
        # Banks beyond those known are named in the order of their appearance.
        key = canonical((*range(known), *word))[known:]
        by_name[key] = by_name.get(key, 0.0) + banks**-count
    drawn = dict(draw_any(known, count, banks))
    assert drawn.keys() == by_name.keys()
    assert all(isclose(drawn[key], by_name[key], rel_tol=1e-12) for key in drawn)


@checks
@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 6))
def test_windows_differ_as_far_as_there_are_banks(known: int, length: int, banks: int) -> None:
    drawn = draw_window(min(known, banks), length, banks)
    assert isclose(sum(chance for _, chance in drawn), 1.0, rel_tol=1e-12)
    assert all(len(set(window)) == min(length, banks) for window, _ in drawn)


def test_no_other_bank_is_left() -> None:
    assert draw_others(2, (0, 1), 2) == []
