"""SRPT and foreground-background against event-by-event simulation."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from qmodels.laws import Empirical, Exponential
from qmodels.queues import fb_response_time, mg1_fb, mg1_srpt, srpt_response_time

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
