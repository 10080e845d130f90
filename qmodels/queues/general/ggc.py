"""GI/G/c from two moments: approximations of the mean wait."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.described import takes
from qmodels.laws.of_law import Laws, arrival_moments, service_moments
from qmodels.queues.general.gg1 import TwoMoments
from qmodels.queues.general.gm1 import gmc
from qmodels.queues.general.mdc import mdc
from qmodels.queues.load import Load
from qmodels.queues.markovian.erlang import erlang_b_pair, erlang_c_from_b
from qmodels.queues.markovian.mmc import mmc_waiting_time
from qmodels.queues.words import described
from qmodels.result import QueueResult
from qmodels.systems.laws.times import Deterministic


def allen_cunneen_waiting_time(mmc_wait: Any, ca: Any, cs: Any) -> Any:
    """Mean wait from that of M/M/c and the two SCVs; plain arithmetic."""
    return mmc_wait * (ca + cs) / 2


def kimura_waiting_time(mmc_wait: Any, mdc_wait: Any, dmc_wait: Any, ca: Any, cs: Any) -> Any:
    """Mean wait from those of M/M/c, M/D/c and D/M/c and the two SCVs; plain arithmetic."""
    return (ca + cs) / ((1 - ca) / dmc_wait + (1 - cs) / mdc_wait + 2 * (ca + cs - 1) / mmc_wait)


class ManyServers(NamedTuple):
    """The load, both SCVs, the intensity (1 where it is 0) and the M/M/c wait."""

    load: Load
    arrival_scv: FloatArray
    service_scv: FloatArray
    intensity: FloatArray
    mmc_wait: FloatArray


def many_servers(
    *,
    arrival_rate: npt.ArrayLike | None = None,
    service_rate: npt.ArrayLike | None = None,
    mean_service_time: npt.ArrayLike | None = None,
    servers: npt.ArrayLike,
    arrival_scv: npt.ArrayLike | None = None,
    service_scv: npt.ArrayLike | None = None,
    arrival: Laws | None = None,
    service: Laws | None = None,
) -> ManyServers:
    """Check the arguments of the models of GI/G/c."""
    arrivals = arrival_moments(arrival, arrival_rate, arrival_scv)
    services = service_moments(service, service_rate, mean_service_time, service_scv)
    q, ca, cs = TwoMoments.of(arrivals, services, servers)
    rho = np.where(q.stable, q.intensity, 1.0)
    blocking, _ = erlang_b_pair(q.servers * rho, q.servers.astype(np.int64))
    waits = erlang_c_from_b(blocking, rho, q.safe_idle)
    mmc_wait = mmc_waiting_time(q.service_time, q.servers, waits, q.safe_idle)
    return ManyServers(q, ca, cs, np.where(rho > 0, rho, 1.0), mmc_wait)


@described("allen1990, chapter 5 (with J. Cunneen)", arrival_rate="renewal")
@takes(many_servers)
def ggc_allen_cunneen(given: ManyServers) -> QueueResult:
    r"""Approximate GI/G/c by the M/M/c wait scaled with the mean of the two SCVs.

    Notes
    -----
    .. math:: W_q \approx \frac{C(c, a)}{c\mu - \lambda} \cdot \frac{c_a^2 + c_s^2}{2}.

    Approximation: exact for M/M/c, M/G/1 and in heavy traffic. Measured against exact PH/PH/c
    chains (2 to 16 servers, SCVs 0.25 to 4) from utilization 0.7 up: 13 % on average,
    7 % up to 4 servers, and up to a factor of 2.9 for smooth arrivals at 16 servers and 0.7.
    Over utilizations from 0.3 the mean response is off by 2.5 % on average, 14 % at most.

    Examples
    --------
    >>> q = ggc_allen_cunneen(arrival_rate=3.2, service_rate=1, servers=4, arrival_scv=0.5, service_scv=1.5)
    >>> round(float(q.mean_waiting_time), 6)
    0.745541
    """
    q, ca, cs, _, mmc_wait = given
    return q.result("GI/G/c (Allen and Cunneen)", allen_cunneen_waiting_time(mmc_wait, ca, cs))


@described("kimura1986", arrival_rate="renewal")
@takes(many_servers)
def ggc_kimura(given: ManyServers) -> QueueResult:
    r"""Approximate GI/G/c by Kimura's interpolation between M/M/c, M/D/c and D/M/c.

    Notes
    -----
    .. math:: W_q \approx (c_a^2 + c_s^2) \left[ \frac{1 - c_a^2}{W_q(D/M/c)} + \frac{1 - c_s^2}{W_q(M/D/c)}
              + \frac{2 (c_a^2 + c_s^2 - 1)}{W_q(M/M/c)} \right]^{-1}

    with the three exact waits (`gmc`, `mdc`, `mmc`). Approximation: exact for these three and for
    M/G/1. The bracket loses its meaning for :math:`c_a^2 > 1`; there it is taken at
    :math:`c_a^2 = 1`, our extension. The D/D/c wait is 0. Measured against exact PH/PH/c
    chains (2 to 16 servers, SCVs 0.25 to 4) from utilization 0.7 up: 7 % on
    average and 52 % at most; M/G/c 0.5 % and 3 %. Over utilizations from 0.3 the mean response
    is off by 1.9 % on average, 13 % at most. About a millisecond per point.

    Examples
    --------
    >>> q = ggc_kimura(arrival_rate=3.2, service_rate=1, servers=4, arrival_scv=0.5, service_scv=1.5)
    >>> round(float(q.mean_waiting_time), 6)
    0.620649
    """
    q, ca, cs, _, mmc_wait = given
    shape = np.broadcast_shapes(*(v.shape for v in q), ca.shape, cs.shape)
    lam = np.where(q.stable & (q.arrival_rate > 0), q.arrival_rate, 0.5 * q.servers / q.service_time)
    lam, c, mu = np.broadcast_to(lam, shape), q.servers, 1 / q.service_time
    md = mdc(arrival_rate=lam, service_rate=mu, servers=c).mean_waiting_time
    dm = gmc(arrival=Deterministic(mean=1 / lam), service_rate=mu, servers=c).mean_waiting_time
    smooth = np.minimum(ca, 1.0)
    # A D/M/c wait below 1e-300 settles the matter, unless its weight is 0.
    dm = np.where((smooth == 1) & (dm < 1e-300), 1.0, dm)
    known = (smooth + cs > 0) & (np.minimum(np.minimum(md, dm), mmc_wait) > 1e-300)
    safe = [np.where(known, v, 1.0) for v in (mmc_wait, md, dm, smooth, cs)]
    wait = np.where(known, kimura_waiting_time(*safe), 0.0)
    return q.result("GI/G/c (Kimura)", wait * (ca + cs) / np.where(known, smooth + cs, 1.0))


@described("whitt1993, section 2", arrival_rate="renewal")
@takes(many_servers)
def ggc_whitt(given: ManyServers) -> QueueResult:
    r"""Approximate GI/G/c by Whitt's refinement of the Allen-Cunneen formula.

    Notes
    -----
    .. math:: W_q \approx \phi \, \frac{c_a^2 + c_s^2}{2} \, W_q(M/M/c)

    where :math:`\phi` mixes corrections for D/M/c and M/D/c,

    .. math:: \gamma &= \min\{0.24, (1-\rho)(c-1)(\sqrt{4+5c} - 2) / (16 c \rho)\}, \\
              \phi_1 &= 1 + \gamma, \quad \phi_3 = (1 - 4\gamma) e^{-2(1-\rho)/(3\rho)}, \quad
              \psi = \min\{1, (\phi_1 + \phi_3)/2\}^{2 (1 - x)^+}, \; x = (c_a^2 + c_s^2)/2, \\
              \phi &= \frac{4 (c_a^2 - c_s^2) \phi_1 + c_s^2 \psi}{4 c_a^2 - 3 c_s^2} \; (c_a^2 \ge c_s^2), \\
              \phi &= \frac{(c_s^2 - c_a^2) \phi_3 + (c_s^2 + 3 c_a^2) \psi}{2 (c_a^2 + c_s^2)} \;
              (c_a^2 < c_s^2).

    Approximation: exact for M/M/c and in heavy traffic. Measured against exact PH/PH/c
    chains (2 to 16 servers, SCVs 0.25 to 4) from utilization 0.7 up: 6 % on average, 3 % up to 4
    servers and 63 % at most; M/G/c 1 % and 10 %. Over utilizations from 0.3 the mean response
    is off by 1.2 % on average, 8 % at most. For constant times between arrivals use `gmc`.

    Examples
    --------
    >>> q = ggc_whitt(arrival_rate=3.2, service_rate=1, servers=4, arrival_scv=0.5, service_scv=1.5)
    >>> round(float(q.mean_waiting_time), 6)
    0.695488
    """
    q, ca, cs, rho, mmc_wait = given
    c, idle = q.servers, q.safe_idle
    gamma = np.minimum(0.24, idle * (c - 1) * (np.sqrt(4 + 5 * c) - 2) / (16 * c * rho))
    phi1 = 1 + gamma
    phi3 = (1 - 4 * gamma) * np.exp(-2 * idle / (3 * rho))
    psi = np.minimum(1.0, (phi1 + phi3) / 2) ** (2 * np.maximum(1 - (ca + cs) / 2, 0.0))
    bursty, total = 4 * ca - 3 * cs, ca + cs
    upper = (4 * (ca - cs) * phi1 + cs * psi) / np.where((ca >= cs) & (bursty > 0), bursty, 1.0)
    lower = ((cs - ca) * phi3 + (cs + 3 * ca) * psi) / (2 * np.where(total > 0, total, 1.0))
    phi = np.where(ca >= cs, upper, lower)
    return q.result("GI/G/c (Whitt)", phi * allen_cunneen_waiting_time(mmc_wait, ca, cs))
