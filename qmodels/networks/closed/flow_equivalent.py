"""Flow-equivalent aggregation: a part of a network replaced by one station."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.closed.convolution import throughput_curve
from qmodels.networks.words import described


@described("chandy1975", raises="convolution")
def flow_equivalent(*, population: int, admitted: int | None = None, **part: Any) -> FloatArray:
    r"""Rates of one station that stands for a part of a closed network.

    Parameters
    ----------
    population : int
        Largest number of jobs in the part.
    admitted : int, optional
        Jobs that may be inside at once, others wait in front; all by default.
    **part
        The part as a closed network of its own, in which a job that leaves comes back at once:
        `mean_service_time` or `service_rate`, `visits` or `routing`, `servers` and
        `rate_multiplier` as for `convolution`. `visits` are those per visit of the whole part.

    Returns
    -------
    array of shape (population,)
        Rate with 1, 2, ... jobs inside; the `rate_multiplier` of a station of `service_rate` 1.

    Notes
    -----
    The rate with n jobs is the throughput of the part alone with n jobs (Norton's theorem [1]_).
    Exact for the rest of a product-form network; an approximation where the part or the limit
    `admitted` has no product form.

    Examples
    --------
    Two banks behind a port as one station, then 6 requests between it and a processor:

    >>> from qmodels.networks.closed.mva import mva
    >>> rates = flow_equivalent(population=6, mean_service_time=[1.0, 3.0, 3.0], visits=[1, 0.5, 0.5])
    >>> whole = mva(population=6, mean_service_time=[2.0, 1.0, 3.0, 3.0], visits=[1, 1, 0.5, 0.5])
    >>> small = mva(population=6, mean_service_time=[2.0, 1.0], rate_multiplier={1: rates})
    >>> round(float(whole.system_throughput), 10) == round(float(small.system_throughput), 10)
    True

    With at most 2 of them in the memory:

    >>> part = {"mean_service_time": [1.0, 3.0, 3.0], "visits": [1, 0.5, 0.5]}
    >>> flow_equivalent(population=4, admitted=2, **part).round(3)
    array([0.25 , 0.372, 0.372, 0.372])
    """
    jobs = int(checks.count("population", population))
    limit = jobs if admitted is None else min(jobs, int(checks.count("admitted", admitted)))
    curve = throughput_curve(population=limit, **part)
    return np.concatenate([curve, np.full(jobs - limit, curve[-1])])
