"""M/M/1/K, M/M/c/K and M/M/c/c: finite waiting room, arrivals to a full station are lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.libraries import special
from qmodels.numerics.digits import geometric_mean_index, geometric_sum, log_ratio
from qmodels.numerics.poisson import poisson_pmf
from qmodels.queues.load import load
from qmodels.queues.markovian.erlang import erlang_b_pair
from qmodels.queues.words import described
from qmodels.result import QueueResult

_BLOCK = 1 << 16  # terms summed in one array operation


def mmck_blocking(below: Any, erlang_b: Any, queue: Any, last: Any) -> Any:
    """Blocking probability of M/M/c/K; plain arithmetic.

    `below` is 1 - B with Erlang's loss formula B, `queue` the sum of rho^j over the K - c places
    and no wait (j = 0), `last` its last term; all may be scaled alike but `erlang_b`.
    """
    return erlang_b * last / (below + erlang_b * queue)


def mmck_waiting_time(lam: Any, admitted: Any, erlang_b: Any, queue: Any, mean_index: Any) -> Any:
    """Mean wait of the jobs that enter M/M/c/K; plain arithmetic.

    `admitted` is ``below + erlang_b * (queue - last)``, `mean_index` the mean of j under rho^j.
    """
    return erlang_b * queue * mean_index / (lam * admitted)


@described("gross2008, section 2.5", arrival_rate="offered", returns="entering")
def mmck(
    *,
    arrival_rate: npt.ArrayLike,
    service_rate: npt.ArrayLike,
    servers: npt.ArrayLike,
    capacity: npt.ArrayLike,
) -> QueueResult:
    r"""Steady state of M/M/c/K: c servers, at most K jobs in the system, the others are lost.

    Raises
    ------
    If an argument is out of range or the capacity below the number of servers.

    Notes
    -----
    With Erlang's loss formula :math:`B = B(c, \lambda/\mu)`, :math:`\rho = \lambda/(c\mu)` and
    :math:`m = K - c` places to wait,

    .. math:: P_K = \frac{B \rho^m}{1 + B \sum_{j=1}^m \rho^j}, \qquad
              W_q = \frac{P(N \ge c) \, \bar{n}_m(\rho)}{\lambda (1 - P_K)}

    where :math:`\bar{n}_m` is the mean of the geometric distribution on 0..m. Exact. The sums
    are in closed form, scaled by the larger end and free of cancellation at :math:`\rho = 1`,
    so that the cost grows with c only. Quantiles invert the exact tail numerically.

    Examples
    --------
    A memory controller with 2 banks and 8 entries, 1.8 requests offered per service time:

    >>> q = mmck(arrival_rate=1.8, service_rate=1, servers=2, capacity=8)
    >>> round(float(q.blocking_probability), 6), round(float(q.mean_waiting_time), 6)
    (0.076517, 1.166938)
    """
    q = load(arrival_rate, service_rate=service_rate, servers=servers)
    size = checks.count("capacity", capacity).astype(float)
    room, servers_ = np.broadcast_arrays(size, q.servers)
    if np.any(room < servers_):
        first = np.flatnonzero((room < servers_).ravel())[0]
        raise ValueError(
            f"capacity must be at least servers = {servers_.flat[first]:g}, got {room.flat[first]:g}"
        )
    lam, m1, c = q.arrival_rate, q.service_time, q.servers
    mu = np.asarray(service_rate, dtype=float)
    a = lam / mu
    places = size - c
    blocking, free = erlang_b_pair(a, c.astype(np.int64))
    x = log_ratio(lam, c * mu, q.idle * (c * mu))
    y = -np.abs(x)
    # Weights of the states relative to the larger end of the queue: its first state where
    # rho <= 1, its last where rho > 1.
    inner = geometric_sum(y, places)
    outer = np.exp(y) * inner
    edge = np.exp(y * places)
    over = x > 0
    below = free * np.where(over, edge, 1.0)
    admitted = below + blocking * np.where(over, outer, inner)
    total = below + blocking * (1 + outer)
    full = mmck_blocking(below, blocking, 1 + outer, np.where(over, 1.0, edge))
    some = np.where(lam > 0, lam, 1.0)
    wait = mmck_waiting_time(some, admitted, blocking, 1 + outer, geometric_mean_index(x, places))
    throughput = lam * (admitted / total)
    return QueueResult(
        model="M/M/c/K",
        arrival_rate=lam,
        throughput=throughput,
        utilization=np.minimum(q.intensity * (admitted / total), 1.0),
        mean_waiting_time=np.where(lam > 0, wait, 0.0),
        mean_service_time=m1,
        waiting_probability=blocking * np.where(over, outer, inner) / admitted,
        blocking_probability=full,
        number_pmf=partial(_number_pmf, a, c, size, x, below / total, blocking / total),
        waiting_tail=partial(_waiting_tail, mu, c, x, places, blocking / admitted),
        response_tail=partial(_response_tail, mu, c, x, places, below / admitted, blocking / admitted),
    )


@described("gross2008, section 2.5", arrival_rate="offered")
def mm1k(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike, capacity: npt.ArrayLike) -> QueueResult:
    r"""Steady state of M/M/1/K: `mmck` with one server.

    Returns
    -------
    As `mmck`.

    Notes
    -----
    .. math:: P_K = \frac{(1 - \rho) \rho^K}{1 - \rho^{K+1}}.

    Exact, also at :math:`\rho = 1`.

    Examples
    --------
    >>> q = mm1k(arrival_rate=1, service_rate=1, capacity=9)
    >>> round(float(q.blocking_probability), 12), round(float(q.mean_number_in_system), 12)
    (0.1, 4.5)
    """
    result = mmck(arrival_rate=arrival_rate, service_rate=service_rate, servers=1, capacity=capacity)
    return replace(result, model="M/M/1/K")


@described("cooper1981, chapter 3.3", arrival_rate="offered")
def mmcc(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike, servers: npt.ArrayLike) -> QueueResult:
    r"""Steady state of M/M/c/c, Erlang's loss system: no place to wait.

    Returns
    -------
    As `mmck`; waiting times are 0 and the blocking probability is `erlang_b`.

    Notes
    -----
    Exact; `mgcc` has the same for any service-time distribution.

    Examples
    --------
    >>> q = mmcc(arrival_rate=5, service_rate=1, servers=10)
    >>> round(float(q.blocking_probability), 6), round(float(q.utilization), 6)
    (0.018385, 0.490808)
    """
    result = mmck(arrival_rate=arrival_rate, service_rate=service_rate, servers=servers, capacity=servers)
    return replace(result, model="M/M/c/c")


def _number_pmf(
    a: FloatArray,
    c: FloatArray,
    size: FloatArray,
    x: FloatArray,
    below: FloatArray,
    end: FloatArray,
    n: FloatArray,
) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        some_idle = below * poisson_pmf(n, a) / special.gammaincc(c, a)
    # Under a load so large that the Poisson tail underflows, these states carry nothing.
    some_idle = np.where(np.isfinite(some_idle), some_idle, 0.0)
    queue = end * _state_weight(x, np.clip(n - c, 0, size - c), size - c)
    return np.where(n < c, some_idle, np.where(n <= size, queue, 0.0))


def _state_weight(x: FloatArray, j: FloatArray, places: FloatArray) -> FloatArray:
    """Return rho^j relative to the larger end of 0..places."""
    return np.exp(np.where(x > 0, x * (j - places), x * j))


def _waiting_tail(
    mu: FloatArray, c: FloatArray, x: FloatArray, places: FloatArray, end: FloatArray, t: FloatArray
) -> FloatArray:
    return end * _sum_over_queue(lambda j, c, work: special.gammaincc(j + 1, work), c, c * mu * t, x, places)


def _response_tail(
    mu: FloatArray,
    c: FloatArray,
    x: FloatArray,
    places: FloatArray,
    at_once: FloatArray,
    end: FloatArray,
    t: FloatArray,
) -> FloatArray:
    late = _sum_over_queue(_erlang_and_exponential, c, c * mu * t, x, places)
    return at_once * np.exp(-mu * t) + end * late


def _erlang_and_exponential(j: FloatArray, c: FloatArray, work: FloatArray) -> FloatArray:
    """Tail of j + 1 stages of rate c and one of rate 1, at time work / c."""
    stages, others = j + 1, np.maximum(c - 1, 1)
    done = special.gammainc(stages, others * (work / c))
    with np.errstate(divide="ignore"):
        log_weight = np.log(done) + stages * np.log(c / others) - work / c
    several = special.gammaincc(stages, work) + np.exp(log_weight)
    return np.where(c > 1, several, special.gammaincc(stages + 1, work))


def _sum_over_queue(
    term: Callable[..., FloatArray], c: FloatArray, work: FloatArray, x: FloatArray, places: FloatArray
) -> FloatArray:
    """Sum ``term(j, c, work)`` over the jobs j = 0 .. places - 1 that an admitted one finds waiting."""
    shape = np.broadcast_shapes(*(np.shape(v) for v in (c, work, x, places)))
    c, work, x, places = (np.broadcast_to(v, shape).reshape(-1, 1) for v in (c, work, x, places))
    total = np.zeros(len(c))
    # Where rho < 1 the weights vanish long before a large waiting room ends.
    ends = np.where(x < 0, np.minimum(places, np.ceil(745 / np.maximum(-x, 1e-300))), places)
    block = max(1, _BLOCK // max(1, len(total)))
    for start in range(0, int(ends.max(initial=0)), block):
        j = np.arange(start, start + block, dtype=float)
        inside = j < places
        weight = np.where(inside, _state_weight(x, np.minimum(j, places), places), 0.0)
        total += (weight * term(j, c, work)).sum(axis=1)
    return total.reshape(shape)
