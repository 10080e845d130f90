"""The event loop of a queueing network: arrivals, ends of services, and what follows from them."""

from __future__ import annotations

from typing import Any

from validate.engine.jit import inlined, lean, lean_part
from validate.engine.pointers import compiled, pointer_to
from validate.engine.sampling import draw
from validate.network.calendar import LATE, pending, put
from validate.network.flow import end_shared, finish, go, renege
from validate.network.routes import choose, count_noted, new_job
from validate.network.service import catch_up, join, rest, time_over
from validate.network.state import BUFFER_FULL, NONE, ON, POOL_FULL, REACHED, SERVED, STUCK, World

world_at: Any = pointer_to(World, varied=True)
"""In compiled code: return the world of a table."""
plain_at: Any = pointer_to(World, varied=False)


def run(w: World, until: float, ended: int) -> int:
    """Run until a time, or until n jobs have ended in all; return why it stopped.

    The clock then stands at that time, or at the last event. After `POOL_FULL` and `BUFFER_FULL`
    the run goes on where it stopped once there is more room.
    """
    if compiled():
        return int((_run if w.varied else _run_plain)(w.table, until, ended))
    return int(loop(w, until, ended))


@lean
def _run(table: Any, until: float, ended: int) -> int:
    return loop(world_at(table), until, ended)


@lean
def _run_plain(table: Any, until: float, ended: int) -> int:
    return loop(plain_at(table), until, ended)


@lean_part
def loop(w: World, until: float, ended: int) -> int:
    """Take events off the calendar, see `run`."""
    s = w.state[0]
    heap, classes, stations = w.heap, w.classes.size, w.classes.size + w.nodes.size
    reason = REACHED
    set_going(w)
    while s["ended"] < ended:
        if pending(heap, w.places) == 0:
            reason = STUCK
            break
        if heap[1]["time"] > until:
            s["now"] = until
            break
        if s["free_jobs"] < s["most_new_jobs"]:
            reason = POOL_FULL
            break
        if w.varied and _is_full(w):
            reason = BUFFER_FULL
            break
        s["now"] = heap[1]["time"]
        s["events"] += 1
        event = heap[1]["event"]
        if event >= stations:
            j = event - stations
            if not w.varied or w.jobs[j]["phase"] == SERVED:
                finish(w, j)
            else:
                renege(w, j)
        elif event < classes:
            arrive(w, event)
        elif w.varied:
            if w.nodes[event - classes]["mode"] != ON:
                time_over(w, event - classes)
            else:
                end_shared(w, event - classes)
    if w.varied:
        for node in range(w.nodes.size):
            if w.nodes[node]["shared"] >= 0:
                catch_up(w, node)
    count_noted(w)
    return reason


@lean_part
def _is_full(w: World) -> bool:
    """Return whether the next event may find no room for its records."""
    s = w.state[0]
    return w.records.size > 0 and s["records"] + s["most_rows"] > w.records.size


@lean_part
def set_going(w: World) -> None:
    """Schedule the first arrivals, let servers that are not needed leave, place the closed classes; once."""
    if w.state[0]["begun"]:
        return
    w.state[0]["begun"] = 1
    if w.varied:
        for node in range(w.nodes.size):
            rest(w, node)
    for k in range(w.classes.size):
        if w.classes[k]["law"] >= 0:
            put(w.heap, w.places, k, draw(w.laws, w.numbers, w.streams, w.classes[k]["law"]), LATE)
        if w.varied:
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


@inlined
def arrive(w: World, k: int) -> None:
    """Let a job come in from outside; the last of its batch schedules the next one."""
    c, now = w.classes[k], w.state[0]["now"]
    if w.varied:
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
