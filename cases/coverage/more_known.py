"""More systems with known answers: high load, heavy tails, bursts, many laws."""

# Specs take lists where they keep tuples.
# mypy: disable-error-code="arg-type"
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.coverage.known import HYPER, NUMBER, RESPONSE, WAIT, Known, one, poisson
from qmodels import markov, queues
from qmodels.systems.laws.times import (
    MAP,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    Pareto,
    PhaseType,
    Uniform,
    Weibull,
)
from qmodels.systems.stations.parts import INF, JobClass, Station
from qmodels.systems.stations.queueing_network import QueueingNetwork, single_station

UNIT = Exponential(mean=1.0)


def high_load() -> Iterator[Known]:
    """Yield plain queues at 0.9 to 0.99."""
    for load in (0.9, 0.99):
        result = queues.mm1(arrival_rate=load, service_rate=1)
        yield one("M/M/1", load, single_station(arrivals=poisson(load), service=UNIT), result, WAIT)
    for load in (0.9, 0.95, 0.99):
        spec = single_station(arrivals=poisson(4 * load), service=UNIT, servers=4)
        result = queues.mmc(arrival_rate=4 * load, service_rate=1, servers=4)
        yield one("M/M/4", load, spec, result, WAIT)
        for name, law in (("M/D/1", Deterministic(mean=1.0)), ("M/H2/1", HyperExponential(**HYPER))):
            result = queues.mg1(arrival_rate=load, mean_service_time=1, service_scv=law.scv)
            yield one(name, load, single_station(arrivals=poisson(load), service=law), result, WAIT)
    for load in (0.9, 0.95):
        spec = single_station(arrivals=poisson(load), service=UNIT, discipline="lifo")
        result = queues.mm1(arrival_rate=load, service_rate=1)
        yield one("M/M/1 LIFO", load, spec, result, WAIT)


def many_laws() -> Iterator[Known]:
    """Yield M/G/1 and G/M/1 of laws that `cases.coverage.known` leaves out."""
    services: dict[str, tuple[float, Any]] = {
        "M/Weibull/1": (0.7, Weibull(mean=1.0, shape=0.7)),
        "M/Gamma 4/1": (0.7, Gamma(mean=1.0, scv=4.0)),
        "M/LogNormal 2/1": (0.8, LogNormal(mean=1.0, scv=2.0)),
        "M/Pareto 4.5/1": (0.7, Pareto(mean=1.0, shape=4.5)),
        "M/table/1": (0.8, Empirical(values=(0.2, 1.0, 4.0), weights=(5, 4, 1))),
        "M/H2 10/1": (0.7, HyperExponential(probabilities=(0.95, 0.05), means=(0.5 / 0.95, 10.0))),
    }
    for name, (load, law) in services.items():
        result = queues.mg1(arrival_rate=load / law.mean, mean_service_time=law.mean, service_scv=law.scv)
        yield one(
            name, load, single_station(arrivals=poisson(load / law.mean), service=law), result, WAIT, NUMBER
        )
    gaps = {
        "D/M/1": (0.9, Deterministic(mean=1 / 0.9)),
        "U/M/1": (0.7, Uniform(low=0.4 / 0.7, high=1.6 / 0.7)),
        "H2/M/1": (0.8, HyperExponential(probabilities=(0.25, 0.75), means=(2.5 / 0.8, 0.5 / 0.8))),
        "Gamma/M/1": (0.6, Gamma(mean=1 / 0.6, scv=3.0)),
    }
    for name, (load, law) in gaps.items():
        result = queues.gm1(arrival=law, service_rate=1)
        yield one(name, load, single_station(arrivals=law, service=UNIT), result, WAIT)


def heavy_tails() -> Iterator[Known]:
    """Yield service times whose mean wait has no variance, or is decided by services that runs hardly see."""
    laws: dict[str, tuple[float, Any]] = {
        "Pareto 2.1": (0.7, Pareto(mean=1.0, shape=2.1)),
        "Pareto 2.5": (0.7, Pareto(mean=1.0, shape=2.5)),
        "Pareto 2.5 ": (0.95, Pareto(mean=1.0, shape=2.5)),
        "Pareto 3.5": (0.7, Pareto(mean=1.0, shape=3.5)),
        "log-normal 10": (0.8, LogNormal(mean=1.0, scv=10.0)),
        "log-normal 10 ": (0.3, LogNormal(mean=1.0, scv=10.0)),
        "log-normal 30": (0.9, LogNormal(mean=1.0, scv=30.0)),
        "Weibull 0.3": (0.7, Weibull(mean=1.0, shape=0.3)),
    }
    for name, (load, law) in laws.items():
        result = queues.mg1(arrival_rate=load, mean_service_time=1, service_scv=law.scv)
        spec = single_station(arrivals=poisson(load), service=law)
        yield one(f"M/{name.strip()}/1", load, spec, result, WAIT)
    for name in ("Pareto 2.5", "log-normal 10"):
        load, law = laws[name]
        result = queues.mg1(arrival_rate=load, mean_service_time=1, service_scv=law.scv)
        spec = single_station(arrivals=poisson(load), service=law, discipline="lifo")
        yield one(f"M/{name}/1 LIFO", load, spec, result, WAIT)
        result = queues.mg1_ps(arrival_rate=load, mean_service_time=1)
        for discipline in ("sharing", "lifo-preemptive"):
            spec = single_station(arrivals=poisson(load), service=law, discipline=discipline)
            yield one(f"M/{name}/1 {discipline}", load, spec, result, RESPONSE)
    law = laws["Pareto 2.5"][1]
    spec = single_station(arrivals=poisson(3.0), service=law, servers=INF)
    yield one("M/Pareto 2.5/inf", 0.1, spec, queues.mginf(arrival_rate=3.0, mean_service_time=1), NUMBER)
    spec = single_station(arrivals=poisson(4.0), service=law, servers=5, capacity=5)
    result = queues.mgcc(arrival_rate=4, mean_service_time=1, servers=5)
    yield one("M/Pareto 2.5/5/5", 0.8, spec, result, "blocking_probability")
    rates = [0.2, 0.3]
    result = queues.mg1_nonpreemptive(
        arrival_rate=rates, mean_service_time=[1.0, 1.5], service_scv=[1.0, law.scv]
    )
    low = Pareto(mean=1.5, shape=2.5)
    station = Station(name="queue", service={"high": UNIT, "low": low}, discipline="priority")
    classes = [
        JobClass(name=name, arrivals=poisson(rate), priority=level)
        for level, (name, rate) in enumerate(zip(("high", "low"), rates, strict=True))
    ]
    spec = QueueingNetwork(stations=[station], classes=classes)
    exact = {f"{RESPONSE}[high]": float(result.mean_response_time[0])}
    yield Known(name="M/Pareto 2.5/1 priority", load=0.65, spec=spec, exact=exact)


def bursts() -> Iterator[Known]:
    """Yield Markov-modulated arrivals, from fast to so slow that runs hold few of their bursts."""
    for name, high, low, leave in (
        ("fast", 1.4, 0.2, 1.0),
        ("moderate", 1.4, 0.2, 0.1),
        ("slow", 1.4, 0.2, 0.01),
        ("very slow", 1.4, 0.2, 0.001),
        ("on/off", 1.4, 0.0, 0.05),
    ):
        d0, d1 = [[-high - leave, leave], [leave, -low - leave]], [[high, 0.0], [0.0, low]]
        arrivals = MAP(d0=d0, d1=d1)
        result = markov.map_ph_1(arrivals=arrivals, service=UNIT)
        spec = single_station(arrivals=MAP(d0=d0, d1=d1), service=UNIT)
        yield one(f"MMPP/M/1 {name}", arrivals.rate, spec, result, WAIT)
    arrivals = MAP(d0=[[-3.0, 0.0], [0.0, -0.6]], d1=[[2.85, 0.15], [0.05, 0.55]])
    for name, service in (
        ("E2", Erlang(mean=0.5, phases=2)),
        ("H2", HyperExponential(probabilities=(0.25, 0.75), means=(1.25, 0.25))),
        ("PH", PhaseType(initial=[0.4, 0.6], generator=[[-3.0, 1.0], [0.0, -2.5]])),
    ):
        result = markov.map_ph_1(arrivals=arrivals, service=service)
        load = arrivals.rate * service.mean
        yield one(f"MAP/{name}/1", load, single_station(arrivals=arrivals, service=service), result, WAIT)


def more_known() -> dict[str, list[Known]]:
    """Return them by group."""
    return {
        "high load": list(high_load()),
        "laws": list(many_laws()),
        "heavy tails": list(heavy_tails()),
        "bursts": list(bursts()),
    }


def all_known() -> dict[str, list[Any]]:
    """Return every system with a known answer, by group."""
    from cases.coverage import known

    queues_of = [*known.single_class(), *known.special(), *known.with_priorities()]
    return {"queues": queues_of, "networks": list(known.in_networks()), **more_known()}
