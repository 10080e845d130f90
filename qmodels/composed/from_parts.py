"""The figures of a system by parts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from qmodels.composed.closed_latency import with_fixed_numbers
from qmodels.composed.couplings.pools import Pool
from qmodels.composed.decomposition import LEAST, PartResponses
from qmodels.composed.figures import Figures, FlowFigures, flow_metrics, parts_together
from qmodels.composed.fixed_point.settle import saturation_factor, settle
from qmodels.composed.fixed_point.state import PoolWaits, State, latency_of, pool_waits
from qmodels.composed.latency import DELAYED, ProgramLatency
from qmodels.composed.moments import Moments, moments_of
from qmodels.composed.stalls import Late
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.program_form import window_of

MODEL = "system of parts (decomposition)"
WINDOW = "window"
"""Name of the time that jobs wait outside a window."""


def parts_figures(state: State) -> Figures:
    """Return the figures of a system whose parts are asked one by one."""
    settle(state)
    answers_of = {flow.name: state.answers(flow) for flow in state.system.flows}
    met = pool_waits(state, state.rates)
    pools = met.pools
    programs = {flow.name: latency_of(state, flow, answers_of[flow.name]) for flow in state.system.flows}
    flows = {flow.name: flow_figures(state, flow, programs[flow.name], pools) for flow in state.system.flows}
    flows = with_fixed_numbers(state, programs, flows)
    full = state.parts.evaluate(state.rates)
    intensity = {name: load for name, load in full.intensity.items()}
    for name, pool in pools.items():
        if name in state.system.parts:
            part = state.names.get(name, name)
            intensity[part] = max(pool.load, intensity.get(part, 0.0))
    stable = all(np.isfinite(flow.latency.mean) for flow in flows.values())
    metrics = flow_metrics(flows, _visits(state, answers_of, met), state.names)
    metrics["saturation_factor"] = saturation_factor(state)
    return Figures(
        model=MODEL,
        metrics=metrics,
        latency_parts=parts_together(flows, state.names),
        intensity=intensity,
        stable=stable,
        doubts=full.doubts,
    )


def flow_figures(state: State, flow: Flow, program: ProgramLatency, pools: Mapping[str, Pool]) -> FlowFigures:
    """Return the numbers of the jobs of a flow."""
    parts = dict(program.parts)
    latency, rate = program.latency, state.rates[flow.name]
    wait = state.extra.get(flow.name, 0.0)
    if flow.loses and window_of(flow.name) in pools and program.span.finite:
        # What the window says, and not the stream that would stay nearly as long.
        wait = pools[window_of(flow.name)].hold / state.room[flow.name] - program.span.mean
    if wait < 0:
        # Fewer meet at all parts than of the stream, but what is held takes its time.
        held = parts.get(DELAYED, 0.0)
        left = max(1 + wait / max(latency.mean - held, LEAST), 0.0)
        parts = {part: time if part == DELAYED else left * time for part, time in parts.items()}
    elif wait > 0:
        # Jobs wait for what they fill alone.
        answers = state.answers(flow)
        fullest = max(program.parts, key=lambda part: answers.intensity.get(part, -1.0))
        parts[fullest] += wait
    if wait != 0:
        latency = latency + Moments(wait, 0.0)
    pool = window_of(flow.name)
    if pool in parts:
        parts[WINDOW] = parts.pop(pool)
    if not latency.finite:
        rate = min(rate, _carried(state, flow, pools))
    lost = 1.0 - state.ending[flow.name] if flow.name in state.ending else float("nan")
    return FlowFigures(
        latency=latency,
        throughput=rate * state.ending.get(flow.name, 1.0),
        parts=parts,
        lost=lost,
        stall=program.stall,
        # Jobs that go round leave less to do to a part at which they wait.
        late=Late() if flow.closed else program.late,
    )


def _carried(state: State, flow: Flow, pools: Mapping[str, Pool]) -> float:
    """Return the rate of a flow that gets through, if all that come to a full part share it."""
    loads = state.parts.evaluate(state.rates).intensity
    asked = {site.part for site in state.form.sites if site.flow == flow.name and site.visits > 0}
    if any(leg.flow == flow.name for leg in state.form.legs):
        asked.add(state.system.interconnect)
    most = max((loads[part] for part in asked), default=0.0)
    rate = state.rates[flow.name] / max(most, 1.0)
    for name, pool in pools.items():
        if any(take.flow == flow.name for take in state.takes(name)):
            rate = min(rate, state.rates[flow.name] * pool.most / pool.taken)
    return rate


def _visits(state: State, answers_of: Mapping[str, PartResponses], met: PoolWaits) -> dict[str, float]:
    """Return the mean time of a request to each part, and of a packet."""
    inside = {
        site.number: answers for pool, answers in met.within.items() for site in state.sites_inside(pool)
    }
    time: dict[str, float] = {}
    count: dict[str, float] = {}
    for site in state.form.sites:
        answer = inside.get(site.number, answers_of[site.flow]).responses.get(site.number)
        rate = state.rates[site.flow] * site.visits
        if not _counts_blocks(site.step):
            rate *= moments_of(site.batch)[0]
        if answer is not None and rate > 0:
            time[site.part] = time.get(site.part, 0.0) + rate * answer.mean
            count[site.part] = count.get(site.part, 0.0) + rate
    for name, pool in met.pools.items():
        if name in state.system.parts:
            part, taken = state.names.get(name, name), max(pool.taken, LEAST)
            time[part] = time.get(part, 0.0) + taken * pool.wait.mean
            count[part] = count.get(part, 0.0) + taken
    if state.form.legs:
        time[state.system.interconnect] = state.parts.evaluate(state.rates, met=state.among()).packet.mean
        count[state.system.interconnect] = 1.0
    return {part: time[part] / count[part] for part in time}


def _counts_blocks(step: object) -> bool:
    return type(step).__name__ in ("Allocate", "Free")
