"""Stations: the models of queues for what comes to one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.parts.bursty import added_by_bursts, two_moments, wait_of_batches
from qmodels.composed.parts.serving import last_of_batch
from qmodels.composed.streams import Added, PartAnswer, Queue, Response, Stream
from qmodels.networks.open.qna import departing_scv, merging_weight, service_noise, split_scv
from qmodels.networks.solve import solve_network
from qmodels.networks.station import mixture
from qmodels.numerics.largest import largest_moments
from qmodels.systems.composed.parts import ONE, batch_companions
from qmodels.systems.composed.program_form import Site
from qmodels.systems.laws.times import Exponential
from qmodels.systems.stations.parts import JobClass, Station
from qmodels.systems.stations.queueing_network import QueueingNetwork

Respond = Callable[[tuple[Stream, ...]], PartAnswer]


def copy_shares(nodes: Sequence[int], streams: Sequence[Stream | Site]) -> FloatArray:
    """Return the share of each stream that goes to each copy, shape (copies, streams).

    Jobs use the copy at their own place, or else any. A part that is not placed has one copy.

    >>> stream = Stream(flow="jobs", step=None, rate=1.0, batch=np.eye(2)[1], scv=1.0, write=False, bytes=0,
    ...                 sources=np.array([0.5, 0.5, 0.0]))
    >>> copy_shares((1, 2), (stream,)).ravel()
    array([0.75, 0.25])
    """
    if not nodes:
        return np.ones((1, len(streams)))
    at = np.array(nodes)
    there = np.array([(at == node).sum() for node in at])
    columns = []
    for stream in streams:
        own = stream.sources[at] / there
        columns.append(own + (1 - own.sum()) / at.size)
    return np.array(columns).T


def over_copies(nodes: Sequence[int], streams: tuple[Stream, ...], respond: Respond) -> PartAnswer:
    """Return the answer of a part with copies, from that of one copy to its share.

    Copies that are asked the same are asked once, those that nobody goes to not at all. Times are means over
    the copies, intensities the largest.
    """
    if len(nodes) < 2:
        return respond(streams)
    shares = copy_shares(nodes, streams)
    kinds, count = np.unique(shares.round(12), axis=0, return_counts=True)
    asked = kinds.any(axis=1)
    kinds, count = kinds[asked], count[asked]
    answers = []
    for row in kinds:
        here = tuple(
            replace(s, rate=s.rate * part, scv=float(split_scv(s.scv, part)))
            for s, part in zip(streams, row, strict=True)
        )
        answers.append(respond(here))
    if len(answers) == 1:
        return answers[0]
    weights = kinds * count[:, None]
    responses = tuple(
        _mean_response([answer.responses[k] for answer in answers], weights[:, k])
        for k in range(len(streams))
    )
    names = {name for answer in answers for name in answer.intensity}
    return PartAnswer(
        responses=responses,
        intensity={name: max(a.intensity.get(name, 0.0) for a in answers) for name in sorted(names)},
        doubts=tuple(dict.fromkeys(doubt for answer in answers for doubt in answer.doubts)),
    )


def _mean_response(each: Sequence[Response], weight: FloatArray) -> Response:
    used = [(r, w) for r, w in zip(each, weight / weight.sum(), strict=True) if w > 0]

    def mixed(name: str) -> float:
        return float(sum(w * getattr(r, name) for r, w in used))

    def spread(mean: str, variance: str) -> float:
        middle = mixed(mean)
        if not np.isfinite(middle):
            return float("inf")
        return float(sum(w * (getattr(r, variance) + (getattr(r, mean) - middle) ** 2) for r, w in used))

    def added(flow: str) -> Added:
        some = [(r.added[flow], w) for r, w in used if flow in r.added]
        own, others = (float(sum(w * a[k] for a, w in some)) for k in (0, 1))
        return Added(own, others, min(a.decay for a, _ in some))

    return Response(
        mean=mixed("mean"),
        variance=spread("mean", "variance"),
        last_mean=mixed("last_mean"),
        last_variance=spread("last_mean", "last_variance"),
        departure_scv=mixed("departure_scv"),
        lost=mixed("lost"),
        queue=used[0][0].queue,
        added={flow: added(flow) for flow in dict.fromkeys(name for r, _ in used for name in r.added)},
    )


INF = float("inf")
ALIKE = 1e-9
"""SCVs that differ by less are the same."""
EXTRAS = ("setup", "vacation", "rate_multiplier")


@dataclass(frozen=True, kw_only=True, eq=False)
class Flows:
    """Arrivals at one station, by flow: streams of a flow have the same service."""

    names: tuple[str, ...]  # the flows
    rate: FloatArray  # jobs of each [1/ns]
    # mean, scv: mean and squared coefficient of variation of their services [ns].
    mean: FloatArray
    scv: FloatArray
    arrival_scv: float  # of the times between arrivals, all flows together, as a queue at its load sees them
    # Probabilities of 0, 1, 2, ... jobs that arrive at the same time.
    batch: FloatArray = field(default_factory=lambda: ONE)
    own: tuple[FloatArray, ...] = ()  # the same of each

    @property
    def together(self) -> float:
        """Jobs that arrive at the same time as one of them, itself included, mean."""
        return batch_companions(self.batch)

    @property
    def service(self) -> tuple[float, float]:
        """Mean and squared coefficient of variation of the services of all."""
        weights = self.rate if self.rate.any() else np.ones(self.rate.size)
        return mixture(weights, self.mean, self.scv)


@dataclass(frozen=True, kw_only=True, eq=False)
class Visits:
    """Waits of each flow: mean, variance, mean and variance of the response, losses."""

    response: FloatArray
    variance: FloatArray
    lost: float = 0.0
    doubt: str = ""


def station_copy(station: Station, streams: tuple[Stream, ...], arrivals: Any = None) -> PartAnswer:
    """Return the response of a station to its arrivals, bursts as if they were none.

    ``streams``: what comes to it; the jobs of a batch arrive at the same time; ``arrivals``: the law of the
    times between arrivals, where there is one stream and it is known.

    Poisson streams, and one of a known law, are answered by `solve_network`. Others wait as in GI/G/c with
    the SCV that Whitt's analyzer gives to streams that meet; at a single server a batch waits as one job.
    What that leaves out of a station is said as a doubt. Variances that a model does not give are those of a
    wait whose residual time is that of gamma services.
    """
    flows = _flows(station, streams)
    load = _load(station, flows)
    used = float(flows.rate.sum()) > 0
    if not used:
        found = Visits(response=flows.mean, variance=flows.scv * flows.mean**2)
    elif load >= 1 and station.capacity == INF:
        endless = np.full(flows.mean.shape, INF)
        found = Visits(response=endless, variance=endless)
    else:
        found = _visits(station, flows, load, arrivals)
    departures = _departures(station, flows, min(load, 1.0))
    total = max(float(flows.rate.sum()), 1e-300)
    responses = []
    for stream in streams:
        k = flows.names.index(stream.flow)
        mean, variance = float(found.response[k]), float(found.variance[k])
        last, spread = _last(station, stream, float(flows.mean[k]), float(flows.scv[k]), mean, variance)
        share = stream.request_rate / total
        responses.append(
            Response(
                mean=mean,
                variance=variance,
                last_mean=last,
                last_variance=spread,
                departure_scv=float(split_scv(departures, share)),
                lost=found.lost,
            )
        )
    if any(s.peak > 1 for s in streams) and not station.delay and station.capacity == INF:
        responses = _with_bursts(station, streams, flows, responses)
    return PartAnswer(
        responses=tuple(responses), intensity={"": load}, doubts=(found.doubt,) if found.doubt else ()
    )


def _with_bursts(
    station: Station, streams: tuple[Stream, ...], flows: Flows, responses: list[Response]
) -> list[Response]:
    """Return the responses with what bursts add; all visits of a job, and a batch at one server, are one."""
    (mean, scv), servers, requests = flows.service, int(station.servers), [s.request_rate for s in streams]
    jobs = np.array(requests)
    size = max(float(jobs @ [s.rounds for s in streams]) / float(jobs.sum()), 1.0)
    size *= max(flows.together, 1.0) if servers == 1 else 1.0
    mean, scv, jobs = mean * size, scv / size, jobs / size
    found = []
    rate, added = float(jobs.sum()), None
    for stream, answered in zip(streams, responses, strict=True):
        k = flows.names.index(stream.flow)
        own = float(jobs[[s.flow == stream.flow for s in streams]].sum())
        queue = Queue(rate, own, mean, scv, servers, max(answered.mean - float(flows.mean[k]), 0.0))
        added = added_by_bursts(streams, jobs, queue) if added is None else added
        mine = added
        if station.discipline == "sharing":
            longer = 2 / (1 + flows.service[1]) * float(flows.mean[k]) / flows.service[0]
            mine = {
                name: Added(a.own * longer, a.others * longer, a.decay / longer) for name, a in added.items()
            }
        found.append(replace(answered, queue=queue, added=mine))
    return found


def station_load(station: Station, nodes: Sequence[int], streams: tuple[Stream, ...]) -> float:
    """Return the load of the fullest copy of a station."""
    if station.delay:
        return 0.0
    laws = [(stream.request_rate, station.service_law(stream.flow)) for stream in streams]
    work = [rate * float(law.mean) if law is not None else 0.0 for rate, law in laws]
    return float((copy_shares(nodes, streams) @ work).max()) / _speed(station)


def _speed(station: Station) -> float:
    return float(station.rate_multiplier[-1] if station.rate_multiplier else station.servers)


def _flows(station: Station, streams: tuple[Stream, ...]) -> Flows:
    names = tuple(dict.fromkeys(s.flow for s in streams))
    rate = np.array([sum(s.request_rate for s in streams if s.flow == name) for name in names])
    laws = [station.service_law(name) for name in names]
    mean = np.array([float(law.mean) for law in laws if law is not None])
    scv = np.array([float(law.scv) for law in laws if law is not None])
    issues = np.array([s.rate for s in streams])
    total = float(issues.sum())
    if total <= 0:
        return Flows(names=names, rate=rate, mean=mean, scv=scv, arrival_scv=1.0)
    share = issues / total
    # The streams of one flow have their bursts together.
    of = np.array([share[[s.flow == name for s in streams]].sum() for name in names])
    load = min(float(rate @ mean) / (1.0 if station.delay else station.servers), 1.0)
    weight = merging_weight(float(of @ of), load)
    merged = 1 - weight + weight * float(share @ [s.scv for s in streams])
    own = tuple(np.zeros(max(s.batch.size for s in streams)) for _ in names)
    for part, stream in zip(share, streams, strict=True):
        own[names.index(stream.flow)][: stream.batch.size] += part * stream.batch
    batch = np.sum(own, axis=0)
    return Flows(names=names, rate=rate, mean=mean, scv=scv, arrival_scv=merged, batch=batch, own=own)


def _load(station: Station, flows: Flows) -> float:
    if station.delay:
        return 0.0
    return float(flows.rate @ flows.mean) / _speed(station)


def _visits(station: Station, flows: Flows, load: float, arrivals: Any) -> Visits:
    poisson = abs(flows.arrival_scv - 1) < ALIKE and flows.together - 1 < ALIKE
    # A server that is shared is known for Poisson arrivals alone.
    known = arrivals is not None and station.discipline != "sharing" and flows.together - 1 < ALIKE
    if poisson or known:
        return _solved(station, flows, arrivals if known else None, "")
    plain = station.discipline in ("fifo", "lifo", "sharing") and station.capacity == INF
    if plain and not any(getattr(station, name) for name in EXTRAS) and not station.delay:
        return _two_moments(station, flows, load)
    if station.delay and station.capacity == INF:
        return Visits(response=flows.mean, variance=flows.scv * flows.mean**2)
    doubt = f"arrivals at {station.name!r} are taken to be Poisson there, one at a time"
    return _solved(station, flows, None, doubt)


def _solved(station: Station, flows: Flows, arrivals: Any, doubt: str) -> Visits:
    """Solve the station alone by the models of queueing networks."""
    if station.when_full != "loss" and station.capacity < INF:
        raise ValueError(
            f"station {station.name!r}: when_full must be 'loss' for the model, got {station.when_full!r}; "
            "simulate it"
        )
    used = [k for k in range(len(flows.names)) if flows.rate[k] > 0]
    classes = [
        JobClass(name=flows.names[k], arrivals=arrivals or Exponential(mean=1 / float(flows.rate[k])))
        for k in used
    ]
    # A fixed point asks hundreds of times.
    answer = solve_network(QueueingNetwork(stations=[station], classes=classes), chains=False)
    response, variance = np.array(flows.mean), flows.scv * flows.mean**2
    known = getattr(answer.result, "waiting_time_variance", None)
    for k in used:
        ending = f"[{flows.names[k]}]" if len(used) > 1 else ""
        response[k] = answer.metrics[f"mean_response_time{ending}"]
        own = flows.scv[k] * flows.mean[k] ** 2
        if known is not None and np.ndim(known) == 0:
            variance[k] = float(known) + own
        else:
            variance[k] = _variance(station, flows, k, float(response[k]))
    lost = answer.metrics.get("blocking_probability", 0.0)
    return Visits(response=response, variance=variance, lost=float(lost), doubt=doubt)


def _two_moments(station: Station, flows: Flows, load: float) -> Visits:
    r"""Return the waits of jobs that come neither as a Poisson stream nor one at a time.

    At one server a batch waits as one job, at several as in M^X/M/c and what bursts add. Jobs that share a
    server are those :math:`V / (\lambda E[R])` that its work V is of: a job that is found has
    :math:`E[R] = E[S](1+c_s^2)/2` left, and of those that queue in their order only one has. Exact with
    Poisson arrivals.
    """
    mean, scv = flows.service
    sharing = station.discipline == "sharing"
    rate, servers, size = float(flows.rate.sum()), int(station.servers), flows.together
    wait: Any
    if servers == 1:
        # Of a batch of X jobs, E[X^2] / E[X] is taken for X itself.
        wait = two_moments(rate / size, size * mean, scv / size, 1, flows.arrival_scv)
        wait = wait + np.array([(max(batch_companions(law), 1.0) - 1) / 2 for law in flows.own]) * flows.mean
    elif size - 1 < ALIKE:
        wait = two_moments(rate, mean, scv, servers, flows.arrival_scv)
    else:
        more = two_moments(rate, mean, scv, servers, max(1 + size * (flows.arrival_scv - 1), 0.0))
        more -= two_moments(rate, mean, scv, servers, 1.0)
        alone = wait_of_batches(rate=rate, mean=mean, servers=servers, batch=flows.batch)
        wait = (alone - _own_turns(flows.batch, servers, 1.0) * mean) * (size + scv) / (size + 1) + more
        wait = np.maximum(wait + np.array([_own_turns(law, servers, scv) for law in flows.own]) * mean, 0.0)
    if sharing:
        wait *= 2 / (1 + scv)
    response = flows.mean * (1 + wait / mean) if sharing else wait + flows.mean
    variance = np.array([_variance(station, flows, k, float(t)) for k, t in enumerate(response)])
    return Visits(response=response, variance=variance)


def _own_turns(batch: FloatArray, servers: int, scv: float) -> float:
    """Return after how many mean services one of a batch begins, mean over all in such batches."""
    sizes = np.flatnonzero(batch[1:]) + 1
    if not sizes.size:
        return 0.0
    each = sizes * batch[sizes] / (sizes @ batch[sizes])
    return float(each @ [_turns(n, servers, scv).mean() for n in sizes.tolist()])


def _variance(station: Station, flows: Flows, k: int, response: float) -> float:
    r"""Return the variance of a response from its mean.

    In order: that of a wait with :math:`E[W^2] = 2 E[W]^2 + \frac{2 m_3}{3 m_2} E[W]`, as in M/G/1, and
    gamma services; with sharing as in M/M/1, its part of the service's own law apart.
    """
    mean, scv = flows.service
    own = float(flows.scv[k] * flows.mean[k] ** 2)
    if not np.isfinite(response):
        return INF
    load = min(_load(station, flows), 1.0)
    if station.discipline == "sharing":
        return response**2 * (float(flows.scv[k]) + 2 * load / (2 - load))
    if station.discipline == "lifo-preemptive":
        return max(mean**2 * ((1 + scv) / max(1 - load, 1e-9) ** 3) - response**2, own)
    wait = max(response - float(flows.mean[k]), 0.0)
    servers = 1.0 if station.delay else float(station.servers)
    square = 2 * wait**2 + wait * 2 / 3 * mean * (1 + 2 * scv) / servers
    if station.discipline == "lifo":
        square /= max(1 - load, 1e-9)
    return max(square - wait**2, 0.0) + own


def _departures(station: Station, flows: Flows, load: float) -> float:
    if station.delay:
        return flows.arrival_scv
    noise = service_noise(flows.service[1], station.servers)
    return float(departing_scv(flows.arrival_scv, noise, load))


def _last(
    station: Station, stream: Stream, service: float, scv: float, mean: float, variance: float
) -> tuple[float, float]:
    """Return mean and variance until the last of a batch is done."""
    sizes = np.arange(stream.batch.size)
    if not sizes[2:].size or not stream.batch[2:].any() or not np.isfinite(mean):
        return mean, variance
    if station.delay:
        return last_of_batch(stream, mean, variance)
    servers = int(station.servers)
    some = 1.0 - float(stream.batch[0])
    jobs, squares = float(stream.batch @ sizes) / some, float(stream.batch @ sizes**2) / some
    if servers == 1:
        # The last waits for all others of its batch, any of them for half of these.
        before = (squares / jobs - 1) / 2 * service
        behind = (jobs - 1) * service
        if station.discipline == "sharing":
            # All are longer as the load says, and the last one ends when all work of its batch is done.
            longer = (service + behind) / (service + before * 2 / (1 + scv))
            return longer * mean, longer**2 * variance
        return mean - before + behind, variance + (squares - jobs**2) * service**2
    return _last_at_servers(servers, stream, service, scv, mean, variance)


def _turns(jobs: int, servers: int, scv: float) -> FloatArray:
    """Return after how many mean services those of a batch begin: in turns, or as exponential ones end."""
    before = np.arange(jobs)
    random = np.maximum(before - servers + 1, 0) / servers
    return min(scv, 1.0) * random + max(1 - scv, 0.0) * (before // servers)


def _last_at_servers(
    servers: int, stream: Stream, service: float, scv: float, mean: float, variance: float
) -> tuple[float, float]:
    """Return the same where several jobs of a batch are served at once, after a wait that they share."""
    used = np.flatnonzero(stream.batch)
    used = used[used > 0]
    share = stream.batch[used] / stream.batch[used].sum()
    behind = [_turns(n, servers, scv).sum() * service for n in used.tolist()]
    shared = mean - service - float(share @ behind) / float(share @ used)
    own = scv * service**2
    each = np.array(
        [largest_moments(mean=service, variance=own, count=min(n, servers)) for n in used.tolist()]
    )
    ends = np.array([_turns(n, servers, scv)[-1] for n in used.tolist()]) * service + each[:, 0]
    last = float(share @ ends)
    spread = float(share @ (each[:, 1] + ends**2)) - last**2
    return max(shared, 0.0) + last, max(variance - own, 0.0) + spread
