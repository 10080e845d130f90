"""Pools of tokens for which jobs may wait in a circle, each holding what another one needs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from qmodels.systems.composed.steps import Acquire, Branch, Lookup, Release, inner_steps, step_name

Waits = dict[str, dict[str, str]]
"""By pool: the pools that jobs wait for while they hold tokens of it, and in which step."""


def check_circles(system: Any) -> None:
    """Refuse programs whose jobs may wait for one another for ever.

    Jobs that hold tokens of one pool may wait for those of another, but not in a circle: nor for further
    tokens of the same pool, of which others may hold the rest.
    """
    waits: Waits = {}
    for flow in system.flows:
        _find_waits(flow.program, Counter(), f"flow {flow.name!r}:", waits)
    for pool, others in waits.items():
        for other, where in others.items():
            if other == pool:
                raise ValueError(f"{where} must take all that a job needs at once, got tokens held already")
            if pool in _reached(waits, other):
                raise ValueError(
                    f"{where} must come before 'acquire {pool}', or jobs may wait in a circle, got it after"
                )


def _find_waits(program: tuple[Any, ...], held: Counter[str], here: str, waits: Waits) -> Counter[str]:
    """Return what a job holds after a program, and note what it waits for on the way."""
    for step in program:
        if isinstance(step, Acquire):
            for pool in +held:
                waits.setdefault(pool, {}).setdefault(step.part, f"{here} {step_name(step)!r}")
            held[step.part] += step.tokens
        elif isinstance(step, Release):
            held[step.part] -= step.tokens
        ends = [_find_waits(inside, Counter(held), here, waits) for inside in inner_steps(step)]
        held = ends[0] if isinstance(step, Branch | Lookup) else held
    return held


def _reached(waits: Waits, pool: str) -> set[str]:
    """Return the pools that a job which waits for one may wait for in turn."""
    reached, new = {pool}, {pool}
    while new:
        new = {one for name in new for one in waits.get(name, ())} - reached
        reached |= new
    return reached
