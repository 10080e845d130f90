"""The fixed point of a system, and by which factor open flows may grow until a resource is full."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq

from qmodels.checks import FloatArray
from qmodels.composed.couplings.correlated_visits import ForkCorrelation, effective_scv
from qmodels.composed.couplings.free_lists import losses_of, surviving, trials_of
from qmodels.composed.decomposition import START, Decomposition
from qmodels.composed.fixed_point.closed_flows import closed_rate, match_populations, set_seen_rate
from qmodels.composed.fixed_point.pool_subnetworks import entering, update_pool
from qmodels.composed.fixed_point.pool_waits import latency_of
from qmodels.composed.fixed_point.state import INF, Rates, State, begun_scv
from qmodels.composed.moments import moments_of
from qmodels.composed.variability import Variability
from qmodels.numerics.mixing import Mixing, numbers_in, put_into
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import batch_companions
from qmodels.systems.composed.program_form import ProgramForm
from qmodels.systems.composed.system import System
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station

DIGITS = 5
"""Significant digits of what passes from part to part of variability."""


def update_variability(state: State, weight: float) -> None:
    """Let variability pass through the programs once more."""
    _pass_on(state, state.parts, weight, begun_scv)
    if state.parts.sources and state.form.takes:
        taken = {name: state.taken(name, state.rates) for name in state.curves}
        waits = {name: state.curves[name](rate).wait.mean for name, rate in taken.items() if rate > 0}
        last = state.parts.pools
        state.parts.pools = {
            name: _rounded((wait + last.get(name, wait)) / 2) for name, wait in waits.items() if wait < INF
        }
    if any(flow.loses for flow in state.system.flows) or any(
        isinstance(part, FreeList) or getattr(part, "capacity", INF) < INF
        for part in state.system.parts.values()
    ):
        _lose(state)
    if any(not state.system.flow(take.flow).closed for take in state.form.takes):
        _pass_on(state, state.poisson, weight, None)


def _lose(state: State) -> None:
    """Find the trials of allocations, and the jobs that are lost."""
    answers = state.parts.evaluate(state.rates)
    state.parts.trials = trials_of(state.system, state.form, state.rates, answers)
    times = {flow.name: latency_of(state, flow).span.mean for flow in state.system.flows}
    losses = losses_of(state.system, state.form, state.parts, answers, times)
    state.parts.entering = entering(state)
    state.parts.coming, state.ending = surviving(state.form, losses, state.parts.entering)
    # PoolSubnetwork a window the jobs that are lost in front of it are not counted.
    state.poisson.coming, _ = surviving(state.form, losses, {})
    state.poisson.trials = state.parts.trials


def _pass_on(
    state: State, parts: Decomposition, weight: float, begun: Callable[[Flow], float] | None
) -> None:
    """Pass variability on; without what begins it, as where jobs go round, arrivals are by chance."""
    answers = parts.evaluate(state.rates, met=state.among())
    scvs, batches = dict(parts.scvs), dict(parts.batches)
    for flow in state.system.flows:
        root = state.form.roots[flow.name]
        for number, size in ForkCorrelation(state.system, answers.responses).find(state.form, root).items():
            batches[number] = _rounded(weight * size + (1 - weight) * batches.get(number, size))
        if begun is None:
            continue
        passed = Variability(answers, parts.raised).find(state.form, root, begun(flow), closed=flow.closed)
        for number, plain in passed.items():
            if number < 0:
                scvs[number] = _rounded(weight * plain + (1 - weight) * scvs.get(number, plain))
                continue
            load = answers.intensity[state.form.sites[number].part]
            scv = _revisited(state, flow.name, number, plain, min(load, 1.0))
            site = state.form.sites[number]
            if site.batch.size <= 2:
                # In the long run copies that came apart are as many as there are, however near they come.
                scv = max(1 + (scv - 1) * batch_companions(site.copies) / batches.get(number, 1.0), 0.0)
            # All visits of a job at once are as bursty as they can be. Without that end one visit could make
            # the next burstier in every round.
            together = (state.visit_laws[flow.name][site.part].size - 1) * max(site.batch.size - 1, 1)
            scv = min(scv, together * (max(begun(flow), 1.0) + 1.0))
            parts.raised[number] = max(scv / plain, 1.0) if plain > 0 else 1.0
            scvs[number] = _rounded(weight * scv + (1 - weight) * scvs.get(number, scv))
    parts.scvs, parts.batches = scvs, batches


def _revisited(state: State, flow: str, number: int, scv: float, load: float) -> float:
    """Return the variability of visits to a station by jobs that come several times.

    Where that makes them steadier than their jobs, which is of heavy traffic, in proportion to the load:
    where there is none a visit meets others by chance. The line between both limits is that of Reiman and
    Simon, "An interpolation approximation for queueing systems with Poisson input", Operations Research
    36(3), 1988.
    """
    part = state.form.sites[number].part
    station = state.system.parts[part]
    if not isinstance(station, Station):
        return scv
    law: Any = station.service_law(flow)
    full = effective_scv(
        scv=scv,
        service_scv=float(law.scv),
        law=state.visit_laws[flow][part],
        sharing=station.discipline == "sharing",
    )
    return full if full >= scv else scv + load * (full - scv)


def _rounded(value: float) -> float:
    """Return a number in as many digits as parts need, so that they are asked the same thing once."""
    return float(f"{value:.{DIGITS}g}")


ROUNDS = 60
TOLERANCE = 1e-6
"""Relative change of the rates and variabilities of a round at which they are settled."""

STEADY = 6
"""Rounds in which the numbers may go up and down a little, as where jobs see tables of times."""
GOOD = 2e-3
"""Relative size of that; the mean counts then."""
BEARABLE = 0.05
"""The same after all rounds: the mean counts still, with a doubt."""


def settle(state: State, rates: Rates | None = None, tolerance: float = TOLERANCE) -> int:
    """Find the fixed point, of open flows of other rates if they are given; return the rounds it took."""
    for flow in state.system.flows:
        rate = 0.0 if flow.closed else float(flow.mean_rate)
        state.rates[flow.name] = rate if rates is None else rates.get(flow.name, rate)
    _go_round(state, 0.5)
    match_populations(state)
    old, recent, mixing = _numbers(state), list[list[float]](), Mixing()
    for count in range(1, ROUNDS + 1):
        asked = numbers_in(state.rates, *state.met.values())
        for pool in state.nested:
            update_pool(state, pool)
        _go_round(state)
        match_populations(state)
        update_variability(state, 0.5 if count > 10 else 1.0)
        new, found = _numbers(state), numbers_in(state.rates, *state.met.values())
        old[: len(state.rates)] = asked[: len(state.rates)].tolist()
        recent = [*recent[1 - STEADY :], new]
        if _steady(recent, GOOD if count < ROUNDS else BEARABLE):
            old = new = np.mean(recent, axis=0).tolist()
            state.wavers = _spread(recent).max() if count == ROUNDS else 0.0
            state.rates |= dict(zip(state.rates, new, strict=False))
        if len(new) == len(old) and np.allclose(new, old, rtol=tolerance, atol=0):
            _fit(state)
            for flow, others in state.identical:
                set_seen_rate(state, flow)
                for name in others:
                    state.seen[name], state.extra[name] = state.seen[flow.name], state.extra[flow.name]
            return count
        old = new
        put_into(mixing.after(asked, found), state.rates, *state.met.values())
    raise RuntimeError(f"the system did not settle in {ROUNDS} rounds (rates {state.rates!r}); simulate it")


def _go_round(state: State, share: float = 1.0) -> None:
    """Find the rates of closed flows, one after the other."""
    for flow, others in state.identical:
        before, rate = state.rates[flow.name], closed_rate(state, flow) * share
        # Each of several leaves room for the others, one after the other.
        rate = before + (rate - before) / (len(others) + 1) if before > 0 else rate
        state.rates |= dict.fromkeys((flow.name, *others), rate)


def _fit(state: State) -> None:
    """Let closed and losing flows share what others leave of parts that they fill, each found alone."""
    loads = state.parts.evaluate(state.rates).intensity
    limited = {flow.name for flow in state.system.flows if flow.closed or flow.loses}
    others = {name: 0.0 if name in limited else rate for name, rate in state.rates.items()}
    full = [site.part for site in state.form.sites if loads[site.part] > 1]
    rest = state.parts.loads(others, full) if full else {}
    for name in limited:
        asked = {site.part for site in state.sites_of(name) if rest.get(site.part, 1.0) < 1}
        state.room[name] = min([1.0, *((1 - rest[part]) / (loads[part] - rest[part]) for part in asked)])
        if state.system.flow(name).closed:
            state.rates[name] *= state.room[name]
        elif state.room[name] < 1:
            mine = {site.number for site in state.sites_of(name)}
            parts, fewer = state.parts, state.room[name]
            parts.coming = {n: share * fewer if n in mine else share for n, share in parts.coming.items()}
            parts.entering = {**parts.entering, name: parts.entering.get(name, 1.0) * fewer}
            state.ending[name] *= fewer


def _steady(recent: list[list[float]], most: float) -> bool:
    """Return whether the numbers of the last rounds go up and down by less than a share."""
    if len(recent) < STEADY or len({len(one) for one in recent}) > 1:
        return False
    spread, steps = _spread(recent), np.diff(recent, axis=0)
    wavers = (steps.max(axis=0) > 0) & (steps.min(axis=0) < 0)
    return bool(spread.max() <= most and np.all(wavers | (spread <= TOLERANCE)))


def _spread(recent: list[list[float]]) -> FloatArray:
    """Return by which share of them the numbers of the last rounds differ."""
    shares: FloatArray = np.ptp(recent, axis=0) / np.maximum(np.abs(recent).max(axis=0), 1e-12)
    return shares


def _numbers(state: State) -> list[float]:
    passed_on = (
        each.values() for one in (state.parts, state.poisson) for each in (one.scvs, one.batches, one.coming)
    )
    met = (*state.met.get("", {}).values(), *state.parts.pools.values())
    return [*state.rates.values(), *met, *(number for some in passed_on for number in some)]


SHARES = (0.6, 0.95, 0.95, 0.95)
"""Of what is known of the capacity, at which the system is looked at, one after the other."""
SAME = 0.02
"""Relative change of the capacity that ends it."""
ROUGH = 1e-3
"""Relative change of the numbers of a round at which it is settled."""
SAME_DIGITS = 12
"""Significant digits of the rates that it is looked for with."""
NEAR = 1e-9


def saturation_factor(system: System, form: ProgramForm) -> float:
    """Return by which factor all open rates may grow until the first resource is full.

    As closed flows do, those that lose jobs leave room for those that wait, if there are any. How long tokens
    are held, and how many blocks are tried, depends on how much there is to do: that is looked at where the
    first resource is nearly full, from rates that are the same whatever multiple of them is asked about.
    """
    flows = [flow for flow in system.flows if not flow.closed]
    opened = [flow.name for flow in flows if not flow.loses] or [flow.name for flow in flows]
    if not opened:
        return INF
    unit = max(float(flow.mean_rate) for flow in flows if flow.name in opened) / START
    known: dict[Any, Any] = {}
    all_rates = {flow.name: float(f"{flow.mean_rate / unit:.{SAME_DIGITS}g}") for flow in flows}
    rates = {name: all_rates[name] for name in opened}
    varies = any(isinstance(part, FreeList) for part in system.parts.values())
    found = _limit(State(system, form, Decomposition(system, form, known=known)), rates)
    if not varies and not any(take.flow in rates for take in form.takes):
        return found / unit
    for share in SHARES:
        last = found if found < INF else 1.0
        aside = State(system, form, Decomposition(system, form, known=known))
        aside.parts.sources = {}  # Bursts do not change what is done in the long run.
        try:
            settle(aside, {name: rate * last * share for name, rate in all_rates.items()}, ROUGH)
        except RuntimeError:
            break
        found = min(_limit(aside, rates), *(_pool_limit(aside, pool, rates) for pool in aside.nested), INF)
        if abs(found / last - 1) < SAME:
            break
    return found / unit


def _limit(state: State, rates: Mapping[str, float]) -> float:
    """Return the factor at which the first part is full."""
    parts = state.poisson if any(flow.loses for flow in state.system.flows) else state.parts
    return parts.limit({flow.name: rates.get(flow.name, 0.0) for flow in state.system.flows}, [*rates])


def _pool_limit(state: State, pool: str, rates: Mapping[str, float]) -> float:
    """Return the factor at which tokens of a pool are taken as fast as they can be."""
    if pool not in state.curves:
        return INF
    each = {
        flow: sum(t.visits * moments_of(t.batch)[0] for t in state.takes(pool) if t.flow == flow)
        for flow in state.rates
    }
    taken = sum(rate * each[name] for name, rate in rates.items())
    # Flows of limited number yield, however many there are.
    yields = {flow.name for flow in state.system.flows if flow.closed or flow.loses} - rates.keys()
    rest = sum(rate * each[name] for name, rate in state.rates.items() if name not in {*rates, *yields})
    if taken <= 0:
        return INF

    def room(factor: float) -> float:
        rate = factor * taken + rest
        most = state.curves[pool](rate).most if state.loses(pool) else state.subnetworks[pool].most(rate)
        return most / taken - factor

    low = NEAR * START / taken
    high = room(low)
    return float(brentq(room, low, high, rtol=NEAR)) if room(high) < 0 else high
