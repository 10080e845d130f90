"""Several queues at one server: what the polling models start from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.arguments import Laws, service_moments
from qmodels.numerics.digits import product_minus, remaining
from qmodels.result import QueueResult


class Queues(NamedTuple):
    """Rates, service moments and switch moments, queues along the last axis; `idle` is 1 - load."""

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
        """Put the result of a model together from the waits."""
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


def check_queues(
    arrival_rate: Any, mean: Any, scv: Any, service: Laws | None, mean_switch_time: Any, switch_scv: Any
) -> Queues:
    """Check the arguments and bring them to one shape."""
    _, mean, scv = service_moments(service, None, mean, scv)
    lam, m1, scv, switch, spread = np.broadcast_arrays(
        np.atleast_1d(checks.nonnegative("arrival_rate", arrival_rate)),
        checks.positive("mean_service_time", mean),
        checks.nonnegative("service_scv", scv),
        checks.nonnegative("mean_switch_time", mean_switch_time),
        checks.nonnegative("switch_scv", switch_scv),
    )
    loads, one = lam * m1, np.ones(lam.shape[:-1])
    idle = remaining(one, np.zeros(one.shape), loads, product_minus(lam, m1, loads))[..., -1]
    return Queues(lam, m1, m1**2 * (1 + scv), switch, switch**2 * (1 + spread), idle)
