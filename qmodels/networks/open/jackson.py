"""Open Jackson networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.closed.inputs import multipliers, server_counts
from qmodels.networks.closed.lattice import number_moments
from qmodels.networks.open.traffic import per_station, read_routing, solve_traffic
from qmodels.networks.result import NetworkResult
from qmodels.networks.words import described
from qmodels.queues.markovian.mmc import mmc


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


@described("jackson1957", "goodman1984", routing="open", raises="never left")
def jackson(
    *,
    arrival_rate: Any,
    service_rate: Any,
    routing: Any,
    servers: Any = 1,
    rate_multiplier: Mapping[Any, Sequence[float]] | None = None,
) -> NetworkResult:
    r"""Steady state of an open Jackson network.

    Jobs arrive from outside as Poisson streams, are served first come first served by exponential
    servers, and go on by chance to another station or out.

    Returns
    -------
    Kind "exact". A station that gets more than it can serve has response time ``inf``,
    utilization 1 and `stable` False and sends on what its servers can do; the others are
    solved with that flow.

    Notes
    -----
    The flows solve :math:`\lambda_j = \gamma_j + \sum_i \min(\lambda_i, c_i\mu_i) p_{ij}`; each
    station then is an M/M/c (or a birth-death) queue of its own [1]_, and so are the stable stations next to
    overloaded ones [2]_. Exact; the product form is that of the numbers at one time, response
    times on a path with loops or overtaking are not independent.

    Examples
    --------
    Packets are parsed, then looked up until a bank answers:

    >>> import networkx as nx
    >>> graph = nx.DiGraph()
    >>> graph.add_edge("parser", "lookup", probability=1.0)
    >>> graph.add_edge("lookup", "lookup", probability=0.25)
    >>> rates = {"parser": 0.6, "lookup": 0.0}
    >>> r = jackson(arrival_rate=rates, service_rate=[1.0, 0.5], routing=graph, servers=[1, 2])
    >>> round(r["mean_response_time[lookup]"], 3), round(r["system_response_time"], 3), r.bottleneck
    (5.556, 9.907, 'lookup')
    >>> r.to_networkx().edges["parser", "lookup"]["flow"]
    0.6
    """
    net = OneClass.read(routing, arrival_rate, service_rate, advice="; see bcmp")
    gamma, mu = net.entering, net.service_rate
    count = server_counts(servers, net.stations)
    varying = multipliers(rate_multiplier, count, net.stations)
    most = mu * count
    for i, multiple in varying.items():
        most[i] = mu[i] * multiple[-1]
    offered = solve_traffic(gamma, net.routing)
    rates = limited_flows(gamma, net.routing, most, offered)
    response = 1 / mu
    throughput, utilization, stable = rates.copy(), np.zeros(len(gamma)), np.ones(len(gamma), dtype=bool)
    finite = np.isfinite(count)
    q = mmc(arrival_rate=rates[finite], service_rate=mu[finite], servers=count[finite])
    response[finite], throughput[finite] = q.mean_response_time, q.throughput
    utilization[finite], stable[finite] = q.utilization, q.stable
    for i, multiple in varying.items():
        throughput[i], stable[i] = min(rates[i], most[i]), rates[i] < most[i]
        response[i], utilization[i] = np.inf, 1.0
        if rates[i] == 0:
            response[i], utilization[i] = 1 / (mu[i] * multiple[0]), 0.0
        elif stable[i]:
            log_total, mean, _ = number_moments(rates[i] / mu[i], multiple, ended=False)
            response[i], utilization[i] = mean / rates[i], -np.expm1(-log_total)
    return net.result(
        model="Jackson",
        kind="exact",
        offered=offered,
        throughput=throughput,
        utilization=utilization,
        response=response,
        stable=stable,
    )


def limited_flows(
    gamma: FloatArray, routing: FloatArray, limit: FloatArray, offered: FloatArray
) -> FloatArray:
    """Arrival rate at each station when overloaded ones send on no more than their capacity.

    The overloaded stations of the unlimited flows contain those of any smaller flows: limit them,
    solve for the others again, until no station leaves the set.
    """
    rates, over = offered, offered > limit
    while over.any():
        fixed = np.where(over, limit, 0.0)
        sent = solve_traffic(gamma + fixed @ routing, np.where(over[:, None], 0.0, routing))
        still = over & (sent > limit)
        rates = sent
        if np.array_equal(still, over):
            break
        over = still
    return rates
