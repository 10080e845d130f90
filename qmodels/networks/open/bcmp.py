"""Open multi-class product-form networks (Baskett, Chandy, Muntz, Palacios)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.closed.inputs import (
    per_station_and_class,
    same_for_classes,
    server_counts,
    stations_of,
    visits_given,
    words_per_station,
)
from qmodels.networks.open.traffic import per_station, traffic_equations
from qmodels.networks.result import NetworkResult
from qmodels.networks.words import described
from qmodels.queues.markovian.mmc import mmc

DISCIPLINES = ("fcfs", "ps", "lcfs", "is")


@described("baskett1975")
def bcmp(
    *,
    arrival_rate: Any,
    mean_service_time: Any = None,
    service_rate: Any = None,
    visits: Any = None,
    routing: Any = None,
    servers: Any = 1,
    discipline: Any = "ps",
) -> NetworkResult:
    r"""Steady state of an open network with several classes of jobs.

    Parameters
    ----------
    arrival_rate : array_like or mapping
        Poisson arrivals from outside: with `routing` per station and class, shape (stations,
        classes); otherwise per class, shape (classes,), a mapping names the classes. [jobs / time]
    visits : array_like or mapping, optional
        Mean visits of a job, same shapes; 1 by default.
    routing : networkx.DiGraph or array_like, optional
        Instead of visits; see `traffic_equations`. Jobs may change class.
    servers : int or array_like, optional
        Servers per station.
    discipline : str or sequence of str, optional
        Per station: ``"fcfs"`` (exponential service, the same for every class), ``"ps"``
        (processor sharing), ``"lcfs"`` (last come first served preemptive, one server) or ``"is"``
        (a delay, infinitely many servers). Service has any distribution except with "fcfs".

    Returns
    -------
    Kind "exact". At an overloaded station the response times are ``inf``, the utilizations
    sum to 1, `stable` is False and the classes leave in proportion to their load; the other
    stations are solved with the offered flow, as if all of it passed.

    Raises
    ------
    If an argument is out of range, or a station with "fcfs" serves its classes at different
    speed, which has no product form.

    Notes
    -----
    With :math:`a_{ir} = \lambda_{ir} / \mu_{ir}` and their sum :math:`a_i`, a station of c servers
    holds as many jobs as an M/M/c queue of offered load :math:`a_i`, a share :math:`a_{ir} / a_i` of them
    of class r; a delay holds :math:`a_{ir}`. Exact.

    Examples
    --------
    Short and long packets share a link, then a memory with 4 ports:

    >>> rates, times = {"short": 0.5, "long": 0.1}, [[0.5, 4.0], [2.0, 8.0]]
    >>> r = bcmp(arrival_rate=rates, mean_service_time=times, servers=[1, 4])
    >>> r.mean_response_time.round(3)
    array([[ 1.429, 11.429],
           [ 2.117,  8.467]])
    """
    stations, times, matrix = stations_of(mean_service_time, service_rate, visits, routing)
    if matrix is not None:
        classes, gamma, passages, entering, rates = _routed(arrival_rate, stations, matrix)
    else:
        classes, gamma, passages, entering, rates = _visiting(arrival_rate, stations, visits)
    size, number = len(stations), len(classes)
    time = per_station_and_class("mean_service_time", times, size, number)
    count = _stations(discipline, servers, stations, time, rates)
    finite = np.isfinite(count)
    loads = rates * time
    q = mmc(arrival_rate=loads[finite].sum(axis=1), service_rate=1.0, servers=count[finite])
    slowdown, carried = np.ones(size), np.ones(size)
    slowdown[finite] = q.mean_response_time
    carried[finite] = 1 / np.maximum(loads[finite].sum(axis=1) / count[finite], 1.0)
    here = (passages > 0) & (time > 0)
    response = np.where(here, time * np.where(here, slowdown[:, None], 1.0), 0.0)
    throughput = rates * carried[:, None]
    stable = np.isfinite(response)
    least = np.where(stable, 1.0, carried[:, None]).min(axis=0)
    return NetworkResult(
        model="BCMP",
        kind="exact",
        stations=stations,
        classes=classes,
        throughput=throughput,
        utilization=throughput * time / count[:, None],
        visits=passages,
        mean_response_time=response,
        mean_number_in_system=np.where(throughput > 0, throughput * response, 0.0),
        system_throughput=_leaving(gamma, throughput, matrix) if matrix is not None else entering * least,
        stable=stable,
        routing=matrix,
    )


Flows = tuple[tuple[Any, ...], FloatArray, FloatArray, FloatArray, FloatArray]
"""Classes, arrivals as given, visits per passage, passages, and arrivals at each station."""


def _routed(arrival_rate: Any, stations: tuple[Any, ...], routing: FloatArray) -> Flows:
    gamma = checks.nonnegative("arrival_rate", per_station("arrival_rate", arrival_rate, stations))
    if gamma.ndim != 2:
        raise ValueError(f"arrival_rate must have the shape (stations, classes), got {gamma.shape}")
    rates = traffic_equations(arrival_rate=gamma, routing=routing)
    classes = tuple(range(gamma.shape[1]))
    # Where jobs change class, passages are counted over all classes.
    entering = np.full(len(classes), gamma.sum()) if routing.ndim == 4 else gamma.sum(axis=0)
    passages = np.divide(rates, entering, out=np.zeros_like(rates), where=entering > 0)
    return classes, gamma, passages, entering, rates


def _visiting(arrival_rate: Any, stations: tuple[Any, ...], visits: Any) -> Flows:
    named = arrival_rate if isinstance(arrival_rate, Mapping) else None
    gamma = checks.nonnegative("arrival_rate", list(named.values()) if named else arrival_rate)
    classes = tuple(named) if named else tuple(range(gamma.size))
    if gamma.ndim != 1 or not classes:
        raise ValueError(f"arrival_rate must have the shape (classes,), got {gamma.shape}")
    passages = visits_given(visits, stations, len(classes))
    return classes, gamma, passages, gamma, gamma * passages


def _leaving(gamma: FloatArray, throughput: FloatArray, routing: FloatArray) -> FloatArray:
    """Return the jobs of each class that leave the network."""
    kept = routing.sum(axis=(2, 3)) if routing.ndim == 4 else routing.sum(axis=-1)
    kept = kept if routing.ndim == 4 else np.broadcast_to(kept, gamma.T.shape).T
    return np.asarray((throughput * np.maximum(1 - kept, 0.0)).sum(axis=0))


def _stations(
    discipline: Any, servers: Any, stations: tuple[Any, ...], time: FloatArray, rates: FloatArray
) -> FloatArray:
    """Return the servers of each station after checking that it has a product form."""
    count = server_counts(servers, stations).copy()
    for i, word in enumerate(words_per_station(discipline, stations, DISCIPLINES)):
        if word == "is":
            count[i] = np.inf
        elif word == "lcfs" and count[i] > 1:
            raise ValueError(f"servers must be 1 with discipline 'lcfs', got {count[i]:g} at {stations[i]!r}")
        else:
            same_for_classes(word, time[i][rates[i] > 0], stations[i])
    return count
