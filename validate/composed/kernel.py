"""The event loop of a system: arrivals, ends of services and of waits, and what follows from them."""

from __future__ import annotations

from typing import Any

from validate.composed.interpreter import drain, wake
from validate.composed.state import ASKED, PASSING, Core
from validate.composed.strands import be_born
from validate.composed.visits import finish, finish_shared, pass_again
from validate.engine.jit import lean, lean_part
from validate.engine.pointers import compiled, pointer_to
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.calendar import LATE, pending, put
from validate.network.kernel import world_at
from validate.network.routes import count_noted
from validate.network.service import catch_up, rest, time_over
from validate.network.state import ON, POOL_FULL, REACHED, SERVED, STUCK, World

core_at: Any = pointer_to(Core, varied=True)
"""In compiled code: return the core of a table."""
plain_core_at: Any = pointer_to(Core, varied=False)


def run(w: World, c: Core, until: float, ended: int, born: int) -> int:
    """Run until a time, or until n jobs have ended or begun in all; return why it stopped.

    After `POOL_FULL` the run goes on where it stopped once there is more room, after `ASKED` once parts of
    others have said when the strands in ``enquiries`` will be done.
    """
    if compiled():
        return int(_run(w.table, c.table, until, ended, born))
    return int(loop(w, c, until, ended, born))


@lean
def _run(table: Any, own_table: Any, until: float, ended: int, born: int) -> int:
    return loop(world_at(table), core_at(own_table), until, ended, born)


@lean_part
def loop(w: World, c: Core, until: float, ended: int, born: int) -> int:
    """Take events off the calendar, see `run`."""
    s = w.state[0]
    heap = w.heap
    reason = REACHED
    set_going(w, c)
    while True:
        if not drain(w, c):
            reason = POOL_FULL
            break
        if c.state[0]["enquiries"] > 0:
            reason = ASKED
            break
        if s["ended"] >= ended or c.state[0]["born"] >= born:
            break
        if pending(heap, w.places) == 0:
            reason = STUCK
            break
        if heap[1]["time"] > until:
            s["now"] = until
            break
        s["now"] = heap[1]["time"]
        s["events"] += 1
        if not _loops(w, c, until):
            handle(w, c, heap[1]["event"])
    for node in range(w.nodes.size):
        if w.nodes[node]["shared"] >= 0:
            catch_up(w, node)
    count_noted(w)
    return reason


@lean_part
def _loops(w: World, c: Core, until: float) -> bool:
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
