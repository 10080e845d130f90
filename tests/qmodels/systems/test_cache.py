from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels import CacheLevel, CacheSystem
from qmodels.systems.cache import spec as cache_lines
from qmodels.systems.cache.spec import line_count, line_of, line_popularity, shuffled, slice_of
from qmodels.systems.traffic.popularity import GeometricPopularity
from qmodels.traffic import MeasuredPopularity, Zipf


@given(st.integers(1, 3000), st.integers(0, 2**31))
def test_a_random_order_is_a_permutation(entries, seed):
    places = shuffled(np.arange(entries), entries=entries, seed=seed)
    assert np.array_equal(np.sort(places), np.arange(entries))
    assert shuffled(entries - 1, entries=entries, seed=seed) == places[-1]
    grid = np.arange(entries // 2 * 2).reshape(-1, 2)
    assert np.array_equal(shuffled(grid.T, entries=entries, seed=seed), places[grid].T)


def test_a_random_order_looks_random():
    """Correlation of place and rank, and of neighbours' places: four standard errors of 1e5."""
    places = shuffled(np.arange(100_000), entries=100_000, seed=7)
    assert abs(np.corrcoef(places, np.arange(100_000))[0, 1]) < 0.013
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 0.013


@given(st.integers(1, 2000), st.integers(1, 40), st.sampled_from(["consecutive", "random"]))
def test_lines_hold_all_entries_and_all_requests(entries, per_line, assignment):
    where = line_of(np.arange(entries), entries=entries, entries_per_line=per_line, assignment=assignment)
    held = np.bincount(where, minlength=line_count(entries, per_line))
    assert held.max() <= per_line and held.sum() == entries and np.all(held[:-1] == per_line)
    p, count = line_popularity(Zipf(entries=entries, exponent=0.8), per_line, assignment, 0)
    assert_allclose((p * count).sum(), 1.0)


@given(st.integers(0, 10**9), st.integers(0, 6), st.sampled_from(["modulo", "xor", "mixed"]))
def test_slices_are_in_range(line, bits, hashing):
    assert 0 <= slice_of(line, slices=2**bits, hashing=hashing) < 2**bits


def test_xor_folding_splits_a_power_of_two_stride():
    """A stride of the slices meets one slice by modulo and all of them by XOR."""
    lines = np.arange(64) * 8
    assert len(np.unique(slice_of(lines, slices=8, hashing="modulo"))) == 1
    assert len(np.unique(slice_of(lines, slices=8, hashing="xor"))) == 8


@pytest.mark.parametrize("assignment", ["consecutive", "random"])
@pytest.mark.parametrize("per_line", [1, 8])
def test_groups_of_huge_catalogues(assignment, per_line, monkeypatch):
    """The share of lines asked for within a time, grouped and line by line: 1e-3 of each other."""
    law = Zipf(entries=3_000_000, exponent=0.83)
    each, _ = line_popularity(law, per_line, assignment, 0)
    monkeypatch.setattr(cache_lines, "MOST_ENTRIES", 1000)
    p, count = line_popularity.__wrapped__(law, per_line, assignment, 0)
    assert len(p) < 20_000
    assert_allclose([count.sum(), (p * count).sum()], [len(each), 1.0])
    for time in (1e4, 1e5, 1e6, 1e7):
        asked, weight = -np.expm1(-p * time), -np.expm1(-each * time)
        assert_allclose(count @ asked, weight.sum(), rtol=2e-3)
        assert_allclose((count * p) @ asked, each @ weight, atol=1e-3)


@pytest.mark.parametrize(("exponent", "per_line"), [(0.64, 32), (0.83, 32), (0.95, 4)])
def test_huge_catalogues_depend_little_on_what_is_drawn(exponent, per_line):
    """Hits of a cache of a thousandth of the lines by the characteristic time: at most 8e-5 apart."""
    law, hits = Zipf(entries=150_000_000, exponent=exponent), []
    for seed in range(4):
        p, count = line_popularity.__wrapped__(law, per_line, "random", seed)
        assert_allclose([(p * count).sum(), count.sum()], [1.0, line_count(law.entries, per_line)])
        hits.append(popularity_hit_ratio(p, count, capacity=count.sum() / 1000))
    assert np.ptp(hits) < 2e-4


def popularity_hit_ratio(p, count, *, capacity):
    low, high = 1.0, 1e12
    while high / low > 1 + 1e-9:
        time = (low * high) ** 0.5
        low, high = (time, high) if count @ -np.expm1(-p * time) < capacity else (low, time)
    return (count * p) @ -np.expm1(-p * time)


def test_other_popularity_laws():
    shifted = Zipf(entries=4, exponent=1.0, shift=1.0).probabilities()
    assert_allclose(shifted, np.array([30, 20, 15, 12]) / 77)
    assert_allclose(GeometricPopularity(entries=100_000, ratio=0.5).probabilities()[:3], [0.5, 0.25, 0.125])
    assert_allclose(MeasuredPopularity.from_keys([7, 7, 3]).probabilities(), [2 / 3, 1 / 3])
    assert hash(MeasuredPopularity(counts=np.array([2, 1]))) == hash(MeasuredPopularity(counts=[2, 1]))
    for law in (
        Zipf(entries=9000, exponent=1.0),
        GeometricPopularity(entries=50, ratio=0.9),
        MeasuredPopularity(counts=(3, 1, 1)),
    ):
        p, count = law.groups()
        assert_allclose([count.sum(), (p * count).sum()], [law.entries, 1.0])


def test_names():
    system = CacheSystem(private=(CacheLevel(lines=4), CacheLevel(lines=8)))
    assert system.level_names == ("l1", "l2")
    assert replace(system, shared=CacheLevel(lines=64)).level_names == ("l1", "l2", "llc")
    assert system.line_count == 20_000
