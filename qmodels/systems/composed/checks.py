"""Errors in the programs of a system, before anything runs: one line, naming flow and step."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.parts import ServingPart, Tokens
from qmodels.systems.composed.steps import (
    SEGMENTS,
    Acquire,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Lookup,
    Move,
    Read,
    Release,
    Repeat,
    Send,
    Visit,
    Write,
    all_steps,
    inner_steps,
    step_name,
)
from qmodels.systems.memory.dram import Dram
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.memory.memory_map import BankedChannels
from qmodels.systems.noc.spec import Noc
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station

TAKES: dict[type[Any], tuple[type[Any], ...]] = {
    Visit: (Station, BankedChannels, ServingPart),
    Read: (DramSystem, Dram),
    Write: (DramSystem, Dram),
    Lookup: (CacheSystem,),
    Allocate: (FreeList,),
    Free: (FreeList,),
    Acquire: (Tokens,),
    Release: (Tokens,),
}
"""The parts that a step can be done with."""

GIVEN_BACK = {True: ("acquire", "release"), False: ("allocate", "free")}
"""The steps that take something, tokens or blocks, and those that give it back."""

MOST_TASKS = 2**16
"""Tasks of one job at the same time."""
MOST_ROUNDS = 2**24
"""Rounds of its loops in all."""


def check_programs(system: Any) -> None:
    """Refuse programs that the parts of a system cannot run."""
    used: set[str] = {system.interconnect, system.replies}
    for flow in system.flows:
        here = f"flow {flow.name!r}:"
        for step in {id(step): step for step in all_steps(flow.program)}.values():
            _check_step(system, flow, step, here)
            used.add(getattr(step, "part", getattr(step, "to", "")))
        _check_rounds(flow, flow.program, here)
        _check_at_once(flow, flow.program, 1, here)
        for part, number in _check_held(system, flow.program, Counter(), here).items():
            if number:
                first, last = GIVEN_BACK[isinstance(system.parts[part], Tokens)]
                raise ValueError(f"{here} '{first} {part}' must be followed by '{last} {part}', got none")
    for name, part in system.parts.items():
        if name not in used:
            what = "be the interconnect or left out" if isinstance(part, Noc) else "be used by a flow"
            raise ValueError(f"parts.{name} must {what}, got a part that no step names")


def _check_step(system: Any, flow: Any, step: Any, here: str) -> None:
    where = f"{here} {step_name(step)!r}"
    if isinstance(step, Send):
        _check_name(f"{where} must go to a part that is placed", step.to, list(system.place))
        _check_begins(flow, where)
        return
    if isinstance(step, Move):
        _check_begins(flow, where)
    name = getattr(step, "part", None)
    if name is not None:
        kinds = TAKES[type(step)]
        if not isinstance(system.parts.get(name), kinds):
            fitting = [n for n, part in system.parts.items() if isinstance(part, kinds)]
            _check_name(f"{where} must name a {' or '.join(kind.__name__ for kind in kinds)}", name, fitting)
        if name in system.place:
            _check_begins(flow, where)
        part = system.parts[name]
        inside = step.steps if isinstance(step, Allocate | Free) else ()
        for other in all_steps(inside):
            if isinstance(other, Allocate | Free):
                raise ValueError(
                    f"{where} must take or give back no blocks in its steps, got {step_name(other)!r}"
                )
        if getattr(step, "by_line", False) and not _looks_up(flow):
            raise ValueError(f"{where} must have a lookup in its program to go by its line, got none")
        if getattr(step, "same", False) and not isinstance(part, Station):
            raise ValueError(f"{where} must be at a Station to take the same time, got {type(part).__name__}")
        if isinstance(part, Station) and part.service_law(flow.name) is None:
            raise ValueError(f"{where} must have a service law for {flow.name!r}, got none")
        if isinstance(step, Allocate) and step.blocks != SEGMENTS and step.blocks > np.min(part.segments):
            rule = f"at most the {np.min(part.segments):.0f} blocks of the list"
            raise ValueError(f"{where} must take {rule}, got {step.blocks}")
    if SEGMENTS in (getattr(step, "blocks", None), getattr(step, "count", None)) and flow.sizes is None:
        raise ValueError(f"{here} sizes must be given for {step_name(step)!r} by segments, got None")


def _looks_up(flow: Any) -> bool:
    return any(isinstance(step, Lookup) for step in all_steps(flow.program))


def _check_name(rule: str, name: str, fitting: list[str]) -> None:
    if name not in fitting:
        listed = f" ({', '.join(fitting)})" if fitting else ""
        raise ValueError(f"{rule}{listed}, got {name!r}{checks.nearest(name, fitting)}")


def _check_begins(flow: Any, where: str) -> None:
    if not flow.at:
        raise ValueError(f"{where} must have a place to begin from: at must be nodes, got ()")


def _check_rounds(flow: Any, program: tuple[Any, ...], here: str, rounds: int = 1, tasks: int = 1) -> None:
    """Refuse loops in loops that no job comes out of in any reasonable time, and too many tasks at once."""
    for step in program:
        inner, at_once = rounds, tasks
        if isinstance(step, Each | Repeat):
            most = max(flow.sizes.segments(flow.segment_bytes)[0]) if step.count == SEGMENTS else step.count
            inner *= int(most)
            at_once *= int(most) if isinstance(step, Each) else 1
            for number, limit in ((at_once, MOST_TASKS), (inner, MOST_ROUNDS)):
                if number > limit:
                    raise ValueError(
                        f"{here} {step_name(step)!r} must make at most {limit} rounds in all, with those "
                        f"around it, got {number}"
                    )
        for inside in inner_steps(step):
            _check_rounds(flow, inside, here, inner, at_once)


def _check_at_once(flow: Any, program: tuple[Any, ...], around: int, here: str) -> None:
    """Refuse more requests at once than any memory is asked for."""
    for step in program:
        many: Any = step.count if isinstance(step, Each) else 1
        if isinstance(step, Read | Write):
            many = step.blocks
        if many == SEGMENTS:
            many = max(flow.sizes.segments(flow.segment_bytes)[0])
        at_once = around * int(many)
        if at_once > MOST_TASKS:
            raise ValueError(
                f"{here} {step_name(step)!r} must ask for at most {MOST_TASKS} blocks or copies at once, "
                f"with the copies that it is done in, got {at_once}"
            )
        for inside, inner in Counter(inner_steps(step)).items():
            equal = inner if isinstance(step, Fork) else 1
            _check_at_once(flow, inside, at_once * equal, here)


def _check_held(system: Any, program: tuple[Any, ...], held: Counter[str], here: str) -> Counter[str]:
    """Return the tokens that a job holds after a program, and whether it has blocks."""
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
                    got = held[step.part] + step.tokens
                    raise ValueError(
                        f"{here} {step_name(step)!r} must come after an acquire of as many tokens, got {got}"
                    )
            case Allocate():
                held[step.part] = 1
            case Free() if not held[step.part]:
                raise ValueError(f"{here} {step_name(step)!r} must come after an allocate, got none")
            case Read() | Write():
                _check_allocated(system, step, held, here)
        ends = [_check_held(system, inside, Counter(held), here) for inside in inner_steps(step)]
        if isinstance(step, Free) and all(+end == +held for end in ends):
            held[step.part] = 0
            continue
        if not ends:
            continue
        if isinstance(step, Lookup):
            *ends, further = ends
            if +further != +held:
                raise ValueError(
                    f"{here} {step_name(step)!r} must give back in 'further' what it takes there, got "
                    f"{_shown([further])}"
                )
        if isinstance(step, Branch | Lookup):
            if any(+end != +ends[0] for end in ends):
                raise ValueError(
                    f"{here} {step_name(step)!r} must hold the same after each choice, got {_shown(ends)}"
                )
            held = ends[0]
        elif any(+end != +held for end in ends):
            what = "each round" if isinstance(step, Repeat) else "each branch"
            raise ValueError(
                f"{here} {step_name(step)!r} must give back in {what} what it takes there, got {_shown(ends)}"
            )
    return held


def _shown(ends: list[Counter[str]]) -> str:
    return " and ".join(
        ", ".join(f"{n} of {name!r}" for name, n in (+end).items()) or "nothing" for end in ends
    )


def _check_allocated(system: Any, step: Any, held: Counter[str], here: str) -> None:
    if step.addresses != "allocated":
        return
    if not any(number and isinstance(system.parts[name], FreeList) for name, number in held.items()):
        raise ValueError(
            f"{here} {step_name(step)!r} to allocated blocks must come after an allocate, got none"
        )
