"""Load of a station, and its distance from saturation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.numerics.digits import product_minus
from qmodels.result import QueueResult


class Load(NamedTuple):
    """Load of a station."""

    arrival_rate: FloatArray  # jobs offered [jobs / time]
    service_time: FloatArray  # mean service time of one server [time]
    servers: FloatArray  # number of servers
    intensity: FloatArray  # traffic intensity, may exceed 1
    idle: FloatArray  # 1 - traffic intensity, rounded once; not positive where overloaded

    @property
    def stable(self) -> npt.NDArray[np.bool_]:
        """Where the intensity is below 1."""
        return np.asarray(self.idle > 0)

    @property
    def safe_idle(self) -> FloatArray:
        """`idle` with 1 where overloaded, so that a formula can be evaluated everywhere."""
        return np.where(self.stable, self.idle, 1.0)

    @property
    def throughput(self) -> FloatArray:
        """Throughput without losses: what arrives, or all the servers can do."""
        return np.minimum(self.arrival_rate, self.servers / self.service_time)

    @property
    def utilization(self) -> FloatArray:
        """Busy fraction of a server without losses."""
        return np.minimum(self.intensity, 1.0)

    def or_endless(self, waiting_time: FloatArray) -> FloatArray:
        """Return the waiting time, infinite where overloaded."""
        return np.where(self.stable, waiting_time, np.inf)

    def result(self, model: str, waiting_time: FloatArray, **more: Any) -> QueueResult:
        """Return the result of a station without losses from its mean wait, and what `more` is known."""
        return QueueResult(
            model=model,
            arrival_rate=self.arrival_rate,
            throughput=self.throughput,
            utilization=self.utilization,
            mean_waiting_time=self.or_endless(waiting_time),
            mean_service_time=self.service_time,
            **more,
        )

    def pointwise(self, one: Callable[..., float], overloaded: float, *values: FloatArray) -> FloatArray:
        """Return ``one(*values)`` at every point that is not overloaded."""
        idle, *points = np.broadcast_arrays(self.idle, *values)
        rows = zip(idle.ravel().tolist(), *(v.ravel().tolist() for v in points), strict=True)
        found = [one(*row) if left > 0 else overloaded for left, *row in rows]
        return np.array(found).reshape(idle.shape)


def load(
    arrival_rate: Any,
    *,
    service_rate: Any = None,
    mean_service_time: Any = None,
    servers: Any = 1,
    batch_mean: FloatArray | None = None,
) -> Load:
    """Check the arguments and return the load of a station; the service is given either way.

    With `batch_mean` the arrivals are batches, and the load is that of their jobs.
    """
    lam = checks.nonnegative("arrival_rate", arrival_rate)
    lost_digits = None
    if batch_mean is not None:
        arrivals, lam = lam, lam * batch_mean
        lost_digits = product_minus(arrivals, batch_mean, lam)
    c = checks.count("servers", servers).astype(float)
    if (service_rate is None) == (mean_service_time is None):
        raise ValueError(
            "exactly one of service_rate and mean_service_time must be given, "
            f"got {'neither' if service_rate is None else 'both'}"
        )
    if service_rate is not None:
        mu = checks.positive("service_rate", service_rate)
        capacity = c * mu
        one = c.ndim == 0 and c == 1  # then the product is exact
        idle = (mu - lam if one else product_minus(c, mu, lam)) / capacity
        m = 1 / mu
    else:
        m = checks.positive("mean_service_time", mean_service_time)
        capacity = c / m
        idle = -product_minus(lam, m, c) / c
    if lost_digits is not None:
        idle = idle - lost_digits / capacity
    return Load(lam, m, c, lam / capacity, idle)
