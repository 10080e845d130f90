"""Where a job goes next: the routing rules of a queueing network.

A destination is the name of a node, or ``(node, job class)`` where the job changes class on the
way; `LEAVE` is the outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.laws.fields import keep
from qmodels.systems.spec.docstrings import Documented

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
