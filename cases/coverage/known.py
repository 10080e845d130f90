"""Systems whose steady state is known, and their specs: what simulations are held against."""

# Specs take lists where they keep tuples.
# mypy: disable-error-code="arg-type"
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from qmodels import markov, networks, queues
from qmodels.systems.laws.times import (
    MAP,
    Deterministic,
    Erlang,
    Exponential,
    Gamma,
    Geometric,
    HyperExponential,
    LogNormal,
    PhaseType,
    Uniform,
)
from qmodels.systems.stations.parts import INF, ForkJoin, JobClass, Station
from qmodels.systems.stations.queueing_network import QueueingNetwork, single_station, tandem
from qmodels.systems.stations.routing import Cyclic, ShortestQueue, StateDependent

WAIT, RESPONSE, NUMBER = "mean_waiting_time", "mean_response_time", "mean_number_in_system"
SYSTEM = "system_response_time"
LOSS, GIVE_UP, THROUGHPUT = "blocking_probability", "abandonment_probability", "throughput"
HYPER = {"probabilities": [0.25, 0.75], "means": [2.5, 0.5]}


class Known(NamedTuple):
    """A system and the exact values of metrics, by the names that the simulation gives them."""

    name: str
    load: float
    spec: QueueingNetwork
    exact: dict[str, float]


def poisson(rate: float) -> Exponential:
    """Return the gaps of Poisson arrivals."""
    return Exponential(mean=1 / rate)


def one(name: str, load: float, spec: QueueingNetwork, result: Any, *metrics: str) -> Known:
    """Return a system whose exact values are those of a queue's result."""
    place = "[queue]" if len(spec.stations) > 1 else ""
    exact = {metric + place: float(getattr(result, metric)) for metric in metrics}
    return Known(name=name, load=load, spec=spec, exact=exact)


def single_class() -> Iterator[Known]:
    """Yield M/G/1, GI/M/c, finite and impatient queues, one class each."""
    unit = Exponential(mean=1.0)
    for load in (0.1, 0.5, 0.8, 0.95):
        spec = single_station(arrivals=poisson(load), service=unit)
        yield one("M/M/1", load, spec, queues.mm1(arrival_rate=load, service_rate=1), WAIT, NUMBER)
    for servers, load in ((3, 0.8), (8, 0.95)):
        rate = servers * load
        spec = single_station(arrivals=poisson(rate), service=unit, servers=servers)
        result = queues.mmc(arrival_rate=rate, service_rate=1, servers=servers)
        yield one(f"M/M/{servers}", load, spec, result, WAIT, RESPONSE)
    general: dict[str, tuple[float, Any]] = {
        "M/D/1": (0.7, Deterministic(mean=1.0)),
        "M/E3/1": (0.9, Erlang(mean=1.0, phases=3)),
        "M/H2/1": (0.6, HyperExponential(**HYPER)),
        "M/LogNormal/1": (0.5, LogNormal(mean=1.0, scv=2.0)),
        "M/Gamma/1": (0.3, Gamma(mean=1.0, scv=0.5)),
        "M/U/1": (0.8, Uniform(low=0.5, high=1.5)),
    }
    for name, (load, law) in general.items():
        result = queues.mg1(arrival_rate=load, mean_service_time=1, service_scv=law.scv)
        yield one(name, load, single_station(arrivals=poisson(load), service=law), result, WAIT)
        if name == "M/H2/1":
            spec = single_station(arrivals=poisson(load), service=law, discipline="lifo")
            yield one("M/H2/1 LIFO", load, spec, result, WAIT)
            result = queues.mg1_ps(arrival_rate=0.8, mean_service_time=1)
            for discipline in ("sharing", "lifo-preemptive"):
                spec = single_station(arrivals=poisson(0.8), service=law, discipline=discipline)
                yield one(f"M/H2/1 {discipline}", 0.8, spec, result, RESPONSE)
    spec = single_station(arrivals=poisson(0.9), service=unit, discipline="sharing")
    yield one("M/M/1 sharing", 0.9, spec, queues.mm1_ps(arrival_rate=0.9, service_rate=1), RESPONSE, NUMBER)
    spec = single_station(arrivals=Erlang(mean=1.25, phases=2), service=unit)
    arrival = Erlang(mean=1.25, phases=2)
    yield one("E2/M/1", 0.8, spec, queues.gm1(arrival=arrival, service_rate=1), WAIT)
    spec = single_station(arrivals=Deterministic(mean=0.4), service=unit, servers=3)
    result = queues.gmc(arrival=Deterministic(mean=0.4), service_rate=1, servers=3)
    yield one("D/M/3", 0.83, spec, result, WAIT)
    spec = single_station(arrivals=poisson(3.0), service=HyperExponential(**HYPER), servers=INF)
    yield one("M/H2/inf", 0.1, spec, queues.mginf(arrival_rate=3.0, mean_service_time=1), NUMBER)

    spec = single_station(arrivals=poisson(0.95), service=unit, capacity=5)
    result = queues.mm1k(arrival_rate=0.95, service_rate=1, capacity=5)
    yield one("M/M/1/5", 0.95, spec, result, LOSS, WAIT)
    spec = single_station(arrivals=poisson(2.4), service=unit, servers=3, capacity=6)
    result = queues.mmck(arrival_rate=2.4, service_rate=1, servers=3, capacity=6)
    yield one("M/M/3/6", 0.8, spec, result, LOSS, WAIT)
    spec = single_station(arrivals=poisson(0.9), service=Deterministic(mean=1.0), capacity=4)
    yield one("M/D/1/4", 0.9, spec, queues.md1k(arrival_rate=0.9, service_rate=1, capacity=4), LOSS, WAIT)
    spec = single_station(arrivals=poisson(0.7), service=HyperExponential(**HYPER), capacity=6)
    result = queues.mg1k(arrival_rate=0.7, service=HyperExponential(**HYPER), capacity=6)
    yield one("M/H2/1/6", 0.7, spec, result, LOSS, WAIT)
    for name, law in (("M/M/5/5", unit), ("M/H2/5/5", HyperExponential(**HYPER))):
        spec = single_station(arrivals=poisson(4.0), service=law, servers=5, capacity=5)
        yield one(name, 0.8, spec, queues.mgcc(arrival_rate=4, mean_service_time=1, servers=5), LOSS)
    patience = Exponential(mean=5.0)
    spec = single_station(arrivals=poisson(1.9), service=unit, servers=2, patience=patience)
    result = queues.erlang_a(arrival_rate=1.9, service_rate=1, servers=2, patience_rate=0.2)
    yield one("M/M/2+M", 0.95, spec, result, GIVE_UP, WAIT)


def special() -> Iterator[Known]:
    """Yield batches, vacations, set-ups, correlated arrivals, clocked and state-dependent queues."""
    unit = Exponential(mean=1.0)
    spec = single_station(arrivals=poisson(0.3), batch=Geometric(mean=2.0), service=unit)
    result = queues.mxg1(arrival_rate=0.3, batch_mean=2, batch_scv=0.5, mean_service_time=1, service_scv=1)
    yield one("M^Geo/M/1", 0.6, spec, result, WAIT)
    for multiple in (True, False):
        spec = single_station(
            arrivals=poisson(0.7),
            service=Erlang(mean=1.0, phases=2),
            vacation=Deterministic(mean=3.0),
            multiple_vacations=multiple,
        )
        result = queues.mg1_vacations(
            arrival_rate=0.7,
            mean_service_time=1,
            service_scv=0.5,
            vacation=Deterministic(mean=3.0),
            multiple=multiple,
        )
        yield one(f"M/E2/1 {'multiple' if multiple else 'single'} vacations", 0.7, spec, result, WAIT)
    for threshold in (1, 4):
        spec = single_station(
            arrivals=poisson(0.4), service=unit, setup=Exponential(mean=2.0), setup_threshold=threshold
        )
        setup = Exponential(mean=2.0)
        result = queues.mg1_setup(
            arrival_rate=0.4, mean_service_time=1, service_scv=1, setup=setup, threshold=threshold
        )
        yield one(f"M/M/1 set-up for {threshold}", 0.4, spec, result, WAIT)

    d0, d1 = [[-1.6, 0.1], [0.05, -0.25]], [[1.5, 0.0], [0.0, 0.2]]
    arrivals = MAP(d0=d0, d1=d1)
    result = markov.map_ph_1(arrivals=arrivals, service=Exponential(mean=1.0))
    yield one(
        "MAP/M/1", arrivals.rate, single_station(arrivals=MAP(d0=d0, d1=d1), service=unit), result, WAIT
    )
    gap = {"initial": [0.4, 0.6], "generator": [[-0.5, 0.2], [0.0, -1.5]]}
    law = PhaseType(**gap)
    service = Erlang(mean=0.7 * law.mean, phases=2)
    spec = single_station(arrivals=PhaseType(**gap), service=Erlang(mean=0.7 * law.mean, phases=2))
    result = markov.map_ph_1(arrivals=law, service=service)
    yield one("PH/E2/1", 0.7, spec, result, WAIT)

    spec = single_station(arrivals=Geometric(mean=5.0), service=Geometric(mean=3.0), clocked=True)
    result = queues.geog1(arrival_rate=0.2, mean_service_time=3, service_scv=Geometric(mean=3.0).scv)
    yield one("Geo/Geo/1", 0.6, spec, result, WAIT)
    spec = single_station(arrivals=Geometric(mean=5.0), service=Deterministic(mean=4), clocked=True)
    yield one("Geo/D/1", 0.8, spec, queues.geod1(arrival_rate=0.2, service_slots=4), WAIT)

    multiplier = (1.0, 1.5, 1.8)
    spec = single_station(arrivals=poisson(1.2), service=unit, rate_multiplier=multiplier, capacity=6)
    result = queues.state_dependent(arrival_rates=[1.2] * 7, service_rates=[*multiplier, *[1.8] * 3])
    yield one("M/M(n)/1/6", 0.67, spec, result, NUMBER, LOSS)
    joining = [1.0, 0.8, 0.6, 0.4, 0.2]
    rules = [{"queue": p} for p in joining] + [{"queue": 0.0}]
    spec = QueueingNetwork(
        stations=[Station(name="queue", service=unit)],
        classes=JobClass(arrivals=poisson(0.9), entry=StateDependent(station="queue", rules=rules)),
    )
    result = queues.mmc_balking(arrival_rate=0.9, service_rate=1, servers=1, joining_probabilities=joining)
    yield one("M/M/1 balking", 0.9, spec, result, THROUGHPUT, WAIT)


def with_priorities() -> Iterator[Known]:
    """Yield stations with priorities."""
    rates, means = [0.2, 0.3], [1.0, 1.5]
    service = {"high": Erlang(mean=1.0, phases=2), "low": Exponential(mean=1.5)}
    numbers = {"arrival_rate": rates, "mean_service_time": means, "service_scv": [0.5, 1.0]}
    cases = {
        "priority": (1, service, queues.mg1_nonpreemptive(**numbers)),
        "priority-preemptive": (1, service, queues.mg1_preemptive_resume(**numbers)),
        "priority with 2 servers": (
            2,
            Exponential(mean=3.0),
            queues.mmc_nonpreemptive(arrival_rate=rates, service_rate=1 / 3, servers=2),
        ),
    }
    for name, (servers, law, result) in cases.items():
        station = Station(name="queue", service=law, servers=servers, discipline=name.split(" ")[0])
        classes = [
            JobClass(name=c, arrivals=poisson(rate), priority=level)
            for level, (c, rate) in enumerate(zip(("high", "low"), rates, strict=True))
        ]
        exact = {
            f"{RESPONSE}[{c}]": float(result.mean_response_time[k]) for k, c in enumerate(("high", "low"))
        }
        spec = QueueingNetwork(stations=[station], classes=classes)
        yield Known(name=f"M/G/{servers} {name}", load=0.75 if servers == 2 else 0.65, spec=spec, exact=exact)


def in_networks() -> Iterator[Known]:
    """Yield open, closed and mixed networks, blocking, forks, and routing that looks or counts."""
    unit = Exponential(mean=1.0)
    routing: Any = {"a": {"b": 0.6, "c": 0.4}, "b": {"a": 0.2}, "c": {"c": 0.25}}
    matrix = [[0, 0.6, 0.4], [0.2, 0, 0], [0, 0, 0.25]]
    rates, servers = [2.0, 1.0, 1.0], [1, 1, 2]
    stations = [
        Station(name=name, service=Exponential(mean=1 / rate), servers=c)
        for name, rate, c in zip("abc", rates, servers, strict=True)
    ]
    result: Any = networks.jackson(
        arrival_rate=[1.2, 0, 0], service_rate=rates, routing=matrix, servers=servers
    )
    exact = {f"{RESPONSE}[{name}]": float(result.mean_response_time[k]) for k, name in enumerate("abc")}
    exact[SYSTEM] = float(result.system_response_time)
    spec = QueueingNetwork(stations=stations, classes=JobClass(arrivals=poisson(1.2)), routing=routing)
    yield Known(name="Jackson network", load=float(result.utilization.max()), spec=spec, exact=exact)

    rate, times = {"x": 0.3, "y": 0.2}, [[0.8, 2.0], [1.0, 1.0]]
    result = networks.bcmp(arrival_rate=rate, mean_service_time=times, discipline=["ps", "fcfs"])
    shared = {"x": Exponential(mean=0.8), "y": HyperExponential(probabilities=[0.5, 0.5], means=[1.0, 3.0])}
    stations = [Station(name="a", service=shared, discipline="sharing"), Station(name="b", service=unit)]
    classes = [JobClass(name=c, arrivals=poisson(value)) for c, value in rate.items()]
    exact = {
        f"{RESPONSE}[{s}, {c}]": float(result.mean_response_time[i, k])
        for i, s in enumerate("ab")
        for k, c in enumerate("xy")
    }
    spec = QueueingNetwork(stations=stations, classes=classes, routing={"a": "b"})
    yield Known(name="BCMP network", load=0.64, spec=spec, exact=exact)

    result = networks.mva(population=6, mean_service_time=[1.0, 2.0], visits=[1.0, 0.4], think_time=3.0)
    stations = [
        Station(name="think", service=Exponential(mean=3.0), servers=INF),
        Station(name="a", service=unit),
        Station(name="b", service=Exponential(mean=2.0)),
    ]
    # Visits 1 and 0.4: the second station returns its jobs to the terminals, as the first does with 0.6.
    routing = {"think": "a", "a": {"b": 0.4, "think": 0.6}, "b": "think"}
    spec = QueueingNetwork(stations=stations, classes=JobClass(population=6), routing=routing)
    exact = {f"{NUMBER}[{s}]": float(result.mean_number_in_system[k]) for k, s in enumerate("ab")}
    exact[f"{THROUGHPUT}[a]"] = float(result.throughput[0])
    yield Known(name="closed network", load=float(result.utilization.max()), spec=spec, exact=exact)

    times = [[1.0, 2.0], [0.5, 1.0]]
    result = networks.mva(population={"x": 3, "y": 2}, mean_service_time=times)
    stations = [
        Station(
            name=s,
            service={c: Exponential(mean=times[i][k]) for k, c in enumerate("xy")},
            discipline="sharing",
        )
        for i, s in enumerate("ab")
    ]
    classes = [JobClass(name="x", population=3), JobClass(name="y", population=2)]
    spec = QueueingNetwork(stations=stations, classes=classes, routing={"a": "b", "b": "a"})
    exact = {f"{RESPONSE}[b, {c}]": float(result.mean_response_time[1, k]) for k, c in enumerate("xy")}
    exact |= {f"{THROUGHPUT}[b, {c}]": float(result.throughput[1, k]) for k, c in enumerate("xy")}
    yield Known(name="closed network of two classes", load=0.95, spec=spec, exact=exact)

    result = networks.mixed(arrival_rate={"open": 0.3}, population={"closed": 3}, mean_service_time=times)
    service = [
        {"open": Exponential(mean=times[i][0]), "closed": Exponential(mean=times[i][1])} for i in range(2)
    ]
    stations = [Station(name=s, service=service[i], discipline="sharing") for i, s in enumerate("ab")]
    classes = [JobClass(name="open", arrivals=poisson(0.3)), JobClass(name="closed", population=3)]
    routing = {("a", "open"): "b", ("a", "closed"): "b", ("b", "closed"): "a"}
    spec = QueueingNetwork(stations=stations, classes=classes, routing=routing)
    exact = {
        f"{RESPONSE}[{s}, {c}]": float(result.mean_response_time[i, k])
        for i, s in enumerate("ab")
        for k, c in enumerate(("open", "closed"))
    }
    yield Known(name="mixed network", load=0.9, spec=spec, exact=exact)

    for when_full in ("after-service", "before-service"):
        law = blocking_tandem(when_full == "after-service", 0.8, 1.0, 1.2, 5, 3)
        services = [unit, Exponential(mean=1 / 1.2)]
        spec = tandem(arrivals=poisson(0.8), services=services, capacity=[5, 3], when_full=when_full)
        exact = {
            f"{THROUGHPUT}[2]": law.expected(lambda s: 1.2 * (s[1] > 0)),
            f"{NUMBER}[1]": law.expected(lambda s: float(s[0])),
        }
        yield Known(name=f"tandem, blocking {when_full}", load=0.8, spec=spec, exact=exact)

    stations = [Station(name=s, service=unit) for s in "ab"]
    split = {"forks": [ForkJoin(name="split", branches=["a", "b"])]}
    spec = QueueingNetwork(stations=stations, classes=JobClass(arrivals=poisson(0.6), entry="split"), **split)
    result = networks.fork_join(arrival_rate=0.6, service_rate=1, branches=2)
    exact = {SYSTEM: float(result.mean_response_time)}
    yield Known(name="fork-join of two", load=0.6, spec=spec, exact=exact)

    turns = JobClass(arrivals=poisson(1.4), entry=Cyclic(to=["a", "b"]))
    result = queues.gm1(arrival=Erlang(mean=2 / 1.4, phases=2), service_rate=1)
    exact = {f"{WAIT}[a]": float(result.mean_waiting_time)}
    yield Known(
        name="two in turn", load=0.7, spec=QueueingNetwork(stations=stations, classes=turns), exact=exact
    )
    shortest = JobClass(arrivals=poisson(1.4), entry=ShortestQueue(to=["a", "b"]))
    exact = {SYSTEM: shortest_of_two(1.4)}
    spec = QueueingNetwork(stations=stations, classes=shortest)
    yield Known(name="shortest of two", load=0.7, spec=spec, exact=exact)

    result = queues.mmc_finite(source_rate=0.2, service_rate=1, servers=2, sources=8)
    stations = [
        Station(name="up", service=Exponential(mean=5.0), servers=INF),
        Station(name="queue", service=unit, servers=2),
    ]
    repair = {"routing": {"up": "queue", "queue": "up"}}
    spec = QueueingNetwork(stations=stations, classes=JobClass(population=8), **repair)
    yield one("M/M/2//8", float(result.utilization), spec, result, WAIT, THROUGHPUT)


def blocking_tandem(after: bool, rate: float, first: float, second: float, k1: int, k2: int) -> Any:
    """Return the law of (jobs at 1, at 2, whether server 1 is blocked) of two stations."""

    def moves(state: tuple[int, int, int]) -> Iterator[tuple[tuple[int, int, int], float]]:
        n1, n2, blocked = state
        if n1 < k1:
            yield (n1 + 1, n2, blocked), rate
        if n1 and not blocked:
            if n2 < k2:
                yield (n1 - 1, n2 + 1, 0), first
            elif after:
                yield (n1, n2, 1), first
        if n2:
            yield ((n1 - 1, n2, 0) if blocked else (n1, n2 - 1, 0)), second

    return markov.CTMC.from_transitions(initial_state=(0, 0, 0), transitions=moves).stationary()


def shortest_of_two(rate: float, most: int = 60) -> float:
    """Return the mean response time of the shorter of two queues, numbers cut where they are negligible."""

    def moves(state: tuple[int, int]) -> Iterator[tuple[tuple[int, int], float]]:
        low, high = state
        if high < most:
            yield (low + 1, high) if low < high else (low, high + 1), rate
        for left in ((low - 1, high), (low, high - 1)):
            if min(left) >= 0:
                yield (min(left), max(left)), 1.0

    law = markov.CTMC.from_transitions(initial_state=(0, 0), transitions=moves).stationary()
    return float(law.expected(sum)) / rate
