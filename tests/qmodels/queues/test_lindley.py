from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.queues import lindley_waiting_times

times = st.floats(0.0, 100.0)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.tuples(times, times), min_size=1, max_size=60))
def test_equals_the_recursion_step_by_step(pairs: list[tuple[float, float]]) -> None:
    services = [service for service, _ in pairs] + [1.0]
    gaps = [gap for _, gap in pairs]
    wait, expected = 0.0, [0.0]
    for service, gap in pairs:
        wait = max(wait + service - gap, 0.0)
        expected.append(wait)
    assert_allclose(lindley_waiting_times(interarrival_time=gaps, service_time=services), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("gaps", "services", "message"),
    [
        ([1.0], [1.0], r"one entry fewer than service_time, got shapes \(1,\) and \(1,\)"),
    ],
)
def test_nonsense(gaps: list[float], services: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lindley_waiting_times(interarrival_time=gaps, service_time=services)
