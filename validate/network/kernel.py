"""The event loop of a queueing network: arrivals, ends of services, and what follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.engine.calendar import LATE, drop, pending, put
from validate.engine.jit import inlined, lean, lean_part
from validate.engine.pointers import compiled, pointer_to
from validate.engine.sampling import draw
from validate.network import state
from validate.network.service import (
    catch_up,
    choose,
    count_noted,
    count_time,
    depart,
    free_job,
    join,
    new_job,
    record,
    rest,
    route,
    serve_next,
    set_pace,
    stop,
    take,
    time_over,
)
from validate.network.state import World


@inlined
def go(w: World, j: int, target: int) -> None:
    """Let a job that is nowhere arrive where it goes next."""
    job, t = w.jobs[j], w.targets[target]
    node = t["node"]
    if t["job_class"] >= 0:
        job["job_class"] = t["job_class"]
    if node == state.NONE:
        end(w, j, state.COMPLETED)
        return
    n, tally = w.nodes[node], w.tallies[node, job["job_class"]]
    tally["arrivals"] += 1
    if not w.varied:
        join(w, node, j)
        return
    if n["when_full"] == state.HOLD_BEFORE and job["node"] >= 0 and job["node"] != node:
        n["reserved"] -= 1
    home = w.classes[job["home"]]
    if home["thinks"] and home["reference"] == node:
        _cycle(w, j)
        home["number"] -= 1
        home["number_sum"] += w.state[0]["now"]
    if n["fork"] >= 0:
        _split(w, node, j)
    elif n["number"] + n["reserved"] < n["capacity"]:
        join(w, node, j)
    else:
        tally["losses"] += 1
        job["node"], job["arrived"], job["started"] = node, w.state[0]["now"], np.nan
        record(w, j, state.LOST)
        end(w, j, state.LOST)


@inlined
def end(w: World, j: int, outcome: int) -> None:
    """Let a job leave the network."""
    job, now = w.jobs[j], w.state[0]["now"]
    c = w.classes[job["home"]]
    c["number"] -= 1
    c["number_sum"] += now
    if outcome == state.COMPLETED:
        c["completions"] += 1
        c["response_sum"] += now - job["entered"]
        count_time(w, w.state[0]["passages_at"] + job["home"], now - job["entered"])
    elif outcome == state.LOST:
        c["losses"] += 1
    else:
        c["reneges"] += 1
    w.state[0]["ended"] += 1
    free_job(w, j)


@lean_part
def _cycle(w: World, j: int) -> None:
    """Count a cycle of a job of a closed class."""
    job, now = w.jobs[j], w.state[0]["now"]
    c = w.classes[job["home"]]
    c["completions"] += 1
    c["response_sum"] += now - job["entered"]
    count_time(w, w.state[0]["passages_at"] + job["home"], now - job["entered"])
    job["entered"] = now
    w.state[0]["ended"] += 1


@inlined
def finish(w: World, j: int) -> None:
    """End a service: the job goes on, or stays on its server if there is no place for it."""
    job = w.jobs[j]
    node, k = job["node"], job["job_class"]
    if w.varied and w.nodes[node]["shared"] >= 0:
        catch_up(w, node)
    stop(w, node, k, j)
    w.tallies[node, k]["completions"] += 1
    if w.varied and job["parent"] >= 0:
        _end_task(w, j)
        return
    if job["to"] < 0:
        job["to"] = route(w, j)
    if w.varied:
        there = w.targets[job["to"]]["node"]
        if there >= 0 and there != node and w.nodes[there]["when_full"] == state.HOLD_AFTER:
            d = w.nodes[there]
            if d["number"] >= d["capacity"]:
                _hold(w, j, there)
                return
    leave(w, node, k, j)
    go(w, j, job["to"])
    release(w, node)


@inlined
def leave(w: World, node: int, k: int, j: int) -> None:
    """Let a job that has been served leave its station."""
    w.nodes[node]["busy"] -= 1
    depart(w, node, k, j, state.COMPLETED)
    if not w.varied:
        return
    job = w.jobs[j]
    home = w.classes[job["home"]]
    if home["law"] < 0 and home["reference"] == node and job["parent"] < 0:
        if home["thinks"]:
            job["entered"] = w.state[0]["now"]
            home["number"] += 1
            home["number_sum"] -= w.state[0]["now"]
        else:
            _cycle(w, j)


@lean_part
def _hold(w: World, j: int, there: int) -> None:
    """Keep a served job on its server until a full station has a place."""
    job, d = w.jobs[j], w.nodes[there]
    n = w.nodes[job["node"]]
    n["blocked"] += 1
    n["blocked_sum"] -= w.state[0]["now"]
    job["phase"], job["next"] = state.BLOCKED, state.NONE
    if d["blocked_head"] < 0:
        d["blocked_head"] = j
    else:
        w.jobs[d["blocked_tail"]]["next"] = j
    d["blocked_tail"] = j


@inlined
def release(w: World, node: int) -> None:
    """Use a place that has become free at a station: for a waiting job, then for one held elsewhere.

    A held job that comes in frees a place where it was; so it goes on there.
    """
    if not w.varied:
        serve_next(w, node)
        return
    while node >= 0:
        n = w.nodes[node]
        serve_next(w, node)
        rest(w, node)
        if n["when_full"] == state.HOLD_BEFORE:
            _wake(w, node)
        j = n["blocked_head"]
        before = state.NONE
        if j >= 0 and n["number"] < n["capacity"]:
            n["blocked_head"] = w.jobs[j]["next"]
            before = w.jobs[j]["node"]
            w.nodes[before]["blocked"] -= 1
            w.nodes[before]["blocked_sum"] += w.state[0]["now"]
            leave(w, before, w.jobs[j]["job_class"], j)
            go(w, j, w.jobs[j]["to"])
        if n["shared"] >= 0:
            set_pace(w, node)
        node = before


@lean_part
def _wake(w: World, place: int) -> None:
    """Let stations go on that wait for a place here, the one that has waited longest first."""
    d = w.nodes[place]
    while d["number"] + d["reserved"] < d["capacity"]:
        first = state.NONE
        for node in range(w.nodes.size):
            n = w.nodes[node]
            if n["wants"] == place and (first < 0 or n["wants_since"] < w.nodes[first]["wants_since"]):
                first = node
        if first < 0:
            break
        serve_next(w, first)


@lean_part
def renege(w: World, j: int) -> None:
    """Let a waiting job give up and leave the network."""
    job, now = w.jobs[j], w.state[0]["now"]
    node, k = job["node"], job["job_class"]
    drop(w.heap, w.places, w.classes.size + w.nodes.size + j)
    if w.nodes[node]["shared"] >= 0:
        catch_up(w, node)
    take(w, node, k, j)
    job["waited"] += now - job["since"]
    w.tallies[node, k]["reneges"] += 1
    depart(w, node, k, j, state.RENEGED)
    end(w, j, state.RENEGED)
    release(w, node)


@lean_part
def end_shared(w: World, node: int) -> None:
    """End the service that is over first at a station of its own pace."""
    n = w.nodes[node]
    heap = w.shared[n["shared"]]
    catch_up(w, node)
    n["progress"] = heap[1]["time"]
    finish(w, heap[1]["event"])


@lean_part
def _split(w: World, node: int, j: int) -> None:
    """Send a task into each branch of a fork."""
    job, now = w.jobs[j], w.state[0]["now"]
    k = job["job_class"]
    job["phase"], job["node"], job["to"] = state.FORKED, node, state.NONE
    job["arrived"] = job["started"] = now
    job["waited"], job["work"] = 0.0, 0.0
    n, tally = w.nodes[node], w.tallies[node, k]
    n["number"] += 1
    tally["number"] += 1
    tally["number_sum"] -= now
    fork = n["fork"]
    job["tasks"] = 0
    for branch in range(w.branches.shape[1]):
        if w.branches[fork, branch, 0] >= 0:
            job["tasks"] += 1
    for branch in range(job["tasks"]):
        t = new_job(w)
        task = w.jobs[t]
        task["job_class"], task["home"], task["entered"] = k, job["home"], now
        task["parent"], task["branch"], task["step"] = j, branch, 0
        first = w.branches[fork, branch, 0]
        w.tallies[first, k]["arrivals"] += 1
        join(w, first, t)


@lean_part
def _end_task(w: World, t: int) -> None:
    """Let a task go to the next station of its branch, or its job go on if it was the last."""
    task = w.jobs[t]
    station, j = task["node"], task["parent"]
    job = w.jobs[j]
    fork = w.nodes[job["node"]]["fork"]
    leave(w, station, task["job_class"], t)
    step = task["step"] + 1
    following = w.branches[fork, task["branch"], step] if step < w.branches.shape[2] else state.NONE
    if following >= 0:
        task["step"] = step
        w.tallies[following, task["job_class"]]["arrivals"] += 1
        join(w, following, t)
    else:
        free_job(w, t)
        job["tasks"] -= 1
        if job["tasks"] == 0:
            w.tallies[job["node"], job["job_class"]]["completions"] += 1
            target = route(w, j)
            depart(w, job["node"], job["job_class"], j, state.COMPLETED)
            go(w, j, target)
    release(w, station)


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
    reason = state.REACHED
    set_going(w)
    while s["ended"] < ended:
        if pending(heap, w.places) == 0:
            reason = state.STUCK
            break
        if heap[1]["time"] > until:
            s["now"] = until
            break
        if s["free_jobs"] < s["most_new_jobs"]:
            reason = state.POOL_FULL
            break
        if w.varied and _is_full(w):
            reason = state.BUFFER_FULL
            break
        s["now"] = heap[1]["time"]
        s["events"] += 1
        event = heap[1]["event"]
        if event >= stations:
            j = event - stations
            if not w.varied or w.jobs[j]["phase"] == state.SERVED:
                finish(w, j)
            else:
                renege(w, j)
        elif event < classes:
            arrive(w, event)
        elif w.varied:
            if w.nodes[event - classes]["mode"] != state.ON:
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
    job["node"] = state.NONE
    go(w, j, choose(w, c["entry"]))
    if c["left"] == 0:
        put(w.heap, w.places, k, now + draw(w.laws, w.numbers, w.streams, c["law"]), LATE)
