"""The figures of a system that is a queueing network, from the network's answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qmodels.composed.as_network import HOLD, THINK, Solved
from qmodels.composed.closed_latency import with_fixed_numbers
from qmodels.composed.figures import Figures, FlowFigures, flow_metrics, parts_together
from qmodels.composed.fixed_point.closed_flows import match_populations, set_seen_rate
from qmodels.composed.fixed_point.settle import saturation_factor
from qmodels.composed.fixed_point.state import State, latency_of
from qmodels.composed.latency import DELAYED, ProgramLatency
from qmodels.composed.moments import Moments
from qmodels.composed.stalls import Late

INF = float("inf")


def network_figures(state: State, solved: Solved) -> Figures:
    """Return the figures of a system from those of the network that it is."""
    flows: dict[str, FlowFigures] = {}
    spent: dict[str, float] = {}
    count: dict[str, float] = {}
    for flow in state.system.flows:
        visits = solved.visits[flow.name]
        through = [solved.of("throughput", station, flow.name) / n for station, n in visits.items()]
        rate = through[0] if flow.closed else float(flow.mean_rate)
        parts: dict[str, float] = {}
        for station, often in visits.items():
            response = solved.of("mean_response_time", station, flow.name)
            if not station.startswith((HOLD, THINK)):
                spent[station] = spent.get(station, 0.0) + rate * often * response
                count[station] = count.get(station, 0.0) + rate * often
            if station not in solved.uncounted:
                part = DELAYED if station.startswith(HOLD) else station
                parts[part] = parts.get(part, 0.0) + often * response
        state.rates[flow.name] = rate
        mean = sum(parts.values())
        rate = rate if np.isfinite(mean) else min(through)
        lost = solved.answer.metrics.get("system_loss_probability", float("nan"))
        flows[flow.name] = FlowFigures(
            latency=Moments(mean, 0.0),
            throughput=rate * (1 - lost if lost > 0 else 1.0),
            parts=parts,
            lost=lost,
        )
        state.numbers[flow.name] = {part: rate * time for part, time in parts.items()}
    match_populations(state)
    for flow in state.system.flows:
        if flow.closed:
            set_seen_rate(state, flow)
    programs = {flow.name: latency_of(state, flow) for flow in state.system.flows}
    flows = {name: _with_spread(programs[name], found) for name, found in flows.items()}
    flows = with_fixed_numbers(state, programs, flows)
    metrics = flow_metrics(flows, {part: spent[part] / count[part] for part in spent}, state.names)
    metrics["saturation_factor"] = saturation_factor(state)
    busy = solved.answer.utilization
    offered = state.parts.evaluate(state.rates).intensity
    intensity = {name: offered[name] if offered[name] >= 1 else busy.get(name, 0.0) for name in offered}
    return Figures(
        model=f"system of stations: {solved.answer.model} ({solved.answer.kind})",
        metrics=metrics,
        latency_parts=parts_together(flows, state.names),
        intensity=intensity,
        stable=bool(solved.answer.stable),
        exact=solved.answer.kind == "exact",
        doubts=tuple(solved.answer.doubts),
    )


def _with_spread(program: ProgramLatency, found: FlowFigures) -> FlowFigures:
    """Return a flow with the variability of latency that its parts give it; networks have none."""
    mean, spread, late = found.latency.mean, INF, Late()
    if np.isfinite(mean) and program.latency.finite:
        spread, late = program.latency.scv * mean**2, program.late
    return replace(found, latency=Moments(mean, spread), late=late)
