"""Exact mean value analysis of closed networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.described import takes
from qmodels.networks.closed.inputs import Network, closed_result, describe, product_form
from qmodels.networks.closed.lattice import Lattice, open_up
from qmodels.networks.result import NetworkResult
from qmodels.networks.words import described


def populated(net: Network) -> tuple[Network, npt.NDArray[np.bool_]]:
    """Return the network without the classes that have no jobs, and which ones have."""
    present = net.population > 0
    return net._replace(
        visits=net.visits[:, present],
        service_time=net.service_time[:, present],
        population=net.population[present],
        think_time=net.think_time[present],
    ), present


class Solution(NamedTuple):
    """Exact means of a closed network."""

    throughput: FloatArray  # per class
    # number, busy: mean number of jobs and busy fraction.
    number: FloatArray
    busy: FloatArray
    # For stations that are neither delays nor single servers of fixed rate: the distribution of the number of
    # jobs, one axis for each class that has jobs.
    laws: dict[int, FloatArray]


def solve_closed(net: Network) -> Solution:
    """Return the exact means of a closed network."""
    present_net, present = populated(net)
    opened = open_up(present_net)
    lattice, last = opened.lattice, tuple(int(n) for n in present_net.population)
    fixed_only = opened.with_all(opened.delays, opened.fixed)
    g = opened.with_all(fixed_only, opened.varying)
    representable(float(g[last]))
    rate, demand = opened.rate, present_net.demand
    fewer = [tuple(n - (k == r) for k, n in enumerate(last)) for r in range(len(last))]
    x = rate * np.array([g[at] for at in fewer]) / g[last]
    number = np.where(present_net.delay[:, None], x * demand, 0.0)
    busy = x * demand / present_net.servers[:, None]
    for station in opened.fixed:
        ratios = station.busy[0] * station.share
        twice = lattice.geometric(g, ratios)
        number[station.place] = ratios * [twice[at] for at in fewer] / g[last]
        busy[station.place] = x * demand[station.place] / present_net.multipliers[station.place][0]
    laws = {}
    if opened.varying:
        for station, others in lattice.without_each(fixed_only, opened.varying):
            law = joint(lattice.with_station(lattice.impulse(), station), others)
            laws[station.place] = law
            jobs: list[Any] = list(np.indices(law.shape, sparse=True))
            total = np.maximum(sum(jobs), 1)
            number[station.place] = [float((law * n).sum()) for n in jobs]
            if present_net.servers[station.place] == 1:
                busy[station.place] = [float((law * n / total).sum()) for n in jobs]
    wide = np.zeros((2, *net.visits.shape))
    wide[0][:, present], wide[1][:, present] = number, busy
    throughput = np.zeros(net.population.shape)
    throughput[present] = x
    return Solution(throughput, wide[0], wide[1], laws)


def representable(probability: float) -> None:
    """Refuse a population whose probability in the opened network has no digits left."""
    if not probability > 1e-280:
        raise RuntimeError(
            f"the population is too unlikely in the opened network ({probability:.3g} after Newton's steps); "
            "rates that fall steeply with the number of jobs are beyond this method"
        )


def joint(here: FloatArray, others: FloatArray) -> FloatArray:
    """Return the law of the jobs here, given laws here and elsewhere and the population of both."""
    law = here * np.flip(others)
    return np.asarray(law / law.sum())


_RECURSION_STEPS = 20_000  # stations x jobs up to which a loop over the jobs costs a few milliseconds


@described("reiser1980", returns="exact", like=describe, raises="populations")
@takes(product_form)
def mva(net: Network) -> NetworkResult:
    r"""Means of a closed product-form network, exactly.

    Stations are first come first served with exponential service that is the same for every
    class, or processor sharing, last come first served preemptive, or delays with any service.

    Raises
    ------
    RuntimeError
        As `convolution`, with load-dependent rates.

    Notes
    -----
    For single servers of fixed rate and delays, over all populations n up to N [1]_,

    .. math:: R_{ir}(n) = D_{ir} \bigl(1 + Q_i(n - e_r)\bigr), \quad
              X_r(n) = \frac{n_r}{Z_r + \sum_i R_{ir}(n)}, \quad
              Q_i(n) = \sum_r X_r(n) R_{ir}(n),

    without the queue term at delays; all populations of equal total at once. The recursion for
    several servers and load-dependent rates subtracts marginal probabilities from 1 and returns
    negative ones at some population. Such networks, and one class with many jobs, where a loop
    over the jobs is slower, get the same means from the sums of positive terms in `convolution`.
    Exact; the tests hold both against each other, a CTMC and 60-digit arithmetic.

    Examples
    --------
    Four requests in flight between a port and two banks that share the work:

    >>> r = mva(population=4, mean_service_time=[1.0, 3.0, 3.0], visits=[1, 0.5, 0.5], think_time=2.0)
    >>> r.mean_number_in_system.round(4), round(float(r.system_throughput), 4)
    (array([0.6597, 1.2315, 1.2315]), 0.4387)

    Two classes; the second visits only the second station:

    >>> r = mva(population={"read": 3, "write": 2}, mean_service_time=[1.0, 2.0], visits=[[1, 0], [1, 1]])
    >>> r.system_throughput.round(4)
    array([0.2793, 0.2207])
    """
    fixed = all(m.size <= 1 and (d or m[0] == 1) for m, d in zip(net.multipliers, net.delay, strict=True))
    single = net.population.size == 1
    small = not single or int(net.population[0]) * len(net.stations) <= _RECURSION_STEPS
    busy = None
    if not fixed or not small:
        x, number, busy, _ = solve_closed(net)
    else:
        x, residence = (_one_class if single else _classes)(net)
        number = x * residence
    return closed_result(net, model="MVA", kind="exact", system_throughput=x, mean_number=number, busy=busy)


def mva_recursion(demands: Sequence[Any], idle_time: Any, population: int) -> tuple[Any, list[Any]]:
    """Return throughput and times at single servers for one class; plain arithmetic."""
    numbers: list[Any] = [0] * len(demands)
    times: list[Any] = []
    x: Any = 0
    for jobs in range(1, population + 1):
        times = [d * (1 + q) for d, q in zip(demands, numbers, strict=True)]
        x = jobs / (idle_time + sum(times))
        numbers = [x * t for t in times]
    return x, times


def _one_class(net: Network) -> tuple[FloatArray, FloatArray]:
    residence = net.demand[:, 0].copy()
    queueing = ~net.delay
    idle_time = float(net.think_time[0] + residence[net.delay].sum())
    x, times = mva_recursion(residence[queueing].tolist(), idle_time, int(net.population[0]))
    residence[queueing] = times
    return np.array([x]), residence[:, None]


def _classes(net: Network) -> tuple[FloatArray, FloatArray]:
    queueing = ~net.delay
    demand = net.demand[queueing]
    idle_time = net.think_time + net.demand[~queueing].sum(axis=0)
    lattice = Lattice(net.population)
    # Place of each population in its plane; -1, the empty margin, selects the last column, which is 0.
    place = np.full(lattice.padded_size, -1)
    place[lattice.planes[0][0]] = 0
    queues = np.zeros((len(demand), 2))
    present = np.flatnonzero(net.population).tolist()
    for plane, before in lattice.planes[1:]:
        following = np.zeros((len(demand), plane.size + 1))
        residence, x = [], []
        for r in present:
            time = demand[:, r, None] * (1 + queues.take(place[before[r]], axis=1))
            x.append(lattice.jobs(plane, r) / (idle_time[r] + time.sum(axis=0)))
            following[:, :-1] += x[-1] * time
            residence.append(time)
        place[plane] = np.arange(plane.size)
        queues = following
    throughput = np.zeros(net.population.shape)
    throughput[present] = [one[-1] for one in x]
    times = net.demand.copy()
    times[np.ix_(np.flatnonzero(queueing), np.array(present))] = np.column_stack(
        [one[:, -1] for one in residence]
    )
    return throughput, times
