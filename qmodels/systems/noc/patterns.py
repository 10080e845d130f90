"""Who sends packets to whom in a network-on-chip: synthetic patterns, matrices, task graphs."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt, prod
from pathlib import Path
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.guarded import guarded
from qmodels.systems.noc.layout import MOST_NODES, grid_nodes
from qmodels.systems.spec.ranges import Declared, choice, count, probability
from qmodels.systems.spec.text.reading import Place

PATTERNS = ("uniform", "transpose", "bit-complement", "tornado", "neighbour", "hotspot")


@dataclass(frozen=True, kw_only=True)
class Pattern(Declared, prefix="traffic."):
    """A synthetic pattern; made by `uniform`, `transpose` and so on."""

    pattern: str = choice(allowed=PATTERNS)  # See the functions of the same names
    nodes: int = count(minimum=2)  # Number of nodes
    # Whether nodes also send to themselves where the pattern says so; otherwise uniform packets go to others
    # only, and nodes that a permutation leaves in place are silent
    self_traffic: bool = False
    shape: tuple[int, ...] = ()  # Nodes in each dimension, for tornado and neighbour
    spots: tuple[int, ...] = ()  # Hot nodes
    fraction: float = probability(0.0)  # Part of the packets that goes to the hot nodes, evenly

    def _check_relations(self) -> None:
        if self.pattern == "transpose" and isqrt(self.nodes) ** 2 != self.nodes:
            raise ValueError(f"traffic.nodes of a transpose must be a square, got {self.nodes!r}")
        if self.pattern in ("tornado", "neighbour") and prod(self.shape) != self.nodes:
            raise ValueError(f"traffic.shape must hold {self.nodes} nodes, got {self.shape!r}")
        if (self.pattern == "hotspot") != bool(self.spots):
            raise ValueError(f"traffic.spots must be given for hotspot and no other, got {self.spots!r}")
        if self.spots:
            checks.count("traffic.spots", self.spots, minimum=0, maximum=self.nodes - 1)
            if len(set(self.spots)) < len(self.spots):
                raise ValueError(f"traffic.spots must be different nodes, got {self.spots!r}")

    def check_nodes(self, nodes: int) -> None:
        """Refuse a network of another number of nodes."""
        _same_nodes(self.nodes, nodes)

    def matrix(self, nodes: int) -> FloatArray:
        """Return the packets from each node to each, relative: 1 in all for a node that sends."""
        self.check_nodes(nodes)
        n = self.nodes
        if self.pattern not in ("uniform", "hotspot"):
            return _permutation_matrix(self._targets(), self.self_traffic)
        even = np.ones((n, n))
        if not self.self_traffic:
            np.fill_diagonal(even, 0.0)
        if not self.spots:
            return _normal(even)
        hot = np.zeros((n, n))
        hot[:, list(self.spots)] = even[:, list(self.spots)]
        return _normal((1 - self.fraction) * _normal(even) + self.fraction * _normal(hot))

    def _targets(self) -> Sequence[int]:
        n = self.nodes
        here = np.arange(n)
        if self.pattern == "transpose":
            return here.reshape(isqrt(n), -1).T.ravel().tolist()
        if self.pattern == "bit-complement":
            return here[::-1].tolist()
        places = np.stack(np.unravel_index(here, self.shape))
        length = np.array(self.shape)[:, None]
        ahead = 1 if self.pattern == "neighbour" else (length + 1) // 2 - 1
        return np.ravel_multi_index(tuple((places + ahead) % length), self.shape).tolist()


@dataclass(frozen=True, kw_only=True)
class Permutation(Declared, prefix="traffic."):
    """Each node sends to one other; made by `permutation`."""

    targets: tuple[int, ...]  # The node that each sends to; its own number for a silent one

    def _check_relations(self) -> None:
        checks.count("traffic.targets", self.targets, minimum=0, maximum=len(self.targets) - 1)
        if len(set(self.targets)) < len(self.targets):
            raise ValueError(f"traffic.targets must be a permutation, got {self.targets!r}")

    def check_nodes(self, nodes: int) -> None:
        """Refuse a network of another number of nodes."""
        _same_nodes(len(self.targets), nodes)

    def matrix(self, nodes: int) -> FloatArray:
        """Return the packets from each node to each, relative: 1 in all for a node that sends."""
        self.check_nodes(nodes)
        return _permutation_matrix(self.targets, False)


@dataclass(frozen=True, kw_only=True)
class RateMatrix(Declared, prefix="traffic."):
    """Packets between all pairs of nodes; made by `rate_matrix` or `task_graph`."""

    # Packets per cycle from each node (row) to each. These are the rates of a `Noc` without an
    # ``injection_rate``; with one they are scaled to it. [packets/cycle]
    rates: tuple[tuple[float, ...], ...]

    @classmethod
    def __from_toml__(cls, value: Any, place: Place) -> Any:
        rates = value.get("rates") if isinstance(value, dict) else None
        return rate_matrix(place.folder / rates) if isinstance(rates, str) else value

    def _check_relations(self) -> None:
        n = len(self.rates)
        for row in self.rates:
            if len(row) != n:
                raise ValueError(
                    f"traffic.rates must be a square matrix, got a row of {len(row)} in {n} rows"
                )
        if not np.any(checks.nonnegative("traffic.rates", self.rates)):
            raise ValueError("traffic.rates must have a positive one, got none")

    @property
    def mean_rate(self) -> float:
        """The injection rate that gives exactly these rates: their mean over the nodes that send."""
        sums = np.sum(self.rates, axis=1)
        return float(sums.sum() / np.count_nonzero(sums))

    @property
    def largest_rate(self) -> float:
        """Packets per cycle of the node that sends most."""
        return float(np.sum(self.rates, axis=1).max())

    def check_nodes(self, nodes: int) -> None:
        """Refuse a network of another number of nodes."""
        _same_nodes(len(self.rates), nodes)

    def matrix(self, nodes: int) -> FloatArray:
        """Return the packets from each node to each, relative: 1 in all for a node that sends, on average."""
        self.check_nodes(nodes)
        return np.array(self.rates, dtype=float) / self.mean_rate


@guarded
def uniform(*, nodes: int, self_traffic: bool = False) -> Pattern:
    """Return packets to all nodes alike, the own one included if ``self_traffic`` says so.

    Examples
    --------
    >>> uniform(nodes=3).matrix(3)[0]
    array([0. , 0.5, 0.5])
    """
    return Pattern(pattern="uniform", nodes=nodes, self_traffic=self_traffic)


@guarded
def transpose(*, nodes: int, self_traffic: bool = False) -> Pattern:
    """Return packets from row *r*, column *c* of a square to row *c*, column *r*.

    Examples
    --------
    >>> transpose(nodes=4).matrix(4)[1]
    array([0., 0., 1., 0.])
    """
    return Pattern(pattern="transpose", nodes=nodes, self_traffic=self_traffic)


@guarded
def bit_complement(*, nodes: int) -> Pattern:
    """Return packets from node *i* to *n* - 1 - *i*: all bits inverted where *n* is a power of 2.

    Examples
    --------
    >>> bit_complement(nodes=4).matrix(4)[0]
    array([0., 0., 0., 1.])
    """
    return Pattern(pattern="bit-complement", nodes=nodes)


@guarded
def tornado(*shape: int) -> Pattern:
    """Return packets to the node nearly half-way round each dimension: ceil(k / 2) - 1 ahead.

    Examples
    --------
    >>> tornado(8).matrix(8)[0].argmax()
    np.int64(3)
    """
    return Pattern(pattern="tornado", nodes=grid_nodes(shape), shape=shape)


@guarded
def neighbour(*shape: int) -> Pattern:
    """Return packets to the node one ahead in each dimension.

    Examples
    --------
    >>> neighbour(3).matrix(3)[2]
    array([1., 0., 0.])
    """
    return Pattern(pattern="neighbour", nodes=grid_nodes(shape), shape=shape)


@guarded
def hotspot(*, nodes: int, spots: Sequence[int], fraction: float, self_traffic: bool = False) -> Pattern:
    """Return uniform packets of which a fraction goes to the hot nodes instead.

    Examples
    --------
    >>> hotspot(nodes=4, spots=[3], fraction=0.4).matrix(4)[0].round(2)
    array([0. , 0.2, 0.2, 0.6])
    """
    return Pattern(
        pattern="hotspot", nodes=nodes, self_traffic=self_traffic, spots=tuple(spots), fraction=fraction
    )


@guarded
def permutation(targets: Sequence[int]) -> Permutation:
    """Return packets from node *i* to ``targets[i]``; a node sent to itself is silent.

    Examples
    --------
    >>> permutation([1, 0, 2]).matrix(3)[0]
    array([0., 1., 0.])
    """
    return Permutation(targets=tuple(targets))


@guarded
def rate_matrix(rates: str | os.PathLike[str] | Sequence[Sequence[float]]) -> RateMatrix:
    """Return traffic at given rates: rows of packets per cycle, or a CSV file of them without headings.

    Raises
    ------
    ValueError
        If the file cannot be read or is not a square of numbers.

    Examples
    --------
    >>> rate_matrix([[0, 0.2], [0.1, 0]]).mean_rate
    0.15000000000000002
    """
    if not isinstance(rates, str | os.PathLike):
        try:
            return RateMatrix(rates=tuple(tuple(float(rate) for rate in row) for row in rates))
        except TypeError:
            raise ValueError(f"rates must be rows of numbers, got {checks.shown(rates)}") from None
    try:
        with Path(rates).open(encoding="utf-8", newline="") as file:
            rows = [(n, row) for n, row in enumerate(csv.reader(file), 1) if row]
    except OSError as error:
        raise ValueError(f"{rates}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{rates}: not a text file") from None
    table = []
    for number, row in rows:
        try:
            table.append(tuple(float(value) for value in row))
        except ValueError:
            raise ValueError(f"{rates}:{number}: must be numbers, got {','.join(row)!r}") from None
    try:
        return RateMatrix(rates=tuple(table))
    except ValueError as error:
        raise ValueError(f"{rates}: {error}") from None


@guarded
def task_graph(graph: Any, *, mapping: dict[Any, int], nodes: int, period_cycles: float = 1.0) -> RateMatrix:
    """Return the traffic of communicating tasks on the nodes they are mapped onto.

    Parameters
    ----------
    graph : networkx.DiGraph, or iterable of (task, task, packets)
        Packets that each task sends to each in a period.
    mapping : dict
        Node of each task; several tasks may share one, and what they send each other stays there.
    nodes : int
        Number of nodes.
    period_cycles : float
        How long a period is. [cycles]

    Examples
    --------
    >>> edges = [("filter", "transform", 3), ("transform", "filter", 1)]
    >>> task_graph(edges, mapping={"filter": 0, "transform": 2}, nodes=3, period_cycles=100).rates
    ((0.0, 0.0, 0.03), (0.0, 0.0, 0.0), (0.01, 0.0, 0.0))
    """
    edges = graph.edges(data="packets", default=1.0) if hasattr(graph, "edges") else graph
    checks.count("nodes", nodes, minimum=2, maximum=MOST_NODES)
    if isinstance(edges, np.ndarray | bytes):
        raise ValueError(f"graph must be edges (task, task, packets), got {checks.shown(graph)}")
    checks.one_number("period_cycles", period_cycles)
    checks.positive("period_cycles", period_cycles)
    rates = np.zeros((nodes, nodes))
    for task, other, packets in edges:
        for one in (task, other):
            if one not in mapping:
                raise ValueError(f"mapping must name the node of every task, got none for {one!r}")
            checks.count(f"mapping[{one!r}]", mapping[one], minimum=0, maximum=nodes - 1)
        if mapping[task] != mapping[other]:
            rates[mapping[task], mapping[other]] += float(checks.nonnegative("packets", packets))
    return rate_matrix((rates / period_cycles).tolist())


def _same_nodes(own: int, nodes: int) -> None:
    if own != nodes:
        raise ValueError(f"traffic must be for the topology's {nodes} nodes, got one for {own}")


def _normal(matrix: FloatArray) -> FloatArray:
    sums = matrix.sum(axis=1, keepdims=True)
    return matrix / np.where(sums > 0, sums, 1.0)


def _permutation_matrix(targets: Sequence[int], self_traffic: bool) -> FloatArray:
    matrix = np.zeros((len(targets), len(targets)))
    matrix[np.arange(len(targets)), list(targets)] = 1.0
    if not self_traffic:
        np.fill_diagonal(matrix, 0.0)
    return matrix
