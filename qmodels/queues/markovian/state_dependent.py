"""Arrival and service rates that depend on the number in system; balking."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.queues.markovian.birth_death import birth_death_law
from qmodels.queues.markovian.engset import number_lookup
from qmodels.queues.words import described
from qmodels.result import QueueResult


@described("kleinrock1975, section 3.1")
def state_dependent(
    *, arrival_rates: npt.ArrayLike, service_rates: npt.ArrayLike, servers: int = 1
) -> QueueResult:
    r"""Steady state of a station whose rates depend on the number n of jobs in it.

    Parameters
    ----------
    arrival_rates : array_like
        Arrival rates :math:`\lambda_0 \dots \lambda_{K-1}`, or with :math:`\lambda_K` for the
        arrivals that a full station loses; all but the last > 0. [jobs / time]
    service_rates : array_like
        Total service rates :math:`\mu_1 \dots \mu_K > 0` of the station. [jobs / time]
    servers : int
        Number of jobs that can be in service at once; decides what counts as waiting.

    Returns
    -------
    QueueResult
        Scalars; `mean_service_time` is the mean number in service over the throughput.

    Raises
    ------
    ValueError
        If a rate is out of range or the lengths do not fit.

    Notes
    -----
    .. math:: p_n = p_0 \prod_{i=1}^{n} \frac{\lambda_{i-1}}{\mu_i}.

    Exact; products with separate exponents, so that neither the number of states (1e6 and
    more) nor the spread of rates matters.

    Examples
    --------
    A link that doubles its rate when 3 or more packets are present, room for 5:

    >>> q = state_dependent(arrival_rates=[0.9] * 6, service_rates=[1, 1, 2, 2, 2])
    >>> round(float(q.mean_number_in_system), 6), round(float(q.blocking_probability), 6)
    (1.400418, 0.022284)
    """
    down = np.atleast_1d(checks.positive("service_rates", service_rates))
    up = np.atleast_1d(checks.nonnegative("arrival_rates", arrival_rates))
    size, c = len(down), int(checks.count("servers", servers))
    if down.ndim != 1 or up.shape not in ((size,), (size + 1,)):
        raise ValueError(
            f"arrival_rates must have {size} or {size + 1} values, as service_rates, got {up.shape}"
        )
    checks.positive("arrival_rates", up[:size])
    offered = np.append(up, 0.0)[: size + 1]
    law = birth_death_law(up[:size], down)
    states = np.arange(size + 1)
    arrivals = float(np.dot(law, offered))
    throughput = float(np.dot(law[1:], down))
    in_service = float(np.dot(law, np.minimum(states, c)))
    waiting = float(np.dot(law, np.maximum(states - c, 0)))
    entering = law[:size] * offered[:size]
    return QueueResult(
        model="state-dependent birth-death station",
        arrival_rate=np.asarray(arrivals),
        throughput=np.asarray(throughput),
        utilization=np.asarray(min(in_service / c, 1.0)),
        mean_waiting_time=np.asarray(waiting / throughput),
        mean_service_time=np.asarray(in_service / throughput),
        waiting_probability=np.asarray(entering[c:].sum() / entering.sum()),
        blocking_probability=np.asarray(law[size] * offered[size] / arrivals),
        number_pmf=partial(number_lookup, (law,), ()),
    )


@described("gross2008, section 2.10.1")
def mmc_balking(
    *,
    arrival_rate: npt.ArrayLike,
    service_rate: npt.ArrayLike,
    servers: npt.ArrayLike,
    joining_probabilities: npt.ArrayLike,
) -> QueueResult:
    r"""Steady state of M/M/c whose arrivals join with a probability that depends on what they see.

    Parameters
    ----------
    arrival_rate : array_like
        Poisson arrival rate :math:`\lambda \ge 0`, those that balk included. [jobs / time]
    joining_probabilities : array_like
        Probability of joining when n = 0, 1, ... K - 1 jobs are in the system; with K nobody joins.

    Returns
    -------
    QueueResult
        `blocking_probability` is the fraction that balks. Always stable.

    Notes
    -----
    Birth-death chain with rates :math:`\lambda b_n` up and :math:`\min(n, c) \mu` down. Exact.

    Examples
    --------
    Traffic that turns away with probability n/4 from a queue of n:

    >>> joining = [1, 0.75, 0.5, 0.25]
    >>> q = mmc_balking(arrival_rate=1.0, service_rate=1.0, servers=1, joining_probabilities=joining)
    >>> round(float(q.blocking_probability), 6), round(float(q.mean_number_in_system), 6)
    (0.31068, 1.242718)
    """
    joining = np.atleast_1d(checks.probability("joining_probabilities", joining_probabilities))
    lam, mu, c = np.broadcast_arrays(
        checks.nonnegative("arrival_rate", arrival_rate),
        checks.positive("service_rate", service_rate),
        checks.count("servers", servers),
    )
    size = len(joining)
    states = np.arange(size + 1)
    laws = []
    balked, busy, queue, waits = (np.zeros(lam.size) for _ in range(4))
    balking = 1 - np.append(joining, 0.0)
    for i, (rate, service, count) in enumerate(zip(lam.ravel(), mu.ravel(), c.ravel(), strict=True)):
        law = birth_death_law(rate * joining, service * np.minimum(states[1:], float(count)))
        laws.append(law)
        entering = law[:size] * joining
        balked[i] = np.dot(law, balking)
        waits[i] = entering[count:].sum() / max(entering.sum(), 1e-300)
        busy[i] = np.dot(law, np.minimum(states, count))
        queue[i] = np.dot(law, np.maximum(states - count, 0))
    throughput = busy.reshape(lam.shape) * mu
    return QueueResult(
        model="M/M/c with balking",
        arrival_rate=lam,
        throughput=throughput,
        utilization=np.minimum(busy.reshape(lam.shape) / c, 1.0),
        mean_waiting_time=queue.reshape(lam.shape) / np.where(throughput > 0, throughput, 1.0),
        mean_service_time=1 / mu,
        waiting_probability=waits.reshape(lam.shape),
        blocking_probability=balked.reshape(lam.shape),
        number_pmf=partial(number_lookup, tuple(laws), lam.shape),
    )
