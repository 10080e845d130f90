from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validate.engine.bins import bin_of
from validate.engine.histogram import BINS, middle_of
from validate.engine.jit import jit
from validate.estimates.statistics import Histogram, bins_of, merged, quantile_interval


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


@settings(max_examples=50, deadline=None, derandomize=True)
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


def test_errors():
    with pytest.raises(ValueError, match=r"unit must be finite and > 0, got 0.0"):
        Histogram(unit=0.0)
    with pytest.raises(ValueError, match=re.escape(f"counts must have shape ({BINS},), got (3,)")):
        Histogram(counts=[1, 2, 3])
    with pytest.raises(ValueError, match=r"unit must be that of the other histogram, 2.0, got 1.0"):
        Histogram() + Histogram(unit=2.0)
    with pytest.raises(ValueError, match=r"probability must be in \[0, 1\], got 2.0"):
        quantile_interval([Histogram()], 2.0, confidence=0.9)
