"""GI/G/1 from two moments: approximations and bounds of the mean wait."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.described import takes
from qmodels.laws.of_law import Laws, arrival_moments, service_moments
from qmodels.queues.load import Load, load
from qmodels.queues.words import described
from qmodels.result import QueueResult


def kingman_waiting_time(lam: Any, m1: Any, ca: Any, cs: Any, idle: Any = None) -> Any:
    """Heavy-traffic mean wait from SCVs `ca`, `cs`; plain arithmetic, ``idle = 1 - lam * m1``."""
    if idle is None:
        idle = 1 - lam * m1
    return lam * m1 * m1 * (ca + cs) / (2 * idle)


def klb_exponent(rho: Any, ca: Any, cs: Any, *, smooth: bool, idle: Any = None) -> Any:
    """Exponent of the Kraemer-Langenbach-Belz factor, for ca <= 1 (`smooth`) or ca >= 1; plain arithmetic."""
    if idle is None:
        idle = 1 - rho
    if smooth:
        return -2 * idle * (1 - ca) ** 2 / (3 * rho * (ca + cs))
    return -idle * (ca - 1) / (ca + 4 * cs)


def marchal_waiting_time(lam: Any, m1: Any, ca: Any, cs: Any, idle: Any = None) -> Any:
    """Marchal's mean wait from SCVs `ca`, `cs`; plain arithmetic."""
    if idle is None:
        idle = 1 - lam * m1
    rho = lam * m1
    return lam * m1 * m1 * (1 + cs) / (1 + rho**2 * cs) * (ca + rho**2 * cs) / (2 * idle)


def daley_bound(lam: Any, m1: Any, ca: Any, cs: Any, idle: Any = None) -> Any:
    """Daley's upper bound of the mean wait; plain arithmetic."""
    if idle is None:
        idle = 1 - lam * m1
    return m1 * (ca * (2 - lam * m1) + lam * m1 * cs) / (2 * idle)


def marshall_bound(lam: Any, m1: Any, cs: Any, idle: Any = None) -> Any:
    """Return Marshall's lower bound of the mean wait, not clipped at 0; plain arithmetic."""
    if idle is None:
        idle = 1 - lam * m1
    return m1 * (lam * m1 * (1 + cs) - 2) / (2 * idle)


class TwoMoments(NamedTuple):
    """The load of a station, and the SCVs of the times between arrivals and of the service."""

    load: Load
    arrival_scv: FloatArray
    service_scv: FloatArray

    @classmethod
    def of(cls, arrivals: tuple[Any, Any], services: tuple[Any, Any, Any], servers: Any = 1) -> Self:
        """Check `arrival_moments` and `service_moments`."""
        rate, mean = services[:2]
        q = load(arrivals[0], service_rate=rate, mean_service_time=mean, servers=servers)
        ca = checks.nonnegative("arrival_scv", arrivals[1])
        return cls(q, ca, checks.nonnegative("service_scv", services[2]))

    @property
    def numbers(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Arguments of the formulas of one server: rate, service time, both SCVs and the idle fraction."""
        q = self.load
        return q.arrival_rate, q.service_time, self.arrival_scv, self.service_scv, q.safe_idle


def single_server(
    *,
    arrival_rate: npt.ArrayLike | None = None,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
    arrival_scv: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    arrival: Laws | None = None,
    service: Laws | None = None,
) -> TwoMoments:
    """Check the arguments of the models of GI/G/1."""
    arrivals = arrival_moments(arrival, arrival_rate, arrival_scv)
    return TwoMoments.of(arrivals, service_moments(service, service_rate, mean_service_time, service_scv))


@described("kingman1961", arrival_rate="renewal")
@takes(single_server)
def gg1_kingman(given: TwoMoments) -> QueueResult:
    r"""Approximate GI/G/1 by Kingman's heavy-traffic formula (the "VUT" equation).

    Notes
    -----
    .. math:: W_q \approx \frac{\rho}{1-\rho} \, \frac{c_a^2 + c_s^2}{2} \, m_1.

    Approximation: exact for M/G/1 and in the limit :math:`\rho \to 1`; it overestimates the
    wait under smooth arrivals at low load. Measured against exact
    PH/PH/1 chains (Erlang, exponential and hyperexponential laws, SCVs 0.25 to 4, utilization
    0.3 to 0.95): the wait is off by 3 % on average and 35 % at most from
    utilization 0.7 up, and by a factor of up to 3.9 at 0.3.

    Examples
    --------
    >>> q = gg1_kingman(arrival_rate=0.8, service_rate=1, arrival_scv=0.5, service_scv=1.5)
    >>> round(float(q.mean_waiting_time), 6)
    4.0
    """
    return given.load.result("GI/G/1 (Kingman)", kingman_waiting_time(*given.numbers))


@described("kraemer1976", arrival_rate="renewal")
@takes(single_server)
def gg1_klb(given: TwoMoments) -> QueueResult:
    r"""Approximate GI/G/1 by the formula of Kraemer and Langenbach-Belz.

    Notes
    -----
    Kingman's formula times :math:`e^{-x}` with

    .. math:: x = \frac{2 (1-\rho)(1 - c_a^2)^2}{3 \rho (c_a^2 + c_s^2)} \; (c_a^2 \le 1), \qquad
              x = \frac{(1-\rho)(c_a^2 - 1)}{c_a^2 + 4 c_s^2} \; (c_a^2 > 1).

    Approximation: exact for M/G/1. The queueing network analyzer uses it without the second
    branch. Measured against exact
    PH/PH/1 chains (Erlang, exponential and hyperexponential laws, SCVs 0.25 to 4, utilization
    0.3 to 0.95): the wait is off by 2 % on average and
    7 % at most from utilization 0.7 up, and by 33 % at most at 0.3; the response by 7 % at most.

    Examples
    --------
    >>> q = gg1_klb(arrival_rate=0.8, service_rate=1, arrival_scv=0.5, service_scv=1.5)
    >>> round(float(q.mean_waiting_time), 6)
    3.917529
    """
    q, ca, cs = given
    total = ca + cs
    rho = np.where(q.intensity > 0, q.intensity, 1.0)
    smooth = np.minimum(ca, 1.0)
    exponent = klb_exponent(
        rho, smooth, np.where(total > 0, total - smooth, 1.0), smooth=True, idle=q.safe_idle
    )
    bursty = klb_exponent(rho, np.maximum(ca, 1.0), cs, smooth=False, idle=q.safe_idle)
    factor = np.exp(np.where(ca <= 1, exponent, bursty))
    return q.result("GI/G/1 (Kraemer and Langenbach-Belz)", kingman_waiting_time(*given.numbers) * factor)


@described("marchal1976", arrival_rate="renewal")
@takes(single_server)
def gg1_marchal(given: TwoMoments) -> QueueResult:
    r"""Approximate GI/G/1 by Marchal's formula, Kingman's upper bound scaled to be exact for M/G/1.

    Notes
    -----
    .. math:: W_q \approx \frac{1 + c_s^2}{1/\rho^2 + c_s^2} \,
              \frac{c_a^2 + \rho^2 c_s^2}{2 \lambda (1-\rho)}.

    Approximation: exact for M/G/1 and in heavy traffic. Measured against exact
    PH/PH/1 chains (Erlang, exponential and hyperexponential laws, SCVs 0.25 to 4, utilization
    0.3 to 0.95): the wait is off by 4 % on
    average and 27 % at most from utilization 0.7 up; for arrival SCVs above 1 it is the worst
    of the three, 8 % on average, and at low load it may be twice the truth.

    Examples
    --------
    >>> q = gg1_marchal(arrival_rate=0.8, service_rate=1, arrival_scv=0.5, service_scv=1.5)
    >>> round(float(q.mean_waiting_time), 6)
    3.72449
    """
    return given.load.result("GI/G/1 (Marchal)", marchal_waiting_time(*given.numbers))


@described("daley1977", arrival_rate="renewal")
@takes(single_server)
def gg1_upper_bound(given: TwoMoments) -> QueueResult:
    r"""Upper bound of the GI/G/1 wait (Daley's sharpening of Kingman's bound).

    Returns
    -------
    `mean_waiting_time` and what follows from it are upper bounds; ``inf`` where :math:`\rho \ge 1`.

    Notes
    -----
    .. math:: W_q \le \frac{m_1 \left[ c_a^2 (2 - \rho) + \rho c_s^2 \right]}{2 (1-\rho)}.

    Bound: holds for every GI/G/1 queue with these moments, and is never above Kingman's
    :math:`(c_a^2/\lambda^2 + c_s^2 m_1^2) \lambda / (2 (1-\rho))`.

    Examples
    --------
    >>> q = gg1_upper_bound(arrival_rate=0.8, service_rate=1, arrival_scv=0.5, service_scv=1.5)
    >>> round(float(q.mean_waiting_time), 6)
    4.5
    """
    return given.load.result("GI/G/1 upper bound (Daley)", daley_bound(*given.numbers))


@described("marshall1968", arrival_rate="renewal")
@takes(single_server)
def gg1_lower_bound(given: TwoMoments) -> QueueResult:
    r"""Lower bound of the GI/G/1 wait (Marshall).

    Parameters
    ----------
    arrival_scv, service_scv : array_like
        Squared coefficients of variation; the bound holds whatever `arrival_scv` is.
    arrival, service : Law, optional
        The laws of the times between arrivals and of the service, in place of these numbers.

    Returns
    -------
    `mean_waiting_time` and what follows from it are lower bounds; ``inf`` where :math:`\rho \ge 1`.

    Notes
    -----
    .. math:: W_q \ge \max\!\left(0, \frac{m_1 \left[\rho (1 + c_s^2) - 2\right]}{2 (1-\rho)}\right).

    Bound: holds for every GI/G/1 queue with these moments; it says little for small SCVs.

    Examples
    --------
    >>> q = gg1_lower_bound(arrival_rate=0.8, service_rate=1, arrival_scv=0.5, service_scv=4)
    >>> round(float(q.mean_waiting_time), 6)
    5.0
    """
    lam, m1, _, cs, idle = given.numbers
    bound = np.maximum(marshall_bound(lam, m1, cs, idle), 0.0)
    return given.load.result("GI/G/1 lower bound (Marshall)", bound)
