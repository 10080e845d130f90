"""One server that visits several queues in turn: exhaustive, gated and limited service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels import _check
from qmodels.queues._numerics import product_minus, remaining
from qmodels.result import QueueResult

FloatArray = npt.NDArray[np.float64]

# Of the mean-value equations of `weighted_round_robin`, fitted to simulations.
_SHARPNESS, _CURRENT, _LOAD_POWER, _OWN_POWER, _ARRIVED, _WEIGHT_POWER = 0.66, 0.16, 0.42, 1.52, 1.22, 2.0


def polling(
    *,
    arrival_rate: npt.ArrayLike,
    mean_service_time: npt.ArrayLike,
    service_scv: npt.ArrayLike,
    mean_switch_time: npt.ArrayLike = 0.0,
    switch_scv: npt.ArrayLike = 0.0,
    discipline: str | Sequence[str] = "exhaustive",
) -> QueueResult:
    r"""Steady state of a cyclic server that serves each queue exhaustively or gated.

    Parameters
    ----------
    arrival_rate : array_like
        Poisson rates :math:`\lambda_i \ge 0`, queues along the last axis as visited. [jobs / time]
    mean_service_time : array_like
        Mean service times :math:`b_i > 0`. [time]
    service_scv : array_like
        Squared coefficients of variation of the service times.
    mean_switch_time : array_like
        Mean time :math:`r_i \ge 0` of moving on from queue i. [time]
    switch_scv : array_like
        Squared coefficients of variation of the switch times.
    discipline : str or sequence of str
        "exhaustive" (until the queue is empty) or "gated" (those present at the visit's
        beginning); one word for all queues or one for each.

    Returns
    -------
    QueueResult
        One entry per queue; `utilization` is the share of the server that the queue takes.
        Where :math:`\sum_i \rho_i \ge 1` all waiting times are ``inf``.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The queue lengths at successive visits form a branching process with immigration, whose
    first two moments obey linear equations. Solved in units of :math:`\lambda_i` (also a queue
    without arrivals has a wait), they give with :math:`F_{ii}` the second factorial moment of
    queue i at its own visit and :math:`f_i` its mean

    .. math:: W_i &= \frac{F_{ii}}{2 \lambda_i f_i} + \frac{\lambda_i E[B_i^2]}{2 (1 - \rho_i)}
              \; (\text{exhaustive}), \\ W_i &= (1 + \rho_i) \frac{F_{ii}}{2 \lambda_i f_i} \; (\text{gated}).

    Exact, any number of queues. The second moments are summed by doubling, so that the cost is
    :math:`N^3` times the logarithm of the number of cycles in a correlation time. Without
    switch times it is the limit of short constant ones.

    References
    ----------
    .. [1] J. A. C. Resing, "Polling systems and multitype branching processes", Queueing
       Systems 13, 1993, pp. 409-426.
    .. [2] H. Takagi, *Analysis of Polling Systems*, MIT Press, 1986.

    Examples
    --------
    >>> q = polling(arrival_rate=[0.1, 0.4], mean_service_time=1, service_scv=1, mean_switch_time=0.5)
    >>> q.mean_waiting_time.round(4)
    array([2.3138, 1.4966])
    """
    q = _queues(arrival_rate, mean_service_time, service_scv, mean_switch_time, switch_scv)
    number = q.rate.shape[-1]
    words = [discipline] * number if isinstance(discipline, str) else list(discipline)
    if len(words) != number:
        raise ValueError(f"discipline must be one word or one for each of {number} queues, got {len(words)}")
    gated = np.array([_check.choice("discipline", w, ("exhaustive", "gated")) == "gated" for w in words])
    waits = np.full(q.rate.shape, np.inf)
    for point in np.ndindex(q.rate.shape[:-1]):
        if q.idle[point] > 0:
            waits[point] = _visit_waits(q.rate[point], q.m1[point], q.m2[point], q.switch[point], q.switch2[point], gated)
    return q.result("polling: " + ", ".join(dict.fromkeys(words)), waits)


def polling_limited(
    *,
    arrival_rate: npt.ArrayLike,
    mean_service_time: npt.ArrayLike,
    service_scv: npt.ArrayLike,
    mean_switch_time: npt.ArrayLike = 0.0,
    switch_scv: npt.ArrayLike = 0.0,
) -> QueueResult:
    r"""Approximate a cyclic server that serves at most one job per visit (round robin).

    Parameters
    ----------
    arrival_rate : array_like
        Poisson rates :math:`\lambda_i \ge 0`, queues along the last axis as visited. [jobs / time]
    mean_service_time : array_like
        Mean service times :math:`b_i > 0`. [time]
    service_scv : array_like
        Squared coefficients of variation of the service times.
    mean_switch_time : array_like
        Mean time :math:`r_i \ge 0` of moving on from queue i. [time]
    switch_scv : array_like
        Squared coefficients of variation of the switch times.

    Returns
    -------
    QueueResult
        One entry per queue. Where one queue is overloaded, :math:`\rho + \lambda_i r \ge 1`, all
        waiting times are ``inf``: the formula says nothing about the others then.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    With the total switch time r of a cycle, the weighted sum

    .. math:: \sum_i \rho_i \Big(1 - \frac{\lambda_i r}{1-\rho}\Big) W_i =
              \frac{\rho \sum_i \lambda_i E[B_i^2]}{2 (1-\rho)} + \frac{\rho E[R^2]}{2 r}
              + \frac{r}{2 (1-\rho)} \Big(\rho^2 + \sum_i \rho_i^2\Big)

    is exact [1]_, and shared out in proportion to
    :math:`W_i \propto (1 - \rho + \rho_i) / (1 - \rho - \lambda_i r)` [2]_. Exact for equal queues,
    an approximation otherwise. POLLING_ERRORS

    References
    ----------
    .. [1] O. J. Boxma and W. P. Groenendijk, "Pseudo-conservation laws in cyclic-service
       systems", Journal of Applied Probability 24, 1987, pp. 949-964.
    .. [2] O. J. Boxma and B. Meister, "Waiting-time approximations for cyclic-service systems
       with switch-over times", Performance Evaluation 7, 1987, pp. 299-308.

    Examples
    --------
    >>> q = polling_limited(arrival_rate=[0.2, 0.2], mean_service_time=1, service_scv=1, mean_switch_time=0.1)
    >>> q.mean_waiting_time.round(4)
    array([0.9286, 0.9286])
    """
    q = _queues(arrival_rate, mean_service_time, service_scv, mean_switch_time, switch_scv)
    rho_i = q.rate * q.m1
    cycle_switch = q.switch.sum(axis=-1, keepdims=True)
    idle, rho = q.idle[..., None], rho_i.sum(axis=-1, keepdims=True)
    room = idle - q.rate * cycle_switch
    stable = (room > 0).all(axis=-1, keepdims=True)
    safe_room, safe_idle = np.where(stable, room, 1.0), np.where(stable, idle, 1.0)
    # Divided by rho, so that an empty system keeps its limit.
    share = rho_i / np.where(rho > 0, rho, 1.0)
    residual = q.switch_residual[..., None]
    total = (q.rate * q.m2).sum(axis=-1, keepdims=True) / (2 * safe_idle) + residual
    total = total + cycle_switch * (rho + (share * rho_i).sum(axis=-1, keepdims=True)) / (2 * safe_idle)
    spread = (share * (safe_idle + rho_i)).sum(axis=-1, keepdims=True) / safe_idle
    spread = np.where(rho > 0, spread, 1.0)
    waits = np.where(stable, (safe_idle + rho_i) / safe_room * total / spread, np.inf)
    return q.result("polling: 1-limited (Boxma and Meister)", waits)


def weighted_round_robin(
    *,
    arrival_rate: npt.ArrayLike,
    mean_service_time: npt.ArrayLike,
    service_scv: npt.ArrayLike,
    weights: npt.ArrayLike,
) -> QueueResult:
    r"""Approximate a round-robin arbiter that serves up to a given number of jobs per visit.

    Parameters
    ----------
    arrival_rate : array_like
        Poisson rates :math:`\lambda_i \ge 0`, queues along the last axis. [jobs / time]
    mean_service_time : array_like
        Mean service times :math:`b_i > 0`. [time]
    service_scv : array_like
        Squared coefficients of variation of the service times.
    weights : array_like of int
        Jobs :math:`k_i \ge 1` that a visit serves at most. Moving on takes no time.

    Returns
    -------
    QueueResult
        One entry per queue. Where :math:`\rho \ge 1` all waiting times are ``inf``.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The weighted sum of the waits is that of any order of service,

    .. math:: \sum_i \rho_i W_i = \frac{\rho W_0}{1 - \rho}, \qquad
              W_0 = \tfrac{1}{2} \sum_i \lambda_i E[B_i^2],

    and each wait lies between those of the highest and of the lowest of two non-preemptive
    priorities, :math:`W_0 / (1 - \rho_i)` and :math:`W_0 / [(1 - \rho)(1 - \rho + \rho_i)]`: both
    exact. Between these the sum is shared out by a mean-value argument of our own: a job waits
    for what is in service, for its own queue, and for the smooth minimum of what another queue
    holds and what its weight lets through meanwhile. Exact for equal queues with equal
    weights, otherwise coarse: WRR_ERRORS

    References
    ----------
    .. [1] L. Kleinrock, *Queueing Systems, Volume 2: Computer Applications*, Wiley, 1976,
       section 3.4 (the conservation law).

    Examples
    --------
    >>> q = weighted_round_robin(arrival_rate=[0.4, 0.4], mean_service_time=1, service_scv=1, weights=[1, 3])
    >>> bool(q.mean_waiting_time[0] > q.mean_waiting_time[1])
    True
    """
    q = _queues(arrival_rate, mean_service_time, service_scv, 0.0, 0.0)
    k = np.broadcast_to(_check.count("weights", weights), q.rate.shape).astype(float)
    waits = np.full(q.rate.shape, np.inf)
    for point in np.ndindex(q.rate.shape[:-1]):
        if q.idle[point] > 0:
            waits[point] = _shared_waits(
                q.rate[point], q.m1[point], q.m2[point], k[point], float(q.idle[point])
            )
    return q.result("weighted round robin", waits)


def _shared_waits(rate: FloatArray, m1: FloatArray, m2: FloatArray, k: FloatArray, idle: float) -> FloatArray:
    """Return the fixed point of the mean-value equations, every step scaled to the exact sum."""
    residual = float(np.dot(rate, m2)) / 2
    load = rate * m1
    if residual == 0:
        return np.zeros(len(rate))
    total = load.sum() * residual / idle
    best, worst = residual / (1 - load), residual / (idle * (idle + load))
    waits = np.full(len(rate), residual / idle)
    busy = load > 0
    for _ in range(2000):
        queue = rate * waits
        held = queue[None, :] + _ARRIVED * rate[None, :] * waits[:, None]
        rounds = _CURRENT * load[None, :] ** _LOAD_POWER + (queue / k**_OWN_POWER)[:, None]
        allowed = k[None, :] ** _WEIGHT_POWER * rounds
        with np.errstate(divide="ignore"):
            others = (held**-_SHARPNESS + allowed**-_SHARPNESS) ** (-1 / _SHARPNESS) * m1[None, :]
        np.fill_diagonal(others, 0.0)
        step = residual + m1 * queue + others.sum(axis=1)
        step = np.clip(step * (total / np.dot(load, step)), best, worst)
        change = np.max(np.abs(step / waits - 1)[busy])
        waits = np.sqrt(waits * step)
        if change < 1e-13:
            return np.asarray(waits * np.where(busy, total / np.dot(load, waits), 1.0))
    raise RuntimeError(f"weighted_round_robin must converge within 2000 steps, last change {change:.2g}")


class _Queues(NamedTuple):
    rate: FloatArray
    m1: FloatArray
    m2: FloatArray
    switch: FloatArray
    switch2: FloatArray
    idle: FloatArray

    @property
    def switch_residual(self) -> FloatArray:
        """E[R^2] / (2 E[R]) of the switch time R of a cycle."""
        mean = self.switch.sum(axis=-1)
        square = mean**2 + (self.switch2 - self.switch**2).sum(axis=-1)
        return np.where(mean > 0, square / (2 * np.where(mean > 0, mean, 1.0)), 0.0)

    def result(self, model: str, waits: FloatArray) -> QueueResult:
        # In overload the server's time goes where the discipline sends it; the throughput is then
        # given as the share of an even split of what it can do.
        load = (self.rate * self.m1).sum(axis=-1, keepdims=True)
        throughput = self.rate / np.maximum(load, 1.0)
        return QueueResult(
            model=model,
            arrival_rate=self.rate,
            throughput=throughput,
            utilization=throughput * self.m1,
            mean_waiting_time=waits,
            mean_service_time=self.m1,
        )


def _queues(
    arrival_rate: Any, mean_service_time: Any, service_scv: Any, mean_switch_time: Any, switch_scv: Any
) -> _Queues:
    lam, m1, scv, switch, spread = np.broadcast_arrays(
        np.atleast_1d(_check.nonnegative("arrival_rate", arrival_rate)),
        _check.positive("mean_service_time", mean_service_time),
        _check.nonnegative("service_scv", service_scv),
        _check.nonnegative("mean_switch_time", mean_switch_time),
        _check.nonnegative("switch_scv", switch_scv),
    )
    loads, one = lam * m1, np.ones(lam.shape[:-1])
    idle = remaining(one, np.zeros(one.shape), loads, product_minus(lam, m1, loads))[..., -1]
    return _Queues(lam, m1, m1**2 * (1 + scv), switch, switch**2 * (1 + spread), idle)


def _visit_waits(
    rate: FloatArray,
    m1: FloatArray,
    m2: FloatArray,
    switch: FloatArray,
    switch2: FloatArray,
    gated: npt.NDArray[np.bool_],
) -> FloatArray:
    """Return the mean waits of one system, from moments in units of the arrival rates."""
    number = len(rate)
    rho = rate * m1
    timed = switch.sum() > 0
    # Without switch times every moment is of first order in them: second-order terms are left out.
    pauses = switch if timed else np.full(number, 1.0 / number)
    steps = []
    for i in range(number):
        # A customer of queue i leaves behind what arrives during its service, or during the busy
        # period it starts; time as the unit makes that the same for all queues.
        length = m1[i] if gated[i] else m1[i] / (1 - rho[i])
        square = m2[i] if gated[i] else m2[i] / (1 - rho[i]) ** 3
        served = np.ones(number)
        served[i] = 1.0 if gated[i] else 0.0
        matrix = np.eye(number)
        matrix[:, i] = served * rate[i] * length
        steps.append((matrix, rate[i] * square * np.outer(served, served), pauses[i]))
    product, constant = np.eye(number), np.zeros(number)
    for matrix, _, pause in steps:
        product, constant = matrix @ product, matrix @ constant + pause
    mean = np.linalg.solve(np.eye(number) - product, constant)
    means = [mean]
    for matrix, _, pause in steps:
        means.append(matrix @ means[-1] + pause)

    def advance(i: int, moment: FloatArray) -> FloatArray:
        matrix, offspring, pause = steps[i]
        moved = matrix @ means[i]
        moment = matrix @ moment @ matrix.T + means[i][i] * offspring
        if timed:
            moment = moment + pause * (moved[:, None] + moved[None, :]) + switch2[i]
        return np.asarray(moment)

    gained = np.zeros((number, number))
    for i in range(number):
        gained = advance(i, gained)
    # The sum of P^k G P^kT over the cycles k, two to the power j of them at a time.
    moment, power = gained, product
    for _ in range(200):
        more = power @ moment @ power.T
        moment, power = moment + more, power @ power
        if np.max(more) <= 1e-17 * np.max(moment):
            break
    waits = np.empty(number)
    for i in range(number):
        cycle = moment[i, i] / (2 * means[i][i])
        waits[i] = (1 + rho[i]) * cycle if gated[i] else cycle + rate[i] * m2[i] / (2 * (1 - rho[i]))
        moment = advance(i, moment)
    return waits
