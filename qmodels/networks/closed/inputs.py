"""Arguments of the functions for closed and mixed networks, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Required, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.networks.open.traffic import class_count, per_station, read_routing, visit_ratios
from qmodels.networks.result import NetworkResult


class ClosedNetwork(TypedDict, total=False):
    """Facts that the functions for closed networks pass to `describe`; see `qmodels.networks.words`."""

    population: Required[Any]
    mean_service_time: Any
    service_rate: Any
    visits: Any
    routing: Any
    reference: Any
    think_time: Any
    servers: Any


class Network(NamedTuple):
    """A checked description, all arrays with a class axis."""

    # stations, classes: names; `classes` is empty for a network without classes.
    stations: tuple[Any, ...]
    classes: tuple[Any, ...]
    # visits, service_time: visits per passage and mean service time of one of them.
    visits: FloatArray
    service_time: FloatArray
    population: IntArray  # jobs of each class; 0 for an open class
    think_time: FloatArray  # per class
    servers: FloatArray  # per station, ``inf`` for a delay
    # Per station the rate with 1, 2, ... jobs as a multiple of one server's; the last value holds for all
    # larger numbers. Empty for a delay.
    multipliers: tuple[FloatArray, ...]
    routing: FloatArray | None  # as given

    @property
    def demand(self) -> FloatArray:
        """Service time per passage."""
        return self.visits * self.service_time

    @property
    def delay(self) -> npt.NDArray[np.bool_]:
        """Which stations are delays."""
        return np.isinf(self.servers)


def server_counts(servers: Any, stations: tuple[Any, ...]) -> FloatArray:
    """Return the servers per station, ``inf`` for a delay."""
    array = checks.numbers("servers", per_station("servers", servers, stations))
    good = np.isposinf(array) | ((array >= 1) & (array == np.floor(array)))
    if not np.all(good):
        raise ValueError(f"servers must be a whole number >= 1 or inf, got {array[~good].flat[0].item()!r}")
    checks.count("servers", np.where(np.isinf(array), 1.0, array))
    if array.shape not in ((), (1,), (len(stations),)):
        raise ValueError(f"servers must have the shape ({len(stations)},), got {array.shape}")
    return np.broadcast_to(array, (len(stations),))


def words_per_station(discipline: Any, stations: tuple[Any, ...], allowed: Sequence[str]) -> list[str]:
    """Return the order of service of each station."""
    if isinstance(discipline, str):
        words = [discipline] * len(stations)
    else:
        words = list(per_station("discipline", discipline, stations))
    if len(words) != len(stations):
        raise ValueError(
            f"discipline must be one word or one per station ({len(stations)}), got {len(words)}"
        )
    return [checks.choice("discipline", word, allowed) for word in words]


def same_for_classes(word: str, times: FloatArray, station: Any) -> None:
    """Refuse first come first served with a service time of each class's own: it has no product form."""
    if word == "fcfs" and times.size and np.ptp(times) > 1e-12 * times.max():
        raise ValueError(
            "mean_service_time must be the same for every class with discipline 'fcfs' in a product form, "
            f"got {times.tolist()} at {station!r}; for a closed network see linearizer"
        )


def require_product_form(discipline: Any, net: Network) -> None:
    """Check the orders of service of a closed network: ``"ps"``, or ``"fcfs"`` where that is the same."""
    for i, word in enumerate(words_per_station(discipline, net.stations, ("ps", "fcfs"))):
        visited = (net.population > 0) & (net.visits[i] > 0)
        if not np.isinf(net.servers[i]):
            same_for_classes(word, net.service_time[i][visited], net.stations[i])


def per_station_and_class(name: str, value: FloatArray, stations: int, classes: int) -> FloatArray:
    """Return the value with the shape (stations, classes); one axis means stations."""
    shaped = value[:, None] if value.ndim == 1 and value.size == stations else value
    if shaped.ndim in (0, 2) and all(
        n in (1, m) for n, m in zip(shaped.shape, (stations, classes), strict=False)
    ):
        return np.broadcast_to(shaped, (stations, classes))
    raise ValueError(
        f"{name} must have the shape ({stations},) or ({stations}, {classes}), got {value.shape}"
    )


def visits_given(visits: Any, stations: tuple[Any, ...], classes: int) -> FloatArray:
    """Return the visits to each station, 1 by default."""
    given = checks.nonnegative("visits", 1.0 if visits is None else per_station("visits", visits, stations))
    return per_station_and_class("visits", given, len(stations), classes)


def stations_of(
    mean_service_time: Any, service_rate: Any, visits: Any, routing: Any
) -> tuple[tuple[Any, ...], FloatArray, FloatArray | None]:
    """Return the stations (named by the routing or the mapping), the service time as given, the routing."""
    stations = matrix = None
    if routing is not None:
        if visits is not None:
            raise ValueError("at most one of visits and routing must be given, got both")
        stations, matrix = read_routing(routing)
    if (mean_service_time is None) == (service_rate is None):
        raise ValueError(
            "exactly one of mean_service_time and service_rate must be given, "
            f"got {'neither' if mean_service_time is None else 'both'}"
        )
    name = "mean_service_time" if service_rate is None else "service_rate"
    given = mean_service_time if service_rate is None else service_rate
    if stations is None:
        stations = tuple(given) if isinstance(given, Mapping) else tuple(range(len(np.atleast_1d(given))))
    values = per_station(name, given, stations)
    if service_rate is None:
        times = checks.nonnegative(name, values)
    else:
        times = 1 / checks.positive(name, values)
    if times.size == 0:
        raise ValueError(f"{name} must have at least one station, got {given!r}")
    return stations, times, matrix


def describe(
    *,
    population: Any,
    mean_service_time: Any = None,
    service_rate: Any = None,
    visits: Any = None,
    routing: Any = None,
    reference: Any = None,
    think_time: Any = 0.0,
    servers: Any = 1,
    rate_multiplier: Mapping[Any, Sequence[float]] | None = None,
) -> Network:
    """Check the description of a closed network and bring it to one form."""
    stations, times, matrix = stations_of(mean_service_time, service_rate, visits, routing)
    people, classes = _people(population)
    number = people.size
    if matrix is not None and class_count(matrix) not in (None, number):
        raise ValueError(f"routing must have one matrix per class ({number}), got {class_count(matrix)}")

    time = per_station_and_class("mean_service_time", times, len(stations), number)
    if matrix is not None:
        visit = visit_ratios(routing=matrix, reference=_index(reference, stations), classes=number)
        visit = visit.reshape(len(stations), number)
    else:
        visit = visits_given(visits, stations, number)
    think = checks.nonnegative("think_time", think_time)
    if think.shape not in ((), (number,)):
        raise ValueError(f"think_time must be a number or one per class ({number}), got shape {think.shape}")
    think = np.broadcast_to(think, (number,))
    counts = server_counts(servers, stations)
    lazy = (visit * time).sum(axis=0) + think
    for r in np.flatnonzero((people > 0) & (lazy == 0)):
        name = classes[r] if classes else 0
        raise ValueError(
            f"mean_service_time must be > 0 at some station a class visits, got 0 for class {name!r}"
        )
    return Network(
        stations=stations,
        classes=classes,
        visits=visit,
        service_time=time,
        population=people,
        think_time=think,
        servers=counts,
        multipliers=_multipliers(counts, stations, rate_multiplier, int(people.sum())),
        routing=matrix,
    )


def _people(population: Any) -> tuple[IntArray, tuple[Any, ...]]:
    """Return the jobs of each class and the names of the classes, none for a single number."""
    classes: tuple[Any, ...] = ()
    if isinstance(population, Mapping):
        classes, population = tuple(population), list(population.values())
    people = checks.count("population", population, minimum=0)
    if people.ndim > 1:
        raise ValueError(f"population must be a whole number or one per class, got shape {people.shape}")
    if people.ndim == 1 and not classes:
        classes = tuple(range(people.size))
    people = np.atleast_1d(people)
    if not people.any():
        raise ValueError(f"population must have at least one job, got {people.tolist()}")
    return people, classes


def product_form(
    *,
    rate_multiplier: Mapping[Any, Sequence[float]] | None = None,
    discipline: Any = "ps",
    **network: Unpack[ClosedNetwork],
) -> Network:
    """Check the description of a closed network and that its orders of service give it a product form."""
    net = describe(rate_multiplier=rate_multiplier, **network)
    require_product_form(discipline, net)
    return net


def _index(reference: Any, stations: tuple[Any, ...]) -> int | None:
    if reference is None:
        return None
    if reference not in stations:
        close = checks.nearest(str(reference), [str(s) for s in stations])
        raise ValueError(f"reference must be a station of the network, got {reference!r}{close}")
    return stations.index(reference)


def _multipliers(
    servers: FloatArray,
    stations: tuple[Any, ...],
    given: Mapping[Any, Sequence[float]] | None,
    population: int,
) -> tuple[FloatArray, ...]:
    rates = [
        np.empty(0) if np.isinf(c) else np.minimum(np.arange(1.0, min(c, population) + 1), c) for c in servers
    ]
    for i, rate in multipliers(given, servers, stations).items():
        rates[i] = rate[:population]
    return tuple(rates)


def multipliers(
    given: Mapping[Any, Sequence[float]] | None, servers: FloatArray, stations: tuple[Any, ...]
) -> dict[int, FloatArray]:
    """Return the load-dependent rates by index of the station."""
    found = {}
    for station, values in (given or {}).items():
        if station not in stations:
            close = checks.nearest(str(station), [str(s) for s in stations])
            raise ValueError(f"rate_multiplier must name stations of the network, got {station!r}{close}")
        i = stations.index(station)
        if servers[i] != 1:
            raise ValueError(f"rate_multiplier must be given for single servers, got servers {servers[i]:g}")
        rate = checks.positive(f"rate_multiplier[{station!r}]", values)
        if rate.ndim != 1 or rate.size == 0:
            raise ValueError(
                f"rate_multiplier[{station!r}] must list rates for 1, 2, ... jobs, got {values!r}"
            )
        found[i] = rate
    return found


def closed_result(
    net: Network,
    *,
    model: str,
    kind: str,
    system_throughput: FloatArray,
    mean_number: FloatArray,
    busy: FloatArray | None = None,
    response_time: FloatArray | None = None,
) -> NetworkResult:
    """Return the result of a closed network from throughput per class and mean numbers."""
    x = system_throughput * net.visits
    if busy is None:
        busy = x * net.service_time / net.servers[:, None]
    if response_time is None:
        flowing = x > 0
        response_time = np.where(flowing, mean_number / np.where(flowing, x, 1.0), 0.0)

    def shaped(values: FloatArray) -> FloatArray:
        return values if net.classes else values[..., 0]

    return NetworkResult(
        model=model,
        kind=kind,
        stations=net.stations,
        classes=net.classes,
        throughput=shaped(x),
        utilization=shaped(busy),
        visits=shaped(net.visits),
        mean_response_time=shaped(response_time),
        mean_number_in_system=shaped(mean_number),
        system_throughput=shaped(system_throughput),
        think_time=shaped(net.think_time),
        stable=np.isfinite(shaped(response_time)),
        routing=net.routing,
    )
