"""SRPT and foreground-background against event-by-event simulation."""

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.laws import Empirical, Exponential
from qmodels.queues import fb_response_time, lindley_waiting_times, mg1_fb, mg1_srpt, mxg1, srpt_response_time
from qmodels.queues.general.transient import mean_work, train_area

REPLICATIONS, JOBS = 20, 12_000
STUDENT = 3.883  # 99.9 % two-sided, 19 degrees of freedom


def srpt(arrivals, sizes):
    """Mean response time of one sample path that starts empty."""
    heap, total, now = [], 0.0, 0.0
    for arrival, size in zip(arrivals.tolist(), sizes.tolist(), strict=True):
        while heap:
            left, born = heap[0]
            if now + left > arrival:
                # Same key, smaller value: the head stays the head.
                heap[0] = (left - (arrival - now), born)
                break
            heapq.heappop(heap)
            now += left
            total += now - born
        now = arrival
        heapq.heappush(heap, (size, arrival))
    while heap:
        left, born = heapq.heappop(heap)
        now += left
        total += now - born
    return total / len(arrivals)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("law", ["exponential", "two sizes"])
def test_srpt_against_simulation(law):
    load = 0.7
    if law == "exponential":
        service, draw = Exponential(mean=1.0), lambda rng: rng.exponential(1.0, JOBS)
    else:
        service = Empirical(values=[0.5, 3.0], weights=[0.8, 0.2])
        draw = lambda rng: rng.choice([0.5, 3.0], JOBS, p=[0.8, 0.2])  # noqa: E731
    means = []
    for seed in range(REPLICATIONS):
        rng = np.random.default_rng(seed)
        means.append(srpt(np.cumsum(rng.exponential(1.0 / load, JOBS)), draw(rng)))
    half = STUDENT * np.std(means, ddof=1) / np.sqrt(REPLICATIONS)
    q = mg1_srpt(arrival_rate=load, service=service)
    assert half < 0.03 * np.mean(means)
    assert abs(np.mean(means) - q.mean_response_time) < half


def test_mean_over_the_sizes():
    law = Empirical(values=[0.5, 1.0, 2.0], weights=[0.3, 0.5, 0.2])
    for mean, by_size in ((mg1_srpt, srpt_response_time), (mg1_fb, fb_response_time)):
        responses = by_size(arrival_rate=0.7, service=law, size=[0.5, 1.0, 2.0])
        assert np.dot([0.3, 0.5, 0.2], responses) == pytest.approx(
            float(mean(arrival_rate=0.7, service=law).mean_response_time), rel=1e-12
        )
        assert np.all(np.diff(responses) > 0)


def test_small_jobs_get_through_an_overloaded_server():
    law = Exponential(mean=1.0)
    # The load of the jobs up to 1 is 1.2 (1 - 2/e) = 0.32, of all jobs 1.2.
    for by_size in (srpt_response_time, fb_response_time):
        responses = by_size(arrival_rate=1.2, service=law, size=[0.1, 1.0, 30.0])
        assert np.isfinite(responses[:2]).all() and responses[2] == np.inf
    assert not mg1_srpt(arrival_rate=1.2, service=law).stable


times = st.floats(0.0, 100.0)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=60))
def test_equals_the_recursion_step_by_step(pairs: list[tuple[float, float]]) -> None:
    services = [service for service, _ in pairs] + [1.0]
    gaps = [gap for _, gap in pairs]
    wait, expected = 0.0, [0.0]
    for service, gap in pairs:
        wait = max(wait + service - gap, 0.0)
        expected.append(wait)
    assert_allclose(lindley_waiting_times(interarrival_time=gaps, service_time=services), expected, atol=1e-9)


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
