"""Variability, batches, trials and losses pass through the programs, a step further in each round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmodels.composed.couplings.feedback import effective_scv
from qmodels.composed.couplings.fork_correlation import ForkCorrelation
from qmodels.composed.couplings.free_lists import losses_of, surviving, trials_of
from qmodels.composed.couplings.window_blocking import entering
from qmodels.composed.decomposition import Decomposition
from qmodels.composed.fixed_point.pool_waits import latency_of
from qmodels.composed.fixed_point.state import INF, State, begun_scv
from qmodels.composed.variability import Variability
from qmodels.systems.composed.batch_laws import batch_companions
from qmodels.systems.composed.flow import Flow
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station

DIGITS = 5
"""Significant digits of what passes from part to part of variability."""


def update_variability(state: State, weight: float) -> None:
    """Let variability pass through the programs once more."""
    _pass_on(state, state.parts, weight, begun_scv)
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
            if not isinstance(number, int) or number < 0:
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
