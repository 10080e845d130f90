import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from qmodels.systems.spec.estimate import exactly
from validate import Estimate
from validate.engine.histogram import BINS, Histogram, bins_of, merged, middle_of
from validate.engine.jit import jit
from validate.engine.sampling import bin_of
from validate.estimates.doubts import batch_means, lag_one_correlation, warm_up
from validate.estimates.intervals import (
    busy_interval,
    mean_interval,
    paired_difference,
    probability_interval,
    quantile_interval,
    ratio_interval,
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


@jit
def fill(values, counts):
    for i in range(values.size):
        counts[bin_of(values[i])] += 1


def test_kernels_and_numpy_use_the_same_bins():
    rng = np.random.default_rng(1)
    values = np.concatenate([10 ** rng.uniform(-12, 18, size=5000), [0.0, 2.0**-20, 2.0**40, np.inf]])
    counts = np.zeros(BINS, dtype=np.int64)
    fill(values, counts)
    assert np.array_equal(counts, np.bincount(bins_of(values), minlength=BINS))


@given(value=st.floats(2.0**-20, 2.0**39), unit=st.floats(1e-9, 1e9))
def test_a_bin_stands_for_its_values(value, unit):
    position = int(bins_of(value))
    assert abs(middle_of(position) / value - 1) <= Histogram.error * (1 + 1e-9)
    assert middle_of(position - 1) < middle_of(position)
    histogram = Histogram(unit=unit)
    histogram.add(np.array([value * unit]))
    assert abs(histogram.quantile(1.0) / (value * unit) - 1) <= Histogram.error * (1 + 1e-9)
    assert histogram.share_up_to(value * unit) == 1.0


def test_small_values_count_as_zero():
    histogram = Histogram(unit=2.0)
    histogram.add(np.array([0.0, 1e-9, 3.0]))
    assert histogram.quantile(0.6) == 0.0 and histogram.share_up_to(0.0) == pytest.approx(2 / 3)


def test_histograms_add_up():
    rng = np.random.default_rng(2)
    parts = [Histogram(unit=0.5) for _ in range(3)]
    drawn = [rng.exponential(size=100) for _ in parts]
    for part, values in zip(parts, drawn, strict=True):
        part.add(values)
    whole = Histogram(unit=0.5)
    whole.add(np.concatenate(drawn))
    assert np.array_equal(merged(parts).counts, whole.counts)
    assert parts[0].total == 100


def test_quantile_intervals_cover_at_the_nominal_rate_or_above():
    # Two correlated halves in every replication; the truth is the quantile of an exponential.
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        runs = [Histogram() for _ in range(10)]
        for run in runs:
            once = rng.exponential(size=2500)
            run.add(np.concatenate([once, once]))
        estimate = quantile_interval(runs, 0.95, confidence=0.9)
        covered += -np.log(0.05) in estimate
        assert estimate.relative_half_width < 0.08
    # Binomial, 400 trials, 0.9: below 346 with probability 1 in 200. The bins only widen.
    assert covered >= 346


def test_quantiles_that_the_values_do_not_bound():
    runs = [Histogram(), Histogram()]
    assert quantile_interval(runs, 0.5, confidence=0.9).best == np.inf
    runs[0].add(np.array([1.0, 2.0]))
    runs[1].add(np.array([4.0, 8.0]))
    assert quantile_interval(runs, 0.9, confidence=0.9).high == np.inf


def test_paired_intervals_cover_and_gain_is_the_ratio_of_variances():
    rng = np.random.default_rng(1)
    covered, gains = 0, []
    for _ in range(2000):
        common = rng.normal(0.0, 3.0, size=12)
        first = 10 + common + rng.normal(0.0, 1.0, size=12)
        second = 10.5 + common + rng.normal(0.0, 1.0, size=12)
        pair = paired_difference(first, second, confidence=0.9)
        covered += 0.5 in pair.difference
        gains.append(pair.gain)
    # Standard deviation 13.4.
    assert abs(covered - 1800) < 54
    # (10 + 10) / 2.
    assert np.median(gains) == pytest.approx(10, rel=0.1)


def test_limits_of_the_gain():
    same = paired_difference([1.0, 2.0], [2.0, 3.0], confidence=0.9)
    assert same.gain == np.inf and same.decided and same.difference.best == 1.0
    still = paired_difference([1.0, 1.0], [1.0, 1.0], confidence=0.9)
    assert still.gain == 1.0 and not still.decided


@given(busy=hnp.arrays(float, st.integers(2, 9), elements=st.floats(0, 12)))
def test_a_busy_fraction_is_its_ratio_inside_zero_and_one(busy):
    times = np.full(busy.size, 10.0)
    found, ratio = (of(busy, times, confidence=0.95) for of in (busy_interval, ratio_interval))
    ends = [(one.low, one.best, one.high) for one in (found, ratio)]
    assert ends[0] == tuple(np.clip(ends[1], 0.0, 1.0))


def test_errors_of_statistics_paired():
    with pytest.raises(ValueError, match=r"first and second must have as many replications, got 2 and 3"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0], confidence=0.9)
    with pytest.raises(ValueError, match=r"first and second must be finite, got an unstable replication"):
        paired_difference([1.0, np.inf], [1.0, 2.0], confidence=0.9)


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
