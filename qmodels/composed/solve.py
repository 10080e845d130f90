"""The analytic answer to a system of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from qmodels.composed.as_network import HOLD, THINK, Solved, solved_as_network
from qmodels.composed.by_place import by_place
from qmodels.composed.closed_latency import with_fixed_numbers
from qmodels.composed.couplings.deadlock_cycles import deadlock_doubts
from qmodels.composed.couplings.pools import Pool
from qmodels.composed.decomposition import LEAST, Decomposition, PartResponses
from qmodels.composed.figures import Figures, FlowFigures, flow_metrics, parts_together
from qmodels.composed.fixed_point.closed_flows import match_populations, set_seen_rate
from qmodels.composed.fixed_point.pool_waits import PoolWaits, latency_of, pool_waits
from qmodels.composed.fixed_point.settle import saturation_factor, settle
from qmodels.composed.fixed_point.state import State
from qmodels.composed.latency import DELAYED, ProgramLatency
from qmodels.composed.moments import Moments, moments_of
from qmodels.composed.parts import lookup_shares_of
from qmodels.composed.stalls import Late
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.lower import lower
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.program_form import window_of
from qmodels.systems.composed.steps import (
    Acquire,
    Allocate,
    Fork,
    Free,
    Release,
    all_steps,
    inner_steps,
    step_name,
)
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram_system import Dram
from qmodels.systems.noc.topology import afford_routes
from qmodels.systems.spec.answer import Answer, Later
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.fields import points_of, swept_fields

MODEL = "system of parts (decomposition)"
SHARED = "pools that open flows share with others of a limited number: latencies are up to {}"
"""Measured on 28 such systems of stations, drawn at random; of five with a memory one was 17 times off."""
WINDOW = "window"
"""Name of the time that jobs wait outside a window."""


def parts_figures(state: State) -> Figures:
    """Return the figures of a system whose parts are asked one by one."""
    settle(state)
    answers_of = {flow.name: state.answers(flow) for flow in state.system.flows}
    met = pool_waits(state)
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
    metrics["saturation_factor"] = partial(saturation_factor, state.system, state.form)
    doubts = list(full.doubts)
    if any(state.shared(pool) for pool in state.curves):
        doubts.append(
            SHARED.format("several times off" if state.leaves_traces else "32 % off in nine of ten systems")
        )
    wavering = f"rates of flows that go up and down by {state.wavers:.1%} from round to round, as their mean"
    return Figures(
        model=MODEL,
        metrics=metrics,
        latency_parts=parts_together(flows, state.names),
        intensity=intensity,
        stable=stable,
        doubts=(*doubts, wavering) if state.wavers else tuple(doubts),
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
                # Where none gets through, visits take as long as those of the first would.
                weight = max(rate, LEAST) * often
                spent[station] = spent.get(station, 0.0) + weight * response
                count[station] = count.get(station, 0.0) + weight
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
    metrics["saturation_factor"] = partial(saturation_factor, state.system, state.form)
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


def solve_system(spec: System) -> Answer:
    """Return the steady state of a system of parts.

    Parameters
    ----------
    spec : System
        The system. Numeric fields that are arrays are a sweep.

    Returns
    -------
    Answer
        Metrics have the shape of the sweep. Where a part is overloaded, the times of the flows that need it
        are ``inf`` and ``stable`` is False; closed flows go as fast as they can.

    Raises
    ------
    ValueError
        If no model covers a part as it is used here, or pools are acquired in a circle.
    RuntimeError
        If the fixed point is not found.

    Notes
    -----
    Programs give streams of requests (`qmodels.systems.composed.program_form`), parts answer to them with
    times and with what leaves them (`decomposition`), times are put together along the programs (`latency`),
    and variability passes from each step to the next (`variability`), until all of it fits (`fixed_point`).
    What streams cannot carry is in `couplings`, a file each. Stations alone are a queueing network and go to
    its methods (`as_network`): there a product form is exact.

    Examples
    --------
    >>> from qmodels.systems.composed.flow import Flow
    >>> from qmodels.systems.composed.steps import Visit
    >>> from qmodels.systems.laws.times import Exponential
    >>> from qmodels.systems.stations.parts import Station
    >>> from qmodels.systems.traffic.arrivals import Poisson
    >>> system = System(
    ...     parts={"parser": Station(service=Exponential(mean=2.0))},
    ...     flows=Flow(arrivals=Poisson(), rate=0.4, program=(Visit("parser"),)),
    ... )
    >>> round(solve_system(system).latency, 6)
    10.0
    """
    if not isinstance(spec, System):
        raise ValueError(f"spec must be a System, got {spec!r}")
    swept = swept_fields(spec)
    if not swept:
        return _solve_point(spec)
    shape = next(iter(swept.values())).shape
    return _stacked(spec, [_solve_point(point) for point in points_of(spec)[1]], shape)


def _require_models(system: System) -> None:
    """Refuse what can only be simulated."""
    without = [f"parts.{name} (Dram)" for name, part in system.parts.items() if isinstance(part, Dram)]
    without += ["replies"] if system.replies else []
    without += ["nodes beside an interconnect"] if system.nodes and system.interconnect else []
    for flow in system.flows:
        for step in all_steps(flow.program):
            branching = isinstance(step, Allocate | Free) and step.steps
            by_line = getattr(step, "by_line", False) or getattr(step, "addresses", "") == "looked-up"
            without += [f"flow {flow.name!r}: {step_name(step)!r}"] if branching or by_line else []
    if without:
        raise ValueError(f"system must have a model for all it has, got none for {', '.join(without)}")


def _solve_point(system: System) -> Answer:
    _require_models(system)
    afford_answer(system)
    shares = lookup_shares_of(system)
    form = lower(system, shares)
    circles = deadlock_doubts(system, form)
    places = by_place(system, form)
    if places.system is not system:
        form = lower(places.system, shares)
    state = State(places.system, form, Decomposition(places.system, form), names=places.names)
    solved = solved_as_network(places.system, form)
    figures = parts_figures(state) if solved is None else network_figures(state, solved)
    for name, found in shares.items():
        figures.metrics[f"hit_ratio[{name}]"] = found.private + found.hit
    figures = replace(figures, doubts=(*figures.doubts, *circles, *places.doubts))
    return _answer(system, _until_the_end(system, figures) if system.ends else figures)


def _until_the_end(system: System, figures: Figures) -> Figures:
    """Return the figures of work that ends: all flows go on at their rates until the last one is done."""
    name = "flow_throughput[{}]" if len(system.flows) > 1 else "flow_throughput"
    times = (f.population * f.rounds / figures.metrics[name.format(f.name)] for f in system.flows)
    doubt = "work that ends, as if all went on until the last is done and nobody were late"
    return replace(
        figures,
        metrics=figures.metrics | {"execution_time": max(times)},
        exact=False,
        doubts=(*figures.doubts, doubt),
    )


def _answer(system: System, figures: Figures) -> Answer:
    intensity = _plain(figures.intensity)
    doubts = list(figures.doubts)
    if system.turning and not figures.exact:
        doubts.append("tokens that turn, as if their uses came at random")
    steps = (step for flow in system.flows for step in all_steps(flow.program))
    if any(getattr(step, "same", False) for step in steps) and not figures.exact:
        doubts.append("visits that take the same time, as if they did not")
    return Answer(
        model=figures.model,
        spec=system,
        metrics=_metrics(figures.metrics),
        latency_parts=_plain(figures.latency_parts),
        utilization={name: min(load, 1.0) for name, load in intensity.items()},
        traffic_intensity=intensity,
        bottleneck=max(intensity, key=lambda name: intensity[name]) if intensity else "",
        stable=bool(figures.stable),
        doubts=dict.fromkeys(doubts, True),
    )


def _metrics(found: Mapping[str, Any]) -> Later:
    """Return metrics; what takes long and few read is found when it is read."""
    return Later(found, lambda name: float(found[name]() if callable(found[name]) else found[name]))


def _plain(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _stacked(spec: System, answers: Sequence[Answer], shape: tuple[int, ...]) -> Answer:
    """Return the answers of all points of a sweep as one."""

    def together(values: Sequence[Any]) -> Any:
        return np.array(values).reshape(shape)

    def tables(name: str) -> dict[str, Any]:
        rows = [getattr(answer, name) for answer in answers]
        return {key: together([row.get(key, np.nan) for row in rows]) for row in rows[:1] for key in row}

    models = dict.fromkeys(answer.model for answer in answers)
    doubts = dict.fromkeys(doubt for answer in answers for doubt in answer.doubts)
    return Answer(
        model=" or ".join(models),
        spec=spec,
        metrics=Later(
            answers[0].metrics, lambda name: together([one.metrics.get(name, np.nan) for one in answers])
        ),
        **{name: tables(name) for name in ("latency_parts", "utilization", "traffic_intensity")},
        bottleneck=together([answer.bottleneck for answer in answers]),
        stable=together([answer.stable for answer in answers]),
        doubts={doubt: together([doubt in answer.doubts for answer in answers]) for doubt in doubts},
    )


STEP_STEP = 3e-6
"""For each pair of steps of one program: forks of 1,600 branches, 3,200 visits in a row. [s]"""
STEP_FLOW = 4e-5
"""For each step of all programs and each flow: 640 flows to a station, 80 to one and a memory. [s]"""
POOL_FLOW, TAKER_TAKER = 0.03, 1.6e-3
"""For each pool or window beside others and each flow: 20 flows with windows at a station; and for each pair
of flows that take from a pool: 80 of them. [s]"""
NESTED = 0.036
"""Three times as much for each pool within another: five of them around a visit. [s]"""
JOB_PART = 2e-4
"""For each job of a closed flow and each part: 20,000 jobs at a station and a memory. [s]"""
NODE_BYTES = 400
"""For each pair of nodes of an interconnect, whatever is sent: meshes of 32 x 32 and 64 x 64. [bytes]"""
PLACE_BYTES = 40
"""For each pair of nodes without one, where parts are placed. [bytes]"""


def afford_answer(system: System) -> None:
    """Refuse a system whose answer would ask for more time or memory than is allowed, by its field."""
    steps = {flow.name: _asked(flow.program) for flow in system.flows}
    takers = [
        flow
        for flow in system.flows
        if flow.window or any(isinstance(step, Acquire) for step in all_steps(flow.program))
    ]
    pools = sum(isinstance(part, Tokens) for part in system.parts.values())
    pools += sum(flow.window is not None for flow in takers)
    seconds = STEP_FLOW * sum(steps.values()) * len(steps) + TAKER_TAKER * len(takers) ** 2
    afford("flows", len(steps), seconds=seconds + POOL_FLOW * max(pools - 1, 0) * (len(steps) - 1))
    for flow in system.flows:
        program = steps[flow.name]
        afford(f"flows.{flow.name}.program", program, seconds=STEP_STEP * program**2)
        depth = _held_at_once(flow.program) + (flow.window is not None)
        afford(f"flows.{flow.name}.program", f"{depth} pools at once", seconds=NESTED * 3.0**depth)
        work = JOB_PART * flow.population * min(program, len(system.parts))
        afford(f"flows.{flow.name}.population", flow.population, seconds=work)
    if system.network is None:
        afford("nodes", system.nodes, bytes=PLACE_BYTES * system.nodes**2 if system.place else 0)
        return
    field, topology = f"parts.{system.interconnect}.topology", system.network.topology
    afford(field, topology.nodes, bytes=NODE_BYTES * topology.nodes**2)
    away = {node for at in system.place.values() for node in at}
    pairs = len({node for flow in system.flows for node in flow.at} | away) * len(away)
    afford_routes(field, topology, min(2 * pairs, topology.nodes**2))


def _held_at_once(program: tuple[Any, ...], held: int = 0) -> int:
    """Return of how many pools, and how often, a job of a program holds tokens at most."""
    most = held
    for step in program:
        held += isinstance(step, Acquire) - isinstance(step, Release)
        most = max([most, held, *(_held_at_once(inside, held) for inside in inner_steps(step))])
    return most


def _asked(program: tuple[Any, ...]) -> int:
    """Return the steps of a program, those of equal branches once."""
    count = 0
    for step in program:
        inside = dict.fromkeys(step.branches) if isinstance(step, Fork) else inner_steps(step)
        count += 1 + sum(map(_asked, inside))
    return count
