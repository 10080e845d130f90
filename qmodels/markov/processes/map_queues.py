"""Single-server queues with correlated arrivals and services: MAP/PH/1 and MAP/MAP/1."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from qmodels.checks import FloatArray
from qmodels.laws.of_law import phases
from qmodels.markov.processes.arrival_process import Arrivals
from qmodels.markov.processes.qbd import QBDResult, qbd
from qmodels.markov.words import described
from qmodels.numerics.exponential_series import ExponentialSeries
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
