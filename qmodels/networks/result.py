"""The answer of a network model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.spec.result import Result

BoolArray = npt.NDArray[np.bool_]

_METRICS = (
    "throughput", "utilization", "residence_time", "mean_response_time", "mean_number_in_system",
    "arrival_scv", "departure_scv", "blocking_probability",
)  # fmt: skip
_TOTALS = ("system_throughput", "system_response_time", "mean_number_in_network")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NetworkResult(Result):
    """Steady state of a network of stations.

    Arrays have one entry per station, shape (stations,), or in a network with several classes
    one per station and class, shape (stations, classes).

    Parameters
    ----------
    model : str
        Name of the model, with the author where it is an approximation.
    kind : {"exact", "approximation", "bound"}
        What the numbers are under the model's assumptions.
    stations : tuple
        Names of the stations: the nodes of the graph or keys of the mapping that described
        them, otherwise 0, 1, ...
    classes : tuple
        Names of the classes; empty in a network without classes.
    throughput : array
        Jobs that complete a visit. [jobs / time]
    utilization : array
        Busy fraction of a server (of a class: busy with that class), at most 1 in sum. 0 where
        a station has infinitely many servers. A server held by a blocked job is not busy.
    visits : array
        Mean visits of a job to the station per passage through the network.
    mean_response_time : array
        Mean time of one visit, waiting and service; ``inf`` where overloaded, 0 where the
        class does not visit. [time]
    mean_number_in_system : array
        Mean number of jobs at the station, waiting or in service. [jobs]
    system_throughput : float or array
        Passages through the network (closed: cycles), per class. [jobs / time]
    think_time : float or array
        Mean time a job of a closed class spends outside the stations per cycle. [time]
    stable : array of bool
        Whether the station has a steady state for the class.
    arrival_scv, departure_scv : array, optional
        Squared coefficients of variation of the times between arrivals and departures, where
        the model computes them.
    blocking_probability : array, optional
        Where buffers are finite: see the model for whether it counts lost or held jobs.
    routing : array, optional
        Routing probabilities, where the network was described by them.
    """

    spec: None = field(default=None, init=False)
    validated: bool = field(default=True, init=False)
    latency_parts: Mapping[str, Any] = field(default_factory=dict, init=False)
    traffic_intensity: Mapping[str, Any] = field(default_factory=dict, init=False)
    error: Mapping[str, Any] = field(default_factory=dict, init=False)

    model: str
    kind: str
    stations: tuple[Any, ...]
    classes: tuple[Any, ...] = ()
    throughput: FloatArray
    utilization: FloatArray
    visits: FloatArray
    mean_response_time: FloatArray
    mean_number_in_system: FloatArray
    system_throughput: Any
    think_time: Any = 0.0
    stable: BoolArray
    arrival_scv: FloatArray | None = None
    departure_scv: FloatArray | None = None
    blocking_probability: FloatArray | None = None
    routing: FloatArray | None = None

    @property
    def residence_time(self) -> FloatArray:
        """Mean time at the station per passage through the network, visits times response."""
        visited = self.visits > 0
        return np.where(visited, self.visits * np.where(visited, self.mean_response_time, 0.0), 0.0)

    @property
    def system_response_time(self) -> Any:
        """Mean time of a passage through the network without the think time, per class."""
        return self.residence_time.sum(axis=0)[()]

    @property
    def mean_number_in_network(self) -> Any:
        """Mean number of jobs at all stations, per class (a job that thinks is at none)."""
        return self.mean_number_in_system.sum(axis=0)[()]

    @property
    def station_utilization(self) -> FloatArray:
        """Busy fraction of a server of each station, all classes together."""
        return self.utilization.sum(axis=1) if self.classes else self.utilization

    @property
    def bottleneck(self) -> Any:
        """Name of the station with the highest utilization."""
        return self.stations[int(np.argmax(self.station_utilization))]

    @property
    def metrics(self) -> dict[str, float]:
        """Every known metric by name and, in brackets, station and class."""
        found: dict[str, float] = {}
        for name in _METRICS:
            values = getattr(self, name)
            for index in np.ndindex(np.shape(values)) if values is not None else ():
                place = [self.stations[index[0]], *(self.classes[k] for k in index[1:])]
                found[f"{name}[{', '.join(map(str, place))}]"] = float(values[index])
        for name in _TOTALS:
            values = np.ravel(getattr(self, name))
            names = [name] if len(values) == 1 else [f"{name}[{one}]" for one in self.classes]
            found |= dict(zip(names, values.tolist(), strict=True))
        return found

    @property
    def title(self) -> str:
        """Model and what its numbers are."""
        return f"{self.model} ({self.kind})"

    @property
    def notes(self) -> tuple[str, ...]:
        """Which stations are overloaded."""
        good = np.reshape(self.stable, (len(self.stations), -1)).all(axis=1)
        full = ", ".join(str(self.stations[i]) for i in np.flatnonzero(~good))
        return (f"overloaded: {full}",) if full else ()

    def to_networkx(self) -> Any:
        """Return the network as a directed graph with its flows.

        Nodes are the stations, with the metrics as attributes (all classes together:
        `throughput`, `utilization`, `mean_number_in_system`); edges carry `flow` [jobs / time]
        and `probability`, the share of the jobs leaving the tail.

        Raises
        ------
        ValueError
            If the network was described by visits, which do not say who follows whom.
        """
        import networkx as nx

        if self.routing is None:
            raise ValueError("routing must be given to draw the network, got visits only")
        classes = max(len(self.classes), 1)
        leaving = self.throughput.reshape(len(self.stations), classes)
        flow = station_flows(leaving, self.routing)
        graph = nx.DiGraph()
        number = self.mean_number_in_system.reshape(leaving.shape).sum(axis=1)
        for i, station in enumerate(self.stations):
            graph.add_node(
                station,
                throughput=float(leaving[i].sum()),
                utilization=float(self.station_utilization[i]),
                mean_number_in_system=float(number[i]),
            )
        for i, j in zip(*np.nonzero(flow), strict=True):
            share = float(flow[i, j] / leaving[i].sum())
            graph.add_edge(self.stations[i], self.stations[j], flow=float(flow[i, j]), probability=share)
        return graph


def station_flows(leaving: FloatArray, routing: FloatArray) -> FloatArray:
    """Return the flow between stations, all classes together, from what leaves them per class."""
    if routing.ndim == 2:
        return np.asarray(leaving.sum(axis=1)[:, None] * routing)
    if routing.ndim == 3:
        return np.asarray(np.einsum("ir,rij->ij", leaving, routing))
    return np.asarray(np.einsum("ir,irjs->ij", leaving, routing))
