"""The event loop of a queueing network: arrivals, ends of services, and what follows from them."""

from __future__ import annotations

from typing import Any

from validate.engine.jit import lean, lean_part
from validate.engine.pointers import compiled, pointer_to
from validate.engine.sampling import draw
from validate.network.calendar import LATE, put
from validate.network.flow import end_shared, finish, go, renege
from validate.network.routes import choose, new_job
from validate.network.service import catch_up, join, rest, time_over
from validate.network.state import BUFFER_FULL, LAYOUT, NONE, ON, POOL_FULL, REACHED, SERVED, STUCK, World

world_at: Any = pointer_to("NetworkWorld", LAYOUT)
"""In compiled code: return the world of a table."""


def run(w: World, until: float, ended: int) -> int:
    """Run until a time, or until so many jobs have ended in all; return why it stopped.

    The clock then stands at that time, or at the last event. After `POOL_FULL` and `BUFFER_FULL`
    the run goes on where it stopped once there is more room.
    """
    return int(_run(w.table, until, ended) if compiled() else loop(w, until, ended))


def begin(w: World) -> None:
    """Schedule the first arrivals, let servers that are not needed leave, place the closed classes."""
    if compiled():
        _begin(w.table)
    else:
        set_going(w)


@lean
def _run(table: Any, until: float, ended: int) -> int:
    return loop(world_at(table), until, ended)


@lean
def _begin(table: Any) -> None:
    set_going(world_at(table))


@lean_part
def loop(w: World, until: float, ended: int) -> int:
    """Take events off the calendar, see `run`."""
    s = w.state[0]
    heap, classes, stations = w.heap, w.classes.size, w.classes.size + w.nodes.size
    reason = REACHED
    while s["ended"] < ended:
        if heap[0]["event"] == 0:
            reason = STUCK
            break
        if heap[1]["time"] > until:
            s["now"] = until
            break
        if s["free_jobs"] < s["most_new_jobs"]:
            reason = POOL_FULL
            break
        if w.records.size and s["records"] + s["most_rows"] > w.records.size:
            reason = BUFFER_FULL
            break
        if w.trace.size and s["traced"] + s["most_rows"] > w.trace.size:
            reason = BUFFER_FULL
            break
        s["now"] = heap[1]["time"]
        s["events"] += 1
        event = heap[1]["event"]
        if event >= stations:
            j = event - stations
            if w.jobs[j]["phase"] == SERVED:
                finish(w, j)
            else:
                renege(w, j)
        elif event < classes:
            arrive(w, event)
        elif w.nodes[event - classes]["mode"] != ON:
            time_over(w, event - classes)
        else:
            end_shared(w, event - classes)
    for node in range(w.nodes.size):
        if w.nodes[node]["shared"] >= 0:
            catch_up(w, node)
    return reason


@lean_part
def set_going(w: World) -> None:
    """See `begin`."""
    for node in range(w.nodes.size):
        rest(w, node)
    for k in range(w.classes.size):
        if w.classes[k]["law"] >= 0:
            put(w.heap, w.places, k, draw(w.laws, w.numbers, w.streams, w.classes[k]["law"]), LATE)
        for _ in range(w.classes[k]["population"]):
            _place(w, k)


@lean_part
def _place(w: World, k: int) -> None:
    """Put a job of a closed class at its reference."""
    j = new_job(w)
    job, node = w.jobs[j], w.classes[k]["reference"]
    job["job_class"] = job["home"] = k
    job["entered"] = w.state[0]["now"]
    if not w.classes[k]["thinks"]:
        w.classes[k]["number"] += 1
    w.tallies[node, k]["arrivals"] += 1
    join(w, node, j)


@lean_part
def arrive(w: World, k: int) -> None:
    """Let a job come in from outside; the last of its batch schedules the next one."""
    c, now = w.classes[k], w.state[0]["now"]
    if c["left"] == 0:
        c["left"] = int(draw(w.laws, w.numbers, w.streams, c["batch"])) if c["batch"] >= 0 else 1
    c["left"] -= 1
    c["arrivals"] += 1
    c["number"] += 1
    c["number_sum"] -= now
    j = new_job(w)
    job = w.jobs[j]
    job["job_class"] = job["home"] = k
    job["entered"] = now
    job["node"] = NONE
    go(w, j, choose(w, c["entry"]))
    if c["left"] == 0:
        put(w.heap, w.places, k, now + draw(w.laws, w.numbers, w.streams, c["law"]), LATE)
