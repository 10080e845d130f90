"""Arguments and results of the functions for open networks without classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.open.traffic import per_station, read_routing
from qmodels.networks.result import NetworkResult


class OneClass(NamedTuple):
    """Names of the stations, the probabilities from each to each, arrivals from outside and service rates."""

    stations: tuple[Any, ...]
    routing: FloatArray
    entering: FloatArray
    service_rate: FloatArray

    @classmethod
    def read(cls, routing: Any, arrival_rate: Any, service_rate: Any, advice: str = "") -> Self:
        """Check a description of the flows."""
        stations, matrix = read_routing(routing)
        if matrix.ndim != 2:
            raise ValueError(f"routing must have the shape (stations, stations), got {matrix.shape}{advice}")
        net = cls(stations, matrix, np.empty(0), np.empty(0))
        return net._replace(
            entering=net.per("arrival_rate", arrival_rate, checks.nonnegative),
            service_rate=net.per("service_rate", service_rate, checks.positive),
        )

    def per(self, name: str, value: Any, check: Callable[[str, Any], Any]) -> Any:
        """Return an argument with a value per station, after its check."""
        array, size = check(name, per_station(name, value, self.stations)), len(self.stations)
        if array.shape not in ((), (size,)):
            raise ValueError(f"{name} must have the shape ({size},), got {array.shape}")
        return np.broadcast_to(array, (size,))

    def result(self, *, offered: FloatArray, throughput: Any, response: Any, **others: Any) -> NetworkResult:
        """Return the result from all arrivals and what the stations do."""
        entering = self.entering.sum()
        fields = {
            "stations": self.stations,
            "throughput": throughput,
            "visits": offered / entering if entering > 0 else np.zeros(len(self.stations)),
            "mean_response_time": response,
            "mean_number_in_system": np.where(throughput > 0, throughput * response, 0.0),
            "system_throughput": float(throughput @ np.maximum(1 - self.routing.sum(axis=1), 0.0)),
            "stable": np.isfinite(response),
            "routing": self.routing,
        }
        return NetworkResult(**fields | others)
