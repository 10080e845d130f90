"""Streams of requests between programs and parts, and the responses to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any, NamedTuple, TypeVar

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.composed.stalls import Late, Stall

NAN = float("nan")


Record = TypeVar("Record")


def _changed(record: Record, values: dict[str, Any]) -> Record:
    """Return a record with other values: `dataclasses.replace`, but for the time it takes."""
    found = object.__new__(type(record))
    found.__dict__.update(record.__dict__, **values)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Requests of one step of one flow to one part."""

    flow: str  # the flow's name
    step: Any  # the step of its program
    rate: float  # issues of a batch of requests, to all copies of the part together [1/ns]
    batch: FloatArray  # probabilities of 0, 1, 2, ... requests that are issued at once
    # Squared coefficient of variation of the times between issues; of a stream of bursts, within them.
    scv: float
    write: bool  # whether the requests write
    bytes: int  # payload of a request [bytes]
    # Share of the issues that come from each node of the interconnect; empty if the part is not placed.
    sources: FloatArray
    # Of a flow that comes in bursts, rate in them over the mean rate, and rate at which they end [1/ns].
    peak: float = 1.0
    ends: float = 0.0
    # Visits of one of its jobs to the part, as many as a visit finds it has.
    rounds: float = 1.0
    closed: bool = False  # whether its jobs go round, so that fewer come where they wait
    # Of an allocation: probabilities that 0, 1, 2, ... head blocks are rejected before one is taken.
    trials: FloatArray = field(default_factory=lambda: np.ones(1))
    # Of accesses that go along: consecutive blocks, mean, before one is anywhere; ``inf`` of a sequence.
    run: float = 0.0
    blocks: float = np.inf  # of the free list whose blocks are accessed

    @property
    def mean_batch(self) -> float:
        """Requests of an issue, mean."""
        return float(self.batch @ np.arange(self.batch.size))

    @property
    def request_rate(self) -> float:
        """Requests of all issues. [1/ns]."""
        return self.rate * self.mean_batch

    def changed(self, **values: Any) -> Stream:
        """Return the stream with other values."""
        return _changed(self, values)


class Queue(NamedTuple):
    """Queue of the issues of all streams at one copy of a part."""

    rate: float  # issues of all streams [1/ns]
    own: float  # of those the ones of the flow that is answered [1/ns]
    # mean, scv: of the time that a server needs for an issue [ns].
    mean: float
    scv: float
    servers: int
    wait: float  # mean wait among Poisson arrivals [ns]
    units: float = 1.0  # such queues among which the issues are spread


class Added(NamedTuple):
    """Waits that the bursts of one flow add to those of Poisson arrivals."""

    own: float  # to the flow's own jobs, mean [ns]
    others: float  # to those of other flows, mean [ns]
    decay: float  # rate at which the tail of the wait decays [1/ns]


@dataclass(frozen=True, kw_only=True, eq=False)
class Response:
    """Response of a part to one stream."""

    # mean, variance: of the time of one request at the part; ``inf`` if it cannot keep up [ns, ns2].
    mean: float
    variance: float
    # last_mean, last_variance: of the time from an issue until the last request of its batch is done [ns,
    # ns2].
    last_mean: float
    last_variance: float
    departure_scv: float  # squared coefficient of variation of the times between the ends of issues
    lost: float = 0.0  # probability that a request finds no place and is lost
    stall: Stall = Stall()  # of the time of a request: a delay that few have
    # alone_mean, alone_last: as ``mean`` and ``last_mean`` for a request that meets no other but finds the
    # part as these leave it, such as rows of a memory that are open; NaN where it finds it as an idle one
    # [ns].
    alone_mean: float = NAN
    alone_last: float = NAN
    # paused, alone_paused, pause: of the first and the last two means, what requests that come at random wait
    # for a part that stands still now and then, and behind others that did; and how long it then does [ns].
    paused: float = 0.0
    alone_paused: float = 0.0
    pause: float = 0.0
    # Of a part to which bursts come: its queue, what each flow of these adds as it began, and of ``mean``
    # what is waited for all of them, see `qmodels.composed.couplings.bursts`.
    queue: Queue | None = None
    added: Mapping[str, Added] = field(default_factory=dict)
    late: Late = Late()

    def alone(self, idle: Response) -> Response:
        """Return the response to a request that meets no other, from that of an idle part."""
        if isnan(self.alone_mean):
            return idle
        return idle.changed(mean=self.alone_mean, last_mean=self.alone_last)

    def changed(self, **values: Any) -> Response:
        """Return the response with other values."""
        return _changed(self, values)


@dataclass(frozen=True, kw_only=True, eq=False)
class PartAnswer:
    """Responses of a part to all its streams."""

    responses: Sequence[Response]  # In the order of the streams
    # Traffic intensity of each of its resources, which may exceed 1; "" is the part's fullest
    intensity: Mapping[str, float]
    doubts: tuple[str, ...] = ()  # What speaks against the numbers, in words


class InOrder(Sequence[Response]):
    """Responses to streams, each found when it is first asked for; those of equal keys are the same."""

    def __init__(self, keys: Sequence[Any], find: Callable[[Any], Response]) -> None:
        self._keys, self._find = keys, find
        self._known: dict[Any, Response] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, number: Any) -> Any:
        key = self._keys[number]
        if key not in self._known:
            self._known[key] = self._find(key)
        return self._known[key]


class BySite(Mapping[int, Response]):
    """Responses by site, each found when it is first asked for."""

    def __init__(self, sites: Collection[int], find: Callable[[int], Response]) -> None:
        self._sites, self._find = sites, find
        self._known: dict[int, Response] = {}

    def __len__(self) -> int:
        return len(self._sites)

    def __iter__(self) -> Iterator[int]:
        return iter(self._sites)

    def __contains__(self, site: object) -> bool:
        return site in self._sites

    def __getitem__(self, site: int) -> Response:
        if site not in self._known:
            if site not in self._sites:
                raise KeyError(site)
            self._known[site] = self._find(site)
        return self._known[site]


@dataclass(frozen=True, kw_only=True, eq=False)
class PacketStreams:
    """Packets from nodes of the interconnect to others: an entry of each array is a stream."""

    # source, target: the nodes, different ones.
    source: IntArray
    target: IntArray
    rate: FloatArray  # packets [1/ns]
    flits: IntArray  # size of a packet, its header included [flits]
    # Packets that come to the source at the same time as one of these, itself included, mean.
    together: FloatArray | float = 1.0
    bursts: tuple[Bursts, ...] = ()  # those among them that come in bursts


@dataclass(frozen=True, kw_only=True, eq=False)
class Bursts:
    """Packets of a flow that begin and pause together: an interrupted Poisson process, thinned."""

    flow: str  # the flow
    rate: FloatArray  # of each packet stream [1/ns]
    peak: float  # rate in a burst over the mean rate
    ends: float  # rate at which bursts end [1/ns]


@dataclass(frozen=True, kw_only=True, eq=False)
class PacketAnswer:
    """Responses of the interconnect to packet streams."""

    # mean, variance: Of the latency of a packet, from its arrival at the source until its tail is out, by
    # stream. [ns, ns2]
    mean: FloatArray
    variance: FloatArray
    intensity: Mapping[str, float]  # Traffic intensity of each resource; "" is the fullest
    # What the bursts of each flow add as they began: mean waits of their own packets and of others, and the
    # rates at which the tails decay, by stream [ns, ns, 1/ns].
    added: Mapping[str, tuple[FloatArray, FloatArray, FloatArray]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()  # What speaks against the numbers, in words
