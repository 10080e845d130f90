"""One server where either the arrivals or the services are made of phases: MAP/G/1 and GI/PH/1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.formulas import Formulas
from qmodels.laws.of_law import phases, renewal
from qmodels.markov.chains.stationary import single_class_law
from qmodels.markov.processes.arrival_process import Arrivals
from qmodels.markov.words import described
from qmodels.numerics.elimination import solve_transient
from qmodels.numerics.poisson import terms_needed
from qmodels.result import QueueResult
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.cost import afford

MISSING = 1e-15
"""Probability of more steps of a uniformized chain than are summed."""
LONGEST = 1 << 15
"""Steps of a uniformized chain in a time at most."""
TOLERANCE, ROUNDS = 1e-14, 200_000
"""Change of a fixed point at which it is found, and rounds at most."""
CRITICAL = 1e-9
"""Distance of the load from 1 below which a queue counts as one without end."""


@described("lucantoni1991")
def map_g_1(*, arrivals: Law, service: Law) -> QueueResult:
    r"""Steady state of MAP/G/1: Markovian arrivals, such as on-off bursts, any service law, one server.

    Parameters
    ----------
    service : Law
        Law of the service time, see `qmodels.laws`: of those in whose formulas arrivals are counted.

    Returns
    -------
    Scalars; means and the probability of waiting. Overload: waiting time ``inf``, stable False.

    Notes
    -----
    With :math:`D = D_0 + D_1`, its stationary law :math:`\pi`, the moments :math:`h, h_2` of the service and
    the law g that the matrix :math:`G = \int e^{(D_0 + D_1 G) x} dH(x)` keeps, the mean work is [1]_

    .. math:: E[V] = \frac{2\rho + \lambda h_2 - 2h \left[(1 - \rho) g + h \pi D_1\right]
              (D + \mathbf{1}\pi)^{-1} D_1 \mathbf{1}}{2 (1 - \rho)},

    of which :math:`E[V] = \rho E[W] + \lambda h_2 / 2` gives the wait. G by iteration; the exponential is
    summed over the steps of the uniformized phase. Exact.

    Examples
    --------
    Packets that come in bursts of 40 at 6 times their mean rate, at a port half full; a Poisson stream would
    wait 0.5:

    >>> from qmodels.laws import Deterministic, HyperExponential
    >>> from qmodels.systems.traffic.arrivals import OnOff
    >>> share, fast, slow = OnOff(on_packets=40.0, peak_to_mean=6.0).phases
    >>> bursts = HyperExponential(probabilities=[share, 1 - share], means=[2 / fast, 2 / slow])
    >>> q = map_g_1(arrivals=bursts, service=Deterministic(mean=1.0))
    >>> round(float(q.mean_waiting_time), 2)
    45.29
    """
    into, law = Arrivals("arrivals", arrivals), renewal("service", service)
    h, h2, rate = float(law.moment(1)), float(law.moment(2)), into.rate
    load = rate * h
    if load >= 1 - CRITICAL:
        return _overloaded("MAP/G/1", rate, h)
    n = into.phases
    q = float(-into.d0.diagonal().min())
    weights = _steps_during(law, q, operations=n**3)

    def passed(g: FloatArray) -> FloatArray:
        step = np.eye(n) + (into.d0 + into.d1 @ g) / q
        found = np.zeros((n, n))
        for weight in weights[::-1]:
            found = found @ step + weight * np.eye(n)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    g_matrix = _fixed_point(passed, np.full((n, n), 1.0 / n))
    kept = np.linalg.solve((np.eye(n) - g_matrix + 1.0 / n).T, np.full(n, 1.0 / n))
    chain, marks = into.d0 + into.d1, into.d1.sum(axis=1)
    stationary = np.linalg.solve((chain + 1.0).T, np.ones(n))
    turned = np.linalg.solve(chain + np.outer(np.ones(n), stationary), marks)
    weight = (1 - load) * kept + h * stationary @ into.d1
    work = (2 * load + rate * h2 - 2 * h * float(weight @ turned)) / (2 * (1 - load))
    return QueueResult(
        model="MAP/G/1",
        arrival_rate=np.asarray(rate),
        throughput=np.asarray(rate),
        utilization=np.asarray(load),
        mean_waiting_time=np.asarray(max(work - rate * h2 / 2, 0.0) / load),
        mean_service_time=np.asarray(h),
        waiting_probability=np.asarray(1 - (1 - load) * float(kept @ marks) / rate),
    )


@described("asmussen1992")
def gi_ph_1(*, arrival: Law, service: Law) -> QueueResult:
    r"""Steady state of GI/PH/1: renewal arrivals, phase-type services, one server.

    Parameters
    ----------
    arrival : Law
        Law of the times between arrivals, of those in whose formulas arrivals are counted. [time]

    Returns
    -------
    Scalars; means, the variance of the wait and the probability of waiting. Overload: waiting time ``inf``,
    stable False.

    Notes
    -----
    For services of the initial law :math:`\alpha`, generator T and exit rates t the wait is a phase-type
    time with the initial law :math:`\pi = \alpha \int e^{(T + t \pi) u} dA(u)` and the generator
    :math:`T + t \pi`, and 0 with the probability that is missing to 1 [1]_. By iteration. Exact.

    Examples
    --------
    >>> from qmodels.laws import Deterministic, Erlang
    >>> q = gi_ph_1(arrival=Deterministic(mean=1.25), service=Erlang(mean=1.0, phases=2))
    >>> round(float(q.mean_waiting_time), 6)
    0.756831
    """
    gaps, law = renewal("arrival", arrival), phases("service", service)
    rate, mean = 1 / float(gaps.moment(1)), float(law.mean)
    if rate * mean >= 1 - CRITICAL:
        return _overloaded("GI/PH/1", rate, mean)
    q = float(-law.generator.diagonal().min())
    weights = _steps_during(gaps, q, operations=law.phases**2)

    def entered(start: FloatArray) -> FloatArray:
        step = np.eye(law.phases) + (law.generator + np.outer(law.exit_rates, start)) / q
        found = np.zeros(law.phases)
        # Horner from the longest time: a row vector times the powers of the step.
        for weight in weights[::-1]:
            found = found @ step + weight * law.initial
        return found

    start = _fixed_point(entered, np.zeros(law.phases))
    inner = law.generator + np.outer(law.exit_rates, start)
    leave = law.exit_rates * (1 - start.sum())
    once = solve_transient(inner, leave, np.ones(law.phases))
    wait = float(start @ once)
    square = 2 * float(start @ solve_transient(inner, leave, once))
    return QueueResult(
        model="GI/PH/1",
        arrival_rate=np.asarray(rate),
        throughput=np.asarray(rate),
        utilization=np.asarray(rate * mean),
        mean_waiting_time=np.asarray(wait),
        mean_service_time=np.asarray(mean),
        waiting_probability=np.asarray(start.sum()),
        waiting_time_variance=np.asarray(square - wait**2),
        response_time_variance=np.asarray(square - wait**2 + float(law.moment(2)) - mean**2),
    )


def _steps_during(law: Formulas, rate: float, *, operations: float) -> FloatArray:
    """Return the probabilities of 0, 1, ... steps at a rate during a time, but for hardly any."""
    size = terms_needed(rate * float(law.moment(1)))
    while True:
        afford("law", law.name, operations=size * operations)
        weights = law.poisson_counts(np.asarray(rate), size)
        if weights.sum() > 1 - MISSING * size or size >= LONGEST:
            return np.asarray(weights / weights.sum())
        size *= 2


def _fixed_point(step: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray:
    found, before, last = start, np.zeros(start.shape), 0.0
    for _ in range(ROUNDS):
        change = step(found) - found
        if np.abs(change).max() < TOLERANCE:
            return found + change
        # What is missing shrinks by the same factor each time, in the end: it is taken off at once (Aitken).
        factor = float(np.vdot(change, before)) / max(float(np.vdot(before, before)), 1e-300)
        settled = 0 < factor < 1 and abs(factor - last) < 0.01 * (1 - factor)
        found = found + (change / (1 - factor) if settled else change)
        before, last = (np.zeros(start.shape), 0.0) if settled else (change, factor)
    raise RuntimeError(f"the fixed point was not found in {ROUNDS} rounds: the load is too near to 1")


def _overloaded(model: str, rate: float, mean: float) -> QueueResult:
    return QueueResult(
        model=model,
        arrival_rate=np.asarray(rate),
        throughput=np.asarray(1 / mean),
        utilization=np.asarray(1.0),
        mean_waiting_time=np.asarray(np.inf),
        mean_service_time=np.asarray(mean),
        waiting_probability=np.asarray(1.0),
    )


"""Steps of the uniformized phase in a service time; longer ones count as a full room and a settled phase."""


@described("lucantoni1991", "blondia1989")
def map_g_1_k(*, arrivals: Law, service: Law, capacity: npt.ArrayLike) -> QueueResult:
    r"""Steady state of MAP/G/1/K: Markovian arrivals, any service law, at most K jobs in the system.

    Parameters
    ----------
    arrivals : Law
        Arrival process: a `MAP`, or gaps made of phases; arrivals that find K jobs are lost.
    service : Law
        Law of the service time, see `qmodels.laws`: of those in whose formulas arrivals are counted.
    capacity : int
        Jobs in service and waiting, :math:`K \ge 1`.

    Returns
    -------
    Scalars, with the distribution of the number in system; times are those of the jobs that
    enter. Always stable.

    Notes
    -----
    The chain embedded at departures moves by the matrices
    :math:`A_k = \sum_j \gamma_j K_j^{(k)}` of k arrivals during a service, with
    :math:`\gamma_j = E[e^{-qS} (qS)^j / j!]` and :math:`K_j^{(k)}` the products of j factors
    :math:`I + D_0/q` and :math:`D_1/q` of which k are the latter (uniformization) [1]_. Replacing
    :math:`\gamma_j` by :math:`\sum_{i>j} \gamma_i / q` gives the mean time at each number of jobs
    between departures. Levels are eliminated downwards without subtraction. Exact, about
    :math:`J K n^3 + K^2 n^3` operations with J the number of weights.

    Examples
    --------
    Loss of the bursty stream at a port with constant service and room for 16 packets:

    >>> from qmodels.laws import MAP, Deterministic
    >>> burst = MAP.mmpp(generator=[[-1 / 50, 1 / 50], [1 / 150, -1 / 150]], rates=[0.8, 0.02])
    >>> q = map_g_1_k(arrivals=burst, service=Deterministic(mean=1.0), capacity=16)
    >>> round(float(q.blocking_probability), 6)
    0.00011
    """
    if np.ndim(capacity):
        raise ValueError(f"capacity must be one number, got shape {np.shape(capacity)}")
    places = int(checks.count("capacity", capacity, maximum=10_000))
    into, law = Arrivals("arrivals", arrivals), renewal("service", service)
    mean_service = float(law.moment(1))
    n = into.phases
    counts, stays = _arrivals_during(into, law, mean_service, places)
    idle = solve_transient(into.d0, into.d1.sum(axis=1), np.eye(n))
    woken = idle @ into.d1
    left = _embedded_law(counts, woken)
    # Per departure: an idle time if it leaves nobody behind, then a service.
    started = np.zeros((places + 1, n))
    started[:places] = left
    started[0] = 0.0
    started[1] += left[0] @ woken
    time_at = np.zeros((places + 1, n))
    time_at[0] = left[0] @ idle
    exact, at_least = stays
    for jobs in range(1, places + 1):
        time_at[jobs:places] += started[jobs] @ exact[: places - jobs]
        time_at[places] += started[jobs] @ at_least[places - jobs]
    number = time_at.sum(axis=1)
    cycle = float(number.sum())
    number = number / cycle
    arriving = time_at @ into.d1.sum(axis=1)
    throughput = 1.0 / cycle
    in_queue = float(np.maximum(np.arange(places + 1.0) - 1.0, 0.0) @ number)
    return QueueResult(
        model="MAP/G/1/K",
        arrival_rate=np.asarray(into.rate),
        throughput=np.asarray(throughput),
        utilization=np.asarray(throughput * mean_service),
        mean_waiting_time=np.asarray(in_queue / throughput),
        mean_service_time=np.asarray(mean_service),
        waiting_probability=np.asarray(arriving[1:places].sum() / arriving[:places].sum()),
        blocking_probability=np.asarray(arriving[places] / arriving.sum()),
        number_pmf=lambda k: np.where(k <= places, number[np.minimum(k, places)], 0.0),
    )


def _arrivals_during(
    arrivals: Arrivals, service: Formulas, mean_service: float, places: int
) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Matrices of exactly k < K and of at least r <= K arrivals during a service, and the mean times at k."""
    n = arrivals.phases
    q = float(-arrivals.d0.diagonal().min())
    size = terms_needed(q * mean_service)
    largest = max(LONGEST, 2 * size)
    while True:
        weights = np.asarray(service.poisson_counts(np.asarray(q), size))
        still = np.cumsum(weights[::-1])[::-1]
        beyond = 1.0 - float(still[0])
        missing = q * mean_service - float(still[1:].sum())
        whole = weights[-1] < 1e-30 and beyond < 1e-14 and missing < 1e-12 * q * mean_service
        if whole or size >= largest:
            break
        size *= 2
    beyond = 0.0 if whole else max(beyond, 0.0)
    longer = (np.append(still[1:], 0.0) + beyond) / q  # mean time in which the count is j
    rest = 0.0 if whole else max(mean_service - float(longer.sum()), 0.0)
    quiet, marked = np.eye(n) + arrivals.d0 / q, arrivals.d1 / q
    exact = np.zeros((places, n, n))
    at_least = np.zeros((places + 1, n, n))
    exact[0] = at_least[0] = np.eye(n)
    result = [np.zeros_like(exact), np.zeros_like(at_least), np.zeros_like(exact), np.zeros_like(at_least)]
    for weight, time in zip(weights, longer, strict=True):
        for total, part, factor in zip(
            result, (exact, at_least) * 2, (weight, weight, time, time), strict=True
        ):
            total += factor * part
        more, tail = exact @ quiet, at_least @ quiet
        more[1:] += exact[:-1] @ marked
        tail[1:] += at_least[:-1] @ marked
        tail[0] += at_least[0] @ marked
        exact, at_least = more, tail
    # A service longer than all the steps: the room is full and the phase has settled.
    settled = np.outer(np.ones(n), arrivals.phase_law)
    result[1] += beyond * settled
    result[3] += rest * settled
    return (result[0], result[1]), (result[2], result[3])


def _embedded_law(counts: tuple[FloatArray, FloatArray], woken: FloatArray) -> FloatArray:
    """Law of (jobs left behind, phase) at departures: levels are censored from the top."""
    exact, at_least = counts
    places, n = exact.shape[:2]
    leave = exact[0].sum(axis=1)
    # into[i] leads from level i to the highest level left, directly or through those above it.
    into = at_least[places - np.arange(places)]
    into[0] = woken @ at_least[places - 1]
    columns, inverses = [], []
    for level in range(places - 1, 0, -1):
        inverse = solve_transient(into[level], leave, np.eye(n))
        columns.append(into[:level])
        inverses.append(inverse)
        direct = exact[level - np.arange(level)]
        direct[0] = woken @ exact[level - 1]
        into = direct + into[:level] @ (inverse @ exact[0])
    law = np.zeros((places, n))
    law[0] = single_class_law("arrivals", into[0])
    for level in range(1, places):
        law[level] = np.einsum("ia,iab->b", law[:level], columns[-level]) @ inverses[-level]
        if law[level].max() > 1e200:
            law[: level + 1] /= law[level].max()
    return np.asarray(law / law.sum())
