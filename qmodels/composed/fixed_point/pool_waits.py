"""What is met at pools and how long their tokens are held: each asks for the other, of inner pools first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.optimize import brentq

from qmodels.composed.couplings.pools import Pool
from qmodels.composed.decomposition import PartResponses
from qmodels.composed.fixed_point.state import INF, Curves, Rates, State
from qmodels.composed.latency import Held, LatencyInputs, LatencyWalk
from qmodels.composed.moments import NOTHING, Moments
from qmodels.composed.program_latency import ProgramLatency
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.program_form import Site

NEARLY_NONE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolWaits:
    """What is met at pools."""

    pools: dict[str, Pool]  # at each pool
    within: Mapping[str, PartResponses]  # what parts answer to jobs that hold tokens of a pool


NO_POOLS = PoolWaits(pools={}, within={})


def walk(
    state: State, flow: Flow, answers: PartResponses, met: PoolWaits
) -> tuple[ProgramLatency, dict[str, Held]]:
    """Return what a program takes, and how long it holds the tokens of pools."""
    walking = LatencyWalk(
        state.form,
        LatencyInputs(
            answers=answers,
            within=met.within,
            waits={t.number: met.pools[t.part].wait for t in state.form.takes if t.part in met.pools},
            turning=setup_times(state.form.takes, state.turning, state.times_taken) if state.turning else {},
            own=state.parts.own_loads(state.rates, answers),
            together=state.parts.batches,
            network=state.system.interconnect,
            rows=state.rows,
        ),
    )
    return walking.latency_of(state.form.roots[flow.name]), walking.held


def pool_waits(state: State, rates: Rates) -> PoolWaits:
    """Return what is met at the pools."""
    return pool_waits_at(state, rates, state.curves)


def pool_waits_at(state: State, rates: Rates, curves: Curves) -> PoolWaits:
    """Return what is met at some pools."""
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
        within[name] = state.parts.evaluate(state.scaled(name, here, factor), met=others)
        if state.all_closed(name):
            within[name] = state.answers_inside(name, within[name], factor * taken)
    met = PoolWaits(pools=pools, within=within)
    for name in pools:
        if state.loses(name):
            _make_up(state, name, met)
    return met


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
    """Return what a program takes."""
    met = pool_waits(state, state.rates) if met is None else met
    return walk(state, flow, state.answers(flow) if answers is None else answers, met)[0]


def held_inside(state: State, pool: str, answers: PartResponses, met: PoolWaits) -> dict[str, float]:
    """Return how long a token of a pool is held, by part."""
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
    """Return how long a token would be held if there were tokens for all, taken at a rate."""
    rates = state.scaled(pool, state.rates, rate / state.taken(pool, state.rates))
    met = pool_waits_at(state, rates, inner_curves(state, pool))
    answers = state.parts.evaluate(rates, met=state.among_inside(pool))
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
    """Return what is known of the pools inside a pool."""
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
