"""M/G/inf and M/G/c/c: only the mean of the service time matters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.queues.distributions import poisson_number
from qmodels.queues.load import load
from qmodels.queues.markovian.mmck import mmcc
from qmodels.queues.words import described
from qmodels.result import QueueResult


@described("gross2008, section 5.2")
def mginf(
    *,
    arrival_rate: npt.ArrayLike,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
) -> QueueResult:
    r"""Steady state of M/G/inf: a pure delay, such as a pipeline without limits.

    Returns
    -------
    Always stable; nobody waits, and the utilization of one of infinitely many servers is 0.

    Notes
    -----
    The number in system is Poisson with mean :math:`\lambda m_1`. Exact for any service law.

    Examples
    --------
    Requests in flight at 0.5 requests per cycle and 120 cycles of latency:

    >>> float(mginf(arrival_rate=0.5, mean_service_time=120).mean_number_in_system)
    60.0
    """
    q = load(arrival_rate, service_rate=service_rate, mean_service_time=mean_service_time)
    return QueueResult(
        model="M/G/inf",
        arrival_rate=q.arrival_rate,
        throughput=q.arrival_rate,
        utilization=np.zeros(()),
        mean_waiting_time=np.zeros(()),
        mean_service_time=q.service_time,
        waiting_probability=np.zeros(()),
        waiting_time_variance=np.zeros(()),
        number_pmf=partial(poisson_number, q.arrival_rate * q.service_time),
        waiting_tail=partial(_nobody_waits, np.zeros(q.idle.shape)),
    )


@described("gross2008, section 5.2", arrival_rate="offered")
def mgcc(
    *,
    arrival_rate: npt.ArrayLike,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
    servers: npt.ArrayLike,
) -> QueueResult:
    r"""Steady state of M/G/c/c: c places, no waiting, any service law.

    Parameters
    ----------
    servers : array_like of int
        Number of places :math:`c \ge 1`.

    Returns
    -------
    As `mmcc`, without the response-time distribution, which depends on the service law.

    Notes
    -----
    Exact: the number in system, and with it the blocking, depends on the service law through
    its mean only (insensitivity).

    Examples
    --------
    Sixteen miss registers, 0.1 misses per cycle held for 100 cycles each:

    >>> q = mgcc(arrival_rate=0.1, mean_service_time=100, servers=16)
    >>> round(float(q.blocking_probability), 6)
    0.022302
    """
    q = load(arrival_rate, service_rate=service_rate, mean_service_time=mean_service_time, servers=servers)
    result = mmcc(arrival_rate=q.arrival_rate, service_rate=1 / q.service_time, servers=q.servers)
    return replace(result, model="M/G/c/c", response_tail=None)


def _nobody_waits(zeros: FloatArray, t: FloatArray) -> FloatArray:
    return zeros * t
