"""Clocked queues: time advances in slots, as in routers and on buses."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.of_law import Laws, service_moments
from qmodels.queues.general.mg1k import decay_root, embedded_weights
from qmodels.queues.load import Load, load
from qmodels.queues.words import described
from qmodels.result import QueueResult

_LEAST_IDLE = 1e-4  # below, the distribution has millions of values


def geoxg1_waiting_time(lam: Any, pairs: Any, m1: Any, m2: Any, idle: Any = None) -> Any:
    """Mean wait in slots, `pairs` = E[A (A - 1)] of the arrivals per slot, lam > 0; plain arithmetic."""
    if idle is None:
        idle = 1 - lam * m1
    return (lam * (m2 - m1) + pairs * m1**2) / (2 * idle) + pairs / lam * m1 / 2


@described("hunter1983, chapter 9", arrival_rate="slots", mean_service_time="slots", service="instead")
def geog1(
    *,
    arrival_rate: npt.ArrayLike,
    mean_service_time: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    service: Laws | None = None,
) -> QueueResult:
    r"""Steady state of Geo/G/1: at most one arrival per slot, service of whole slots.

    Returns
    -------
    Times in slots, from the boundary at which a job arrives to the one at which its service
    begins (0 if it is served in its first slot). Where :math:`p m_1 \ge 1` waiting times are ``inf``.

    Notes
    -----
    .. math:: W_q = \frac{p \, E[S (S - 1)]}{2 (1 - p m_1)}.

    Exact, the same for arrivals at the beginning and at the end of a slot.

    Examples
    --------
    A bus that holds each transaction 4 cycles, 0.2 per cycle offered:

    >>> round(float(geog1(arrival_rate=0.2, mean_service_time=4, service_scv=0).mean_waiting_time), 6)
    6.0
    """
    p = checks.probability("arrival_rate", arrival_rate)
    return _result("Geo/G/1", p, np.zeros(p.shape), mean_service_time, service_scv, service)


@described("karol1987 (the output queue)", mean_service_time="slots", service="instead")
def geoxg1(
    *,
    arrival_rate: npt.ArrayLike,
    arrival_variance: npt.ArrayLike,
    mean_service_time: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    service: Laws | None = None,
) -> QueueResult:
    r"""Steady state of Geo^[X]/G/1: any independent number of arrivals per slot, service of whole slots.

    Parameters
    ----------
    arrival_rate : array_like
        Mean :math:`\lambda \ge 0` of the arrivals A in a slot. [jobs / slot]
    arrival_variance : array_like
        Variance of the arrivals in a slot, at least what whole numbers with that mean have.

    Returns
    -------
    Times in slots as for `geog1`; jobs of one slot are served in random order.

    Notes
    -----
    .. math:: W_q = \frac{\lambda E[S(S-1)] + E[A(A-1)] m_1^2}{2 (1 - \lambda m_1)}
              + \frac{E[A(A-1)]}{2 \lambda} m_1.

    Exact. With binomial arrivals from N inputs and one slot of service it is the output queue
    of an N x N switch.

    Examples
    --------
    A 16 x 16 output-queued switch at 80 % load, (N - 1)/N p / (2 (1 - p)):

    >>> p, n = 0.8, 16
    >>> q = geoxg1(arrival_rate=p, arrival_variance=p * (1 - p / n), mean_service_time=1, service_scv=0)
    >>> round(float(q.mean_waiting_time), 6)
    1.875
    """
    lam = checks.nonnegative("arrival_rate", arrival_rate)
    variance = checks.nonnegative("arrival_variance", arrival_variance)
    pairs = variance - lam * (1 - lam)
    whole = np.floor(lam)
    least = (lam - whole) * (1 - lam + whole)
    if np.any(variance < least - 1e-12):
        raise ValueError(
            f"arrival_variance must be at least {np.max(least):g}, that of whole numbers with this mean, "
            f"got {np.min(variance):g}"
        )
    return _result("Geo^[X]/G/1", lam, np.maximum(pairs, 0.0), mean_service_time, service_scv, service)


@described("hunter1983, chapter 9", arrival_rate="slots")
def geod1(*, arrival_rate: npt.ArrayLike, service_slots: npt.ArrayLike) -> QueueResult:
    r"""Steady state of Geo/D/1: at most one arrival per slot, a constant number of slots of service.

    Parameters
    ----------
    service_slots : array_like of int
        Service time :math:`D \ge 1`. [slots]

    Returns
    -------
    As `geog1`, with the tails and quantiles of waiting and response time.

    Notes
    -----
    .. math:: W_q = \frac{p \, D (D - 1)}{2 (1 - p D)}.

    Exact. An arrival sees the stationary number of slots of work; that chain moves down by one
    slot at a time, and balancing the crossings of each level gives its law as sums of
    positive terms.

    Examples
    --------
    >>> q = geod1(arrival_rate=0.2, service_slots=4)
    >>> round(float(q.mean_waiting_time), 6), float(q.waiting_time_quantile(0.99))
    (6.0, 32.0)
    """
    p = checks.probability("arrival_rate", arrival_rate)
    slots = checks.count("service_slots", service_slots).astype(float)
    result = _result("Geo/D/1", p, np.zeros(p.shape), slots, np.float64(0), None)
    q = load(p, mean_service_time=slots)
    return replace(
        result,
        waiting_tail=partial(_tail, q, False),
        response_tail=partial(_tail, q, True),
        waiting_quantile=partial(_quantile, q, False),
        response_quantile=partial(_quantile, q, True),
    )


def _result(
    model: str, lam: FloatArray, pairs: FloatArray, mean: Any, scv: Any, service: Laws | None
) -> QueueResult:
    _, mean, scv = service_moments(service, None, mean, scv)
    q = load(lam, mean_service_time=mean)
    scv = checks.nonnegative("service_scv", scv)
    m1 = q.service_time
    if np.any(m1 < 1):
        raise ValueError(f"mean_service_time must be at least 1 slot, got {np.min(m1):g}")
    m2 = m1 * m1 * (1 + scv)
    wait = geoxg1_waiting_time(
        np.where(lam > 0, lam, 1.0), np.where(lam > 0, pairs, 0.0), m1, m2, q.safe_idle
    )
    wait = np.where(lam > 0, wait, 0.0)
    return q.result(model, wait)


@lru_cache(maxsize=32)
def _work_tail(p: float, slots: int) -> FloatArray:
    """Return P(work found > j) for j = 0, 1, ... until it vanishes; the last value is 0."""
    if p == 0:
        return np.zeros(1)
    if p * slots > 1 - _LEAST_IDLE:
        rule = f"at most {1 - _LEAST_IDLE} for the distributions of Geo/D/1"
        raise ValueError(f"utilization must be {rule}, got {p * slots:g}")
    more = np.append(np.full(slots, p), 0.0)
    size = 2 * slots + int(np.ceil(50 / decay_root(1 - p, more))) if slots > 1 else 2
    weights, log_z = embedded_weights(1 - p, more, size)
    law = weights * np.exp(-log_z * np.arange(size)) * (1 - p * slots)
    above = np.cumsum(law[::-1])[::-1]
    return np.append(above[2:], 0.0)


def _tail(q: Load, response: bool, t: FloatArray) -> FloatArray:
    waited = t - q.service_time if response else t
    tail = q.pointwise(_tail_at, 1.0, np.maximum(waited, 0.0), q.arrival_rate, q.service_time)
    return np.where(waited < 0, 1.0, tail)


def _tail_at(t: float, p: float, slots: float) -> float:
    tail = _work_tail(p, int(slots))
    return float(tail[min(int(t), len(tail) - 1)])


def _quantile(q: Load, response: bool, p: FloatArray) -> FloatArray:
    wait = q.pointwise(_quantile_at, np.inf, p, q.arrival_rate, q.service_time)
    return wait + q.service_time if response else wait


def _quantile_at(level: float, p: float, slots: float) -> float:
    """Return the first slot whose tail is at most 1 - level."""
    return float(np.searchsorted(-_work_tail(p, int(slots)), level - 1)) if level < 1 else np.inf
