"""Laws of hierarchies and victim caches; their errors against simulation are in tests/validate/cache."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.llc import copy_levels, exclusive_levels, hit_ratios, inclusive_levels
from qmodels.llc.hierarchy import lru_held
from qmodels.llc.victim import occupied_lines, victim_level
from qmodels.traffic import Zipf

laws = st.builds(
    lambda n, a: Zipf(entries=n, exponent=a).probabilities(), st.integers(60, 400), st.floats(0.2, 1.3)
)


def total(p, levels):
    return float(p @ (1.0 - np.prod(1.0 - levels, axis=0)))


@given(laws, st.integers(1, 25), st.integers(1, 25))
def test_exclusive_lru_depends_on_the_sum_only(p, first, second):
    one = np.ones(len(p))
    levels = exclusive_levels(popularity=p, count=one, cores=1, private=[first], shared=second)
    turned = exclusive_levels(popularity=p, count=one, cores=1, private=[second], shared=first)
    together = float(p @ hit_ratios(popularity=p, capacity=first + second))
    assert_allclose([total(p, levels), total(p, turned)], together, rtol=1e-6)
    private = exclusive_levels(popularity=p, count=one, cores=1, private=[first, second], shared=0)
    assert_allclose(total(p, private), together, rtol=1e-9)


@given(laws, st.integers(1, 8), st.integers(1, 20), st.integers(1, 40))
def test_more_of_the_shared_level_never_hurts(p, cores, private, shared):
    one = np.ones(len(p))
    for model in (copy_levels, exclusive_levels):
        small, large = (
            total(p, model(popularity=p, count=one, cores=cores, private=[private], shared=lines))
            for lines in (shared, shared + 10)
        )
        assert large >= small - 1e-7


@given(laws, st.integers(1, 20), st.integers(1, 40))
def test_copies_waste_room(p, first, second):
    one = np.ones(len(p))
    copy = copy_levels(popularity=p, count=one, cores=1, private=[first, second], shared=0)
    exclusive = exclusive_levels(popularity=p, count=one, cores=1, private=[first, second], shared=0)
    assert float(p @ copy[0]) - 1e-9 <= total(p, copy) <= total(p, exclusive) + 1e-9


def test_a_last_level_that_holds_everything():
    p = Zipf(entries=100, exponent=0.8).probabilities()
    one = np.ones(100)
    for levels in (
        copy_levels(popularity=p, count=one, cores=2, private=[10], shared=100),
        inclusive_levels(popularity=p, count=one, first=10, second=100),
    ):
        assert_allclose(total(p, levels), 1.0)
        assert_allclose(levels[0], hit_ratios(popularity=p, capacity=10))
    after = copy_levels(popularity=p, count=one, cores=1, private=[100, 100], shared=100)
    assert_allclose(after[0], 1.0)
    assert_allclose(after[1:], 0.0)
    # Nothing is ever a victim.
    after = exclusive_levels(popularity=p, count=one, cores=2, private=[60, 40], shared=[20, 30])
    assert_allclose(total(p, after), 1.0)
    assert_allclose(after[2], 0.0)


@given(laws, st.integers(5, 20), st.integers(30, 50))
def test_inclusion_costs_hits(p, first, second):
    one = np.ones(len(p))
    inclusive = inclusive_levels(popularity=p, count=one, first=first, second=second)
    copy = copy_levels(popularity=p, count=one, cores=1, private=[first], shared=second)
    assert p @ inclusive[0] <= p @ copy[0] + 1e-9


def test_groups_are_so_many_equal_lines():
    p, count = np.array([0.05, 0.02, 0.01]), np.array([4.0, 20.0, 40.0])
    each = np.repeat(p, count.astype(int))
    for model in (copy_levels, exclusive_levels):
        grouped = model(popularity=p, count=count, cores=3, private=[4], shared=12)
        single = model(popularity=each, count=np.ones(64), cores=3, private=[4], shared=12)
        assert_allclose(np.repeat(grouped, count.astype(int), axis=1), single, rtol=1e-6)


@given(laws, st.integers(2, 50))
def test_a_cache_is_full_and_one_line_is_the_last_asked_for(p, lines):
    for law, count in ((p, np.ones(len(p))), (p / 2, np.full(len(p), 2.0))):
        assert_allclose(count @ lru_held(law[None], count[None], lines)[0], lines, rtol=1e-6)
    assert_allclose(lru_held(p[None], np.ones((1, len(p))), 1)[0], p, rtol=1e-6)


rates = st.floats(1e-4, 20.0)


@given(rates, st.floats(0.01, 1.0), st.floats(0.01, 50.0), st.integers(0, 20))
def test_one_core_finds_what_it_pushed_in_time(rate, out, time, stages):
    hit, present, _ = victim_level(rate=np.array([rate]), out=out, cores=1, time=time, stages=stages)
    # Exp(rate) before an Erlang time of this mean, or a constant one.
    kept = 1 - (1 + rate * time / stages) ** -stages if stages else 1 - np.exp(-rate * time)
    assert_allclose(hit, kept, rtol=1e-3)
    assert_allclose(present, out * kept, rtol=1e-3)


@given(rates, st.integers(1, 300), st.floats(0.01, 100.0))
def test_without_private_caches_to_speak_of_events_are_a_coin(rate, cores, time):
    """A fetch is followed at once by its push: the level is an LRU cache of all requests."""
    hit, present, _ = victim_level(
        rate=np.array([rate / cores]), out=np.array([1 - 1e-9]), cores=cores, time=time
    )
    assert_allclose([hit[0], present[0]], 1 - np.exp(-rate * time), rtol=1e-3)


@given(rates, st.floats(0.05, 0.999), st.integers(2, 200), st.floats(0.01, 100.0))
def test_probabilities_and_order(rate, out, cores, time):
    a = np.array([rate / cores])
    hit, present, expired = victim_level(rate=a, out=out, cores=cores, time=time)
    longer, more, _ = victim_level(rate=a, out=out, cores=cores, time=2 * time)
    ever, most, never = victim_level(rate=a, out=out, cores=cores, time=np.inf)
    assert 0 <= hit <= longer + 1e-6 and longer <= ever + 1e-4 <= 1 + 1e-4
    assert 0 <= present <= more + 1e-6 and more <= most + 1e-4 and most <= 1
    assert 0 <= expired <= 1 and never == 0


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("cores", "out"), [(2, 0.3), (4, 0.9), (16, 0.97), (64, 0.982)])
def test_against_a_simulated_line(cores, out):
    """One line, its requests core by core; the level holds it until somebody fetches it."""
    dead = -np.log(out)  # of requests at rate 1
    rng = np.random.default_rng(0)
    requests = 400_000
    at = np.cumsum(rng.exponential(1 / cores, requests))
    who = rng.integers(0, cores, requests)
    last = np.full(cores, -np.inf)
    fetched, found = 0, 0
    # The last fetch or push is that of the latest push before now, or a fetch after it.
    last_fetch = -np.inf
    for now, core in zip(at, who, strict=True):
        if now - last[core] >= dead:
            pushes = last + dead
            latest = pushes[pushes <= now].max(initial=-np.inf)
            fetched += 1
            found += latest > last_fetch
            last_fetch = now
        last[core] = now
    hit, _, _ = victim_level(rate=np.ones(1), out=out, cores=cores, time=np.inf)
    assert_allclose(hit[0], found / fetched, atol=0.006)


def test_room_to_spare_and_none():
    around = {"usual": np.array([40.0]), "private": np.array([10.0]), "share": np.array([0.1])}
    spare = occupied_lines(
        lines=1000, held=np.array([40.0]), hit=np.array([0.5]), expired=np.array([0.0]), **around
    )
    assert_allclose(spare, 40.0, rtol=0.02)
    # Nothing is ever found: each victim takes its place at once.
    full = occupied_lines(
        lines=40, held=np.array([40.0]), hit=np.array([0.0]), expired=np.array([1.0]), **around
    )
    assert_allclose(full, 40.0)


def test_slices_side_by_side_are_as_full_as_each_alone():
    """A small one beside a large one, with and without room for what comes."""
    each = {
        "lines": np.array([3, 300]),
        "held": np.array([2.0, 250.0]),
        "usual": np.array([2.5, 260.0]),
        "private": np.array([10.0, 40.0]),
        "hit": np.array([0.3, 0.5]),
        "expired": np.array([0.1, 0.05]),
        "share": np.array([0.1, 0.9]),
    }
    together = occupied_lines(**each)
    for k in range(2):
        alone = occupied_lines(**{name: values[k : k + 1] for name, values in each.items()})
        assert_allclose(together[k], alone[0], rtol=1e-12)
