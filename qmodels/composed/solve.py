"""The analytic answer to a system of parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from qmodels.composed.as_network import solved_as_network
from qmodels.composed.by_place import by_place
from qmodels.composed.couplings.deadlock_cycles import deadlock_doubts
from qmodels.composed.decomposition import Decomposition
from qmodels.composed.figures import Figures
from qmodels.composed.fixed_point.state import State
from qmodels.composed.from_network import network_figures
from qmodels.composed.from_parts import parts_figures
from qmodels.composed.parts import lookup_shares_of
from qmodels.systems.composed.lower import lower
from qmodels.systems.composed.parts import Tokens
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
from qmodels.systems.memory.dram import Dram
from qmodels.systems.noc.topology import afford_routes
from qmodels.systems.spec.answer import Answer
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.fields import points_of, swept_fields


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
        metrics=_plain(figures.metrics),
        latency_parts=_plain(figures.latency_parts),
        utilization={name: min(load, 1.0) for name, load in intensity.items()},
        traffic_intensity=intensity,
        bottleneck=max(intensity, key=lambda name: intensity[name]) if intensity else "",
        stable=bool(figures.stable),
        doubts=dict.fromkeys(doubts, True),
    )


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
        **{name: tables(name) for name in ("metrics", "latency_parts", "utilization", "traffic_intensity")},
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
