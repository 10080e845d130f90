"""Arrival processes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from qmodels.traffic import OnOff, Poisson, Recorded, SizeLaw, Trace


def gap_moment(on_packets: float, peak: float, order: int) -> float:
    """Moment of the gap from the generator of the modulating chain: after an arrival the source is ON."""
    mean_on = on_packets / peak  # so many packets at the peak rate
    mean_off = mean_on * (peak - 1)  # so that the source is ON for 1/peak of the time
    silent = np.array([[-(peak + 1 / mean_on), 1 / mean_on], [1 / mean_off, -1 / mean_off]])
    power = np.linalg.matrix_power(np.linalg.inv(-silent), order)
    return float(np.array([1.0, 0.0]) @ power @ np.ones(2)) * (1, 1, 2)[order]


@given(on_packets=st.floats(1, 1e3), peak=st.floats(1.05, 50))
def test_gaps_have_the_moments_of_the_modulated_process(on_packets: float, peak: float) -> None:
    law = OnOff(on_packets=on_packets, peak_to_mean=peak)
    probability, fast, slow = law.phases
    assert 0 <= probability <= 1 and fast >= slow > 0
    # Measured over 20,000 laws: 4e-13 for the phases, 2e-15 for the closed form of the scv.
    assert_allclose(gap_moment(on_packets, peak, 1), 1, rtol=1e-13)
    assert_allclose(probability / fast + (1 - probability) / slow, 1, rtol=2e-12)
    second = gap_moment(on_packets, peak, 2)
    assert_allclose(2 * (probability / fast**2 + (1 - probability) / slow**2), second, rtol=2e-12)
    assert_allclose(law.scv, second - 1, rtol=1e-13)


@pytest.mark.parametrize("law", [Poisson(), OnOff(on_packets=5, peak_to_mean=3)])
def test_generated_gaps_follow_the_law(law: Poisson | OnOff) -> None:
    gaps = law.gaps(np.random.default_rng(11), 100_000)
    probability, fast, slow = law.phases if isinstance(law, OnOff) else (1.0, 1.0, 1.0)

    def distribution(t: np.ndarray) -> np.ndarray:
        return 1 - probability * np.exp(-fast * t) - (1 - probability) * np.exp(-slow * t)

    assert stats.kstest(gaps, distribution).pvalue > 1e-3
    assert abs(gaps.mean() - 1) < 5 * np.sqrt(law.scv / gaps.size)


def test_burstiness_may_be_a_sweep() -> None:
    law = OnOff(on_packets=np.array([1.0, 10.0]), peak_to_mean=2.0)
    singles = [OnOff(on_packets=n, peak_to_mean=2.0) for n in (1.0, 10.0)]
    assert_allclose(law.scv, [one.scv for one in singles], rtol=1e-15)
    assert_allclose(np.array(law.phases), np.array([one.phases for one in singles]).T, rtol=1e-15)


def test_recorded_arrivals_report_their_trace() -> None:
    trace = Trace(times_ns=np.array([0, 1, 4]), bytes=np.array([64, 64, 1500]), source="by hand")
    recorded = Recorded(trace=trace)
    assert recorded.scv == pytest.approx(0.25)  # gaps 1 and 3: variance 1, mean 2
    assert recorded.sizes == SizeLaw(bytes=(64, 1500), probability=(2 / 3, 1 / 3))
    same = Trace(times_ns=trace.times_ns + 7, bytes=trace.bytes, source="elsewhere")
    assert recorded == Recorded(trace=same) and hash(recorded) == hash(Recorded(trace=same))


def test_poisson_has_scv_one_and_repeats_with_the_seed() -> None:
    assert Poisson().scv == 1.0
    assert_array_equal(
        Poisson().gaps(np.random.default_rng(2), 9), Poisson().gaps(np.random.default_rng(2), 9)
    )
