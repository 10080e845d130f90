"""The wait in front of one server for recorded arrivals and services."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.queues.words import described


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
    array
        Waiting times, one per customer. [time]

    Raises
    ------
    ValueError
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
