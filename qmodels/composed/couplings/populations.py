"""Jobs of which only so many are there, as others meet them: at rates that leave their numbers at parts."""

from __future__ import annotations

from math import sqrt

from qmodels.composed.couplings.window_blocking import entering
from qmodels.composed.decomposition import LEAST
from qmodels.composed.fixed_point.pool_waits import NO_POOLS, latency_of, pool_waits, walk
from qmodels.composed.fixed_point.state import INF, State
from qmodels.composed.program_latency import by_part
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.program_form import window_of

DIGITS = 7
"""Significant digits of the rates, so that parts are asked the same thing once."""
STEPS, NEAR = 8, 1e-4
"""How often rates are mended in a round, and the relative change that ends it."""


def meet(state: State) -> None:
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
            state.count(flow.name, _numbers(state, flow))
    for flow, others in state.identical:
        state.numbers |= {name: state.numbers[flow.name] for name in others}
    for _ in range(STEPS):
        if _mend(state, limited) < NEAR:
            return


def _numbers(state: State, flow: Flow) -> dict[str, float]:
    """Return how many jobs of an open flow are at each part that they ask in pools or windows alone."""
    asked = [site for site in state.form.sites if site.flow == flow.name]
    outside = {site.part for site in asked if not site.held}
    if not flow.window:
        outside.add(state.system.interconnect)
    rate = state.rates[flow.name] * entering(state).get(flow.name, 1.0)
    met = pool_waits(state, state.rates)
    found = latency_of(state, flow, met=met)
    if not found.span.finite:
        return {site.part: INF for site in asked if site.part not in outside}
    if flow.loses and window_of(flow.name) in met.pools and 0 < found.span.mean < INF:
        # As long as the window says, and not the stream that would stay nearly as long.
        rate *= met.pools[window_of(flow.name)].hold / found.span.mean
    return {part: rate * time for part, time in by_part(found.by_part).items() if part not in outside}


def _mend(state: State, limited: list[Flow]) -> float:
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
    change = max((abs(found[""][key] / met[key] - 1) for key in met), default=0.0)
    state.met = found
    return change


def _rounded(value: float) -> float:
    return float(f"{max(value, LEAST):.{DIGITS}g}")
