"""Waits of streams that come in bursts or in batches, where two moments of the gaps do not tell enough."""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, log1p

import numpy as np
from scipy.optimize import brentq

from qmodels.checks import FloatArray
from qmodels.queues.general.gg1 import gg1_klb
from qmodels.queues.general.ggc import ggc_whitt
from qmodels.queues.general.gm1 import gmc
from qmodels.systems.laws.phases import HyperExponential
from qmodels.systems.traffic.arrivals import interrupted_phases

LEAST_EXCESS = 1e-6
"""Excess of a squared coefficient of variation over 1 below which there are no bursts."""
FULL = 1 - 1e-12
"""Load from which on a queue has no end."""
_MANY = 4000
"""Jobs at servers at most that are followed one by one."""


def wait_of_bursts(
    *, rate: float, mean: float, scv: float, servers: int, arrival_scv: float, peak: float
) -> float:
    """Return the mean wait at a first come, first served station.

    ``rate``: jobs, less than the station carries [1/ns]; ``mean``, ``scv``: of the services [ns];
    ``arrival_scv``: squared coefficient of variation of the gaps; ``peak``: rate in a burst over the mean
    rate; 1 where the bursts are not known.

    Without a peak by two moments. With one, the gaps are those of an interrupted Poisson process of that
    peak and SCV: at one server exact for gamma services; at several GI/M/c, for services by what two
    moments say of them.
    """
    if peak <= 1 or arrival_scv - 1 < LEAST_EXCESS:
        if servers == 1:
            found = gg1_klb(
                arrival_rate=rate, mean_service_time=mean, service_scv=scv, arrival_scv=arrival_scv
            )
            return float(found.mean_waiting_time)
        return _whitt(rate, mean, scv, servers, arrival_scv)
    gaps = bursts_of(arrival_scv, peak)
    share, fast, slow = gaps.probabilities[0], *(each / rate for each in gaps.means)
    if servers == 1:
        return hyperexponential_wait((share, 1 / fast, 1 / slow), mean, scv)
    arrival = HyperExponential(probabilities=(share, 1 - share), means=(fast, slow))
    plain = float(gmc(arrival=arrival, service_rate=1 / mean, servers=servers).mean_waiting_time)
    by_two = _whitt(rate, mean, scv, servers, arrival_scv), _whitt(rate, mean, 1.0, servers, arrival_scv)
    return plain * (by_two[0] / by_two[1] if by_two[1] > 0 else 1.0)


def bursts_of(scv: float, peak: float) -> HyperExponential:
    """Return the gaps of mean 1 of an interrupted Poisson process of an SCV and a peak rate above 1."""
    share, fast, slow = interrupted_phases((scv - 1) / (2 * (1 - 1 / peak) ** 2), peak)
    share = min(share, 1.0)  # of a peak next to 1 but for rounding
    return HyperExponential(probabilities=(share, 1 - share), means=(1 / fast, 1 / slow))


def _whitt(rate: float, mean: float, scv: float, servers: int, arrival_scv: float) -> float:
    found = ggc_whitt(
        arrival_rate=rate, mean_service_time=mean, servers=servers, service_scv=scv, arrival_scv=arrival_scv
    )
    return float(found.mean_waiting_time)


def hyperexponential_wait(gaps: tuple[float, float, float], mean: float, scv: float) -> float:
    r"""Return the mean wait of H2/G/1 with gamma services.

    ``gaps``: probability of the fast exponential gap, its rate and that of the slow one [1, 1/ns, 1/ns];
    ``mean``, ``scv``: of the services [ns].

    :math:`E[W] = E[(S-A)^2] / 2E[A-S] - E[I^2] / 2E[I]`, where the idle time I is a mixture of the same two
    exponentials: of the fast one with :math:`(\gamma_1-\theta)/(\gamma_1-\gamma_2)`, where
    :math:`\theta` is the root of :math:`S^*(\theta) A^*(-\theta) = 1` between their rates. Exact (from the
    Wiener-Hopf factors; derived here).
    """
    p, fast, slow = gaps
    first = p / fast + (1 - p) / slow
    second = 2 * (p / fast**2 + (1 - p) / slow**2)
    if mean >= first * FULL:
        return inf

    def longer(theta: float) -> float:
        """Return 1 over the transform of the services."""
        return exp(min(log1p(theta * scv * mean) / scv if scv > 1e-9 else theta * mean, 600.0))

    def beyond(theta: float) -> float:
        ways = p * fast * (theta - slow) - (1 - p) * slow * (fast - theta)
        return ways - (fast - theta) * (theta - slow) * longer(theta)

    theta = float(brentq(beyond, slow, fast, xtol=1e-14 * fast, rtol=1e-13))
    quick = (fast - theta) / (fast - slow)
    idle = quick / fast + (1 - quick) / slow
    idle_square = 2 * (quick / fast**2 + (1 - quick) / slow**2)
    square = second - 2 * first * mean + (1 + scv) * mean**2
    return max(square / (2 * (first - mean)) - idle_square / (2 * idle), 0.0)


def wait_of_batches(*, rate: float, mean: float, servers: int, batch: FloatArray) -> float:
    r"""Return the mean wait of a job of M^X/M/c.

    ``rate``: jobs, less than the servers carry [1/ns]; ``mean``: of the services [ns]; ``batch``:
    probabilities of batches of 0, 1, 2, ... jobs.

    From level to level as many go up as down:
    :math:`\min(n+1, c)\,\mu\,p_{n+1} = \lambda \sum_{j \le n} p_j P(X > n - j)`. Exact.
    """
    return _wait_of_batches(round(rate * mean, 12), servers, tuple(batch.tolist())) * mean


@lru_cache(maxsize=4096)
def _wait_of_batches(offered: float, servers: int, batch: tuple[float, ...]) -> float:
    law = np.array(batch)
    law[0] = 0.0
    law /= law.sum()
    size = float(law @ np.arange(law.size))
    above = (1 - np.cumsum(law))[:-1][::-1]  # P(X > k) for the largest k first.
    if offered >= servers * FULL:
        return inf
    width = above.size
    levels = [1.0]
    total, queue = 1.0, 0.0
    for n in range(_MANY):
        recent = levels[-width:]
        up = offered / size * float(above[width - len(recent) :] @ recent)
        level = up / min(n + 1, servers)
        levels.append(level)
        total += level
        waiting = max(n + 1 - servers, 0) * level
        queue += waiting
        if n > servers + width and waiting < 1e-13 * queue:
            break
    return queue / total / offered
