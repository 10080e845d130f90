"""The description of a trace: known processes have their known numbers, and each warning its cause."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import qmodels as qm
from qmodels import read_trace
from qmodels.systems.traffic.trace_statistics import LEVEL
from qmodels.traffic import OnOff, Trace

TRACES = Path(os.environ.get("QMODELS_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
SIZES, SHARES = np.array([64, 576, 1518]), [0.6, 0.3, 0.1]


def traced(gaps, sizes=None, *, clock=0.0):
    times = np.cumsum(gaps)
    times = np.floor(times / clock) * clock if clock else times
    rng = np.random.default_rng(3)
    sizes = rng.choice(SIZES, times.size, p=SHARES) if sizes is None else sizes
    return Trace(times_ns=times, bytes=sizes, source="made")


def poisson(count=50_000, seed=1, mean=100.0):
    return np.random.default_rng(seed).exponential(mean, count)


def switching(count, hold, rng, low=0.4, high=1.6):
    """Times of a Poisson process whose rate switches after exponential times (MMPP)."""
    parts, now, total, state = [], 0.0, 0, 0
    while total < count:
        length = rng.exponential(hold)
        packets = rng.poisson((low, high)[state] * length)
        parts.append(now + np.sort(rng.random(packets)) * length)
        now, total, state = now + length, total + packets, 1 - state
    return np.concatenate(parts)[:count]


def heavy(rng, sources=20, until=60_000.0):
    """Times of sources with on and off periods of a Pareto law with a shape of 1.5."""
    parts = []
    for _ in range(sources):
        now = 0.0
        while now < until:
            on, off = 10 * (rng.pareto(1.5, 2) + 1)
            parts.append(now + rng.random(rng.poisson(2 / sources * on)) * on)
            now += on + off
    times = np.sort(np.concatenate(parts))
    return times[times < until]


def changed(gaps, factor=10):
    """The second half of the packets ten times slower."""
    return np.concatenate([gaps[: gaps.size // 2], factor * gaps[gaps.size // 2 :]])


def test_a_poisson_trace_has_the_numbers_of_poisson():
    found = qm.traffic.describe(traced(poisson()))
    assert found.packet_rate == pytest.approx(0.01, rel=0.02)
    assert found.gap_scv == pytest.approx(1, abs=0.04) and found.gap_distance < 0.008
    assert abs(found.gap_correlation) < 0.02 and max(map(abs, found.size_correlation)) < 0.02
    alike = sum(p * p for p in SHARES)
    assert found.train == pytest.approx(1 / (1 - alike), rel=0.02)
    assert found.train_alone == pytest.approx(1 / (1 - alike), rel=0.02)
    assert found.steadiness.steady and found.slowest_ns == found.statistics.scale_ns[0]
    # The count of a compound Poisson process: a relative variance of (1 + SCV) / n.
    one = 1.96 * np.sqrt((1 + found.size_scv) / 50_000)
    assert one < found.rate_error < 2 * one
    assert found.warnings() == [] and found.resolution_ns == 0


def test_the_interval_of_the_rate_covers_the_rate():
    """19 of 20 recordings of bursts have the true byte rate within their interval."""
    rng = np.random.default_rng(8)
    covered = []
    for _ in range(200):
        gaps = OnOff(on_packets=10, peak_to_mean=4).gaps(rng, 4000)
        found = traced(gaps, rng.choice(SIZES, 4000, p=SHARES)).description
        true = 8 * SIZES @ SHARES
        covered.append(abs(found.mean_gbps / true - 1) < found.rate_error)
    assert 0.9 <= np.mean(covered) <= 0.995


def test_the_tests_of_steadiness_keep_their_level_and_find_a_change():
    rng = np.random.default_rng(4)
    p = []
    for _ in range(300):
        tests = traced(rng.exponential(size=3000), rng.choice(SIZES, 3000, p=SHARES)).description.steadiness
        p.append((tests.windows_p, tests.halves_p))
    # 300 tests at 1 %: 3 expected, 11 or more in one of 8,000 such runs.
    assert (np.array(p) < LEVEL).sum(axis=0).max() <= 10
    assert np.quantile(np.array(p), 0.5, axis=0) == pytest.approx(0.5, abs=0.12)
    for gaps in (changed(poisson()), changed(poisson(), 1.15)):
        found = traced(gaps).description
        assert found.steadiness.steady is False
        assert found.steadiness.change < 0.95
        assert any(line.startswith("the rate changes: 20 windows have ") for line in found.warnings())


def test_bursts_shorter_than_a_block_are_no_change_and_longer_ones_are():
    rng = np.random.default_rng(5)
    short, long = switching(20_000, 5, rng), switching(20_000, 1000, rng)
    for times, steady in ((short, True), (long, False)):
        found = Trace(times_ns=times, bytes=np.full(times.size, 64), source="mmpp").description
        assert found.steadiness.steady is steady
        # I(t) levels off at 1 + 2 variance x hold / 2 of the rate: 1 + 0.36 x 5.
        if steady:
            assert found.statistics.packet_dispersion.max() == pytest.approx(1 + 0.36 * 5, rel=0.35)
            assert found.slowest_ns < found.statistics.scale_ns[-2]


def test_heavy_tailed_periods_do_not_level_off():
    times = heavy(np.random.default_rng(6))
    found = Trace(times_ns=times, bytes=np.full(times.size, 64), source="on/off").description
    assert np.isinf(found.slowest_ns)
    assert found.statistics.packet_dispersion[-1] > 3 * found.statistics.packet_dispersion[0]
    assert any("has not levelled off at the longest time scale" in line for line in found.warnings())


def test_trains_of_equal_sizes_are_counted():
    rng = np.random.default_rng(7)
    sizes = np.repeat(rng.choice([64, 1500], 5000), 4)
    found = traced(poisson(20_000), sizes).description
    assert found.train == pytest.approx(8, rel=0.05) and found.train_alone == pytest.approx(2, rel=0.01)
    assert found.size_correlation[:2] == pytest.approx((0.75, 0), abs=0.03)
    assert "8" in dict((row[0], row[3]) for row in found.rows())["size correlation"]


@pytest.mark.parametrize(
    ("trace", "limits", "said"),
    [
        (traced(poisson()), {"capacity_gbps": 20, "offered_gbps": 25},
         "the mean of 25 Gb/s is more than the 20 Gb/s that the design sustains"),
        (traced(changed(poisson())), {"capacity_gbps": 30, "offered_gbps": 20},
         "2 of 20 windows offer more than the 30 Gb/s that the design sustains"),
        (traced(poisson()), {"store_bytes": 1000},
         "10 % of the packets do not fit the store of 1000 bytes, the largest has 1518"),
        (traced(poisson(5000)), {}, "too short for a precision of 3 %: its byte rate alone is known within"),
        (traced(poisson(100)), {}, "too short for bursts over time scales to be seen: 100 packets"),
        (traced(poisson()), {"offered_gbps": 100, "times_ns": {"hold": 1e5}},
         "too short for the hold of 100 us"),
        (traced(poisson(), clock=100.0), {},
         "the clock is coarse: times are multiples of 100 ns, the mean gap is 99.99 ns and 37 %"),
        (traced(np.ravel([poisson(25_000), np.zeros(25_000)], order="F")), {},
         "50 % of the packets have the time of the one before: batches"),
    ],
)  # fmt: skip
def test_each_warning_has_its_cause(trace, limits, said):
    found = trace.description
    assert any(line.startswith(said) for line in found.warnings(**limits)), found.warnings(**limits)
    sound = traced(poisson()).description.warnings(offered_gbps=2, capacity_gbps=100, store_bytes=1e6)
    assert not any(line.startswith(said[:20]) for line in sound)


def test_windows_over_capacity_are_counted():
    found = traced(changed(poisson())).description
    share = found.statistics.byte_share
    for capacity in (15, 25, 35):
        over = int((share * 20 > capacity).sum())
        warning = found.warnings(offered_gbps=20, capacity_gbps=capacity)[0]
        limit = f"more than the {capacity} Gb/s that the design sustains"
        expected = (
            f"{over} of 20 windows offer {limit}" if capacity >= 20 else f"the mean of 20 Gb/s is {limit}"
        )
        assert warning.startswith(expected)
    assert "sustains" not in " ".join(found.warnings(offered_gbps=20, capacity_gbps=20 * share.max()))


def test_a_description_prints_in_every_form():
    found = traced(poisson(5000)).description
    for text in (repr(found), found._repr_html_()):
        assert "peak to mean" in text and "warning: too short for a precision" in text
    assert repr(found).startswith("Trace made: 5000 packets in ")
    assert "rate steady" in found.summary
    windows = dict((row[0], row[3]) for row in found.rows())["bytes by window"]
    assert windows == "mean 1: " + " ".join(f"{one:.2f}" for one in found.statistics.byte_share)
    said = found.to_dict()
    assert said["peak_to_mean"] == found.statistics.peak_to_mean and said["steady"] is True
    assert set(said["size_correlation"]) == {"1", "10", "100"}
    figure = found.plot()
    assert figure._repr_png_()[:4] == b"\x89PNG"  # a notebook shows it, pyplot imported or not
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0] == f"Rate over time: peak to mean {found.statistics.peak_to_mean:.2f}"
    heights = figure.axes[0].patches[1].get_data().values
    assert heights == pytest.approx(found.statistics.byte_share * found.mean_gbps)


@pytest.mark.parametrize("count", [2, 3, 11, 100])
@pytest.mark.filterwarnings("error")
def test_the_shortest_traces_are_described(count):
    for gaps in (np.ones(count), poisson(count)):
        found = Trace(times_ns=np.cumsum(gaps), bytes=np.full(count, 64), source="short").description
        assert found.steadiness.steady is None and "too short" in repr(found)
        assert found.train == count and found.plot().axes


def test_a_clock_is_steady_and_a_step_of_it_is_not():
    even = traced(np.full(20_000, 70.0), np.full(20_000, 64)).description
    assert even.steadiness.steady and even.resolution_ns == 10 and even.gap_scv == pytest.approx(0)
    assert traced(changed(np.full(20_000, 70.0)), np.full(20_000, 64)).description.steadiness.steady is False


def test_the_unit_of_time_and_of_size_does_not_matter():
    one = traced(poisson(5000))
    other = replace(one, times_ns=one.times_ns * 1000, bytes=one.bytes * 4).description
    for name in ("size_scv", "train", "gap_scv", "gap_distance", "rate_error"):
        assert getattr(other, name) == pytest.approx(getattr(one.description, name), rel=1e-6)
    assert other.steadiness.windows_p == pytest.approx(one.description.steadiness.windows_p, rel=1e-3)


@pytest.mark.skipif(not (TRACES / "BC-pAug89-100k.TL").is_file(), reason="the real traces are not here")
def test_the_bellcore_trace_is_long_range_dependent():
    found = read_trace(TRACES / "BC-pAug89-100k.TL").description
    assert np.isinf(found.slowest_ns) and found.resolution_ns == 1000
    slope = np.polyfit(*np.log([found.statistics.scale_ns, found.statistics.packet_dispersion]), 1)[0]
    assert slope == pytest.approx(2 * 0.8 - 1, abs=0.15)  # Hurst parameter of about 0.8 [Leland et al. 1994]
    assert found.size_correlation[0] == pytest.approx(0.4, abs=0.01)


@pytest.mark.skipif(
    not (TRACES / "libtrace-ip-in-mpls.pcap").is_file(), reason="the real traces are not here"
)
def test_a_capture_that_starts_idle_is_not_steady():
    found = read_trace(TRACES / "libtrace-ip-in-mpls.pcap").description
    assert found.steadiness.steady is False and found.steadiness.change > 100
