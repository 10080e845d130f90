"""Networks with finite stations, and jobs that fork: what the approximations of them cover."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qmodels.networks.facts import (
    all_exponential,
    answer_of,
    entering_flows,
    entering_scvs,
    network_answer,
    no_model,
    servers_of,
    service_rates_of,
    times_of,
)
from qmodels.networks.open.blocking import loss_network, tandem_blocking
from qmodels.networks.open.fork_join import fork_join, fork_join_unequal
from qmodels.queues.markovian.mmc import mm1
from qmodels.systems.spec.answer import Answer
from qmodels.systems.stations.parts import LEAVE
from qmodels.systems.stations.queueing_network import QueueingNetwork

INF = float("inf")


def solve_finite(network: QueueingNetwork) -> Answer:
    """Solve open networks with finite stations: lines, and losses with Poisson flows."""
    stations = network.stations
    if any(c.closed for c in network.classes) or len(network.classes) > 1:
        raise no_model("finite capacities in a network with closed or several classes")
    if any(s.capacity == INF for s in stations):
        raise no_model("a network in which some capacities are finite and others not")
    if any(s.discipline not in ("fifo", "lifo") or s.rate_multiplier or s.delay for s in stations):
        raise no_model("finite capacities but with fifo service of constant rate")
    law = network.classes[0].arrivals
    capacity = np.array([int(s.capacity) for s in stations])
    routing, entering = network.routing_matrix[:, 0, :, 0], entering_flows(network)[:, 0]
    rates = service_rates_of(network)
    scv = times_of(network, "scv")[:, 0]
    if not np.isfinite(np.append(scv, law.scv)).all():
        raise no_model("times of infinite variance")
    kinds = {s.when_full for s in stations[1:]} or {"loss"}
    line = np.eye(len(stations), k=1)
    if np.array_equal(routing, line) and not entering[1:].any() and all(s.servers == 1 for s in stations):
        if len(kinds) == 1:
            result = tandem_blocking(
                arrival_rate=float(entering[0]),
                service_rate=rates,
                capacity=capacity,
                blocking=kinds.pop(),
                arrival_scv=float(entering_scvs(network)[0]),
                service_scv=scv,
            )
            if "loss" not in (s.when_full for s in stations[1:]):
                # A job that finds a later station full is held, not lost.
                blocked = np.asarray(result.blocking_probability, dtype=float)
                lost = np.where(np.arange(len(stations)) == 0, blocked, np.nan)
                result = replace(result, blocking_probability=lost)
            return answer_of(network, result)
        raise no_model("different blocking at the stations of a line")
    if kinds != {"loss"}:
        raise no_model("blocking but in a line of single servers")
    if not all_exponential(network):
        raise no_model("losses in a network that is not exponential")
    return answer_of(
        network,
        loss_network(
            arrival_rate=entering,
            service_rate=rates,
            routing=routing,
            capacity=capacity,
            servers=servers_of(network).astype(np.int64),
        ),
    )


def solve_fork(network: QueueingNetwork) -> Answer:
    """Solve jobs that fork on arrival to exponential single servers, join and leave."""
    fork, c = network.forks[0], network.classes[0]
    plain = (
        len(network.forks) == 1
        and len(network.classes) == 1
        and len(fork.branches) == len(network.stations)
        and sorted(branch[0] for branch in fork.branches) == sorted(network.station_names)
        and all(len(branch) == 1 for branch in fork.branches)
        and c.arrivals is not None
        and network.entries[0].destinations == ((fork.name, ""),)
        and network.rules[len(network.stations), 0].destinations == ((LEAVE, ""),)
        and all(s.servers == 1 and s.discipline == "fifo" and not s.rate_multiplier for s in network.stations)
    )
    if not plain or not all_exponential(network):
        raise no_model("forks but of Poisson jobs on arrival to exponential single servers, one each")
    rate, mu = float(network.arrival_rates[0]), service_rates_of(network)
    if np.ptp(mu) == 0:
        result = fork_join(arrival_rate=rate, service_rate=mu[0], branches=mu.size)
    else:
        result = fork_join_unequal(arrival_rate=rate, service_rates=mu)
    branch = mm1(arrival_rate=rate, service_rate=mu)
    names = (
        "throughput",
        "utilization",
        "mean_waiting_time",
        "mean_response_time",
        "mean_number_in_queue",
        "mean_number_in_system",
        "waiting_probability",
    )
    return network_answer(
        network,
        model=result.model,
        kind=result.kind,
        visits={name: np.asarray(getattr(branch, name))[:, None] for name in names},
        passages={
            "system_throughput": np.atleast_1d(result.throughput),
            "system_response_time": np.atleast_1d(result.mean_response_time),
            "mean_number_in_network": np.atleast_1d(result.mean_number_in_system),
        },
        stable=bool(np.all(result.stable)),
        result=result,
    )
