from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from validate import Estimate
from validate.estimates.statistics import (
    Histogram,
    exactly,
    mean_interval,
    probability_interval,
    ratio_interval,
    warm_up,
)


def test_mean_interval_is_students():
    values = np.random.default_rng(1).normal(5.0, 2.0, size=12)
    estimate = mean_interval(values, confidence=0.99)
    low, high = stats.t.interval(0.99, 11, loc=values.mean(), scale=stats.sem(values))
    assert np.allclose([estimate.low, estimate.best, estimate.high], [low, values.mean(), high])
    assert estimate.relative_half_width == pytest.approx((high - low) / 2 / values.mean())


def test_intervals_cover_at_the_nominal_rate():
    rng = np.random.default_rng(2)
    means = rng.normal(5.0, 2.0, size=(4000, 5))
    above = rng.poisson(20.0, size=(4000, 8))
    below = rng.poisson(100.0, size=(4000, 8))
    covered = np.mean([5.0 in mean_interval(row, confidence=0.9) for row in means])
    ratios = np.mean([0.2 in ratio_interval(a, b, confidence=0.9) for a, b in zip(above, below, strict=True)])
    # Standard deviation 0.0047; the ratio's interval is approximate.
    assert abs(covered - 0.9) < 0.02
    assert abs(ratios - 0.9) < 0.025


def test_infinite_values_make_an_infinite_mean():
    estimate = mean_interval([1.0, np.inf, 2.0], confidence=0.95)
    assert estimate == exactly(np.inf, confidence=0.95)
    assert estimate.half_width == 0 and estimate.relative_half_width == np.inf


def test_a_ratio_of_nothing_is_zero():
    assert ratio_interval([0, 0], [0, 0], confidence=0.95) == exactly(0.0, confidence=0.95)
    assert probability_interval([0, 0], [0, 0], confidence=0.95) == exactly(0.0, confidence=0.95)


def test_unseen_events_have_the_exact_bound():
    never = probability_interval([0, 0], [50, 50], confidence=0.95)
    assert never.low == never.best == 0
    assert (1 - never.high) ** 100 == pytest.approx(0.05)
    always = probability_interval([50, 50], [50, 50], confidence=0.95)
    assert (always.low, always.best, always.high) == pytest.approx((1 - never.high, 1, 1))


def test_bad_estimates_and_too_few_replications():
    with pytest.raises(ValueError, match=r"estimate must have low <= best <= high, got 2.0, 1.0, 3.0"):
        Estimate(low=2.0, best=1.0, high=3.0, confidence=0.9)
    with pytest.raises(ValueError, match=r"replications must be a whole number >= 2, got 1"):
        mean_interval([1.0], confidence=0.95)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    values=st.lists(st.floats(1e-2, 1e9), min_size=1, max_size=60),
    probability=st.floats(0.0, 1.0),
)
def test_histogram_quantile_keeps_its_error(values, probability):
    histogram = Histogram()
    histogram.add(np.array(values))
    rank = max(1, int(np.ceil(probability * len(values))))
    exact = sorted(values)[rank - 1]
    assert abs(histogram.quantile(probability) / exact - 1) <= histogram.error * (1 + 1e-6)


def test_histogram_is_constant_memory_and_takes_anything():
    histogram = Histogram()
    size = histogram.counts.size
    histogram.add(np.array([0.0, 1e-9, 1e15]))
    assert histogram.counts.size == size and histogram.counts.sum() == 3
    assert Histogram().quantile(0.5) == np.inf


def test_warm_up_finds_a_transient_and_none_where_there_is_none():
    rng = np.random.default_rng(3)
    noise = rng.normal(size=4000)
    transient = 8 * np.exp(-np.arange(4000) / 100)
    assert 150 < warm_up(noise + transient) < 1200
    assert warm_up(noise) < 1000
    assert warm_up(np.arange(1000.0)) == 500
    assert warm_up([1.0, 2.0]) == 0
