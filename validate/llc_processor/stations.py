"""Where a core's request is: in a private cache, which never waits, or in the queue of an LLC slice."""

from __future__ import annotations

from typing import Any

from validate.engine.jit import lean


@lean
def visit(cores: Any, visitors: Any, visiting: Any, level: int, core: int) -> None:
    """Let a core look in its private cache of this level."""
    cores[core]["place"] = visiting[level]
    visitors[level, visiting[level]] = core
    visiting[level] += 1


@lean
def end_visit(cores: Any, visitors: Any, visiting: Any, level: int, place: int) -> int:
    """End the visit of the core at this place of the list; return the core."""
    core = visitors[level, place]
    visiting[level] -= 1
    last = visitors[level, visiting[level]]
    visitors[level, place] = last
    cores[last]["place"] = place
    return core


@lean
def join_slice(slices: Any, queue: Any, busy: Any, state: Any, number: int, core: int) -> None:
    """Put a core at the end of a slice's queue."""
    length = slices[number]["length"]
    queue[number, (slices[number]["head"] + length) % queue.shape[1]] = core
    slices[number]["length"] = length + 1
    if length == 0:
        slices[number]["place"] = state[0]["busy_slices"]
        busy[state[0]["busy_slices"]] = number
        state[0]["busy_slices"] += 1


@lean
def leave_slice(slices: Any, queue: Any, busy: Any, state: Any, place: int) -> int:
    """End the service of the busy slice at this place of the list; return the core that it served."""
    number = busy[place]
    core = queue[number, slices[number]["head"]]
    slices[number]["head"] = (slices[number]["head"] + 1) % queue.shape[1]
    slices[number]["length"] -= 1
    if slices[number]["length"] == 0:
        state[0]["busy_slices"] -= 1
        last = busy[state[0]["busy_slices"]]
        busy[place] = last
        slices[last]["place"] = place
    return core
