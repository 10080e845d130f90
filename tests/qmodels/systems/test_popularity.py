"""Zipf-like popularity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from qmodels.traffic import Zipf


@given(entries=st.integers(1, 300), exponent=st.floats(0, 3))
def test_probabilities_fall_as_a_power_of_the_rank(entries: int, exponent: float) -> None:
    law = Zipf(entries=entries, exponent=exponent)
    p = law.probabilities()
    assert math.fsum(p) == pytest.approx(1, abs=1e-12)
    ranks = range(1, entries + 1)
    assert_allclose(p, [p[0] * rank**-exponent for rank in ranks], rtol=1e-12)
    assert [law.top_share(k) for k in (0, 1, entries, entries + 5)] == pytest.approx([0, p[0], 1, 1])


def test_published_example() -> None:
    # 20,000 entries with exponent 0.83 (Korikawa et al., sec. V); the sum by hand, in another order.
    law = Zipf(entries=20_000, exponent=0.83)
    total = math.fsum(i**-0.83 for i in range(20_000, 0, -1))
    assert law.top_share(2048) == pytest.approx(
        math.fsum(i**-0.83 for i in range(1, 2049)) / total, rel=1e-12
    )


def test_samples_follow_the_probabilities() -> None:
    law = Zipf(entries=50, exponent=0.83)
    n = 400_000
    drawn = law.sample(np.random.default_rng(7), n)
    assert drawn.min() == 0 and drawn.max() == 49
    share = np.bincount(drawn, minlength=50) / n
    p = law.probabilities()
    assert np.all(np.abs(share - p) < 5 * np.sqrt(p * (1 - p) / n))
    assert_array_equal(drawn[:100], law.sample(np.random.default_rng(7), n)[:100])


def test_the_last_entry_takes_the_largest_random_number() -> None:
    largest = type("Rng", (), {"random": lambda self, count: np.full(count, np.nextafter(1, 0))})()
    for entries in (1, 3, 1000, 20_000):
        assert Zipf(entries=entries, exponent=0.83).sample(largest, 1).tolist() == [entries - 1]


def test_probabilities_are_shared_and_read_only() -> None:
    law = Zipf(entries=10, exponent=1)
    assert law.probabilities() is Zipf(entries=10, exponent=1.0).probabilities()
    with pytest.raises(ValueError, match="read-only"):
        law.probabilities()[0] = 0.0


def test_bad_count_of_top_entries() -> None:
    with pytest.raises(ValueError, match=r"count must be a whole number >= 0, got -1\.0"):
        Zipf(entries=10, exponent=1).top_share(-1)
