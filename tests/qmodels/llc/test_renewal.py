from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.llc.renewal import miss_gap


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.floats(0.01, 20.0), st.floats(0.0, 200.0), st.floats(0.0, 20.0))
def test_a_survival_function_and_its_integral(load, time, step):
    survival, integral = miss_gap(rate=load, dead_time=1.0, time=np.array([time, time + step]))
    assert 0 <= survival[1] <= survival[0] + 1e-6 <= 1 + 1e-6
    assert survival[1] * step - 1e-5 <= integral[1] - integral[0] <= survival[0] * step + 1e-5


@pytest.mark.parametrize("load", [0.01, 0.3, 1.0, 2.0, 6.0])
def test_mean_gap_is_one_over_the_rate_of_misses(load):
    _, integral = miss_gap(rate=load, dead_time=1.0, time=1e6)
    assert_allclose(integral, np.exp(load) / load, rtol=1e-6)


@pytest.mark.parametrize(("load", "time"), [(0.1, 60.0), (0.9, 5.0), (1.0, 3.3), (2.0, 30.0), (5.0, 300.0)])
def test_against_drawn_gaps(load, time):
    """200,000 chains of exponential gaps up to the first above the dead time: four standard errors."""
    rng = np.random.default_rng(3)
    total = np.zeros(200_000)
    alive = np.arange(total.size)
    while alive.size:
        gap = rng.exponential(1.0 / load, alive.size)
        total[alive] += gap
        alive = alive[gap <= 1.0]
    survival, integral = miss_gap(rate=load, dead_time=1.0, time=time)
    above = total > time
    assert abs(above.mean() - survival) <= 4 * np.sqrt(survival * (1 - survival) / total.size) + 1e-5
    capped = np.minimum(total, time)
    assert abs(capped.mean() - integral) <= 4 * capped.std() / np.sqrt(total.size) + 1e-5
