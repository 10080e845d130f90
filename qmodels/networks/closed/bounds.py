"""Bounds of a closed network that need no recursion over its jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.closed.inputs import Network, describe
from qmodels.networks.words import described

_COLUMNS = (
    "population",
    "throughput_lower",
    "throughput_upper",
    "response_time_lower",
    "response_time_upper",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkBounds:
    """Lower and upper bounds of a closed network without classes.

    Parameters
    ----------
    model : str
        Name of the bounds.
    population : array of int
        Jobs in the network; the other fields have its shape.
    throughput_lower, throughput_upper : array
        Cycles per time.
    response_time_lower, response_time_upper : array
        Time of a cycle without the think time. [time]
    mean_number_lower, mean_number_upper : array, optional
        Jobs at each station that queues, shape (..., stations); only some bounds give them.
    """

    model: str
    population: npt.NDArray[np.int64]
    throughput_lower: FloatArray
    throughput_upper: FloatArray
    response_time_lower: FloatArray
    response_time_upper: FloatArray
    mean_number_lower: FloatArray | None = None
    mean_number_upper: FloatArray | None = None

    def to_pandas(self) -> Any:
        """Return a DataFrame, one row per population (needs pandas)."""
        import pandas as pd

        return pd.DataFrame({name: np.ravel(getattr(self, name)) for name in _COLUMNS})

    def __repr__(self) -> str:
        rows = [f"{'population':>12}{'throughput [jobs/time]':>28}{'response time [time]':>28}"]
        for n, a, b, c, d in zip(*(np.ravel(getattr(self, name)) for name in _COLUMNS), strict=True):
            rows.append(f"{n:>12}{f'{a:.6g} .. {b:.6g}':>28}{f'{c:.6g} .. {d:.6g}':>28}")
        return "\n".join([f"{self.model} (bound)", *rows])


def _result(
    model: str, population: FloatArray, think_time: float, lower: FloatArray, upper: FloatArray
) -> NetworkBounds:
    return NetworkBounds(
        model=model,
        population=population.astype(np.int64),
        throughput_lower=lower,
        throughput_upper=upper,
        response_time_lower=population / upper - think_time,
        response_time_upper=population / lower - think_time,
    )


def _prepare(population: Any, *, single_servers: bool, **description: Any) -> tuple[FloatArray, Network]:
    jobs = checks.count("population", population)
    net = describe(population=int(jobs.max(initial=1)), **description)
    several = ~net.delay & (net.servers > 1)
    if single_servers and several.any():
        at = int(np.flatnonzero(several)[0])
        raise ValueError(f"servers must be 1 or inf for these bounds, got {net.servers[at]:g}")
    if not np.any(net.demand[~net.delay] > 0):
        raise ValueError("mean_service_time must be > 0 at a station that queues, got delays only")
    return jobs.astype(float), net


def _loads(net: Network) -> tuple[FloatArray, float, float]:
    """Return the demands of the stations that queue, their sum, and the time spent at delays."""
    demand = net.demand[:, 0]
    queueing = demand[~net.delay]
    return queueing, float(queueing.sum()), float(net.think_time[0] + demand[net.delay].sum())


@described("lazowska1984, ch. 5", population="bounds")
def asymptotic_bounds(*, population: Any, **network: Any) -> NetworkBounds:
    r"""Asymptotic bounds of a closed network.

    Notes
    -----
    With demands D, their sum, think time Z and c servers,

    .. math:: \frac{N}{Z + N \sum_i D_i} \le X \le \min\Bigl(\frac{N}{Z + \sum_i D_i},
              \min_i \frac{c_i}{D_i}\Bigr).

    Bounds for any distribution of the service times and any order of service that keeps servers
    busy while there is work.

    Examples
    --------
    >>> asymptotic_bounds(population=[1, 4, 16], mean_service_time=[1.0, 2.0], think_time=5.0)
    asymptotic bounds (bound)
      population      throughput [jobs/time]        response time [time]
               1             0.125 .. 0.125                      3 .. 3
               4          0.235294 .. 0.5                       3 .. 12
              16          0.301887 .. 0.5                      27 .. 48
    """
    jobs, net = _prepare(population, single_servers=False, **network)
    demand, total, delay = _loads(net)
    lower = jobs / (delay + jobs * total)
    with np.errstate(divide="ignore"):
        cap = float(np.min(net.servers[~net.delay] / demand))
    upper = np.minimum(jobs / (delay + total), cap)
    return _result("asymptotic bounds", jobs, float(net.think_time[0]), lower, upper)


@described(
    "zahorjan1982",
    "lazowska1984, ch. 5 (with think time)",
    population="bounds",
    raises="single",
    network="single",
)
def balanced_job_bounds(*, population: Any, **network: Any) -> NetworkBounds:
    r"""Balanced-job bounds of a closed network of single servers and delays.

    Notes
    -----
    With K stations that queue, the sum D of their demands, the largest one and think time Z,

    .. math:: \frac{N}{Z + D + \frac{(N-1) D_{max}}{1 + Z/(N D)}} \le X \le \min\Bigl(\frac{1}{D_{max}},
              \frac{N}{Z + D + \frac{(N-1) D/K}{1 + Z/D}}\Bigr).

    Bounds for product-form networks.

    Examples
    --------
    >>> b = balanced_job_bounds(population=4, mean_service_time=[1.0, 2.0], think_time=5.0)
    >>> round(float(b.throughput_lower), 4), round(float(b.throughput_upper), 4)
    (0.3269, 0.4129)
    """
    jobs, net = _prepare(population, single_servers=True, **network)
    demand, total, delay = _loads(net)
    largest = float(demand.max())
    lower = jobs / (delay + total + (jobs - 1) * largest / (1 + delay / (jobs * total)))
    balanced = jobs / (delay + total + (jobs - 1) * (total / np.count_nonzero(demand)) / (1 + delay / total))
    upper = np.minimum(1 / largest, balanced)
    return _result("balanced-job bounds", jobs, float(net.think_time[0]), lower, upper)


@described("hsieh1987", population="bounds", raises="single", network="single")
def proportional_bounds(*, population: Any, **network: Any) -> NetworkBounds:
    r"""Proportional bounds of a closed network of single servers and delays.

    Notes
    -----
    .. math:: \frac{N}{Z + D + (N-1) \frac{\sum D_i^N}{\sum D_i^{N-1}}} \le X \le
              \min\Bigl(\frac{1}{D_{max}}, \frac{N}{Z + D + (N - 1 - Z / D_{max})
              \frac{\sum D_i^2}{D}}\Bigr).

    Bounds for product-form networks; the upper one falls back on the asymptotic bound where its
    bracket is not positive.

    Examples
    --------
    >>> b = proportional_bounds(population=4, mean_service_time=[1.0, 2.0], think_time=5.0)
    >>> round(float(b.throughput_lower), 4), round(float(b.throughput_upper), 4)
    (0.2927, 0.4528)
    """
    jobs, net = _prepare(population, single_servers=True, **network)
    demand, total, delay = _loads(net)
    largest = float(demand.max())
    scaled = demand / largest
    powers = scaled ** (jobs[..., None] - 1)
    skewed = largest * (powers * scaled).sum(axis=-1) / powers.sum(axis=-1)
    lower = jobs / (delay + total + (jobs - 1) * skewed)
    mean = float(demand @ demand) / total
    others = np.maximum(jobs - 1 - delay / largest, 0.0)
    upper = np.minimum(1 / largest, jobs / (delay + total + others * mean))
    return _result("proportional bounds", jobs, float(net.think_time[0]), lower, upper)


@described("casale2008", population="bounds", raises="single", network="single")
def geometric_bounds(*, population: Any, **network: Any) -> NetworkBounds:
    r"""Geometric bounds of a closed network of single servers and delays.

    Notes
    -----
    Each queue except the longest ones is bounded by a truncated geometric sum in

    .. math:: y_i = \frac{D_i N}{Z + \sum_k D_k + D_{max} N} \quad\text{and}\quad Y_i = D_i X^+,

    with the asymptotic upper bound :math:`X^+`; the longest ones share the other jobs. The
    throughput follows from the arrival theorem with these queues, with think time from a
    quadratic equation. Bounds for product-form networks; as a rule the tightest lower bound of
    this module, while the upper one is loose at small populations with think time.

    Examples
    --------
    >>> b = geometric_bounds(population=4, mean_service_time=[1.0, 2.0], think_time=5.0)
    >>> round(float(b.throughput_lower), 4), round(float(b.throughput_upper), 4)
    (0.3635, 0.4811)
    """
    jobs, net = _prepare(population, single_servers=True, **network)
    demand, total, delay = _loads(net)
    largest = float(demand.max())
    upper_limit = np.minimum(1 / largest, jobs / (delay + total))
    lower_limit = jobs / (delay + jobs * total)

    def queues(n: FloatArray) -> tuple[FloatArray, FloatArray]:
        longest = demand == largest

        def geometric(y: FloatArray) -> FloatArray:
            return np.where(longest, 0.0, (y - y ** (n[..., None] + 1)) / np.where(longest, 1.0, 1 - y))

        low = geometric(demand * n[..., None] / (delay + total + largest * n[..., None]))
        high = geometric(demand * upper_limit[..., None])
        rest_low = (n - delay * upper_limit - high.sum(axis=-1)) / longest.sum()
        rest_high = (n - delay * lower_limit - low.sum(axis=-1)) / longest.sum()
        low = np.where(longest, np.maximum(rest_low, 0.0)[..., None], low)
        return low, np.where(longest, rest_high[..., None], high)

    low, high = queues(jobs - 1)
    gap = largest - demand

    def throughput(others: FloatArray, thinking: FloatArray) -> Any:
        b = delay + total + largest * (jobs - 1) - (gap * others).sum(axis=-1)
        return 2 * jobs / (b + np.sqrt(b**2 - 4 * delay * largest * thinking))

    low_now, high_now = queues(jobs)
    result = _result(
        "geometric bounds",
        jobs,
        float(net.think_time[0]),
        throughput(low, jobs - 1),
        np.minimum(throughput(high, jobs), upper_limit),
    )
    return replace(result, mean_number_lower=low_now, mean_number_upper=high_now)
