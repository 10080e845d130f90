"""Queueing networks as structure: the spec that is solved, simulated and compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.systems.laws.fields import keep
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.nested import check_parts
from qmodels.systems.stations.checks import Wiring, check_network
from qmodels.systems.stations.parts import INF, ONE_CLASS, ForkJoin, JobClass, Rule, Station, read_rule


@dataclass(frozen=True, kw_only=True)
class QueueingNetwork(Wiring, Replaceable):
    """Stations, the jobs that visit them, and the way they take.

    Raises
    ------
    ValueError
        One line that names the part and the field: unknown or repeated names, a visited station
        without a law for the class, jobs of a closed class that could leave or be lost, features
        that do not go together.

    Examples
    --------
    A processor and two disks, visited by five jobs:

    >>> from qmodels.systems.laws.times import Exponential
    >>> network = QueueingNetwork(
    ...     stations=[
    ...         Station(name="cpu", service=Exponential(mean=1.0)),
    ...         Station(name="disk", service=Exponential(mean=4.0), servers=2),
    ...     ],
    ...     classes=JobClass(population=5),
    ...     routing={"cpu": {"disk": 0.4, "cpu": 0.6}, "disk": "cpu"},
    ... )
    >>> network.routing_matrix[:, 0, :, 0]
    array([[0.6, 0.4],
           [1. , 0. ]])
    """

    metric_names: ClassVar[MetricNames] = MetricNames(
        both=(
            "system_response_time", "system_throughput", "mean_number_in_network", "system_loss_probability",
            "mean_waiting_time", "mean_response_time", "mean_number_in_queue", "mean_number_in_system",
            "throughput", "utilization", "waiting_probability", "blocking_probability",
            "abandonment_probability",
        ),
        simulation=("blocked_servers",),
        sometimes=(
            "waiting_probability", "blocking_probability", "abandonment_probability",
            "system_loss_probability",
        ),
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_parts(self)
        keep(
            self,
            stations=_parts("stations", self.stations, Station),
            classes=_parts("classes", self.classes, JobClass),
            forks=_parts("forks", self.forks, ForkJoin),
        )
        for name in ("stations", "classes"):
            if not getattr(self, name):
                raise ValueError(f"{name} must have at least one member, got none")
        _unique("names of stations and forks", self.nodes)
        _unique("names of classes", self.class_names)
        keep(self, routing=_read_routing(self.routing))
        check_network(self)


def single_station(
    *,
    arrivals: Law,
    service: Law,
    batch: Law | None = None,
    patience: Law | None = None,
    clocked: bool = False,
    **station: Any,
) -> QueueingNetwork:
    """Return one station with one open class: most of the named queues in one line.

    Parameters
    ----------
    arrivals, service : Law
        Times between arrivals, and service times.
    batch, patience : Law, optional
        Jobs that arrive together, and how long one waits; see `JobClass`.
    clocked : bool
        Whether time is counted in ticks.
    **station
        Further fields of `Station`: ``servers``, ``capacity``, ``discipline``, ``vacation``, ...

    Examples
    --------
    >>> from qmodels.systems.laws.times import Deterministic, Exponential
    >>> poisson = Exponential(mean=1.25)
    >>> mm3 = single_station(arrivals=poisson, service=Exponential(mean=3.0), servers=3)
    >>> md1k = single_station(arrivals=poisson, service=Deterministic(mean=1.0), capacity=8)
    >>> shared = single_station(arrivals=poisson, service=Exponential(mean=1.0), discipline="sharing")
    >>> mm3.stations[0].servers, md1k.stations[0].capacity
    (3, 8)
    """
    return QueueingNetwork(
        stations=[Station(**{"name": "queue", "service": service, **station})],
        classes=[JobClass(arrivals=arrivals, batch=batch, patience=patience)],
        clocked=clocked,
    )


def tandem(
    *,
    arrivals: Law,
    services: Sequence[Law],
    servers: Any = 1,
    capacity: Any = INF,
    when_full: str = "loss",
    clocked: bool = False,
) -> QueueingNetwork:
    """Return stations in series, named "1", "2", ..., through which one open class passes.

    Parameters
    ----------
    arrivals : Law
        Times between arrivals at the first.
    services : sequence of Law
        Service times of each station.
    servers, capacity : int or sequence
        Servers and places of each, or of all.
    when_full : str
        What happens to a job that finds a later station full, see `Station`.
    clocked : bool
        Whether time is counted in ticks.

    Examples
    --------
    >>> from qmodels.systems.laws.times import Exponential
    >>> line = tandem(
    ...     arrivals=Exponential(mean=1.2), services=[Exponential(mean=1.0)] * 3, capacity=[8, 4, 4],
    ...     when_full="after-service",
    ... )
    >>> [station.capacity for station in line.stations]
    [8, 4, 4]
    """
    number = len(services)
    counts, places = (
        tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,) * number
        for value in (servers, capacity)
    )
    for name, values in (("servers", counts), ("capacity", places)):
        if len(values) != number:
            raise ValueError(f"{name} must have one value for each of {number} services, got {len(values)}")
    names = [str(k + 1) for k in range(number)]
    return QueueingNetwork(
        stations=[
            Station(name=name, service=law, servers=count, capacity=place, when_full=when_full)
            for name, law, count, place in zip(names, services, counts, places, strict=True)
        ],
        classes=[JobClass(name=ONE_CLASS, arrivals=arrivals)],
        routing=dict(zip(names[:-1], names[1:], strict=True)),
        clocked=clocked,
    )


def _parts(name: str, value: Any, kind: type[Any]) -> Any:
    members = (value,) if isinstance(value, kind) else value
    if isinstance(members, str | np.ndarray) or not isinstance(members, Iterable):
        raise ValueError(f"{name} must be a list of {kind.__name__}, got {checks.shown(value)}")
    members = tuple(members)
    for member in members:
        if not isinstance(member, kind):
            raise ValueError(f"{name} must hold {kind.__name__} only, got {checks.shown(member)}")
    return members


def _unique(what: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what} must be unique, got {name!r} twice")


def _read_routing(given: Any) -> tuple[tuple[str, str, Rule], ...]:
    rows = list(given) if isinstance(given, tuple) else None
    if isinstance(given, Mapping):
        rows = [
            (*(key if isinstance(key, tuple) else (key, "")), read_rule(f"routing[{key!r}]", rule))
            for key, rule in given.items()
        ]
    if rows is None or not all(_is_route(row) for row in rows):
        raise ValueError(
            f"routing must map nodes, or (node, class), to where jobs go, got {checks.shown(given)}"
        )
    return tuple(rows)


def _is_route(row: Any) -> bool:
    return (
        isinstance(row, tuple)
        and len(row) == 3
        and [*map(type, row[:2])] == [str, str]
        and isinstance(row[2], Rule)
    )
