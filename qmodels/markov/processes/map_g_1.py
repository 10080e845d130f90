"""One server where either the arrivals or the services are made of phases: MAP/G/1 and GI/PH/1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qmodels.checks import FloatArray
from qmodels.laws.formulas import Formulas
from qmodels.laws.of_law import phases, renewal
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
