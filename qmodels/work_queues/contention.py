"""Time of a visit to a shared resource to which cores come back again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray


def visit_time(*, customers: npt.ArrayLike, service_time: npt.ArrayLike, away_time: npt.ArrayLike) -> Any:
    r"""Mean response time of one server that serves a few customers in a cycle, each for a fixed time.

    ``customers``: customers n >= 0; fractions stand for means. Fewer than 1 count as 1; ``service_time``:
    fixed time s of a service [time]; ``away_time``: mean time Z from the end of a visit to the next arrival
    of the same customer [time]. Returns waiting and service together, of the broadcast shape; never
    overloaded, at most n s.

    Mean value analysis with the arrival theorem of Bard and Schweitzer: an arrival finds the share
    (n - 1)/n of the mean number x n/(Z + x); who is in service has half of it left:

    .. math:: x = s + s \frac{n-1}{Z+x} \left(x - \frac s2\right),

    a quadratic equation in x, and at least n s - Z, since the server does no more than it can. Exact
    for one customer and in the limit of many; an approximation in between.
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
