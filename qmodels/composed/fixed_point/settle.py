"""The fixed point of a system: rates of flows, what parts answer to them, waits for tokens."""

from __future__ import annotations

import numpy as np

from qmodels.composed.couplings.closed import closed_rate, see
from qmodels.composed.couplings.populations import meet
from qmodels.composed.fixed_point.pool_subnetworks import update_pool
from qmodels.composed.fixed_point.state import Rates, State
from qmodels.composed.fixed_point.varying import update_variability
from qmodels.numerics.secant import Secant

ROUNDS = 60
TOLERANCE = 1e-6
"""Relative change of the rates and variabilities of a round at which they are settled."""

STEADY = 6
"""Rounds in which the numbers may go up and down a little, as where jobs see tables of times."""
GOOD = 2e-3
"""Relative size of that; the mean counts then."""


def settle(state: State, rates: Rates | None = None, tolerance: float = TOLERANCE) -> int:
    """Find the fixed point, of open flows of other rates if they are given; return the rounds it took."""
    for flow in state.system.flows:
        rate = 0.0 if flow.closed else float(flow.mean_rate)
        state.rates[flow.name] = rate if rates is None else rates.get(flow.name, rate)
    _go_round(state, 0.5)
    meet(state)
    old, recent, secant = _numbers(state), list[list[float]](), Secant()
    for count in range(1, ROUNDS + 1):
        asked = np.array([*state.rates.values()])
        for pool in state.nested:
            update_pool(state, pool)
        _go_round(state)
        meet(state)
        update_variability(state, 0.5 if count > 10 else 1.0)
        new = _numbers(state)
        old[: asked.size] = asked.tolist()
        recent = [*recent[1 - STEADY :], new]
        if _steady(recent):
            old = new = np.mean(recent, axis=0).tolist()
            state.rates |= dict(zip(state.rates, new, strict=False))
        if len(new) == len(old) and np.allclose(new, old, rtol=tolerance, atol=0):
            _fit(state)
            for flow, others in state.identical:
                see(state, flow)
                for name in others:
                    state.seen[name], state.extra[name] = state.seen[flow.name], state.extra[flow.name]
            return count
        old = new
        following = secant.after(asked, np.array([*state.rates.values()]))
        state.rates = dict(zip(state.rates, following.tolist(), strict=True))
    raise RuntimeError(f"the system did not settle in {ROUNDS} rounds (rates {state.rates!r}); simulate it")


def _go_round(state: State, share: float = 1.0) -> None:
    """Find the rates of closed flows, one after the other."""
    for flow, others in state.identical:
        before, rate = state.rates[flow.name], closed_rate(state, flow) * share
        # Each of several leaves room for the others, one after the other.
        rate = before + (rate - before) / (len(others) + 1) if before > 0 else rate
        state.rates |= dict.fromkeys((flow.name, *others), rate)


def _fit(state: State) -> None:
    """Let closed flows share the parts that they fill more than they can, each having been found alone."""
    loads = state.parts.evaluate(state.rates).intensity
    for flow in state.system.flows:
        if flow.closed:
            asked = {site.part for site in state.sites_of(flow.name)}
            state.rates[flow.name] /= max([1.0, *(loads[part] for part in asked)])


def _steady(recent: list[list[float]]) -> bool:
    """Return whether the numbers of the last rounds go up and down by less than answers are good for."""
    if len(recent) < STEADY or len({len(one) for one in recent}) > 1:
        return False
    spread = np.ptp(recent, axis=0) / np.maximum(np.abs(recent).max(axis=0), 1e-12)
    steps = np.diff(recent, axis=0)
    wavers = (steps.max(axis=0) > 0) & (steps.min(axis=0) < 0)
    return bool(spread.max() <= GOOD and np.all(wavers | (spread <= TOLERANCE)))


def _numbers(state: State) -> list[float]:
    passed_on = (
        each.values() for one in (state.parts, state.poisson) for each in (one.scvs, one.batches, one.coming)
    )
    met = state.met.get("", {}).values()
    return [*state.rates.values(), *met, *(number for some in passed_on for number in some)]
