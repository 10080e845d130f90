"""What a visit to a shared resource takes when cores come back to it again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray


def visit_time(*, customers: npt.ArrayLike, service_time: npt.ArrayLike, away_time: npt.ArrayLike) -> Any:
    r"""Mean response time of one server that serves a few customers in a cycle, each for a fixed time.

    Parameters
    ----------
    customers : array_like
        Customers n >= 0; fractions stand for means. Fewer than 1 count as 1.
    service_time : array_like
        Fixed time s of a service. [time]
    away_time : array_like
        Mean time Z from the end of a visit to the next arrival of the same customer. [time]

    Returns
    -------
    float or array
        Waiting and service together, of the broadcast shape; never overloaded, at most n s.

    Raises
    ------
    ValueError
        If an argument is negative or not finite.

    Notes
    -----
    Mean value analysis with the arrival theorem of Bard and Schweitzer: an arrival finds the share
    (n - 1)/n of the mean number x n/(Z + x); who is in service has half of it left:

    .. math:: x = s + s \frac{n-1}{Z+x} \left(x - \frac s2\right),

    a quadratic equation in x, and at least n s - Z, since the server does no more than it can. Exact
    for one customer and in the limit of many; an approximation in between.

    Examples
    --------
    Sixteen cores that compute for 50,000 cycles and then transfer for 5,000 wait for most of

    >>> round(visit_time(customers=16, service_time=5000, away_time=50_000))
    31956
    """
    n = np.maximum(checks.nonnegative("customers", customers), 1.0)
    s = checks.nonnegative("service_time", service_time)
    z = checks.nonnegative("away_time", away_time)
    return visit_time_unchecked(n, s, z)[()]


def visit_time_unchecked(n: FloatArray, s: FloatArray, z: FloatArray) -> FloatArray:
    """Return `visit_time` of at least one customer, without checks: for inner loops."""
    half = 0.5 * (n * s - z)
    root = np.sqrt(np.maximum(half**2 + s * z - 0.5 * (n - 1.0) * s**2, 0.0))
    return np.asarray(np.clip(half + root, np.maximum(s, n * s - z), n * s))
