"""Traffic equations: who sends how much to whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.words import described

_SUM_TOLERANCE = 1e-9  # how far a row of routing probabilities may be from its sum


def routing_matrix(graph: Any) -> tuple[tuple[Any, ...], FloatArray]:
    """Return the stations and the routing probabilities a graph describes.

    Parameters
    ----------
    graph : networkx.DiGraph
        Nodes are stations; the edge attribute ``probability`` is the share of the jobs leaving
        the tail that go to the head. What is missing to 1 leaves the network.

    Returns
    -------
    stations : tuple
        The nodes in the graph's order, which is the order of every array per station.
    routing : array of shape (stations, stations)
        Row = from, column = to.

    Raises
    ------
    ValueError
        If the graph has no direction or no nodes, an edge lacks the attribute, or the
        probabilities are not such.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.DiGraph()
    >>> graph.add_edge("parser", "lookup", probability=0.75)
    >>> graph.add_edge("lookup", "parser", probability=0.5)
    >>> routing_matrix(graph)
    (('parser', 'lookup'), array([[0.  , 0.75],
           [0.5 , 0.  ]]))
    """
    if not (hasattr(graph, "is_directed") and graph.is_directed()):
        raise ValueError(f"routing must be a directed graph, got {' '.join(str(graph).split())}")
    stations = tuple(graph.nodes)
    if not stations:
        raise ValueError("routing must have at least one station, got an empty graph")
    index = {station: i for i, station in enumerate(stations)}
    matrix = np.zeros((len(stations), len(stations)))
    for tail, head, data in graph.edges(data=True):
        if "probability" not in data:
            raise ValueError(
                f"routing must have a probability on every edge, got none on {tail!r} -> {head!r}"
            )
        matrix[index[tail], index[head]] += float(
            checks.probability(f"routing[{tail!r}, {head!r}]", data["probability"])
        )
    return stations, _checked(matrix, stations)


def read_routing(routing: Any) -> tuple[tuple[Any, ...], FloatArray]:
    """Return stations and routing array from a graph or an array of 2, 3 or 4 dimensions."""
    if hasattr(routing, "is_directed"):
        return routing_matrix(routing)
    matrix = checks.probability("routing", routing)
    if matrix.ndim in (2, 3):
        stations = matrix.shape[-1]
        square = matrix.shape[-2] == stations
    else:
        square = matrix.ndim == 4 and matrix.shape[:2] == matrix.shape[2:]
        stations = matrix.shape[0] if matrix.ndim else 0
    if not square or stations == 0:
        raise ValueError(
            "routing must have the shape (stations, stations), (classes, stations, stations) or "
            f"(stations, classes, stations, classes), got {matrix.shape}"
        )
    names = tuple(range(stations))
    return names, _checked(matrix, names)


def _checked(matrix: FloatArray, stations: tuple[Any, ...]) -> FloatArray:
    sums = matrix.sum(axis=(2, 3) if matrix.ndim == 4 else -1)
    if np.any(sums > 1 + _SUM_TOLERANCE):
        at = tuple(int(k) for k in np.argwhere(sums > 1 + _SUM_TOLERANCE)[0])
        station = stations[at[0] if matrix.ndim == 4 else at[-1]]
        raise ValueError(
            f"routing out of a station must sum to at most 1, got {sums[at]:.12g} at station {station!r}"
        )
    return matrix


def _flat(routing: FloatArray, classes: int) -> FloatArray:
    """Return the routing between (station, class) pairs as one square matrix, station-major."""
    if routing.ndim == 4:
        pairs = routing.shape[0] * routing.shape[1]
        return routing.reshape(pairs, pairs)
    per_class = np.broadcast_to(routing, (classes, *routing.shape[-2:]))
    stations = routing.shape[-1]
    flat = np.zeros((stations, classes, stations, classes))
    for r in range(classes):
        flat[:, r, :, r] = per_class[r]
    return flat.reshape(stations * classes, stations * classes)


def class_count(routing: FloatArray) -> int | None:
    """Return the number of classes an array of routing probabilities speaks of, if any."""
    return None if routing.ndim == 2 else int(routing.shape[routing.ndim - 3])


def per_station(name: str, value: Any, stations: tuple[Any, ...]) -> Any:
    """Return the value as an array in the order of the stations; a mapping must name each once."""
    if not isinstance(value, Mapping):
        return value
    for key in value:
        if key not in stations:
            close = checks.nearest(str(key), [str(s) for s in stations])
            raise ValueError(f"{name} must name stations of the network, got {key!r}{close}")
    for station in stations:
        if station not in value:
            raise ValueError(f"{name} must have a value for every station, got none for {station!r}")
    return np.array([value[station] for station in stations])


@described("jackson1957", raises="never left")
def traffic_equations(*, arrival_rate: Any, routing: Any) -> FloatArray:
    r"""Return the rate at which jobs arrive at each station of an open network.

    Parameters
    ----------
    arrival_rate : array_like or mapping
        Jobs :math:`\gamma` from outside, per station, shape (stations,) or, with classes,
        (stations, classes); a mapping by station's name. [jobs / time]
    routing : networkx.DiGraph or array_like
        A graph with the edge attribute ``probability`` or an array: (stations, stations), the
        same for every class; (classes, stations, stations), one per class; or (stations, classes,
        stations, classes), in which jobs may change class.

    Returns
    -------
    Arrivals from outside and inside, in the shape of `arrival_rate`. [jobs / time]

    Notes
    -----
    Solves :math:`\lambda_j = \gamma_j + \sum_i \lambda_i p_{ij}` by elimination. Exact; it needs
    no assumption on the stations except that none is overloaded.

    Examples
    --------
    A lookup that repeats half of its work:

    >>> traffic_equations(arrival_rate=[1, 0], routing=[[0, 1], [0, 0.5]])
    array([1., 2.])
    """
    stations, matrix = read_routing(routing)
    gamma = checks.nonnegative("arrival_rate", per_station("arrival_rate", arrival_rate, stations))
    classes = class_count(matrix)
    good = gamma.ndim in (1, 2) and gamma.shape[0] == len(stations)
    if not good or (classes is not None and gamma.shape[1:] != (classes,)):
        wanted = f"({len(stations)}, {'classes' if classes is None else classes})"
        alone = f"({len(stations)},) or " if classes is None else ""
        raise ValueError(f"arrival_rate must have the shape {alone}{wanted}, got {gamma.shape}")
    flat = _flat(matrix, gamma.shape[1] if gamma.ndim == 2 else 1)
    return solve_traffic(gamma.ravel(), flat).reshape(gamma.shape)


def solve_traffic(gamma: FloatArray, routing: FloatArray) -> FloatArray:
    """Solve the traffic equations of the part of the network that jobs reach."""
    reached = _reached(gamma > 0, routing)
    rates = np.zeros(gamma.shape)
    inside = routing[np.ix_(reached, reached)]
    # A part without a way out keeps its jobs: no station of it reaches one that loses some. What a
    # sum of rounded probabilities lacks to 1 is no way out.
    leaving = 1 - routing[reached].sum(axis=1) > len(routing) * np.finfo(float).eps
    if not np.all(_reached(leaving, inside.T)):
        raise ValueError("routing must let every job leave the network, got a part without a way out")
    rates[reached] = np.linalg.solve(np.eye(len(inside)) - inside.T, gamma[reached])
    return rates


def _reached(start: npt.NDArray[np.bool_], routing: FloatArray) -> npt.NDArray[np.bool_]:
    links = routing > 0
    seen = start.copy()
    while True:
        grown = seen | links[seen].any(axis=0)
        if np.array_equal(grown, seen):
            return seen
        seen = grown


@described("gordon1967")
def visit_ratios(*, routing: Any, reference: Any = None, classes: int | None = None) -> FloatArray:
    r"""Return the mean visits to each station per visit to the reference station, closed network.

    Parameters
    ----------
    routing : networkx.DiGraph or array_like
        As for `traffic_equations`; every row of a visited station sums to 1. Jobs keep
        their class.
    reference : hashable, optional
        Name (or index) of the station whose visits are 1; the first by default.
    classes : int, optional
        Number of classes that share a (stations, stations) routing.

    Returns
    -------
    Shape (stations,), or (stations, classes) for several classes; 0 at stations that jobs
    leave and never see again.

    Raises
    ------
    If a row of a visited station does not sum to 1, the reference is unknown, or jobs do not
    return to it.

    Notes
    -----
    Solves :math:`v = v P` with :math:`v_{ref} = 1`. Exact.

    Examples
    --------
    >>> visit_ratios(routing=[[0, 0.8, 0.2], [1, 0, 0], [1, 0, 0]])
    array([1. , 0.8, 0.2])
    """
    stations, matrix = read_routing(routing)
    if matrix.ndim == 4:
        raise ValueError("routing of a closed network must keep the class of a job, got 4 dimensions")
    home = stations[0] if reference is None else reference
    if home not in stations:
        close = checks.nearest(str(home), [str(s) for s in stations])
        raise ValueError(f"reference must be a station of the network, got {home!r}{close}")
    if matrix.ndim == 2:
        visits = _visits(matrix, stations, home)
        return visits if classes is None else np.repeat(visits[:, None], classes, axis=1)
    return np.column_stack([_visits(one, stations, home) for one in matrix])


def _visits(routing: FloatArray, stations: tuple[Any, ...], reference: Any) -> FloatArray:
    home = stations.index(reference)
    met = _reached(np.arange(len(stations)) == home, routing)
    for i in np.flatnonzero(met):
        if abs(routing[i].sum() - 1) > _SUM_TOLERANCE:
            raise ValueError(
                "routing out of each station of a closed network must sum to 1, "
                f"got {routing[i].sum():.12g} at station {stations[i]!r}"
            )
    if not np.all(_reached(np.arange(len(stations)) == home, routing.T)[met]):
        raise ValueError(f"reference must be a station to which every job returns, got {reference!r}")
    met[home] = False
    inner = routing[np.ix_(met, met)]
    visits = np.zeros(len(stations))
    visits[home] = 1.0
    visits[met] = np.linalg.solve(np.eye(len(inner)) - inner.T, routing[home, met])
    return visits
