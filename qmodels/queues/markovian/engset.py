"""Finite populations: Engset's loss system and M/M/c with a finite number of sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.queues.distributions import birth_death_law, tabulated
from qmodels.queues.words import described
from qmodels.result import QueueResult


@described("cooper1981, chapter 3.7")
def engset_time_congestion(
    *, servers: npt.ArrayLike, sources: npt.ArrayLike, source_load: npt.ArrayLike
) -> FloatArray:
    r"""Fraction of time in which all servers of Engset's system are busy.

    Parameters
    ----------
    sources : array_like of int
        Number of sources :math:`N \ge 0`.
    source_load : array_like
        Request rate of an idle source over the service rate, :math:`\hat{a} \ge 0`.

    Returns
    -------
    The time congestion. The fraction of *requests* that are lost, the call congestion, is
    smaller: it is this function with one source less, see `engset`.

    Notes
    -----
    .. math:: E_k = \frac{(N - k + 1) \hat{a} E_{k-1}}{k + (N - k + 1) \hat{a} E_{k-1}}, \qquad E_0 = 1.

    Exact for any service law and any law of the idle times.

    Examples
    --------
    >>> round(float(engset_time_congestion(servers=2, sources=4, source_load=0.5)), 6)
    0.333333
    """
    c = checks.count("servers", servers, maximum=100_000)
    n = checks.count("sources", sources, minimum=0)
    return _congestion(c, n, checks.nonnegative("source_load", source_load))[0][()]


def _congestion(c: Any, n: Any, load: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the time congestion and its complement."""
    c, n, load = np.broadcast_arrays(c, n, load)
    blocking, free = np.ones(load.shape), np.zeros(load.shape)
    for k in range(1, int(c.max(initial=0)) + 1):
        carried = np.maximum(n - k + 1, 0) * load * blocking
        active = k <= c
        free = np.where(active, k / (k + carried), free)
        blocking = np.where(active, carried / (k + carried), blocking)
    return blocking, free


@described("cooper1981, chapter 3.7")
def engset(
    *, source_rate: npt.ArrayLike, service_rate: npt.ArrayLike, servers: npt.ArrayLike, sources: npt.ArrayLike
) -> QueueResult:
    r"""Steady state of Engset's system: N sources, c servers, no place to wait.

    Parameters
    ----------
    sources : array_like of int
        Number of sources :math:`N \ge 1`; a source whose request is lost is idle again.

    Returns
    -------
    `arrival_rate` is the rate of requests by the idle sources. `blocking_probability` is
    the call congestion, the fraction of requests lost; the fraction of time in which all
    servers are busy is `engset_time_congestion`.

    Notes
    -----
    A request finds the system as if its source did not exist: call congestion
    :math:`E(c, N - 1)`. With it, :math:`x = N \hat{a} (1 - E) / (1 + \hat{a} (1 - E))` servers are
    busy. Exact for any service law.

    Examples
    --------
    Eight cores share four ports; a request occupies a port for 10 cycles:

    >>> q = engset(source_rate=0.05, service_rate=0.1, servers=4, sources=8)
    >>> round(float(q.blocking_probability), 6), round(float(q.throughput), 6)
    (0.1341, 0.241711)
    """
    nu = checks.nonnegative("source_rate", source_rate)
    mu = checks.positive("service_rate", service_rate)
    c = checks.count("servers", servers, maximum=100_000)
    n = checks.count("sources", sources)
    load = nu / mu
    lost, free = _congestion(c, n - 1, load)
    busy = n * load * free / (1 + load * free)
    return QueueResult(
        model="M/M/c/c//N (Engset)",
        arrival_rate=n * nu / (1 + load * free),
        throughput=busy * mu,
        utilization=np.minimum(busy / c, 1.0),
        mean_waiting_time=np.zeros(busy.shape),
        mean_service_time=1 / mu,
        blocking_probability=lost,
        waiting_probability=np.zeros(busy.shape),
    )


@described("gross2008, section 2.8")
def mmc_finite(
    *, source_rate: npt.ArrayLike, service_rate: npt.ArrayLike, servers: npt.ArrayLike, sources: npt.ArrayLike
) -> QueueResult:
    r"""Steady state of M/M/c//N: N sources that each wait for their job to return (machine repair).

    Parameters
    ----------
    source_rate : array_like
        Rate :math:`\nu \ge 0` at which one idle source submits its job. [jobs / time]

    Returns
    -------
    `arrival_rate` equals the throughput; nothing is lost, always stable.

    Notes
    -----
    Birth-death chain with rates :math:`(N - n) \nu` up and :math:`\min(n, c) \mu` down. Exact;
    one operation per source and point, without overflow for any population.

    Examples
    --------
    Sixteen threads that think for 50 cycles and then use a memory port for 5:

    >>> q = mmc_finite(source_rate=0.02, service_rate=0.2, servers=1, sources=16)
    >>> round(float(q.utilization), 6), round(float(q.mean_response_time), 4)
    (0.977698, 31.8248)
    """
    nu = checks.nonnegative("source_rate", source_rate)
    mu = checks.positive("service_rate", service_rate)
    servers_, population = (
        checks.count("servers", servers, maximum=100_000),
        checks.count("sources", sources, maximum=10_000_000),
    )
    nu, mu, c, n = np.broadcast_arrays(nu, mu, servers_, population)
    laws = [
        birth_death_law(v * np.arange(k, 0, -1.0), m * np.minimum(np.arange(1.0, k + 1), s))
        for v, m, s, k in zip(nu.ravel(), mu.ravel(), c.ravel(), n.ravel(), strict=True)
    ]
    points = np.array([_finite_point(law, int(s)) for law, s in zip(laws, c.ravel(), strict=True)])
    busy, queue, waits = (v.reshape(nu.shape) for v in points.reshape(-1, 3).T)
    throughput = busy * mu
    return QueueResult(
        model="M/M/c//N",
        arrival_rate=throughput,
        throughput=throughput,
        utilization=np.minimum(busy / c, 1.0),
        mean_waiting_time=queue / np.where(throughput > 0, throughput, 1.0),
        mean_service_time=1 / mu,
        waiting_probability=waits,
        number_pmf=tabulated(laws, nu.shape),
    )


def _finite_point(law: FloatArray, c: int) -> tuple[float, float, float]:
    """Return the busy servers, the mean queue and the probability that a request waits."""
    states = np.arange(len(law))
    idle_sources = law * states[::-1]
    asking = idle_sources.sum()
    waits = idle_sources[c:].sum() / asking if asking > 0 else 1.0
    return (
        float(np.dot(law, np.minimum(states, c))),
        float(np.dot(law, np.maximum(states - c, 0))),
        float(waits),
    )
