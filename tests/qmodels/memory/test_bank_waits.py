from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.memory.dram.bank_waits import in_order_banks, ready_first_banks
from qmodels.queues import mg1

loads = st.floats(0.01, 0.98)


@given(loads, st.floats(1, 20), st.floats(1, 2), st.integers(1, 64), st.floats(0, 1))
def test_two_slots_at_most_is_pollaczek_khinchine(load, burst, ratio, banks, hits):
    q = (1 - hits) / banks
    busy = burst * ratio
    mean, square = burst + q * (busy - burst), burst**2 + q * (busy**2 - burst**2)
    rate = load / mean
    found = in_order_banks(
        arrival_rate=rate, burst=burst, bank_busy=busy, banks=banks, row_hit_probability=hits
    )
    assert_allclose(found.max_rate, 1 / mean)
    assert_allclose(found.mean_waiting_time, rate * square / (2 * (1 - load)), rtol=1e-7)


@given(loads, st.sampled_from(["order", "ready"]), st.floats(1, 12), st.floats(0.1, 10))
def test_laws(load, kind, ratio, unit):
    solve = in_order_banks if kind == "order" else ready_first_banks
    here = {"burst": 4.0, "bank_busy": 4.0 * ratio, "banks": 8}
    top = solve(arrival_rate=0.0, **here).max_rate
    wait = solve(arrival_rate=load * top, **here)
    # Another unit of time changes times and nothing else.
    other = solve(arrival_rate=load * top / unit, burst=4.0 * unit, bank_busy=4.0 * ratio * unit, banks=8)
    assert_allclose(other.mean_waiting_time, wait.mean_waiting_time * unit, rtol=1e-6)
    assert_allclose(other.conflict_probability, wait.conflict_probability, rtol=1e-6)
    assert 0 <= wait.conflict_probability <= 1 and wait.utilization <= 1 + 1e-12
    # More load and slower banks mean longer waits; at least those of the bus alone.
    assert solve(arrival_rate=load * top * 0.9, **here).mean_waiting_time <= wait.mean_waiting_time
    bus = mg1(arrival_rate=load * top, mean_service_time=4.0, service_scv=0.0).mean_waiting_time
    assert wait.mean_waiting_time >= bus * (1 - 1e-9)


def test_free_banks_leave_the_bus():
    rate = np.array([0.0, 0.05, 0.2])
    for solve in (in_order_banks, ready_first_banks):
        found = solve(arrival_rate=rate, burst=4, bank_busy=4, banks=3).mean_waiting_time
        expected = rate * 16 / (2 * (1 - 4 * rate))
        assert_allclose(found, expected)


def test_largest_rates():
    # Gaps of 4, 8 and 12 cycles over 8 banks: a chain of three states, by hand.
    assert in_order_banks(arrival_rate=0, burst=4, bank_busy=12, banks=8).max_rate == pytest.approx(18 / 97)
    one = in_order_banks(arrival_rate=0, burst=4, bank_busy=74, banks=1)
    assert one.max_rate == pytest.approx(1 / 74)
    assert ready_first_banks(arrival_rate=0, burst=4, bank_busy=40, banks=8).max_rate == 0.2
    hits = in_order_banks(arrival_rate=0, burst=4, bank_busy=74, banks=8, row_hit_probability=1.0)
    assert hits.max_rate == pytest.approx(0.25)


def test_overload_is_infinite():
    for solve in (in_order_banks, ready_first_banks):
        found = solve(arrival_rate=[0.01, 0.3], burst=4, bank_busy=12, banks=8)
        assert np.isfinite(found.mean_waiting_time).tolist() == [True, False]
        assert found.utilization[1] == pytest.approx(4 * found.max_rate)
        assert 0 < found.conflict_probability[1] <= 1
