"""M/G/1: one server, Poisson arrivals of jobs or of whole batches, any service-time distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.laws.of_law import Laws, service_moments
from qmodels.queues.load import load
from qmodels.queues.words import described
from qmodels.result import QueueResult


def mg1_waiting_time(lam: Any, m1: Any, m2: Any, idle: Any = None) -> Any:
    """Pollaczek-Khinchine mean wait from the first two service moments; plain arithmetic.

    `idle` is 1 - lam * m1 for a caller that knows it with more digits.
    """
    if idle is None:
        idle = 1 - lam * m1
    return lam * m2 / (2 * idle)


def mg1_waiting_time_variance(lam: Any, m1: Any, m2: Any, m3: Any, idle: Any = None) -> Any:
    """Variance of the first-come-first-served M/G/1 wait from three service moments; plain arithmetic."""
    if idle is None:
        idle = 1 - lam * m1
    return mg1_waiting_time(lam, m1, m2, idle) ** 2 + lam * m3 / (3 * idle)


def mxg1_waiting_time(lam: Any, m1: Any, m2: Any, batch_mean: Any, batch_m2: Any, idle: Any = None) -> Any:
    """Mean wait of M^[X]/G/1 from the rate `lam` of jobs (not batches); plain arithmetic."""
    if idle is None:
        idle = 1 - lam * m1
    mates_ahead = (batch_m2 / batch_mean - 1) / 2
    return mg1_waiting_time(lam, m1, m2, idle) + mates_ahead * m1 / idle


@described("kleinrock1975, section 5.7", service="instead")
def mg1(
    *,
    arrival_rate: npt.ArrayLike,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    service: Laws | None = None,
    service_third_moment: npt.ArrayLike | None = None,
) -> QueueResult:
    r"""Steady state of the M/G/1 queue, from two (mean) or three (variance) service moments.

    Raises
    ------
    If a rate, mean or SCV is out of range, or the third moment is below the smallest one
    that the first two allow.

    Notes
    -----
    With the second moment :math:`m_2 = m_1^2 (1 + c_s^2)`,

    .. math:: W_q = \frac{\lambda m_2}{2 (1 - \rho)}, \qquad
              \operatorname{Var} = W_q^2 + \frac{\lambda m_3}{3 (1 - \rho)}.

    Exact. The mean holds for every order of service that does not look at service times and does not preempt,
    the variance for first come first served. :math:`1 - \rho` is rounded once, so that the relative error
    stays near 1e-15 up to the last utilization below 1. For a named service law with quantiles see
    `md1`, `mek1`, `mh21` and `mg1_fcfs`.

    Examples
    --------
    A memory channel serves a packet in 20 cycles with SCV 0.25; 0.04 packets arrive per cycle:

    >>> q = mg1(arrival_rate=0.04, mean_service_time=20, service_scv=0.25)
    >>> round(float(q.mean_waiting_time), 6), round(float(q.utilization), 6)
    (50.0, 0.8)

    The same by the law itself:

    >>> from qmodels.laws import Erlang
    >>> round(float(mg1(arrival_rate=0.04, service=Erlang(mean=20, phases=4)).mean_waiting_time), 6)
    50.0
    """
    rate, mean, service_scv = service_moments(service, service_rate, mean_service_time, service_scv)
    q = load(arrival_rate, service_rate=rate, mean_service_time=mean)
    scv = checks.nonnegative("service_scv", service_scv)
    lam, m1, idle = q.arrival_rate, q.service_time, q.safe_idle
    m2 = m1 * m1 * (1 + scv)
    wait = mg1_waiting_time(lam, m1, m2, idle)
    waiting_variance = response_variance = None
    if service_third_moment is not None:
        m3 = checks.positive("service_third_moment", service_third_moment)
        # The Cauchy-Schwarz bound m3 >= m2**2 / m1, with room for the rounding of a deterministic service.
        least = m2 * m2 / m1
        if np.any(m3 < least * (1 - 1e-12)):
            worst = np.broadcast_to(m3, np.broadcast_shapes(m3.shape, least.shape))[
                m3 < least * (1 - 1e-12)
            ].flat[0]
            raise ValueError(
                f"service_third_moment must be at least m2^2 / m1 = {np.min(least):g}, got {worst:g}"
            )
        waiting_variance = q.or_endless(mg1_waiting_time_variance(lam, m1, m2, m3, idle))
        response_variance = waiting_variance + m1 * m1 * scv
    return q.result(
        "M/G/1",
        wait,
        waiting_probability=q.utilization,
        waiting_time_variance=waiting_variance,
        response_time_variance=response_variance,
    )


@described("gross2008, chapters 3.1 and 5.1 (bulk input)", service="instead")
def mxg1(
    *,
    arrival_rate: npt.ArrayLike,
    batch_mean: npt.ArrayLike,
    batch_scv: npt.ArrayLike | None = None,
    batch_second_moment: npt.ArrayLike | None = None,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    service: Laws | None = None,
) -> QueueResult:
    r"""Steady state of M^[X]/G/1: batches arrive as a Poisson process, jobs are served one by one.

    Parameters
    ----------
    arrival_rate : array_like
        Poisson rate :math:`\lambda_b \ge 0` of *batches*. [batches / time]
    batch_mean : array_like
        Mean number :math:`g_1 \ge 1` of jobs in a batch. [jobs]
    batch_scv, batch_second_moment : array_like
        Exactly one of the SCV of the batch size and its raw second moment :math:`g_2 \ge g_1^2` [jobs^2].

    Returns
    -------
    Per job: `arrival_rate` and `throughput` count jobs (:math:`\lambda = \lambda_b g_1`).
    Where :math:`\lambda m_1 \ge 1` the waiting time is ``inf``.

    Raises
    ------
    If a value is out of range, or the batch moments cannot belong to whole numbers >= 1.

    Notes
    -----
    The first job of a batch waits as in an M/G/1 queue whose job is the batch; inside its
    batch a job has on average :math:`(g_2 / g_1 - 1)/2` mates ahead:

    .. math:: W_q = \frac{\lambda m_2}{2(1-\rho)} + \frac{(g_2/g_1 - 1)\, m_1}{2 (1 - \rho)}.

    Exact for service in order of arrival (random order within a batch).

    Examples
    --------
    Packets of exactly 8 flits, one flit per cycle, 0.1 packets per cycle:

    >>> q = mxg1(arrival_rate=0.1, batch_mean=8, batch_scv=0, mean_service_time=1, service_scv=0)
    >>> round(float(q.mean_waiting_time), 6)
    19.5
    """
    if (batch_scv is None) == (batch_second_moment is None):
        raise ValueError(
            "exactly one of batch_scv and batch_second_moment must be given, "
            f"got {'neither' if batch_scv is None else 'both'}"
        )
    g1 = checks.positive("batch_mean", batch_mean)
    if np.any(g1 < 1):
        raise ValueError(f"batch_mean must be at least 1, got {np.min(g1):g}")
    if batch_scv is not None:
        g2 = g1 * g1 * (1 + checks.nonnegative("batch_scv", batch_scv))
    else:
        g2 = checks.positive("batch_second_moment", batch_second_moment)
        if np.any(g2 < g1 * g1 * (1 - 1e-12)):
            raise ValueError(f"batch_second_moment must be at least batch_mean^2, got {np.min(g2):g}")
    rate, mean, service_scv = service_moments(service, service_rate, mean_service_time, service_scv)
    scv = checks.nonnegative("service_scv", service_scv)
    q = load(arrival_rate, service_rate=rate, mean_service_time=mean, batch_mean=g1)
    m1 = q.service_time
    wait = mxg1_waiting_time(q.arrival_rate, m1, m1 * m1 * (1 + scv), g1, g2, q.safe_idle)
    return q.result("M^[X]/G/1", wait)
