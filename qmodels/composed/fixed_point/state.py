"""State of the fixed point of a system: rates, responses of parts, and what is known of pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from qmodels.composed.as_network import arrival_law
from qmodels.composed.couplings.bursts import OnOffSource
from qmodels.composed.couplings.correlated_visits import visit_laws
from qmodels.composed.couplings.pools import Pool, PoolSubnetwork
from qmodels.composed.decomposition import LEAST, Decomposition, Others, PartResponses
from qmodels.composed.moments import moments_of
from qmodels.composed.parts.station import copy_shares
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.program_form import ProgramForm, Site, window_of
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import HyperExponential
from qmodels.systems.stations.parts import Station

INF = float("inf")

Rates = Mapping[str, float]
Curves = Mapping[str, Callable[[float], Pool]]
"""What is met at pools by the rate at which their tokens are taken."""


@dataclass(eq=False)
class State:
    """State of a round of the fixed point."""

    system: System  # the system
    form: ProgramForm  # its programs
    parts: Decomposition  # its parts
    # What flows and pools are called that are parts of one, see `qmodels.composed.by_place`.
    names: Mapping[str, str] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)  # jobs of each flow that begin [1/ns]
    # Of a closed flow, the rate of its jobs that one of them meets [1/ns].
    seen: dict[str, float] = field(default_factory=dict)
    # Of a closed flow, the time its jobs wait beyond what parts answer, where they alone fill one [ns].
    extra: dict[str, float] = field(default_factory=dict)
    # Of flows of which only so many jobs are there, how many are at each part.
    numbers: dict[str, dict[str, float]] = field(default_factory=dict)
    # At which rates they are met at parts, by those of a closed flow and, under "", by all others.
    met: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)
    # Time that jobs stay at pools that are a region of a closed flow [ns].
    stays: dict[str, float] = field(default_factory=dict)
    # Share of the jobs of each flow that come to its end.
    ending: dict[str, float] = field(default_factory=dict)
    # Share of its rate that others leave to a flow of a limited number of jobs.
    room: dict[str, float] = field(default_factory=dict)
    subnetworks: dict[str, PoolSubnetwork] = field(default_factory=dict)  # the inside of each pool
    # What is met at each pool, by the rate at which its tokens are taken.
    curves: dict[str, Callable[[float], Pool]] = field(default_factory=dict)
    # How long a job alone holds a token of each pool [ns].
    lone: dict[str, float] = field(default_factory=dict)
    # By which share of them the numbers go up and down in the last rounds, where they did not settle.
    wavers: float = 0.0
    # Answers that stay the same while what they depend on does.
    known: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = {flow.name: source_of(flow) for flow in self.system.flows}
        self.parts.sources = {name: source for name, source in found.items() if source is not None}

    @cached_property
    def identical(self) -> list[tuple[Flow, list[str]]]:
        """The closed flows, and the names of others like each, which go round as it does."""
        found: list[tuple[Flow, list[str]]] = []
        for flow in self.system.flows:
            like = [others for first, others in found if replace(flow, name=first.name) == first]
            if like:
                like[0].append(flow.name)
            elif flow.closed:
                found.append((flow, []))
        return found

    @cached_property
    def nested(self) -> dict[str, set[str]]:
        """The pools, those inside others first, and what is inside of each."""
        return self.form.pools

    @cached_property
    def in_branches(self) -> set[str]:
        """The pools that branches or copies of a job take from."""
        return {take.part for take in self.form.takes if take.branched}

    @cached_property
    def leaves_traces(self) -> bool:
        """Whether there are parts that a job finds as others have left them though it meets none."""
        return bool(self.parts.with_traces)

    @cached_property
    def poisson(self) -> Decomposition:
        """The parts as they answer to jobs inside a pool, whose arrival is counted there."""
        return Decomposition(self.system, self.form, with_refresh_batches=False, known=self.parts.known)

    def all_closed(self, pool: str) -> bool:
        """Return whether only jobs that go round take tokens of a pool."""
        return all(self.system.flow(take.flow).closed for take in self.takes(pool))

    def parts_inside(self, pool: str) -> Decomposition:
        """Parts as jobs inside a pool meet them."""
        return self.parts if self.all_closed(pool) else self.poisson

    @cached_property
    def asked_inside(self) -> dict[str, frozenset[str] | None]:
        """Parts that jobs ask which hold tokens of each pool; None, all, if others change what these meet."""
        if self.parts.sources or self.leaves_traces:
            return dict.fromkeys(self.nested)
        network = self.system.interconnect
        inside = {pool: self.form.parts_inside(pool, network) for pool in self.nested}
        every = set(self.form.parts(network))
        return {pool: frozenset(parts) if parts < every else None for pool, parts in inside.items()}

    @cached_property
    def visit_laws(self) -> dict[str, Any]:
        """Laws of the visits of each flow to each part."""
        return {name: visit_laws(self.form, root) for name, root in self.form.roots.items()}

    def answers(self, flow: Flow) -> PartResponses:
        """Responses to the jobs of a flow; one of a closed flow does not meet itself."""
        if not flow.closed:
            return self.parts.evaluate(self.rates, met=self.among())
        return self.view(flow, self.seen.get(flow.name, self.rates[flow.name]))

    def view(self, flow: Flow, rate: float, *, traces: bool = False) -> PartResponses:
        """Responses if the other jobs of a flow have a rate; ``traces``: of parts that they leave some in."""
        local = flow.population / max(len(flow.at), 1)
        # At the copy at one's own place there are only those of that place.
        here = max(local - 1, 0.0) / local * flow.population / max(flow.population - 1, 1)
        own = {**self.rates, flow.name: rate * here}
        rates, others = {**self.rates, flow.name: rate}, self.among(flow.name)
        parts = self.parts.with_traces if traces else None
        answers = self.parts.evaluate(rates, own=own, met=others, parts=parts)
        return answers.limited(self.sites_of(flow.name), self.rates, flow.population)

    def count(self, flow: str, numbers: Mapping[str, float]) -> None:
        """Keep how many jobs of a flow are at parts: lest rounds take turns, the mean with the last one's.

        Where nothing changes much they are taken as they are.
        """
        last = {part: number for part, number in self.numbers.get(flow, {}).items() if 0 <= number < INF}
        known = {part: number for part, number in numbers.items() if part in last and number < INF}
        if any(abs(number - last[part]) > MUCH * last[part] for part, number in known.items()):
            numbers = {**numbers, **{part: (number + last[part]) / 2 for part, number in known.items()}}
        self.numbers[flow] = dict(numbers)

    def among(self, *flows: str) -> Others:
        """Return at which rates jobs of others are met by those of some flows."""
        known = self.met.get(flows[0] if len(flows) == 1 else "", self.met.get("", {}))
        return {key: rate for key, rate in known.items() if key[0] not in flows}

    def among_inside(self, pool: str, rates: Rates | None = None) -> Others:
        r"""Return the same for jobs that hold tokens of a pool, which come in at the rates given.

        Where the number of those that are met is fixed, and not their rate, they yield to those who come in:
        their load is :math:`q (1 - \rho) / (1 + q)`, :math:`\rho` being that of all others and q their load
        now over what is left. Between both by the power `_fixed`.
        """
        met = self.among(*dict.fromkeys(take.flow for take in self.takes(pool)))
        parts = {part for _, part in met} & {site.part for site in self.sites_inside(pool)}
        if rates is None or not parts or self.all_closed(pool):
            return met
        everyone = self.parts.loads(self.rates, parts, self.among())
        none = dict.fromkeys(met, 0.0)
        others = self.parts.loads(self.rates, parts, {**self.among(), **none})
        come = self.parts.loads(rates, parts, none)
        factor = {}
        for part in parts:
            load = everyone[part] - others[part]
            if load > 0 and everyone[part] < 1:
                number = load / (1 - everyone[part])
                factor[part] = number * max(1 - come[part], 0.0) / (1 + number) / load
        return {
            (name, part): rate * factor.get(part, 1.0) ** self._fixed(name, part)
            for (name, part), rate in met.items()
        }

    def _fixed(self, name: str, part: str) -> float:
        """Return 1 less the elasticity of the number of a flow at a part by the time that it takes there.

        Of a closed flow the share of its jobs that are there; jobs of windows come at their rate.
        """
        population = self.system.flow(name).population
        number = self.numbers.get(name, {}).get(part, 0.0)
        return min(max(number / population, 0.0), 1.0) if population else 0.0

    def sites_of(self, flow: str) -> list[Site]:
        """Return where a flow asks."""
        return [site for site in self.form.sites if site.flow == flow]

    def answers_inside(self, pool: str, answers: PartResponses, rate: float) -> PartResponses:
        """Responses to jobs that hold tokens of a pool, taken at a rate besides by oneself."""
        if not self.leaves_traces:
            return answers
        flows = {take.flow: self.rates[take.flow] for take in self.takes(pool)}
        taken, alone = self.taken(pool, self.rates), self.lone.get(pool, 0.0)
        if taken <= 0 or alone <= 0:
            return answers
        jobs: float = self.tokens(pool) * (self.system.copies(pool) if pool in self.system.parts else 1)
        factor = (rate + 1 / alone) / taken
        if self.all_closed(pool):
            jobs, factor = min(jobs, self.visitors(pool)), 1.0
        rates = {name: each * factor for name, each in flows.items()}
        return answers.limited(self.sites_inside(pool), rates, jobs)

    def sites_inside(self, pool: str) -> list[Site]:
        """Return where jobs ask that hold tokens of a pool."""
        return [site for site in self.form.sites if pool in site.held]

    @cached_property
    def rows(self) -> dict[int, tuple[float, float]]:
        """Of each leg, how long a packet keeps a channel busy [ns], and how many leave together."""
        noc = self.system.network
        if noc is None:
            return {}
        return {
            number: (noc.flits(leg.bytes) / noc.clock_ghz * float(leg.pairs[2].sum()), leg.together)
            for number, leg in enumerate(self.form.legs)
        }

    @cached_property
    def turning(self) -> dict[str, Tokens]:
        """The pools whose tokens take time to turn."""
        return {
            name: self.system.parts[name] for name in self.system.turning if self.system.parts[name].turning
        }

    def times_taken(self, take: Site) -> float:
        """Rate of an acquisition. [1/ns]."""
        return self.rates[take.flow] * take.visits * take.mean_batch

    def takes(self, pool: str) -> list[Site]:
        """Return where tokens of a pool are taken."""
        return [take for take in self.form.takes if take.part == pool]

    def shared(self, pool: str) -> set[str]:
        """Return the flows of limited number at a pool to which others come as well, and not all are closed.

        A flow is limited that is closed, or outside of whose window the pool is not.
        """
        flows = {take.flow for take in self.takes(pool)}
        if len(flows) == 1 or self.all_closed(pool):
            return set()
        return {f for f in flows if self.system.flow(f).closed or pool in self.nested.get(window_of(f), ())}

    def takers(self, pool: str, rates: Rates) -> Rates:
        """Return the rates of the flows that take tokens of a pool."""
        return {take.flow: rates[take.flow] for take in self.takes(pool)}

    def met_varied(self, pool: str, rates: Rates, varied: Rates) -> Rates:
        """Return rates at which flows are met at a pool: those of limited number as others meet them.

        ``varied``: rates of flows that are looked at themselves, and are met as streams.
        """
        limited = self.shared(pool)
        if not limited:
            return rates
        known = self.met.get("", {})
        return {**rates, **{f: known.get((f, pool), rates[f]) for f in limited}, **varied}

    def pool_limit(self, pool: str, flows: set[str]) -> float:
        """Return by which factor the rates of some flows may grow until a pool is full."""
        met = self.met_varied(pool, self.rates, {name: self.rates[name] for name in flows})
        rest = self.taken(pool, {name: 0.0 if name in flows else rate for name, rate in met.items()})
        mine = self.taken(pool, {name: rate if name in flows else 0.0 for name, rate in met.items()})
        if mine <= 0:
            return INF
        return max(self.curves[pool](rest + mine).most - rest, 0.0) / mine

    def taken(self, pool: str, rates: Rates) -> float:
        """Rate at which tokens of a pool are taken. [1/ns]."""
        return sum(rates[t.flow] * t.visits * t.mean_batch for t in self.takes(pool))

    def scaled(self, pool: str, rates: Rates, factor: float) -> dict[str, float]:
        """Return rates with those of the flows that take tokens of a pool multiplied by a factor."""
        flows = {take.flow for take in self.takes(pool)}
        return {name: rate * factor if name in flows else rate for name, rate in rates.items()}

    def let_in(self, pool: str, rates: Rates) -> Rates:
        """Return rates at which parts meet jobs inside a pool as many as these, those that were lost counted.

        Parts take the share of them that a window lets in; what is inside it is looked at by those who are.
        """
        lossy = {
            flow: share
            for flow, share in self.parts.entering.items()
            if share > 0 and pool in {window_of(flow), *self.nested.get(window_of(flow), ())}
        }
        return {name: rate / lossy.get(name, 1.0) for name, rate in rates.items()} if lossy else rates

    def tokens_each(self, pool: str) -> float:
        """Mean number of tokens taken at once."""
        total = self.taken(pool, self.rates)
        each = (self.rates[t.flow] * t.visits * t.mean_batch * t.step.tokens for t in self.takes(pool))
        return sum(each) / total if total > 0 else float(self.takes(pool)[0].step.tokens)

    def tokens(self, pool: str) -> int:
        """Most jobs that hold tokens of one copy of a pool."""
        if pool not in self.system.parts:
            return next(flow.window for flow in self.system.flows if window_of(flow.name) == pool)
        return max(int(self.system.parts[pool].count / self.tokens_each(pool) + 1e-9), 1)

    def servers(self, flows: set[str]) -> dict[str, int]:
        """Return the servers of stations of several that only these flows come to, at one place."""
        found = {}
        for name, part in self.system.parts.items():
            if isinstance(part, Station) and 1 < part.servers < INF and self.system.copies(name) == 1:
                if all(site.flow in flows for site in self.form.sites if site.part == name):
                    found[name] = int(part.servers)
        return found

    def ends(self, parts: Decomposition, flows: set[str], met: Others) -> dict[str, float]:
        """Return the factors of the rates of some flows at which stations of one server are full."""
        asked = dict.fromkeys(site.part for site in self.form.sites if site.flow in flows)
        single = [
            name
            for name in asked
            if isinstance(part := self.system.parts[name], Station)
            and part.servers == 1
            and self.system.copies(name) == 1
        ]
        rates = {name: max(rate, LEAST) if name in flows else rate for name, rate in self.rates.items()}
        return {name: parts.limit(rates, flows, [name], met) for name in single}

    def local_servers(self, flows: set[str]) -> dict[str, int]:
        """Return the servers of the stations at their place, to which no others come."""
        found = {}
        for name, part in self.system.parts.items():
            sites = [site for site in self.form.sites if site.part == name]
            mine = [site.flow in flows for site in sites]
            if not isinstance(part, Station) or part.servers == INF or not any(mine):
                continue
            if all(site.own for site in sites if site.flow in flows) and self.system.copies(name) > 1:
                used = copy_shares(self.system.place[name], sites) > 0
                own = used[:, mine].any(axis=1)
                if not used[own][:, ~np.array(mine)].any():
                    found[name] = int(part.servers)
        return found

    def loses(self, pool: str) -> bool:
        """Return whether a pool is a window that loses jobs."""
        return any(flow.loses and pool == window_of(flow.name) for flow in self.system.flows)

    def visitors(self, pool: str) -> float:
        """Most closed jobs, or copies of them, at a pool."""
        takes, jobs = self.takes(pool), 0.0
        for take in takes:
            at_once = max(moments_of(take.batch)[0], moments_of(take.copies)[0])
            jobs += self.system.flow(take.flow).population * at_once / sum(t.flow == take.flow for t in takes)
        return jobs


def begun_scv(flow: Flow) -> float:
    """Return the squared coefficient of variation of the times between jobs that begin, within bursts."""
    return 1.0 if flow.closed or source_of(flow) else float(flow.arrivals.scv)  # type: ignore[union-attr]


def source_of(flow: Flow) -> OnOffSource | None:
    """Return the bursts in which the jobs of a flow begin, None if it has none that are known."""
    law = None if flow.closed else arrival_law(flow)
    if not isinstance(law, HyperExponential) or len(law.means) != 2:
        return None
    peak = sum(p / m for p, m in zip(law.probabilities, law.means, strict=True)) / float(flow.mean_rate)
    excess = float(law.scv) - 1
    if peak <= 1 + LEAST_EXCESS or excess < LEAST_EXCESS:
        return None
    return OnOffSource(peak, excess / (2 * (1 - 1 / peak) ** 2))


MUCH = 0.3
"""Share of a number by which it changes much from round to round."""
LEAST_EXCESS = 1e-6
"""Peak over the mean rate, and SCV, above 1 below which there are no bursts."""
