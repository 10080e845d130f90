"""The fixed point of a system: rates of flows, what parts answer to them, waits for tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from qmodels.composed.asking import Asking, Heard
from qmodels.composed.couplings.closed import closed_rate
from qmodels.composed.couplings.pools import Inside, Pool, closed_pool, inside_of, open_pool
from qmodels.composed.moments import NOTHING, Span, moments_of
from qmodels.composed.nesting import asked_inside, pools_inside
from qmodels.composed.passage import Passage, Surroundings, Walk
from qmodels.composed.plan import Plan, Site
from qmodels.composed.planning import window_of
from qmodels.composed.variability import scvs_of
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.system import System

INF = float("inf")
ROUNDS = 60
TOLERANCE = 1e-8
"""Relative change of the rates, waits and variabilities of a round at which they are settled."""


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
    pools : dict of str to Pool
        What is met at each pool.
    within : dict of str to Heard
        What parts answer to jobs that hold tokens of a pool.
    extra : dict of str to float
        Of a closed flow, the time its jobs wait beyond what parts answer, where they alone fill one. [ns]
    """

    system: System
    plan: Plan
    asking: Asking
    rates: dict[str, float] = field(default_factory=dict)
    pools: dict[str, Pool] = field(default_factory=dict)
    within: dict[str, Heard] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)

    def settle(self) -> int:
        """Find the fixed point; return the rounds it took.

        Raises
        ------
        RuntimeError
            If it is not found.
        """
        for flow in self.system.flows:
            self.rates[flow.name] = 0.0 if flow.closed else float(flow.mean_rate)
        old = self._numbers()
        for count in range(1, ROUNDS + 1):
            for flow in self.system.flows:
                if flow.closed:
                    self.rates[flow.name] = closed_rate(self, flow)
            for pool in self.pool_order:
                self._see(pool)
            self._vary(0.5 if count > 10 else 1.0)
            new = self._numbers()
            if len(new) == len(old) and all(
                abs(a - b) <= TOLERANCE * max(abs(a), abs(b)) or a == b for a, b in zip(new, old, strict=True)
            ):
                return count
            old = new
        change = max(abs(a - b) / max(abs(a), abs(b), 1e-300) for a, b in zip(new, old, strict=True))
        raise RuntimeError(f"the system did not settle in {ROUNDS} rounds (relative change {change:.3g})")

    def _numbers(self) -> list[float]:
        waits = [pool.wait.mean for pool in self.pools.values()]
        return [*self.rates.values(), *waits, *self.asking.scvs.values()]

    @property
    def pool_order(self) -> list[str]:
        """The pools, those inside others first."""
        return list(pools_inside(self.plan))

    def _vary(self, weight: float) -> None:
        """Let variability pass through the programs once more."""
        heard = self.asking.at(self.rates)
        scvs = dict(self.asking.scvs)
        for flow in self.system.flows:
            begun = 1.0 if flow.closed else float(flow.arrivals.scv)  # type: ignore[union-attr]
            found, _ = scvs_of(self.plan.roots[flow.name], begun, heard.responses)
            for number, scv in found.items():
                scvs[number] = weight * scv + (1 - weight) * scvs.get(number, scv)
        self.asking.scvs = scvs

    def view(self, flow: Flow, rate: float) -> Heard:
        """Return what parts answer to a job of a closed flow, which does not meet itself.

        The rate of the other jobs is a share (N - 1) / N of that of all N, as in Schweitzer's approximation.
        """
        others = {**self.rates, flow.name: rate * (flow.population - 1) / flow.population}
        local = flow.population / max(len(flow.at), 1)
        own = {**self.rates, flow.name: rate * max(local - 1, 0.0) / local}
        return self.asking.at(others, own=own)

    def heard(self, flow: Flow) -> Heard:
        """Return what parts answer to the jobs of a flow."""
        return self.view(flow, self.rates[flow.name]) if flow.closed else self.asking.at(self.rates)

    def passage(self, flow: Flow, heard: Heard | None = None) -> tuple[Passage, dict[str, Span]]:
        """Return what a program takes, and how long it holds the tokens of pools."""
        heard = self.heard(flow) if heard is None else heard
        return self._passage(flow, heard, self.within, self.pools)

    def _passage(
        self, flow: Flow, heard: Heard, within: Mapping[str, Heard], pools: Mapping[str, Pool]
    ) -> tuple[Passage, dict[str, Span]]:
        waits = {t.number: pools[t.part].wait for t in self.plan.takes if t.part in pools}
        walk = Walk(
            Surroundings(
                heard=heard,
                within=within,
                waits=waits,
                own=self.asking.own_loads(self.rates, heard),
                network=self.system.interconnect,
            )
        )
        return walk.through(self.plan.roots[flow.name]), walk.held

    def takes(self, pool: str) -> list[Site]:
        """Return where tokens of a pool are taken."""
        return [take for take in self.plan.takes if take.part == pool]

    def taken(self, pool: str, rates: Mapping[str, float]) -> float:
        """Return how often tokens of a pool are taken. [1/ns]."""
        return sum(rates[t.flow] * t.visits * moments_of(t.batch)[0] for t in self.takes(pool))

    def tokens(self, pool: str) -> int:
        """Return how many jobs hold tokens of one copy of a pool at most."""
        if pool not in self.system.parts:
            return next(flow.window for flow in self.system.flows if window_of(flow.name) == pool)
        total = self.taken(pool, self.rates)
        each = [self.rates[t.flow] * t.visits * moments_of(t.batch)[0] * t.step.tokens for t in self.takes(pool)]
        mean = sum(each) / total if total > 0 else float(self.takes(pool)[0].step.tokens)
        return max(int(self.system.parts[pool].count / mean + 1e-9), 1)

    def copies(self, pool: str) -> int:
        """Return the copies of a pool."""
        return self.system.copies(pool) if pool in self.system.parts else 1

    def _see(self, pool: str) -> None:
        """Find what is met at a pool, and what parts answer to those inside."""
        taken = self.taken(pool, self.rates)
        if taken <= 0:
            return
        takes = self.takes(pool)
        inside = self._inside(pool, taken)
        flows = [self.system.flow(name) for name in dict.fromkeys(t.flow for t in takes)]
        common = {"inside": inside, "tokens": self.tokens(pool), "copies": self.copies(pool)}
        if all(flow.closed for flow in flows):
            found = self._closed(pool, flows, common, taken)
        else:
            scv, hold_scv = self._spread(pool, flows, taken)
            found = open_pool(**common, rate=taken, arrival_scv=scv, hold_scv=hold_scv)
        before = self.pools.get(pool)
        self.pools[pool] = found if before is None else found.halfway(before)
        scale = inside.rate_at(found.hold) / taken
        self.within[pool] = self.asking.at(self._scaled(pool, min(scale, 1.0)))

    def _closed(self, pool: str, flows: list[Flow], common: dict[str, object], taken: float) -> Pool:
        jobs = 0.0
        for take in self.takes(pool):
            at_once = max(moments_of(take.batch)[0], moments_of(take.copies)[0])
            jobs = max(jobs, self.system.flow(take.flow).population * at_once)
        copies = self.copies(pool)
        own = all(take.own for take in self.takes(pool))
        here = jobs / copies if own else jobs
        now = self.pools.get(pool)
        met = 0.0 if now is None else now.wait.mean + now.hold
        outside = max(here * copies / taken - met, 0.0)
        return closed_pool(**common, jobs=here, outside=outside, rate=taken)  # type: ignore[arg-type]

    def _spread(self, pool: str, flows: list[Flow], taken: float) -> tuple[float, float]:
        """Return the variability of arrivals at a pool and of how long its tokens are held."""
        arrivals = hold = held = 0.0
        heard = self.asking.at(self.rates)
        for flow in flows:
            spans = self._passage(flow, self.within.get(pool, heard), {}, {})[1]
            for take in (t for t in self.takes(pool) if t.flow == flow.name):
                mean, variance = moments_of(take.batch)
                share = self.rates[flow.name] * take.visits * mean / taken
                begun = 1.0 if flow.closed else float(flow.arrivals.scv)  # type: ignore[union-attr]
                arrivals += share * (begun * mean + variance / mean)
            if pool in spans:
                hold += self.rates[flow.name] * spans[pool].variance / taken
                held += self.rates[flow.name] * spans[pool].mean / taken
        return arrivals, hold / held**2 if 0 < held < INF else 1.0

    def _scaled(self, pool: str, factor: float) -> dict[str, float]:
        flows = {take.flow for take in self.takes(pool)}
        return {name: rate * factor if name in flows else rate for name, rate in self.rates.items()}

    def _inside(self, pool: str, taken: float) -> Inside:
        """Return how long tokens of a pool are held, by the rate at which they are taken."""
        flows = list(dict.fromkeys(take.flow for take in self.takes(pool)))
        inner = {name: found for name, found in self.pools.items() if name in pools_inside(self.plan)[pool]}

        def hold_at(rate: float) -> float:
            factor = max(rate / taken, 1e-9)
            heard = self.asking.at(self._scaled(pool, factor))
            held = 0.0
            for name in flows:
                spans = self._passage(self.system.flow(name), heard, {}, inner)[1]
                each = spans.get(pool, NOTHING).mean
                held += self.rates[name] * each / self._tokens_each(pool) if self.rates[name] else 0.0
            return held / taken

        limit = self.asking.limit(self.rates, flows, asked_inside(self.plan, pool, self.system.interconnect))
        limit = min([limit, *(found.most / found.taken for found in inner.values())])
        most = max(self.tokens(pool) * self.copies(pool) / max(hold_at(0.0), 1e-300), taken)
        return inside_of(hold_at, limit * taken, most)

    def _tokens_each(self, pool: str) -> float:
        takes = self.takes(pool)
        total = self.taken(pool, self.rates)
        return sum(
            self.rates[t.flow] * t.visits * moments_of(t.batch)[0] * t.step.tokens for t in takes
        ) / total if total > 0 else 1.0
