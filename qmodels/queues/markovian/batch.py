"""Poisson arrivals of whole batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.laws.arguments import Laws, service_moments
from qmodels.queues.general.mg1 import mg1_waiting_time
from qmodels.queues.load import load
from qmodels.queues.words import described
from qmodels.result import QueueResult


def mxg1_waiting_time(lam: Any, m1: Any, m2: Any, batch_mean: Any, batch_m2: Any, idle: Any = None) -> Any:
    """Mean wait of M^[X]/G/1 from the rate `lam` of jobs (not batches); plain arithmetic."""
    if idle is None:
        idle = 1 - lam * m1
    mates_ahead = (batch_m2 / batch_mean - 1) / 2
    return mg1_waiting_time(lam, m1, m2, idle) + mates_ahead * m1 / idle


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
    QueueResult
        Per job: `arrival_rate` and `throughput` count jobs (:math:`\lambda = \lambda_b g_1`).
        Where :math:`\lambda m_1 \ge 1` the waiting time is ``inf``.

    Raises
    ------
    ValueError
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
