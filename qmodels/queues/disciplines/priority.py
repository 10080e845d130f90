"""M/G/1 with priorities, any number of classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.described import takes
from qmodels.laws.of_law import Laws, service_moments
from qmodels.numerics.digits import product_minus, remaining, sum_before
from qmodels.queues.words import described
from qmodels.result import QueueResult


def priority_waiting_time(residual: Any, before: Any, after: Any) -> Any:
    """Mean wait of a class from the mean work it meets in service; plain arithmetic.

    `before` and `after` are 1 less the load of the higher classes, without and with this one.
    """
    return residual / (before * after)


def priority_waiting_second_moment(
    residual: Any, residual2: Any, work_before: Any, work_after: Any, before: Any, after: Any
) -> Any:
    """Second moment of the wait of a class; plain arithmetic.

    `residual` is half the sum of all lam m2, `residual2` a third of the sum of all lam m3,
    `work_before` and `work_after` the sums of lam m2 of the higher classes, without and with this one.
    """
    return (
        residual2 / (before**2 * after)
        + residual * work_after / (before**2 * after**2)
        + residual * work_before / (before**3 * after)
    )


class Classes(NamedTuple):
    """Rates and moments of the classes, and the capacity that each one meets, leaves and gets."""

    rate: FloatArray
    m1: FloatArray
    m2: FloatArray
    m3: FloatArray | None
    before: FloatArray
    after: FloatArray
    stable: npt.NDArray[np.bool_]
    served: FloatArray

    def or_endless(self, time: FloatArray) -> FloatArray:
        """Return a time, infinite for the classes beyond saturation."""
        return np.where(self.stable, time, np.inf)

    def result(self, model: str, wait: FloatArray, **more: Any) -> QueueResult:
        """Return the result from the waits, and what `more` is known."""
        return QueueResult(
            model=model,
            arrival_rate=self.rate,
            throughput=self.served,
            utilization=self.served * self.m1,
            mean_waiting_time=self.or_endless(wait),
            mean_service_time=self.m1,
            **more,
        )


def classes(
    *,
    arrival_rate: npt.ArrayLike,
    mean_service_time: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    service: Laws | None = None,
    service_third_moment: npt.ArrayLike | None = None,
) -> Classes:
    """Check the classes and find the capacity that each one meets and leaves."""
    _, mean, scv = service_moments(service, None, mean_service_time, service_scv)
    lam, m1, scv = np.broadcast_arrays(
        np.atleast_1d(checks.nonnegative("arrival_rate", arrival_rate)),
        checks.positive("mean_service_time", mean),
        checks.nonnegative("service_scv", scv),
    )
    m3 = None
    if service_third_moment is not None:
        m3 = np.broadcast_to(checks.positive("service_third_moment", service_third_moment), lam.shape)
    loads, one = lam * m1, np.ones(lam.shape[:-1])
    left = remaining(one, np.zeros(one.shape), loads, product_minus(lam, m1, loads))
    stable = left[..., 1:] > 0
    room = np.maximum(left[..., :-1], 0.0)
    return Classes(
        rate=lam,
        m1=m1,
        m2=m1 * m1 * (1 + scv),
        m3=m3,
        before=np.where(stable, left[..., :-1], 1.0),
        after=np.where(stable, left[..., 1:], 1.0),
        stable=stable,
        served=np.minimum(lam, room / m1),
    )


@described(
    "cobham1954",
    "kesten1957 (second moments)",
    arrival_rate="classes",
    mean_service_time="classes",
    service="each",
)
@takes(classes)
def mg1_nonpreemptive(s: Classes) -> QueueResult:
    r"""Steady state of M/G/1 with non-preemptive priorities: a service once begun is finished.

    Returns
    -------
    One entry per class; `utilization` is the share of the server that the class takes.
    Where the classes up to k fill the server, those from k on have infinite waits, and the
    waits of the higher ones stay finite.

    Notes
    -----
    With :math:`\sigma_k = \sum_{i \le k} \lambda_i s_i`,

    .. math:: W_{q,k} = \frac{\sum_i \lambda_i E[S_i^2] / 2}{(1 - \sigma_{k-1}) (1 - \sigma_k)}.

    Exact, mean and variance, first come first served within a class. In overload the sum
    takes the rates that are served: a saturated low class still gets in the way.

    Examples
    --------
    Control packets of 2 cycles before data packets of 10:

    >>> q = mg1_nonpreemptive(arrival_rate=[0.05, 0.07], mean_service_time=[2, 10], service_scv=0)
    >>> q.mean_waiting_time.round(4)
    array([ 4., 20.])
    """
    residual = (s.served * s.m2).sum(axis=-1, keepdims=True) / 2
    wait = priority_waiting_time(residual, s.before, s.after)
    variance = None
    if s.m3 is not None:
        residual2 = (s.served * s.m3).sum(axis=-1, keepdims=True) / 3
        work = np.cumsum(s.rate * s.m2, axis=-1)
        work_before = sum_before(s.rate * s.m2)
        second = priority_waiting_second_moment(residual, residual2, work_before, work, s.before, s.after)
        variance = s.or_endless(second - wait**2)
    busy = np.minimum((s.served * s.m1).sum(axis=-1, keepdims=True), 1)
    return s.result(
        "M/G/1 non-preemptive priorities",
        wait,
        waiting_probability=np.where(s.stable, busy, 1),
        waiting_time_variance=variance,
        response_time_variance=None if variance is None else variance + s.m2 - s.m1**2,
    )


@described("gross2008, section 3.4.3", arrival_rate="classes", mean_service_time="classes", service="each")
@takes(classes)
def mg1_preemptive_resume(s: Classes) -> QueueResult:
    r"""Steady state of M/G/1 with preemptive-resume priorities: a higher class interrupts, nothing is lost.

    Parameters
    ----------
    service_third_moment : array_like, optional
        Raw third moments; with them the result has the variance of the response time. [time^3]

    Returns
    -------
    One entry per class. `mean_waiting_time` is the response time less the service time,
    so that it includes the interruptions; ``inf`` for the classes beyond saturation.

    Notes
    -----
    With :math:`\sigma_k = \sum_{i \le k} \lambda_i s_i`,

    .. math:: T_k = \frac{s_k}{1 - \sigma_{k-1}}
              + \frac{\sum_{i \le k} \lambda_i E[S_i^2] / 2}{(1 - \sigma_{k-1}) (1 - \sigma_k)}.

    Exact. The time until the first service is the wait of the lowest non-preemptive class when
    only the classes up to k exist, and independent of the time from there to the end, whose
    variance is :math:`\operatorname{Var} S_k / (1 - \sigma_{k-1})^2 + s_k \sum_{i<k} \lambda_i E[S_i^2]
    / (1 - \sigma_{k-1})^3`.

    Examples
    --------
    >>> q = mg1_preemptive_resume(arrival_rate=[0.05, 0.07], mean_service_time=[2, 10], service_scv=0)
    >>> q.mean_response_time.round(4)
    array([ 2.1111, 31.1111])
    """
    work = np.cumsum(s.rate * s.m2, axis=-1)
    work_before = sum_before(s.rate * s.m2)
    first = priority_waiting_time(work / 2, s.before, s.after)
    # The service takes m1 / before on average, interruptions included: m1 more than m1 by this much.
    interruptions = s.m1 * sum_before(s.rate * s.m1) / s.before
    variance = None
    if s.m3 is not None:
        residual2 = np.cumsum(s.rate * s.m3, axis=-1) / 3
        second = priority_waiting_second_moment(work / 2, residual2, work_before, work, s.before, s.after)
        completion = (s.m2 - s.m1**2) / s.before**2 + s.m1 * work_before / s.before**3
        variance = s.or_endless(second - first**2 + completion)
    name = "M/G/1 preemptive-resume priorities"
    return s.result(name, first + interruptions, response_time_variance=variance)
