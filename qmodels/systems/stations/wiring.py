"""The fields of a queueing network and what follows from them: who visits what, by which rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.laws.times import Law
from qmodels.systems.stations.parts import ForkJoin, JobClass, Station
from qmodels.systems.stations.routing import LEAVE, Probabilistic, Rule, probability_matrix, read_rule


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """The fields of a `qmodels.systems.stations.queueing_network.QueueingNetwork`, which checks them."""

    stations: Any = field(metadata={"holds": tuple[Station, ...]})
    classes: Any = field(metadata={"holds": tuple[JobClass, ...]})
    routing: Any = field(default=(), metadata={"holds": tuple[tuple[str, str, Rule], ...]})
    forks: Any = field(default=(), metadata={"holds": tuple[ForkJoin, ...]})
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
