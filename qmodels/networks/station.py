"""A single station with open classes: which of the models of queues covers it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qmodels import queues
from qmodels.checks import FloatArray
from qmodels.networks.facts import network_answer, no_model
from qmodels.result import QueueResult
from qmodels.systems.laws.kinds import is_exponential, is_renewal, markovian, phase_type
from qmodels.systems.laws.times import (
    MAP,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Geometric,
    HyperExponential,
    PhaseType,
    Replay,
    Uniform,
)
from qmodels.systems.spec.answer import Answer
from qmodels.systems.stations.parts import JobClass, Station
from qmodels.systems.stations.queueing_network import QueueingNetwork

INF = float("inf")
CLOSED = (Deterministic, Exponential, Erlang, Gamma, HyperExponential, Empirical, PhaseType)
"""Laws whose formulas are closed forms: models that use more than two moments are taken for these."""
COUNTED = (*CLOSED, Uniform)
"""Laws in whose formulas arrivals are counted."""
MOST_STATES = 600
"""States with a free server up to which several servers are solved as a chain: a second."""
Found = tuple[QueueResult, str]
"""A result, and whether it is exact or an approximation."""


@dataclass(frozen=True, kw_only=True)
class Queue:
    """All jobs of a station as one stream: what the models look at."""

    station: Station
    arrivals: Any
    service: Any
    """The law, or None where several classes differ."""
    rate: float
    mean: float
    scv: float
    poisson: bool
    exponential: bool
    extras: frozenset[str]
    batch: Any
    patience: Any
    chains: bool = True

    @property
    def moments(self) -> dict[str, Any]:
        """The arguments of models that take two moments of the service."""
        return {"arrival_rate": self.rate, "mean_service_time": self.mean, "service_scv": self.scv}


def solve_station(network: QueueingNetwork, *, chains: bool = True) -> Answer | None:
    """Return the answer of the model that covers a single station with open classes, or None.

    ``chains``: whether several servers are solved as a chain, see `solve_network`.
    """
    station, classes = network.stations[0], network.classes
    laws = [network.service_law(0, k) for k in range(len(classes))]
    if any(isinstance(law, Replay) or (len(classes) > 1 and not is_renewal(law)) for law in laws):
        return None
    if station.discipline in ("sharing", "lifo-preemptive") and len(classes) > 1:
        return None
    rates = network.arrival_rates
    queue = replace(_merge(station, classes, laws, rates, network.clocked), chains=chains)
    if queue.mean == 0:
        raise no_model(f"services that take no time at station {station.name!r}")
    found: Found | None
    if station.discipline.startswith("priority") and len({c.priority for c in classes}) > 1:
        found = _priorities(queue, classes, laws, rates)
    else:
        found = _one_stream(queue)
    if found is None:
        return None
    result, kind = found
    if station.discipline == "lifo":
        result = _means_only(result)
    return _answer(network, laws, rates, result, kind)


def _merge(
    station: Station, classes: tuple[JobClass, ...], laws: list[Any], rates: FloatArray, clocked: bool
) -> Queue:
    extras = {n for n in ("rate_multiplier", "setup", "vacation") if getattr(station, n)}
    extras |= {n for n in ("batch", "patience") for c in classes if getattr(c, n) is not None}
    extras |= {"clocked"} if clocked else set()
    mean, scv = mixture(rates, [law.mean for law in laws], [law.scv for law in laws])
    same = all(law == laws[0] for law in laws)
    return Queue(
        station=station,
        arrivals=classes[0].arrivals if len(classes) == 1 else None,
        service=laws[0] if same else None,
        rate=float(rates.sum()),
        mean=mean,
        scv=scv,
        poisson=all(is_exponential(c.arrivals) for c in classes),
        exponential=same and is_exponential(laws[0]),
        extras=frozenset(extras),
        batch=classes[0].batch if len(classes) == 1 else None,
        patience=classes[0].patience if len(classes) == 1 else None,
    )


def _one_stream(q: Queue) -> Found | None:
    """Return the model of a station whose jobs differ in nothing that its discipline looks at."""
    if "clocked" in q.extras:
        return _clocked(q)
    if q.extras:
        return _with_extra(q)
    if q.service is not None and not is_renewal(q.service) and q.station.discipline not in ("fifo", "lifo"):
        return None
    if q.station.delay:
        return _delay(q)
    if q.station.capacity < INF:
        return _finite(q)
    if q.station.discipline == "sharing":
        if not (q.poisson and q.station.servers == 1):
            return None
        if q.exponential:
            return queues.mm1_ps(arrival_rate=q.rate, service_rate=1 / q.mean), "exact"
        return queues.mg1_ps(arrival_rate=q.rate, mean_service_time=q.mean), "exact"
    if q.station.discipline == "lifo-preemptive":
        return None
    return _poisson(q) if q.poisson else _renewal(q)


def _closed(law: Any, kinds: tuple[type[Any], ...] = CLOSED) -> bool:
    return isinstance(law, kinds) and (min(law.values) if isinstance(law, Empirical) else law.mean) > 0


def mixture(weights: Any, means: Any, scvs: Any) -> tuple[float, float]:
    """Return mean and SCV of a time that is of one of several kinds."""
    shares = np.asarray(weights) / np.sum(weights)
    mean = float(shares @ means)
    if mean == 0:
        return 0.0, 0.0
    # Of constants, rounding may leave a little less than 0.
    return mean, max(float(shares @ (np.square(means) * (1 + np.asarray(scvs))) / mean**2 - 1), 0.0)


def _delay(q: Queue) -> Found | None:
    if not q.poisson or not (q.service is None or is_renewal(q.service)):
        return None
    if q.station.capacity < INF:
        places = int(q.station.capacity)
        result = queues.mgcc(arrival_rate=q.rate, mean_service_time=q.mean, servers=places)
        return replace(result, utilization=np.zeros(())), "exact"
    return queues.mginf(arrival_rate=q.rate, mean_service_time=q.mean), "exact"


def _poisson(q: Queue) -> Found | None:
    c = int(q.station.servers)
    if isinstance(q.service, MAP) and not q.exponential:
        return _renewal(q)
    if q.exponential:
        return queues.mmc(arrival_rate=q.rate, service_rate=1 / q.mean, servers=c), "exact"
    if isinstance(q.service, Deterministic) and q.mean > 0:
        if c == 1:  # its sums have a closed form
            return replace(queues.md1(arrival_rate=q.rate, service_rate=1 / q.mean), model="M/D/c"), "exact"
        return queues.mdc(arrival_rate=q.rate, service_rate=1 / q.mean, servers=c), "exact"
    if not np.isfinite(q.scv):
        return None
    if c == 1:
        if _closed(q.service):
            return queues.mg1_fcfs(arrival_rate=q.rate, service=q.service), "exact"
        return queues.mg1(**q.moments), "exact"
    found = _chain(q, Exponential(mean=1 / q.rate))
    if found is not None:
        return found
    return queues.ggc_kimura(**q.moments, servers=c, arrival_scv=1.0), "approximation"


def _renewal(q: Queue) -> Found | None:
    """Return the model for arrivals that are not Poisson, or services that depend on each other."""
    from qmodels.markov import gi_ph_1, map_g_1, map_map_1, map_ph_1

    c, arrivals = int(q.station.servers), q.arrivals
    if arrivals is None or q.service is None:
        return None
    correlated, phased = markovian(arrivals) is not None, phase_type(q.service) is not None
    if q.exponential and is_renewal(arrivals) and np.isfinite(arrivals.scv):
        return queues.gmc(arrival=arrivals, service_rate=1 / q.mean, servers=c), "exact"
    if c == 1 and correlated and isinstance(q.service, MAP):
        return map_map_1(arrivals=arrivals, service=q.service), "exact"
    if c == 1 and correlated and phased:
        return map_ph_1(arrivals=arrivals, service=q.service), "exact"
    if c == 1 and correlated and _closed(q.service, COUNTED):
        return map_g_1(arrivals=arrivals, service=q.service), "exact"
    if c == 1 and phased and _closed(arrivals, COUNTED):
        return gi_ph_1(arrival=arrivals, service=q.service), "exact"
    found = _chain(q, arrivals)
    if found is not None:
        return found
    if not (is_renewal(arrivals) and is_renewal(q.service) and np.isfinite(q.scv + arrivals.scv)):
        return None
    if q.scv == arrivals.scv == 0:
        # Constant times: nobody waits for anybody.
        return replace(queues.ggc_whitt(**q.moments, servers=c, arrival_scv=0.0), model="D/D/c"), "exact"
    if c == 1:
        return queues.gg1_klb(**q.moments, arrival_scv=arrivals.scv), "approximation"
    return queues.ggc_whitt(**q.moments, servers=c, arrival_scv=arrivals.scv), "approximation"


def _chain(q: Queue, arrivals: Any) -> Found | None:
    """Return MAP/PH/c as a chain, if it is one and small enough."""
    from qmodels.markov import map_ph_c
    from qmodels.markov.processes.map_queues import states_of_servers

    source, law = markovian(arrivals), None if q.service is None else phase_type(q.service)
    servers = int(q.station.servers)
    if source is None or law is None or not q.chains:
        return None
    size = states_of_servers(arrival_phases=len(source.d0), service_phases=len(law.initial), servers=servers)
    if size > MOST_STATES:
        return None
    return map_ph_c(arrivals=arrivals, service=q.service, servers=servers), "exact"


def _finite(q: Queue) -> Found | None:
    from qmodels.markov import map_g_1_k

    c, capacity = int(q.station.servers), int(q.station.capacity)
    sharing = q.station.discipline == "sharing"
    if q.station.discipline == "lifo-preemptive" or not (q.service is None or is_renewal(q.service)):
        return None
    if q.poisson and (q.exponential or sharing):
        # Sharing makes the number of jobs insensitive to the law of the service.
        result = queues.mmck(arrival_rate=q.rate, service_rate=1 / q.mean, servers=c, capacity=capacity)
        return (_means_only(result) if sharing else result), "exact"
    if q.poisson and c == capacity:
        return queues.mgcc(arrival_rate=q.rate, mean_service_time=q.mean, servers=c), "exact"
    if sharing or c > 1 or not _closed(q.service):
        return None
    if q.poisson:
        return queues.mg1k(arrival_rate=q.rate, service=q.service, capacity=capacity), "exact"
    if q.arrivals is None or markovian(q.arrivals) is None:
        return None
    return map_g_1_k(arrivals=q.arrivals, service=q.service, capacity=capacity), "exact"


def _with_extra(q: Queue) -> Found | None:
    """Return the model for one of the features that only single queues have; two at once have none."""
    station = q.station
    if len(q.extras) > 1 or not q.poisson or station.discipline not in ("fifo", "lifo"):
        return None
    (extra,) = q.extras
    if extra == "rate_multiplier":
        if not q.exponential or station.capacity == INF:
            return None
        speeds = np.array(station.rate_multiplier)
        number = np.minimum(np.arange(int(station.capacity)), speeds.size - 1)
        return queues.state_dependent(
            arrival_rates=np.full(int(station.capacity) + 1, q.rate), service_rates=speeds[number] / q.mean
        ), "exact"
    if station.capacity < INF or not (q.service is None or is_renewal(q.service)):
        return None
    if extra == "patience":
        if not (q.exponential and q.patience is not None and is_exponential(q.patience)) or station.delay:
            return None
        return queues.erlang_a(
            arrival_rate=q.rate,
            service_rate=1 / q.mean,
            servers=int(station.servers),
            patience_rate=1 / q.patience.mean,
        ), "exact"
    if station.servers != 1 or not np.isfinite(q.scv):
        return None
    if extra == "batch":
        if q.batch is None:
            return None
        size = q.batch
        moments = {"batch_mean": size.mean, "batch_second_moment": size.mean**2 * (1 + size.scv)}
        return queues.mxg1(**{**q.moments, "arrival_rate": q.rate / size.mean}, **moments), "exact"
    away = getattr(station, extra)
    if not _closed(away):
        return None
    if extra == "vacation":
        multiple = station.multiple_vacations
        return queues.mg1_vacations(**q.moments, vacation=away, multiple=multiple), "exact"
    return queues.mg1_setup(**q.moments, setup=away, threshold=station.setup_threshold), "exact"


def _clocked(q: Queue) -> Found | None:
    station = q.station
    plain = station.servers == 1 and station.capacity == INF and station.discipline in ("fifo", "lifo")
    if (
        q.extras - {"clocked", "batch"}
        or not plain
        or not isinstance(q.arrivals, Geometric)
        or q.service is None
    ):
        return None
    if q.mean < 1 or not is_renewal(q.service):
        return None
    if q.batch is None:
        return queues.geog1(**q.moments), "exact"
    chance, size = 1 / q.arrivals.mean, q.batch
    variance = chance * size.mean**2 * (1 + size.scv) - q.rate**2
    return queues.geoxg1(**q.moments, arrival_variance=variance), "exact"


def _priorities(q: Queue, classes: tuple[JobClass, ...], laws: list[Any], rates: FloatArray) -> Found | None:
    """Return the model with priorities; one entry per class, in their order."""
    station = q.station
    preemptive = station.discipline == "priority-preemptive"
    if q.extras or not q.poisson or station.capacity < INF or not all(map(is_renewal, laws)):
        return None
    levels = sorted({c.priority for c in classes})
    members = [[k for k, c in enumerate(classes) if c.priority == level] for level in levels]
    means, scvs = np.array([law.mean for law in laws]), np.array([law.scv for law in laws])
    if preemptive and any(np.ptp(means[m]) > 0 or np.ptp(scvs[m]) > 0 for m in members):
        # Longer services of the same level are interrupted more often: no formula here for their mix.
        return None
    if station.servers == 1 and np.isfinite(scvs).all():
        solve = queues.mg1_preemptive_resume if preemptive else queues.mg1_nonpreemptive
        moments = np.array([mixture(rates[m], means[m], scvs[m]) for m in members])
        result = solve(
            arrival_rate=np.array([rates[m].sum() for m in members]),
            mean_service_time=moments[:, 0],
            service_scv=moments[:, 1],
        )
    elif q.exponential and not station.delay:
        many = queues.mmc_preemptive if preemptive else queues.mmc_nonpreemptive
        flows = np.array([rates[m].sum() for m in members])
        result = many(arrival_rate=flows, service_rate=1 / q.mean, servers=int(station.servers))
    else:
        return None
    level = np.array([levels.index(c.priority) for c in classes])
    share = rates / np.array([rates[members[j]].sum() for j in level])
    return QueueResult(
        model=result.model,
        arrival_rate=rates,
        throughput=result.throughput[level] * share,
        utilization=result.throughput[level] * share * means / station.servers,
        mean_waiting_time=result.mean_waiting_time[level],
        mean_service_time=means,
    ), "exact"


def _means_only(result: QueueResult) -> QueueResult:
    """Return the means of a result, which hold for other orders of service than its distributions."""
    return replace(
        result,
        waiting_time_variance=None,
        response_time_variance=None,
        waiting_tail=None,
        response_tail=None,
        waiting_quantile=None,
        response_quantile=None,
    )


def _answer(
    network: QueueingNetwork, laws: list[Any], rates: FloatArray, result: QueueResult, kind: str
) -> Answer:
    """Return the answer by class; the classes of one stream wait alike and share its throughput."""
    station, size = network.stations[0], len(network.classes)
    share = np.ones(size) if np.ndim(result.throughput) else rates / rates.sum()
    wait = np.broadcast_to(result.mean_waiting_time, (size,))
    service = np.array([law.mean for law in laws]) if size > 1 else np.ravel(result.mean_service_time)
    served = np.asarray(result.throughput * share)
    stays = 1.0 if result.abandonment_probability is None else 1 - result.abandonment_probability
    full = np.isinf(wait)
    queued = np.where(full, np.inf, served / stays * np.where(full, 0.0, wait))
    number = queued + served * service
    response = np.asarray(wait + stays * service)
    visits = {
        "throughput": served,
        "utilization": np.ravel(result.utilization) if size == 1 else served * service / station.servers,
        "mean_waiting_time": wait,
        "mean_response_time": response,
        # With shared servers nobody is in the queue.
        "mean_number_in_queue": queued if station.discipline != "sharing" else np.full(size, np.nan),
        "mean_number_in_system": number,
    }
    for name in ("waiting_probability", "blocking_probability", "abandonment_probability"):
        value = getattr(result, name)
        if value is not None and (name != "waiting_probability" or station.discipline != "sharing"):
            visits[name] = np.broadcast_to(value, (size,))
    passages = {"system_throughput": served, "mean_number_in_network": number}
    if result.abandonment_probability is None:
        passages["system_response_time"] = response
    if result.abandonment_probability is not None or result.blocking_probability is not None:
        passages["system_loss_probability"] = 1 - served / rates
    return network_answer(
        network,
        model=result.model,
        kind=kind,
        visits={name: np.asarray(row, dtype=float)[None, :] for name, row in visits.items()},
        passages=passages,
        stable=bool(np.all(np.isfinite(wait))),
        result=result,
    )
