from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.queues import mxg1
from qmodels.queues.general.paced import mean_work, train_area

checks = settings(derandomize=True, deadline=None, max_examples=60)


def area_by_integration(count: int, service: float, spacing: float, first_extra: float) -> float:
    """Work as a broken line, integrated piece by piece."""
    work = total = 0.0
    for j in range(count):
        work += service + (first_extra if j == 0 else 0.0)
        gap = spacing if j < count - 1 else np.inf
        drained = min(work, gap)
        total += drained * (work + (work - drained)) / 2
        work -= drained
    return total


@checks
@given(st.integers(1, 30), st.floats(0.5, 20), st.floats(0, 40), st.floats(0, 60))
def test_area_of_a_train(count: int, service: float, spacing: float, first_extra: float) -> None:
    area = train_area(
        count=count, count_square=count**2, service=service, spacing=spacing, first_extra=first_extra
    )
    assert_allclose(area, area_by_integration(count, service, spacing, first_extra), rtol=1e-9)


def test_jobs_that_come_together_are_a_batch_queue() -> None:
    """The work a Poisson train finds is the wait of the first of its jobs in M^[X]/D/1."""
    rate, count, service = 0.01, 5, 10.0
    area = train_area(count=count, count_square=count**2, service=service, spacing=0.0, first_extra=0.0)
    work = mean_work(train_rate=rate, area=area, intensity=rate * count * service, burst=0.0)
    batch = mxg1(
        arrival_rate=rate, batch_mean=count, batch_scv=0.0, mean_service_time=service, service_scv=0.0
    )
    assert_allclose(work, batch.mean_waiting_time - (count - 1) / 2 * service)


def test_overload() -> None:
    loads = ((0.05, 0.5), (0.1, 1.0), (0.2, 2.0))
    work = [mean_work(train_rate=rate, area=50.0, intensity=load, burst=0.0) for rate, load in loads]
    assert_allclose(work, [5.0, np.inf, np.inf])
