"""M/G/1 whose server goes on vacation, sleeps, or has to be set up."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.of_law import Laws, renewal, service_moments
from qmodels.queues.general.mg1 import mg1_waiting_time
from qmodels.queues.load import Load, load
from qmodels.queues.words import described
from qmodels.result import QueueResult
from qmodels.systems.laws.times import Law


def single_vacation_delay(lam: Any, v1: Any, v2: Any, no_arrival: Any) -> Any:
    """Mean extra wait of single vacations from two moments and E[exp(-lam V)]; plain arithmetic."""
    return lam * v2 / (2 * (no_arrival + lam * v1))


def setup_delay(lam: Any, u1: Any, u2: Any, threshold: Any) -> Any:
    """Mean extra wait of a set-up with moments u1, u2 begun at the `threshold`-th job; plain arithmetic."""
    return (threshold * (threshold - 1) / (2 * lam) + threshold * u1 + lam * u2 / 2) / (threshold + lam * u1)


@described("takagi1991, chapter 2", service="instead")
def mg1_vacations(
    *,
    arrival_rate: npt.ArrayLike,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    service: Laws | None = None,
    vacation: Law,
    multiple: bool = True,
) -> QueueResult:
    r"""Steady state of M/G/1 whose server leaves on vacation whenever the queue is empty.

    Parameters
    ----------
    vacation : Law
        Law of a vacation V, see `qmodels.laws`: other work, a refresh, a sleep.
    multiple : bool
        Whether a server that finds nobody on its return leaves again, or else waits for a job.

    Returns
    -------
    `utilization` counts service only; where overloaded, waiting times are ``inf``.

    Notes
    -----
    The wait is that of M/G/1 plus an independent delay (decomposition) of mean

    .. math:: \frac{E[V^2]}{2 E[V]} \; (\text{multiple}), \qquad
              \frac{\lambda E[V^2]}{2 (E[e^{-\lambda V}] + \lambda E[V])} \; (\text{single}).

    Exact.

    Examples
    --------
    A DRAM bank that spends idle time in blocks of 50 cycles of housekeeping:

    >>> from qmodels.laws import Deterministic
    >>> chores = Deterministic(mean=50)
    >>> q = mg1_vacations(arrival_rate=0.01, mean_service_time=40, service_scv=0, vacation=chores)
    >>> round(float(q.mean_waiting_time), 4)
    38.3333
    """
    rate, mean, scv = service_moments(service, service_rate, mean_service_time, service_scv)
    q = load(arrival_rate, service_rate=rate, mean_service_time=mean)
    away, lam = renewal("vacation", vacation), q.arrival_rate
    v1, v2 = away.moment(1), away.moment(2)
    delay = v2 / (2 * v1) if multiple else single_vacation_delay(lam, v1, v2, away.laplace(lam))
    name = "multiple" if multiple else "single"
    return _delayed(f"M/G/1 with {name} vacations", q, scv, delay)


@described("takagi1991, section 2.2", service="instead")
def mg1_setup(
    *,
    arrival_rate: npt.ArrayLike,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    service: Laws | None = None,
    setup: Law | None = None,
    threshold: npt.ArrayLike = 1,
) -> QueueResult:
    r"""Steady state of M/G/1 whose server sleeps when empty and wakes for the N-th waiting job.

    Parameters
    ----------
    setup : Law, optional
        Law of the set-up (wake-up) time U; none takes no time.
    threshold : array_like of int
        Number N of jobs that have to wait before the set-up begins (N-policy).

    Returns
    -------
    `utilization` counts service only; where overloaded, and for N > 1 without arrivals,
    waiting times are ``inf``.

    Notes
    -----
    The wait is that of M/G/1 plus an independent delay of mean

    .. math:: \frac{N (N - 1) / (2 \lambda) + N E[U] + \lambda E[U^2] / 2}{N + \lambda E[U]}.

    Exact.

    Examples
    --------
    A link that needs 100 cycles to leave its sleep state:

    >>> from qmodels.laws import Deterministic
    >>> q = mg1_setup(arrival_rate=0.01, mean_service_time=40, service_scv=0, setup=Deterministic(mean=100))
    >>> round(float(q.mean_waiting_time), 4)
    88.3333
    """
    rate, mean, scv = service_moments(service, service_rate, mean_service_time, service_scv)
    q = load(arrival_rate, service_rate=rate, mean_service_time=mean)
    n = checks.count("threshold", threshold).astype(float)
    u1, u2 = (0.0, 0.0) if setup is None else (renewal("setup", setup).moment(k) for k in (1, 2))
    some = q.arrival_rate > 0
    delay = setup_delay(np.where(some, q.arrival_rate, 1.0), u1, u2, n)
    delay = np.where(some, delay, np.where(n > 1, np.inf, u1))
    return _delayed("M/G/1 with set-up", q, scv, delay)


def _delayed(model: str, q: Load, service_scv: npt.ArrayLike, delay: FloatArray) -> QueueResult:
    m2 = q.service_time**2 * (1 + checks.nonnegative("service_scv", service_scv))
    wait = mg1_waiting_time(q.arrival_rate, q.service_time, m2, q.safe_idle) + delay
    return q.result(model, wait)
