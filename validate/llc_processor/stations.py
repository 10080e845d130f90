"""Where a core's request is: in a private cache, which never waits, or in the queue of an LLC slice."""

from __future__ import annotations

from validate.engine.jit import lean
from validate.llc_processor.state import World


@lean
def visit(w: World, level: int, core: int) -> None:
    """Let a core look in its private cache of this level."""
    w.cores[core]["place"] = w.visiting[level]
    w.visitors[level, w.visiting[level]] = core
    w.visiting[level] += 1


@lean
def end_visit(w: World, level: int, place: int) -> int:
    """End the visit of the core at this place of the list; return the core."""
    core = w.visitors[level, place]
    w.visiting[level] -= 1
    last = w.visitors[level, w.visiting[level]]
    w.visitors[level, place] = last
    w.cores[last]["place"] = place
    return core


@lean
def join_slice(w: World, number: int, core: int) -> None:
    """Put a core at the end of a slice's queue."""
    length = w.slices[number]["length"]
    w.slice_queue[number, (w.slices[number]["head"] + length) % w.slice_queue.shape[1]] = core
    w.slices[number]["length"] = length + 1
    if length == 0:
        w.slices[number]["place"] = w.state[0]["busy_slices"]
        w.busy_slices[w.state[0]["busy_slices"]] = number
        w.state[0]["busy_slices"] += 1


@lean
def leave_slice(w: World, place: int) -> int:
    """End the service of the busy slice at this place of the list; return the core that it served."""
    number = w.busy_slices[place]
    core = w.slice_queue[number, w.slices[number]["head"]]
    w.slices[number]["head"] = (w.slices[number]["head"] + 1) % w.slice_queue.shape[1]
    w.slices[number]["length"] -= 1
    if w.slices[number]["length"] == 0:
        w.state[0]["busy_slices"] -= 1
        last = w.busy_slices[w.state[0]["busy_slices"]]
        w.busy_slices[place] = last
        w.slices[last]["place"] = place
    return core
