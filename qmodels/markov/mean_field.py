"""Mean-field limits: many identical servers as an ordinary differential equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import _check
from qmodels._check import FloatArray

Drift = Callable[[FloatArray], FloatArray]

TOP_LEVEL = 1e-9
"""Largest fraction of the servers that may be found at the highest level kept."""


def fluid_trajectory(
    *, drift: Drift, initial: npt.ArrayLike, times: npt.ArrayLike, tolerance: float = 1e-9
) -> FloatArray:
    r"""Solution of :math:`\dot x = f(x)` at given times.

    Parameters
    ----------
    drift : callable
        f, for one state vector. [1 / time]
    initial : array_like, shape (n,)
        State at time 0.
    times : array_like, one-dimensional
        Times >= 0 in ascending order. [time]
    tolerance : float
        Relative tolerance of the integration (a thousandth of it absolute).

    Returns
    -------
    array, shape (times, n)

    Raises
    ------
    ValueError
        If an argument is out of range.
    RuntimeError
        If the integration fails.

    Notes
    -----
    Adams and BDF methods that switch with the stiffness (LSODA, through SciPy).

    Examples
    --------
    >>> fluid_trajectory(drift=lambda x: -x, initial=[1.0], times=[0.0, 1.0]).round(6).ravel()
    array([1.      , 0.367879])
    """
    from scipy.integrate import solve_ivp

    start = np.atleast_1d(_check.finite("initial", initial))
    t = np.atleast_1d(_check.nonnegative("times", times))
    if t.ndim != 1 or np.any(np.diff(t) < 0):
        raise ValueError(f"times must ascend, got {t.tolist()}")
    rtol = float(_check.positive("tolerance", tolerance))
    result = np.tile(start, (t.size, 1))
    if t.size and t[-1] > 0:
        found = solve_ivp(
            lambda _, x: drift(x), (0.0, t[-1]), start, method="LSODA", t_eval=t, rtol=rtol, atol=rtol * 1e-3
        )
        if not found.success:
            raise RuntimeError(f"the integration stopped at time {found.t[-1]:g}: {found.message}")
        result = found.y.T
    return np.asarray(result)


def fluid_fixed_point(
    *, drift: Drift, initial: npt.ArrayLike, tolerance: float = 1e-11, longest: float = 1e7
) -> FloatArray:
    r"""Point that the solution from a start settles at, :math:`f(x) = 0`.

    Parameters
    ----------
    drift : callable
        f, for one state vector. [1 / time]
    initial : array_like, shape (n,)
        Where the solution starts.
    tolerance : float
        Largest drift accepted at the point, relative to the largest drift met on the way.
    longest : float
        Time after which the search is given up. [time]

    Returns
    -------
    array, shape (n,)

    Raises
    ------
    RuntimeError
        If the drift does not fall below the tolerance by then (a cycle, or too slow a drift).

    Notes
    -----
    The equation is followed for doubling times; Newton's method (MINPACK's hybrid) polishes the
    point as soon as it moves it by less than the solution still has to go.

    Examples
    --------
    >>> fluid_fixed_point(drift=lambda x: 1.0 - x**2, initial=[0.1]).round(9)
    array([1.])
    """
    from scipy.optimize import root

    x = np.atleast_1d(_check.finite("initial", initial))
    limit = float(_check.positive("tolerance", tolerance))
    scale = float(np.max(np.abs(drift(x))))
    if scale == 0.0:
        return x
    horizon, elapsed = 1.0, 0.0
    while elapsed < float(_check.positive("longest", longest)):
        x = fluid_trajectory(drift=drift, initial=x, times=[horizon])[0]
        elapsed += horizon
        horizon *= 2.0
        force = float(np.max(np.abs(drift(x))))
        scale = max(scale, force)
        if force <= 1e-3 * scale:
            polished = root(drift, x, tol=1e-14).x
            near = np.max(np.abs(polished - x)) <= 0.1 * max(float(np.max(np.abs(x))), 1e-300)
            if near and np.max(np.abs(drift(polished))) <= limit * scale:
                return np.asarray(polished)
    raise RuntimeError(
        f"the drift is still {force:.2g} after time {elapsed:g}, above the tolerance {limit * scale:.2g}: "
        "start nearer to the fixed point, or look at the trajectory for a cycle"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Occupancy:
    r"""Limit of many identical queues: the fraction :math:`s_k` of them with at least k jobs.

    Parameters
    ----------
    drift : callable
        Change of :math:`(s_1, \dots, s_N)` per unit of time. [1 / time]
    arrival_rate : float
        Arrivals per queue. [jobs / time]
    levels : int
        N; fuller queues are neglected.
    stable : bool
        Whether the queues settle.
    """

    drift: Drift
    arrival_rate: float
    levels: int
    stable: bool

    def trajectory(self, *, times: npt.ArrayLike, initial: Any = ()) -> FloatArray:
        """Fractions over time from given fractions (missing levels 0), by default empty queues."""
        return fluid_trajectory(drift=self.drift, initial=self._start(initial), times=times)

    @cached_property
    def tail(self) -> FloatArray:
        """Fractions of the settled system; all 1 where it does not settle."""
        if not self.stable:
            return np.ones(self.levels)
        found = fluid_fixed_point(drift=self.drift, initial=np.zeros(self.levels))
        if found[-1] > TOP_LEVEL:
            raise ValueError(
                f"levels must be > {self.levels}, a fraction {found[-1]:.2g} of the queues is at the top"
            )
        return np.clip(found, 0.0, 1.0)

    @property
    def mean_number_in_system(self) -> float:
        """Mean number of jobs per queue; ``inf`` where the system does not settle."""
        return float(self.tail.sum()) if self.stable else np.inf

    @property
    def mean_response_time(self) -> float:
        """Mean time [time] from arrival to departure; ``inf`` where the system does not settle."""
        return self.mean_number_in_system / self.arrival_rate

    def _start(self, initial: Any) -> FloatArray:
        given = np.atleast_1d(_check.probability("initial", initial))
        if given.size > self.levels or np.any(np.diff(given) > 0):
            raise ValueError(
                f"initial must be at most {self.levels} descending fractions, got {given.tolist()}"
            )
        return np.concatenate([given, np.zeros(self.levels - given.size)])


def power_of_choices(
    *, arrival_rate: float, service_rate: float, choices: int, levels: int = 64
) -> Occupancy:
    r"""Join the shortest of d random queues, for many queues.

    Parameters
    ----------
    arrival_rate : float
        Arrivals per queue, :math:`\lambda > 0`. [jobs / time]
    service_rate : float
        Rate :math:`\mu` of each server. [jobs / time]
    choices : int
        Queues looked at by an arrival, :math:`d \ge 1`.
    levels : int
        Queue lengths kept.

    Returns
    -------
    Occupancy
        Not stable where :math:`\lambda \ge \mu`.

    Notes
    -----
    .. math:: \dot s_k = \lambda (s_{k-1}^d - s_k^d) - \mu (s_k - s_{k+1}), \qquad s_0 = 1,

    the limit of N queues as N grows, an approximation of order 1/N for finite N.

    References
    ----------
    .. [1] M. Mitzenmacher, "The power of two choices in randomized load balancing", IEEE Trans.
       Parallel Distrib. Syst. 12 (2001), 1094-1104.

    Examples
    --------
    At load 0.9 two choices cut the response time from 10 (one choice) to

    >>> round(power_of_choices(arrival_rate=0.9, service_rate=1.0, choices=2).mean_response_time, 4)
    2.6141
    """
    lam = float(_check.positive("arrival_rate", arrival_rate))
    mu = float(_check.positive("service_rate", service_rate))
    d = int(_check.count("choices", choices))

    def drift(s: FloatArray) -> FloatArray:
        joined = np.concatenate([[1.0], s]) ** d
        return np.asarray(-lam * np.diff(joined) - mu * (s - np.append(s[1:], 0.0)))

    return Occupancy(
        drift=drift, arrival_rate=lam, levels=int(_check.count("levels", levels)), stable=lam < mu
    )


def work_stealing(
    *,
    arrival_rate: float,
    service_rate: float,
    threshold: int = 2,
    stolen: int = 1,
    retry_rate: float = 0.0,
    levels: int = 64,
) -> Occupancy:
    r"""Idle servers steal jobs from random others, for many servers.

    Parameters
    ----------
    arrival_rate : float
        Arrivals per server, :math:`\lambda > 0`. [jobs / time]
    service_rate : float
        Rate :math:`\mu` of each server. [jobs / time]
    threshold : int
        Jobs T that a victim must hold at least; the protected minimum length is T - 1.
    stolen : int
        Jobs k moved by a successful attempt, fewer than `threshold`.
    retry_rate : float
        Rate r at which an idle server tries again; 0 for one attempt when it becomes idle.
        [1 / time]
    levels : int
        Queue lengths kept.

    Returns
    -------
    Occupancy
        Not stable where :math:`\lambda \ge \mu`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Attempts happen at rate :math:`a = \mu (s_1 - s_2) + r (1 - s_1)` per server and succeed with
    probability :math:`s_T`; a thief then holds k jobs, its victim k fewer:

    .. math:: \dot s_i = \lambda (s_{i-1} - s_i) - \mu (s_i - s_{i+1})
              + a\, s_T [i \le k] - a\, (s_{\max(i, T)} - s_{i+k}) [i + k > T].

    Stealing takes no time. The limit of N servers as N grows.

    References
    ----------
    .. [1] M. Mitzenmacher, "Analyses of load stealing models based on differential equations",
       Theory of Computing Systems 34 (2001), 77-98.

    Examples
    --------
    >>> q = work_stealing(arrival_rate=0.9, service_rate=1.0)
    >>> round(q.mean_response_time, 4)
    3.5414
    """
    lam = float(_check.positive("arrival_rate", arrival_rate))
    mu = float(_check.positive("service_rate", service_rate))
    least = int(_check.count("threshold", threshold, minimum=2))
    moved = int(_check.count("stolen", stolen, maximum=least - 1))
    retry = float(_check.nonnegative("retry_rate", retry_rate))
    kept = int(_check.count("levels", levels, minimum=least))
    level = np.arange(1, kept + 1)
    gains = (level <= moved).astype(float)
    loses = level + moved > least
    from_level = np.maximum(level, least)

    def drift(s: FloatArray) -> FloatArray:
        padded = np.concatenate([[1.0], s, np.zeros(moved + 1)])
        attempts = mu * (padded[1] - padded[2]) + retry * (1.0 - padded[1])
        lost = np.where(loses, padded[from_level] - padded[level + moved], 0.0)
        flow = lam * (padded[:kept] - s) - mu * (s - padded[2 : kept + 2])
        return np.asarray(flow + attempts * (padded[least] * gains - lost))

    return Occupancy(drift=drift, arrival_rate=lam, levels=kept, stable=lam < mu)
