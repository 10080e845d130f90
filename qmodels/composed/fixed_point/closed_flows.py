"""Closed flows: their rates by mean value analysis, and limited numbers of jobs as others meet them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import sqrt

import numpy as np
from scipy.optimize import brentq

from qmodels.checks import FloatArray
from qmodels.composed.couplings.closed_mva import Region, closed_mva
from qmodels.composed.couplings.rate_profile import profile_of
from qmodels.composed.decomposition import LEAST, PartResponses
from qmodels.composed.fixed_point.pool_subnetworks import entering
from qmodels.composed.fixed_point.pool_waits import (
    NO_POOLS,
    PoolWaits,
    latency_of,
    pool_waits,
    pool_waits_at,
    walk,
)
from qmodels.composed.fixed_point.state import INF, State
from qmodels.composed.latency import by_part
from qmodels.numerics.mixing import Mixing, numbers_in, put_into
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.program_form import window_of

NEAR = 1e-4
"""Relative size of an error in the rate that jobs see."""
FULL = 1 - 1e-9
"""Share of the rate at which the first resource is full that jobs see at most."""


def closed_rate(state: State, flow: Flow) -> float:
    r"""Return the rate of a closed flow.

    ``state``: the system in a round of its fixed point; ``stays`` at the flow's own pools are set.

    That of `closed_mva` for what is done outside its own pools, each of which is a region. Pools that open
    flows use too are met by as many as are there; others, or that branches take from, keep their waits.
    """
    idle = float(flow.think.mean) if flow.think is not None else 0.0
    own = [
        pool
        for pool in state.subnetworks
        if {take.flow for take in state.takes(pool)} == {flow.name}
        and not any(pool in inner for inner in (*state.nested.values(), state.in_branches))
    ]
    others = state.among(flow.name)
    most = state.parts.limit({**state.rates, flow.name: 1.0}, [flow.name], met=others)
    beside = {p: curve for p, curve in state.curves.items() if p not in own}
    some = [pool for pool in beside if flow.name in state.shared(pool)]
    # Of these each is a part, at which jobs wait and hold tokens.
    joined = [p for p in some if not any(p in inner for inner in (*state.nested.values(), state.in_branches))]
    kept = None if some else pool_waits_at(state, state.rates, beside)
    limits = {pool: state.pool_limit(pool, {flow.name}) * state.rates[flow.name] for pool in some}
    full = min(limits, key=limits.__getitem__, default="")  # the pool that it fills, or none before a part
    full, most = (full, limits[full]) if full and limits[full] < most else ("", most)

    def times_of(answers: PartResponses, rate: float) -> dict[str, float]:
        met = kept or pool_waits_at(state, state.rates, beside, {flow.name: max(rate, LEAST)})
        taken, held = walk(state, flow, answers, met)
        times = dict(taken.by_part)
        for pool in (*own, *joined):
            for part, time in held[pool].parts.items() if pool in held else ():
                times[part] -= time / state.tokens_each(pool)
                times[pool] = times.get(pool, 0.0) + time / state.tokens_each(pool)
        return {part: time for part, time in times.items() if part not in own}

    def times_at(rate: float) -> dict[str, float]:
        return times_of(state.view(flow, rate), rate)

    def alone_at(rate: float) -> dict[str, float]:
        lone = state.view(flow, rate, traces=True).alone(state.view(flow, 0.0))
        return times_of(lone, rate)

    regions = []
    for pool in own:
        each, taken = state.taken(pool, {**state.rates, flow.name: 1.0}), state.taken(pool, state.rates)
        inside = state.subnetworks[pool]
        speeds = spread(inside.speeds_of(taken, state.visitors(pool)), inside.copies) / each
        if speeds[0] <= 0:  # the others fill a part inside
            state.stays[pool], state.numbers[flow.name] = np.inf, {}
            return 0.0
        regions.append(Region(speeds=speeds, scv=inside.scv))
    alone = idle + sum(times_at(0.0).values()) + sum(1 / float(region.speeds[0]) for region in regions)
    if alone <= 0:
        raise ValueError(f"flow {flow.name!r}: program must take time in a closed flow, got none")
    now = max(state.rates[flow.name], LEAST)
    ends = {p: end * now for p, end in state.ends(state.parts, {flow.name}, others).items()}
    ends |= {p: limits[p] for p in joined if state.tokens(p) == 1 and state.system.copies(p) == 1}
    outside = profile_of(
        times_at,
        limit=most,
        most=2 * flow.population / alone,
        servers=state.servers({flow.name}),
        alone_at=alone_at if state.leaves_traces else None,
        ends=ends,
        dear=bool(some),
    )
    table = closed_mva(outside, flow.population, idle=idle, regions=regions)
    rate = float(table.rates[-1])
    stays = list(table.regions)
    slowest = min(range(len(own)), key=lambda k: regions[k].speeds[-1], default=None)
    if slowest is not None and rate > regions[slowest].speeds[-1]:
        # Services that vary little shorten waits, but no region lets more through than it can.
        stays[slowest] += flow.population * (1 / float(regions[slowest].speeds[-1]) - 1 / rate)
        rate = float(regions[slowest].speeds[-1])
    for pool, time in zip(own, stays, strict=True):
        each = state.taken(pool, {**state.rates, flow.name: 1.0})
        state.stays[pool] = time / each
    numbers = _numbers(state, flow, dict(zip(outside.parts, table.left, strict=True)), rate, joined)
    missing = flow.population - rate * (idle + sum(stays)) - sum(table.left)
    if missing > 0 and table.left:
        # Those who wait beyond what parts answer do so at the fullest.
        fullest = full or max(numbers, key=lambda part: numbers[part])
        numbers[fullest] = numbers.get(fullest, 0.0) + missing
    state.count(flow.name, numbers)
    return rate


def _numbers(
    state: State, flow: Flow, outside: Mapping[str, float], rate: float, joined: Sequence[str]
) -> dict[str, float]:
    """Jobs of a closed flow at each part, those in pools among them."""
    found = dict(outside)
    held = walk(state, flow, state.answers(flow), pool_waits(state))[1] if joined else {}
    for pool in joined:
        for part, time in held[pool].parts.items() if pool in held else ():
            number = min(rate * time / state.tokens_each(pool), found.get(pool, 0.0))
            found |= {part: found.get(part, 0.0) + number, pool: found.get(pool, 0.0) - number}
    for pool in state.stays:
        if pool in state.curves and any(take.flow == flow.name for take in state.takes(pool)):
            taken = state.taken(pool, {**state.rates, flow.name: rate})
            met, inside = state.curves[pool](taken).staying(state.stays[pool]), state.subnetworks[pool]
            for part, time in inside.times_of(met.hold).items():
                found[part] = found.get(part, 0.0) + taken * time
    return by_part(found)


def spread(speeds: FloatArray, copies: int) -> FloatArray:
    """Return the speeds of all copies of a pool together with 1, 2, ... jobs, spread evenly over them.

    ``speeds``: of one copy with 1, 2, ... jobs; ``copies``: how many there are.

    >>> spread(np.array([1.0, 1.5]), 2)
    array([1. , 2. , 2.5, 3. ])
    """
    each = np.arange(1, copies * len(speeds) + 1) / copies
    return copies * np.interp(each, np.arange(len(speeds) + 1), np.append(0.0, speeds))


def set_seen_rate(state: State, flow: Flow) -> None:
    """Find the rate of the others that a job of a closed flow sees: its program takes what N / X says."""
    idle = float(flow.think.mean) if flow.think is not None else 0.0
    rate = state.rates[flow.name]
    if rate <= 0:  # the others fill a part that its jobs need
        state.seen[flow.name] = state.extra[flow.name] = 0.0
        return
    time = flow.population / rate - idle
    some = [pool for pool in state.curves if flow.name in state.shared(pool)]
    kept = None if some else pool_waits(state)

    @cache
    def beyond(seen: float) -> float:
        met = kept or pool_waits(state, {flow.name: max(seen, LEAST)})
        return float(latency_of(state, flow, state.view(flow, seen), met).span.mean) - time

    state.extra[flow.name] = 0.0
    others = state.among(flow.name)
    most = state.parts.limit({**state.rates, flow.name: rate}, [flow.name], met=others)
    most = min([most, *(state.pool_limit(pool, {flow.name}) for pool in some)])
    high = min(most * rate * FULL, 1e3 * rate)
    if (more := beyond(0.0)) >= -(NEAR**2) * time:
        state.seen[flow.name] = 0.0
        # Back at once they meet less than those who come at random.
        state.extra[flow.name] = -more if more < INF else 0.0
    elif beyond(high) <= 0:
        state.seen[flow.name] = high
        state.extra[flow.name] = -beyond(high)
    else:
        state.seen[flow.name] = seen = float(brentq(beyond, 0.0, high, xtol=rate * NEAR, rtol=NEAR))
        state.extra[flow.name] = max(-beyond(seen), 0.0)


Holds = Mapping[tuple[str, str], tuple[float, float]]
"""By flow and pool, how long tokens are held, and how many [ns]."""
DIGITS = 7
"""Significant digits of the rates, so that parts are asked the same thing once."""
STEPS = 3
"""How often rates are mended in a round, at most: the next one mends them again beside all else."""
MET = 1e-6
"""Relative size of an error in the rates at which others are met, in a round: that at which rounds end."""


def match_populations(state: State) -> None:
    r"""Find at which rates others meet the flows of which only so many jobs are at a part.

    ``state``: the system in a round of its fixed point; ``numbers`` of its closed flows are set.

    Closed flows, and those with pools or windows, fill a part no more than their numbers do; an open stream
    of their rate would queue there without end. What others meet is the open stream that leaves as many
    there. With :math:`Q_f` jobs of such a flow at a part, a time :math:`T_f` that each takes there, the load
    :math:`\rho_f = w_f v_f` that they bring and :math:`b_f = T_f (1 - \rho)`, in which there is hardly a
    queue left,

    .. math:: v_f = Q_f y / b_f, \quad y = (1 - \rho_o) / (1 + \sum_f Q_f w_f / b_f),

    :math:`\rho_o` being the load of all others: exact in mixed networks of product form, and always below
    what these leave. A job of a closed flow of N meets :math:`(N-1)/N` of its own [1]_.

    References
    ----------
    .. [1] P. J. Schweitzer, "Approximate analysis of multiclass closed networks of queues", Int. Conf. on
       Stochastic Control and Optimization, Amsterdam, 1979.
    """
    pools = {take.flow for take in state.form.takes}
    limited = [flow for flow in state.system.flows if flow.closed or flow.name in pools]
    if not limited or len(state.system.flows) == 1:
        return
    for flow in limited:
        if not flow.closed:
            state.count(flow.name, _open_numbers(state, flow))
    for flow, others in state.identical:
        state.numbers |= {name: state.numbers[flow.name] for name in others}
    mixing, held = Mixing(), _held(state)
    for _ in range(STEPS):
        asked = numbers_in(*state.met.values())
        if _mend(state, limited, held) < MET:
            return
        following = mixing.after(asked, numbers_in(*state.met.values()))
        put_into(np.array([_rounded(rate) for rate in following.tolist()]), *state.met.values())


def _open_numbers(state: State, flow: Flow) -> dict[str, float]:
    """Jobs of an open flow at each part that they visit in pools or windows alone."""
    asked = [site for site in state.form.sites if site.flow == flow.name]
    outside = {site.part for site in asked if not site.held}
    if not flow.window:
        outside.add(state.system.interconnect)
    met = pool_waits(state)
    found = latency_of(state, flow, met=met)
    if not found.span.finite:
        return {site.part: INF for site in asked if site.part not in outside}
    rate = state.rates[flow.name] * _staying(state, flow, met, found.span.mean)
    return {part: rate * time for part, time in by_part(found.by_part).items() if part not in outside}


def _held(state: State) -> dict[tuple[str, str], tuple[float, float]]:
    """Time that a job of each flow of limited number holds tokens of pools that others use too. [ns].

    With it, how many of them do.
    """
    found, met = {}, pool_waits(state)
    for pool in state.curves:
        for name in state.shared(pool):
            flow = state.system.flow(name)
            program, held = walk(state, flow, state.answers(flow), met)
            time = held[pool].span.mean / state.tokens_each(pool) if pool in held else 0.0
            number = state.rates[name] * _staying(state, flow, met, program.span.mean) * time
            found[name, pool] = time, number
    return found


def _staying(state: State, flow: Flow, met: PoolWaits, time: float) -> float:
    """Return the share of a flow's jobs that find room in its window, times how much longer they stay there.

    As long as the window says, and not the stream that would stay nearly as long.
    """
    if not flow.loses or window_of(flow.name) not in met.pools or not 0 < time < INF:
        return entering(state).get(flow.name, 1.0)
    return entering(state)[flow.name] * met.pools[window_of(flow.name)].hold / time


def _mend(state: State, limited: list[Flow], held: Holds) -> float:
    """Bring the rates nearer to those that leave the numbers; return the largest relative change."""
    names = [flow.name for flow in limited]
    parts = state.form.parts(state.system.interconnect)
    met = {
        (name, part): max(state.met.get("", {}).get((name, part), state.rates[name] / 2), LEAST)
        for name in names
        for part in parts
        if part in state.numbers[name]
    }
    answers = state.parts.evaluate(state.rates, met=met)
    times = {f.name: by_part(walk(state, f, answers, NO_POOLS)[0].by_part) for f in limited}
    found: dict[str, dict[tuple[str, str], float]] = {"": {}, **{f.name: {} for f in limited if f.closed}}
    for part in parts:
        here = [name for name in names if (name, part) in met]
        load = answers.intensity[part]
        if load >= 1 or not all(times[name].get(part, 0.0) < INF for name in here):
            found[""] |= {(name, part): met[name, part] / 4 for name in here}
            continue
        own = {
            name: max(load - state.parts.loads(state.rates, [part], {**met, (name, part): 0.0})[part], 0.0)
            for name in here
        }
        bare = {name: max(times[name].get(part, 0.0) * (1 - load), 1e-300) for name in here}
        jobs = {name: state.numbers[name][part] for name in here}
        known = [name for name in here if jobs[name] < INF and times[name].get(part, 0.0) > 0]
        queue = {name: jobs[name] * own[name] / met[name, part] / bare[name] for name in known}
        left = max(1 - load + sum(own[name] for name in queue), 0.0)
        for looker, rates in found.items():
            less = queue.get(looker, 0.0) / state.system.flow(looker).population if looker else 0.0
            room = left / (1 + sum(queue.values()) - less)
            for name, number in jobs.items():
                last = state.met.get(looker, {}).get((name, part), met[name, part])
                # Nothing is known of those that fill a part before their pools are; steps are halved.
                rate = number * room / bare[name] if name in queue else last
                rates[name, part] = _rounded(sqrt(max(rate, LEAST) * last))
    found[""] |= _mended_at_pools(state, held)
    change = max(
        (abs(rate / state.met.get("", {}).get(key, INF) - 1) for key, rate in found[""].items()), default=0.0
    )
    state.met = found
    return change


def _mended_at_pools(state: State, held: Holds) -> dict[tuple[str, str], float]:
    """Return at which rates others meet flows at pools, nearer to those that leave the numbers there."""
    found: dict[tuple[str, str], float] = {}
    for pool in dict.fromkeys(pool for _, pool in held):
        met = state.met_varied(pool, state.rates, {})
        pace = state.curves[pool](state.taken(pool, met))
        names = state.shared(pool)
        load = state.taken(pool, met) / pace.most if pace.most > 0 else INF
        each = {f: state.taken(pool, {**dict.fromkeys(met, 0.0), f: 1.0}) for f in names}
        bare = {f: (each[f] * pace.wait.mean + held[f, pool][0]) * (1 - load) for f in names}
        if not load < 1 or not all(0 < time < INF for time in bare.values()):
            found |= {(f, pool): met[f] / 4 for f in names}
            continue
        jobs = {f: state.numbers[f].get(pool, 0.0) + held[f, pool][1] for f in names}
        queue = {f: jobs[f] * each[f] / pace.most / bare[f] for f in names}
        room = (1 - load + sum(met[f] * each[f] for f in names) / pace.most) / (1 + sum(queue.values()))
        for f in names:
            rate = jobs[f] * room / bare[f] if jobs[f] < INF else met[f]
            found[f, pool] = _rounded(sqrt(max(rate, LEAST) * max(met[f], LEAST)))
    return found


def _rounded(value: float) -> float:
    return float(f"{max(value, LEAST):.{DIGITS}g}")
