"""Single-server queues with correlated arrivals and services: MAP/PH/1 and MAP/MAP/1."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.of_law import phases
from qmodels.laws.phases import Phases
from qmodels.markov.processes.arrival_process import Arrivals
from qmodels.markov.processes.qbd import QBDResult, qbd
from qmodels.markov.words import described
from qmodels.numerics.poisson import ExponentialSeries
from qmodels.result import QueueResult
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.cost import afford

LARGEST_SYSTEM = 1000
"""Order (phases of the arrivals times phases of the service squared) up to which variances are given."""


@described("neuts1981, ch. 5")
def map_ph_1(*, arrivals: Law, service: Law) -> QueueResult:
    r"""Steady state of MAP/PH/1: Markovian arrivals, independent phase-type services, one server.

    Notes
    -----
    A QBD process on (jobs; arrival phase, service phase), solved by `qbd`. An arrival finds
    :math:`n \ge 1` jobs and the service in the phases
    :math:`\pi_1 R^{n-1} (D_1 \mathbf{1} \otimes I)/\lambda`; it waits for n completions. With
    :math:`P_k(t)` the law of k completions by t, :math:`F = \sum_k R^k Y P_k` solves
    :math:`F' = F S_0 + R F S_1`, a linear system with non-negative off-diagonal entries, and
    :math:`P(W > t) = \pi_1 F(t) \mathbf{1}`. Exact.

    Examples
    --------
    The memory channel of a bursty DMA engine; a Poisson stream of the same rate would wait 0.205:

    >>> from qmodels.laws import MAP, Erlang
    >>> burst = MAP.mmpp(generator=[[-1 / 50, 1 / 50], [1 / 150, -1 / 150]], rates=[0.8, 0.02])
    >>> q = map_ph_1(arrivals=burst, service=Erlang(mean=1.0, phases=2))
    >>> round(float(q.utilization), 3), round(float(q.mean_waiting_time), 3)
    (0.215, 2.163)
    """
    into, law = Arrivals("arrivals", arrivals), phases("service", service)
    n, m = into.phases, law.phases
    afford("phases of arrivals and service", n * m, operations=float(n * m) ** 3)
    served = np.outer(law.exit_rates, law.initial)
    process = qbd(
        up=np.kron(into.d1, np.eye(m)),
        local=np.kron(into.d0, np.eye(m)) + np.kron(np.eye(n), law.generator),
        down=np.kron(np.eye(n), served),
        boundary_local=into.d0,
        boundary_up=np.kron(into.d1, law.initial[None, :]),
        boundary_down=np.kron(np.eye(n), law.exit_rates[:, None]),
    )
    idle_start = float(process.boundary @ into.d1.sum(axis=1)) * law.initial
    return _answer("MAP/PH/1", process, into, law.generator, served, idle_start, law.mean)


@described("neuts1981, ch. 5")
def map_map_1(*, arrivals: Law, service: Law) -> QueueResult:
    r"""Steady state of MAP/MAP/1: arrivals and services are correlated, independent of each other.

    Parameters
    ----------
    service : Law
        Of the same kinds: completions of a server that is always busy. While the real server is
        idle the phase of the service is frozen, so that successive service times are those of the
        process.

    Notes
    -----
    As `map_ph_1`, with the phase of the service kept in level 0. Exact.

    Examples
    --------
    >>> from qmodels.laws import Exponential
    >>> q = map_map_1(arrivals=Exponential(mean=2.0), service=Exponential(mean=1.0))
    >>> round(float(q.mean_waiting_time), 12)
    1.0
    """
    into, out = Arrivals("arrivals", arrivals), Arrivals("service", service)
    n, m = into.phases, out.phases
    afford("phases of arrivals and service", n * m, operations=float(n * m) ** 3)
    completions = np.kron(np.eye(n), out.d1)
    process = qbd(
        up=np.kron(into.d1, np.eye(m)),
        local=np.kron(into.d0, np.eye(m)) + np.kron(np.eye(n), out.d0),
        down=completions,
        boundary_local=np.kron(into.d0, np.eye(m)),
    )
    idle_start = process.boundary @ np.kron(into.d1.sum(axis=1)[:, None], np.eye(m))
    return _answer("MAP/MAP/1", process, into, out.d0, out.d1, idle_start, 1 / out.rate)


def _answer(
    model: str,
    process: QBDResult,
    arrivals: Arrivals,
    quiet: FloatArray,
    served: FloatArray,
    idle_start: FloatArray,
    mean_service: float,
) -> QueueResult:
    """Turn levels into metrics; `idle_start`: rates of arrivals that find the server idle, by phase."""
    rate = arrivals.rate
    if not process.stable:
        return QueueResult(
            model=model,
            arrival_rate=np.asarray(rate),
            throughput=np.asarray(1 / mean_service),
            utilization=np.asarray(1.0),
            mean_waiting_time=np.asarray(np.inf),
            mean_service_time=np.asarray(mean_service),
            waiting_probability=np.asarray(1.0),
            number_pmf=lambda n: np.zeros(np.shape(n)),
            waiting_tail=lambda t: np.ones(np.shape(t)),
            response_tail=lambda t: np.ones(np.shape(t)),
        )
    busy = np.kron(arrivals.d1.sum(axis=1)[:, None], np.eye(len(quiet))) / rate
    started = idle_start / rate
    size = process.first.size
    waiting = _Completions(process.first, process.rate_matrix, busy, quiet, served)
    # The arriving job itself is one level more: a level below the first holds those that start at once.
    extended = np.zeros((size + 1, size + 1))
    extended[0, 1:] = process.first
    extended[1:, 1:] = process.rate_matrix
    response = _Completions(np.eye(size + 1)[0], extended, np.vstack([started, busy]), quiet, served)
    return QueueResult(
        model=model,
        arrival_rate=np.asarray(rate),
        throughput=np.asarray(rate),
        utilization=np.asarray(rate * mean_service),
        mean_waiting_time=np.asarray(process.mean_above(1) / rate),
        mean_service_time=np.asarray(mean_service),
        waiting_probability=np.asarray(waiting.probability),
        waiting_time_variance=waiting.variance,
        response_time_variance=response.variance,
        number_pmf=process.level_probability,
        waiting_tail=lambda t: waiting.tail(t),
        response_tail=lambda t: response.tail(t),
    )


class _Completions:
    """Time until n >= 1 completions, n and the phases with the weights ``start R^(n-1) entry``."""

    def __init__(
        self, start: FloatArray, ratio: FloatArray, entry: FloatArray, quiet: FloatArray, served: FloatArray
    ) -> None:
        self._left, self._ratio, self._quiet, self._served = start, ratio, quiet, served
        ahead = np.linalg.solve(np.eye(len(ratio)) - ratio, entry)
        self._ahead: FloatArray = np.asarray(ahead, dtype=float)

    @property
    def probability(self) -> float:
        """Probability that the time is positive."""
        return float(self._left @ self._ahead.sum(axis=1))

    @cached_property
    def tail(self) -> ExponentialSeries:
        """P(time > t) as a function of t."""
        matrix = np.kron(np.eye(len(self._ratio)), self._quiet.T) + np.kron(self._ratio, self._served.T)
        left = np.asarray(np.kron(self._left, np.ones(len(self._quiet))), dtype=float)
        return ExponentialSeries(left, np.asarray(matrix, dtype=float), self._ahead.ravel())

    @property
    def variance(self) -> FloatArray | None:
        """Variance, unless the linear system is too large to be worth it."""
        if self._ahead.size > LARGEST_SYSTEM:
            return None
        once = np.linalg.solve(self.tail.matrix, self._ahead.ravel())  # its sign is squared away
        twice = np.linalg.solve(self.tail.matrix, once)
        return np.asarray(2 * self.tail.left @ twice - (self.tail.left @ once) ** 2)


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


Composition = tuple[int, ...]


def compositions(jobs: int, kinds: int) -> list[Composition]:
    """Return all ways in which so many jobs may be of several kinds.

    >>> compositions(2, 2)
    [(0, 2), (1, 1), (2, 0)]
    """
    ends = ((-1, *bars, jobs + kinds - 1) for bars in combinations(range(jobs + kinds - 1), kinds - 1))
    return [tuple(right - left - 1 for left, right in zip(e, e[1:], strict=False)) for e in ends]


def changed(state: Composition, kind: int, more: int) -> Composition:
    """Return the numbers with some more, or fewer, of a kind.

    >>> changed((0, 2), 1, -1)
    (0, 1)
    """
    return (*state[:kind], state[kind] + more, *state[kind + 1 :])
