"""M/M/c with priorities and one service rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.numerics.digits import product_minus, remaining, sum_before
from qmodels.queues.disciplines.priority import priority_waiting_second_moment, priority_waiting_time
from qmodels.queues.markovian.erlang import erlang_b_pair, erlang_c_from_b
from qmodels.queues.words import described
from qmodels.result import QueueResult


@described("kella1985", arrival_rate="classes", service_rate="leading", servers="leading")
def mmc_nonpreemptive(
    *, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike, servers: npt.ArrayLike
) -> QueueResult:
    r"""Steady state of M/M/c with non-preemptive priorities, all classes with one service rate.

    Returns
    -------
    One entry per class, with variances; `utilization` is the share of the servers that the
    class takes. Classes beyond saturation have infinite waits.

    Notes
    -----
    .. math:: W_{q,k} = \frac{C(c, a) / (c\mu)}{(1 - \sigma_{k-1}) (1 - \sigma_k)}, \qquad
              \sigma_k = \sum_{i \le k} \frac{\lambda_i}{c\mu},

    with Erlang's delay probability of all classes together (1 in overload). Exact; no closed
    form is known when the service rates differ.

    Examples
    --------
    >>> mmc_nonpreemptive(arrival_rate=[1.0, 2.0], service_rate=1.0, servers=4).mean_waiting_time.round(4)
    array([0.1698, 0.6792])
    """
    lam, mu, c, left, served = _classes(arrival_rate, service_rate, servers)
    before, after, stable = _safe(left)
    total = np.where(left[..., -1:] > 0, lam.sum(axis=-1, keepdims=True), 0.0)
    blocking, _ = erlang_b_pair(total / mu, c.astype(np.int64))
    idle = np.where(left[..., -1:] > 0, left[..., -1:], 1.0)
    waits = np.where(left[..., -1:] > 0, erlang_c_from_b(blocking, 1 - idle, idle), 1.0)
    unit = 1 / (c * mu)
    work = np.cumsum(lam, axis=-1) * 2 * unit**2
    wait = priority_waiting_time(waits * unit, before, after)
    second = priority_waiting_second_moment(
        waits * unit, 2 * waits * unit**2, 2 * sum_before(lam) * unit**2, work, before, after
    )
    variance = np.where(stable, second - wait**2, np.inf)
    return QueueResult(
        model="M/M/c non-preemptive priorities",
        arrival_rate=lam,
        throughput=served,
        utilization=served * unit,
        mean_waiting_time=np.where(stable, wait, np.inf),
        mean_service_time=1 / mu,
        waiting_probability=waits,
        waiting_time_variance=variance,
        response_time_variance=variance + 1 / mu**2,
    )


@described("gross2008, section 3.4", arrival_rate="classes", service_rate="leading", servers="leading")
def mmc_preemptive(
    *, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike, servers: npt.ArrayLike
) -> QueueResult:
    r"""Steady state of M/M/c with preemptive-resume priorities, all classes with one service rate.

    Returns
    -------
    One entry per class; `mean_waiting_time` includes the interruptions. Classes beyond
    saturation have infinite waits.

    Notes
    -----
    The classes up to k form an M/M/c queue of their own, so that class k has the difference of
    two mean queues, :math:`L_q(\lambda_1 + \dots + \lambda_k) - L_q(\lambda_1 + \dots + \lambda_{k-1})`.
    Exact. The difference quotient of Erlang's formula is carried through his recurrence, all
    terms positive, so that even a class without arrivals has the wait of its first job.

    Examples
    --------
    >>> mmc_preemptive(arrival_rate=[1.0, 2.0], service_rate=1.0, servers=4).mean_waiting_time.round(4)
    array([0.0068, 0.7607])
    """
    lam, mu, c, left, served = _classes(arrival_rate, service_rate, servers)
    before, after, stable = _safe(left)
    higher = np.where(stable, sum_before(lam) / mu, 0.0)
    step = np.where(stable, lam / mu, 0.0)
    low, high, quotient = _blocking_difference(higher, step, c)
    # Differences of C and of C rho / (1 - rho), over the difference of the loads.
    rho = (higher + step) / c
    spread = (before + higher / c * low) * (after + rho * high)
    rise = (c * before * quotient + low * (1 - high)) / (c * spread)
    per_job = rise * rho / after + erlang_c_from_b(low, higher / c, before) / (c * before * after)
    return QueueResult(
        model="M/M/c preemptive-resume priorities",
        arrival_rate=lam,
        throughput=served,
        utilization=served / (c * mu),
        mean_waiting_time=np.where(stable, per_job / mu, np.inf),
        mean_service_time=1 / mu,
    )


def _classes(
    arrival_rate: Any, service_rate: Any, servers: Any
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    lam = np.atleast_1d(checks.nonnegative("arrival_rate", arrival_rate))
    mu = checks.positive("service_rate", service_rate)[..., None]
    c = checks.count("servers", servers, maximum=100_000).astype(float)[..., None]
    lam, mu, c = np.broadcast_arrays(lam, mu, c)
    capacity = c * mu
    whole = capacity[..., 0]
    lost_digits = product_minus(c[..., 0], mu[..., 0], whole)
    left = remaining(whole, lost_digits, lam, np.zeros(lam.shape)) / whole[..., None]
    served = np.minimum(lam, np.maximum(left[..., :-1], 0.0) * capacity)
    return lam, mu, c, left, served


def _safe(left: FloatArray) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    stable = left[..., 1:] > 0
    return np.where(stable, left[..., :-1], 1.0), np.where(stable, left[..., 1:], 1.0), stable


def _blocking_difference(
    a: FloatArray, step: FloatArray, c: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return B(c, a), B(c, a + step) and their difference over the step, also for a step of 0."""
    low, high, quotient = np.ones(a.shape), np.ones(a.shape), np.zeros(a.shape)
    for n in range(1, int(c.max(initial=0)) + 1):
        active = n <= c
        low_load, high_load = a * low, (a + step) * high
        rise = high + a * quotient
        quotient = np.where(active, n * rise / ((n + low_load) * (n + high_load)), quotient)
        low = np.where(active, low_load / (n + low_load), low)
        high = np.where(active, high_load / (n + high_load), high)
    return low, high, quotient
