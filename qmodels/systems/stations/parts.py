"""Parts of a queueing network: stations, classes of jobs, forks, and the rules by which jobs go on.

A destination is the name of a node, or ``(node, job class)`` where the job changes class on the
way; `LEAVE` is the outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.laws.fields import keep, whole
from qmodels.systems.laws.kinds import require_law
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.docstrings import Documented
from qmodels.systems.spec.nested import check_parts

LEAVE = "leave"
"""The destination of a job that leaves the network."""

Destination = tuple[str, str]
"""Node and new class; an empty class means that the job keeps its own."""

_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Probabilistic(Documented):
    """One of several destinations at random.

    Examples
    --------
    >>> Probabilistic(to={"disk": 0.75}).probabilities
    ((('disk', ''), 0.75), (('leave', ''), 0.25))
    """

    # What is missing to 1 leaves the network. Kept as a tuple of (destination, probability)
    to: Any = field(metadata={"holds": tuple[tuple[Destination, float], ...]})

    def __post_init__(self) -> None:
        pairs = self.to.items() if isinstance(self.to, Mapping) else self.to
        if not isinstance(self.to, Mapping | tuple) or not all(map(_is_pair, pairs)):
            raise ValueError(f"to must map destinations to probabilities, got {checks.shown(self.to)}")
        choices = tuple(
            (destination("to", place), float(checks.probability(f"to[{place!r}]", share)))
            for place, share in pairs
        )
        total = sum(share for _, share in choices)
        if total > 1 + _SUM_TOLERANCE:
            raise ValueError(f"to must have probabilities that sum to at most 1, got {total:.12g}")
        keep(self, to=choices)

    @property
    def probabilities(self) -> tuple[tuple[Destination, float], ...]:
        """Every destination with its probability, leaving included where it can happen."""
        missing = 1.0 - sum(share for _, share in self.to)
        rest = ((((LEAVE, "")), missing),) if missing > _SUM_TOLERANCE else ()
        return (*(pair for pair in self.to if pair[1] > 0), *rest)

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Where jobs can go."""
        return tuple(place for place, _ in self.probabilities)


@dataclass(frozen=True, kw_only=True)
class _Listed(Documented):
    to: Any = field(metadata={"holds": tuple[Destination, ...]})  # Nodes; one may stand in it several times

    def __post_init__(self) -> None:
        keep(self, to=_several(self.to))

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Where jobs can go."""
        return tuple(self.to)


@dataclass(frozen=True, kw_only=True)
class Cyclic(_Listed):
    """The destinations in turn, job by job.

    Examples
    --------
    >>> Cyclic(to=["a", "a", "b"]).destinations
    (('a', ''), ('a', ''), ('b', ''))
    """


@dataclass(frozen=True, kw_only=True)
class ShortestQueue(_Listed):
    """The station with the fewest jobs, those in service included; at random among equals.

    Examples
    --------
    >>> ShortestQueue(to=["a", "b"]).destinations
    (('a', ''), ('b', ''))
    """


@dataclass(frozen=True, kw_only=True)
class StateDependent(Documented):
    """A rule for each number of jobs at some station.

    Examples
    --------
    Jobs that find three at the cache's port go to the memory directly:

    >>> rule = StateDependent(station="cache", rules=["cache", "cache", "cache", "memory"])
    >>> rule.destinations
    (('cache', ''), ('memory', ''))
    """

    station: str  # The station that is looked at
    # What happens with 0, 1, 2, ... jobs there (the routed job, which has left its station, is not counted),
    # the last one for all larger numbers: a destination, or a mapping of destinations to probabilities
    rules: Any = field(metadata={"holds": tuple[Probabilistic, ...]})

    def __post_init__(self) -> None:
        if not isinstance(self.rules, list | tuple) or not self.rules:
            raise ValueError(f"rules must be a list of at least one rule, got {checks.shown(self.rules)}")
        keep(self, rules=tuple(_probabilistic("rules", rule) for rule in self.rules))

    @property
    def destinations(self) -> tuple[Destination, ...]:
        """Where jobs can go."""
        return tuple(dict.fromkeys(place for rule in self.rules for place in rule.destinations))


Rule = Probabilistic | Cyclic | ShortestQueue | StateDependent
"""Any routing rule."""


def destination(name: str, value: Any) -> Destination:
    """Return a destination as (node, class)."""
    if isinstance(value, str):
        return value, ""
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(part, str) for part in value):
        return value
    raise ValueError(f"{name} must hold names of nodes or (node, class), got {checks.shown(value)}")


def read_rule(name: str, value: Any) -> Rule:
    """Return a rule from what a user wrote: a rule, a destination or a mapping to probabilities.

    >>> read_rule("routing", "disk").destinations
    (('disk', ''),)
    """
    if isinstance(value, Rule):
        return value
    if isinstance(value, str | tuple | Mapping):
        return _probabilistic(name, value)
    raise ValueError(f"{name} must be a destination, a mapping or a routing rule, got {checks.shown(value)}")


def _probabilistic(name: str, value: Any) -> Probabilistic:
    if isinstance(value, Probabilistic):
        return value
    return Probabilistic(to=value if isinstance(value, Mapping) else {destination(name, value): 1.0})


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _several(value: Any) -> tuple[Destination, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) != 1:
        raise ValueError(f"to must be a list of destinations, got {checks.shown(value)}")
    places = tuple(destination("to", place) for place in value)
    if not places:
        raise ValueError("to must be a list of at least one destination, got none")
    return places


def probability_matrix(
    rules: Mapping[tuple[int, int], Rule], nodes: tuple[str, ...], classes: tuple[str, ...]
) -> Any:
    """Return probabilities [from node, class, to node, class]; of probabilistic rules only."""
    matrix = np.zeros((len(nodes), len(classes)) * 2)
    for (node, job_class), rule in rules.items():
        if not isinstance(rule, Probabilistic):
            raise ValueError(
                f"routing out of {nodes[node]!r} must be probabilistic for this, got {type(rule).__name__}"
            )
        for (place, new), share in rule.probabilities:
            if place != LEAVE:
                to = classes.index(new) if new else job_class
                matrix[node, job_class, nodes.index(place), to] += share
    return matrix


INF = float("inf")
ONE_CLASS = "job"
"""Name of the class of jobs where there is only one."""

DISCIPLINES = ("fifo", "lifo", "lifo-preemptive", "priority", "priority-preemptive", "sharing")
MOST_PLACES = 2**22
"""Servers, or places, of a station that has not any number of them: models have an array of them."""
PREEMPTIVE = ("lifo-preemptive", "priority-preemptive")
WHEN_FULL = ("loss", "after-service", "before-service")


@dataclass(frozen=True, kw_only=True)
class Station(Documented):
    """Servers and the place where jobs wait for them.

    Examples
    --------
    >>> from qmodels.systems.laws.times import Erlang, Exponential
    >>> Station(name="parser", service=Exponential(mean=2.0), servers=3, capacity=10).delay
    False
    >>> station = Station(name="port", service={"read": Erlang(mean=4.0, phases=2)})
    >>> station.service_law("read").mean, station.service_law("write")
    (4.0, None)
    """

    name: str = "station"  # Name, unique in the network
    # Service times; one law holds for every class
    service: Any = field(metadata={"holds": Law | tuple[tuple[str, Law], ...]})
    servers: Any = 1  # Number of servers; ``inf`` makes the station a delay, where nobody waits
    # ``"fifo"``; ``"lifo"`` (a service once begun is finished); ``"lifo-preemptive"`` (the newest job is
    # served, interrupted services resume; one server); ``"priority"`` and ``"priority-preemptive"`` (by
    # `JobClass.priority`, FIFO within; interrupted services resume); ``"sharing"`` (processor sharing: all
    # jobs are served at once, at the rate min(n, servers) / n each)
    discipline: str = "fifo"
    capacity: Any = INF  # Most jobs at the station, those in service included (Kendall's K)
    # What happens to a job of the network that finds it full: ``"loss"``; ``"after-service"`` (it stays on
    # its server, which stands still, until there is a place; first blocked, first released);
    # ``"before-service"`` (a server starts a job only once a place for it here is set aside). Arrivals from
    # outside are lost in any case. Full stations that wait for each other in a circle stay so
    when_full: str = "loss"
    # Speed with 1, 2, ... jobs at the station as a multiple of that of one server, the last value for all
    # larger numbers. Needs one server or sharing. Empty: the servers' own
    rate_multiplier: tuple[float, ...] = ()
    # The server is switched off when the last job leaves, and takes this time to start. One server
    setup: Law | None = None
    setup_threshold: int = 1  # Number of waiting jobs at which it is switched on again
    # The server leaves for this time whenever it finds nobody waiting. One server
    vacation: Law | None = None
    # Whether it leaves again if nobody waits at its return, or else stays for the next job
    multiple_vacations: bool = True

    def __post_init__(self) -> None:
        check_name("station name", self.name)
        here = f"station {self.name!r}:"
        keep(
            self,
            service=_service(here, self.service),
            servers=_count_or_inf(f"{here} servers", self.servers),
            capacity=_count_or_inf(f"{here} capacity", self.capacity),
            rate_multiplier=_multiplier(here, self.rate_multiplier),
            setup_threshold=whole(f"{here} setup_threshold", self.setup_threshold),
        )
        checks.choice(f"{here} discipline", self.discipline, DISCIPLINES)
        checks.choice(f"{here} when_full", self.when_full, WHEN_FULL)
        check_parts(self, f"{here} ")
        for name in ("setup", "vacation"):
            law = getattr(self, name)
            if law is not None:
                require_law(f"{here} {name}", law)
                if self.servers != 1:
                    raise ValueError(f"{here} servers must be 1 with {name}, got {self.servers!r}")
        if self.vacation is not None and not self.vacation.mean > 0:
            raise ValueError(f"{here} vacation must have a mean > 0, got {self.vacation.mean!r}")
        if self.setup is not None and self.vacation is not None:
            raise ValueError(f"{here} at most one of setup and vacation must be given, got both")
        if self.setup is None and self.setup_threshold > 1:
            raise ValueError(
                f"{here} setup_threshold must come with a setup, got {self.setup_threshold!r} without"
            )
        if self.discipline == "lifo-preemptive" and self.servers not in (1, INF):
            raise ValueError(f"{here} servers must be 1 with lifo-preemptive, got {self.servers!r}")
        if self.rate_multiplier and self.discipline != "sharing":
            if self.servers != 1:
                raise ValueError(f"{here} servers must be 1 with rate_multiplier, got {self.servers!r}")
            if self.discipline in PREEMPTIVE:
                raise ValueError(
                    f"{here} discipline must not be preemptive with rate_multiplier, got {self.discipline!r}"
                )
        if self.rate_multiplier and self.delay:
            raise ValueError(f"{here} servers must be finite with rate_multiplier, got {self.servers!r}")
        if self.capacity < self.servers and not self.delay:
            raise ValueError(f"{here} capacity must be >= servers ({self.servers}), got {self.capacity!r}")

    @property
    def delay(self) -> bool:
        """Whether nobody ever waits here."""
        return bool(self.servers == INF)

    def service_law(self, job_class: str) -> Law | None:
        """Return the law of the service times of a class, or None if it has none here."""
        if isinstance(self.service, tuple):
            return dict(self.service).get(job_class)
        law: Law = self.service
        return law


@dataclass(frozen=True, kw_only=True)
class JobClass(Documented):
    """Jobs of one kind: open (they arrive and leave) or closed (a fixed number goes round).

    A class with neither arrivals nor a population gets its jobs from others that turn into it.

    Examples
    --------
    >>> from qmodels.systems.laws.times import Exponential
    >>> JobClass(arrivals=Exponential(mean=2.0)).closed
    False
    >>> JobClass(name="worker", population=8).closed
    True
    """

    name: str = ONE_CLASS  # Name, unique in the network
    arrivals: Law | None = None  # Times between arrivals of an open class
    batch: Law | None = None  # Jobs that arrive together: a law of whole numbers >= 1. One if left out
    # Where arrivals go, as in the network's routing; the first station if left out
    entry: Any = field(default="", metadata={"holds": str | Rule})
    population: int = 0  # Jobs of a closed class
    # Station where the jobs of a closed class begin, and whose departures count its cycles; the first station
    # if left out
    reference: str = ""
    priority: int = 0  # Level at stations with priorities, 0 being served first
    # How long a job of an open class waits at a station before it gives up and leaves the network; jobs whose
    # service has begun do not
    patience: Law | None = None

    def __post_init__(self) -> None:
        check_name("class name", self.name)
        here = f"class {self.name!r}:"
        check_parts(self, f"{here} ")
        keep(
            self,
            population=int(checks.count(f"{here} population", self.population, minimum=0)),
            priority=int(checks.count(f"{here} priority", self.priority, minimum=0)),
            entry=read_rule(f"{here} entry", self.entry) if type(self.entry) is not str or self.entry else "",
        )
        for name in ("arrivals", "batch", "patience"):
            law = getattr(self, name)
            if law is not None:
                require_law(f"{here} {name}", law)
        if self.batch is not None:
            require_whole(f"{here} batch", self.batch, minimum=1)
        if self.arrivals is not None and self.population:
            raise ValueError(f"{here} at most one of arrivals and population must be given, got both")
        if self.arrivals is None and (self.batch is not None or self.entry):
            raise ValueError(f"{here} arrivals must be given with batch or entry, got None")
        if self.arrivals is not None and not self.arrivals.mean > 0:
            raise ValueError(f"{here} arrivals must have a mean > 0, got {self.arrivals.mean!r}")
        if not self.population and self.reference:
            raise ValueError(f"{here} population must be >= 1 with a reference, got 0")
        if self.population and self.patience is not None:
            raise ValueError(f"{here} patience must be left out in a closed class, got {self.patience!r}")

    @property
    def closed(self) -> bool:
        """Whether the class has a fixed population."""
        return self.population > 0


@dataclass(frozen=True, kw_only=True)
class ForkJoin(Documented):
    """A node where a job splits into tasks, one per branch, and waits for the last of them.

    Examples
    --------
    >>> ForkJoin(name="striped read", branches=["disk 1", ("disk 2", "decoder")]).branches
    (('disk 1',), ('disk 2', 'decoder'))
    """

    name: str  # Name, unique among stations and forks
    # Of each branch the station its task visits, or a sequence of stations in their order. The tasks have the
    # class of their job
    branches: Any = field(metadata={"holds": tuple[tuple[str, ...], ...]})

    def __post_init__(self) -> None:
        check_name("fork name", self.name)
        if not isinstance(self.branches, list | tuple):
            raise ValueError(
                f"fork {self.name!r}: branches must be a list, got {checks.shown(self.branches)}"
            )
        branches = tuple((b,) if isinstance(b, str) else b for b in self.branches)
        for branch in branches:
            if not isinstance(branch, list | tuple) or not all(isinstance(one, str) for one in branch):
                raise ValueError(
                    f"fork {self.name!r}: branches must hold names of stations, got {checks.shown(branch)}"
                )
        branches = tuple(map(tuple, branches))
        if not branches or not all(branches):
            raise ValueError(f"fork {self.name!r}: branches must each have a station, got {branches!r}")
        keep(self, branches=branches)


def check_name(what: str, value: Any) -> None:
    """Require a name that is not taken by the outside."""
    if not isinstance(value, str) or not value or value == LEAVE:
        raise ValueError(
            f"{what} must be a text other than {LEAVE!r} and not empty, got {checks.shown(value)}"
        )


def require_whole(name: str, law: Law, *, minimum: int) -> None:
    """Require a law of whole numbers."""
    from qmodels.systems.laws.times import Deterministic, Empirical, Geometric, Replay

    match law:
        case Geometric():
            return
        case Deterministic():
            values = np.array([law.mean])
        case Empirical() | Replay():
            values = np.array(law.values)
        case _:
            raise ValueError(f"{name} must be a law of whole numbers, got {type(law).__name__}")
    wrong = (values != np.floor(values)) | (values < minimum)
    if wrong.any():
        raise ValueError(f"{name} must have whole values >= {minimum}, got {float(values[wrong][0])!r}")


def _service(here: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        value = tuple(value.items())
    if isinstance(value, tuple):
        for pair in value:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ValueError(f"{here} service must map classes to laws, got {checks.shown(value)}")
            require_law(f"{here} service of {pair[0]!r}", pair[1])
        return value
    require_law(f"{here} service", value)
    return value


def _count_or_inf(name: str, value: Any) -> Any:
    if isinstance(value, float) and value == INF:
        return INF
    return whole(name, value, maximum=MOST_PLACES)


def _multiplier(here: str, value: Any) -> tuple[float, ...]:
    array = checks.positive(f"{here} rate_multiplier", value)
    if array.ndim != 1:
        raise ValueError(f"{here} rate_multiplier must list speeds for 1, 2, ... jobs, got {value!r}")
    return tuple(array.tolist())
