"""The simulation of a queueing network: its replications and what they say together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.laws.times import MAP, Replay
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.estimate import Estimate, exactly
from qmodels.systems.stations.parts import INF
from qmodels.systems.stations.queueing_network import QueueingNetwork
from validate.campaigns.experiment import Experiment
from validate.estimates.doubts import decisive_share, expected_doubt, lopsidedness, memory_doubt, seen_doubt
from validate.estimates.intervals import quantile_interval, ratio_interval, stability, worst
from validate.network import recursions
from validate.network.recursions import FEWEST_RELAXATIONS, relaxations
from validate.network.replication import (
    PASSAGES,
    VISITS,
    WARM_UP_BATCHES,
    NetworkJob,
    Replications,
    Run,
    run_replication,
)
from validate.network.state import JOB
from validate.network.world import time_unit

FEWEST_IDLE = 200
"""Idle times a replication must have for the mean of their squares to be near normal."""


def idle_time_estimates(
    spec: QueueingNetwork, runs: Sequence[Run], *, confidence: float
) -> dict[str, Estimate]:
    r"""Return mean times and numbers at one first-come first-served server, or nothing where it cannot be.

    ``runs``: those without ``idle`` give nothing; ``confidence``: coverage of the intervals. Empty for
    more servers, gaps or services that depend on each other, services without a variance,
    and gaps whose own rare values decide.

    The wait W, the service less the gap to the next arrival U, and the idle time I before that are tied
    by Lindley's recursion, :math:`W' = W + U + I` with :math:`W' I = 0`. Squared, and summed over the
    customers of a run,

    .. math:: 2 \sum W (-U) = \sum U^2 - \sum I^2 + W_1^2 - W_{n + 1}^2 ,

    holds in every run. :math:`\sum (U^2 - E U^2)`, :math:`\sum W (U - E U)` and the difference of the
    ends have the known mean 0 in the steady state, and all the rare long services; they are taken out as
    control variates with the coefficients that the identity gives. What is left is

    .. math:: E W = \frac{E U^2}{2 |E U|} - \frac{\sum I^2}{2 \sum I} ,

    where the known :math:`E I = |E U|` is used once more [1]_. Only the idle times are simulated: their
    tail is that of the gaps. Exact in the limit of long runs for independent gaps and services.

    References
    ----------
    .. [1] K. T. Marshall, "Some inequalities in queuing", *Operations Research* 16(3), 1968, pp. 651-665.
    """
    sums = [run.idle for run in runs if run.idle is not None]
    if len(sums) < len(runs):
        return {}
    gaps: Any = spec.classes[0].arrivals
    services: Any = spec.service_law(0, 0)
    if isinstance(gaps, MAP | Replay) or isinstance(services, MAP | Replay):
        return {}
    idle, squares = np.array(sums).T
    customers = sum(run.departures.sum() for run in runs)
    idle_share = 1 - services.mean / gaps.mean
    enough = idle_share * customers >= FEWEST_IDLE * len(runs)
    if not (enough and np.isfinite(services.scv)) or expected_doubt(gaps, 4.0, customers * idle_share):
        return {}
    drift = gaps.mean - services.mean
    square = services.scv * services.mean**2 + gaps.scv * gaps.mean**2 + drift**2
    rest = ratio_interval(squares / 2, idle, confidence=confidence)

    def plus(time: float) -> Estimate:
        low, best, high = (
            max(square / (2 * drift) - part, 0.0) + time for part in (rest.high, rest.best, rest.low)
        )
        return Estimate(low=low, best=best, high=high, confidence=confidence)

    wait, response = plus(0.0), plus(services.mean)
    return {
        "mean_waiting_time": wait,
        "mean_response_time": response,
        "system_response_time": response,
        "mean_number_in_queue": wait.scaled(1 / gaps.mean),
        "mean_number_in_system": response.scaled(1 / gaps.mean),
        "mean_number_in_network": response.scaled(1 / gaps.mean),
    }


ENDLESS = (
    "mean_waiting_time",
    "mean_response_time",
    "mean_number_in_queue",
    "mean_number_in_system",
    "system_response_time",
    "mean_number_in_network",
)
"""Metrics that have no steady state where jobs pile up."""
RARE = "rare services decide: mean times and numbers are from the idle times and the laws' moments"


def _all(spec: QueueingNetwork, data: Replications, overloaded: tuple[str, ...]) -> Any:
    """Yield place, metrics, and whether it is overloaded, of everything in the network."""
    classes = len(spec.classes)
    several = [(k, name) for k, name in enumerate(spec.class_names) if classes > 1]
    for node, name in enumerate(spec.nodes):
        full = name in overloaded
        yield _place(spec, name), _visit_metrics(spec, data, node, None), full
        for k, job_class in several:
            if (node, k) in spec.visited:
                yield _place(spec, name, job_class), _visit_metrics(spec, data, node, k), full
    yield "", _passage_metrics(spec, data, list(range(classes))), bool(overloaded)
    for k, job_class in several:
        if k in spec.entries:
            yield f"[{job_class}]", _passage_metrics(spec, data, [k]), bool(overloaded)


def _place(spec: QueueingNetwork, node: str, job_class: str = "") -> str:
    words = [word for word in (node if len(spec.nodes) > 1 else "", job_class) if word]
    return f"[{', '.join(words)}]" if words else ""


def _visit_metrics(
    spec: QueueingNetwork, data: Replications, node: int, job_class: int | None
) -> dict[str, Estimate]:
    visits = data.stacked("visits")
    table = visits[:, node] if job_class is None else visits[:, node, job_class, None]
    v = dict(zip(VISITS, np.moveaxis(table.sum(axis=1), -1, 0), strict=True))
    time = data.time
    station = spec.stations[node] if node < len(spec.stations) else None
    servers, places = (station.servers, station.capacity) if station else (INF, INF)
    patience = any(c.patience is not None for c in spec.classes)
    estimates = {
        "throughput": data.ratio(v["completions"], time),
        "utilization": data.exactly(0.0) if servers == INF else data.busy(v["serving"], time * servers),
        "mean_waiting_time": data.ratio(v["wait_sum"], v["departures"]),
        "mean_response_time": data.ratio(v["response_sum"], v["departures"]),
        "mean_number_in_queue": data.ratio(v["queued"], time),
        "mean_number_in_system": data.ratio(v["number"], time),
        "waiting_probability": data.share(v["delayed"], v["departures"]),
        "blocking_probability": data.share(v["losses"], v["arrivals"], possible=places < INF),
        "abandonment_probability": data.share(v["reneges"], v["departures"], possible=patience),
    }
    if job_class is None and any(s.when_full == "after-service" for s in spec.stations):
        estimates["blocked_servers"] = data.ratio(data.stacked("blocked")[:, node], time)
    return estimates


def _passage_metrics(spec: QueueingNetwork, data: Replications, classes: list[int]) -> dict[str, Estimate]:
    lossy = any(s.capacity < INF for s in spec.stations) or any(c.patience for c in spec.classes)
    p = dict(zip(PASSAGES, np.moveaxis(data.stacked("passages")[:, classes].sum(axis=1), -1, 0), strict=True))
    return {
        "system_throughput": data.ratio(p["completions"], data.time),
        "system_response_time": data.ratio(p["response_sum"], p["completions"]),
        "mean_number_in_network": data.ratio(p["number"], data.time),
        "system_loss_probability": data.share(
            p["losses"] + p["reneges"], p["losses"] + p["reneges"] + p["completions"], possible=lossy
        ),
    }


def _growing(spec: QueueingNetwork, runs: Sequence[Run]) -> dict[str, bool | None]:
    """Return of the nodes where jobs may pile up whether they keep up; closed jobs alone cannot."""
    if not spec.arrival_rates.any():
        return {}
    measured = np.array([r.numbers[WARM_UP_BATCHES:] for r in runs])
    ended = np.array([r.departures[WARM_UP_BATCHES:].sum() for r in runs])
    finite = {station.name for station in spec.stations if station.capacity < INF}
    return {
        name: stability(measured[:, :, node], left=ended)
        for node, name in enumerate(spec.nodes)
        if name not in finite
    }


def _doubts(
    spec: QueueingNetwork, data: Replications, rows: dict[str, tuple[int, ...]], passages: int
) -> dict[str, str]:
    """Return the doubts about intervals of mean times and numbers, by metric."""
    found: dict[str, str] = {}
    passing, runs = "", cast(Sequence[Run], data.runs)
    times_of = [spec.service_law(node, k) for node, k in spec.visited if node < len(spec.stations)]
    times_of += [c.arrivals for c in spec.classes if c.arrivals is not None]
    look = any(decisive_share(law, 4.0) is None for law in times_of)
    for node, metrics, totals, weights in _averaged(spec, runs):
        doubt = passing if node is None else _memory_doubt(spec, totals, weights, passages)
        if look and not doubt:
            where = "system response" if node is None else "response" + _place(spec, spec.nodes[node])
            doubt = seen_doubt(data.histograms(rows[where], unit=time_unit(spec)), totals, weights)
        if node is not None and node < len(spec.stations):
            doubt = _expected_doubt(spec, runs, node) or doubt
        passing = passing or doubt
        found |= dict.fromkeys(metrics, doubt)
    return {metric: doubt for metric, doubt in found.items() if doubt}


def _memory_doubt(spec: QueueingNetwork, totals: FloatArray, weights: FloatArray, passages: int) -> str:
    """Return that runs are too short for the memory of a queue: by its laws, else by what was seen."""
    lasts = relaxations(spec, passages)
    if lasts is None:
        return memory_doubt(totals, weights)
    if lasts >= FEWEST_RELAXATIONS:
        return ""
    enough = (
        f": passages={int(1 + passages / 1000 * FEWEST_RELAXATIONS / lasts)}000 are enough" if lasts else ""
    )
    return f"a run lasts {lasts:.2g} relaxation times of the queue{enough}"


def _averaged(
    spec: QueueingNetwork, runs: Sequence[Run]
) -> Iterator[tuple[int | None, list[str], FloatArray, FloatArray]]:
    """Yield each node, then None for passages: its `ENDLESS` metrics, and totals and weights of batches."""
    several = len(spec.classes) > 1

    def measured(name: str) -> FloatArray:
        return np.array([getattr(r, name)[WARM_UP_BATCHES:] for r in runs], dtype=float)

    times, numbers = measured("times"), measured("numbers")
    for node, name in enumerate(spec.nodes):
        classes = [spec.class_names[k] for at, k in spec.visited if at == node] if several else []
        places = [_place(spec, name, one) for one in ("", *classes)]
        metrics = [metric + place for metric in ENDLESS[:4] for place in places]
        yield node, metrics, numbers[:, :, node] * times, times
    places = ["", *(f"[{spec.class_names[k]}]" for k in (spec.entries if several else ()))]
    metrics = [metric + place for metric in ENDLESS[4:] for place in places]
    yield None, metrics, measured("responses"), measured("departures")


def _expected_doubt(spec: QueueingNetwork, runs: Sequence[Run], node: int) -> str:
    """Return the metrics whose intervals the service times at a station make doubtful.

    Jobs wait for long services while all servers are in one. Of c servers with a load of a, the wait
    has as many moments as the least of c - [a] rests of services [1]_: its third, and with it the
    variance of its mean, needs moment 1 + 3 / (c - [a]) of the service time, 4 for one server. Where
    the jobs share or the number is bounded, the second will do.

    .. [1] S. Foss, D. Korshunov, "On large delays in multi-server queues with heavy tails",
       *Mathematics of Operations Research* 37(2), 2012, pp. 201-218.
    """
    station = spec.stations[node]
    visits = np.sum([r.visits[node] for r in runs], axis=0)
    order = 2.0
    queueing = station.servers < INF and station.discipline not in ("sharing", "lifo-preemptive")
    if queueing and station.capacity == INF and spec.arrival_rates.any():
        busy = visits[:, VISITS.index("serving")].sum() / sum(r.duration for r in runs)
        order = 1 + 3 / max(1.0, station.servers - np.floor(busy))
    for k in range(len(spec.classes)):
        if (node, k) in spec.visited:
            served = float(visits[k, VISITS.index("departures")])
            doubt = expected_doubt(spec.service_law(node, k), order, served)
            if doubt:
                return doubt
    return ""


def _rest_of_traces(spec: QueueingNetwork, runs: Sequence[Run]) -> str:
    """Return that recordings are not played to their end, whose rest may be busier or calmer, or nothing."""
    passages = np.min([r.passages[:, PASSAGES.index("arrivals")] for r in runs], axis=0)
    served = np.min([r.visits[:, :, VISITS.index("departures")] for r in runs], axis=0)
    played = [(c.arrivals, passages[k]) for k, c in enumerate(spec.classes)]
    played += [(spec.service_law(at, k), served[at, k]) for at, k in spec.visited if at < len(spec.stations)]
    shares = [count / len(law.values) for law, count in played if isinstance(law, Replay)]
    if min(shares, default=1.0) >= 1:
        return ""
    return f"runs play {min(shares):.0%} of a recording, whose rest may be busier or calmer"


def _rows(spec: QueueingNetwork) -> dict[str, tuple[int, ...]]:
    """Histograms to add up for ``waiting`` and ``response`` by place, ``system response`` by class."""
    pairs = sorted(spec.visited)
    several = len(spec.classes) > 1
    rows: dict[str, tuple[int, ...]] = {}
    for what, first in (("waiting", 0), ("response", len(pairs))):
        for node, name in enumerate(spec.nodes):
            rows[what + _place(spec, name)] = tuple(
                first + r for r, (at, _) in enumerate(pairs) if at == node
            )
        for row, (node, k) in enumerate(pairs if several else []):
            rows[what + _place(spec, spec.nodes[node], spec.class_names[k])] = (first + row,)
    passages = range(2 * len(pairs), 2 * len(pairs) + len(spec.classes))
    rows["system response"] = tuple(passages)
    for row, name in zip(passages, spec.class_names, strict=True) if several else ():
        rows[f"system response[{name}]"] = (row,)
    return rows


def _quantile(
    data: Replications,
    rows: dict[str, tuple[int, ...]],
    unit: float,
    overloaded: tuple[str, ...],
    stable: bool | None,
    what: str,
    probability: float,
) -> Estimate:
    """Return a quantile of a time, its interval the error of the histogram's bins included.

    ``what``: ``"waiting"``, ``"response"`` or ``"system response"``, with a place in brackets as in the
    metrics' names: ``"response[disk, read]"``; ``probability``: the quantile's order. ``inf`` where the place
    is overloaded.
    """
    if what not in rows:
        raise ValueError(f"what must be a time of the network, got {what!r}{checks.nearest(what, rows)}")
    place = what.partition("[")[2].rstrip("]").split(", ")[0]
    if stable is False and (place in overloaded or what.startswith("system") or not place):
        return data.exactly(INF)
    return quantile_interval(data.histograms(rows[what], unit=unit), probability, confidence=data.confidence)


def replicate(job: NetworkJob) -> Run:
    """Run one replication: by recursion where that gives all that events give, else event by event."""
    return recursions.run_replication(job) if recursions.applies(job.spec) else run_replication(job)


@dataclass(frozen=True, kw_only=True)
class NetworkExperiment(Experiment):
    """The simulation of one queueing network; made by `validate.simulate`.

    Networks whose stations and classes have the same names meet the same random numbers at each.

    A replication begins empty (closed classes at their reference). Memory does not depend on
    ``passages``. Whether the warm-up was enough is found afterwards, by MSER and the correlation of
    batches: the result's ``short``. Where jobs pile up, the result's ``stable`` is False and the
    times of the station are ``inf``. A single FIFO station without losses goes by recursion. Where rare
    long services decide a mean, it has no upper end; with one FIFO server and independent gaps it is
    taken from the idle times instead (`validate.network.run`).

    Metrics are given by name and, in brackets, place: ``mean_response_time[disk]``, and
    ``[disk, read]`` where there are several classes. A network of one station leaves its name out.
    Of a station (a fork included, whose service is the whole of its tasks):

    - ``throughput``: jobs that complete a visit;
    - ``utilization``: busy fraction of its servers (of a class: busy with it), 0 for a delay; a
      server that is held by a blocked job, is set up or on vacation is not busy;
    - ``mean_waiting_time``: time in the queue, interruptions included, over all jobs that enter,
      served or not; with shared servers the response less the service time;
    - ``mean_response_time``: time at the station over the same jobs, being blocked included;
    - ``mean_number_in_queue``, ``mean_number_in_system``: time averages; with shared servers
      nobody is in the queue;
    - ``waiting_probability``: jobs that enter and have to wait (with shared servers: are slowed down);
    - ``blocking_probability``: arrivals that are lost because the station is full;
    - ``abandonment_probability``: jobs that enter and give up;
    - ``blocked_servers``: mean number of servers held by jobs blocked after service, if the
      network has blocking.

    Of the whole network, and in brackets by the class a job began in where there are several:

    - ``system_throughput``: jobs that leave it served, or cycles of a closed class;
    - ``system_response_time``: from entry to the end, or of a cycle without the stay at its
      reference if that is a delay;
    - ``mean_number_in_network``: jobs in it, without those at a delay that is their reference;
    - ``system_loss_probability``: jobs from outside that are lost or give up anywhere.
    """

    # Jobs of each replication that leave the network (in whatever way), or cycles of closed ones, while it is
    # measured. Before that, as a warm-up, run a quarter as many.
    passages: int = 100_000
    # Whether every second replication is the mirror image of the one before, with 1 - u for each random
    # number u. The two are then one observation: give an even number of replications. They are correlated by
    # -0.3 at best (M/M/1, load 0.5, short runs), so that a pair is worth up to three runs; long runs and
    # rules that look at the state gain nothing.
    antithetic: bool = False

    run_type = Run
    precise = ("system_response_time",)
    run_replication = staticmethod(replicate)

    def check(self) -> None:
        """Refuse options out of range."""
        checks.count("passages", self.passages, minimum=1000)
        people = int(self.spec.populations.sum())
        afford("classes.population", people, bytes=2 * JOB.itemsize * people)

    def jobs(self, start: int, stop: int) -> list[NetworkJob]:
        """Return replications `start` to `stop` - 1."""
        return [
            NetworkJob(
                spec=self.spec,
                seed=self.seed,
                replication=k // 2 if self.antithetic else k,
                passages=self.passages,
                antithetic=self.antithetic and k % 2 == 1,
            )
            for k in range(start, stop)
        ]

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        spec, confidence = self.spec, self.confidence
        if self.antithetic and len(runs) % 2:
            raise ValueError(f"replications must be even where they are antithetic, got {len(runs)}")
        data = Replications(runs, confidence=confidence, together=2 if self.antithetic else 1)
        growing = _growing(spec, runs)
        overloaded = tuple(name for name, keeps_up in growing.items() if keeps_up is False)
        metrics: dict[str, Estimate] = {}
        for place, estimates, full in _all(spec, data, overloaded):
            for name, estimate in estimates.items():
                endless = full and name in ENDLESS
                metrics[name + place] = exactly(INF, confidence=confidence) if endless else estimate
        for _, names, totals, weights in _averaged(spec, runs):
            longer = lopsidedness(totals, weights, confidence=confidence)
            metrics |= {name: metrics[name].stretched(longer) for name in names}
        rows = _rows(spec)
        doubts = _doubts(spec, data, rows, self.passages)
        known = idle_time_estimates(spec, runs, confidence=confidence) if doubts and not overloaded else {}
        for name, doubt in doubts.items():
            if np.isfinite(metrics[name].best):
                metrics[name] = known.get(name) or metrics[name].doubted(doubt)
        rest = _rest_of_traces(spec, runs)
        if rest:
            metrics = {
                name: e.doubted(rest, low=0.0)
                if name.partition("[")[0] in ENDLESS and np.isfinite(e.best)
                else e
                for name, e in metrics.items()
            }
        utilization = {name: metrics["utilization" + _place(spec, name)] for name in spec.station_names}
        return dict(
            metrics=metrics,
            utilization=utilization,
            bottleneck=max(utilization, key=lambda name: utilization[name].best),
            stable=worst(growing.values()),
            facts=(
                *([f"overloaded: {', '.join(overloaded)}"] if overloaded else []),
                *([RARE] if known else []),
            ),
            details={
                "overloaded": overloaded,
                "most_jobs": max(r.most_jobs for r in runs),
                "from_idle_times": bool(known),
            },
            quantile=partial(_quantile, data, rows, time_unit(spec), overloaded, worst(growing.values())),
            short=data.unsettled(),
            effort={"passages": self.passages, "events": sum(r.events for r in runs)},
        )
