"""Open Jackson networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.closed.inputs import multipliers, server_counts
from qmodels.networks.closed.lattice import number_moments
from qmodels.networks.open.traffic import per_station, read_routing, solve_traffic
from qmodels.networks.result import NetworkResult
from qmodels.queues.markovian.mmc import mmc


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

    Parameters
    ----------
    arrival_rate : array_like or mapping
        Jobs from outside, per station. [jobs / time]
    service_rate : array_like or mapping
        Rate of *one* server of each station. [jobs / time]
    routing : networkx.DiGraph or array_like of shape (stations, stations)
        A graph with the edge attribute ``probability``, whose nodes name the stations, or the
        matrix of the probabilities; what is missing to 1 leaves the network.
    servers : int, array_like or mapping, optional
        Servers per station; ``inf`` for a delay.
    rate_multiplier : mapping of station to sequence, optional
        Rate of a station with 1, 2, ... jobs as a multiple of its `service_rate`; the last
        value holds for all larger numbers.

    Returns
    -------
    NetworkResult
        Kind "exact". A station that gets more than it can serve has response time ``inf``,
        utilization 1 and `stable` False and sends on what its servers can do; the others are
        solved with that flow.

    Raises
    ------
    ValueError
        If an argument is out of range or jobs enter a part of the network that they never leave.

    Notes
    -----
    The flows solve :math:`\lambda_j = \gamma_j + \sum_i \min(\lambda_i, c_i\mu_i) p_{ij}`; each
    station then is an M/M/c (or a birth-death) queue of its own [1]_, and so are the stable stations next to
    overloaded ones [2]_. Exact; the product form is that of the numbers at one time, response
    times on a path with loops or overtaking are not independent.

    References
    ----------
    .. [1] J. R. Jackson, "Networks of waiting lines", *Operations Research* 5(4), 1957,
       pp. 518-521.
    .. [2] J. B. Goodman, W. A. Massey, "The non-ergodic Jackson network", *Journal of Applied
       Probability* 21(4), 1984, pp. 860-869.

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
    stations, matrix = read_routing(routing)
    if matrix.ndim != 2:
        raise ValueError(f"routing must have the shape (stations, stations), got {matrix.shape}; see bcmp")
    size = len(stations)

    def per(name: str, value: Any, check: Any) -> FloatArray:
        array = check(name, per_station(name, value, stations))
        if array.shape not in ((), (size,)):
            raise ValueError(f"{name} must have the shape ({size},), got {array.shape}")
        return np.broadcast_to(array, (size,))

    gamma = per("arrival_rate", arrival_rate, checks.nonnegative)
    mu = per("service_rate", service_rate, checks.positive)
    count = server_counts(servers, stations)
    varying = multipliers(rate_multiplier, count, stations)
    most = mu * count
    for i, multiple in varying.items():
        most[i] = mu[i] * multiple[-1]
    offered = solve_traffic(gamma, matrix)
    rates = limited_flows(gamma, matrix, most, offered)
    response = 1 / mu
    throughput, utilization, stable = rates.copy(), np.zeros(size), np.ones(size, dtype=bool)
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
    entering = gamma.sum()
    return NetworkResult(
        model="Jackson",
        kind="exact",
        stations=stations,
        throughput=throughput,
        utilization=utilization,
        visits=offered / entering if entering > 0 else np.zeros(size),
        mean_response_time=response,
        mean_number_in_system=np.where(throughput > 0, throughput * response, 0.0),
        system_throughput=float(throughput @ np.maximum(1 - matrix.sum(axis=1), 0.0)),
        stable=stable,
        routing=matrix,
    )


def limited_flows(
    gamma: FloatArray, routing: FloatArray, limit: FloatArray, offered: FloatArray
) -> FloatArray:
    """Return what arrives at each station when overloaded ones send on no more than their limit.

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
