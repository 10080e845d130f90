from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from validate.estimates.statistics import batch_means, lag_one_correlation


def autoregressive(rng, *, runs, length, correlation, mean):
    """Return series x' = correlation x + noise, started in the steady state."""
    noise = rng.normal(size=(runs, length))
    series = np.empty((runs, length))
    series[:, 0] = noise[:, 0] / np.sqrt(1 - correlation**2)
    for i in range(1, length):
        series[:, i] = correlation * series[:, i - 1] + noise[:, i]
    return series + mean


def test_lag_one_correlation_by_hand():
    assert lag_one_correlation([1.0, -1.0, 1.0, -1.0]) == pytest.approx(-0.75)
    assert lag_one_correlation([5.0, 5.0, 5.0]) == 0.0


def test_equal_weights_are_the_classical_method():
    values = np.random.default_rng(1).normal(3.0, 1.0, size=20)
    run = batch_means(values * 50, np.full(20, 50), confidence=0.9)
    low, high = stats.t.interval(0.9, 19, loc=values.mean(), scale=stats.sem(values))
    assert run.batches == 20
    assert (run.estimate.low, run.estimate.high) == pytest.approx((low, high))
    assert run.estimate.best == pytest.approx(values.mean())


@pytest.mark.parametrize(("correlation", "lost"), [(0.0, 0.0), (0.5, 0.02), (0.8, 0.025)])
def test_intervals_of_correlated_series_cover_at_the_nominal_rate(correlation, lost):
    series = autoregressive(
        np.random.default_rng(4), runs=2000, length=640, correlation=correlation, mean=7.0
    )
    runs = [batch_means(row, np.ones(row.size), confidence=0.9) for row in series]
    covered = np.mean([7.0 in run.estimate for run in runs])
    # Standard deviation 0.0067; what is left of the correlation costs up to two points.
    assert 0.88 - lost < covered < 0.92
    assert np.mean([run.independent for run in runs]) > 0.98
    assert max(run.batches for run in runs) == 40


def test_a_run_shorter_than_its_memory_is_found():
    series = autoregressive(np.random.default_rng(5), runs=200, length=320, correlation=0.995, mean=0.0)
    runs = [batch_means(row, np.ones(row.size), confidence=0.9) for row in series]
    assert np.mean([run.independent for run in runs]) < 0.6
    assert np.mean([run.batches for run in runs]) < 12


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    totals=hnp.arrays(float, st.integers(10, 80), elements=st.floats(0, 1e6)),
    scale=st.floats(1e-3, 1e3),
)
def test_laws_of_batch_means(totals, scale):
    weights = np.full(totals.size, 2.0)
    run = batch_means(totals, weights, confidence=0.95)
    assert 10 <= run.batches <= totals.size
    scaled = batch_means(totals * scale, weights, confidence=0.95)
    if scaled.batches == run.batches:
        assert scaled.estimate.best == pytest.approx(run.estimate.best * scale, rel=1e-9)


def test_too_few_batches():
    with pytest.raises(ValueError, match=r"number of batches must be a whole number >= 10, got 9"):
        batch_means(np.ones(9), np.ones(9), confidence=0.95)
