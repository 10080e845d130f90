"""The mean wait at one server from its idle times, where rare long services decide the average of waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qmodels.systems.laws.times import MAP, Replay
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.stations.queueing_network import QueueingNetwork
from validate.estimates.heavy_tails import expected_doubt
from validate.estimates.intervals import ratio_interval
from validate.network.replication import Run

FEWEST_IDLE = 200
"""Idle times a replication must have for the mean of their squares to be near normal."""


def idle_time_estimates(
    spec: QueueingNetwork, runs: Sequence[Run], *, confidence: float
) -> dict[str, Estimate]:
    r"""Return mean times and numbers at one first-come first-served server, or nothing where it cannot be.

    ``runs``: those without ``idle`` give nothing; ``confidence``: coverage of the intervals. Empty for
    more servers, gaps or services that depend on each other, services without a variance,
    and gaps whose own rare values decide.

    The wait W, the service less the gap to the next arrival U, and the idle time I before that are tied
    by Lindley's recursion, :math:`W' = W + U + I` with :math:`W' I = 0`. Squared, and summed over the
    customers of a run,

    .. math:: 2 \sum W (-U) = \sum U^2 - \sum I^2 + W_1^2 - W_{n + 1}^2 ,

    holds in every run. :math:`\sum (U^2 - E U^2)`, :math:`\sum W (U - E U)` and the difference of the
    ends have the known mean 0 in the steady state, and all the rare long services; they are taken out as
    control variates with the coefficients that the identity gives. What is left is

    .. math:: E W = \frac{E U^2}{2 |E U|} - \frac{\sum I^2}{2 \sum I} ,

    where the known :math:`E I = |E U|` is used once more [1]_. Only the idle times are simulated: their
    tail is that of the gaps. Exact in the limit of long runs for independent gaps and services.

    References
    ----------
    .. [1] K. T. Marshall, "Some inequalities in queuing", *Operations Research* 16(3), 1968, pp. 651-665.
    """
    sums = [run.idle for run in runs if run.idle is not None]
    if len(sums) < len(runs):
        return {}
    gaps: Any = spec.classes[0].arrivals
    services: Any = spec.service_law(0, 0)
    if isinstance(gaps, MAP | Replay) or isinstance(services, MAP | Replay):
        return {}
    idle, squares = np.array(sums).T
    customers = sum(run.departures.sum() for run in runs)
    idle_share = 1 - services.mean / gaps.mean
    enough = idle_share * customers >= FEWEST_IDLE * len(runs)
    if not (enough and np.isfinite(services.scv)) or expected_doubt(gaps, 4.0, customers * idle_share):
        return {}
    drift = gaps.mean - services.mean
    square = services.scv * services.mean**2 + gaps.scv * gaps.mean**2 + drift**2
    rest = ratio_interval(squares / 2, idle, confidence=confidence)

    def plus(time: float) -> Estimate:
        low, best, high = (
            max(square / (2 * drift) - part, 0.0) + time for part in (rest.high, rest.best, rest.low)
        )
        return Estimate(low=low, best=best, high=high, confidence=confidence)

    wait, response = plus(0.0), plus(services.mean)
    return {
        "mean_waiting_time": wait,
        "mean_response_time": response,
        "system_response_time": response,
        "mean_number_in_queue": wait.scaled(1 / gaps.mean),
        "mean_number_in_system": response.scaled(1 / gaps.mean),
        "mean_number_in_network": response.scaled(1 / gaps.mean),
    }
