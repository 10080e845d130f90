"""What the parts of a system answer when its flows run at some rates: every part once, none knows another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from qmodels.checks import FloatArray
from qmodels.composed.couplings.siblings import as_batch
from qmodels.composed.moments import NOTHING, Span, moments_of, one_of
from qmodels.composed.parts import respond, respond_network
from qmodels.composed.plan import Leg, Plan, Site
from qmodels.composed.streams import PacketAnswer, PacketStream, PartAnswer, Response, Stream
from qmodels.systems.composed.system import System

LEAST = 1e-12
"""Rate of a flow without jobs, for what one would meet. [1/ns]"""
START = 1e-6
"""Rate from which on a limit is looked for, at least. [1/ns]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Heard:
    """What all parts answer.

    Parameters
    ----------
    responses : mapping of int to Response
        Of the part to each site.
    legs : tuple of Span
        Times of the packets of each leg; those that need not travel take none.
    packet : Span
        Of all packets that travel.
    intensity : mapping of str to float
        Traffic intensity of each part, and under longer names of what is in it.
    doubts : tuple of str
        What speaks against the numbers.
    asked : mapping of int to Stream
        What each site asked.
    """

    responses: Mapping[int, Response]
    legs: tuple[Span, ...]
    packet: Span
    intensity: Mapping[str, float]
    doubts: tuple[str, ...]
    asked: Mapping[int, Stream] = field(default_factory=dict)

    def alone(self, idle: Heard) -> Heard:
        """Return what a job hears that meets no other, from what it would hear of idle parts."""
        known = {number: each.alone(idle.responses[number]) for number, each in self.responses.items()}
        return replace(idle, responses=known)


@dataclass(eq=False)
class Asking:
    """The parts of a system, asked with what the plan says; what was asked before is remembered.

    Parameters
    ----------
    system : System
        The system.
    plan : Plan
        Its programs.
    scvs : mapping of int to float
        Squared coefficient of variation of the times between issues of a site; 1 if it is not there.
    batches : mapping of int to float
        Of requests that come apart, as many as at once would wait for each other as much.
    raised : dict of int to float
        By which factor those of sites are above those of the streams themselves.
    coming : mapping of int to float
        Share of the jobs that come as far as a site, where some are lost before.
    trials : mapping of int to array
        Of allocations, see `Stream.trials`.
    peaks : mapping of str to float
        Of flows that come in bursts, see `Stream.peak`.
    """

    system: System
    plan: Plan
    scvs: Mapping[int, float] = field(default_factory=dict)
    batches: Mapping[int, float] = field(default_factory=dict)
    trials: Mapping[int, FloatArray] = field(default_factory=dict)
    coming: Mapping[int, float] = field(default_factory=dict)
    raised: dict[int, float] = field(default_factory=dict)
    peaks: Mapping[str, float] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict)

    def at(self, rates: Mapping[str, float], *, own: Mapping[str, float] | None = None) -> Heard:
        """Return what the parts answer.

        Parameters
        ----------
        rates : mapping of str to float
            Jobs of each flow that begin. [1/ns]
        own : mapping of str to float, optional
            The same for sites whose jobs ask the copy at their own place; as ``rates`` if left out.
        """
        asked: dict[str, list[Stream]] = {}
        places: dict[str, list[int]] = {}
        for site in self.plan.sites:
            chosen = own if own is not None and site.own else rates
            rate = max(chosen[site.flow], LEAST) * site.visits * self.coming.get(site.number, 1.0)
            if rate > 0:
                asked.setdefault(site.part, []).append(self._stream(site, rate))
                places.setdefault(site.part, []).append(site.number)
        responses: dict[int, Response] = {}
        intensity = dict.fromkeys((site.part for site in self.plan.sites), 0.0)
        doubts: list[str] = []
        streamed: dict[int, Stream] = {}
        for part, streams in asked.items():
            answer = self._part(part, tuple(streams))
            streamed |= dict(zip(places[part], streams, strict=True))
            responses |= dict(zip(places[part], answer.responses, strict=True))
            intensity |= _named(part, answer.intensity)
            doubts += answer.doubts
        legs, packet = tuple(NOTHING for _ in self.plan.legs), NOTHING
        if self.plan.legs:
            sent = self._network(rates)
            legs, packet = sent[:2]
            intensity |= _named(self.system.interconnect, sent[2].intensity)
            doubts += sent[2].doubts
        return Heard(
            responses=responses,
            legs=legs,
            packet=packet,
            intensity=intensity,
            doubts=tuple(dict.fromkeys(doubts)),
            asked=streamed,
        )

    def limit(
        self, rates: Mapping[str, float], flows: Collection[str], parts: Collection[str] | None = None
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
        """

        def intensity(factor: float) -> dict[str, float]:
            heard = self.at({name: r * factor if name in flows else r for name, r in rates.items()})
            looked = self.plan.parts(self.system.interconnect) if parts is None else parts
            return {part: heard.intensity.get(part, 0.0) for part in looked}

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

    def own_loads(self, rates: Mapping[str, float], heard: Heard) -> dict[int, float]:
        """Return the load that each site brings to its part."""
        asked: dict[str, float] = {}
        requests = {}
        for site in self.plan.sites:
            requests[site.number] = rates[site.flow] * site.visits * moments_of(site.batch)[0]
            asked[site.part] = asked.get(site.part, 0.0) + requests[site.number]
        return {
            site.number: heard.intensity[site.part] * requests[site.number] / asked[site.part]
            for site in self.plan.sites
            if asked[site.part] > 0
        }

    def _stream(self, site: Site, rate: float) -> Stream:
        batch = site.batch
        size = self.batches.get(site.number, 1.0)
        if size > 1 + 1e-9:
            batch = as_batch(size)
            rate /= moments_of(batch)[0]
        stream = Stream(
            flow=site.flow,
            step=site.step,
            rate=rate,
            batch=batch,
            scv=self.scvs.get(site.number, 1.0),
            write=site.write,
            bytes=site.bytes,
            sources=site.sources,
            peak=self.peaks.get(site.flow, 1.0),
        )
        trials = self.trials.get(site.number)
        return stream if trials is None else replace(stream, trials=trials)

    def _part(self, part: str, streams: tuple[Stream, ...]) -> PartAnswer:
        key = (
            part,
            tuple((id(s.step), s.rate, s.scv, s.batch.tobytes(), s.trials.tobytes()) for s in streams),
        )
        if key not in self.known:
            self.known[key] = respond(part, self.system, streams)
        answer: PartAnswer = self.known[key]
        return answer

    def _network(self, rates: Mapping[str, float]) -> tuple[tuple[Span, ...], Span, PacketAnswer]:
        """Return the times of all legs, of a packet of any, and what the network said."""
        key = ("network", tuple(rates[leg.flow] for leg in self.plan.legs))
        if key not in self.known:
            noc = self.system.network
            together = _packets(self.plan.legs, rates, noc)
            packets = [
                PacketStream(source=s, target=t, rate=rate, flits=f, together=number / rate if rate else 1.0)
                for (s, t, f), (rate, number) in together.items()
            ]
            assert noc is not None
            answer = respond_network(noc, packets)
            spans = dict(
                zip(together, map(Span, answer.mean.tolist(), answer.variance.tolist()), strict=True)
            )
            legs = tuple(_of_leg(leg, spans, noc) for leg in self.plan.legs)
            total = sum(rate for rate, _ in together.values())
            packet = NOTHING
            if total:
                packet = one_of([rate / total for rate, _ in together.values()], list(spans.values()))
            self.known[key] = (legs, packet, answer)
        found: tuple[tuple[Span, ...], Span, PacketAnswer] = self.known[key]
        return found


def _packets(
    legs: tuple[Leg, ...], rates: Mapping[str, float], noc: Any
) -> dict[tuple[int, int, int], tuple[float, float]]:
    """Return by source, target and size the rate of packets, and that times how many come together."""
    found: dict[tuple[int, int, int], tuple[float, float]] = {}
    for leg in legs:
        flits, rate = int(noc.flits(leg.bytes)), max(rates[leg.flow], LEAST) * leg.packets
        for s, t, share in zip(leg.sources.tolist(), leg.targets.tolist(), leg.shares.tolist(), strict=True):
            before, number = found.get((s, t, flits), (0.0, 0.0))
            found[s, t, flits] = before + rate * share, number + rate * share * leg.together
    return found


def _of_leg(leg: Leg, spans: Mapping[tuple[int, int, int], Span], noc: Any) -> Span:
    flits = int(noc.flits(leg.bytes))
    pairs = zip(leg.sources.tolist(), leg.targets.tolist(), strict=True)
    stays = max(1.0 - float(leg.shares.sum()), 0.0)
    return one_of([*leg.shares.tolist(), stays], [*(spans[s, t, flits] for s, t in pairs), NOTHING])


def _named(part: str, intensity: Mapping[str, float]) -> dict[str, float]:
    return {f"{part} {name}".strip(): float(value) for name, value in intensity.items()}
