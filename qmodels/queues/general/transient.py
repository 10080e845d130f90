"""The waits in front of one server that starts empty: of recorded customers, and of the first of many."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.libraries import special
from qmodels.queues.words import described


def positive_part_mean(mean: Any, deviation: Any) -> Any:
    """Return the mean of the positive part of a normal variable; plain limits at deviation 0."""
    safe = np.where(deviation > 0, deviation, 1.0)
    z = mean / safe
    value = mean * special.ndtr(z) + safe * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.where(deviation > 0, value, np.maximum(mean, 0.0))


def wait_terms(
    *,
    service_mean: FloatArray,
    service_scv: FloatArray,
    gap_mean: FloatArray,
    gap_scv: Any,
    first: FloatArray,
    limit: FloatArray,
    count: IntArray | int,
) -> FloatArray:
    r"""Terms of Spitzer's identity for the wait of customers of a GI/G/1 queue that starts empty [time].

    ``first``: the first term, :math:`E[(B - T)^+]`, which the caller knows exactly; ``limit``: the long-run
    wait, ``inf`` if the queue is unstable; ``count``: terms wanted of each queue, at least 2. Returns a row
    per term k = 1..count, 0 beyond a queue's own count; the (k+1)-th customer waits the sum of the first k on
    average, whether the queue is stable or not:

    .. math:: E[W_{k+1}] = \sum_{j=1}^{k} \frac{1}{j} E\Big[\Big(\sum_{i=1}^{j} (B_i - T_i)\Big)^+\Big]

    (spitzer1956 of ``qmodels/evidence/sources.txt``, exact for independent works and gaps). The sums from the
    second on are taken as normal, and scaled down in common where they would add up to more than the long-run
    wait: an approximation.

    The tenth customer of an M/D/1 queue at half load waits 0.46 services, 0.5 in the long run:

    >>> load, one = 0.5, np.ones(1)
    >>> first = one * (load - (1 - np.exp(-load)))
    >>> terms = wait_terms(
    ...     service_mean=load * one, service_scv=0 * one, gap_mean=one, gap_scv=1.0,
    ...     first=first, limit=one * load**2 / 2 / (1 - load), count=64,
    ... )
    >>> (terms[:9].sum() / load).round(2), (terms.sum() / load).round(2)
    (np.float64(0.46), np.float64(0.5))
    """
    j = np.arange(2, int(np.max(count)) + 1)[:, None]
    drift = service_mean - gap_mean
    spread = np.sqrt(service_scv * service_mean**2 + gap_scv * gap_mean**2)
    later = np.where(j <= count, positive_part_mean(j * drift, np.sqrt(j) * spread) / j, 0.0)
    room = np.maximum(limit - first, 0.0) / np.maximum(later.sum(axis=0), 1e-300)
    return np.asarray(np.concatenate([first[None], later * np.minimum(room, 1.0)]))


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
