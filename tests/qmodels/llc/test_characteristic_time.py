from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.llc import hit_ratios
from qmodels.llc.hierarchy import miss_gap, smooth_nodes
from qmodels.traffic import Zipf
from tests.qmodels.llc.exact_lru import exact_lru_hit_ratios

rules = st.sampled_from([("lru", 1.0), ("fifo", 1.0), ("random", 0.5), ("lru", 0.1)])


def zipf(items: int, exponent: float) -> np.ndarray:
    return Zipf(entries=items, exponent=exponent).probabilities()


@given(st.integers(2, 300), st.floats(0.0, 1.5), rules, st.data())
def test_fills_the_cache_and_favours_the_popular(items, exponent, rule, data):
    p = zipf(items, exponent)
    options = {"replacement": rule[0], "insertion_probability": rule[1]}
    capacity = data.draw(st.integers(1, items - 1))
    hits = hit_ratios(popularity=p, capacity=capacity, **options)
    assert_allclose(hits.sum(), capacity, rtol=1e-8)
    assert np.all(np.diff(hits) <= 1e-12)
    more = hit_ratios(popularity=p, capacity=min(capacity + 1, items), **options)
    assert np.all(more >= hits - 1e-9)


@pytest.mark.parametrize("replacement", ["lru", "fifo"])
@pytest.mark.parametrize("items", [42, 3000])
def test_a_cache_that_lacks_one_line_is_full_too(replacement, items):
    """A line of a FIFO cache is then held n - 1 times as long as it is missing."""
    hits = hit_ratios(popularity=np.full(items, 1 / items), capacity=items - 1, replacement=replacement)
    assert_allclose(hits, 1 - 1 / items, rtol=1e-9)


@given(st.integers(10, 300), st.floats(0.0, 1.2), st.floats(0.05, 0.5), st.data())
def test_steeper_popularity_hits_more(items, exponent, more, data):
    capacity = data.draw(st.integers(1, items - 1))
    flat, steep = (
        float(p @ hit_ratios(popularity=p, capacity=capacity))
        for p in (zipf(items, exponent), zipf(items, exponent + more))
    )
    assert steep >= flat


def test_ends():
    p = np.array([0.5, 0.3, 0.2, 0.0])
    assert_allclose(hit_ratios(popularity=p, capacity=0), 0)
    assert_allclose(hit_ratios(popularity=p, capacity=3), [1, 1, 1, 0])
    assert_allclose(hit_ratios(popularity=p, capacity=7), [1, 1, 1, 0])


def test_groups_are_so_many_equal_lines():
    p = np.array([0.2, 0.1, 0.05])
    count = np.array([1, 4, 8])
    grouped = hit_ratios(popularity=p, capacity=5, count=count)
    assert_allclose(np.repeat(grouped, count), hit_ratios(popularity=np.repeat(p, count), capacity=5))


def test_rare_insertion_ends_with_the_most_popular_lines():
    p = zipf(200, 1.0)
    hits = hit_ratios(popularity=p, capacity=50, insertion_probability=1e-30)
    assert hits[:40].min() > 0.99 and hits[60:].max() < 0.01


@pytest.mark.parametrize("exponent", [0.4, 0.83, 1.2])
@pytest.mark.parametrize(("capacity", "bound"), [(5, 2.5e-3), (25, 4e-4), (50, 4e-4)])
def test_against_the_exact_lru(exponent, capacity, bound):
    """Measured for 64 lines: at most 0.22, 0.034 and 0.031 points of 100."""
    p = zipf(64, exponent)
    model = p @ hit_ratios(popularity=p, capacity=capacity)
    assert abs(model - p @ exact_lru_hit_ratios(popularity=p, capacity=capacity)) < bound


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


@settings(max_examples=10)
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


@pytest.mark.parametrize("exponent", [0.6, 0.8, 1.2])
def test_hit_ratios_of_nodes_are_those_of_all_lines(exponent):
    p = Zipf(entries=200_000, exponent=exponent).probabilities()
    node, number = smooth_nodes(p, np.ones(p.size))
    assert node.size < 1500
    for capacity in (100, 20_000):
        lines = p @ hit_ratios(popularity=p, capacity=capacity)
        nodes = (number * node) @ hit_ratios(popularity=node, count=number, capacity=capacity)
        assert_allclose(nodes, lines, rtol=1e-8)


def test_equal_and_unwanted_lines_stay_as_they_are():
    node, number = smooth_nodes(np.array([0.0, 0.25, 0.25, 0.5, 0.0]), np.ones(5))
    assert sorted(zip(node.tolist(), number.tolist(), strict=True)) == [(0.0, 2.0), (0.25, 2.0), (0.5, 1.0)]


@given(st.floats(0.01, 20.0), st.floats(0.0, 200.0), st.floats(0.0, 20.0))
def test_a_survival_function_and_its_integral(load, time, step):
    survival, integral = miss_gap(rate=load, dead_time=1.0, time=np.array([time, time + step]))
    assert 0 <= survival[1] <= survival[0] + 1e-6 <= 1 + 1e-6
    assert survival[1] * step - 1e-5 <= integral[1] - integral[0] <= survival[0] * step + 1e-5


@pytest.mark.parametrize("load", [0.01, 0.3, 1.0, 2.0, 6.0])
def test_mean_gap_is_one_over_the_rate_of_misses(load):
    _, integral = miss_gap(rate=load, dead_time=1.0, time=1e6)
    assert_allclose(integral, np.exp(load) / load, rtol=1e-6)


@pytest.mark.parametrize(("load", "time"), [(0.1, 60.0), (0.9, 5.0), (1.0, 3.3), (2.0, 30.0), (5.0, 300.0)])
def test_against_drawn_gaps(load, time):
    """200,000 chains of exponential gaps up to the first above the dead time: four standard errors."""
    rng = np.random.default_rng(3)
    total = np.zeros(200_000)
    alive = np.arange(total.size)
    while alive.size:
        gap = rng.exponential(1.0 / load, alive.size)
        total[alive] += gap
        alive = alive[gap <= 1.0]
    survival, integral = miss_gap(rate=load, dead_time=1.0, time=time)
    above = total > time
    assert abs(above.mean() - survival) <= 4 * np.sqrt(survival * (1 - survival) / total.size) + 1e-5
    capped = np.minimum(total, time)
    assert abs(capped.mean() - integral) <= 4 * capped.std() / np.sqrt(total.size) + 1e-5
