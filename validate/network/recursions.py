"""The fast way through plain first-come first-served stations: by recursion instead of events.

Its replications have the form of those of the event-driven network simulator, and meet the same
random numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.systems.laws.times import MAP, Replay
from qmodels.systems.stations.parts import INF, LEAVE, Station
from qmodels.systems.stations.queueing_network import QueueingNetwork
from validate.engine.histogram import BINS
from validate.engine.jit import jit, lean_part
from validate.engine.sampling import bin_of, draw_block, law_table
from validate.engine.streams import new_streams
from validate.network.replication import BATCHES, PASSAGES, VISITS, WARM_UP_BATCHES, NetworkJob, Run
from validate.network.world import time_unit

BLOCK = 1024
"""Customers drawn at once: two blocks fit into the first-level cache."""

SPAN, WAITED, SERVED, DELAYED, CUSTOMERS, IDLE, IDLE_SQUARED = range(7)
TOTALS = 7
"""Columns of the totals of a batch: time between the first customer's start of service and the next
batch's, waiting and service time, customers that waited, customers; of one server the sums of its idle
times and of their squares."""


@jit
def serve_batches(
    rows: Any,
    numbers: Any,
    streams: Any,
    free_at: Any,
    sizes: Any,
    totals: Any,
    unit: float,
    waiting: Any,
    response: Any,
) -> None:
    """Serve batches of customers.

    ``rows``, ``numbers``: law table: law 0 gives the gaps between arrivals, law 1 the service times;
    ``streams``: random streams of the two laws; ``free_at``: when each server is free, in ascending order,
    relative to the latest arrival; carries the station's state from call to call. Zeros are an empty station;
    ``sizes``: customers of each batch; ``totals``: filled with the totals of each batch; ``unit``: unit of
    the histograms; ``waiting``, ``response``: counts of the histograms, added to.

    The next customer starts on the server that is free first, Kiefer and Wolfowitz' recursion. With one
    server that is Lindley's.
    """
    gaps, services = np.empty(BLOCK), np.empty(BLOCK)
    for k in range(len(totals)):
        left = sizes[k]
        before = max(free_at[0], 0.0)
        while left > 0:
            count = min(left, BLOCK)
            draw_block(rows, numbers, streams, 0, gaps[:count])
            draw_block(rows, numbers, streams, 1, services[:count])
            if free_at.size == 1:
                _serve_one(gaps[:count], services, free_at, totals[k], unit, waiting, response)
            else:
                _serve_many(gaps[:count], services, free_at, totals[k], unit, waiting, response)
            left -= count
        totals[k, CUSTOMERS] = sizes[k]
        totals[k, SPAN] += max(free_at[0], 0.0) - before


@lean_part
def _serve_one(
    gaps: Any, services: Any, free_at: Any, totals: Any, unit: float, waiting: Any, response: Any
) -> None:
    """Lindley's recursion: the work found is the work left then less the gap."""
    per_unit = 1 / unit
    work, span, waited, served, delayed = free_at[0], 0.0, 0.0, 0.0, 0
    idle, squared = 0.0, 0.0
    for i in range(gaps.size):
        span += gaps[i]
        wait = max(work - gaps[i], 0.0)
        empty = max(gaps[i] - work, 0.0)
        idle += empty
        squared += empty * empty
        work = wait + services[i]
        waited += wait
        served += services[i]
        delayed += wait > 0
        waiting[bin_of(wait * per_unit)] += 1
        response[bin_of(work * per_unit)] += 1
    free_at[0] = work
    totals[SPAN] += span
    totals[WAITED] += waited
    totals[SERVED] += served
    totals[DELAYED] += delayed
    totals[IDLE] += idle
    totals[IDLE_SQUARED] += squared


@lean_part
def _serve_many(
    gaps: Any, services: Any, free_at: Any, totals: Any, unit: float, waiting: Any, response: Any
) -> None:
    per_unit = 1 / unit
    servers = free_at.size
    now, waited, served, delayed = 0.0, 0.0, 0.0, 0
    for i in range(gaps.size):
        now += gaps[i]
        wait = max(free_at[0] - now, 0.0)
        spent = wait + services[i]
        waited += wait
        served += services[i]
        delayed += wait > 0
        waiting[bin_of(wait * per_unit)] += 1
        response[bin_of(spent * per_unit)] += 1
        # One pass of exchanges keeps the vector ordered; without branches, which would be mispredicted.
        latest = now + spent
        for server in range(1, servers):
            other = free_at[server]
            free_at[server - 1] = min(other, latest)
            latest = max(other, latest)
        free_at[servers - 1] = latest
    # A clock that starts anew with each block keeps its precision in a run of any length.
    for server in range(servers):
        free_at[server] -= now
    totals[SPAN] += now
    totals[WAITED] += waited
    totals[SERVED] += served
    totals[DELAYED] += delayed


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
