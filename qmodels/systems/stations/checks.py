"""Checks of the parts of a queueing network; each words its own error."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.laws.times import Law
from qmodels.systems.stations.parts import (
    INF,
    LEAVE,
    PREEMPTIVE,
    ForkJoin,
    JobClass,
    Probabilistic,
    Rule,
    ShortestQueue,
    StateDependent,
    Station,
    probability_matrix,
    read_rule,
    require_whole,
)


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """The fields of a `qmodels.systems.stations.queueing_network.QueueingNetwork`, which checks them."""

    stations: Any = field(metadata={"holds": tuple[Station, ...]})  # At least one
    # At least one; open and closed ones may be mixed
    classes: Any = field(metadata={"holds": tuple[JobClass, ...]})
    # Where jobs go that leave a node: by the node's name, or by (node, class) where classes differ, a
    # destination, a mapping of destinations to probabilities, or a rule of
    # `qmodels.systems.stations.parts`. What is not mentioned leaves the network. Kept as a tuple of (node,
    # class, rule), an empty class meaning every other
    routing: Any = field(default=(), metadata={"holds": tuple[tuple[str, str, Rule], ...]})
    forks: Any = field(default=(), metadata={"holds": tuple[ForkJoin, ...]})  # Nodes where jobs split
    # Whether time is counted in ticks: every law must then be one of whole numbers. Of what happens in the
    # same tick, completions come first, then arrivals (as for simultaneous events of a network in continuous
    # time)
    clocked: bool = False

    @property
    def station_names(self) -> tuple[str, ...]:
        """Names of the stations."""
        return tuple(station.name for station in self.stations)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return tuple(job_class.name for job_class in self.classes)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the stations, then those of the forks."""
        return (*self.station_names, *(fork.name for fork in self.forks))

    @cached_property
    def rules(self) -> dict[tuple[int, int], Rule]:
        """The routing rule out of each visited (node, class), by number."""
        leave = Probabilistic(to={})
        given = {(node, job_class): rule for node, job_class, rule in self.routing}
        return {
            (node, k): given.get((self.nodes[node], self.class_names[k]))
            or given.get((self.nodes[node], ""), leave)
            for node in range(len(self.nodes))
            for k in range(len(self.classes))
            if (node, k) in self.visited
        }

    @cached_property
    def entries(self) -> dict[int, Rule]:
        """Where the jobs of each class with arrivals or a population begin, by its number."""
        first = self.stations[0].name
        return {
            k: (c.entry or read_rule("entry", first))
            if c.arrivals is not None
            else read_rule("reference", c.reference or first)
            for k, c in enumerate(self.classes)
            if c.arrivals is not None or c.closed
        }

    @cached_property
    def visited(self) -> frozenset[tuple[int, int]]:
        """Every (node, class), by number, in which a job can be; tasks of forks included."""
        given = {(node, job_class): rule for node, job_class, rule in self.routing}
        branches = {fork.name: fork.branches for fork in self.forks}
        found: set[tuple[str, str]] = set()
        tasks: set[tuple[str, str]] = set()
        waiting = [
            (node, new or self.class_names[k])
            for k, rule in self.entries.items()
            for node, new in rule.destinations
        ]
        while waiting:
            node, k = waiting.pop()
            if node == LEAVE or (node, k) in found:
                continue
            found.add((node, k))
            tasks |= {(station, k) for branch in branches.get(node, ()) for station in branch}
            rule = given.get((node, k)) or given.get((node, ""))
            if rule is not None:
                waiting += [(place, new or k) for place, new in rule.destinations]
        return frozenset((self.nodes.index(node), self.class_names.index(k)) for node, k in found | tasks)

    @property
    def arrival_rates(self) -> FloatArray:
        """Rate at which jobs of each class arrive from outside, all of a batch counted. [jobs / time]."""
        return np.array(
            [
                0.0 if c.arrivals is None else (1.0 if c.batch is None else c.batch.mean) / c.arrivals.mean
                for c in self.classes
            ]
        )

    @property
    def populations(self) -> Any:
        """Jobs of each closed class, 0 for open ones."""
        return np.array([c.population for c in self.classes], dtype=np.int64)

    @property
    def entry_matrix(self) -> FloatArray:
        """Probabilities [class, node, class there] of where jobs begin; probabilistic entries only."""
        matrix = np.zeros((len(self.classes), len(self.nodes), len(self.classes)))
        for k, rule in self.entries.items():
            rows = probability_matrix({(0, k): rule}, self.nodes, self.class_names)
            matrix[k] = rows[0, k]
        return matrix

    @property
    def routing_matrix(self) -> FloatArray:
        """Probabilities [node, class, node, class]; ValueError if some rule is not probabilistic."""
        return probability_matrix(self.rules, self.nodes, self.class_names)

    def service_law(self, station: int, job_class: int) -> Law | None:
        """Return the law of the service times of a class at a station, both by number."""
        law: Law | None = self.stations[station].service_law(self.class_names[job_class])
        return law


def check_network(net: Wiring) -> None:
    """Require that names are known, every visit has a law, open jobs can leave and closed ones cannot."""
    for node, job_class, rule in net.routing:
        _known(net, "routing", node, job_class)
        _known_rule(net, f"routing out of {node!r}", rule)
    _entries(net)
    _forks(net)
    _stations(net)
    _closed(net)
    _open(net)
    _starts(net)
    if net.clocked:
        _clocked(net)


def _known(net: Wiring, name: str, node: str, job_class: str) -> None:
    if node not in net.nodes:
        raise ValueError(
            f"{name} must name nodes of the network, got {node!r}{checks.nearest(str(node), net.nodes)}"
        )
    if job_class and job_class not in net.class_names:
        close = checks.nearest(str(job_class), net.class_names)
        raise ValueError(f"{name} must name classes of the network, got {job_class!r}{close}")


def _known_rule(net: Wiring, name: str, rule: Rule) -> None:
    for node, job_class in rule.destinations:
        _known(net, name, net.nodes[0] if node == LEAVE else node, job_class)
    watched = [rule.station] if isinstance(rule, StateDependent) else []
    watched += [node for node, _ in rule.destinations] if isinstance(rule, ShortestQueue) else []
    for station in watched:
        if station not in net.station_names:
            raise ValueError(f"{name} must look at stations, got {station!r}")


def _entries(net: Wiring) -> None:
    for c in net.classes:
        if c.entry:
            _known_rule(net, f"class {c.name!r}: entry", c.entry)
        if c.reference and c.reference not in net.station_names:
            close = checks.nearest(c.reference, net.station_names)
            raise ValueError(f"class {c.name!r}: reference must be a station, got {c.reference!r}{close}")
    if not net.entries:
        raise ValueError("classes must have arrivals or a population, got neither in any class")
    for node, k in sorted(net.visited):
        if node < len(net.stations) and net.service_law(node, k) is None:
            raise ValueError(
                f"station {net.nodes[node]!r}: service must have a law for class "
                f"{net.class_names[k]!r}, which visits it, got none"
            )


def _forks(net: Wiring) -> None:
    for fork in net.forks:
        for name in dict.fromkeys(name for branch in fork.branches for name in branch):
            if name not in net.station_names:
                close = checks.nearest(name, net.station_names)
                raise ValueError(f"fork {fork.name!r}: branches must name stations, got {name!r}{close}")
            if net.stations[net.nodes.index(name)].capacity != INF:
                raise ValueError(
                    f"fork {fork.name!r}: branches must have stations of infinite capacity, got {name!r}"
                )
            for k, c in enumerate(net.classes):
                if c.patience is not None and (net.nodes.index(fork.name), k) in net.visited:
                    raise ValueError(f"class {c.name!r}: patience must be left out where it forks")


def _stations(net: Wiring) -> None:
    holding = {s.name for s in net.stations if s.when_full != "loss" and s.capacity != INF}
    for (node, k), rule in net.rules.items():
        if node >= len(net.stations):
            blocked = [place for place, _ in rule.destinations if place in holding]
            if blocked:
                raise ValueError(f"station {blocked[0]!r}: when_full must be loss after a fork, got blocking")
            continue
        station, c = net.stations[node], net.classes[k]
        own_pace = station.discipline == "sharing" or bool(station.rate_multiplier)
        if c.patience is not None and station.discipline == "sharing" and not station.delay:
            raise ValueError(f"class {c.name!r}: patience must be left out at sharing {station.name!r}")
        if (own_pace or station.discipline in PREEMPTIVE or station.delay) and any(
            place in holding for place, _ in rule.destinations
        ):
            raise ValueError(
                f"station {station.name!r}: discipline must be fifo, lifo or priority with finitely many "
                "servers of constant rate where a later station blocks it, "
                f"got {station.discipline!r} with servers {station.servers}"
            )


def _closed(net: Wiring) -> None:
    for k, c in enumerate(net.classes):
        if not c.closed:
            continue
        for node, m in _reached_from(net, k):
            other = net.classes[m]
            if any(place == LEAVE for place, _ in net.rules[node, m].destinations):
                raise ValueError(
                    f"routing out of {net.nodes[node]!r} must keep the jobs of closed class {c.name!r}, "
                    "got probabilities below 1"
                )
            if other.arrivals is not None or other.patience is not None:
                raise ValueError(
                    f"routing of closed class {c.name!r} must not turn jobs into open ones, "
                    f"got {other.name!r}"
                )
            if node < len(net.stations):
                _keeps(net, node, c.name)


def _open(net: Wiring) -> None:
    for k, c in enumerate(net.classes):
        if c.arrivals is None:
            continue
        caught = _reached_from(net, k)
        while True:
            still = [place for place in caught if not _gets_out(net, place, caught)]
            if still == caught:
                break
            caught = still
        if caught:
            raise ValueError(
                f"routing must let every job of open class {c.name!r} leave the network, "
                f"got no way out of {net.nodes[caught[0][0]]!r}"
            )


def _gets_out(net: Wiring, place: tuple[int, int], caught: list[tuple[int, int]]) -> bool:
    """Return whether a job can leave, be lost, give up, or come to where it can."""
    node, k = place
    rule = net.rules[place]
    following = _inside(net, rule, k)
    return (
        any(there == LEAVE for there, _ in rule.destinations)
        or net.classes[k].patience is not None
        or any(there != node and _loses(net, there) for there, _ in following)
        or any(there not in caught for there in following)
    )


def _loses(net: Wiring, node: int) -> bool:
    if node >= len(net.stations):
        return False
    station = net.stations[node]
    return bool(station.capacity != INF and station.when_full == "loss")


def _starts(net: Wiring) -> None:
    for station in net.stations:
        there = sum(
            c.population for c in net.classes if c.closed and (c.reference or net.nodes[0]) == station.name
        )
        if station.capacity < there:
            raise ValueError(
                f"station {station.name!r}: capacity must hold the closed classes that begin there "
                f"({there} jobs), got {station.capacity!r}"
            )


def _keeps(net: Wiring, node: int, closed: str) -> None:
    station = net.stations[node]
    if not _loses(net, node):
        return
    if station.capacity < net.populations.sum() or _has_open_jobs(net, node):
        raise ValueError(
            f"station {station.name!r}: when_full must be blocking, or capacity hold all jobs, "
            f"for closed class {closed!r}, got 'loss'"
        )


def _has_open_jobs(net: Wiring, node: int) -> bool:
    return any(c.arrivals is not None and (node, k) in net.visited for k, c in enumerate(net.classes))


def _reached_from(net: Wiring, k: int) -> list[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    waiting = _inside(net, net.entries[k], k)
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting += _inside(net, net.rules[place], place[1])
    return sorted(found)


def _inside(net: Wiring, rule: Rule, k: int) -> list[tuple[int, int]]:
    """Return the (node, class), by number, to which a rule sends a job of class k."""
    return [
        (net.nodes.index(place), net.class_names.index(new) if new else k)
        for place, new in rule.destinations
        if place != LEAVE
    ]


def _clocked(net: Wiring) -> None:
    for node, k in net.visited:
        if node < len(net.stations):
            station, law = net.stations[node], net.service_law(node, k)
            if law is not None:
                require_whole(f"station {station.name!r}: service", law, minimum=0)
    for station in net.stations:
        if station.discipline == "sharing" or station.rate_multiplier:
            raise ValueError(
                f"station {station.name!r}: discipline must serve whole ticks where time is clocked, "
                f"got {station.discipline!r}"
            )
        for name in ("setup", "vacation"):
            if getattr(station, name) is not None:
                require_whole(f"station {station.name!r}: {name}", getattr(station, name), minimum=0)
    for c in net.classes:
        for name in ("arrivals", "patience"):
            if getattr(c, name) is not None:
                require_whole(f"class {c.name!r}: {name}", getattr(c, name), minimum=0)
