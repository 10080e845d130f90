"""Waits of streams that come in bursts or in batches, where two moments of the gaps do not tell enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf, isnan
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.streams import Added, PartAnswer, Queue, Stream
from qmodels.queues.general.gg1 import gg1_klb
from qmodels.queues.general.ggc import ggc_whitt
from qmodels.queues.general.mmpp_g1 import mmpp_g1_decay, mmpp_g1_waits
from qmodels.systems.laws.times import HyperExponential
from qmodels.systems.traffic.arrivals import interrupted_phases

LEAST_SHARE = 1e-9
"""Share of the jobs that come in bursts below which there are none."""
FULL = 1 - 1e-12
"""Load from which on a queue has no end."""
_HUGE = 1e200
_LEAST_OFFERED = 1e-9
_MANY = 4000
"""Jobs at servers at most that are followed one by one."""


def two_moments(rate: float, mean: float, scv: float, servers: int, arrival_scv: float) -> float:
    """Return the mean wait at a first come, first served station, by two moments of gaps and services."""
    found: Any
    if servers == 1:
        found = gg1_klb(arrival_rate=rate, mean_service_time=mean, service_scv=scv, arrival_scv=arrival_scv)
    else:
        found = ggc_whitt(
            arrival_rate=rate,
            mean_service_time=mean,
            servers=servers,
            service_scv=scv,
            arrival_scv=arrival_scv,
        )
    return float(found.mean_waiting_time)


def added_by_bursts(streams: Sequence[Stream], jobs: FloatArray, queue: Queue) -> dict[str, Added]:
    """Return the waits that the bursts of each flow add at a first come, first served queue.

    ``jobs``: those of each stream at the queue, whose ``own`` does not count [1/ns].

    Each flow as if all others were Poisson: the exact two-state MMPP/G/1 for gamma services. Several servers
    are a faster one, for whose bursts only so much of the wait is left as two moments say.
    """
    flows = list(dict.fromkeys(s.flow for s in streams if s.peak > 1))
    if not flows or queue.rate <= 0 or queue.rate * queue.mean >= queue.servers * FULL:
        return {}
    first = [next(s for s in streams if s.flow == name) for name in flows]
    own = np.array([sum(j for s, j in zip(streams, jobs, strict=True) if s.flow == name) for name in flows])
    own = np.minimum(own, queue.rate)
    closed = sum(j for s, j in zip(streams, jobs, strict=True) if s.closed)
    fast, peak, ends = queue.mean / queue.servers, *np.array([(s.peak, s.ends) for s in first]).T
    found = added_waits(
        others=queue.rate - own, rate=own, peak=peak, ends=ends, closed=closed,
        mean=np.full(own.shape, fast), square=np.full(own.shape, (1 + queue.scv) * fast**2),
    )  # fmt: skip
    left = np.ones(own.size)
    if queue.servers > 1:
        excess = 2 * own * peak / ends * (1 - 1 / peak) ** 2 * own / queue.rate
        left = np.array([_left_at_servers(queue, 1 + each) for each in excess.tolist()])
    columns = (each.tolist() for each in (left * found[0], left * found[1], found[2]))
    return {name: Added(*row) for name, row in zip(flows, zip(*columns, strict=True), strict=True)}


def added_waits(
    *,
    others: FloatArray,
    rate: FloatArray,
    peak: Any,
    ends: Any,
    mean: FloatArray,
    square: FloatArray,
    closed: float = 0.0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the waits that bursts add at servers, of themselves and of others, and the decay of the tail.

    Parameters as of `qmodels.queues.general.mmpp_g1.mmpp_g1_waits`; nothing where there are no bursts. Of
    ``others`` the jobs of ``closed`` flows make no tail longer: while they wait, no more of them come.
    """
    total = others + rate
    some = rate > LEAST_SHARE * total
    columns = np.broadcast_arrays(others, rate, peak, ends, mean, square)
    names = ("others", "rate", "peak", "ends", "mean", "square")
    jobs = {name: column[some] for name, column in zip(names, columns, strict=True)}
    own, beside, decay = np.zeros(total.shape), np.zeros(total.shape), np.full(total.shape, inf)
    if some.any():
        workload, wait = mmpp_g1_waits(**jobs)
        poisson = (total * square / (2 * np.maximum(1 - total * mean, 1 - FULL)))[some]
        own[some], beside[some] = np.maximum(wait - poisson, 0.0), np.maximum(workload - poisson, 0.0)
        decay[some] = mmpp_g1_decay(**jobs | {"others": np.maximum(jobs["others"] - closed, 0.0)})
    return own, beside, decay


def _left_at_servers(queue: Queue, scv: float) -> float:
    """Return the share of what bursts add at one fast server that they add at several, by two moments."""
    several, fast = (
        two_moments(queue.rate, queue.mean * servers / queue.servers, queue.scv, servers, scv)
        - two_moments(queue.rate, queue.mean * servers / queue.servers, queue.scv, servers, 1.0)
        for servers in (queue.servers, 1)
    )
    return min(max(several / fast, 0.0), 1.0) if fast > 0 else 1.0


def with_bursts(answer: PartAnswer, streams: tuple[Stream, ...], servers: float = 1.0) -> PartAnswer:
    """Return the answer of a part with what bursts add to it, its fullest resource taken for a queue.

    ``servers``: equal resources among which requests are spread.

    Each of the resources has its share of the requests, and of the bursts.
    """
    load = answer.intensity[""]
    issues = sum(s.rate for s in streams)
    if not any(s.peak > 1 for s in streams) or issues <= 0 or load >= FULL:
        return answer
    requests = np.array([s.request_rate for s in streams])
    units = max(servers * issues / max(float(requests.sum()), 1e-300), 1.0)
    jobs = requests * issues / max(float(requests.sum()), 1e-300) / units
    responses = []
    for stream, answered in zip(streams, answer.responses, strict=True):
        own = float(jobs[[s.flow == stream.flow for s in streams]].sum())
        wait = 0.0 if isnan(answered.alone_mean) else max(answered.mean - answered.alone_mean, 0.0)
        queue = Queue(issues / units, own, load / issues * units, 0.0, 1, wait, units)
        responses.append(replace(answered, queue=queue, added=added_by_bursts(streams, jobs, queue)))
    return replace(answer, responses=tuple(responses))


def bursts_of(scv: float, peak: float) -> HyperExponential:
    """Return the gaps of mean 1 of an interrupted Poisson process of an SCV and a peak rate above 1."""
    share, fast, slow = interrupted_phases((scv - 1) / (2 * (1 - 1 / peak) ** 2), peak)
    share = min(share, 1.0)  # of a peak next to 1 but for rounding
    return HyperExponential(probabilities=(share, 1 - share), means=(1 / fast, 1 / slow))


def wait_of_batches(*, rate: float, mean: float, servers: int, batch: FloatArray) -> float:
    r"""Return the mean wait of a job of M^X/M/c.

    ``rate``: jobs, less than the servers carry [1/ns]; ``mean``: of the services [ns]; ``batch``:
    probabilities of batches of 0, 1, 2, ... jobs.

    From level to level as many go up as down:
    :math:`\min(n+1, c)\,\mu\,p_{n+1} = \lambda \sum_{j \le n} p_j P(X > n - j)`. Exact.
    """
    offered = max(round(rate * mean, 12), _LEAST_OFFERED)
    return _wait_of_batches(offered, servers, tuple(batch.tolist())) * mean


@lru_cache(maxsize=4096)
def _wait_of_batches(offered: float, servers: int, batch: tuple[float, ...]) -> float:
    law = np.array(batch)
    law[0] = 0.0
    law /= law.sum()
    size = float(law @ np.arange(law.size))
    above = (1 - np.cumsum(law))[:-1][::-1]  # P(X > k) for the largest k first.
    if offered >= servers * FULL:
        return inf
    width = above.size
    levels = [1.0]
    total, queue = 1.0, 0.0
    for n in range(_MANY):
        recent = levels[-width:]
        up = offered / size * float(above[width - len(recent) :] @ recent)
        level = up / min(n + 1, servers)
        levels.append(level)
        total += level
        waiting = max(n + 1 - servers, 0) * level
        queue += waiting
        if level > _HUGE:  # only shares of the total matter
            levels = [each / level for each in levels[-width:]]
            total, queue, waiting = total / level, queue / level, waiting / level
        if n > servers + width and waiting < 1e-13 * queue:
            break
    return queue / total / offered
