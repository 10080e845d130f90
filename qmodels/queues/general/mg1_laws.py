"""M/G/1 with a known service law: distributions and quantiles on top of the moments."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.formulas import Formulas
from qmodels.laws.of_law import renewal
from qmodels.queues.distributions import tabulated
from qmodels.queues.general._mg1_tails import MG1Tails
from qmodels.queues.general.mg1 import mg1_waiting_time, mg1_waiting_time_variance
from qmodels.queues.general.mg1k import arrival_tails, embedded_weights
from qmodels.queues.load import load
from qmodels.queues.words import described
from qmodels.result import QueueResult
from qmodels.systems.laws.fields import numbers
from qmodels.systems.laws.times import Erlang, HyperExponential, Law


@described("kleinrock1975, sections 5.6-5.7", returns="tails")
def mg1_fcfs(*, arrival_rate: npt.ArrayLike, service: Law) -> QueueResult:
    r"""Steady state of first-come-first-served M/G/1 with a given law of the service time.

    Raises
    ------
    If the rate is negative or not finite; by the quantiles, if a level is not resolved.

    Notes
    -----
    Exact moments (Pollaczek-Khinchine, see `mg1`). The transform of the wait is

    .. math:: W^*(s) = \frac{1 - \rho}{1 - \rho R^*(s)},

    :math:`R^*` being that of the residual service time. For hyperexponential and phase-type
    service the tails are sums of positive terms, exact to rounding. For `Gamma` they are
    inverted numerically along a line through the first pole of the transform, with an error
    *relative to the tail* below 1e-7, however rare the level. With constant times in the law
    (`Deterministic`, `Empirical`) that error is about 1e-5 at half load, up to 1e-2 at the bends
    of the tail of a nearly idle queue; `md1` has the exact sum. Of any other law the transform is
    taken on the right half plane only, and the error is absolute, 2e-9. Quantiles where the
    inversion's own estimate of its error exceeds 1 % of the tail are refused.
    The number in system comes from the embedded chain by a sum of positive terms, exact to
    rounding.

    Examples
    --------
    >>> from qmodels.laws import Erlang
    >>> q = mg1_fcfs(arrival_rate=0.04, service=Erlang(mean=20, phases=4))
    >>> round(float(q.mean_waiting_time), 6), round(float(q.response_time_quantile(0.99)), 3)
    (50.0, 285.73)
    """
    law = renewal("service", service)
    if not np.all(np.isfinite(law.moment(2))):
        raise ValueError(f"service must be a law with a finite second moment, got {service!r}")
    m1, m2, m3 = (law.moment(k) for k in (1, 2, 3))
    q = load(arrival_rate, mean_service_time=m1)
    lam, idle = q.arrival_rate, q.safe_idle
    variance = q.or_endless(mg1_waiting_time_variance(lam, m1, m2, m3, idle))
    wait = q.or_endless(mg1_waiting_time(lam, m1, m2, idle))
    tails = MG1Tails(law, q.intensity, q.idle, wait + m1)
    return q.result(
        "M/G/1",
        wait,
        waiting_probability=q.utilization,
        waiting_time_variance=variance,
        response_time_variance=variance + np.maximum(m2 - m1 * m1, 0.0),
        number_pmf=partial(_number_pmf, lam, law, np.maximum(q.idle, 0.0)),
        waiting_tail=tails.waiting,
        response_tail=tails.response,
        waiting_quantile=tails.waiting_quantile,
        response_quantile=tails.response_quantile,
    )


@described("gross2008, section 3.3", returns="mg1_fcfs")
def mek1(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike, phases: npt.ArrayLike) -> QueueResult:
    r"""Steady state of M/E_k/1: Erlang service of k phases, first come first served.

    Parameters
    ----------
    service_rate : array_like
        Rate :math:`\mu` of the whole service, k phases together. [jobs / time]
    phases : array_like of int
        Number of phases :math:`k \ge 1`; the service SCV is :math:`1/k`.

    Notes
    -----
    .. math:: W_q = \frac{1 + 1/k}{2} \frac{\rho}{\mu - \lambda}.

    Exact; quantiles to 1e-7 at every level, see `mg1_fcfs`.

    Examples
    --------
    >>> round(float(mek1(arrival_rate=0.8, service_rate=1, phases=4).mean_waiting_time), 6)
    2.5
    """
    mu = checks.positive("service_rate", service_rate)
    law = Erlang(mean=1 / mu, phases=phases)
    exact = _with_rate(arrival_rate, mu, law)
    return replace(exact, model="M/E_k/1")


@described("kleinrock1975, section 5.7", returns="mg1_fcfs")
def mh21(
    *, arrival_rate: npt.ArrayLike, probability: float, service_rates: tuple[float, float]
) -> QueueResult:
    r"""Steady state of M/H_2/1: two kinds of exponential jobs in one first-come-first-served queue.

    Parameters
    ----------
    probability : float
        Probability that a job is of the first kind.
    service_rates : pair of float
        Service rates of the two kinds. [jobs / time]

    Notes
    -----
    Second moment :math:`2 (p/\mu_1^2 + (1-p)/\mu_2^2)`. Exact, the distributions too.

    Examples
    --------
    A cache that hits in 1 cycle and misses, once in ten, for 20 cycles on average:

    >>> q = mh21(arrival_rate=0.2, probability=0.9, service_rates=(1.0, 0.05))
    >>> round(float(q.mean_waiting_time), 4)
    19.4762
    """
    p = float(checks.probability("probability", probability))
    first, second = numbers("service_rates", checks.positive, service_rates, 2).tolist()
    law = HyperExponential(probabilities=(p, 1 - p), means=(1 / first, 1 / second))
    return replace(mg1_fcfs(arrival_rate=arrival_rate, service=law), model="M/H_2/1")


def _with_rate(arrival_rate: Any, mu: FloatArray, law: Law) -> QueueResult:
    """Return `mg1_fcfs` with the mean waiting time from the rate, which knows 1 - rho with more digits."""
    result = mg1_fcfs(arrival_rate=arrival_rate, service=law)
    q = load(arrival_rate, service_rate=mu)
    lam, m1, idle, known = q.arrival_rate, q.service_time, q.safe_idle, renewal("service", law)
    m2, m3 = known.moment(2), known.moment(3)
    variance = q.or_endless(mg1_waiting_time_variance(lam, m1, m2, m3, idle))
    return replace(
        result,
        throughput=q.throughput,
        mean_waiting_time=q.or_endless(mg1_waiting_time(lam, m1, m2, idle)),
        waiting_time_variance=variance,
        response_time_variance=variance + np.maximum(m2 - m1 * m1, 0.0),
    )


def _number_pmf(lam: FloatArray, service: Formulas, idle: FloatArray, n: FloatArray) -> FloatArray:
    size = int(n.max(initial=0)) + 1
    none, more, _ = arrival_tails(service, lam, size)
    empty = np.broadcast_to(idle, none.shape)
    table = np.zeros((*none.shape, size))
    for i in np.ndindex(none.shape):
        if empty[i] > 0:
            weights, log_z = embedded_weights(float(none[i]), more[i], size)
            table[i] = empty[i] * weights * np.exp(-log_z * np.arange(size))
    return tabulated(table.reshape(none.size, size), none.shape)(n)
