from __future__ import annotations

import numpy as np
import pytest

from validate.estimates.statistics import antithetic_interval, mean_interval, paired_difference


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


def test_antithetic_pairs_narrow_the_interval_of_a_monotone_metric_and_cover():
    rng = np.random.default_rng(2)
    covered, narrower = 0, 0
    for _ in range(1000):
        u = rng.uniform(size=(20, 30))
        plain, mirrored = -np.log(u).mean(axis=1), -np.log1p(-u).mean(axis=1)
        pairs = antithetic_interval(plain, mirrored, confidence=0.9)
        covered += 1.0 in pairs
        narrower += (
            pairs.half_width < mean_interval(np.concatenate([plain, mirrored]), confidence=0.9).half_width
        )
    # Standard deviation 9.5.
    assert abs(covered - 900) < 38
    assert narrower > 950


def test_errors():
    with pytest.raises(ValueError, match=r"first and second must have as many replications, got 2 and 3"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0], confidence=0.9)
    with pytest.raises(ValueError, match=r"first and second must be finite, got an unstable replication"):
        paired_difference([1.0, np.inf], [1.0, 2.0], confidence=0.9)
    with pytest.raises(ValueError, match=r"plain and mirrored must have as many runs, got 1 and 2"):
        antithetic_interval([1.0], [1.0, 2.0], confidence=0.9)
