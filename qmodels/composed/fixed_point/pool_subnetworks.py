"""The subnetworks of pools, made again in each round, and the curves of what is met there."""

from __future__ import annotations

from functools import cache, partial

from qmodels.composed.as_network import arrival_law
from qmodels.composed.couplings.pools import ClosedPool, Pool, PoolSubnetwork, open_pool
from qmodels.composed.couplings.profile import profile_of
from qmodels.composed.couplings.refresh_pauses import stalled
from qmodels.composed.couplings.window_blocking import limit_inside, lossy_pool, speeds_inside
from qmodels.composed.fixed_point.pool_waits import (
    NO_POOLS,
    PoolWaits,
    held_inside,
    held_without_pool,
    inner_curves,
    walk,
)
from qmodels.composed.fixed_point.state import State, begun_scv
from qmodels.composed.latency import Held
from qmodels.composed.moments import moments_of
from qmodels.composed.parts.bursty import bursts_of
from qmodels.markov.processes.phase_type_fit import ph_from_moments
from qmodels.systems.composed.program_form import Op
from qmodels.systems.laws.kinds import phase_type, scaled
from qmodels.systems.laws.phases import PhaseType

MOST_PHASES = 8
"""Of the law of the times between jobs that come to a pool."""


def update_pool(state: State, pool: str) -> None:
    """Find what is met at a pool by the rate at which its tokens are taken."""
    if state.taken(pool, state.rates) <= 0:
        return
    takes, inside = state.takes(pool), subnetwork_of(state, pool)
    state.subnetworks[pool] = inside
    if state.loses(pool):
        speeds = speeds_inside(state, pool, inside)
        state.curves[pool] = cache(partial(lossy_pool, speeds_at=speeds, tokens=inside.tokens))
        return
    if not all(state.system.flow(take.flow).closed for take in takes):
        state.curves[pool] = partial(_open_pool, state, pool, inside, _gaps(state, pool))
        return
    jobs = state.visitors(pool)
    here = jobs / inside.copies if all(take.own for take in takes) else jobs
    state.curves[pool] = ClosedPool(inside=inside, jobs=max(round(here), 1)).at


def _gaps(state: State, pool: str) -> PhaseType:
    """Return the law of the times between jobs that come to a copy of a pool, of mean 1."""
    takes, taken = state.takes(pool), state.taken(pool, state.rates)
    flow = state.system.flow(takes[0].flow)
    form, root = state.form, state.form.roots[flow.name]
    begins = form.op[root] == Op.SERIES and form.rows[form.inside[root][0]] is takes[0]
    copies = state.subnetworks[pool].copies
    if len(takes) == 1 and begins and copies == 1:
        law = phase_type(arrival_law(flow))
        if law is not None and len(law.initial) <= MOST_PHASES:
            return scaled(law, float(flow.mean_rate))
    scv = peak = 0.0
    for take in takes:
        mean, variance = moments_of(take.batch)
        share = state.rates[take.flow] * take.visits * mean / taken
        come = state.parts.scvs.get(-1 - take.number, begun_scv(state.system.flow(take.flow)))
        scv += share * (come * mean + variance / mean)
        peak += share * state.parts.peaks[take.flow]
    scv = 1 + (scv - 1) / copies
    known = phase_type(bursts_of(scv, peak)) if peak > 1 and scv > 1 else None
    return known or ph_from_moments(mean=1.0, scv=max(scv, 1 / MOST_PHASES))


def subnetwork_of(state: State, pool: str) -> PoolSubnetwork:
    """Return the inside of a pool; it stays the same while the other flows do."""
    flows = {take.flow for take in state.takes(pool)}
    total = sum(state.rates[name] for name in flows)
    shares = tuple(round(state.rates[name] / total, 10) for name in sorted(flows))
    others = tuple(rate for name, rate in state.rates.items() if name not in flows)
    parts = state.parts_inside(pool)
    others += tuple(state.among_inside(pool).values())
    key = (pool, shares, others, tuple(parts.scvs.items()), tuple(parts.batches.items()))
    if key not in state.known:
        state.known[key] = _make_subnetwork(state, pool, flows)
    found: PoolSubnetwork = state.known[key]
    return found


def _make_subnetwork(state: State, pool: str, flows: set[str]) -> PoolSubnetwork:
    taken, tokens = state.taken(pool, state.rates), state.tokens(pool)
    inner, others = inner_curves(state, pool), state.among_inside(pool)

    def times_at(rate: float, *, few: bool = False) -> dict[str, float]:
        rates = state.scaled(pool, state.rates, max(rate / taken, 1e-9))
        met = PoolWaits(pools={n: curve(state.taken(n, rates)) for n, curve in inner.items()}, within={})
        answers = state.parts_inside(pool).evaluate(rates, met=others)
        return held_inside(state, pool, state.answers_inside(pool, answers, rate) if few else answers, met)

    def alone_at(rate: float, *, few: bool) -> dict[str, float]:
        answers = [
            state.parts_inside(pool).evaluate(
                state.scaled(pool, state.rates, max(each / taken, 1e-9)), met=others
            )
            for each in (rate, 0.0)
        ]
        lone = answers[0].alone(answers[1])
        return held_inside(state, pool, state.answers_inside(pool, lone, rate) if few else lone, NO_POOLS)

    asked = state.form.parts_inside(pool, state.system.interconnect)
    limit = state.parts_inside(pool).limit(state.rates, flows, asked, others)
    if state.loses(pool):
        limit = limit_inside(state, pool, limit)
    else:
        for name, curve in inner.items():
            now = state.taken(name, state.rates)
            limit = min(limit, curve(now).most / now)
    copies = state.system.copies(pool) if pool in state.system.parts else 1
    alone = state.lone[pool] = sum(times_at(0.0).values())
    most = max(2 * tokens * copies / max(alone, 1e-300), taken)
    traces = state.leaves_traces
    tables = [
        profile_of(
            partial(times_at, few=few),
            limit=limit * taken,
            most=most,
            servers=state.servers(flows),
            alone_at=partial(alone_at, few=few) if traces else None,
        )
        for few in ((False, True) if traces and not state.loses(pool) else (False,))
    ]
    scv, noise = _alone_scvs(state, pool, flows)
    shared = any(getattr(state.system.parts.get(name), "discipline", "") == "sharing" for name in asked)
    return PoolSubnetwork(
        profile=tables[0], tokens=tokens, copies=copies, scv=scv, noise=noise, shared=shared, few=tables[-1]
    )


def _open_pool(state: State, pool: str, inside: PoolSubnetwork, gaps: PhaseType, rate: float) -> Pool:
    """Return what open jobs meet at a pool."""
    key = (
        pool,
        inside,
        gaps,
        rate,
        tuple(state.parts.scvs.items()),
        tuple(state.parts.batches.items()),
    )
    if key not in state.known:
        plain, stalled = held_without_pool(state, pool, rate), _stalled(state, pool, inside, rate)
        state.known[key] = open_pool(inside, rate, gaps=gaps, plain=plain, stalled=stalled)
    found: Pool = state.known[key]
    return found


def _stalled(state: State, pool: str, inside: PoolSubnetwork, rate: float) -> float:
    """Return the mean wait for pauses in which all tokens of a pool are held."""
    if inside.few is inside.profile:
        return 0.0
    rates = state.scaled(pool, state.rates, rate / state.taken(pool, state.rates))
    most = float(inside.speeds(rate)[-1])
    if most <= 0:  # others fill a part inside
        return 0.0
    answers = state.parts_inside(pool).evaluate(rates, met=state.among_inside(pool))
    return stalled(answers, state.sites_inside(pool), rates, rate * inside.tokens / most)


def _alone_scvs(state: State, pool: str, flows: set[str]) -> tuple[float, dict[str, float]]:
    """Return the variability of how long a job alone holds tokens of a pool, of all and by part."""
    answers = state.parts_inside(pool).evaluate(
        {name: 0.0 if name in flows else rate for name, rate in state.rates.items()},
        met=state.among_inside(pool),
    )
    helds = [walk(state, state.system.flow(n), answers, NO_POOLS)[1].get(pool, Held()) for n in sorted(flows)]
    noise = {}
    for part in {part for held in helds for part in held.parts}:
        mean = sum(held.parts.get(part, 0.0) for held in helds)
        if mean > 0:
            noise[part] = sum(held.spreads.get(part, 0.0) for held in helds) / mean**2 * len(helds)
    mean = sum(held.span.mean for held in helds)
    scv = sum(held.span.variance for held in helds) / mean**2 * len(helds) if mean > 0 else 1.0
    return scv, noise
