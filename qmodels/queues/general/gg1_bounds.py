"""GI/G/1 from two moments: bounds of the mean wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.laws.arguments import Laws
from qmodels.queues.general.gg1 import two_moments
from qmodels.queues.words import described
from qmodels.result import QueueResult


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


@described("daley1977", arrival_rate="renewal")
def gg1_upper_bound(
    *,
    arrival_rate: npt.ArrayLike | None = None,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
    arrival_scv: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    arrival: Laws | None = None,
    service: Laws | None = None,
) -> QueueResult:
    r"""Upper bound of the GI/G/1 wait (Daley's sharpening of Kingman's bound).

    Returns
    -------
    QueueResult
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
    return two_moments(
        "GI/G/1 upper bound (Daley)",
        lambda q, ca, cs: daley_bound(q.arrival_rate, q.service_time, ca, cs, q.safe_idle),
        arrival_rate,
        service_rate,
        mean_service_time,
        arrival_scv,
        service_scv,
        arrival,
        service,
    )


@described("marshall1968", arrival_rate="renewal")
def gg1_lower_bound(
    *,
    arrival_rate: npt.ArrayLike | None = None,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
    arrival_scv: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    arrival: Laws | None = None,
    service: Laws | None = None,
) -> QueueResult:
    r"""Lower bound of the GI/G/1 wait (Marshall).

    Parameters
    ----------
    arrival_scv, service_scv : array_like
        Squared coefficients of variation; the bound holds whatever `arrival_scv` is.
    arrival, service : Law, optional
        The laws of the times between arrivals and of the service, in place of these numbers.

    Returns
    -------
    QueueResult
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
    return two_moments(
        "GI/G/1 lower bound (Marshall)",
        lambda q, ca, cs: np.maximum(marshall_bound(q.arrival_rate, q.service_time, cs, q.safe_idle), 0.0),
        arrival_rate,
        service_rate,
        mean_service_time,
        arrival_scv,
        service_scv,
        arrival,
        service,
    )
