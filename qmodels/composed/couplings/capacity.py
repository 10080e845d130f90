"""How much the open flows of a system may grow until the first resource is full."""

from __future__ import annotations

from collections.abc import Mapping

from scipy.optimize import brentq

from qmodels.composed.decomposition import START, Decomposition
from qmodels.composed.fixed_point.settle import settle
from qmodels.composed.fixed_point.state import INF, State
from qmodels.composed.moments import moments_of
from qmodels.systems.packets.free_list import FreeList

SHARES = (0.6, 0.95)
"""Of what is known of the capacity, at which the system is looked at, one after the other."""
SAME = 0.02
"""Relative change of the capacity that ends it."""
ROUGH = 1e-3
"""Relative change of the numbers of a round at which it is settled."""
NEAR = 1e-9


def saturation_factor(state: State) -> float:
    """Return by which factor all open rates may grow until the first resource is full.

    As closed flows do, those that lose jobs leave room for those that wait, if there are any. How long tokens
    are held, and how many blocks are tried, depends on how much there is to do: that is looked at where the
    first resource is nearly full, whatever the rates are.
    """
    flows = [flow for flow in state.system.flows if not flow.closed]
    opened = [flow for flow in flows if not flow.loses] or flows
    rates = {flow.name: float(flow.mean_rate) for flow in opened}
    if not rates:
        return INF
    system, form = state.system, state.form
    varies = any(isinstance(part, FreeList) for part in system.parts.values())
    found = _limit(State(system, form, Decomposition(system, form, known=state.parts.known)), rates)
    if not varies and not any(take.flow in rates for take in form.takes):
        return found
    for share in SHARES:
        last = found if found < INF else START / max(rates.values())
        aside = State(system, form, Decomposition(system, form, known=state.parts.known))
        try:
            settle(aside, {name: rate * last * share for name, rate in rates.items()}, ROUGH)
        except RuntimeError:
            return found
        found = min(_limit(aside, rates), *(_pool_limit(aside, pool, rates) for pool in aside.nested), INF)
        if abs(found / last - 1) < SAME:
            return found
    return found


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
    rest = sum(rate * each[name] for name, rate in state.rates.items() if name not in rates)
    if taken <= 0:
        return INF

    def room(factor: float) -> float:
        rate = factor * taken + rest
        most = state.curves[pool](rate).most if state.loses(pool) else state.subnetworks[pool].most(rate)
        return most / taken - factor

    low = NEAR * START / taken
    high = room(low)
    return float(brentq(room, low, high, rtol=NEAR)) if room(high) < 0 else high
