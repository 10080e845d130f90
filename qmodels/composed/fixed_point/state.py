"""State of the fixed point of a system: rates, responses of parts, and waits at pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq

from qmodels.composed.as_network import arrival_law
from qmodels.composed.couplings.bursts import OnOffSource
from qmodels.composed.couplings.correlated_visits import visit_laws
from qmodels.composed.couplings.pools import Pool, PoolSubnetwork
from qmodels.composed.decomposition import Decomposition, Others, PartResponses
from qmodels.composed.latency import Held, LatencyInputs, LatencyWalk, ProgramLatency
from qmodels.composed.moments import NOTHING, Moments, moments_of
from qmodels.composed.parts.station import copy_shares
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.program_form import ProgramForm, Site, window_of
from qmodels.systems.composed.system import System
from qmodels.systems.laws.phases import HyperExponential
from qmodels.systems.memory.dram_system import DramSystem
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
        return any(isinstance(part, DramSystem) for part in self.system.parts.values())

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
    def visit_laws(self) -> dict[str, Any]:
        """Laws of the visits of each flow to each part."""
        return {name: visit_laws(self.form, root) for name, root in self.form.roots.items()}

    def answers(self, flow: Flow) -> PartResponses:
        """Responses to the jobs of a flow; one of a closed flow does not meet itself."""
        if not flow.closed:
            return self.parts.evaluate(self.rates, met=self.among())
        return self.view(flow, self.seen.get(flow.name, self.rates[flow.name]))

    def view(self, flow: Flow, rate: float) -> PartResponses:
        """Responses if the other jobs of a flow have a rate."""
        local = flow.population / max(len(flow.at), 1)
        # At the copy at one's own place there are only those of that place.
        here = max(local - 1, 0.0) / local * flow.population / max(flow.population - 1, 1)
        own = {**self.rates, flow.name: rate * here}
        answers = self.parts.evaluate({**self.rates, flow.name: rate}, own=own, met=self.among(flow.name))
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

    def among_inside(self, pool: str) -> Others:
        """Return the same for jobs that hold tokens of a pool."""
        return self.among(*dict.fromkeys(take.flow for take in self.takes(pool)))

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
            if share > 0 and pool in self.nested.get(window_of(flow), ())
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
NEARLY_NONE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolWaits:
    """Waits at pools, and responses to jobs that hold their tokens."""

    pools: dict[str, Pool]  # at each pool
    within: Mapping[str, PartResponses]  # what parts answer to jobs that hold tokens of a pool


NO_POOLS = PoolWaits(pools={}, within={})


def walk(
    state: State, flow: Flow, answers: PartResponses, met: PoolWaits
) -> tuple[ProgramLatency, dict[str, Held]]:
    """Latency of a program, and how long it holds the tokens of pools."""
    walking = LatencyWalk(
        state.form,
        LatencyInputs(
            answers=answers,
            within=met.within,
            waits={t.number: met.pools[t.part].wait for t in state.form.takes if t.part in met.pools},
            turning=setup_times(state.form.takes, state.turning, state.times_taken) if state.turning else {},
            own=state.parts.own_loads(state.rates, answers),
            bursty=frozenset(state.parts.sources),
            together=state.parts.batches,
            network=state.system.interconnect,
            rows=state.rows,
        ),
    )
    return walking.latency_of(state.form.roots[flow.name]), walking.held


def pool_waits(state: State, rates: Rates) -> PoolWaits:
    """Find the waits at all pools."""
    return pool_waits_at(state, rates, state.curves)


def pool_waits_at(state: State, rates: Rates, curves: Curves) -> PoolWaits:
    """Find the waits at some pools."""
    pools: dict[str, Pool] = {}
    within: dict[str, PartResponses] = {}
    slower: dict[str, float] = {}
    # Outer ones first: what is inside a window that loses jobs is met at the rate of those that get in.
    inner: dict[str, Rates] = {}
    for name in reversed([name for name in state.nested if name in curves]):
        here = inner.get(name, rates)
        taken = state.taken(name, here)
        if taken <= 0:
            continue
        # Fewer are inside an outer pool than would come to this one.
        outer = min((slower[each] for each in slower if name in state.nested[each]), default=1.0)
        pool = curves[name](taken * outer)
        pool = replace(pool, taken=taken, busy=min(pool.busy / outer, 1.0))
        if name in state.stays:
            pool = pool.staying(state.stays[name])
        pool = _paid_once(state, name, pool)
        pools[name] = pool
        if state.loses(name):
            factor = max(state.subnetworks[name].rate_at(pool.hold) / taken, NEARLY_NONE)
            scaled = state.scaled(name, here, factor)
            within[name] = state.parts_inside(name).evaluate(scaled, met=state.among_inside(name))
            own = {take.flow: scaled[take.flow] for take in state.takes(name)}
            inner |= {each: {**inner.get(each, rates), **own} for each in state.nested[name]}
            continue
        if state.all_closed(name):
            factor = state.subnetworks[name].rate_at(pool.hold) / taken
        else:
            factor = slower[name] = outer * slowdown(state, name, state.scaled(name, here, outer), pool.hold)
        others = state.among_inside(name)
        come = state.let_in(name, state.scaled(name, here, factor))
        within[name] = state.parts.evaluate(come, met=others)
        if state.all_closed(name):
            within[name] = state.answers_inside(name, within[name], factor * taken)
    met = PoolWaits(pools=pools, within=within)
    for name in pools:
        if state.loses(name):
            _make_up(state, name, met)
    return met


def _paid_once(state: State, name: str, pool: Pool) -> Pool:
    """Return a pool at which bursts do not wait again for what they have waited on their way."""
    if not state.parts.sources or not 0 < pool.wait.mean < INF:
        return pool
    paid = state.parts.evaluate(state.rates, met=state.among()).paid
    takes = state.takes(name)
    total = sum(map(state.times_taken, takes))
    before = sum(
        state.times_taken(take) * paid.get(take.number, 0.0)
        for take in takes
        if take.flow in state.parts.sources
    )
    if before <= 0 or total <= 0:
        return pool
    left = max(pool.wait.mean - before / total, 0.0) / pool.wait.mean
    return replace(pool, wait=pool.wait.stretched(left))


def _make_up(state: State, pool: str, met: PoolWaits) -> None:
    """Let jobs wait so long at the first pool inside a window that they stay there as long as it says.

    A stream that would stay as long is found in a table, which is not exact.
    """
    (take,) = state.takes(pool)
    first = next((site.part for site in state.form.takes if site.part in state.nested[pool]), None)
    if first not in met.pools:
        return
    flow = state.system.flow(take.flow)
    program, _ = walk(state, flow, state.poisson.evaluate(state.rates, met=state.among(flow.name)), met)
    visits = state.taken(first, {**state.rates, flow.name: 1.0})
    wait = met.pools[first].wait
    longer = wait.mean + (met.pools[pool].hold - program.span.mean) / visits
    if wait.mean > 0 and longer > 0:
        met.pools[first] = replace(met.pools[first], wait=wait.stretched(longer / wait.mean))


def latency_of(
    state: State, flow: Flow, answers: PartResponses | None = None, met: PoolWaits | None = None
) -> ProgramLatency:
    """Latency of a program."""
    met = pool_waits(state, state.rates) if met is None else met
    answers = state.answers(flow) if answers is None else answers
    program = walk(state, flow, answers, met)[0]
    # Jobs of a fixed number find no more at a visit than there are.
    more = 0.0 if flow.closed else _persistence(state, flow, answers)
    return replace(program, span=program.span + Moments(0.0, more)) if more > 0 else program


def _persistence(state: State, flow: Flow, answers: PartResponses) -> float:
    """Return the variance that is added since a job finds much the same queue at each of its visits.

    In heavy traffic a queue does not change while a job is there (the snapshot principle: M. I. Reiman, "The
    heavy traffic diffusion approximation for sojourn times in Jackson networks", 1982), in light traffic
    visits are independent; between them in proportion to the load.
    """
    added = 0.0
    for part, law in state.visit_laws[flow.name].items():
        station = state.system.parts[part]
        sites = [site for site in state.sites_of(flow.name) if site.part == part]
        alone = all(not site.branched and site.batch.size <= 2 for site in sites)
        found = [answers.responses.get(site.number) for site in sites]
        if not (isinstance(station, Station) and station.discipline == "fifo" and alone and all(found)):
            continue
        service: Any = station.service_law(flow.name)
        own = float(service.scv) * float(service.mean) ** 2
        waits = [max(each.variance - own, 0.0) for each in found if each is not None]
        if any(each is not None and each.late.mean > 0 for each in found) or not np.isfinite(waits).all():
            continue
        visits = np.array([site.visits for site in sites])
        numbers = np.arange(law.size)
        pairs = float(law @ (numbers * (numbers - 1)))
        added += (
            min(answers.intensity[part], 1.0) * pairs * float(visits @ waits) / max(visits.sum(), NEARLY_NONE)
        )
    return added


def held_inside(state: State, pool: str, answers: PartResponses, met: PoolWaits) -> dict[str, float]:
    """Mean time that a token of a pool is held, by part."""
    flows = {take.flow for take in state.takes(pool)}
    taken, each = state.taken(pool, state.rates), state.tokens_each(pool)
    times: dict[str, float] = {}
    for name in sorted(flows):
        held = walk(state, state.system.flow(name), answers, met)[1].get(pool, Held())
        for part, time in held.parts.items():
            share = state.rates[name] / taken / each
            times[part] = times.get(part, 0.0) + (share * time if share else 0.0)
    return times


def held_without_pool(state: State, pool: str, rate: float) -> float:
    """Mean time that a token would be held if there were tokens for all, taken at a rate."""
    rates = state.scaled(pool, state.rates, rate / state.taken(pool, state.rates))
    met = pool_waits_at(state, rates, inner_curves(state, pool))
    answers = state.parts.evaluate(state.let_in(pool, rates), met=state.among_inside(pool))
    return sum(held_inside(state, pool, answers, met).values())


def slowdown(state: State, pool: str, rates: Rates, hold: float) -> float:
    """Return by which factor the rates of jobs are lower that would be inside so long without a pool."""
    taken = state.taken(pool, rates)
    others = tuple(state.among_inside(pool).items())
    now = (
        tuple(rates.items()),
        others,
        tuple(state.parts.scvs.items()),
        tuple(state.parts.batches.items()),
    )
    key = ("factor", pool, hold, *now)
    if key not in state.known:

        def beyond(factor: float) -> float:
            time = held_without_pool(state, pool, factor * taken)
            return (1 / time if time > 0 else INF) - 1 / hold

        if hold <= 0 or beyond(1.0) >= -1e-9 / hold:
            state.known[key] = 1.0
        elif beyond(1e-9) <= 0:
            state.known[key] = 1e-9
        else:
            state.known[key] = float(brentq(beyond, 1e-9, 1.0, xtol=1e-7))
    found: float = state.known[key]
    return found


def inner_curves(state: State, pool: str) -> dict[str, Callable[[float], Pool]]:
    """Curves of the pools inside a pool."""
    return {name: state.curves[name] for name in state.nested[pool] if name in state.curves}


def setup_times(
    takes: Sequence[Site], pools: dict[str, Tokens], rate_of: Callable[[Site], float]
) -> dict[int, Moments]:
    r"""Return the time that the tokens of each take need to turn, by its number.

    ``takes``: where programs take tokens; ``pools``: those whose tokens turn; ``rate_of``: how often a take
    is done [1/ns].

    A token was last used as any of its pool is, at random: a take turns it with :math:`1 - p`, p being the
    share of the takes of its own use. Where several tokens are free one of its own use is preferred, and
    programs that alternate turn theirs more often than at random: neither is seen.
    """
    found = {}
    for take in takes:
        if take.part in pools:
            beside = [other for other in takes if other.part == take.part]
            total = sum(map(rate_of, beside))
            same = sum(rate_of(other) for other in beside if other.step.use == take.step.use)
            time, share = pools[take.part].turning, 1 - same / total if total > 0 else 0.0
            found[take.number] = (
                Moments(share * time, share * (1 - share) * time**2) if share > 0 else NOTHING
            )
    return found
