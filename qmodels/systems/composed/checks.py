"""What is wrong with the programs of a system, before anything runs: one line, naming flow and step."""

from __future__ import annotations

from collections import Counter
from typing import Any

from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.parts import ServingPart, Tokens
from qmodels.systems.composed.steps import (
    Acquire,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Lookup,
    Read,
    Release,
    Send,
    Visit,
    Write,
    inner_steps,
    step_name,
)
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.noc.spec import Noc
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station

TAKES: dict[type[Any], tuple[type[Any], ...]] = {
    Visit: (Station, ServingPart),
    Read: (DramSystem,),
    Write: (DramSystem,),
    Lookup: (CacheSystem,),
    Allocate: (FreeList,),
    Free: (FreeList,),
    Acquire: (Tokens,),
    Release: (Tokens,),
}
"""The parts that a step can be done with."""


def check_programs(system: Any) -> None:
    """Refuse programs that the parts of a system cannot run."""
    used: set[str] = {system.interconnect}
    for flow in system.flows:
        here = f"flow {flow.name!r}:"
        for step in all_steps(flow.program):
            _check_step(system, flow, step, here)
            used.add(getattr(step, "part", getattr(step, "to", "")))
        held = _check_held(system, flow.program, Counter(), here)
        for part, number in held.items():
            if number and (not flow.closed or isinstance(system.parts[part], Tokens)):
                what = "release the tokens" if isinstance(system.parts[part], Tokens) else "free the blocks"
                raise ValueError(f"{here} program must {what} of {part!r} that it takes, got none given back")
    for name, part in system.parts.items():
        if name not in used:
            what = "be the interconnect or left out" if isinstance(part, Noc) else "be used by a flow"
            raise ValueError(f"parts.{name} must {what}, got a part that no step names")


def all_steps(program: tuple[Any, ...]) -> list[Any]:
    """Return the steps of a program and those inside them, in order."""
    found = []
    for step in program:
        found.append(step)
        for inside in inner_steps(step):
            found += all_steps(inside)
    return found


def _check_step(system: Any, flow: Any, step: Any, here: str) -> None:
    if isinstance(step, Send):
        if step.to not in system.place:
            raise ValueError(f"{here} {step_name(step)!r} must go to a part that is placed, got {step.to!r}")
        if not flow.at:
            raise ValueError(f"{here} at must say where jobs begin for {step_name(step)!r}, got ()")
        return
    name = getattr(step, "part", None)
    if name is not None:
        kinds = TAKES[type(step)]
        fitting = [n for n, part in system.parts.items() if isinstance(part, kinds)]
        if name not in fitting:
            words = " or ".join(kind.__name__ for kind in kinds)
            listed = f" ({', '.join(fitting)})" if fitting else ""
            raise ValueError(f"{here} {step_name(step)!r} must name a {words}{listed}, got {name!r}")
        if system.place.get(name) and not flow.at:
            raise ValueError(f"{here} at must say where jobs begin for {step_name(step)!r}, got ()")
        part = system.parts[name]
        if isinstance(part, Station) and part.service_law(flow.name) is None:
            raise ValueError(
                f"{here} {step_name(step)!r} must have a service law for {flow.name!r}, got none"
            )
    counts = [getattr(step, field, None) for field in ("blocks", "count")]
    if "segments" in counts and flow.sizes is None:
        raise ValueError(f"{here} sizes must be given for {step_name(step)!r} by segments, got None")


def _check_held(system: Any, program: tuple[Any, ...], held: Counter[str], here: str) -> Counter[str]:
    """Return what a job holds after a program: tokens, and whether it has blocks."""
    for step in program:
        match step:
            case Acquire():
                held[step.part] += step.tokens
                most = system.parts[step.part].count
                if held[step.part] > most:
                    raise ValueError(
                        f"{here} {step_name(step)!r} must leave a job at most the {most} tokens of the pool, "
                        f"got {held[step.part]}"
                    )
            case Release():
                held[step.part] -= step.tokens
                if held[step.part] < 0:
                    raise ValueError(
                        f"{here} {step_name(step)!r} must come after an acquire of as many, got none"
                    )
            case Allocate():
                held[step.part] = 1
            case Free():
                if not held[step.part]:
                    raise ValueError(f"{here} {step_name(step)!r} must come after an allocate, got none")
                held[step.part] = 0
            case Read() | Write():
                _check_allocated(system, step, held, here)
        ends = [_check_held(system, inside, Counter(held), here) for inside in inner_steps(step)]
        if not ends:
            continue
        if isinstance(step, Branch | Lookup):
            if any(+end != +ends[0] for end in ends):
                raise ValueError(
                    f"{here} {step_name(step)!r} must hold the same after each choice, got {ends!r}"
                )
            held = ends[0]
        elif any(+end != +held for end in ends):
            what = "each branch" if isinstance(step, Fork | Each) else "each round"
            raise ValueError(
                f"{here} {step_name(step)!r} must give back in {what} what it takes there, got {ends!r}"
            )
    return held


def _check_allocated(system: Any, step: Any, held: Counter[str], here: str) -> None:
    if step.addresses != "allocated":
        return
    if not any(number and isinstance(system.parts[name], FreeList) for name, number in held.items()):
        raise ValueError(
            f"{here} {step_name(step)!r} to allocated blocks must come after an allocate, got none"
        )
