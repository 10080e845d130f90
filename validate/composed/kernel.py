"""The events of a system: arrivals, ends of services and of waits, and what follows from them."""

from __future__ import annotations

from validate.composed.interpreter import wake
from validate.composed.state import PASSING, Core
from validate.composed.strands import be_born
from validate.composed.visits import finish, finish_shared, pass_again
from validate.engine.jit import lean_part
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.calendar import LATE, put
from validate.network.service import rest, time_over
from validate.network.state import ON, SERVED, World


@lean_part
def pass_on(w: World, c: Core, until: float) -> bool:
    """Let the first event happen and those after it, while all of them begin a visit in a loop anew."""
    s, heap, stations = w.state[0], w.heap, w.classes.size + w.nodes.size
    some = False
    while heap[1]["time"] <= until:
        j = heap[1]["event"] - stations
        if j < 0 or w.jobs[j]["phase"] != PASSING:
            break
        s["now"] = heap[1]["time"]
        if not pass_again(w, c, j):
            break
        s["events"] += some
        some = True
    return some


@lean_part
def handle(w: World, c: Core, event: int) -> None:
    """Let an event happen."""
    classes, stations = w.classes.size, w.classes.size + w.nodes.size
    if event >= stations:
        if w.jobs[event - stations]["phase"] == SERVED:
            finish(w, c, event - stations)
        else:
            wake(w, c, event - stations)
    elif event < classes:
        arrive(w, c, event)
    elif w.varied:
        if w.nodes[event - classes]["mode"] != ON:
            time_over(w, event - classes)
        else:
            finish_shared(w, c, event - classes)


@lean_part
def arrive(w: World, c: Core, f: int) -> None:
    """Let a job come in, and schedule the next one."""
    flow = c.flows[f]
    home = flow["places"] - 1
    if home > 0:
        home = int(uniform(w.streams, flow["stream"]) * flow["places"])
    be_born(w, c, f, home)
    gap = flow["scale"] * draw(w.laws, w.numbers, w.streams, flow["law"])
    put(w.heap, w.places, f, w.state[0]["now"] + gap, LATE)


@lean_part
def set_going(w: World, c: Core) -> None:
    """Schedule the first arrivals, let servers that are not needed leave, begin the closed flows; once."""
    if w.state[0]["begun"]:
        return
    w.state[0]["begun"] = 1
    if w.varied:
        for node in range(w.nodes.size):
            rest(w, node)
    for f in range(c.flows.size):
        flow = c.flows[f]
        for number in range(flow["population"]):
            be_born(w, c, f, number % flow["places"] if flow["places"] > 0 else -1)
        if flow["population"] == 0:
            first = flow["scale"] * draw(w.laws, w.numbers, w.streams, flow["law"])
            put(w.heap, w.places, f, first, LATE)
