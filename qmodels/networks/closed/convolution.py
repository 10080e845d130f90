"""Convolution: normalising constants, means, marginal distributions and parts of closed networks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.described import takes
from qmodels.networks.closed.inputs import ClosedNetwork, Network, closed_result, describe, product_form
from qmodels.networks.closed.lattice import open_up, poisson_law
from qmodels.networks.closed.mva import joint, populated, representable, solve_closed
from qmodels.networks.result import NetworkResult
from qmodels.networks.words import described


@described("buzen1973", returns="exact", like=describe, raises="populations")
@takes(product_form)
def convolution(net: Network) -> NetworkResult:
    r"""Solve a closed product-form network by convolution of its stations.

    Single servers of fixed rate, several servers, load-dependent rates and delays, one or more
    classes; stations are first come first served with exponential service that is the same for
    every class, or processor sharing, last come first served preemptive, or delays with any service.

    Raises
    ------
    RuntimeError
        If load-dependent rates make the population unlikely beyond the range of floating point
        at every arrival rate (rates that collapse by many powers of ten).

    Notes
    -----
    With :math:`F_i` the product-form factor of station i [1]_,

    .. math:: G(n) = \sum_{n_1 + \dots + n_M = n} \prod_i F_i(n_i), \qquad
              X_r(N) = \frac{G(N - e_r)}{G(N)}.

    Instead of :math:`G`, which leaves the range of floating point, the probability is computed
    that the same network opened to Poisson arrivals holds n jobs; the arrival rates are chosen
    (Newton's method on a convex function) so that N is its mean. A station of c servers costs c
    passes over the populations, one of fixed rate one pass. All terms are positive, so that no
    digits cancel: 1e-12 relative up to 100,000 jobs.

    Exact under the assumptions above.

    Examples
    --------
    Twelve requests between 2 ports and 4 banks behind one queue each:

    >>> r = convolution(population=12, mean_service_time={"port": 1.0, "bank": 3.0}, servers=[2, 4])
    >>> round(float(r.system_throughput), 6), r.mean_number_in_system.round(4)
    (1.324152, array([2.2555, 9.7445]))
    """
    solution = solve_closed(net)
    return closed_result(
        net,
        model="convolution",
        kind="exact",
        system_throughput=solution.throughput,
        mean_number=solution.number,
        busy=solution.busy,
    )


@described("buzen1973", raises="convolution")
@takes(describe)
def log_normalising_constant(net: Network) -> float:
    """Return the natural logarithm of the normalising constant of a closed product-form network.

    Returns
    -------
    Log of the sum over all states of the product of the stations' factors, with service
    demands as loads (see `convolution`); its differences give throughputs.

    Notes
    -----
    Exact; see `convolution`.

    Examples
    --------
    Two stations with demands 1 and 2, two jobs: 1 + 2 + 4.

    >>> round(math.exp(log_normalising_constant(population=2, mean_service_time=[1, 2])), 12)
    7.0
    """
    present, _ = populated(net)
    opened = open_up(present)
    probability = float(opened.total().flat[-1])
    representable(probability)
    return opened.log_scale + math.log(probability)


@described("buzen1973", like=describe)
def marginal_distribution(
    *,
    station: Any,
    rate_multiplier: Mapping[Any, Sequence[float]] | None = None,
    **network: Unpack[ClosedNetwork],
) -> FloatArray:
    """Return the distribution of the number of jobs at one station of a closed network.

    Parameters
    ----------
    station : hashable
        Name (or index) of the station.

    Returns
    -------
    Probability of 0, 1, ..., population jobs; with classes one axis per class.

    Raises
    ------
    ValueError, RuntimeError
        As `convolution`, and if the station is unknown or a class has no jobs.

    Notes
    -----
    Exact: the station's factor times the normalising constant of all others.

    Examples
    --------
    >>> marginal_distribution(station=1, population=2, mean_service_time=[1, 2]).round(4)
    array([0.1429, 0.2857, 0.5714])
    """
    net = describe(rate_multiplier=rate_multiplier, **network)
    if station not in net.stations:
        close = checks.nearest(str(station), [str(s) for s in net.stations])
        raise ValueError(f"station must be one of the network, got {station!r}{close}")
    if not net.population.all():
        raise ValueError(f"population must have jobs in every class, got {net.population.tolist()}")
    opened = open_up(net)
    at = net.stations.index(station)
    queueing = [*opened.fixed, *opened.varying]
    rest = [s for s in queueing if s.place != at]
    here, delays = opened.lattice.impulse(), opened.delays
    if net.delay[at]:
        others = net.delay & (np.arange(len(net.stations)) != at)
        here, _ = poisson_law(opened.rate * net.demand[at], net.population)
        delays, _ = poisson_law(
            opened.rate * (net.think_time + net.demand[others].sum(axis=0)), net.population
        )
    for one in queueing:
        if one.place == at:
            here = opened.lattice.with_station(here, one)
    return joint(here, opened.with_all(delays, rest))


@described("buzen1973")
@takes(describe)
def throughput_curve(net: Network) -> FloatArray:
    """Return the throughput of a closed network without classes with 1, 2, ..., population jobs.

    Parameters
    ----------
    population : int
        Largest number of jobs.

    Returns
    -------
    array of shape (population,)
        Cycles per time; the response time with n jobs is n over it, less the think time.

    Raises
    ------
    ValueError, RuntimeError
        As `convolution`, and if there is more than one class.

    Notes
    -----
    Exact; from the normalising constants of `convolution`, where these underflow opened anew
    with the smaller population.

    Examples
    --------
    >>> throughput_curve(population=4, mean_service_time=[1, 2]).round(4)
    array([0.3333, 0.4286, 0.4667, 0.4839])
    """
    if net.classes:
        raise ValueError(f"population must be one whole number for a curve, got classes {net.classes}")
    jobs = int(net.population[0])
    curve = np.empty(jobs)
    while jobs:
        opened = open_up(net._replace(population=np.array([jobs])))
        g = opened.total()
        representable(float(g[-1]))
        lost = np.flatnonzero(g[:jobs] < 1e-280)
        start = int(lost[-1]) + 1 if lost.size else 0
        curve[start:jobs] = opened.rate[0] * g[start:jobs] / g[start + 1 : jobs + 1]
        jobs = start
    return curve


@described("chandy1975", raises="convolution")
def flow_equivalent(*, population: int, admitted: int | None = None, **part: Any) -> FloatArray:
    r"""Rates of one station that stands for a part of a closed network.

    Parameters
    ----------
    population : int
        Largest number of jobs in the part.
    admitted : int, optional
        Jobs that may be inside at once, others wait in front; all by default.
    **part
        The part as a closed network of its own, in which a job that leaves comes back at once:
        `mean_service_time` or `service_rate`, `visits` or `routing`, `servers` and
        `rate_multiplier` as for `convolution`. `visits` are those per visit of the whole part.

    Returns
    -------
    array of shape (population,)
        Rate with 1, 2, ... jobs inside; the `rate_multiplier` of a station of `service_rate` 1.

    Notes
    -----
    The rate with n jobs is the throughput of the part alone with n jobs (Norton's theorem [1]_).
    Exact for the rest of a product-form network; an approximation where the part or the limit
    `admitted` has no product form.

    Examples
    --------
    Two banks behind a port as one station, then 6 requests between it and a processor:

    >>> from qmodels.networks.closed.mva import mva
    >>> rates = flow_equivalent(population=6, mean_service_time=[1.0, 3.0, 3.0], visits=[1, 0.5, 0.5])
    >>> whole = mva(population=6, mean_service_time=[2.0, 1.0, 3.0, 3.0], visits=[1, 1, 0.5, 0.5])
    >>> small = mva(population=6, mean_service_time=[2.0, 1.0], rate_multiplier={1: rates})
    >>> round(float(whole.system_throughput), 10) == round(float(small.system_throughput), 10)
    True

    With at most 2 of them in the memory:

    >>> part = {"mean_service_time": [1.0, 3.0, 3.0], "visits": [1, 0.5, 0.5]}
    >>> flow_equivalent(population=4, admitted=2, **part).round(3)
    array([0.25 , 0.372, 0.372, 0.372])
    """
    jobs = int(checks.count("population", population))
    limit = jobs if admitted is None else min(jobs, int(checks.count("admitted", admitted)))
    curve = throughput_curve(population=limit, **part)
    return np.concatenate([curve, np.full(jobs - limit, curve[-1])])
