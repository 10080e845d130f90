"""Solve a queueing network's spec: find the method that covers it, and say which it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qmodels.laws.of_law import phases
from qmodels.networks.closed.amva import linearizer
from qmodels.networks.closed.inputs import describe
from qmodels.networks.closed.mva import mva
from qmodels.networks.closed.phased import MOST_STATES, Server, chain_states, closed_chain
from qmodels.networks.facts import (
    all_exponential,
    answer_of,
    entering_flows,
    entering_scvs,
    multipliers_of,
    network_answer,
    no_model,
    product_form_breaker,
    servers_of,
    service_rates_of,
    switches_class,
    times_of,
    visits_of,
)
from qmodels.networks.mixed import mixed
from qmodels.networks.open.bcmp import bcmp
from qmodels.networks.open.blocking import loss_network, tandem_blocking
from qmodels.networks.open.fork_join import fork_join, fork_join_unequal
from qmodels.networks.open.jackson import jackson
from qmodels.networks.open.qna import qna
from qmodels.networks.station import solve_station
from qmodels.queues.markovian.mmc import mm1
from qmodels.systems.laws.kinds import is_exponential, is_renewal, phase_type
from qmodels.systems.spec.answer import Answer
from qmodels.systems.stations.parts import LEAVE, Probabilistic
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


_BCMP = {"sharing": "ps", "lifo-preemptive": "lcfs", "fifo": "fcfs"}
_AMVA = {
    "fifo": "fcfs",
    "sharing": "ps",
    "lifo-preemptive": "ps",
    "priority": "priority",
    "priority-preemptive": "preemptive",
}


def solve_network(network: QueueingNetwork, *, by_visits: bool = False, chains: bool = True) -> Answer:
    r"""Solve a queueing network with the method that covers it, an exact one if there is one.

    Parameters
    ----------
    network : QueueingNetwork
        The spec.
    by_visits : bool
        Whether only the numbers of visits are meant, not the order in which jobs go round; then no method is
        taken to which that matters.
    chains : bool
        Whether several servers are solved as a chain, which may take a second.

    Returns
    -------
    Answer
        With the name of the method and whether it is exact. An approximation has the error that was
        measured of it (`methods`), and a doubt where it was measured on other networks only. Where
        overloaded, times are ``inf``.

    Raises
    ------
    ValueError
        If no method covers the network: the message names the feature.

    Notes
    -----
    A single station with open classes goes to the models of `qmodels.queues` and
    `qmodels.markov`: :math:`M/M/c`, :math:`M/D/c`, :math:`M/G/1`, :math:`GI/M/c`, :math:`GI/PH/1`,
    :math:`MAP/G/1`, :math:`MAP/PH/c`, losses (:math:`M/M/c/K`, :math:`M/G/c/c`, :math:`MAP/G/1/K`),
    priorities, sharing, batches, vacations, set-up, impatience, rates that depend on the number, and clocked
    time; otherwise to two-moment approximations of :math:`GI/G/c`. The means of "lifo" are those of "fifo".

    Networks with a product form (Poisson arrivals; exponential service that is the same for
    every class at "fifo", any service at "sharing", "lifo-preemptive" and delays) go to
    `jackson`, `bcmp`, `mva` or `mixed`. Others: to `qna` (open, one class, "fifo"), `linearizer`
    (closed), `tandem_blocking`, `loss_network` and `fork_join` as their docstrings say. Closed ones of one
    class, "fifo" or shared, with services made of phases, are solved as a chain of up to 100,000 states.

    Examples
    --------
    >>> from qmodels.systems.laws.times import Erlang, Exponential
    >>> from qmodels.systems.stations.queueing_network import single_station
    >>> poisson = Exponential(mean=1.25)
    >>> answer = solve_network(single_station(arrivals=poisson, service=Erlang(mean=1.0, phases=2)))
    >>> answer.model, answer.kind, round(answer.metrics["mean_waiting_time"], 6)
    ('M/G/1', 'exact', 3.0)
    """
    if _is_single(network):
        answer = solve_station(network, chains=chains)
        if answer is not None:
            return answer
    _refuse_extras(network)
    if network.forks:
        return solve_fork(network)
    if any(not isinstance(rule, Probabilistic) for rule in network.rules.values()):
        kinds = {type(rule).__name__ for rule in network.rules.values()} - {"Probabilistic"}
        raise no_model(f"{', '.join(sorted(kinds))} routing")
    closed = network.populations > 0
    if _is_finite(network, int(network.populations.sum())):
        return solve_finite(network)
    if not closed.any():
        return _open(network)
    if switches_class(network.routing_matrix):
        raise no_model("jobs that change class in a network with closed classes")
    if any(not c.closed and c.arrivals is None for c in network.classes):
        raise no_model("a class without arrivals or jobs of its own")
    return _closed(network, by_visits=by_visits) if closed.all() else _mixed(network)


def _is_single(network: QueueingNetwork) -> bool:
    """Return whether jobs come to one station once."""
    if len(network.stations) > 1 or network.forks or any(c.arrivals is None for c in network.classes):
        return False
    entries = all(rule.destinations == ((network.stations[0].name, ""),) for rule in network.entries.values())
    return entries and all(rule.destinations == ((LEAVE, ""),) for rule in network.rules.values())


def _refuse_extras(network: QueueingNetwork) -> None:
    single = len(network.stations) == 1
    where = "" if single else " in a network"
    if network.clocked:
        raise no_model("this station in clocked time" if single else "networks in clocked time")
    for station in network.stations:
        for name in ("setup", "vacation"):
            if getattr(station, name) is not None:
                raise no_model(f"the {name} of station {station.name!r}{where or ' with its other features'}")
        alone = all_exponential(network) and len(network.classes) == 1 and station.servers == 1
        if station.rate_multiplier and not alone:
            where = f"station {station.name!r} but for one class, one server, all exponential"
            raise no_model(f"the rate_multiplier of {where}")
    for c in network.classes:
        for name in ("batch", "patience"):
            if getattr(c, name) is not None:
                raise no_model(f"the {name} of class {c.name!r}{where or ' with its other features'}")
        if c.arrivals is not None and not is_renewal(c.arrivals):
            kind = type(c.arrivals).__name__
            raise no_model(f"{kind} arrivals of class {c.name!r}{where or ' at such a station'}")
    for node, k in sorted(network.visited):
        law = network.service_law(node, k) if node < len(network.stations) else None
        if law is not None and not is_renewal(law):
            name = network.stations[node].name
            raise no_model(f"{type(law).__name__} service at station {name!r}{where or ' with its features'}")


def _is_finite(network: QueueingNetwork, jobs: int) -> bool:
    opened = any(c.arrivals is not None for c in network.classes)
    return any(s.capacity < (INF if opened else jobs) for s in network.stations)


def _open(network: QueueingNetwork) -> Answer:
    entering, times, servers = entering_flows(network), times_of(network), servers_of(network)
    matrix, breaker = network.routing_matrix, product_form_breaker(network)
    if len(network.classes) > 1:
        if breaker:
            raise no_model(f"{breaker} in an open network of several classes")
        kept = matrix if switches_class(matrix) else np.einsum("irjr->rij", matrix)
        words = ["is" if s.delay else _BCMP.get(s.discipline, "fcfs") for s in network.stations]
        result = bcmp(
            arrival_rate=entering, mean_service_time=times, routing=kept, servers=servers, discipline=words
        )
        return answer_of(network, result)
    routing, rates = matrix[:, 0, :, 0], service_rates_of(network)
    if not breaker:
        varying = multipliers_of(network)
        result = jackson(
            arrival_rate=entering[:, 0],
            service_rate=rates,
            routing=routing,
            servers=servers,
            rate_multiplier=varying,
        )
        return answer_of(network, result)
    scv = times_of(network, "scv")[:, 0]
    law = network.classes[0].arrivals
    if not np.isfinite(np.append(scv, law.scv)).all():
        raise no_model("times of infinite variance")
    odd = [s for s in network.stations if s.discipline not in ("fifo", "lifo") and not s.delay]
    if odd:
        raise no_model(f"{breaker}, beside discipline {odd[0].discipline!r} of station {odd[0].name!r}")
    result = qna(
        arrival_rate=entering[:, 0],
        service_rate=rates,
        routing=routing,
        servers=servers,
        arrival_scv=entering_scvs(network),
        service_scv=scv,
    )
    return answer_of(network, result)


def _closed(network: QueueingNetwork, *, by_visits: bool) -> Answer:
    common = {
        "population": network.populations,
        "mean_service_time": times_of(network),
        "visits": visits_of(network),
        "servers": servers_of(network),
    }
    breaker = product_form_breaker(network)
    if not breaker:
        return answer_of(network, mva(**common, rate_multiplier=multipliers_of(network)))
    if multipliers_of(network):
        raise no_model(f"{breaker} beside a rate_multiplier")
    stations = [] if by_visits else _phased(network)
    if stations and chain_states(stations, int(network.populations.sum())) <= MOST_STATES:
        routing = network.routing_matrix[:, 0, :, 0]
        return answer_of(network, closed_chain(describe(**common), stations, routing))
    for station in network.stations:
        if station.discipline == "lifo" and not station.delay:
            raise no_model(f"discipline 'lifo' of station {station.name!r} in such a closed network")
    scv = times_of(network, "scv")
    if not np.isfinite(scv).all():
        raise no_model("times of infinite variance")
    words = [_AMVA.get(s.discipline, "fcfs") for s in network.stations]
    ranks = [c.priority for c in network.classes]
    return answer_of(network, linearizer(**common, discipline=words, service_scv=scv, priority=ranks))


def _phased(network: QueueingNetwork) -> list[Server]:
    """Return the stations of a network of one class whose services are made of phases, else nothing."""
    laws = [network.service_law(i, 0) for i in range(len(network.stations))]
    sharing = [s.discipline in ("sharing", "lifo-preemptive") for s in network.stations]
    stacks = any(
        s.discipline == "lifo-preemptive" and not is_exponential(law)
        for s, law in zip(network.stations, laws, strict=True)
    )
    if len(network.classes) > 1 or stacks or any(law is None or phase_type(law) is None for law in laws):
        return []
    known = [law for law in laws if law is not None]
    return [
        Server(phases("service", law), float(s.servers), shared)
        for s, law, shared in zip(network.stations, known, sharing, strict=True)
    ]


def _mixed(network: QueueingNetwork) -> Answer:
    breaker = product_form_breaker(network)
    if breaker:
        raise no_model(f"{breaker} in a network of open and closed classes")
    result = mixed(
        arrival_rate=network.arrival_rates,
        population=network.populations,
        mean_service_time=times_of(network),
        visits=visits_of(network),
        servers=servers_of(network),
    )
    return answer_of(network, result)
