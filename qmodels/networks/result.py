"""The answer of a network model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray

BoolArray = npt.NDArray[np.bool_]

_UNITS = {
    "throughput": "jobs/time",
    "utilization": "",
    "residence_time": "time",
    "mean_response_time": "time",
    "mean_number_in_system": "jobs",
    "stable": "",
    "arrival_scv": "",
    "departure_scv": "",
    "blocking_probability": "",
}
_TOTALS = {
    "system_throughput": "jobs/time",
    "system_response_time": "time",
    "mean_number_in_network": "jobs",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkResult:
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

    def to_dict(self) -> dict[str, Any]:
        """Return every known metric by name, arrays as arrays."""
        head = {"model": self.model, "kind": self.kind, "stations": self.stations, "classes": self.classes}
        metrics = {name: getattr(self, name) for name in (*_UNITS, *_TOTALS)}
        return head | {name: value for name, value in metrics.items() if value is not None}

    def to_pandas(self) -> Any:
        """Return a tidy DataFrame, one row per station (and class), one column per metric (needs pandas)."""
        import pandas as pd

        index: dict[str, list[Any]] = {"station": list(self.stations)}
        if self.classes:
            pairs = [(s, c) for s in self.stations for c in self.classes]
            index = {"station": [s for s, _ in pairs], "class": [c for _, c in pairs]}
        columns = {name: getattr(self, name) for name in _UNITS}
        return pd.DataFrame(
            index | {name: np.ravel(value) for name, value in columns.items() if value is not None}
        )

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

    def _table(self) -> tuple[list[str], list[list[str]]]:
        shown = ["throughput", "utilization", "mean_response_time", "residence_time", "mean_number_in_system"]
        shown += [n for n in ("arrival_scv", "blocking_probability") if getattr(self, n) is not None]
        head = ["station", *(["class"] if self.classes else []), *shown]
        rows = []
        for i, station in enumerate(self.stations):
            for r, name in enumerate(self.classes or ("",)):
                at = (i, r) if self.classes else (i,)
                label = [str(station)] + ([str(name)] if self.classes else [])
                rows.append(label + [f"{getattr(self, metric)[at]:.6g}" for metric in shown])
        return head, rows

    def _summary(self) -> list[str]:
        lines = []
        for name, unit in _TOTALS.items():
            values = " ".join(f"{v:.6g}" for v in np.ravel(getattr(self, name)))
            lines.append(f"{name} {values} {unit}")
        if not np.all(self.stable):
            good = np.reshape(self.stable, (len(self.stations), -1)).all(axis=1)
            names = ", ".join(str(self.stations[i]) for i in np.flatnonzero(~good))
            lines.append(f"overloaded: {names}")
        else:
            lines.append(f"busiest station: {self.bottleneck}")
        return lines

    def __repr__(self) -> str:
        head, rows = self._table()
        widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
        lines = [
            "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in [head, *rows]
        ]
        return "\n".join([f"{self.model} ({self.kind})", *lines, *self._summary()])

    def _repr_html_(self) -> str:
        head, rows = self._table()
        top = "".join(f"<th>{name} {f'[{_UNITS[name]}]' if _UNITS.get(name) else ''}</th>" for name in head)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        foot = "<br>".join(self._summary())
        return (
            f"<table><caption>{self.model} ({self.kind})</caption><tr>{top}</tr>{body}</table><p>{foot}</p>"
        )


def station_flows(leaving: FloatArray, routing: FloatArray) -> FloatArray:
    """Return the flow between stations, all classes together, from what leaves them per class."""
    if routing.ndim == 2:
        return np.asarray(leaving.sum(axis=1)[:, None] * routing)
    if routing.ndim == 3:
        return np.asarray(np.einsum("ir,rij->ij", leaving, routing))
    return np.asarray(np.einsum("ir,irjs->ij", leaving, routing))
