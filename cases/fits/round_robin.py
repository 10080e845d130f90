"""A server that visits queues in turn and serves a limited number of jobs each time, job by job."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray


@cache
def _kernel() -> Any:
    from numba import njit

    @njit  # type: ignore[untyped-decorator]
    def serve(queue: Any, arrival: Any, service: Any, weight: Any, first: int) -> Any:
        """Return the waits of the jobs by queue, mean from job ``first`` on; jobs come in order."""
        jobs, queues = queue.size, weight.size
        following = np.full(jobs, -1)
        head, tail = np.full(queues, -1), np.full(queues, -1)
        total, count = np.zeros(queues), np.zeros(queues)
        now, come, waiting, at, left = 0.0, 0, 0, 0, weight[0]
        for _ in range(jobs):
            if waiting == 0 and come < jobs:
                now = max(now, arrival[come])
            while come < jobs and arrival[come] <= now:
                k = queue[come]
                if head[k] < 0:
                    head[k] = come
                else:
                    following[tail[k]] = come
                tail[k] = come
                come += 1
                waiting += 1
            while head[at] < 0 or left == 0:
                at = (at + 1) % queues
                left = weight[at]
            job = head[at]
            head[at] = following[job]
            if job >= first:
                total[at] += now - arrival[job]
                count[at] += 1
            now += service[job]
            waiting -= 1
            left -= 1
        return total / count

    return serve


def simulated_waits(
    rate: FloatArray, mean: FloatArray, scv: float, weight: Any, *, jobs: int, seed: int
) -> FloatArray:
    """Return the mean wait in each queue; services are constant (SCV 0) or exponential (1).

    >>> import numpy as np
    >>> one = np.array([0.25, 0.25])
    >>> simulated_waits(one, one * 4, 1.0, np.array([1, 1]), jobs=400_000, seed=0).round(1)
    array([1., 1.])
    """
    dice = np.random.default_rng(seed)
    arrival = dice.exponential(1 / rate.sum(), jobs).cumsum()
    queue = dice.choice(rate.size, jobs, p=rate / rate.sum())
    service = mean[queue] * (dice.exponential(1.0, jobs) if scv else 1.0)
    return np.asarray(_kernel()(queue, arrival, service, np.asarray(weight, dtype=np.int64), jobs // 10))
