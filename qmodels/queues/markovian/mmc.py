"""M/M/1, M/M/c and M/M/inf: unlimited waiting room, exponential service."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.libraries import special
from qmodels.numerics.poisson import poisson_pmf
from qmodels.queues.distributions import (
    exponential_law,
    exponential_wait_response_tail,
    geometric_pmf,
    poisson_number,
)
from qmodels.queues.load import load
from qmodels.queues.markovian.erlang import erlang_b_pair, erlang_c_from_b
from qmodels.queues.words import described
from qmodels.result import QueueResult


def mm1_waiting_time(rho: Any, spare_rate: Any) -> Any:
    """Mean wait of M/M/1 from ``rho = lam / mu`` and ``mu - lam``; plain arithmetic."""
    return rho / spare_rate


def mmc_waiting_time(m1: Any, servers: Any, waiting_probability: Any, idle: Any) -> Any:
    """Mean wait of M/M/c from Erlang's delay probability, ``idle = 1 - rho``; plain arithmetic."""
    return waiting_probability * m1 / (servers * idle)


@described("kleinrock1975, section 3.2", returns="tails")
def mm1(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike) -> QueueResult:
    r"""Steady state of the M/M/1 queue, first come first served.

    Notes
    -----
    .. math:: W_q = \frac{\rho}{\mu - \lambda}, \quad P(W > t) = \rho e^{-(\mu-\lambda)t}, \quad
              P(T > t) = e^{-(\mu-\lambda)t}, \quad P(N = n) = (1 - \rho) \rho^n.

    Exact.

    Examples
    --------
    A port serves 0.5 packets per cycle and gets 0.4:

    >>> q = mm1(arrival_rate=0.4, service_rate=0.5)
    >>> round(float(q.mean_response_time), 6), round(float(q.response_time_quantile(0.99)), 4)
    (10.0, 46.0517)
    """
    q = load(arrival_rate, service_rate=service_rate)
    # A rate of 0 where overloaded makes every time infinite.
    spare_rate = np.where(q.stable, np.asarray(service_rate, dtype=float) - q.arrival_rate, 0.0)
    rho = q.utilization
    with np.errstate(divide="ignore"):
        wait = mm1_waiting_time(rho, spare_rate)
        square = (1 / spare_rate) ** 2
    return q.result(
        "M/M/1",
        wait,
        waiting_probability=rho,
        waiting_time_variance=(2 - rho) * rho * square,
        response_time_variance=square,
        number_pmf=partial(geometric_pmf, rho, np.maximum(q.idle, 0.0)),
        **exponential_law("waiting", rho, spare_rate),
        **exponential_law("response", np.ones(()), spare_rate),
    )


@described("gross2008, section 2.3")
def mmc(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike, servers: npt.ArrayLike) -> QueueResult:
    r"""Steady state of the M/M/c queue, first come first served.

    Returns
    -------
    Arrays of the broadcast shape of the inputs. Where :math:`\lambda \ge c\mu` no steady
    state exists: waiting time is ``inf``, utilization 1, throughput :math:`c\mu`.

    Notes
    -----
    With :math:`a = \lambda/\mu` and Erlang's delay formula :math:`C(c, a)`, see `erlang_c`,

    .. math:: W_q = \frac{C(c, a)}{c\mu - \lambda}, \qquad P(W > t) = C(c, a) e^{-(c\mu-\lambda)t}.

    Exact. It takes ``max(servers)`` array operations. Waiting-time quantiles by formula,
    response-time quantiles by numerical inversion of the exact tail.

    Examples
    --------
    Two allocator ports behind one queue; each serves 0.5 requests/cycle, 0.9 arrive:

    >>> q = mmc(arrival_rate=0.9, service_rate=0.5, servers=2)
    >>> round(float(q.mean_waiting_time), 4), round(float(q.mean_response_time), 4)
    (8.5263, 10.5263)

    A whole sweep is one call; the last point is overloaded:

    >>> mmc(arrival_rate=[0.5, 0.9, 1.0], service_rate=0.5, servers=2).mean_waiting_time.round(3)
    array([0.667, 8.526,   inf])
    """
    q = load(arrival_rate, service_rate=service_rate, servers=servers)
    m1, c, idle = q.service_time, q.servers, q.safe_idle
    a = q.arrival_rate / np.asarray(service_rate, dtype=float)
    blocking, free = erlang_b_pair(a, c.astype(np.int64))
    waits = np.where(q.stable, erlang_c_from_b(blocking, np.minimum(q.intensity, 1.0), idle), 1.0)
    nobody_waits = np.where(q.stable, idle * free / (idle + q.intensity * blocking), 0.0)
    mean_when_waiting = mmc_waiting_time(m1, c, 1.0, idle)
    spare_rate = np.where(q.stable, 1 / mean_when_waiting, 0.0)
    variance = waits * (2 - waits) * mean_when_waiting**2
    return q.result(
        "M/M/c",
        mmc_waiting_time(m1, c, waits, idle),
        waiting_probability=waits,
        waiting_time_variance=q.or_endless(variance),
        response_time_variance=q.or_endless(variance + m1 * m1),
        number_pmf=partial(_mmc_pmf, a, c, waits, nobody_waits, np.maximum(q.idle, 0.0)),
        response_tail=partial(exponential_wait_response_tail, waits, spare_rate, 1 / m1),
        **exponential_law("waiting", waits, spare_rate),
    )


@described("kleinrock1975, section 3.4")
def mminf(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike) -> QueueResult:
    r"""Steady state of M/M/inf: a server for everyone, a pure delay.

    Returns
    -------
    Arrays of the broadcast shape of the inputs; always stable, nobody waits, and the
    utilization of one of infinitely many servers is 0.

    Notes
    -----
    The number in system is Poisson with mean :math:`\lambda/\mu`. Exact; `mginf` has the same
    with any service-time distribution.

    Examples
    --------
    >>> q = mminf(arrival_rate=3.0, service_rate=0.5)
    >>> float(q.mean_number_in_system), round(float(q.number_in_system_probability(6)), 6)
    (6.0, 0.160623)
    """
    q = load(arrival_rate, service_rate=service_rate)
    mu = 1 / q.service_time
    return QueueResult(
        model="M/M/inf",
        arrival_rate=q.arrival_rate,
        throughput=q.arrival_rate,
        utilization=np.zeros(()),
        mean_waiting_time=np.zeros(np.broadcast_shapes(q.arrival_rate.shape, mu.shape)),
        mean_service_time=q.service_time,
        waiting_probability=np.zeros(()),
        waiting_time_variance=np.zeros(()),
        response_time_variance=q.service_time**2,
        number_pmf=partial(poisson_number, q.arrival_rate / mu),
        **exponential_law("waiting", np.zeros(()), mu),
        **exponential_law("response", np.ones(()), mu),
    )


def _mmc_pmf(
    a: FloatArray, c: FloatArray, waits: FloatArray, nobody_waits: FloatArray, idle: FloatArray, n: FloatArray
) -> FloatArray:
    below = poisson_pmf(n, a) * nobody_waits / np.where(nobody_waits > 0, special.gammaincc(c, a), 1.0)
    above = waits * idle * (a / c) ** np.maximum(n - c, 0)
    return np.where(n < c, below, np.where(idle > 0, above, 0.0))
