"""Exact means and laws of a closed network from its normalising constants."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.networks.closed.inputs import Network
from qmodels.networks.closed.lattice import open_up


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
