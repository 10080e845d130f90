"""The fast way through plain first-come first-served stations: by recursion instead of events.

Its replications have the form of those of the event-driven network simulator, and meet the same
random numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.systems.laws.times import MAP, Replay
from qmodels.systems.stations.parts import INF, Station
from qmodels.systems.stations.queueing_network import QueueingNetwork
from qmodels.systems.stations.routing import LEAVE
from validate.engine.histogram import BINS
from validate.engine.sampling import law_table
from validate.engine.streams import new_streams
from validate.network.batches import BATCHES, WARM_UP_BATCHES
from validate.network.recursion_kernel import (
    CUSTOMERS,
    DELAYED,
    IDLE,
    IDLE_SQUARED,
    SERVED,
    SPAN,
    TOTALS,
    WAITED,
    serve_batches,
)
from validate.network.replication import PASSAGES, VISITS, NetworkJob, Run
from validate.network.world import time_unit

MOST_SERVERS = 128
"""Above, the ordered vector of the servers takes as long as the events."""


def applies(spec: QueueingNetwork) -> bool:
    """Return whether the recursion gives all that the event-driven simulator gives for a network.

    So it does for `one_queue` that serves first in, first out.
    """
    return one_queue(spec) and spec.stations[0].discipline == "fifo"


def one_queue(spec: QueueingNetwork) -> bool:
    """Return whether a network is one station and one open class that comes one by one, and no more.

    Its room is unlimited, its servers, up to `MOST_SERVERS`, are equal and always there; jobs pass once and
    do not give up.
    """
    if len(spec.nodes) != 1 or len(spec.classes) != 1:
        return False
    station, job_class = spec.stations[0], spec.classes[0]
    plain = Station(
        name=station.name, service=station.service, servers=station.servers, discipline=station.discipline
    )
    return bool(
        station == plain
        and station.servers <= MOST_SERVERS
        and job_class.arrivals is not None
        and job_class.batch is None
        and job_class.patience is None
        and spec.rules[0, 0].destinations == ((LEAVE, ""),)
        and spec.entries[0].destinations == ((station.name, ""),)
    )


FEWEST_RELAXATIONS = 30
"""Relaxation times in a run below which runs that begin empty are too low too often. With more, 95 %
intervals of M/M/c, D/M/1 and M/H2/1 at 0.9 and 0.95 cover 93 to 96 %, with 9 to 28 of them 92 to 96 %."""


def relaxations(spec: QueueingNetwork, passages: float) -> float | None:
    r"""Return the length of a run in relaxation times of its queue, or None where the laws do not say it.

    Notes
    -----
    :math:`T (1 - \rho)^2 c / (\rho s (c_a^2 + c_s^2))` for c servers, services of mean s and a run of time
    T: work falls by :math:`c (1 - \rho)` a unit of time, and its variance grows by
    :math:`\lambda s^2 (c_a^2 + c_s^2)` [1]_. It follows from the spec: what is seen of the memory of a run
    depends on how high the run happened to be. Independent gaps and services of `one_queue`: in any order
    the work is the same.

    References
    ----------
    .. [1] W. Whitt, "Planning queueing simulations", *Management Science* 35(11), 1989, pp. 1341-1366.

    Examples
    --------
    >>> from qmodels.systems.laws.times import Exponential
    >>> from qmodels.systems.stations.queueing_network import single_station
    >>> spec = single_station(arrivals=Exponential(mean=1.0), service=Exponential(mean=0.9))
    >>> round(relaxations(spec, 16_200), 3)
    100.0
    """
    if not one_queue(spec):
        return None
    gaps: Any = spec.classes[0].arrivals
    services: Any = spec.service_law(0, 0)
    if isinstance(gaps, MAP | Replay) or isinstance(services, MAP | Replay):
        return None
    servers = spec.stations[0].servers
    load = services.mean / (gaps.mean * servers)
    spread = load * services.mean * (gaps.scv + services.scv)
    if load >= 1:
        return 0.0
    return float(passages * gaps.mean * servers * (1 - load) ** 2 / spread) if spread > 0 else INF


def run_replication(job: NetworkJob) -> Run:
    """Run one replication of a network to which the recursion `applies`.

    Customers are counted with all their time where their service begins. The time integrals of the
    numbers are the sums of their times, Little's law; at the ends of the measured stretch that
    attributes the times of a few customers to it as a whole or not at all.
    """
    spec = job.spec
    station, job_class = spec.stations[0], spec.classes[0]
    laws: list[Any] = [job_class.arrivals, spec.service_law(0, 0)]
    table = law_table(laws)
    streams = new_streams(
        seed=job.seed,
        replication=job.replication,
        sources=[f"arrivals {job_class.name}", f"service {station.name} {job_class.name}"],
        antithetic=job.antithetic,
    )
    unit = time_unit(spec)
    ends = -(-job.passages * np.arange(BATCHES + 1) // (BATCHES - WARM_UP_BATCHES))
    sizes = np.diff(ends)
    totals, free_at = np.zeros((BATCHES, TOTALS)), np.zeros(station.servers)
    waiting, response = np.zeros((2, BINS), dtype=np.int64), np.zeros((2, BINS), dtype=np.int64)
    for measured, part in enumerate((slice(0, WARM_UP_BATCHES), slice(WARM_UP_BATCHES, BATCHES))):
        serve_batches(
            *table, streams, free_at, sizes[part], totals[part], unit, waiting[measured], response[measured]
        )
    spent = totals[:, WAITED] + totals[:, SERVED]
    spans = np.maximum(totals[:, SPAN], np.finfo(float).tiny)
    whole = totals[WARM_UP_BATCHES:].sum(axis=0)
    count, in_system = whole[CUSTOMERS], whole[WAITED] + whole[SERVED]
    visits = {
        "arrivals": count,
        "completions": count,
        "departures": count,
        "delayed": whole[DELAYED],
        "wait_sum": whole[WAITED],
        "response_sum": in_system,
        "number": in_system,
        "queued": whole[WAITED],
        "serving": whole[SERVED],
    }
    # A passage through the network is the visit to its only station.
    histograms = np.concatenate([waiting[1], response[1], response[1]])
    bins = np.flatnonzero(histograms)
    return Run(
        duration=float(whole[SPAN]),
        visits=np.array([[[visits.get(name, 0.0) for name in VISITS]]]),
        blocked=np.zeros(1),
        passages=np.array([[visits.get(name, 0.0) for name in PASSAGES]]),
        bins=bins,
        counts=histograms[bins],
        times=totals[:, SPAN],
        numbers=(spent / spans)[:, None],
        responses=spent,
        departures=totals[:, CUSTOMERS],
        events=2 * int(totals[:, CUSTOMERS].sum()),
        most_jobs=station.servers,
        idle=whole[[IDLE, IDLE_SQUARED]] if station.servers == 1 else None,
    )
