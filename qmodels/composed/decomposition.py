"""Decomposition of a system into parts, each evaluated by itself for given rates of the flows."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.composed.couplings.bursts import BurstWaits, Legs, OnOffSource
from qmodels.composed.couplings.correlated_visits import equivalent_batch, visit_laws, waits_longer
from qmodels.composed.couplings.refreshes import RefreshBatches, limited_pauses
from qmodels.composed.moments import NOTHING, Moments, moments_of
from qmodels.composed.parts import load_of, network_load, respond, respond_network
from qmodels.composed.stalls import Late
from qmodels.composed.streams import (
    Added,
    Bursts,
    BySite,
    PacketAnswer,
    PacketStreams,
    PartAnswer,
    Response,
    Stream,
)
from qmodels.systems.composed.parts import batch_companions
from qmodels.systems.composed.program_form import ProgramForm, Site
from qmodels.systems.composed.steps import Allocate
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram_system import DramSystem

Others: TypeAlias = Mapping[tuple[str, str], float]
"""Rates at which the jobs of flows are met at parts. [1/ns]"""

NEARLY_NONE = 1e-9
"""Share of jobs that begin, at least, where others are met."""
LEAST = 1e-12
"""Rate of a flow without jobs, for what one would meet. [1/ns]"""
START = 1e-6
"""Rate from which on a limit is looked for, at least. [1/ns]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PartResponses:
    """Responses of all parts."""

    responses: Mapping[int, Response]  # of the part to each site
    legs: tuple[Moments, ...]  # times of the packets of each leg; those that need not travel take none
    packet: Moments  # of all packets that travel
    intensity: Mapping[str, float]  # traffic intensity of each part, and under longer names of what is in it
    doubts: tuple[str, ...]  # what speaks against the numbers
    asked: Mapping[int, Stream] = field(default_factory=dict)  # what each site asked
    late: Mapping[int, Late] = field(default_factory=dict)  # of ``legs``, what is waited for bursts
    # What jobs that come in bursts have waited before they take tokens, by acquisition [ns].
    paid: Mapping[int, float] = field(default_factory=dict)

    def alone(self, idle: PartResponses) -> PartResponses:
        """Responses to a job that meets no other, from those of idle parts."""
        left, bare = self.responses, idle.responses
        known = BySite(bare, lambda site: left[site].alone(bare[site]) if site in left else bare[site])
        return replace(idle, responses=known)

    def limited(self, sites: Sequence[Site], rates: Mapping[str, float], jobs: float) -> PartResponses:
        """Return the responses to jobs of a limited number, see `limited_pauses`."""
        return replace(self, responses=limited_pauses(self.responses, sites, rates, jobs))


@dataclass(eq=False)
class Decomposition:
    """Evaluates the parts of a system for the streams of its programs; equal streams once."""

    system: System  # the system
    form: ProgramForm  # its programs
    # Squared coefficient of variation of the times between issues of a site, and between packets of a leg as
    # a job sends them; 1 if it is not there.
    scvs: Mapping[Any, float] = field(default_factory=dict)
    # Of requests that come apart, as many as at once would wait for each other as much.
    batches: Mapping[int, float] = field(default_factory=dict)
    trials: Mapping[int, FloatArray] = field(default_factory=dict)  # of allocations, see `Stream.trials`
    # Share of the jobs that come as far as a site, where some are lost before.
    coming: Mapping[int, float] = field(default_factory=dict)
    # Share of the jobs of each flow that begin, where some do not.
    entering: Mapping[str, float] = field(default_factory=dict)
    # By which factor those of sites are above those of the streams themselves.
    raised: dict[int, float] = field(default_factory=dict)
    sources: Mapping[str, OnOffSource] = field(default_factory=dict)  # of flows that come in bursts
    # Mean waits for tokens of pools at which such jobs wait [ns].
    pools: Mapping[str, float] = field(default_factory=dict)
    with_refresh_batches: bool = True  # whether what a stalled memory releases comes to stations at once
    known: dict[Any, Any] = field(default_factory=dict)
    # Settings of the last evaluation, and all evaluations with them.
    _settings: tuple[Any, ...] = ()
    _answers: dict[Any, PartResponses] = field(default_factory=dict)

    def evaluate(
        self,
        rates: Mapping[str, float],
        *,
        own: Mapping[str, float] | None = None,
        met: Others | None = None,
        legs: tuple[Moments, ...] | None = None,
        parts: Set[str] | None = None,
    ) -> PartResponses:
        """Evaluate every part once, for given rates of the flows.

        Parameters
        ----------
        rates : mapping of str to float
            Jobs of each flow that begin. [1/ns]
        own : mapping of str to float, optional
            The same for sites whose jobs ask the copy at their own place; as ``rates`` if left out.
        met : mapping of flow and part to float, optional
            Rates at which jobs of limited number are met there instead. [1/ns]
        legs : tuple of Moments, optional
            Times of the packets of each leg, where these are known.
        parts : set of str, optional
            Those that are asked, without bursts that come from one to the next; all if left out.
        """
        met, own = met or {}, rates if own is None else own
        settings = self.scvs, self.batches, self.trials, self.coming, self.entering, self.pools
        if not self._settings or any(a is not b for a, b in zip(settings, self._settings, strict=True)):
            self._settings, self._answers = settings, {}
        key: tuple[Any, ...] = tuple(rates.items()), tuple(own.items()), tuple(met.items()), legs
        if parts is not None and key not in self._answers:
            key += (parts,)
        if key not in self._answers:
            self._answers[key] = self._evaluated(rates, own, met, legs, parts)
        return self._answers[key]

    def _evaluated(
        self,
        rates: Mapping[str, float],
        own: Mapping[str, float],
        met: Others,
        legs: tuple[Moments, ...] | None,
        some: Set[str] | None,
    ) -> PartResponses:
        ends = {
            flow: source.peak * max(rates[flow], LEAST) / source.size for flow, source in self.sources.items()
        }
        asked, places = self._asked(rates, own, met, ends, self.system.parts if some is None else some)
        found_at: dict[int, tuple[Sequence[Response], int]] = {}
        intensity = dict.fromkeys((site.part for site in self.form.sites), 0.0)
        doubts: list[str] = []
        streamed: dict[int, Stream] = {}
        for part, streams in asked.items():
            answer = self._part(part, tuple(streams))
            streamed |= dict(zip(places[part], streams, strict=True))
            found_at |= {number: (answer.responses, k) for k, number in enumerate(places[part])}
            intensity |= _named(part, answer.intensity)
            doubts += answer.doubts
        responses: Mapping[int, Response] = BySite(
            found_at, lambda site: found_at[site][0][found_at[site][1]]
        )
        stalls = self.with_refresh_batches and not all(flow.closed for flow in self.system.flows)
        if stalls and any(each.stall.every < np.inf for each in responses.values()):
            responses = RefreshBatches(self.system, rates, responses, intensity).all(self.form)
        packet, added = NOTHING, tuple[Mapping[str, Added], ...]()
        if legs is None and (some is not None and self.system.interconnect not in some):
            legs = (NOTHING,) * len(self.form.legs)
        elif legs is None and not self.form.legs:
            legs = ()
        elif legs is None:
            legs, packet, sent, added = self._network(self._sent(rates, met), ends)
            intensity |= _named(self.system.interconnect, sent.intensity)
            doubts += sent.doubts
        found = BurstWaits(self.form, self.sources, responses, added or ({},) * len(legs))
        if self.sources and some is None:
            found = replace(found, longer=self._longer, pools=self.pools).find()
            responses, legs, packet = self._with_bursts(found, rates, legs, packet)
        return PartResponses(
            late=found.late_legs,
            paid=found.paid,
            responses=responses,
            legs=legs,
            packet=packet,
            intensity=intensity,
            doubts=tuple(dict.fromkeys(doubts)),
            asked=streamed,
        )

    def _with_bursts(
        self, found: BurstWaits, rates: Mapping[str, float], legs: tuple[Moments, ...], packet: Moments
    ) -> tuple[dict[int, Response], tuple[Moments, ...], Moments]:
        """Return responses, times of legs and of a packet with what is waited for bursts."""
        responses = dict(found.responses)
        for number, late in found.late.items():
            old, spread = responses[number], found.spread[number]
            responses[number] = replace(
                old,
                mean=old.mean + late.mean,
                variance=old.variance + spread,
                last_mean=old.last_mean + late.mean,
                last_variance=old.last_variance + spread,
                late=late,
            )
        later = [found.late_legs.get(k, Late()).mean for k in range(len(legs))]
        spreads = [found.spread_legs.get(k, 0.0) for k in range(len(legs))]
        legs = tuple(Moments(*pair) + one for one, *pair in zip(legs, later, spreads, strict=True))
        sent = [rates[leg.flow] * leg.packets for leg in self.form.legs]
        total = sum(sent)
        more = sum(rate * each for rate, each in zip(sent, later, strict=True)) / total if total > 0 else 0.0
        return responses, legs, Moments(packet.mean + more, packet.variance)

    def leg_times(self, rates: Mapping[str, float]) -> tuple[Moments, ...]:
        """Return the times of the packets of each leg."""
        return self._network(self._sent(rates, {}), {})[0]

    def loads(
        self, rates: Mapping[str, float], parts: Collection[str], met: Others | None = None
    ) -> dict[str, float]:
        """Return the intensity of the fullest of each of some parts."""
        asked, _ = self._asked(rates, rates, met or {}, {}, parts)
        found = {part: self._load(part, tuple(streams)) for part, streams in asked.items()}
        if self.form.legs and self.system.interconnect in parts:
            found[self.system.interconnect] = self._network_load(self._sent(rates, met or {}))
        return {part: found.get(part, 0.0) for part in parts}

    def limit(
        self,
        rates: Mapping[str, float],
        flows: Collection[str],
        parts: Collection[str] | None = None,
        met: Others | None = None,
    ) -> float:
        """Return by which factor the rates of some flows may grow until the first resource is full.

        Parameters
        ----------
        rates : mapping of str to float
            Of all flows. [1/ns]
        flows : collection of str
            Those that grow.
        parts : collection of str, optional
            Parts that are looked at; all if left out.
        met : mapping of flow and part to float, optional
            As in `evaluate`.
        """
        looked = self.form.parts(self.system.interconnect) if parts is None else parts

        def intensity(factor: float) -> dict[str, float]:
            grown = {name: r * factor if name in flows else r for name, r in rates.items()}
            return self.loads(grown, looked, met)

        grow = max((r for name, r in rates.items() if name in flows), default=1.0)
        # Rates below what a flow without jobs is asked with say nothing.
        base, factor = intensity(0.0), max(1.0, START / max(grow, 1e-300))
        for _ in range(3):
            now = intensity(factor)
            grown = {
                part: now[part] - base[part] for part in now if now[part] - base[part] > 1e-9 * factor * LEAST
            }
            reach = [max(1 - base[part], 0.0) / each * factor for part, each in grown.items()]
            if not reach:
                return float("inf")
            if abs(min(reach) / factor - 1) < 1e-9 or min(reach) == 0:
                return min(reach)
            factor = min(reach)
        return factor

    def _asked(
        self,
        rates: Mapping[str, float],
        own: Mapping[str, float],
        met: Others,
        ends: Mapping[str, float],
        parts: Collection[str],
    ) -> tuple[dict[str, list[Stream]], dict[str, list[int]]]:
        """Streams of requests to each of some parts, and the numbers of their sites."""
        asked: dict[str, list[Stream]] = {}
        places: dict[str, list[int]] = {}
        for site in self.form.sites:
            if site.part not in parts:
                continue
            chosen = own if site.own else rates
            begun = chosen[site.flow]
            if (site.flow, site.part) in met:
                begun = met[site.flow, site.part] / max(self.entering.get(site.flow, 1.0), NEARLY_NONE)
            rate = max(begun, LEAST) * site.visits * self.coming.get(site.number, 1.0)
            if rate > 0:
                asked.setdefault(site.part, []).append(self._stream(site, rate, ends))
                places.setdefault(site.part, []).append(site.number)
        return asked, places

    def _sent(self, rates: Mapping[str, float], met: Others) -> dict[str, float]:
        """Return the rates at which the packets of flows are met."""
        begun = {name: rate * self.entering.get(name, 1.0) for name, rate in rates.items()}
        return {name: met.get((name, self.system.interconnect), rate) for name, rate in begun.items()}

    def own_loads(self, rates: Mapping[str, float], answers: PartResponses) -> dict[int, float]:
        """Return the load that each site brings to its part."""
        asked: dict[str, float] = {}
        requests = {}
        for site in self.form.sites:
            requests[site.number] = rates[site.flow] * site.visits * site.mean_batch
            asked[site.part] = asked.get(site.part, 0.0) + requests[site.number]
        return {
            site.number: answers.intensity[site.part] * requests[site.number] / asked[site.part]
            for site in self.form.sites
            if asked[site.part] > 0
        }

    def _stream(self, site: Site, rate: float, ends: Mapping[str, float]) -> Stream:
        values: dict[str, Any] = {"scv": self.scvs.get(site.number, 1.0)}
        size = self.batches.get(site.number, 1.0)
        if size > 1 + 1e-9:
            values["batch"] = batch = equivalent_batch(size)
            rate /= moments_of(batch)[0]
        if site.flow in ends:
            values |= {"peak": self.sources[site.flow].peak, "ends": ends[site.flow]}
        if ends:
            values["rounds"] = self._rounds.get((site.flow, site.part), 1.0)
        if site.number in self.trials:
            values["trials"] = self.trials[site.number]
        return self._streams[site.number].changed(rate=rate, **values)

    @cached_property
    def _streams(self) -> list[Stream]:
        """Streams of all sites, but for their rates and what comes with these."""
        return [
            Stream(
                flow=site.flow,
                step=site.step,
                rate=LEAST,
                batch=site.batch,
                scv=1.0,
                write=site.write,
                bytes=site.bytes,
                sources=site.sources,
                closed=self.system.flow(site.flow).closed,
                **self._addresses(site),
            )
            for site in self.form.sites
        ]

    def _addresses(self, site: Site) -> dict[str, Any]:
        """Return what a stream says of the addresses of a site's accesses, see `Stream`."""
        addresses = getattr(site.step, "addresses", "random")
        if addresses != "allocated":
            return {"run": math.inf} if addresses == "sequential" else {}
        before = self.form.sites[: site.number]
        lists = [s.part for s in before if s.flow == site.flow and isinstance(s.step, Allocate)]
        found = self.system.parts[lists[-1]]
        return {"run": float(found.mean_run_length), "blocks": float(found.segments)}

    def _load(self, part: str, streams: tuple[Stream, ...]) -> float:
        """Return the intensity of the fullest of a part, which may be known before its times are."""
        key = ("load", *self._key(part, streams))
        if key not in self.known:
            load = load_of(part, self.system, streams)
            self.known[key] = self._part(part, streams).intensity[""] if load is None else load
        return float(self.known[key])

    def _key(self, part: str, streams: tuple[Stream, ...]) -> tuple[Any, ...]:
        """Key of all that the response of a part depends on."""
        rows = [
            (id(s.step), s.rate, s.scv, s.peak, s.ends, s.batch.tobytes(), s.trials.tobytes())
            for s in streams
        ]
        placed = [s.sources.tobytes() for s in streams] if self.system.copies(part) > 1 else ()
        return part, *rows, *placed

    def _part(self, part: str, streams: tuple[Stream, ...]) -> PartAnswer:
        key = self._key(part, streams)
        if key not in self.known:
            self.known[key] = respond(part, self.system, streams)
        answer: PartAnswer = self.known[key]
        return answer

    def _network(
        self, rates: Mapping[str, float], ends: Mapping[str, float]
    ) -> tuple[tuple[Moments, ...], Moments, PacketAnswer, Legs]:
        """Return the times of all legs, of a packet of any, what the network said, and what bursts add."""
        legs = self.form.legs
        key = "network", tuple((rates[leg.flow], ends.get(leg.flow)) for leg in legs)
        if key not in self.known:
            noc, routes, packets = self.system.network, self._routes, self._packets(rates, ends)
            assert noc is not None
            answer, rate = respond_network(noc, packets), packets.rate
            at = np.cumsum([0, *(leg.pairs[2].size for leg in legs)])
            parts = [(routes.share[a:b], routes.kind[a:b]) for a, b in zip(at, at[1:], strict=False)]
            times = tuple(_mixed(share, answer, kind) for share, kind in parts)
            total = float(rate.sum())
            packet = _mixed(rate / total, answer, slice(None)) if total else NOTHING
            added = tuple(
                {
                    flow: Added(
                        float(share @ own[kind]),
                        float(share @ others[kind]),
                        float(decay[kind].min(initial=np.inf)),
                    )
                    for flow, (own, others, decay) in answer.added.items()
                }
                for share, kind in parts
            )
            self.known[key] = (times, packet, answer, added)
        found: tuple[tuple[Moments, ...], Moments, PacketAnswer, Legs] = self.known[key]
        return found

    def _network_load(self, rates: Mapping[str, float]) -> float:
        """Return the intensity of the fullest channel, or that at which packets come to a standstill."""
        key = tuple(rates[leg.flow] for leg in self.form.legs)
        if ("network load", key) not in self.known:
            assert self.system.network is not None
            self.known["network load", key] = network_load(self.system.network, self._packets(rates, {}))
        return float(self.known["network load", key])

    def _packets(self, rates: Mapping[str, float], ends: Mapping[str, float]) -> PacketStreams:
        """Return the packets of all legs by their kind."""
        routes, legs = self._routes, self.form.legs
        size = [leg.pairs[2].size for leg in legs]
        each = np.repeat([max(rates[leg.flow], LEAST) * leg.packets for leg in legs], size) * routes.share
        rate = np.asarray(np.bincount(routes.kind, each), dtype=float)
        together = np.bincount(routes.kind, each * np.repeat([leg.together for leg in legs], size))
        return PacketStreams(
            source=routes.source,
            target=routes.target,
            rate=rate,
            flits=routes.flits,
            together=np.divide(together, rate, out=np.ones(rate.size), where=rate > 0),
            bursts=self._bursts(ends, each, rate.size),
        )

    def _bursts(self, ends: Mapping[str, float], each: FloatArray, kinds: int) -> tuple[Bursts, ...]:
        """Return the packets of flows that come in bursts; ``each``: packets of the pairs of all legs."""
        of = np.repeat([leg.flow for leg in self.form.legs], [leg.pairs[2].size for leg in self.form.legs])
        found = []
        for flow, end in ends.items():
            mine = np.where(of == flow, each, 0.0)
            rate = np.asarray(np.bincount(self._routes.kind, mine, minlength=kinds), dtype=float)
            if rate.any():
                found.append(Bursts(flow=flow, rate=rate, peak=self.sources[flow].peak, ends=end))
        return tuple(found)

    @cached_property
    def with_traces(self) -> frozenset[str]:
        """The parts that a job finds as others have left them though it meets none."""
        return frozenset(name for name, part in self.system.parts.items() if isinstance(part, DramSystem))

    @cached_property
    def _laws(self) -> dict[tuple[str, str], FloatArray]:
        """Laws of the visits of jobs to parts to which they come several times."""
        laws = {flow: visit_laws(self.form, root) for flow, root in self.form.roots.items()}
        some = ((flow, part, law) for flow, each in laws.items() for part, law in each.items())
        return {(flow, part): law for flow, part, law in some if law[2:].any()}

    @cached_property
    def _rounds(self) -> dict[tuple[str, str], float]:
        return {place: batch_companions(law) for place, law in self._laws.items()}

    @cached_property
    def _longer(self) -> dict[tuple[str, str], float]:
        return {place: waits_longer(law) for place, law in self._laws.items()}

    @cached_property
    def _routes(self) -> _Routes:
        """The packets of all legs one after the other; their source, target and size say their kind."""
        noc, legs = self.system.network, self.form.legs
        assert noc is not None
        flits = np.repeat([int(noc.flits(leg.bytes)) for leg in legs], [leg.pairs[2].size for leg in legs])
        sources, targets, share = (
            np.concatenate(column) for column in zip(*(leg.pairs for leg in legs), strict=True)
        )
        number = (sources * noc.topology.nodes + targets) * (flits.max() + 1) + flits
        _, first, kind = np.unique(number, return_index=True, return_inverse=True)
        return _Routes(
            source=sources[first], target=targets[first], flits=flits[first], kind=kind, share=share
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Routes:
    """Kinds of packets by source, target and size, and of those of each leg its kind and its share."""

    source: IntArray
    target: IntArray
    flits: IntArray
    kind: IntArray
    share: FloatArray


def _mixed(share: FloatArray, answer: PacketAnswer, kind: Any) -> Moments:
    """Return the time of a packet that is one of several kinds, or does not travel."""
    mean, variance = answer.mean[kind], answer.variance[kind]
    used = share > 0
    if not np.isfinite(mean[used]).all():
        return Moments(np.inf, np.inf)
    share, mean, variance = share[used], mean[used], variance[used]
    middle = float(share @ mean)
    stays = max(1.0 - float(share.sum()), 0.0)
    return Moments(middle, float(share @ (variance + (mean - middle) ** 2)) + stays * middle**2)


def _named(part: str, intensity: Mapping[str, float]) -> dict[str, float]:
    return {f"{part} {name}" if name else part: float(value) for name, value in intensity.items()}
