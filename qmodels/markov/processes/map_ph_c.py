"""MAP/PH/c: Markovian arrivals, phase-type services, several servers."""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.of_law import phases
from qmodels.laws.phases import Phases
from qmodels.markov.processes.arrival_process import Arrivals
from qmodels.markov.processes.qbd import qbd
from qmodels.markov.words import described
from qmodels.numerics.compositions import changed, compositions
from qmodels.result import QueueResult
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.cost import afford


def states_of_servers(*, arrival_phases: int, service_phases: int, servers: int) -> int:
    """Return the states of MAP/PH/c with up to as many jobs as servers, which are solved as one matrix.

    >>> states_of_servers(arrival_phases=2, service_phases=2, servers=16)
    306
    """
    return arrival_phases * comb(servers + service_phases, service_phases)


@described("neuts1981, ch. 4 (the services in their phases: as many as there are of each)")
def map_ph_c(*, arrivals: Law, service: Law, servers: npt.ArrayLike) -> QueueResult:
    r"""Steady state of MAP/PH/c: Markovian arrivals, phase-type services, c servers, first come first served.

    Parameters
    ----------
    servers : int
        Number of servers :math:`c \ge 1`.

    Returns
    -------
    Scalars; means, the distribution of the number and the probability of waiting. Overload: waiting time
    ``inf``, stable False.

    Notes
    -----
    A QBD process on (jobs; arrival phase, number of services in each phase) [1]_, whose level 0 gathers all
    states with a free server: :math:`a \binom{c+k-1}{k}` for a and k phases. Exact.

    Examples
    --------
    Two ports behind one queue, packets nearly evenly spaced, of nearly equal length:

    >>> from qmodels.laws import Erlang
    >>> q = map_ph_c(arrivals=Erlang(mean=1.0, phases=8), service=Erlang(mean=1.2, phases=8), servers=2)
    >>> round(float(q.mean_waiting_time), 5)
    0.02931
    """
    if np.ndim(servers):
        raise ValueError(f"servers must be one number, got shape {np.shape(servers)}")
    c = int(checks.count("servers", servers))
    into, law = Arrivals("arrivals", arrivals), phases("service", service)
    a, k = into.phases, law.phases
    size = states_of_servers(arrival_phases=a, service_phases=k, servers=c)
    afford("servers", c, operations=float(size) ** 3)
    levels = [compositions(n, k) for n in range(c + 1)]
    places = [{level: i for i, level in enumerate(found)} for found in levels]
    begin = [_moved(levels[n], places[n + 1], law, "begin") for n in range(c)]
    end = [_moved(levels[n], places[n - 1], law, "end") for n in range(1, c + 1)]
    inside = [_moved(levels[n], places[n], law, "inside") for n in range(c + 1)]
    first = np.cumsum([0, *(a * len(level) for level in levels)])
    everything = np.zeros((first[-1], first[-1]))
    for n in range(c + 1):
        here = slice(first[n], first[n + 1])
        local = np.kron(into.d0, np.eye(len(levels[n]))) + np.kron(np.eye(a), inside[n])
        everything[here, here] = local
        if n < c:
            above = slice(first[n + 1], first[n + 2])
            everything[here, above] = np.kron(into.d1, begin[n])
            everything[above, here] = np.kron(np.eye(a), end[n])
    split = first[c]
    process = qbd(
        up=np.kron(into.d1, np.eye(len(levels[c]))),
        local=everything[split:, split:],
        down=np.kron(np.eye(a), end[-1] @ begin[-1]),
        boundary_local=everything[:split, :split],
        boundary_up=everything[:split, split:],
        boundary_down=everything[split:, :split],
    )
    rate, mean = into.rate, float(law.mean)
    load = rate * mean / c
    stable = process.stable
    below = np.add.reduceat(process.boundary, first[:c]) if stable else np.zeros(c)
    delayed = np.kron(into.d1.sum(axis=1), np.ones(len(levels[c]))) / rate
    busy = np.linalg.solve(np.eye(process.first.size) - process.rate_matrix, delayed) if stable else delayed

    def number(n: npt.ArrayLike) -> FloatArray:
        jobs = np.asarray(n)
        full = process.level_probability(np.maximum(jobs - c + 1, 0))
        return np.where(jobs < c, below[np.minimum(jobs, c - 1)], full)

    return QueueResult(
        model="MAP/PH/c",
        arrival_rate=np.asarray(rate),
        throughput=np.asarray(rate if stable else c / mean),
        utilization=np.asarray(load if stable else 1.0),
        mean_waiting_time=np.asarray(process.mean_above(1) / rate if stable else np.inf),
        mean_service_time=np.asarray(mean),
        waiting_probability=np.asarray(float(process.first @ busy) if stable else 1.0),
        number_pmf=number,
    )


def _moved(
    levels: list[tuple[int, ...]], places: dict[tuple[int, ...], int], law: Phases, how: str
) -> FloatArray:
    """Return the rates (of "begin" the probabilities) of a service that begins, ends or changes its phase."""
    found = np.zeros((len(levels), len(places)))
    for row, state in enumerate(levels):
        for i, count in enumerate(state):
            if how == "begin":
                found[row, places[changed(state, i, 1)]] += law.initial[i]
            elif how == "end" and count:
                found[row, places[changed(state, i, -1)]] += count * law.exit_rates[i]
            elif how == "inside":
                for j in range(len(state)) if count else ():
                    found[row, places[changed(changed(state, i, -1), j, 1)]] += count * law.generator[i, j]
    return found
