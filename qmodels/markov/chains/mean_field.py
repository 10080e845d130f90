"""Mean-field limits: many identical servers as an ordinary differential equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.markov.words import described

Drift = Callable[[FloatArray], FloatArray]

MOST_CALLS = 500_000
"""Evaluations of the drift after which an integration is given up."""
TOP_LEVEL = 1e-9
"""Largest fraction of the queues that may be found at the highest level kept."""
MOST_LEVELS = 4096
"""Most levels kept."""


def _start(drift: Drift, initial: npt.ArrayLike) -> FloatArray:
    if not callable(drift):
        raise ValueError(f"drift must be a function of the state, got {checks.shown(drift)}")
    start = np.atleast_1d(checks.finite("initial", initial))
    if start.ndim != 1 or not start.size:
        raise ValueError(f"initial must be a list of numbers, got shape {start.shape}")
    return start


@described("kurtz1970")
def fluid_trajectory(
    *, drift: Drift, initial: npt.ArrayLike, times: npt.ArrayLike, tolerance: float = 1e-9
) -> FloatArray:
    r"""Solution of :math:`\dot x = f(x)` at given times.

    Parameters
    ----------
    initial : array_like, shape (n,)
        State at time 0.
    times : array_like, one-dimensional
        Times >= 0 in ascending order. [time]
    tolerance : float
        Relative tolerance of the integration (a thousandth of it absolute).

    Returns
    -------
    array, shape (times, n)
        The states at these times.

    Raises
    ------
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

    start = _start(drift, initial)
    t = np.atleast_1d(checks.nonnegative("times", times))
    if t.ndim != 1 or np.any(np.diff(t) < 0):
        raise ValueError(f"times must ascend, got {t.tolist()}")
    rtol = float(checks.positive("tolerance", tolerance))
    if t.size == 0 or t[-1] == 0:
        return np.tile(start, (t.size, 1))
    calls = 0

    def checked(time: float, x: FloatArray) -> FloatArray:
        nonlocal calls
        calls += 1
        with np.errstate(all="ignore"):  # what is not finite is reported below
            change = drift(x)
        if calls > MOST_CALLS or not np.all(np.isfinite(change)):
            raise RuntimeError(
                f"the integration got stuck near time {time:g} after {calls} evaluations, largest drift "
                f"{np.max(np.abs(change)):.2g}: ask for earlier times or a looser tolerance"
            )
        return change

    found = solve_ivp(checked, (0.0, t[-1]), start, method="LSODA", t_eval=t, rtol=rtol, atol=rtol * 1e-3)
    if not found.success:
        raise RuntimeError(f"the integration failed: {found.message}")
    return np.asarray(found.y.T)


@described("kurtz1970")
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
        The point.

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

    x = _start(drift, initial)
    limit = float(checks.positive("tolerance", tolerance))
    scale = float(np.max(np.abs(drift(x))))
    if scale == 0.0:
        return x
    horizon, elapsed = 1.0, 0.0
    while elapsed < float(checks.positive("longest", longest)):
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

    As many levels k are kept as hold more than 1e-9 of the queues.

    Parameters
    ----------
    drift : callable
        Change of :math:`(s_1, \dots, s_N)` per unit of time, for any N. [1 / time]
    arrival_rate : float
        Arrivals per queue. [jobs / time]
    stable : bool
        Whether the queues settle.
    """

    drift: Drift
    arrival_rate: float
    stable: bool

    def trajectory(self, *, times: npt.ArrayLike, initial: Any = ()) -> FloatArray:
        """Fractions over time, one row per time, from given fractions (by default empty queues).

        Raises
        ------
        RuntimeError
            If the queues grow beyond 4,096 jobs.
        """
        given = np.atleast_1d(checks.probability("initial", initial))
        if np.any(np.diff(given) > 0):
            raise ValueError(f"initial must be descending fractions, got {given.tolist()}")
        return self._enough_levels(
            max(64, 2 * given.size),
            lambda empty: fluid_trajectory(
                drift=self.drift, initial=np.append(given, empty[given.size :]), times=times
            ),
        )

    @cached_property
    def tail(self) -> FloatArray:
        """Fractions s_1, s_2, ... of the settled system; 1 where it does not settle."""
        if not self.stable:
            return np.ones(1)
        settled = self._enough_levels(64, lambda empty: fluid_fixed_point(drift=self.drift, initial=empty))
        return np.clip(settled, 0.0, 1.0)

    @property
    def mean_number_in_system(self) -> float:
        """Mean number of jobs per queue; ``inf`` where the system does not settle."""
        return float(self.tail.sum()) if self.stable else np.inf

    @property
    def mean_response_time(self) -> float:
        """Mean time [time] from arrival to departure; ``inf`` where the system does not settle."""
        return self.mean_number_in_system / self.arrival_rate

    def _enough_levels(self, levels: int, solve: Callable[[FloatArray], FloatArray]) -> FloatArray:
        while levels <= MOST_LEVELS:
            found = solve(np.zeros(levels))
            if np.max(found[..., -1], initial=0.0) <= TOP_LEVEL:
                return found
            levels *= 2
        raise RuntimeError(
            f"more than {TOP_LEVEL:g} of the queues hold {MOST_LEVELS} jobs: too many to follow"
        )


@described("mitzenmacher2001")
def power_of_choices(*, arrival_rate: float, service_rate: float, choices: int) -> Occupancy:
    r"""Join the shortest of d random queues, for many queues.

    Parameters
    ----------
    arrival_rate : float
        Arrivals per queue, :math:`\lambda > 0`. [jobs / time]
    choices : int
        Queues looked at by an arrival, :math:`d \ge 1`.

    Notes
    -----
    .. math:: \dot s_k = \lambda (s_{k-1}^d - s_k^d) - \mu (s_k - s_{k+1}), \qquad s_0 = 1,

    the limit of N queues as N grows, an approximation of order 1/N for finite N.

    Examples
    --------
    At load 0.9 two choices cut the response time from 10 (one choice) to

    >>> round(power_of_choices(arrival_rate=0.9, service_rate=1.0, choices=2).mean_response_time, 4)
    2.6141
    """
    lam = float(checks.positive("arrival_rate", arrival_rate))
    mu = float(checks.positive("service_rate", service_rate))
    d = int(checks.count("choices", choices))

    def drift(s: FloatArray) -> FloatArray:
        joined = np.concatenate([[1.0], s]) ** d
        return np.asarray(-lam * np.diff(joined) - mu * (s - np.append(s[1:], 0.0)))

    return Occupancy(drift=drift, arrival_rate=lam, stable=lam < mu)


@described("mitzenmacher2001b", arrival_rate="servers")
def work_stealing(
    *, arrival_rate: float, service_rate: float, threshold: int = 2, stolen: int = 1, retry_rate: float = 0.0
) -> Occupancy:
    r"""Idle servers steal jobs from random others, for many servers.

    Parameters
    ----------
    threshold : int
        Jobs T that a victim must hold at least; the protected minimum length is T - 1.
    stolen : int
        Jobs k moved by a successful attempt, fewer than `threshold`.
    retry_rate : float
        Rate r at which an idle server tries again; 0 for one attempt when it becomes idle.
        [1 / time]

    Notes
    -----
    Attempts happen at rate :math:`a = \mu (s_1 - s_2) + r (1 - s_1)` per server and succeed with
    probability :math:`s_T`; a thief then holds k jobs, its victim k fewer:

    .. math:: \dot s_i = \lambda (s_{i-1} - s_i) - \mu (s_i - s_{i+1})
              + a\, s_T [i \le k] - a\, (s_{\max(i, T)} - s_{i+k}) [i + k > T].

    Stealing takes no time. The limit of N servers as N grows.

    Examples
    --------
    >>> q = work_stealing(arrival_rate=0.9, service_rate=1.0)
    >>> round(q.mean_response_time, 4)
    3.5414
    """
    lam = float(checks.positive("arrival_rate", arrival_rate))
    mu = float(checks.positive("service_rate", service_rate))
    least = int(checks.count("threshold", threshold, minimum=2))
    moved = int(checks.count("stolen", stolen, maximum=least - 1))
    retry = float(checks.nonnegative("retry_rate", retry_rate))

    def drift(s: FloatArray) -> FloatArray:
        kept = s.size
        level = np.arange(1, kept + 1)
        padded = np.concatenate([[1.0], s, np.zeros(moved + least + 1)])
        attempts = mu * (padded[1] - padded[2]) + retry * (1.0 - padded[1])
        lost = np.where(level + moved > least, padded[np.maximum(level, least)] - padded[level + moved], 0.0)
        gained = np.where(level <= moved, padded[least], 0.0)
        flow = lam * (padded[:kept] - s) - mu * (s - padded[2 : kept + 2])
        return np.asarray(flow + attempts * (gained - lost))

    return Occupancy(drift=drift, arrival_rate=lam, stable=lam < mu)
