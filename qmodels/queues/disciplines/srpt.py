"""Size-based scheduling: shortest remaining processing time and foreground-background."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.formulas import Formulas, panels
from qmodels.laws.of_law import renewal
from qmodels.queues.load import load
from qmodels.queues.words import described
from qmodels.result import QueueResult
from qmodels.systems.laws.times import Law


@described("schrage1966", returns="response")
def mg1_srpt(*, arrival_rate: npt.ArrayLike, service: Law) -> QueueResult:
    r"""Steady state of M/G/1 that always serves the job with the least work left.

    Notes
    -----
    With :math:`\rho(x) = \lambda E[S; S \le x]` the mean response of a job of size x is

    .. math:: T(x) = \int_0^x \frac{dt}{1 - \rho(t)} + \frac{\lambda E[\min(S, x)^2]}{2 (1 - \rho(x))^2},

    see `srpt_response_time`; jobs of one size are served in order of arrival. Exact; the
    integral over the sizes is by Gauss quadrature with a relative error near 1e-12.

    Examples
    --------
    >>> from qmodels.laws import Exponential
    >>> q = mg1_srpt(arrival_rate=0.8, service=Exponential(mean=1.0))
    >>> round(float(q.mean_response_time), 6)
    2.352773
    """
    return _by_size("M/G/1 SRPT", arrival_rate, service, _srpt_wait)


@described("kleinrock1976, section 4.6", returns="response")
def mg1_fb(*, arrival_rate: npt.ArrayLike, service: Law) -> QueueResult:
    r"""Steady state of M/G/1 that serves the jobs with the least service so far (foreground-background).

    Notes
    -----
    With the load :math:`\rho_x = \lambda E[\min(S, x)]` of the jobs cut off at x,

    .. math:: T(x) = \frac{x}{1 - \rho_x} + \frac{\lambda E[\min(S, x)^2]}{2 (1 - \rho_x)^2}.

    Exact; the integral over the sizes is by Gauss quadrature with a relative error near 1e-12.
    Also known as least attained service.

    Examples
    --------
    >>> from qmodels.laws import Exponential
    >>> q = mg1_fb(arrival_rate=0.8, service=Exponential(mean=1.0))
    >>> round(float(q.mean_response_time), 6)
    5.0
    """
    return _by_size("M/G/1 foreground-background", arrival_rate, service, _fb_mean_wait)


@described("schrage1966", arrival_rate="scalar")
def srpt_response_time(*, arrival_rate: float, service: Law, size: npt.ArrayLike) -> FloatArray:
    """Return the mean response time of jobs of given size under SRPT, see `mg1_srpt`.

    Returns
    -------
    Mean response times; ``inf`` where the jobs up to that size fill the server.

    Examples
    --------
    A lone job, and one that has to let all smaller ones pass:

    >>> from qmodels.laws import Exponential
    >>> srpt_response_time(arrival_rate=0.8, service=Exponential(mean=1.0), size=[0.01, 5.0]).round(4)
    array([1.00000e-02, 2.64486e+01])
    """
    lam, x = float(checks.nonnegative("arrival_rate", arrival_rate)), checks.positive("size", size)
    law = renewal("service", service)
    idle = 1 - lam * float(law.moment(1))
    response = np.full(x.shape, np.inf)
    for i in np.ndindex(x.shape):
        if _left_upto(lam, idle, law, x[i]) > 0:
            borders = law.breaks()
            t, weights = panels(np.append(borders[borders < x[i]], x[i]))
            stay = np.dot(weights, 1 / _left_upto(lam, idle, law, t))
            response[i] = stay + _srpt_delay(lam, idle, law, x[i])
    return response[()]


@described("kleinrock1976, section 4.6", arrival_rate="scalar")
def fb_response_time(*, arrival_rate: float, service: Law, size: npt.ArrayLike) -> FloatArray:
    """Return the mean response time of jobs of given size under foreground-background, see `mg1_fb`.

    Returns
    -------
    Mean response times; ``inf`` where the jobs cut off at that size fill the server.

    Examples
    --------
    >>> from qmodels.laws import Exponential
    >>> fb_response_time(arrival_rate=0.8, service=Exponential(mean=1.0), size=[0.01, 5.0]).round(4)
    array([1.01000e-02, 4.25412e+01])
    """
    lam, x = float(checks.nonnegative("arrival_rate", arrival_rate)), checks.positive("size", size)
    law = renewal("service", service)
    return (x + _fb_wait(lam, 1 - lam * float(law.moment(1)), law, x))[()]


def _by_size(
    model: str,
    arrival_rate: npt.ArrayLike,
    service: Law,
    mean_wait: Callable[[float, float, Formulas], float],
) -> QueueResult:
    law = renewal("service", service)
    q = load(arrival_rate, mean_service_time=law.moment(1))
    wait = q.pointwise(lambda lam, idle: mean_wait(lam, idle, law), np.inf, q.arrival_rate, q.idle)
    return q.result(model, wait)


def _srpt_wait(lam: float, idle: float, law: Formulas) -> float:
    """Return the mean wait: the service is stretched by the smaller jobs and begins late."""
    t, weights = panels(law.breaks())
    stretch = lam * law.truncated_moment(1, t) / _left_upto(lam, idle, law, t)
    late = law.expect(lambda x: _srpt_delay(lam, idle, law, x))
    return float(np.dot(weights, law.tail(t) * stretch)) + late


def _srpt_delay(lam: float, idle: float, law: Formulas, x: FloatArray) -> FloatArray:
    left = _left_upto(lam, idle, law, np.nextafter(x, 0.0)) * _left_upto(lam, idle, law, x)
    return lam * _capped_square(law, x) / (2 * left)


def _left_upto(lam: float, idle: float, law: Formulas, x: FloatArray) -> FloatArray:
    """Return 1 less the load of the jobs of size x or smaller, from the smaller side."""
    load_upto = lam * law.truncated_moment(1, x)
    return np.where(load_upto < 0.5, 1 - load_upto, idle + lam * law.tail_moment(1, x))


def _capped_square(law: Formulas, x: FloatArray) -> FloatArray:
    return law.truncated_moment(2, x) + x * x * law.tail(x)


def _fb_mean_wait(lam: float, idle: float, law: Formulas) -> float:
    return law.expect(lambda x: _fb_wait(lam, idle, law, x))


def _fb_wait(lam: float, idle: float, law: Formulas, x: FloatArray) -> FloatArray:
    cut = lam * (law.truncated_moment(1, x) + x * law.tail(x))
    left = np.where(cut < 0.5, 1 - cut, idle + lam * (law.tail_moment(1, x) - x * law.tail(x)))
    safe = np.where(left > 0, left, 1.0)
    return np.where(left > 0, (x * cut + lam * _capped_square(law, x) / (2 * safe)) / safe, np.inf)
