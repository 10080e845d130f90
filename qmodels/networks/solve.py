"""Solve a queueing network's spec: find the method that covers it, and say which it was."""

from __future__ import annotations

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
    no_model,
    product_form_breaker,
    servers_of,
    service_rates_of,
    switches_class,
    times_of,
    visits_of,
)
from qmodels.networks.finite import solve_finite, solve_fork
from qmodels.networks.mixed import mixed
from qmodels.networks.open.bcmp import bcmp
from qmodels.networks.open.jackson import jackson
from qmodels.networks.open.qna import qna
from qmodels.networks.station import solve_station
from qmodels.systems.laws.kinds import is_exponential, is_renewal, phase_type
from qmodels.systems.spec.answer import Answer
from qmodels.systems.stations.parts import LEAVE, Probabilistic
from qmodels.systems.stations.queueing_network import QueueingNetwork

INF = float("inf")
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
