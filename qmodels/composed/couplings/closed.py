"""A closed flow and the parts it goes round: its rate is what its jobs leave room for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import brentq

from qmodels.checks import FloatArray
from qmodels.composed.couplings.closed_mva import closed_mva
from qmodels.composed.couplings.profile import profile_of
from qmodels.composed.couplings.regions import Region
from qmodels.composed.decomposition import PartResponses
from qmodels.composed.fixed_point.pool_waits import latency_of, pool_waits, pool_waits_at, walk
from qmodels.composed.fixed_point.state import State
from qmodels.composed.program_latency import by_part
from qmodels.systems.composed.flow import Flow

NEAR = 1e-4
"""Relative size of an error in the rate that jobs see."""
FULL = 1 - 1e-9
"""Share of the rate at which the first resource is full that jobs see at most."""


def closed_rate(state: State, flow: Flow) -> float:
    r"""Return the rate of a closed flow.

    ``state``: the system in a round of its fixed point; ``stays`` at the flow's own pools are set.

    That of `closed_mva` for what is done outside its own pools, each of which is a region. Pools that other
    flows use too, or that branches take from, keep their waits.
    """
    idle = float(flow.think.mean) if flow.think is not None else 0.0
    own = [
        pool
        for pool in state.subnetworks
        if {take.flow for take in state.takes(pool)} == {flow.name}
        and not any(pool in inner for inner in (*state.nested.values(), state.in_branches))
    ]
    fixed = {pool: curve for pool, curve in state.curves.items() if pool not in own}

    def times_of(answers: PartResponses) -> dict[str, float]:
        taken, held = walk(state, flow, answers, pool_waits_at(state, state.rates, fixed))
        times = dict(taken.by_part)
        for pool in own:
            for part, time in held[pool].parts.items() if pool in held else ():
                times[part] -= time / state.tokens_each(pool)
            times.pop(pool, None)
        return times

    def times_at(rate: float) -> dict[str, float]:
        return times_of(state.view(flow, rate))

    def alone_at(rate: float) -> dict[str, float]:
        return times_of(state.view(flow, rate).alone(state.view(flow, 0.0)))

    others = state.among(flow.name)
    most = state.parts.limit({**state.rates, flow.name: 1.0}, [flow.name], met=others)
    regions = []
    for pool in own:
        each = state.taken(pool, {**state.rates, flow.name: 1.0})
        inside = state.subnetworks[pool]
        speeds = spread(inside.speeds(state.taken(pool, state.rates)), inside.copies) / each
        if speeds[0] <= 0:  # the others fill a part inside
            state.stays[pool], state.numbers[flow.name] = np.inf, {}
            return 0.0
        regions.append(Region(speeds=speeds, scv=inside.scv))
    alone = idle + sum(times_at(0.0).values()) + sum(1 / float(region.speeds[0]) for region in regions)
    if alone <= 0:
        raise ValueError(f"flow {flow.name!r}: program must take time in a closed flow, got none")
    outside = profile_of(
        times_at,
        limit=most,
        most=2 * flow.population / alone,
        servers=state.servers({flow.name}),
        alone_at=alone_at if state.leaves_traces else None,
    )
    table = closed_mva(outside, flow.population, idle=idle, regions=regions)
    rate = float(table.rates[-1])
    for pool, time in zip(own, table.regions, strict=True):
        each = state.taken(pool, {**state.rates, flow.name: 1.0})
        state.stays[pool] = time / each
    numbers = _numbers(state, flow, dict(zip(outside.parts, table.left, strict=True)), rate)
    missing = flow.population - rate * (idle + sum(table.regions)) - sum(table.left)
    if missing > 0 and table.left:
        # Those who wait beyond what parts answer do so at the fullest.
        fullest = max(numbers, key=lambda part: numbers[part])
        numbers[fullest] += missing
    state.count(flow.name, numbers)
    return rate


def _numbers(state: State, flow: Flow, outside: Mapping[str, float], rate: float) -> dict[str, float]:
    """Return how many jobs of a closed flow are at each part, those in pools of its own among them."""
    found = dict(outside)
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


def see(state: State, flow: Flow) -> None:
    """Find the rate of the others that a job of a closed flow sees: its program takes what N / X says."""
    idle = float(flow.think.mean) if flow.think is not None else 0.0
    rate = state.rates[flow.name]
    if rate <= 0:  # the others fill a part that its jobs need
        state.seen[flow.name] = state.extra[flow.name] = 0.0
        return
    time = flow.population / rate - idle
    met = pool_waits(state, {**state.rates, flow.name: rate})

    def beyond(seen: float) -> float:
        return float(latency_of(state, flow, state.view(flow, seen), met).span.mean) - time

    state.extra[flow.name] = 0.0
    others = state.among(flow.name)
    high = state.parts.limit({**state.rates, flow.name: rate}, [flow.name], met=others) * rate * FULL
    high = min(high, 1e3 * rate)
    if beyond(0.0) >= -(NEAR**2) * time:
        state.seen[flow.name] = 0.0
    elif beyond(high) <= 0:
        state.seen[flow.name] = high
        state.extra[flow.name] = -beyond(high)
    else:
        state.seen[flow.name] = seen = float(brentq(beyond, 0.0, high, xtol=rate * NEAR, rtol=NEAR))
        state.extra[flow.name] = max(-beyond(seen), 0.0)
