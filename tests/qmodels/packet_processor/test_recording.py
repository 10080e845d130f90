"""Packets of a recorded trace that are followed: the same ones whatever packet the recording begins with."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest

import qmodels as qm
from qmodels import Workload
from qmodels.packet_processor.following import recording
from qmodels.packet_processor.following.recording import AROUND, ENOUGH, LEAST_LEAD, replayed, rotation
from qmodels.traffic import Trace


def trace(gaps: Any, sizes: Any) -> Trace:
    return Trace(times_ns=np.cumsum(gaps), bytes=sizes, source="test")


def bursts(count: int = 3000, turned: int = 0) -> Trace:
    """Return packets of which a fifth comes five times as fast as the others, turned by so many."""
    rng = np.random.default_rng(4)
    gaps = rng.exponential(size=count) * np.where(np.arange(count) % 1000 < 200, 20.0, 100.0)
    sizes = rng.choice([64, 594, 1518], size=count)
    gaps[0] = gaps.mean()  # what is not recorded
    gaps, sizes = np.roll(gaps, -turned), np.roll(sizes, -turned)
    return trace(gaps, sizes)


@pytest.mark.parametrize("turned", [1, 700, 2100])
def test_the_first_packet_of_a_recording_does_not_matter(turned: int) -> None:
    found, other = (
        qm.solve(qm.PacketProcessor(workload=Workload.from_trace(t, offered_gbps=np.array([20.0, 50.0]))))
        for t in (bursts(), bursts(turned=turned))
    )
    assert found.stable.all() and (found.packet_latency[1] > 1.2 * found.packet_latency[0])
    for name in found.metrics:
        assert_allclose(other[name], found[name], rtol=0.02, err_msg=name)


@given(turned=st.integers(0, 999))
def test_what_is_drawn_for_a_packet_follows_from_those_around_it(turned: int) -> None:
    one, other = rotation(bursts(1000), 64), rotation(bursts(1000, turned), 64)
    # But for those at which the two recordings begin, where a gap is not recorded.
    both = np.intersect1d(one.keys, other.keys)
    assert np.unique(one.keys).size == 1000 and both.size >= 1000 - 2 * (2 * AROUND + 2)


def test_packets_that_are_all_alike_have_draws_of_their_own() -> None:
    found = rotation(trace(np.full(5000, 7.0), np.full(5000, 64)), 64)
    assert np.unique(found.keys).size == 5000
    rows = [*found.drawn, *(1 - np.exp(-row) for row in (found.hold, *found.spread))]
    for row in rows:
        assert kstest(row, "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(row[:-1], row[1:])[0, 1]) < 0.06
    assert np.abs(np.corrcoef(rows) - np.eye(8)).max() < 0.06


@given(gaps=st.lists(st.integers(0, 20), min_size=3, max_size=40), load=st.floats(0.05, 1.0))
def test_a_rotation_begins_where_a_queue_is_empty_at_any_load(gaps: list[int], load: float) -> None:
    sizes = 64 * (1 + np.arange(len(gaps)) % 5)
    found = rotation(trace(np.append(gaps, 1.0), np.append(sizes, 64)), 64)
    count = found.times.size
    work = load * found.segments / found.segments.mean()
    between = np.append(count - found.times[-1], np.diff(found.times))
    wait, waits = 0.0, []
    for k in range(2 * count):
        at = k % count
        wait = max(wait + (work[at - 1] if k else 0.0) - between[at], 0.0)
        waits.append(wait)
    assert waits[0] == 0.0
    # The second rotation is like the first: nothing of it is left at its end.
    assert_allclose(waits[count:], waits[:count], atol=1e-9)
    assert_allclose(recording._waits(between, work), waits[:count], atol=1e-9)


@pytest.mark.parametrize(("count", "hold", "rounds"), [(1000, 3.0, 12), (ENOUGH, 100.0, 1), (100, 1e9, 120)])
def test_rotations_are_led_in_by_their_end(count: int, hold: float, rounds: int) -> None:
    whole = rotation(bursts(count), 64)
    found = replayed(whole, hold)
    assert found.times.size - found.lead == rounds * count
    assert found.lead == min(int(5 * hold) + LEAST_LEAD, rounds * count)
    for one in (found.segments, found.hold, *found.drawn, *found.spread):
        assert_array_equal(one[: found.lead], one[rounds * count :])
    assert_allclose(np.diff(found.times[: found.lead]), np.diff(found.times[rounds * count :]), atol=1e-9)
    assert_allclose(np.diff(found.times[found.lead : found.lead + count]), np.diff(whole.times), atol=1e-6)
    gaps = np.diff(found.times[found.lead - 1 :])  # the first of them parts two rotations
    assert gaps.sum() == pytest.approx(rounds * count)
    if rounds > 1:  # each with other holds
        holds = found.hold[found.lead :].reshape(rounds, count)
        assert np.unique(holds).size == rounds * count
    late, doubles = found.late(hold)
    assert_array_equal(found.hold[late], found.hold[doubles])
    assert (late >= found.lead).all() and (doubles < found.lead).all()
    assert ((found.times[late] + hold * found.hold[late]) > found.times[-1]).all()


def test_of_a_long_recording_the_busiest_blocks_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = bursts(3000), np.random.default_rng(6).exponential(100.0, size=17_000)
    every = trace(np.append(np.diff(few.times_ns), many), np.append(few.bytes[1:], np.full(17_000, 594)))
    whole = qm.solve(qm.PacketProcessor(workload=Workload.from_trace(every)))
    monkeypatch.setattr(recording, "LONGEST", 8_000)
    rotation.cache_clear()
    try:
        found = rotation(every, 64)
        assert 6_000 < found.picked.size < 10_000 and (np.diff(found.picked) > 0).all()
        assert found.weight.sum() == pytest.approx(19_999) and found.weight.min() == 1.0
        waits = recording._waits(
            np.append(1.0, np.diff(found.times)), 0.7 * found.segments / found.segments.mean()
        )
        assert (found.weight == 1.0)[waits[found.picked] > np.quantile(waits, 0.99)].mean() > 0.9
        part = qm.solve(qm.PacketProcessor(workload=Workload.from_trace(every)))
    finally:
        rotation.cache_clear()
    assert any("of the trace's 19999 packets are followed" in words for words in part.doubts)
    assert not part.validated and not any("packets are followed" in words for words in whole.doubts)
    # Eight of the 24 calm blocks are a small sample; without the bursts the mean would be half as large.
    assert_allclose(part.packet_latency, whole.packet_latency, rtol=0.05)
    assert_allclose(part.packet_latency_p99, whole.packet_latency_p99, rtol=0.1)
