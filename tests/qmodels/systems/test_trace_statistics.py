"""The description of a recorded stream: shares of windows by hand, indices of dispersion by law."""

import numpy as np
import pytest

from qmodels.systems.traffic.trace_statistics import BLOCKS, SCALE, WINDOWS, trace_statistics
from qmodels.traffic import Trace

SIZES = np.array([64, 576, 1500])


def poisson(rng, count, mean=1.0):
    times = np.cumsum(rng.exponential(mean, size=count))
    return times - times[0]


def test_shares_of_the_windows_by_hand():
    """Ten packets of 100 bytes in the first twentieth, one of 1000 in the last: nothing between."""
    trace = Trace(times_ns=[*range(10), 200], bytes=[100] * 10 + [1000], source="by hand")
    found = trace.statistics
    assert found.window_ns == 10
    assert found.packet_share == pytest.approx(np.array([20 * 10 / 11, *[0] * 18, 20 / 11]))
    assert found.byte_share == pytest.approx(np.array([10, *[0] * 18, 10]))
    assert found.peak_to_mean == 10


def test_a_poisson_stream_has_the_dispersion_of_poisson():
    """1 for packets and 1 + SCV of the sizes for bytes, at every scale, within four standard errors."""
    rng = np.random.default_rng(5)
    times, sizes = poisson(rng, 100_000), rng.choice(SIZES, 100_000)
    found = trace_statistics(times, sizes)
    blocks = times[-1] / found.scale_ns
    within = 4 * np.sqrt(2 / blocks + 1 / len(times))
    expected = 1 + sizes.var() / sizes.mean() ** 2
    assert (np.abs(found.packet_dispersion - 1) < within).all()
    # The fourth moment of a compound Poisson count adds to the error at the shortest scale.
    assert (np.abs(found.byte_dispersion / expected - 1) < 3 * within).all()
    assert np.abs(found.packet_share - 1).max() < 4 * np.sqrt(WINDOWS / len(times))


def test_packets_in_pairs_have_twice_the_dispersion():
    """Batches of n that come as a Poisson stream have index n [Cox and Lewis]."""
    times = np.repeat(poisson(np.random.default_rng(6), 50_000), 2)
    found = trace_statistics(times, np.full(times.size, 64))
    assert found.packet_dispersion[:5] == pytest.approx(2, rel=0.1)
    assert found.byte_dispersion == pytest.approx(found.packet_dispersion)


def test_a_rate_that_changes_shows_at_long_scales():
    """A rate of 20/11 and then 2/11 of the mean: var of the rate is (9/11)^2, so I(t) = 1 + (9/11)^2 t."""
    rng = np.random.default_rng(7)
    times = poisson(rng, 22_000)
    times = np.where(times < times[20_000], times, times[20_000] + 10 * (times - times[20_000]))
    found = trace_statistics(times, np.full(times.size, 64))
    scale = found.scale_ns / found.scale_ns[0]
    assert found.packet_dispersion == pytest.approx(1 + (9 / 11) ** 2 * scale, rel=0.2)
    assert found.packet_share[:9] == pytest.approx(20 / 11, rel=0.15)
    assert found.packet_share[-9:] == pytest.approx(2 / 11, rel=0.3)
    assert found.peak_to_mean == found.byte_share.max()


@pytest.mark.parametrize("count", [2, BLOCKS, BLOCKS + 1, BLOCKS * SCALE + 1, 1000])
def test_a_dispersion_needs_blocks(count):
    found = trace_statistics(np.arange(float(count)), np.full(count, 64))
    assert len(found.scale_ns) == len(found.packet_dispersion) == len(found.byte_dispersion)
    if count <= BLOCKS:
        assert len(found.scale_ns) == 0
    else:
        assert (count - 1) / (found.scale_ns[-1] * SCALE) < BLOCKS <= (count - 1) / found.scale_ns[-1]
    assert found.packet_share.sum() == pytest.approx(WINDOWS)


def test_time_and_size_scale_out():
    rng = np.random.default_rng(8)
    times, sizes = poisson(rng, 5000), rng.choice(SIZES, 5000)
    one, other = trace_statistics(times, sizes), trace_statistics(1000 * times, 4 * sizes)
    assert other.scale_ns == pytest.approx(1000 * one.scale_ns)
    assert other.packet_dispersion == pytest.approx(one.packet_dispersion, rel=1e-3)
    assert other.byte_dispersion == pytest.approx(one.byte_dispersion, rel=1e-3)
    assert other.byte_share == pytest.approx(one.byte_share)
