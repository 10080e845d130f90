"""Processor sharing: every job present gets a part of the server at once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.numerics.digits import product_minus, remaining
from qmodels.queues.distributions import geometric_pmf
from qmodels.queues.load import load
from qmodels.queues.words import described
from qmodels.result import QueueResult


@described("kleinrock1976, section 4.4", returns="response")
def mg1_ps(
    *,
    arrival_rate: npt.ArrayLike,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
) -> QueueResult:
    r"""Steady state of M/G/1 with egalitarian processor sharing.

    Notes
    -----
    .. math:: T = \frac{m_1}{1 - \rho}, \qquad T(x) = \frac{x}{1 - \rho}, \qquad P(N = n) = (1-\rho) \rho^n.

    Exact for any service law of that mean (insensitivity); T(x) is the mean response of a job
    of size x.

    Examples
    --------
    >>> q = mg1_ps(arrival_rate=0.08, mean_service_time=10)
    >>> round(float(q.mean_response_time), 6)
    50.0
    """
    q = load(arrival_rate, service_rate=service_rate, mean_service_time=mean_service_time)
    rho = q.utilization
    number_pmf = partial(geometric_pmf, rho, np.maximum(q.idle, 0.0))
    wait = q.service_time * rho / q.safe_idle
    return q.result("M/G/1 processor sharing", wait, number_pmf=number_pmf)


@described("coffman1970")
def mm1_ps(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike) -> QueueResult:
    r"""Steady state of M/M/1 with processor sharing: `mg1_ps` with the variance of the response time.

    Returns
    -------
    As `mg1_ps`, with `response_time_variance`.

    Notes
    -----
    .. math:: \operatorname{Var} T = \frac{2 + \rho}{\mu^2 (1-\rho)^2 (2-\rho)}.

    Exact.

    Examples
    --------
    >>> q = mm1_ps(arrival_rate=0.5, service_rate=1.0)
    >>> round(float(q.response_time_variance), 6)
    6.666667
    """
    q = load(arrival_rate, service_rate=service_rate)
    rho = q.utilization
    variance = (2 + rho) * (q.service_time / q.safe_idle) ** 2 / (2 - rho)
    shared = mg1_ps(arrival_rate=arrival_rate, service_rate=service_rate)
    return replace(shared, model="M/M/1 processor sharing", response_time_variance=q.or_endless(variance))


@described("fayolle1980")
def mm1_dps(
    *, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike, weights: npt.ArrayLike
) -> QueueResult:
    r"""Steady state of discriminatory processor sharing: classes share the server by weight.

    Parameters
    ----------
    arrival_rate : array_like
        Poisson rates :math:`\lambda_k \ge 0`, classes along the last axis. [jobs / time]
    service_rate : array_like
        Rates :math:`\mu_k > 0` of exponential services alone on the server. [jobs / time]
    weights : array_like
        Weights :math:`g_k > 0`; a job of class k gets :math:`g_k / \sum_j g_j N_j` of the server.

    Returns
    -------
    One entry per class; `mean_waiting_time` is the response less the service time, ``inf``
    for all classes where :math:`\sum_k \rho_k \ge 1`.

    Notes
    -----
    The mean response times solve the linear equations

    .. math:: T_k \Big(1 - \sum_j \frac{\lambda_j g_j}{\mu_j g_j + \mu_k g_k}\Big)
              - \sum_j \frac{\lambda_j g_j T_j}{\mu_j g_j + \mu_k g_k} = \frac{1}{\mu_k}.

    Exact for exponential services.

    Examples
    --------
    Two virtual channels with weights 3 and 1:

    >>> q = mm1_dps(arrival_rate=[0.4, 0.4], service_rate=1.0, weights=[3, 1])
    >>> q.mean_response_time.round(4)
    array([3.3333, 6.6667])
    """
    lam, mu, g = np.broadcast_arrays(
        np.atleast_1d(checks.nonnegative("arrival_rate", arrival_rate)),
        checks.positive("service_rate", service_rate),
        checks.positive("weights", weights),
    )
    m1 = 1 / mu
    loads, one = lam * m1, np.ones(lam.shape[:-1])
    idle = remaining(one, np.zeros(one.shape), loads, product_minus(lam, m1, loads))[..., -1:]
    stable = idle > 0
    safe = np.where(stable, lam, 0.0)
    pull = (safe * g)[..., None, :] / ((mu * g)[..., None, :] + (mu * g)[..., :, None])
    matrix = -pull + np.eye(lam.shape[-1]) * (1 - pull.sum(axis=-1))[..., None]
    # Solved for the waits T - 1/mu, which a difference would leave few digits of at low load.
    delay = m1 * pull.sum(axis=-1) + (pull * m1[..., None, :]).sum(axis=-1)
    wait = np.linalg.solve(matrix, delay[..., None])[..., 0]
    throughput = lam / np.maximum(loads.sum(axis=-1, keepdims=True), 1.0)
    return QueueResult(
        model="M/M/1 discriminatory processor sharing",
        arrival_rate=lam,
        throughput=throughput,
        utilization=throughput * m1,
        mean_waiting_time=np.where(stable, wait, np.inf),
        mean_service_time=m1,
    )
