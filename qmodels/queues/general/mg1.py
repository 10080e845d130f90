"""M/G/1: one server, Poisson arrivals, any service-time distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.laws.arguments import Laws, service_moments
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
    ValueError
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
