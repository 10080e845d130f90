"""The fixed point of a system: rates of flows, what parts answer to them, waits for tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from qmodels.composed.asking import Asking, Heard
from qmodels.composed.couplings.closed import closed_rate
from qmodels.composed.couplings.going_round import profile_of
from qmodels.composed.couplings.pools import ClosedPool, Inside, Pool, open_pool
from qmodels.composed.moments import moments_of
from qmodels.composed.nesting import asked_inside, pools_inside
from qmodels.composed.passage import Held, Passage, Surroundings, Walk
from qmodels.composed.plan import Plan, Site
from qmodels.composed.planning import window_of
from qmodels.composed.variability import scvs_of
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.system import System
from qmodels.systems.stations.parts import Station

INF = float("inf")
ROUNDS = 60
TOLERANCE = 1e-8
"""Relative change of the rates and variabilities of a round at which they are settled."""

Rates = Mapping[str, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Met:
    """What is met at pools.

    Parameters
    ----------
    pools : mapping of str to Pool
        At each pool.
    within : mapping of str to Heard
        What parts answer to jobs that hold tokens of a pool.
    """

    pools: Mapping[str, Pool]
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
    insides: dict[str, Inside] = field(default_factory=dict)
    curves: dict[str, Callable[[float], Pool]] = field(default_factory=dict)
    known: dict[Any, Any] = field(default_factory=dict)

    def settle(self) -> int:
        """Find the fixed point; return the rounds it took.

        Raises
        ------
        RuntimeError
            If it is not found.
        """
        for flow in self.system.flows:
            self.rates[flow.name] = 0.0 if flow.closed else float(flow.mean_rate)
        for flow in self.system.flows:
            if flow.closed:
                self.rates[flow.name] = closed_rate(self, flow) / 2
        old = self._numbers()
        for count in range(1, ROUNDS + 1):
            for pool in self.nested:
                self._learn(pool)
            for flow in self.system.flows:
                if flow.closed:
                    self.rates[flow.name] = closed_rate(self, flow)
            self._vary(0.5 if count > 10 else 1.0)
            new = self._numbers()
            if len(new) == len(old) and np.allclose(new, old, rtol=TOLERANCE, atol=0):
                return count
            old = new
        raise RuntimeError(f"the system did not settle in {ROUNDS} rounds (rates {self.rates!r}); simulate it")

    def _numbers(self) -> list[float]:
        return [*self.rates.values(), *self.seen.values(), *self.asking.scvs.values()]

    @cached_property
    def nested(self) -> dict[str, set[str]]:
        """The pools, those inside others first, and what is inside of each."""
        return pools_inside(self.plan)

    def _vary(self, weight: float) -> None:
        """Let variability pass through the programs once more."""
        heard = self.asking.at(self.rates)
        scvs = dict(self.asking.scvs)
        for flow in self.system.flows:
            found, _ = scvs_of(self.plan.roots[flow.name], begun_scv(flow), heard.responses)
            for number, scv in found.items():
                scvs[number] = weight * scv + (1 - weight) * scvs.get(number, scv)
        self.asking.scvs = scvs

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
        for name, curve in curves.items():
            taken = self.taken(name, rates)
            if taken > 0:
                pool = pools[name] = curve(taken)
                factor = self.insides[name].rate_at(pool.hold) / taken
                within[name] = self.asking.at(self.scaled(name, rates, factor))
        return Met(pools=pools, within=within)

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
                own=self.asking.own_loads(self.rates, heard),
                network=self.system.interconnect,
            )
        )
        return walk.through(self.plan.roots[flow.name]), walk.held

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
        each = (self.rates[t.flow] * t.visits * moments_of(t.batch)[0] * t.step.tokens for t in self.takes(pool))
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
        if not all(self.system.flow(take.flow).closed for take in takes):
            arrivals, holds = self._spread(pool)
            self.curves[pool] = lambda rate: open_pool(inside, rate, arrival_scv=arrivals, hold_scv=holds)
            return
        jobs = self.visitors(pool)
        here = jobs / inside.copies if all(take.own for take in takes) else jobs
        self.curves[pool] = ClosedPool(inside=inside, jobs=max(round(here), 1)).at

    def visitors(self, pool: str) -> float:
        """Return how many closed jobs, or copies of them, may come to a pool at once."""
        takes, jobs = self.takes(pool), 0.0
        for take in takes:
            at_once = max(moments_of(take.batch)[0], moments_of(take.copies)[0])
            jobs += self.system.flow(take.flow).population * at_once / sum(t.flow == take.flow for t in takes)
        return jobs

    def _spread(self, pool: str) -> tuple[float, float]:
        """Return the variability of arrivals at a pool and of how long its tokens are held."""
        taken = self.taken(pool, self.rates)
        arrivals = hold = held = 0.0
        heard = self.asking.at(self.rates)
        for name in dict.fromkeys(t.flow for t in self.takes(pool)):
            flow = self.system.flow(name)
            for take in (t for t in self.takes(pool) if t.flow == name):
                mean, variance = moments_of(take.batch)
                share = self.rates[name] * take.visits * mean / taken
                arrivals += share * (begun_scv(flow) * mean + variance / mean)
            span = self.walk(flow, heard, NO_POOLS)[1].get(pool, Held()).span
            hold += self.rates[name] * span.variance / taken
            held += self.rates[name] * span.mean / taken
        return arrivals, hold / held**2 if 0 < held < INF else 1.0

    def _inside(self, pool: str) -> Inside:
        """Return the inside of a pool; it stays the same while the other flows do."""
        flows = {take.flow for take in self.takes(pool)}
        total = sum(self.rates[name] for name in flows)
        shares = tuple(round(self.rates[name] / total, 10) for name in sorted(flows))
        others = tuple(rate for name, rate in self.rates.items() if name not in flows)
        key = (pool, shares, others, tuple(self.asking.scvs.items()))
        if key not in self.known:
            self.known[key] = self._make_inside(pool, flows)
        found: Inside = self.known[key]
        return found

    def _make_inside(self, pool: str, flows: set[str]) -> Inside:
        taken, each, tokens = self.taken(pool, self.rates), self.tokens_each(pool), self.tokens(pool)
        inner = {name: self.curves[name] for name in self.nested[pool] if name in self.curves}

        def times_at(rate: float) -> dict[str, float]:
            rates = self.scaled(pool, self.rates, max(rate / taken, 1e-9))
            heard = self.asking.at(rates)
            met = Met(pools={n: curve(self.taken(n, rates)) for n, curve in inner.items()}, within={})
            times: dict[str, float] = {}
            for name in sorted(flows):
                held = self.walk(self.system.flow(name), heard, met)[1].get(pool, Held())
                for part, time in held.parts.items():
                    share = self.rates[name] / taken / each
                    times[part] = times.get(part, 0.0) + (share * time if share else 0.0)
            return times

        limit = self.asking.limit(self.rates, flows, asked_inside(self.plan, pool, self.system.interconnect))
        for name, curve in inner.items():
            now = self.taken(name, self.rates)
            limit = min(limit, curve(now).most / now)
        copies = self.system.copies(pool) if pool in self.system.parts else 1
        alone = sum(times_at(0.0).values())
        most = max(2 * tokens * copies / max(alone, 1e-300), taken)
        profile = profile_of(times_at, limit=limit * taken, most=most, servers=self.servers(flows))
        return Inside(profile=profile, tokens=tokens, copies=copies)


def begun_scv(flow: Flow) -> float:
    """Return the squared coefficient of variation of the times between jobs of a flow that begin."""
    return 1.0 if flow.closed else float(flow.arrivals.scv)  # type: ignore[union-attr]
