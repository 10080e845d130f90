"""Waits at the pools of a system, and what its programs take beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.optimize import brentq

from qmodels.composed.couplings.pools import Pool
from qmodels.composed.decomposition import PartResponses
from qmodels.composed.fixed_point.state import INF, Curves, Rates, State
from qmodels.composed.latency import Held, LatencyInputs, LatencyWalk, ProgramLatency
from qmodels.composed.moments import NOTHING, Moments
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.program_form import Site
from qmodels.systems.stations.parts import Station

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


def pool_waits(state: State, varied: Rates = MappingProxyType({})) -> PoolWaits:
    """Find the waits at all pools."""
    return pool_waits_at(state, state.rates, state.curves, varied)


def pool_waits_at(
    state: State, rates: Rates, curves: Curves, varied: Rates = MappingProxyType({})
) -> PoolWaits:
    """Find the waits at some pools, see `State.met_at`."""
    pools: dict[str, Pool] = {}
    within: dict[str, PartResponses] = {}
    slower: dict[str, float] = {}
    # Outer ones first: what is inside a window that loses jobs is met at the rate of those that get in.
    inner: dict[str, Rates] = {}
    for name in reversed([name for name in state.nested if name in curves]):
        here = state.met_varied(name, inner.get(name, rates), varied)
        taken = state.taken(name, here)
        if taken <= 0:
            continue
        # Fewer are inside an outer pool than would come to this one.
        outside = [slower[each] for each in slower if name in state.nested[each]]
        outer = 1.0 if state.shared(name) else min(outside, default=1.0)
        pool = curves[name](taken * outer)
        pool = replace(pool, taken=taken, busy=min(pool.busy / outer, 1.0))
        if name in state.stays:
            pool = pool.staying(state.stays[name])
        pool = _paid_once(state, name, pool)
        pools[name] = pool
        if state.loses(name):
            factor = max(state.subnetworks[name].rate_at(pool.hold) / taken, NEARLY_NONE)
            scaled = state.scaled(name, here, factor)
            within[name] = state.parts_inside(name).evaluate(
                scaled, met=state.among_inside(name, scaled), parts=state.asked_inside[name]
            )
            own = {take.flow: scaled[take.flow] for take in state.takes(name)}
            inner |= {each: {**inner.get(each, rates), **own} for each in state.nested[name]}
            continue
        if state.all_closed(name):
            factor = state.subnetworks[name].rate_at(pool.hold) / taken
        else:
            factor = slower[name] = outer * slowdown(state, name, state.scaled(name, here, outer), pool.hold)
        inside = state.scaled(name, here, factor)
        come, others = state.let_in(name, inside), state.among_inside(name, inside)
        within[name] = state.parts.evaluate(come, met=others, parts=state.asked_inside[name])
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
    if first not in met.pools or state.shared(first):
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
    if met is None:
        seen = {flow.name: state.seen.get(flow.name, state.rates[flow.name])} if flow.closed else {}
        met = pool_waits(state, seen)
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


def held_at(state: State, pool: str, held: Mapping[str, Held]) -> Held:
    """Return how long tokens of a pool are held, and what is done at pools that others share at these."""
    found = held.get(pool, Held())
    for inner in () if state.all_closed(pool) else sorted(state.nested[pool] - state.in_branches):
        if inner in held and state.shared(inner):
            for times, there in ((found.parts, held[inner].parts), (found.spreads, held[inner].spreads)):
                for part, time in there.items():
                    time = min(time / state.tokens_each(inner), times.get(part, 0.0))
                    times |= {part: times.get(part, 0.0) - time, inner: times.get(inner, 0.0) + time}
    return found


def held_inside(state: State, pool: str, answers: PartResponses, met: PoolWaits) -> dict[str, float]:
    """Mean time that a token of a pool is held, by part."""
    flows = {take.flow for take in state.takes(pool)}
    taken, each = state.taken(pool, state.rates), state.tokens_each(pool)
    times: dict[str, float] = {}
    for name in sorted(flows):
        held = held_at(state, pool, walk(state, state.system.flow(name), answers, met)[1])
        for part, time in held.parts.items():
            share = state.rates[name] / taken / each
            times[part] = times.get(part, 0.0) + (share * time if share else 0.0)
    return times


def held_without_pool(state: State, pool: str, rate: float) -> float:
    """Mean time that a token would be held if there were tokens for all, taken at a rate."""
    rates = state.scaled(pool, state.rates, rate / state.taken(pool, state.rates))
    met = pool_waits_at(state, rates, inner_curves(state, pool), state.takers(pool, rates))
    come, others = state.let_in(pool, rates), state.among_inside(pool, rates)
    answers = state.parts.evaluate(come, met=others, parts=state.asked_inside[pool])
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

        @cache
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
