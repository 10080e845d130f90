"""The fixed point of a system: rates of flows, what parts answer to them, waits for tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from qmodels.composed.as_network import arrival_law, nodes_of
from qmodels.composed.asking import Asking, Heard
from qmodels.composed.couplings.busy_banks import trials_of
from qmodels.composed.couplings.closed import closed_rate, see
from qmodels.composed.couplings.full_windows import (
    entering,
    limit_inside,
    lossy_pool,
    make_up,
    speeds_inside,
)
from qmodels.composed.couplings.going_round import profile_of
from qmodels.composed.couplings.losses import losses_of, surviving
from qmodels.composed.couplings.pools import ClosedPool, Inside, Pool, open_pool
from qmodels.composed.couplings.revisits import effective_scv, visit_laws
from qmodels.composed.couplings.siblings import Siblings
from qmodels.composed.couplings.turning import turning_of
from qmodels.composed.moments import moments_of
from qmodels.composed.nesting import asked_inside, pools_inside
from qmodels.composed.parts.bursty import bursts_of
from qmodels.composed.passage import Held, Surroundings, Walk
from qmodels.composed.plan import Plan, Series, Site, Take
from qmodels.composed.planning import window_of
from qmodels.composed.times import Passage
from qmodels.composed.variability import scvs_of
from qmodels.markov.processes.phase_type_fit import ph_from_moments
from qmodels.numerics.secant import Secant
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.system import System
from qmodels.systems.laws.kinds import phase_type, scaled
from qmodels.systems.laws.phases import HyperExponential, PhaseType
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station

INF = float("inf")
NEARLY_NONE = 1e-9
MOST_PHASES = 8
"""Of the law of the times between jobs that come to a pool."""
DIGITS = 5
"""Significant digits of what passes from part to part of variability."""
ROUNDS = 60
TOLERANCE = 1e-6
"""Relative change of the rates and variabilities of a round at which they are settled."""

STEADY = 6
"""Rounds in which the numbers may go up and down a little, as where jobs see tables of times."""
GOOD = 2e-3
"""Relative size of that; the mean counts then."""

Rates = Mapping[str, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Met:
    """What is met at pools.

    Parameters
    ----------
    pools : dict of str to Pool
        At each pool.
    within : mapping of str to Heard
        What parts answer to jobs that hold tokens of a pool.
    """

    pools: dict[str, Pool]
    within: Mapping[str, Heard]


NO_POOLS = Met(pools={}, within={})


@dataclass(eq=False)
class State:
    """What is known of a system in a round of the fixed point.

    Parameters
    ----------
    system : System
        The system.
    plan : Plan
        Its programs.
    asking : Asking
        Its parts.
    rates : dict of str to float
        Jobs of each flow that begin. [1/ns]
    seen : dict of str to float
        Of a closed flow, the rate of its jobs that one of them meets. [1/ns]
    extra : dict of str to float
        Of a closed flow, the time its jobs wait beyond what parts answer, where they alone fill one. [ns]
    """

    system: System
    plan: Plan
    asking: Asking
    rates: dict[str, float] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
    stays: dict[str, float] = field(default_factory=dict)
    ending: dict[str, float] = field(default_factory=dict)
    insides: dict[str, Inside] = field(default_factory=dict)
    curves: dict[str, Callable[[float], Pool]] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.asking.peaks = {flow.name: peak_of(flow) for flow in self.system.flows}

    def settle(self) -> int:
        """Find the fixed point; return the rounds it took.

        Raises
        ------
        RuntimeError
            If it is not found.
        """
        for flow in self.system.flows:
            self.rates[flow.name] = 0.0 if flow.closed else float(flow.mean_rate)
        self._go_round(0.5)
        old, recent, secant = self._numbers(), list[list[float]](), Secant()
        for count in range(1, ROUNDS + 1):
            asked = np.array([*self.rates.values()])
            for pool in self.nested:
                self._learn(pool)
            self._go_round()
            self._vary(0.5 if count > 10 else 1.0)
            new = self._numbers()
            old[: asked.size] = asked.tolist()
            recent = [*recent[1 - STEADY :], new]
            if self._steady(recent):
                old = new = np.mean(recent, axis=0).tolist()
                self.rates |= dict(zip(self.rates, new, strict=False))
            if len(new) == len(old) and np.allclose(new, old, rtol=TOLERANCE, atol=0):
                for flow, others in self.alike:
                    see(self, flow)
                    for name in others:
                        self.seen[name], self.extra[name] = self.seen[flow.name], self.extra[flow.name]
                return count
            old = new
            following = secant.after(asked, np.array([*self.rates.values()]))
            self.rates = dict(zip(self.rates, following.tolist(), strict=True))
        raise RuntimeError(
            f"the system did not settle in {ROUNDS} rounds (rates {self.rates!r}); simulate it"
        )

    def _go_round(self, share: float = 1.0) -> None:
        """Find the rates of closed flows, one after the other."""
        for flow, others in self.alike:
            before, rate = self.rates[flow.name], closed_rate(self, flow) * share
            # Each of several leaves room for the others, one after the other.
            rate = before + (rate - before) / (len(others) + 1) if before > 0 else rate
            self.rates |= dict.fromkeys((flow.name, *others), rate)

    @cached_property
    def alike(self) -> list[tuple[Flow, list[str]]]:
        """The closed flows, and the names of others like each, which go round as it does."""
        found: list[tuple[Flow, list[str]]] = []
        for flow in self.system.flows:
            like = [others for first, others in found if replace(flow, name=first.name) == first]
            if like:
                like[0].append(flow.name)
            elif flow.closed:
                found.append((flow, []))
        return found

    def _steady(self, recent: list[list[float]]) -> bool:
        """Return whether the numbers of the last rounds go up and down by less than answers are good for."""
        if len(recent) < STEADY or len({len(one) for one in recent}) > 1:
            return False
        spread = np.ptp(recent, axis=0) / np.maximum(np.abs(recent).max(axis=0), 1e-12)
        steps = np.diff(recent, axis=0)
        wavers = (steps.max(axis=0) > 0) & (steps.min(axis=0) < 0)
        return bool(spread.max() <= GOOD and np.all(wavers | (spread <= TOLERANCE)))

    def _numbers(self) -> list[float]:
        passed_on = (
            each.values() for one in (self.asking, self.calm) for each in (one.scvs, one.batches, one.coming)
        )
        return [*self.rates.values(), *(number for some in passed_on for number in some)]

    @cached_property
    def nested(self) -> dict[str, set[str]]:
        """The pools, those inside others first, and what is inside of each."""
        return pools_inside(self.plan)

    def _vary(self, weight: float) -> None:
        """Let variability pass through the programs once more."""
        self._pass_on(self.asking, weight, begun_scv)
        if any(flow.loses for flow in self.system.flows) or any(
            isinstance(part, FreeList) or getattr(part, "capacity", INF) < INF
            for part in self.system.parts.values()
        ):
            self._lose()
        if any(not self.system.flow(take.flow).closed for take in self.plan.takes):
            self._pass_on(self.calm, weight, None)

    def _lose(self) -> None:
        """Find the trials of allocations, and the jobs that are lost."""
        heard = self.asking.at(self.rates)
        self.asking.trials = trials_of(self.system, self.plan, self.rates, heard)
        times = {flow.name: self.passage(flow).span.mean for flow in self.system.flows}
        losses = losses_of(self.system, self.plan, self.asking, heard, times)
        self.asking.coming, self.ending = surviving(self.plan, losses, entering(self))
        # Inside a window the jobs that are lost in front of it are not counted.
        self.calm.coming, _ = surviving(self.plan, losses, {})
        self.calm.trials = self.asking.trials

    def _pass_on(self, asking: Asking, weight: float, begun: Callable[[Flow], float] | None) -> None:
        """Pass variability on; without what begins it, as where jobs go round, arrivals are by chance."""
        heard = asking.at(self.rates)
        scvs, batches = dict(asking.scvs), dict(asking.batches)
        for flow in self.system.flows:
            root = self.plan.roots[flow.name]
            for number, size in Siblings(self.system, heard.responses).find(root).items():
                batches[number] = _rounded(weight * size + (1 - weight) * batches.get(number, size))
            if begun is None:
                continue
            found, _ = scvs_of(root, begun(flow), heard.responses, asking.raised)
            for number, plain in found.items():
                scv = self._revisited(flow.name, number, plain)
                asking.raised[number] = max(scv / plain, 1.0) if plain > 0 else 1.0
                scvs[number] = _rounded(weight * scv + (1 - weight) * scvs.get(number, scv))
        asking.scvs, asking.batches = scvs, batches

    @cached_property
    def leaves_traces(self) -> bool:
        """Whether there are parts that a job finds as others have left them though it meets none."""
        return any(isinstance(part, DramSystem) for part in self.system.parts.values())

    @cached_property
    def calm(self) -> Asking:
        """The parts as they answer to jobs inside a pool, whose arrival is counted there."""
        return Asking(self.system, self.plan)

    def _all_closed(self, pool: str) -> bool:
        return all(self.system.flow(take.flow).closed for take in self.takes(pool))

    def asking_inside(self, pool: str) -> Asking:
        """Return what to ask for jobs that go round inside a pool."""
        return self.asking if self._all_closed(pool) else self.calm

    def _revisited(self, flow: str, number: int, scv: float) -> float:
        """Return the variability of visits to a station by jobs that come several times."""
        part = self.plan.sites[number].part
        station = self.system.parts[part]
        if not isinstance(station, Station):
            return scv
        law: Any = station.service_law(flow)
        return effective_scv(
            scv=scv,
            service_scv=float(law.scv),
            law=self._visit_laws[flow][part],
            sharing=station.discipline == "sharing",
        )

    @cached_property
    def _visit_laws(self) -> dict[str, Any]:
        return {name: visit_laws(root) for name, root in self.plan.roots.items()}

    def heard(self, flow: Flow) -> Heard:
        """Return what parts answer to the jobs of a flow; one of a closed flow does not meet itself."""
        if not flow.closed:
            return self.asking.at(self.rates)
        return self.view(flow, self.seen.get(flow.name, self.rates[flow.name]))

    def view(self, flow: Flow, rate: float) -> Heard:
        """Return what parts answer if the jobs of a flow, others than one's own, have a rate."""
        local = flow.population / max(len(flow.at), 1)
        # At the copy at one's own place there are only those of that place.
        here = max(local - 1, 0.0) / local * flow.population / max(flow.population - 1, 1)
        return self.asking.at({**self.rates, flow.name: rate}, own={**self.rates, flow.name: rate * here})

    def met(self, rates: Rates) -> Met:
        """Return what is met at the pools."""
        return self.met_at(rates, self.curves)

    def met_at(self, rates: Rates, curves: Mapping[str, Callable[[float], Pool]]) -> Met:
        """Return what is met at some pools."""
        pools: dict[str, Pool] = {}
        within: dict[str, Heard] = {}
        slower: dict[str, float] = {}
        # Outer ones first: what is inside a window that loses jobs is met at the rate of those that get in.
        inner: dict[str, Rates] = {}
        for name in reversed([name for name in self.nested if name in curves]):
            here = inner.get(name, rates)
            taken = self.taken(name, here)
            if taken <= 0:
                continue
            # Fewer are inside an outer pool than would come to this one.
            outer = min((slower[each] for each in slower if name in self.nested[each]), default=1.0)
            pool = curves[name](taken * outer)
            pool = replace(pool, taken=taken, busy=min(pool.busy / outer, 1.0))
            if name in self.stays:
                pool = pool.staying(self.stays[name])
            pools[name] = pool
            if self.loses(name):
                factor = max(self.insides[name].rate_at(pool.hold) / taken, NEARLY_NONE)
                scaled = self.scaled(name, here, factor)
                within[name] = self.asking_inside(name).at(scaled)
                inner |= dict.fromkeys(self.nested[name], scaled)
                continue
            if self._all_closed(name):
                factor = self.insides[name].rate_at(pool.hold) / taken
            else:
                factor = slower[name] = outer * self._factor(name, self.scaled(name, here, outer), pool.hold)
            within[name] = self.asking.at(self.scaled(name, here, factor))
        met = Met(pools=pools, within=within)
        for name in pools:
            if self.loses(name):
                make_up(self, name, met)
        return met

    def passage(self, flow: Flow, heard: Heard | None = None, met: Met | None = None) -> Passage:
        """Return what a program takes."""
        met = self.met(self.rates) if met is None else met
        return self.walk(flow, self.heard(flow) if heard is None else heard, met)[0]

    def walk(self, flow: Flow, heard: Heard, met: Met) -> tuple[Passage, dict[str, Held]]:
        """Return what a program takes, and how long it holds the tokens of pools."""
        walk = Walk(
            Surroundings(
                heard=heard,
                within=met.within,
                waits={t.number: met.pools[t.part].wait for t in self.plan.takes if t.part in met.pools},
                turning=turning_of(self.plan.takes, self._turning, self._times_taken)
                if self._turning
                else {},
                own=self.asking.own_loads(self.rates, heard),
                together=self.asking.batches,
                network=self.system.interconnect,
                rows=self._rows,
            )
        )
        return walk.through(self.plan.roots[flow.name]), walk.held

    @cached_property
    def _rows(self) -> dict[int, tuple[float, float]]:
        """Of each leg, how long a packet keeps a channel busy [ns], and how many leave together."""
        noc = self.system.network
        if noc is None:
            return {}
        return {
            number: (noc.flits(leg.bytes) / noc.clock_ghz * float(leg.shares.sum()), leg.together)
            for number, leg in enumerate(self.plan.legs)
        }

    @cached_property
    def _turning(self) -> dict[str, Tokens]:
        """The pools whose tokens take time to turn."""
        return {
            name: self.system.parts[name] for name in self.system.turning if self.system.parts[name].turning
        }

    def _times_taken(self, take: Site) -> float:
        return self.rates[take.flow] * take.visits * moments_of(take.batch)[0]

    def takes(self, pool: str) -> list[Site]:
        """Return where tokens of a pool are taken."""
        return [take for take in self.plan.takes if take.part == pool]

    def taken(self, pool: str, rates: Rates) -> float:
        """Return how often tokens of a pool are taken. [1/ns]."""
        return sum(rates[t.flow] * t.visits * moments_of(t.batch)[0] for t in self.takes(pool))

    def scaled(self, pool: str, rates: Rates, factor: float) -> dict[str, float]:
        """Return rates with those of the flows that take tokens of a pool multiplied by a factor."""
        flows = {take.flow for take in self.takes(pool)}
        return {name: rate * factor if name in flows else rate for name, rate in rates.items()}

    def tokens_each(self, pool: str) -> float:
        """Return how many tokens are taken at once, mean."""
        total = self.taken(pool, self.rates)
        each = (
            self.rates[t.flow] * t.visits * moments_of(t.batch)[0] * t.step.tokens for t in self.takes(pool)
        )
        return sum(each) / total if total > 0 else float(self.takes(pool)[0].step.tokens)

    def tokens(self, pool: str) -> int:
        """Return how many jobs hold tokens of one copy of a pool at most."""
        if pool not in self.system.parts:
            return next(flow.window for flow in self.system.flows if window_of(flow.name) == pool)
        return max(int(self.system.parts[pool].count / self.tokens_each(pool) + 1e-9), 1)

    def servers(self, flows: set[str]) -> dict[str, int]:
        """Return the servers of stations of several that only these flows come to, at one place."""
        found = {}
        for name, part in self.system.parts.items():
            if isinstance(part, Station) and 1 < part.servers < INF and self.system.copies(name) == 1:
                if all(site.flow in flows for site in self.plan.sites if site.part == name):
                    found[name] = int(part.servers)
        return found

    def _learn(self, pool: str) -> None:
        """Find what is met at a pool by the rate at which its tokens are taken."""
        if self.taken(pool, self.rates) <= 0:
            return
        takes, inside = self.takes(pool), self._inside(pool)
        self.insides[pool] = inside
        if self.loses(pool):
            speeds = speeds_inside(self, pool, inside)
            self.curves[pool] = cache(partial(lossy_pool, speeds_at=speeds, tokens=inside.tokens))
            return
        if not all(self.system.flow(take.flow).closed for take in takes):
            self.curves[pool] = partial(self._open_pool, pool, inside, self._gaps(pool))
            return
        jobs = self.visitors(pool)
        here = jobs / inside.copies if all(take.own for take in takes) else jobs
        self.curves[pool] = ClosedPool(inside=inside, jobs=max(round(here), 1)).at

    def loses(self, pool: str) -> bool:
        """Return whether a pool is a window that loses jobs."""
        return any(flow.loses and pool == window_of(flow.name) for flow in self.system.flows)

    def visitors(self, pool: str) -> float:
        """Return how many closed jobs, or copies of them, may come to a pool at once."""
        takes, jobs = self.takes(pool), 0.0
        for take in takes:
            at_once = max(moments_of(take.batch)[0], moments_of(take.copies)[0])
            jobs += self.system.flow(take.flow).population * at_once / sum(t.flow == take.flow for t in takes)
        return jobs

    def _gaps(self, pool: str) -> PhaseType:
        """Return the law of the times between jobs that come to a copy of a pool, of mean 1."""
        takes, taken = self.takes(pool), self.taken(pool, self.rates)
        flow = self.system.flow(takes[0].flow)
        first = next(iter(nodes_of(self.plan.roots[flow.name], 1.0)))[0]
        begins = (
            isinstance(first, Series) and isinstance(first.nodes[0], Take) and first.nodes[0].site is takes[0]
        )
        copies = self.insides[pool].copies
        if len(takes) == 1 and begins and copies == 1:
            law = phase_type(arrival_law(flow))
            if law is not None and len(law.initial) <= MOST_PHASES:
                return scaled(law, float(flow.mean_rate))
        scv = peak = 0.0
        for take in takes:
            mean, variance = moments_of(take.batch)
            share = self.rates[take.flow] * take.visits * mean / taken
            begun = begun_scv(self.system.flow(take.flow))
            scv += share * ((1 + (begun - 1) * min(take.visits, 1.0)) * mean + variance / mean)
            peak += share * self.asking.peaks[take.flow]
        scv = 1 + (scv - 1) / copies
        known = phase_type(bursts_of(scv, peak)) if peak > 1 and scv > 1 else None
        return known or ph_from_moments(mean=1.0, scv=max(scv, 1 / MOST_PHASES))

    def _inside(self, pool: str) -> Inside:
        """Return the inside of a pool; it stays the same while the other flows do."""
        flows = {take.flow for take in self.takes(pool)}
        total = sum(self.rates[name] for name in flows)
        shares = tuple(round(self.rates[name] / total, 10) for name in sorted(flows))
        others = tuple(rate for name, rate in self.rates.items() if name not in flows)
        asking = self.asking_inside(pool)
        key = (pool, shares, others, tuple(asking.scvs.items()), tuple(asking.batches.items()))
        if key not in self.known:
            self.known[key] = self._make_inside(pool, flows)
        found: Inside = self.known[key]
        return found

    def _make_inside(self, pool: str, flows: set[str]) -> Inside:
        taken, tokens = self.taken(pool, self.rates), self.tokens(pool)
        inner = self._inner(pool)

        def times_at(rate: float) -> dict[str, float]:
            rates = self.scaled(pool, self.rates, max(rate / taken, 1e-9))
            met = Met(pools={n: curve(self.taken(n, rates)) for n, curve in inner.items()}, within={})
            return self._held(pool, self.asking_inside(pool).at(rates), met)

        def alone_at(rate: float) -> dict[str, float]:
            heard = [
                self.asking_inside(pool).at(self.scaled(pool, self.rates, max(each / taken, 1e-9)))
                for each in (rate, 0.0)
            ]
            return self._held(pool, heard[0].alone(heard[1]), NO_POOLS)

        limit = self.asking_inside(pool).limit(
            self.rates, flows, asked_inside(self.plan, pool, self.system.interconnect)
        )
        if self.loses(pool):
            limit = limit_inside(self, pool, limit)
        else:
            for name, curve in inner.items():
                now = self.taken(name, self.rates)
                limit = min(limit, curve(now).most / now)
        copies = self.system.copies(pool) if pool in self.system.parts else 1
        alone = sum(times_at(0.0).values())
        most = max(2 * tokens * copies / max(alone, 1e-300), taken)
        profile = profile_of(
            times_at,
            limit=limit * taken,
            most=most,
            servers=self.servers(flows),
            alone_at=alone_at if self.leaves_traces else None,
        )
        return Inside(profile=profile, tokens=tokens, copies=copies, scv=self._alone_scv(pool, flows))

    def _inner(self, pool: str) -> dict[str, Callable[[float], Pool]]:
        return {name: self.curves[name] for name in self.nested[pool] if name in self.curves}

    def _held(self, pool: str, heard: Heard, met: Met) -> dict[str, float]:
        """Return how long a token of a pool is held, by part."""
        flows = {take.flow for take in self.takes(pool)}
        taken, each = self.taken(pool, self.rates), self.tokens_each(pool)
        times: dict[str, float] = {}
        for name in sorted(flows):
            held = self.walk(self.system.flow(name), heard, met)[1].get(pool, Held())
            for part, time in held.parts.items():
                share = self.rates[name] / taken / each
                times[part] = times.get(part, 0.0) + (share * time if share else 0.0)
        return times

    def _open_pool(self, pool: str, inside: Inside, gaps: PhaseType, rate: float) -> Pool:
        """Return what open jobs meet at a pool."""
        key = (pool, inside, gaps, rate, tuple(self.asking.scvs.items()), tuple(self.asking.batches.items()))
        if key not in self.known:
            self.known[key] = open_pool(inside, rate, gaps=gaps, plain=self._plain(pool, rate))
        found: Pool = self.known[key]
        return found

    def _plain(self, pool: str, rate: float) -> float:
        """Return how long a token would be held if there were tokens for all, taken at a rate."""
        rates = self.scaled(pool, self.rates, rate / self.taken(pool, self.rates))
        return sum(self._held(pool, self.asking.at(rates), self.met_at(rates, self._inner(pool))).values())

    def _factor(self, pool: str, rates: Rates, hold: float) -> float:
        """Return by which factor the rates of jobs are lower that would be inside so long without a pool."""
        taken = self.taken(pool, rates)
        state = tuple(rates.items()), tuple(self.asking.scvs.items()), tuple(self.asking.batches.items())
        key = ("factor", pool, hold, *state)
        if key not in self.known:

            def beyond(factor: float) -> float:
                time = self._plain(pool, factor * taken)
                return (1 / time if time > 0 else INF) - 1 / hold

            if hold <= 0 or beyond(1.0) >= -1e-9 / hold:
                self.known[key] = 1.0
            elif beyond(1e-9) <= 0:
                self.known[key] = 1e-9
            else:
                self.known[key] = float(brentq(beyond, 1e-9, 1.0, xtol=1e-7))
        found: float = self.known[key]
        return found

    def _alone_scv(self, pool: str, flows: set[str]) -> float:
        """Return the variability of how long a job alone holds tokens of a pool."""
        heard = self.asking_inside(pool).at(
            {name: 0.0 if name in flows else rate for name, rate in self.rates.items()}
        )
        spans = [
            self.walk(self.system.flow(n), heard, NO_POOLS)[1].get(pool, Held()).span for n in sorted(flows)
        ]
        mean = sum(span.mean for span in spans)
        return sum(span.variance for span in spans) / mean**2 * len(spans) if mean > 0 else 1.0


def _rounded(value: float) -> float:
    """Return a number in as many digits as parts need, so that they are asked the same thing once."""
    return float(f"{value:.{DIGITS}g}")


def begun_scv(flow: Flow) -> float:
    """Return the squared coefficient of variation of the times between jobs of a flow that begin."""
    return 1.0 if flow.closed else float(flow.arrivals.scv)  # type: ignore[union-attr]


def peak_of(flow: Flow) -> float:
    """Return the rate in a burst of a flow over its mean rate, 1 if it has none that are known."""
    law = None if flow.closed else arrival_law(flow)
    if not isinstance(law, HyperExponential) or len(law.means) != 2:
        return 1.0
    return sum(p / m for p, m in zip(law.probabilities, law.means, strict=True)) / float(flow.mean_rate)
