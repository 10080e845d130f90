"""Mixed networks: some classes are open, others closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.closed.inputs import Network, describe, require_product_form
from qmodels.networks.closed.mva import solve_closed
from qmodels.networks.result import NetworkResult
from qmodels.networks.words import described


@described("baskett1975")
def mixed(
    *,
    arrival_rate: Any,
    population: Any,
    mean_service_time: Any = None,
    service_rate: Any = None,
    visits: Any = None,
    think_time: Any = 0.0,
    servers: Any = 1,
    discipline: Any = "ps",
) -> NetworkResult:
    r"""Steady state of a product-form network with open and closed classes.

    Stations share their servers among all jobs (or serve them first come first served with
    exponential service that is the same for every class, or last come first served preemptive).

    Parameters
    ----------
    arrival_rate : array_like or mapping
        Poisson arrivals of each class; 0 for a closed one. Mappings name the classes, each of
        them either here or in `population`. [jobs / time]
    population : array_like or mapping of int
        Jobs of each class; 0 for an open one.
    visits : array_like or mapping, optional
        Mean visits per passage or cycle, same shapes; 1 by default.
    think_time : float or array_like, optional
        Time a job of a closed class spends outside the stations per cycle. [time]
    discipline : str or sequence of str, optional
        Order of service per station, as for `mva`.

    Returns
    -------
    Kind "exact". Where the open classes alone overload a station, their response time there
    is ``inf`` and `stable` False; the closed classes that visit it then come to rest there
    with throughput 0 (in equal parts, if there are several such stations). The other
    stations are solved with the offered flow of the open classes.

    Raises
    ------
    ValueError
        If an argument is out of range, a class is both open and closed, or none is closed.
    RuntimeError
        As `convolution`.

    Notes
    -----
    Summed over the open jobs, the product form is that of a closed network with the rate
    :math:`\alpha'(n) = \psi(n-1) / \psi(n)` with n closed jobs at a station of open load a, where

    .. math:: \psi(n) = \sum_m \binom{n+m}{m} \frac{a^m}{\prod_{k=1}^{n+m} \min(k, c)};

    for one server :math:`1 - a`. The mean number of open jobs is that of :math:`a (n+1) / \alpha'(n+1)`
    over the closed ones. Exact.

    Examples
    --------
    Packets (open) and a DMA engine with 4 requests in flight (closed) on a port and a memory:

    >>> r = mixed(arrival_rate={"packets": 0.2}, population={"dma": 4}, mean_service_time=[[1, 1], [2, 3]])
    >>> r.throughput[0].round(4), r.mean_response_time.round(3)
    (array([0.2   , 0.1994]), array([[ 1.661,  1.647],
           [15.572, 18.412]]))
    """
    names, rates, jobs = _classes(arrival_rate, population)
    net = describe(
        population=dict(zip(names, jobs, strict=True)),
        mean_service_time=mean_service_time,
        service_rate=service_rate,
        visits=visits,
        think_time=think_time,
        servers=servers,
    )
    require_product_form(discipline, net._replace(population=net.population + (rates > 0)))
    people = int(net.population.sum())
    load = (rates * net.demand).sum(axis=1)
    over = load >= net.servers
    left = [
        m if np.isinf(c) or full else _left_rates(c, a, people)
        for m, c, a, full in zip(net.multipliers, net.servers, load, over, strict=True)
    ]
    stuck = (net.population > 0) & (net.demand[over] > 0).any(axis=0)
    moving = (net.population > 0) & ~stuck
    cycles, number, laws = _closed_part(net, left, moving)
    throughput = rates + cycles
    stretch = np.array([_stretch(m, number[i].sum(), laws.get(i)) for i, m in enumerate(left)])
    stretch[over] = np.inf

    x, visited = throughput * net.visits, net.demand > 0
    response, number = _met(net, rates, x, number, stretch)
    if stuck.any():
        resting = visited & over[:, None] & stuck
        response = np.where(resting, np.inf, response)
        number = np.where(resting, net.population / np.maximum(resting.sum(axis=0), 1), number)
    # An overloaded station spends its servers on the open classes in proportion to their load.
    passed = (np.where(over, net.servers, 1.0) / np.where(over, load, 1.0))[:, None]
    passed = np.where((rates > 0) & visited, passed, 1.0)
    return NetworkResult(
        model="mixed BCMP",
        kind="exact",
        stations=net.stations,
        classes=net.classes,
        throughput=x * passed,
        utilization=x * passed * net.service_time / net.servers[:, None],
        visits=net.visits,
        mean_response_time=response,
        mean_number_in_system=number,
        system_throughput=throughput * passed.min(axis=0),
        think_time=net.think_time,
        stable=np.isfinite(response),
    )


def _closed_part(
    net: Network, rates_left: list[FloatArray], moving: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, dict[int, FloatArray]]:
    """Return throughputs, mean numbers and laws of the closed classes that do not rest."""
    if not moving.any():
        return np.zeros(net.population.shape), np.zeros(net.visits.shape), {}
    people = int(net.population.sum())
    capped = tuple(m[:people] for m in rates_left)
    population = np.where(moving, net.population, 0)
    solution = solve_closed(net._replace(multipliers=capped, population=population))
    return solution.throughput, solution.number, solution.laws


def _met(
    net: Network, rates: FloatArray, x: FloatArray, number: FloatArray, stretch: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return response times and mean numbers of all classes from those of the closed ones."""
    opened, visited, flowing = rates > 0, net.demand > 0, x > 0
    response = np.where(visited, net.service_time * np.where(visited, stretch[:, None], 1.0), 0.0)
    closed_time = np.where(flowing, number / np.where(flowing, x, 1.0), 0.0)
    response = np.where(opened | (rates + net.population == 0), response, closed_time)
    return response, np.where(opened & flowing, x * response, number)


def _classes(arrival_rate: Any, population: Any) -> tuple[tuple[Any, ...], FloatArray, npt.NDArray[np.int64]]:
    """Return names, arrival rates and populations of the classes."""
    if isinstance(arrival_rate, Mapping) != isinstance(population, Mapping):
        raise ValueError("arrival_rate and population must both name the classes or both list them")
    names: tuple[Any, ...] | None = None
    if isinstance(arrival_rate, Mapping):
        names = tuple(dict.fromkeys([*arrival_rate, *population]))
        arrival_rate = [arrival_rate.get(name, 0.0) for name in names]
        population = [population.get(name, 0) for name in names]
    rates = checks.nonnegative("arrival_rate", arrival_rate)
    jobs = checks.count("population", population, minimum=0)
    if rates.ndim != 1 or rates.shape != jobs.shape:
        raise ValueError(
            f"arrival_rate and population must list the same classes, got shapes {rates.shape}, {jobs.shape}"
        )
    names = tuple(range(rates.size)) if names is None else names
    both = np.flatnonzero((rates > 0) & (jobs > 0))
    if both.size:
        raise ValueError(
            f"population must be 0 for a class with arrivals, got {jobs[both[0]]} for {names[both[0]]!r}"
        )
    return names, rates, jobs


def _left_rates(servers: float, load: float, population: int) -> FloatArray:
    """Return the rates with 1, 2, ... closed jobs that open jobs of the given load leave to them.

    By recursion in the number t of jobs already there, on psi scaled to its final geometric decay;
    all terms are positive.
    """
    last = int(min(servers, population + 1))
    spare = servers - load
    psi = np.full(last + 1, servers / spare)
    one = 1.0
    for t in range(int(servers) - 2, -1, -1):
        empty = one + load * psi[0] / (t + 1)
        psi[1:] = (spare * psi[:-1] + load * psi[1:]) / (t + 1)
        psi[0] = empty
        top = psi.max()
        psi, one = psi / top, one / top
    return np.asarray(spare * psi[:-1] / psi[1:])


def _stretch(left: FloatArray, closed_jobs: float, law: FloatArray | None) -> float:
    """Return an open job's response time over its service time: the mean of (n + 1) / left(n + 1)."""
    if left.size == 0:
        return 1.0
    if left.size == 1 or law is None:
        return float((1 + closed_jobs) / left[-1]) if left.size == 1 else float(1 / left[0])
    total = np.arange(sum(law.shape) - law.ndim + 1)
    at = sum(np.indices(law.shape, sparse=True))
    weight = np.bincount(np.ravel(at), weights=law.ravel(), minlength=total.size)
    return float(weight @ ((total + 1) / left[np.minimum(total, left.size - 1)]))
