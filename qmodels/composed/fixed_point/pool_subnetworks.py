"""Subnetworks of pools, made again in each round, and those of windows that lose jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from scipy.optimize import brentq

from qmodels.checks import FloatArray
from qmodels.composed.as_network import arrival_law
from qmodels.composed.couplings.closed_mva import Region, closed_mva
from qmodels.composed.couplings.pools import MANY, ClosedPool, Pool, PoolSubnetwork, open_pool
from qmodels.composed.couplings.rate_profile import Profile, profile_of
from qmodels.composed.couplings.refreshes import stalled
from qmodels.composed.fixed_point.pool_waits import (
    NO_POOLS,
    PoolWaits,
    held_at,
    held_inside,
    held_without_pool,
    inner_curves,
    pool_waits_at,
    walk,
)
from qmodels.composed.fixed_point.state import State, begun_scv
from qmodels.composed.moments import Moments, mixture_of, moments_of
from qmodels.composed.parts.bursty import bursts_of
from qmodels.llc.bounded_queues import Stages, bounded_queues, conditional_rates
from qmodels.markov.processes.moment_fits import ph_from_moments
from qmodels.queues.distributions import birth_death_law
from qmodels.systems.composed.program_form import Op, window_of
from qmodels.systems.laws.kinds import phase_type, scaled
from qmodels.systems.laws.times import PhaseType

MOST_PHASES = 8
"""Of the law of the times between jobs that come to a pool."""


def update_pool(state: State, pool: str) -> None:
    """Find what is met at a pool by the rate at which its tokens are taken."""
    if state.taken(pool, state.rates) <= 0:
        return
    takes, inside = state.takes(pool), subnetwork_of(state, pool)
    state.subnetworks[pool] = inside
    if state.loses(pool):
        speeds, regions = speeds_inside(state, pool, inside)
        found = partial(lossy_pool, speeds_at=speeds, tokens=inside.tokens)
        if not regions:
            plain = partial(held_without_pool, state, pool)
            found = partial(found, scv=inside.departure_scv_ratio, plain=plain, unlimited=inside.unlimited)
        state.curves[pool] = cache(found)
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
        source = state.parts.sources.get(take.flow)
        come += source.excess * take.visits if source else 0.0
        scv += share * (come * mean + variance / mean)
        peak += share * (source.peak if source else 1.0)
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
    inner = inner_curves(state, pool)
    others = state.among_inside(pool)
    yields = not state.all_closed(pool) and any(state.system.flow(name).closed for name, _ in others)

    def times_at(rate: float, *, few: bool = False) -> dict[str, float]:
        rates = state.scaled(pool, state.rates, max(rate / taken, 1e-9))
        met = PoolWaits(pools={n: curve(state.taken(n, rates)) for n, curve in inner.items()}, within={})
        if any(state.shared(name) for name in inner):
            met = pool_waits_at(state, rates, inner, state.takers(pool, rates))
        others = state.among_inside(pool, rates)
        answers = state.parts_inside(pool).evaluate(rates, met=others, parts=state.asked_inside[pool])
        return held_inside(state, pool, state.answers_inside(pool, answers, rate) if few else answers, met)

    def alone_at(rate: float, *, few: bool) -> dict[str, float]:
        parts = state.parts_inside(pool)
        both = [state.scaled(pool, state.rates, max(each / taken, 1e-9)) for each in (rate, 0.0)]
        left, idle = (
            parts.evaluate(r, met=state.among_inside(pool, r), parts=some)
            for r, some in zip(both, (parts.with_traces if rate > 0 else None, None), strict=True)
        )
        lone = left.alone(idle)
        return held_inside(state, pool, state.answers_inside(pool, lone, rate) if few else lone, NO_POOLS)

    asked = state.form.parts_inside(pool, state.system.interconnect)
    empty = {key: 0.0 if state.system.flow(key[0]).closed else rate for key, rate in others.items()}
    limit = state.parts_inside(pool).limit(state.rates, flows, asked, empty if yields else others)
    limit = _limit_beside(state, pool, limit, asked) if yields else limit
    if state.loses(pool):
        limit = limit_inside(state, pool, limit)
    else:
        limit = min([limit, *(state.pool_limit(name, flows) for name in inner)])
    copies = state.system.copies(pool) if pool in state.system.parts else 1
    alone = state.lone[pool] = sum(times_at(0.0).values())
    most = max(2 * tokens * copies / max(alone, 1e-300), taken)
    traces = state.leaves_traces
    own = all(take.own for take in state.takes(pool))
    local = state.local_servers(flows) if own else {}
    alone_here = {part: count for part, count in local.items() if count > 1 and copies == 1}
    ends = state.ends(state.parts_inside(pool), flows, empty if yields else others)
    tables = [
        profile_of(
            partial(times_at, few=few),
            limit=limit * taken,
            most=most,
            servers={**state.servers(flows), **alone_here},
            alone_at=partial(alone_at, few=few) if traces else None,
            local=local,
            ends={name: end * taken for name, end in ends.items() if name in asked},
        )
        for few in ((False, True) if traces and not state.loses(pool) else (False,))
    ]
    scv, noise = _alone_scvs(state, pool, flows)
    shared = any(getattr(state.system.parts.get(name), "discipline", "") == "sharing" for name in asked)
    return PoolSubnetwork(
        profile=tables[0], tokens=tokens, copies=copies, scv=scv, noise=noise, shared=shared, few=tables[-1]
    )


def _limit_beside(state: State, pool: str, limit: float, asked: set[str]) -> float:
    """Return the factor of the rates at which a part inside a pool is full, at most ``limit``."""

    @cache
    def beyond(factor: float) -> float:
        rates = state.scaled(pool, state.rates, factor)
        loads = state.parts_inside(pool).loads(rates, asked, state.among_inside(pool, rates))
        return max(loads.values(), default=0.0) - 1

    most = limit * (1 - NEAR)
    if not 0 < limit < np.inf or beyond(most) <= 0 or beyond(limit * NEAR) >= 0:
        return limit
    return float(brentq(beyond, limit * NEAR, most, rtol=NEAR))


def _open_pool(state: State, pool: str, inside: PoolSubnetwork, gaps: PhaseType, rate: float) -> Pool:
    """Wait and hold of open jobs at a pool."""
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
    answers = state.parts_inside(pool).evaluate(rates, met=state.among_inside(pool, rates))
    return stalled(answers.responses, state.sites_inside(pool), rates, rate * inside.tokens / most)


def _alone_scvs(state: State, pool: str, flows: set[str]) -> tuple[float, dict[str, float]]:
    """Return the variability of how long a job alone holds tokens of a pool, of all and by part."""
    idle = {name: 0.0 if name in flows else rate for name, rate in state.rates.items()}
    others = state.among_inside(pool, idle)
    answers = state.parts_inside(pool).evaluate(idle, met=others, parts=state.asked_inside[pool])
    names = sorted(flows)
    helds = [held_at(state, pool, walk(state, state.system.flow(n), answers, NO_POOLS)[1]) for n in names]
    takes = [sum(t.visits * t.mean_batch for t in state.takes(pool) if t.flow == n) for n in names]
    taken = [state.rates[name] * each for name, each in zip(names, takes, strict=True)]
    shares = [each / sum(taken) for each in taken]

    def scv(times: Sequence[tuple[float, float]]) -> float:
        """Squared coefficient of variation of a time that each flow has for its share of the tokens."""
        each = [Moments(mean / n, spread / n) for (mean, spread), n in zip(times, takes, strict=True)]
        found = mixture_of(shares, each)
        return found.scv if found.mean > 0 else 1.0

    parts = {part for held in helds for part, time in held.parts.items() if time > 0}
    noise = {
        part: scv([(held.parts.get(part, 0.0), held.spreads.get(part, 0.0)) for held in helds])
        for part in parts
    }
    return scv([(held.span.mean, held.span.variance) for held in helds]), noise


NEAR = 1e-9
LEAST_WEIGHT = 1e-250
FEWEST_PHASES = 0.5
"""Squared coefficient of variation above which two phases say a law's two moments."""

SHORT = 1e-9
"""Wait, in holds of a job alone, that is none."""

Speed = Callable[[float], float]
Speeds = Callable[[float], FloatArray]
"""Rates at which 1, 2, ... jobs inside leave, if jobs get in at a rate."""


def lossy_pool(
    rate: float,
    *,
    speeds_at: Speeds,
    tokens: int,
    scv: float = 1.0,
    plain: Speed | None = None,
    unlimited: Speeds | None = None,
) -> Pool:
    r"""Hold and losses of a window that loses jobs that find it full.

    ``rate``: jobs that come [1/ns]; ``scv``: variability of what leaves the inside, over that of exponential
    services; ``plain``, ``unlimited``: time that a job is inside without a window, by the rate [ns], and
    the speeds there.

    As `qmodels.composed.couplings.pools.open_pool`: all that is inside is one station of rate X(n) with n
    jobs, of :math:`c = X(K)/X(1)` servers. Where more are inside than these they leave as from a single
    server of speed X(n) whose services have this variability: exact for one server with services of two
    moments. With Poisson arrivals, as all are taken to be, the share of them that find the window full is
    the share of time that it is. What is waited is multiplied by what makes it right without a window, the
    less the more the window cuts off.

    >>> pool = lossy_pool(2.0, speeds_at=lambda rate: np.arange(1.0, 4.0), tokens=3)
    >>> round(pool.lost, 4), round(pool.hold, 4)
    (0.2105, 1.0)
    """
    if float(speeds_at(0.0)[-1]) <= 0:  # others fill a part inside
        return Pool(wait=Moments(0.0, 0.0), hold=np.inf, taken=rate, most=0.0, busy=1.0, lost=1.0 - NEAR)

    def law_at(inside: float, jobs: int, of: Speeds = speeds_at) -> tuple[FloatArray, FloatArray]:
        known = of(inside)
        speeds = _leaving(known[np.minimum(np.arange(jobs), known.size - 1)], rate, scv)
        return birth_death_law(np.full(jobs, rate), speeds), speeds

    @cache
    def more(inside: float) -> float:
        return rate * (1.0 - float(law_at(inside, tokens)[0][-1])) - inside

    found = rate if more(rate) >= 0 else float(brentq(more, 0.0, rate, xtol=rate * NEAR))
    law, speeds = law_at(found, tokens)
    held, lost, through = float(law @ np.arange(law.size)), float(law[-1]), float(law[1:] @ speeds)
    alone, most = 1 / float(speeds_at(found)[0]), float(speeds_at(found)[-1])
    hold = held / through if through > 0 else alone
    if plain is not None and unlimited is not None and rate < most:
        everyone, _ = law_at(rate, max(tokens, MANY), unlimited)
        waits = float(everyone @ np.arange(everyone.size)) / rate - alone
        right = plain(rate) - alone
        if waits > SHORT * alone and right < np.inf:
            hold += (hold - alone) * min((hold - alone) / waits, 1.0) * (right / waits - 1)
    return Pool(
        wait=Moments(0.0, 0.0), hold=hold, taken=rate, most=most, busy=through * hold / tokens, lost=lost
    )


def _leaving(speeds: FloatArray, rate: float, scv: float) -> FloatArray:
    """Return the mean rates at which 1, 2, ... jobs leave, that come at a rate and leave so unevenly."""
    if abs(scv - 1) < NEAR or speeds.size < 2:
        return speeds
    first = max(min(round(float(speeds[-1] / speeds[0])), speeds.size) - 1, 0)
    queue = speeds[first : first + MANY]
    stages = _stages(1.0, max(scv, 1 / MOST_PHASES))
    known = queue * conditional_rates(stages, np.concatenate([[0.0], rate / queue[:-1], [0.0]]))
    longer = np.full(max(speeds.size - first - MANY, 0), known[-2] if known.size > 1 else 0.0)
    return np.concatenate([speeds[:first], known, longer])


def speeds_inside(state: State, pool: str, inside: PoolSubnetwork) -> tuple[Speeds, list[str]]:
    """Return the speeds of a window that loses jobs, and the pools in it that are a region of their own.

    ``state``: the system in a round of its fixed point; ``inside``: its inside, all of it.

    `closed_mva` what is outside of other pools, and these, of whose copies each job takes a random one.
    Those that branches or other flows take from keep their waits.
    """
    (take,) = state.takes(pool)
    flow, nested = state.system.flow(take.flow), state.nested
    inner = [n for n in nested[pool] if n in state.curves and not any(n in nested[m] for m in nested[pool])]
    alone = [name for name in inner if {each.flow for each in state.takes(name)} == {flow.name}]
    regions = [name for name in alone if name not in state.in_branches]
    if not regions:
        return inside.speeds, regions

    others = state.among(flow.name)

    def rates(rate: float) -> dict[str, float]:
        return {**state.rates, flow.name: rate}

    def times_at(rate: float) -> dict[str, float]:
        curves = {name: state.curves[name] for name in inner}
        met = pool_waits_at(state, rates(rate), curves, {flow.name: rate})
        program, held = walk(state, flow, state.poisson.evaluate(rates(rate), met=others), met)
        times = dict(program.by_part)
        for name in regions:
            for part, time in held[name].parts.items():
                times[part] -= time / state.tokens_each(name)
            times.pop(name, None)
        return {part: max(time, 0.0) for part, time in times.items()}

    profile = Profile(lambda _: {}, limit=np.inf, rates=np.zeros(1), servers={})
    now = state.rates[flow.name]
    if any(time > 0 for time in times_at(now * NEAR).values()):
        limit = now * state.poisson.limit(state.rates, {flow.name}, met=others)
        most, servers = float(inside.profile.rates[-1]), state.servers({flow.name})
        profile = profile_of(times_at, limit=limit, most=most, servers=servers)

    @cache
    def held(name: str, come: float) -> FloatArray:
        return _copies_together(state.subnetworks[name], come, inside.tokens)

    def speeds_at(rate: float) -> FloatArray:
        found = []
        for name in regions:
            each = state.taken(name, rates(1.0))
            one = state.subnetworks[name].tokens == 1
            come = state.rates[flow.name] if one else max(rate, NEAR)
            if state.subnetworks[name].speeds(0.0)[-1] <= 0:  # others fill a part inside
                return np.zeros(1)
            found.append(Region(speeds=held(name, come * each) / each))
        return closed_mva(profile, inside.tokens, regions=found).rates

    return speeds_at, regions


def _copies_together(inside: PoolSubnetwork, rate: float, most: int) -> FloatArray:
    """Return the rates at which 1, 2, ... jobs, each at a random copy of a pool, leave it.

    Where a copy has one token those who hold one go round inside together, as many as do, with queues in
    front of them: `qmodels.llc.bounded_queues`. Of others each is met by a stream of the rest.
    """
    copies = inside.copies
    if inside.tokens > 1:
        return scattered(inside.speeds(rate), copies, most)
    throughput = np.append(0.0, closed_mva(inside.profile, copies).rates)
    alone, each = 1.0 / float(throughput[1]), 1.0 / inside.profile.limit

    def stages(busy: FloatArray) -> Stages:
        mean = float(busy @ np.arange(copies + 1)) / float(busy @ throughput)
        # A wait inside varies as that for jobs of exponential services at the fullest part.
        waits = max(mean - alone, 0.0)
        return _stages(mean, (inside.scv * alone**2 + waits * min(alone, each)) / mean**2)

    found = bounded_queues(servers=copies, room=most, arrival_rate=rate, throughput=throughput, stages=stages)
    return found.throughput


def _stages(mean: float, scv: float) -> Stages:
    """Return exponential stages in a row, some left early, of a mean and a squared coefficient of variation.

    Two where it is at least `FEWEST_PHASES`, as Marie has them; else equal ones, as many as come nearest.
    """
    if scv >= FEWEST_PHASES:
        return Stages(rates=np.array([2.0, 1.0 / scv]) / mean, onward=np.array([0.5 / scv, 0.0]))
    count = round(1.0 / max(scv, 1e-2))
    return Stages(rates=np.full(count, count / mean), onward=np.append(np.ones(count - 1), 0.0))


def scattered(speeds: FloatArray, copies: int, most: int) -> FloatArray:
    """Return the speeds of all copies of a pool together with 1, 2, ... jobs, each at a random copy.

    ``speeds``: of one copy with 1, 2, ... jobs; the last holds for more; ``copies``: how many there are.

    Independent queues of which the number of all jobs is known: the weights of the copies are convolved.
    """
    down = speeds[np.minimum(np.arange(most), speeds.size - 1)]
    # Weights are damped so that about so many jobs are the likeliest; the factor is taken out at the end.
    damp = float(down[-1]) * most / (most + copies)
    power = np.exp(np.concatenate(([0.0], np.cumsum(np.log(damp / down)))))
    total, left = np.eye(1, most + 1)[0], copies
    while left:
        if left % 2:
            total = np.convolve(total, power)[: most + 1]
            total /= total.max()
        left //= 2
        power = np.convolve(power, power)[: most + 1]
        power /= power.max()
    known = total[:-1] > LEAST_WEIGHT
    number = np.arange(1, most + 1)
    rarely = copies * float(down[0]) * number / (number + copies - 1)
    return np.where(known, copies * damp * total[:-1] / np.maximum(total[1:], LEAST_WEIGHT), rarely)


def limit_inside(state: State, pool: str, limit: float) -> float:
    """Return the factor of the rates at which what a pool holds tokens of is full, at most ``limit``."""
    for name in state.nested[pool]:
        if name not in state.curves:
            continue
        if state.shared(name):
            limit = min(limit, state.pool_limit(name, {take.flow for take in state.takes(pool)}))
            continue
        now = state.taken(name, state.rates)

        def room(factor: float, name: str = name, now: float = now) -> float:
            return float(state.curves[name](factor * now).most) / now - factor

        most = min(limit, room(NEAR)) * (1 - NEAR)
        if most > 0 and room(most) < 0:
            limit = float(brentq(room, most * NEAR, most))
    return limit


def entering(state: State) -> dict[str, float]:
    """Return the share of the jobs of each flow that find room in its window."""
    return {
        flow.name: 1.0 - state.curves[window_of(flow.name)](state.rates[flow.name]).lost
        for flow in state.system.flows
        if flow.loses and window_of(flow.name) in state.curves
    }
