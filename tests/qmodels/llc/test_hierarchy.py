"""Laws of hierarchies; their errors against simulation are in tests/validate/cache."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.llc import copy_levels, exclusive_levels, hit_ratios, inclusive_levels
from qmodels.llc.kept import lru_held
from qmodels.traffic import Zipf

laws = st.builds(
    lambda n, a: Zipf(entries=n, exponent=a).probabilities(), st.integers(60, 400), st.floats(0.2, 1.3)
)


def total(p, levels):
    return float(p @ (1.0 - np.prod(1.0 - levels, axis=0)))


@given(laws, st.integers(1, 25), st.integers(1, 25))
def test_exclusive_lru_depends_on_the_sum_only(p, first, second):
    one = np.ones(len(p))
    levels = exclusive_levels(popularity=p, count=one, cores=1, private=[first], shared=second)
    turned = exclusive_levels(popularity=p, count=one, cores=1, private=[second], shared=first)
    together = float(p @ hit_ratios(popularity=p, capacity=first + second))
    assert_allclose([total(p, levels), total(p, turned)], together, rtol=1e-6)
    private = exclusive_levels(popularity=p, count=one, cores=1, private=[first, second], shared=0)
    assert_allclose(total(p, private), together, rtol=1e-9)


@given(laws, st.integers(1, 8), st.integers(1, 20), st.integers(1, 40))
def test_more_of_the_shared_level_never_hurts(p, cores, private, shared):
    one = np.ones(len(p))
    for model in (copy_levels, exclusive_levels):
        small, large = (
            total(p, model(popularity=p, count=one, cores=cores, private=[private], shared=lines))
            for lines in (shared, shared + 10)
        )
        assert large >= small - 1e-7


@given(laws, st.integers(1, 20), st.integers(1, 40))
def test_copies_waste_room(p, first, second):
    one = np.ones(len(p))
    copy = copy_levels(popularity=p, count=one, cores=1, private=[first, second], shared=0)
    exclusive = exclusive_levels(popularity=p, count=one, cores=1, private=[first, second], shared=0)
    assert float(p @ copy[0]) - 1e-9 <= total(p, copy) <= total(p, exclusive) + 1e-9


def test_a_last_level_that_holds_everything():
    p = Zipf(entries=100, exponent=0.8).probabilities()
    one = np.ones(100)
    for levels in (
        copy_levels(popularity=p, count=one, cores=2, private=[10], shared=100),
        inclusive_levels(popularity=p, count=one, first=10, second=100),
    ):
        assert_allclose(total(p, levels), 1.0)
        assert_allclose(levels[0], hit_ratios(popularity=p, capacity=10))
    after = copy_levels(popularity=p, count=one, cores=1, private=[100, 100], shared=100)
    assert_allclose(after[0], 1.0)
    assert_allclose(after[1:], 0.0)
    # Nothing is ever a victim.
    after = exclusive_levels(popularity=p, count=one, cores=2, private=[60, 40], shared=[20, 30])
    assert_allclose(total(p, after), 1.0)
    assert_allclose(after[2], 0.0)


@given(laws, st.integers(5, 20), st.integers(30, 50))
def test_inclusion_costs_hits(p, first, second):
    one = np.ones(len(p))
    inclusive = inclusive_levels(popularity=p, count=one, first=first, second=second)
    copy = copy_levels(popularity=p, count=one, cores=1, private=[first], shared=second)
    assert p @ inclusive[0] <= p @ copy[0] + 1e-9


def test_groups_are_so_many_equal_lines():
    p, count = np.array([0.05, 0.02, 0.01]), np.array([4.0, 20.0, 40.0])
    each = np.repeat(p, count.astype(int))
    for model in (copy_levels, exclusive_levels):
        grouped = model(popularity=p, count=count, cores=3, private=[4], shared=12)
        single = model(popularity=each, count=np.ones(64), cores=3, private=[4], shared=12)
        assert_allclose(np.repeat(grouped, count.astype(int), axis=1), single, rtol=1e-6)


@given(laws, st.integers(2, 50))
def test_a_cache_is_full_and_one_line_is_the_last_asked_for(p, lines):
    for law, count in ((p, np.ones(len(p))), (p / 2, np.full(len(p), 2.0))):
        assert_allclose(count @ lru_held(law[None], count[None], lines)[0], lines, rtol=1e-6)
    assert_allclose(lru_held(p[None], np.ones((1, len(p))), 1)[0], p, rtol=1e-6)
