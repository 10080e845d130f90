"""The methods of queueing networks: exact, or an approximation whose error was measured on some systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite, nan

from qmodels.evidence.error_map import MeasuredError
from qmodels.systems.spec.answer import Answer
from qmodels.systems.stations.queueing_network import QueueingNetwork

Range = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """On what networks the error of an approximation was measured, and how large it was."""

    what: str  # where it was measured, in words
    errors: Mapping[str, Range]  # mean and largest size of the error of each metric [%]
    load: Range = (0.0, 1.0)  # of the busiest station
    scv: Range = (0.0, 4.0)  # of the times between arrivals and of services
    servers: float = 1  # of a station that is no delay, at most
    stations: Range = (1, 1)
    population: float = inf  # of all classes together, at most
    capacity: float = inf  # of a station, at most

    def outside(self, network: QueueingNetwork, load: float) -> Iterator[str]:
        """Yield what of a network is beyond what was measured, in words."""
        servers = max((s.servers for s in network.stations if not s.delay), default=1)
        capacity = max((s.capacity for s in network.stations if isfinite(s.capacity)), default=0)
        # Rounding may leave a little more.
        low, high = self.load[0] * (1 - 1e-9), self.load[1] * (1 + 1e-9)
        if not (low <= load <= high or network.populations.all()):
            yield f"a load of {load:.0%}, measured from {self.load[0]:.0%} to {self.load[1]:.0%}"
        for scv in sorted(set(scvs_of(network)), reverse=True):
            if not self.scv[0] - 1e-9 <= scv <= self.scv[1] + 1e-9:
                yield f"times with an SCV of {scv:.3g}, measured from {self.scv[0]:g} to {self.scv[1]:g}"
                break
        if servers > self.servers:
            yield f"{servers:g} servers, measured up to {self.servers:g}"
        if not self.stations[0] <= len(network.stations) <= self.stations[1]:
            count = f"{self.stations[0]:g} to {self.stations[1]:g}"
            yield f"{len(network.stations)} stations, measured with {count}"
        if network.populations.sum() > self.population:
            yield f"{network.populations.sum()} jobs, measured up to {self.population:g}"
        if capacity > self.capacity:
            yield f"a capacity of {capacity:g}, measured up to {self.capacity:g}"


APPROXIMATIONS: Mapping[str, Measured] = {
    "GI/G/1 (Kraemer and Langenbach-Belz)": Measured(
        what="gamma, lognormal, Weibull, uniform and constant times",
        errors={"mean_response_time": (3.9, 29)},
        load=(0.3, 0.95),
    ),
    "GI/G/c (Kimura)": Measured(
        what="Poisson arrivals, gamma, lognormal, Weibull and uniform services",
        errors={"mean_response_time": (0.5, 5.1)},
        load=(0.3, 0.95),
        servers=16,
    ),
    "GI/G/c (Whitt)": Measured(
        what="gamma, lognormal, Weibull, uniform and constant times",
        errors={"mean_response_time": (1.9, 16)},
        load=(0.3, 0.95),
        servers=16,
    ),
    "QNA (Whitt)": Measured(
        what="lines, splits and returns with gamma, lognormal and constant times",
        errors={"system_response_time": (5.2, 26)},
        load=(0.3, 0.9),
        servers=4,
        stations=(2, 4),
    ),
    "Linearizer MVA": Measured(
        what="rings of one class with gamma, lognormal and constant services",
        errors={"system_throughput": (2.6, 12), "system_response_time": (2.8, 13)},
        servers=2,
        stations=(2, 4),
        population=20,
    ),
    "Linearizer MVA, classes": Measured(
        what="rings of two classes, each with its own service",
        errors={"system_throughput": (3.4, 9.6), "system_response_time": (3.4, 8.8)},
        stations=(2, 4),
        population=30,
    ),
    "tandem": Measured(
        what="lines against their chains",
        errors={"system_throughput": (0.6, 3)},
        load=(0.0, inf),
        scv=(0.5, 3.0),
        stations=(1, 4),
        capacity=5,
    ),
    "fork-join M/M/1 (Nelson-Tantawi)": Measured(
        what="branches of one speed",
        errors={"system_response_time": (nan, 5)},
        load=(0.0, 0.9),
        stations=(3, 32),
    ),
    "fork-join M/M/1, unequal branches": Measured(
        what="two branches",
        errors={"system_response_time": (nan, 1.6)},
        load=(0.0, 0.85),
        stations=(2, 2),
    ),
}
"""Where the error of the approximations that `solve_network` takes was measured; all other methods are exact.

``tests/qmodels/networks/test_methods.py`` (``pytest -m slow``) draws and simulates such networks; lines with
finite buffers, forks and losses are measured against chains in the tests of their functions.
"""


def judged(answer: Answer) -> Answer:
    """Return an answer with the error that was measured of its method, and what was not measured."""
    if answer.kind == "exact" or not answer.stable:
        return answer
    method = APPROXIMATIONS.get(_name(answer))
    if method is None:
        said = [f"the error of {answer.model} was not measured on such networks"]
        return replace(answer, validated=False, doubts=dict.fromkeys(said, True))
    load = max(answer.utilization.values(), default=0.0)
    said = list(method.outside(answer.spec, load))
    errors = {
        name: MeasuredError(
            metric=name,
            unit="%",
            region=method.what,
            load_above=method.load[0],
            load_to=min(method.load[1], 1.0),
            mean=method.errors[name.partition("[")[0]][0],
            largest=method.errors[name.partition("[")[0]][1],
        )
        for name in answer.metrics
        if name.partition("[")[0] in method.errors
    }
    return replace(answer, validated=not said, error=errors, doubts=dict.fromkeys(said, True))


def scvs_of(network: QueueingNetwork) -> Iterator[float]:
    """Yield the SCVs of the times between arrivals and of the services that others wait for."""
    for job_class in network.classes:
        if job_class.arrivals is not None:
            yield float(job_class.arrivals.scv)
    for at, k in network.visited:
        waits = at < len(network.stations) and not network.stations[at].delay
        law = network.service_law(at, k) if waits else None
        if law is not None:
            yield float(law.scv)


def _name(answer: Answer) -> str:
    """Return the method by which a model is measured: what it approximates matters, too."""
    if answer.model.startswith("tandem"):
        return "tandem"
    if answer.model.startswith("Linearizer"):
        disciplines = {s.discipline for s in answer.spec.stations if not s.delay}
        if disciplines & {"priority", "priority-preemptive"} and len(answer.spec.classes) > 1:
            return f"{answer.model}, priorities"
        return answer.model + (", classes" if len(answer.spec.classes) > 1 else "")
    return answer.model
