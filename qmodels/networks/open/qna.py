"""Open networks of GI/G/c stations by two-moment decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.closed.inputs import server_counts
from qmodels.networks.open.jackson import OneClass, limited_flows
from qmodels.networks.open.traffic import solve_traffic
from qmodels.networks.result import NetworkResult
from qmodels.networks.words import described
from qmodels.queues.general.gg1 import gg1_klb
from qmodels.queues.general.ggc import ggc_allen_cunneen

LEAST_SERVICE_SCV = 0.2
"""Of services that vary less departures are taken to vary as of these."""


def split_scv(scv: Any, share: Any) -> Any:
    """Return the SCV of the gaps of a random share of a renewal stream: exact."""
    return 1 - share + share * scv


def merging_weight(concentration: Any, load: Any) -> Any:
    """Weight of the variability of streams that merge: 1 for one stream, less for many.

    ``concentration``: sum of the squares of the streams' shares of the arrivals; ``load``: traffic intensity
    of the station, at most 1.
    """
    return 1 / (1 + 4 * (1 - load) ** 2 * (1 / concentration - 1))


def service_noise(service_scv: Any, servers: Any) -> Any:
    """Return the SCV of the departures of a station whose servers never idle."""
    return 1 + (np.maximum(service_scv, LEAST_SERVICE_SCV) - 1) / np.sqrt(servers)


def departing_scv(arrival_scv: Any, noise: Any, load: Any) -> Any:
    """Return the SCV of the gaps between departures, `noise` being that of a station that is never idle."""
    return (1 - load**2) * arrival_scv + load**2 * noise


@described("whitt1983, section IV", routing="open", raises="never left")
def qna(
    *,
    arrival_rate: Any,
    service_rate: Any,
    routing: Any,
    servers: Any = 1,
    arrival_scv: Any = 1.0,
    service_scv: Any = 1.0,
) -> NetworkResult:
    r"""Open network of first-come-first-served GI/G/c stations, Whitt's Queueing Network Analyzer.

    Parameters
    ----------
    arrival_scv, service_scv : float, array_like or mapping, optional
        Squared coefficients of variation of the times between arrivals from outside and of the
        service times, per station; 1 by default, 0 is deterministic.

    Returns
    -------
    Kind "approximation", with the SCVs of the flows. A station that gets more than it can
    serve has response time ``inf``, utilization 1 and `stable` False and sends on what its
    servers can do.

    Notes
    -----
    Flow i to j carries the share :math:`p_{ij}` of j's arrivals and :math:`q_{ij}` of i's
    departures. The SCVs of the arrivals solve the linear equations

    .. math:: c_{aj}^2 = 1 + w_j \Bigl(p_{0j} c_{0j}^2 - 1 + \sum_i p_{ij} \bigl[1 - q_{ij} + q_{ij}
              c_{di}^2\bigr]\Bigr), \quad
              c_{di}^2 = (1 - \rho_i^2) c_{ai}^2 + \rho_i^2 \Bigl(1 + \frac{\max(c_{si}^2, 0.2) - 1}
              {\sqrt{c_i}}\Bigr),

    with :math:`w_j = (1 + 4 (1 - \rho_j)^2 (v_j - 1))^{-1}` and :math:`1/v_j = \sum_i p_{ij}^2`
    [1]_. Visits in immediate succession to a station are one longer service. The wait is that of
    Kraemer and Langenbach-Belz with one server, and with several
    :math:`\tfrac12 (c_a^2 + c_s^2)` times that of M/M/c. The `arrival_scv` reported leaves
    immediate returns out.

    Approximation; exact for Poisson arrivals and exponential service (`jackson`), and for the
    first station with Poisson arrivals and one server. Two moments do not see that a station
    spaces its departures: behind a station of fixed service time an equal one never has a queue,
    and here its response time is 66 % too long at load 0.7.

    Examples
    --------
    Fixed-size packets through a parser and a less regular lookup:

    >>> r = qna(arrival_rate=[0.7, 0], service_rate=[1, 1], routing=[[0, 1], [0, 0]], service_scv=[0, 1])
    >>> r.arrival_scv.round(4), r.mean_response_time.round(4)
    (array([1.   , 0.608]), array([2.1667, 2.8255]))
    """
    net = OneClass.read(routing, arrival_rate, service_rate)
    gamma, mu = net.entering, net.service_rate
    count = server_counts(servers, net.stations)
    outside = net.per("arrival_scv", arrival_scv, checks.nonnegative)
    scv = net.per("service_scv", service_scv, checks.nonnegative)

    offered = solve_traffic(gamma, net.routing)
    rates = limited_flows(gamma, net.routing, mu * count, offered)
    throughput = np.minimum(rates, mu * count)
    # Immediate returns: the job stays in front instead, for a geometric number of services.
    again = np.minimum(np.diag(net.routing), 1 - 1e-12)
    once = (net.routing - np.diag(np.diag(net.routing))) / (1 - again)[:, None]
    fresh, rate, scv = rates * (1 - again), mu * (1 - again), again + (1 - again) * scv
    load = np.where(np.isinf(count), 0.0, np.minimum(rates / (mu * count), 1.0))

    noise = service_noise(scv, count)
    arrivals, departures = _flow_scvs(gamma, fresh, throughput * (1 - again), once, load, outside, noise)
    wait = _waits(fresh, rate, count, arrivals, scv)
    response = (wait + 1 / rate) * (1 - again)
    return net.result(
        model="QNA (Whitt)",
        kind="approximation",
        offered=offered,
        throughput=throughput,
        utilization=load,
        response=response,
        arrival_scv=arrivals,
        departure_scv=departures,
    )


def _flow_scvs(
    gamma: FloatArray,
    arriving: FloatArray,
    leaving: FloatArray,
    routing: FloatArray,
    load: FloatArray,
    outside: FloatArray,
    noise: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the SCVs of the arrivals to and the departures from each station.

    `outside` holds those of the arrivals from outside, `noise` those of the departures from busy servers.
    """
    met = arriving > 0
    total = np.where(met, arriving, 1.0)
    share = leaving[:, None] * routing / total
    entering = gamma / total
    concentration = entering**2 + (share**2).sum(axis=0)
    weight = merging_weight(np.where(met, concentration, 1.0), load)
    fixed = (share * (1 - routing + routing * (load**2 * noise)[:, None])).sum(axis=0)
    constant = np.where(met, 1 + weight * (entering * outside - 1 + fixed), 1.0)
    carried = np.where(met, weight * share * routing * (1 - load**2)[:, None], 0.0)
    # Where all is deterministic, rounding may leave a little less than 0.
    arrivals = np.maximum(np.linalg.solve(np.eye(len(gamma)) - carried.T, constant), 0.0)
    return arrivals, np.asarray(departing_scv(arrivals, noise, load))


def _waits(
    arrival_rate: FloatArray, service_rate: FloatArray, servers: FloatArray, ca: FloatArray, cs: FloatArray
) -> FloatArray:
    """Return the mean wait at each station."""
    wait = np.zeros(servers.shape)
    single, several = servers == 1, np.isfinite(servers) & (servers > 1)
    one = gg1_klb(
        arrival_rate=arrival_rate[single],
        service_rate=service_rate[single],
        arrival_scv=ca[single],
        service_scv=cs[single],
    )
    many = ggc_allen_cunneen(
        arrival_rate=arrival_rate[several],
        service_rate=service_rate[several],
        servers=servers[several],
        arrival_scv=ca[several],
        service_scv=cs[several],
    )
    wait[single], wait[several] = one.mean_waiting_time, many.mean_waiting_time
    return wait
