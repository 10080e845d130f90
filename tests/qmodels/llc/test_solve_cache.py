"""Systems of caches: against simulation, against exact caches slice by slice, and how far validated."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels import CacheLevel, CacheSystem, read_trace, solve
from qmodels.llc import slice_shares
from qmodels.systems.cache.spec import INCLUSIONS, slice_of
from qmodels.traffic import MeasuredPopularity, Zipf
from tests.qmodels.llc.exact_lru import exact_lru_hit_ratios
from validate import simulate

LINES = Zipf(entries=1500, exponent=0.8)


def system(inclusion: str, slices: int) -> CacheSystem:
    alone = inclusion == "inclusive"
    return CacheSystem(
        popularity=LINES,
        cores=1 if alone else 8,
        private=(CacheLevel(lines=40),) if alone else (CacheLevel(lines=10), CacheLevel(lines=40)),
        shared=CacheLevel(lines=400, slices=slices, hashing="mixed"),
        inclusion=inclusion,
    )


@pytest.mark.in_ci(2)
@pytest.mark.parametrize("slices", [1, 4])
@pytest.mark.parametrize("inclusion", INCLUSIONS)
def test_every_level_finds_what_the_simulator_finds(inclusion, slices):
    """Measured: within 0.9 points of what reaches a level."""
    spec = system(inclusion, slices)
    answer, known = solve(spec), simulate(spec, requests=200_000, replications=2)
    missed = 1.0
    for name in spec.level_names:
        found = answer.metrics[f"hit_ratio[{name}]"]
        assert found == pytest.approx(known.metrics[f"hit_ratio[{name}]"].best, abs=0.012)
        missed *= 1 - found
    assert answer.miss_ratio == pytest.approx(missed, rel=1e-9)
    assert answer.hit_ratio == pytest.approx(1 - missed, rel=1e-9)
    if slices > 1:
        assert_allclose(answer.slice_shares.sum(), 1.0)
        assert answer.slice_imbalance == pytest.approx(answer.slice_shares.max() / 0.25)
        assert f"busiest slice {answer.slice_imbalance:.3f} of the mean" in repr(answer)
    else:
        assert answer.slice_imbalance == 1.0 and "busiest" not in repr(answer)


def test_slices_are_caches_of_their_own():
    """Each of those lines that go to it; the larger ones first. Measured: within 0.1 points."""
    popularity = Zipf(entries=120, exponent=0.8)
    level = CacheLevel(lines=22, slices=4, hashing="modulo")
    p, exact = popularity.probabilities(), 0.0
    for number, lines in enumerate((6, 6, 5, 5)):
        own = p[slice_of(np.arange(120), slices=4, hashing="modulo") == number]
        exact += own @ exact_lru_hit_ratios(popularity=own / own.sum(), capacity=lines)
    answer = solve(CacheSystem(popularity=popularity, shared=level))
    assert answer.hit_ratio == pytest.approx(exact, abs=2e-3)


def test_slices_share_all_requests():
    p = Zipf(entries=1000, exponent=1.0).probabilities()
    for hashing in ("modulo", "xor", "mixed"):
        shares = slice_shares(popularity=p, slices=8, hashing=hashing)
        assert_allclose(shares.sum(), 1.0)
        assert shares.shape == (8,)
        assert slice_shares(popularity=p, slices=1, hashing=hashing) == pytest.approx([1.0])


def test_nonsense():
    with pytest.raises(ValueError, match="slices must be a power of two for XOR hashing, got 3"):
        slice_shares(popularity=[1.0], slices=3, hashing="xor")


TRACES = Path(os.environ.get("QMODELS_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
CAPTURE = TRACES / "libtrace-ip-in-mpls.pcap"


@pytest.mark.skipif(not CAPTURE.exists(), reason="no capture")
def test_flows_of_a_capture():
    flows = read_trace(CAPTURE).flows
    law = MeasuredPopularity.from_keys(flows)
    assert law.entries == len(np.unique(flows)) and sum(law.counts) == len(flows)
    p = law.probabilities()
    for lines in (2, 4):
        answer = qm.solve(qm.CacheSystem(popularity=law, shared=CacheLevel(lines=lines)))
        # Few flows: characteristic times are coarse.
        assert_allclose(answer.hit_ratio, p @ exact_lru_hit_ratios(popularity=p, capacity=lines), atol=0.02)


def test_a_trace_without_flows():
    with pytest.raises(ValueError, match="keys must name what was wanted, got None: a trace without addr"):
        MeasuredPopularity.from_keys(None)
