"""Hit ratios of the packet processor with LLC slices."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmodels import LlcProcessor
from qmodels.llc.processor_hits import hit_ratios
from qmodels.traffic import Zipf

BASE = LlcProcessor()
FEW = settings(max_examples=12)


def law(entries=20_000, exponent=0.83):
    return Zipf(entries=entries, exponent=exponent)


def test_a_cache_of_one_line_is_exact():
    """It hits when a line is requested twice in a row: with the sum of the squared probabilities."""
    spec = LlcProcessor(line_bytes=128, popularity=law(640), assignment="consecutive")
    p = law(640).probabilities().reshape(-1, 64).sum(axis=1)
    assert hit_ratios(spec).l1 == pytest.approx(p @ p, rel=1e-6)


def test_equal_lines():
    """Of equally popular lines a cache has as many as fit in it, whatever the law of its times."""
    spec = LlcProcessor(architecture="none", popularity=law(20_000, 0.0))
    found = hit_ratios(spec)
    assert found.l1 == pytest.approx(2 / 625, rel=1e-5)
    assert 1 - found.misses[1] == pytest.approx(10 / 625, rel=1e-5)
    assert found.llc == 0


def test_everything_fits():
    found = hit_ratios(LlcProcessor(popularity=law(320)))
    assert 1 - found.misses[1] == pytest.approx(1, abs=1e-9)
    # 31 or 32 lines in slices of 2: no line is ever dropped for good.
    assert hit_ratios(LlcProcessor(popularity=law(1000))).llc == pytest.approx(1, abs=1e-6)
    shared = LlcProcessor(architecture="shared", popularity=law(2048))
    assert hit_ratios(shared).llc == pytest.approx(1, abs=1e-6)


@given(exponent=st.floats(0.0, 1.2), entries=st.integers(2_000, 60_000), cores=st.integers(1, 64))
@FEW
def test_laws(exponent, entries, cores):
    spec = LlcProcessor(cores=cores, popularity=law(entries, exponent))
    found = hit_ratios(spec)
    assert all(0 <= ratio <= 1 for ratio in (found.l1, found.l2, found.llc))
    assert found.slice_shares.sum(axis=1) == pytest.approx(1.0)
    # More of anything finds more.
    assert hit_ratios(replace(spec, l1_bytes=256)).l1 > found.l1
    more = hit_ratios(replace(spec, slice_bytes=256)).llc
    assert more > found.llc
    steeper = hit_ratios(replace(spec, popularity=law(entries, exponent + 0.1)))
    assert steeper.misses[2] < found.misses[2] + 0.003  # fresh random tables


def test_a_core_s_caches_together_are_one():
    """L1 and L2 are exclusive: how many lines each has does not matter for what both find."""
    together = {
        round(1 - hit_ratios(replace(BASE, l1_bytes=64 * k, l2_bytes=64 * (10 - k))).misses[1], 12)
        for k in range(1, 10)
    }
    assert len(together) == 1


def test_lines_that_stay_are_found_more_often():
    """By other cores; one core alone had better not keep what it took."""
    for cores, better in ((28, "keep"), (1, "remove")):
        ratios = {hit: hit_ratios(replace(BASE, cores=cores, llc_hit=hit)).llc for hit in ("keep", "remove")}
        assert max(ratios, key=lambda hit: ratios[hit]) == better


@pytest.mark.parametrize("hit", ["keep", "remove"])
def test_slices_of_different_numbers_of_lines(hit):
    """What they find is between what they would all of the smaller and all of the larger number."""
    few, total, many = (
        hit_ratios(replace(BASE, llc_hit=hit, **fields)).llc
        for fields in ({}, {"whole_lines": "total"}, {"slice_bytes": 192})
    )
    assert total == pytest.approx(0.75 * few + 0.25 * many, rel=0.01)
    # Of a hundredth of all slices, and of lines in groups, the same.
    caches = {"popularity": law(10_000_064), "llc_hit": hit, "slices": 100}
    few, total, many = (
        hit_ratios(replace(BASE, **caches, slice_bytes=64 * 200 + more, whole_lines=whole)).llc
        for more, whole in ((0, "slice"), (32, "total"), (64, "slice"))
    )
    assert total == pytest.approx((few + many) / 2, rel=1e-5) and few < total < many


def test_slices():
    """More slices hold more; random requests go to each alike, consecutive ranks do not."""
    ratios = [hit_ratios(replace(BASE, slices=n)).llc for n in (1, 2, 4, 8, 16, 28)]
    assert all(a < b for a, b in pairwise(ratios))
    assert np.std(hit_ratios(replace(BASE, assignment="consecutive")).slice_shares) > 0


def test_a_large_catalogue_is_taken_in_groups():
    """Just below and just above the size at which lines are grouped the answer is the same."""
    caches = {"slice_bytes": 4096, "l1_bytes": 1024, "l2_bytes": 8192}
    below, above = (hit_ratios(LlcProcessor(popularity=law(n), **caches)) for n in (249_984, 10_000_064))
    assert below.misses[2] < above.misses[2]
    huge = hit_ratios(
        LlcProcessor(popularity=law(143_360_000), slice_bytes=2**20, l1_bytes=2**16, l2_bytes=2**19)
    )
    # Simulated: 0.0367, 0.0463 and 0.2359 of the requests are found in L1, L2 and the LLC; the model's error
    # in the LLC, 0.006, is that of its formula: it is as large where every line is taken for itself.
    assert huge.l1 == pytest.approx(0.0367, abs=0.001)
    assert huge.misses[0] - huge.misses[1] == pytest.approx(0.0463, abs=0.0015)
    assert huge.misses[1] - huge.misses[2] == pytest.approx(0.2359, abs=0.0065)
