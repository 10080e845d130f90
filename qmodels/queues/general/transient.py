"""Work in front of one server over time: one that starts empty, recorded customers, and paced trains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.numerics.kernels import part
from qmodels.queues.general.mg1 import mg1_waiting_time
from qmodels.queues.words import described

SQRT_HALF, SQRT_PI = math.sqrt(0.5), math.sqrt(math.pi)


@part
def positive_part_mean(mean: Any, deviation: Any) -> Any:
    """Return the mean of the positive part of a normal variable; plain limits at deviation 0."""
    if not deviation > 0.0:
        return max(mean, 0.0)
    z = mean / deviation
    below = math.erfc(-z * SQRT_HALF) / 2.0
    return mean * below + deviation * math.exp(-z * z / 2.0) * SQRT_HALF / SQRT_PI


@part
def mean_of_first_waits(
    service_mean: Any,
    service_scv: Any,
    gap_mean: Any,
    gap_scv: Any,
    first: Any,
    limit: Any,
    count: Any,
    customers: Any,
) -> Any:
    r"""Mean wait of the first customers of a GI/G/1 queue that starts empty, by Spitzer's identity [time].

    ``first``: the first term, :math:`E[(B - T)^+]`, which the caller knows exactly; ``limit``: the long-run
    wait, ``inf`` if the queue is unstable; ``count``: terms that are taken, at least 2; ``customers``: how
    many customers the mean is over, not whole. The (k+1)-th customer waits the sum of the first k terms on
    average, whether the queue is stable or not:

    .. math:: E[W_{k+1}] = \sum_{j=1}^{k} \frac{1}{j} E\Big[\Big(\sum_{i=1}^{j} (B_i - T_i)\Big)^+\Big]

    (spitzer1956 of ``qmodels/sources.txt``, exact for independent works and gaps). The sums from the
    second on are taken as normal, and scaled down in common where they would add up to more than the long-run
    wait: an approximation.

    The customers of an M/D/1 queue at half load wait 0.47 services, half of a service in the long run, if
    there are 64 of them:

    >>> load = 0.5
    >>> first, limit = load - (1 - np.exp(-load)), load**2 / 2 / (1 - load)
    >>> round(float(mean_of_first_waits(load, 0.0, 1.0, 1.0, first, limit, 64, 64.0) / load), 2)
    0.47
    """
    drift = service_mean - gap_mean
    spread = math.sqrt(service_scv * service_mean * service_mean + gap_scv * gap_mean * gap_mean)
    total, weighed = 0.0, 0.0
    for j in range(2, count + 1):
        term = positive_part_mean(j * drift, math.sqrt(j) * spread) / j
        total += term
        weighed += term * max(1.0 - j / customers, 0.0)
    room = max(limit - first, 0.0) / max(total, 1e-300)
    return first * max(1.0 - 1.0 / customers, 0.0) + weighed * min(room, 1.0)


@described("lindley1952")
def lindley_waiting_times(*, interarrival_time: npt.ArrayLike, service_time: npt.ArrayLike) -> FloatArray:
    r"""Return the waiting time of every customer of a queue that starts empty, first come first served.

    Parameters
    ----------
    interarrival_time : array_like
        Times between one customer and the next, one fewer than the customers. [time]
    service_time : array_like
        Service times of all customers. [time]

    Returns
    -------
    Waiting times, one per customer. [time]

    Raises
    ------
    If a time is negative or not finite, or the numbers of times do not fit.

    Notes
    -----
    Lindley's recursion :math:`W_{n+1} = (W_n + S_n - T_n)^+` [1]_, as the walk of the
    differences less its running minimum. Exact, up to the rounding of the sums.

    Examples
    --------
    >>> lindley_waiting_times(interarrival_time=[1, 5, 1], service_time=[3, 1, 2, 1])
    array([0., 2., 0., 1.])
    """
    gaps = checks.nonnegative("interarrival_time", interarrival_time)
    services = checks.nonnegative("service_time", service_time)
    if gaps.ndim != 1 or services.ndim != 1 or len(services) != len(gaps) + 1:
        rule = "have one entry fewer than service_time"
        raise ValueError(f"interarrival_time must {rule}, got shapes {gaps.shape} and {services.shape}")
    walk = np.concatenate([[0.0], np.cumsum(services[:-1] - gaps)])
    return np.asarray(walk - np.minimum.accumulate(walk))


part(mg1_waiting_time)


@part
def train_area(count: Any, count_square: Any, service: Any, spacing: Any, first_extra: Any) -> Any:
    r"""Area under the unfinished work of one train that finds an idle server.

    A train is ``count`` jobs of length ``service`` that arrive ``spacing`` apart; the first is
    longer by ``first_extra`` (0 if it is not). The area is what the train adds to the time integral of the
    work.

    ``count``, ``count_square``: mean and second moment of the jobs in a train; ``service``, ``spacing``:
    length of a job and time between two arrivals [time]; ``first_extra``: additional length of the first job
    [time]. Returns mean area [time^2].

    Each job adds the triangle of its own length, and a rectangle of its length times the work
    it finds. With jobs of length :math:`s` every :math:`\tau`, job :math:`j = 1, 2, \dots` finds
    :math:`(x + j (s - \tau))^+` where :math:`x` is the first job's extra. Exact for
    :math:`s \ge \tau`, and for :math:`x = 0`; otherwise the sum up to the last job that finds
    work is evaluated at the mean count.
    """
    triangles = count * service * service / 2.0 + first_extra * (service + first_extra / 2.0)
    gain = service - spacing
    if gain >= 0.0:
        return triangles + service * ((count - 1.0) * first_extra + gain * ((count_square - count) / 2.0))
    last = min(max(count - 1.0, 0.0), np.floor(first_extra / -gain))
    return triangles + max(service * (last * first_extra + gain * last * (last + 1.0) / 2.0), 0.0)


@part
def mean_work(train_rate: Any, area: Any, intensity: Any, burst: Any) -> Any:
    r"""Mean unfinished work of a server fed by trains, which a Poisson arrival finds.

    ``train_rate``: trains per time; ``area``: mean area of one train alone, see `train_area` [time^2];
    ``intensity``: work that arrives per time, from 1 on the work grows without bound; ``burst``: addition for
    trains that come in bursts, 0 for others [time]. Returns mean work, ``inf`` where the intensity is 1 or
    more [time].

    Pollaczek and Khinchine's formula with twice the area in place of the second moment:
    :math:`E[V] = \lambda A / (1 - \rho)`. Exact for Poisson trains whose jobs arrive together
    (spacing 0: M^[X]/G/1); for paced jobs an approximation.
    """
    if intensity >= 1.0:
        return np.inf
    idle = 1.0 - intensity
    return max(mg1_waiting_time(train_rate, 0.0, 2.0 * area, idle) + burst / idle, 0.0)
