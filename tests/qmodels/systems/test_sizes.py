"""Packet-size laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from qmodels.systems.traffic.sizes import LAWS, segment_count
from qmodels.traffic import SizeLaw, bimodal, fixed, heavy_tailed, imix

packets = st.lists(st.integers(1, 65535), min_size=1, max_size=60)


@given(sizes=packets, segment=st.integers(1, 2048))
def test_law_of_observed_packets_counts_them(sizes: list[int], segment: int) -> None:
    law = SizeLaw.measured(sizes)
    assert_allclose(law.mean_bytes, sum(sizes) / len(sizes), rtol=1e-12)
    assert law.bytes == tuple(sorted(set(sizes)))

    counts, probabilities = law.segments(segment)
    by_hand = [math.ceil(size / segment) for size in sizes]
    assert counts.tolist() == sorted(set(by_hand))
    assert_allclose(probabilities, [by_hand.count(n) / len(sizes) for n in counts], rtol=1e-12)
    assert_array_equal(segment_count(sizes, segment), by_hand)


@given(sizes=packets, seed=st.integers(0, 2**32 - 1))
def test_samples_come_from_the_law_and_repeat_with_the_seed(sizes: list[int], seed: int) -> None:
    law = SizeLaw.measured(sizes)
    drawn = law.sample(np.random.default_rng(seed), 50)
    assert set(drawn.tolist()) <= set(sizes)
    assert_array_equal(drawn, law.sample(np.random.default_rng(seed), 50))


def test_sample_frequencies_are_the_probabilities() -> None:
    law = SizeLaw(bytes=(64, 128, 594, 1518), probability=(0.5, 0.0, 0.3, 0.2))
    n = 200_000
    drawn = law.sample(np.random.default_rng(3), n)
    for size, p in zip(law.bytes, law.probability, strict=True):
        # Five standard deviations of a binomial share; exactly 0 where the probability is.
        assert abs(np.mean(drawn == size) - p) <= 5 * math.sqrt(p * (1 - p) / n)


def test_imix_is_seven_four_one() -> None:
    law = imix()
    assert law.bytes == (64, 594, 1518)
    assert_allclose(np.array(law.probability) * 12, [7, 4, 1], rtol=1e-15)


def test_fixed_and_bimodal() -> None:
    assert fixed(bytes=100) == SizeLaw(bytes=(100,), probability=(1.0,))
    assert bimodal(small=70, large=1514, small_fraction=0.25).mean_bytes == 0.25 * 70 + 0.75 * 1514
    assert bimodal(small=70, large=1514, small_fraction=1.0).mean_bytes == 70


@given(shape=st.floats(0.05, 5), low=st.integers(1, 500), span=st.integers(1, 3000))
def test_heavy_tail_is_a_bounded_pareto_law(shape: float, low: int, span: int) -> None:
    law = heavy_tailed(shape=shape, minimum=low, maximum=low + span)
    reference = stats.truncpareto(b=shape, c=(low + span + 1) / low, scale=low)
    edges = np.arange(low, low + span + 1)
    assert law.bytes == tuple(edges.tolist())
    # Measured over 2,000 laws: 2e-14.
    assert_allclose(np.cumsum(law.probability), reference.cdf(edges + 1.0), atol=1e-12)
    assert sum(law.probability) == pytest.approx(1, abs=1e-12)


def test_equal_laws_are_equal_and_hash_alike() -> None:
    ours = SizeLaw(bytes=(64, 1500), probability=(0.5, 0.5))
    theirs = SizeLaw(bytes=np.array([64, 1500]), probability=np.array([0.5, 0.5]))  # type: ignore[arg-type]
    assert ours == theirs and hash(ours) == hash(theirs)
    assert all(type(size) is int for size in theirs.bytes)


def test_the_largest_size_can_be_drawn_although_the_sum_is_not_quite_one() -> None:
    law = SizeLaw(bytes=(1, 2), probability=(0.5, 0.5 - 1e-10))
    almost_one = type("Rng", (), {"random": lambda self, count: np.full(count, 1 - 1e-16)})()
    assert law.sample(almost_one, 1).tolist() == [2]


def test_every_named_law_can_be_made() -> None:
    arguments = {"fixed": {"bytes": 64}, "bimodal": {"small": 1, "large": 2, "small_fraction": 0.5}}
    for name, make in LAWS.items():
        assert isinstance(
            make(**arguments.get(name, {"shape": 1} if name == "heavy-tailed" else {})), SizeLaw
        )
