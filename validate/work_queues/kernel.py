"""The compiled run of the work queues: every core does one thing at a time, events in order of time."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from validate.engine.jit import jit, part
from validate.engine.streams import uniform

IDLE, GETTING, WORKING, SPAWNING, ENQUEUEING, SEARCHING, CARRYING = 0, 1, 2, 3, 4, 5, 6
"""What a core does until its next event; an idle one waits for a task."""


NO_THIEF, SHEPHERD, EVERY = 0, 1, 2
NEAREST, LONGEST, RANDOM = 0, 1, 2
AT_HOME, NEXT, OWN = 0, 1, 2
DATA_HOME, DATA_ONE, DATA_NEAREST = 0, 1, 2

OPTIONS = np.dtype(
    [
        (name, "i8")
        for name in ("group_cores", "cluster_cores", "local_length", "minimum_length", "thieves", "victims")
        + ("protected", "most", "placement", "data")
    ]
)
COSTS = np.dtype(
    [
        (name, "f8")
        for name in ("block", "task", "spread", "transfer", "queue", "local", "search", "item", "share")
    ]
)
"""Costs in cycles, and two shares."""

MAKESPAN, COMPUTE, LOCK_WAIT, MEMORY_WAIT, STOLEN, LOCAL_TASKS, THEFTS, COUNTS = range(8)
"""What is counted, and how much that is."""
SOURCES = ("compute", "order of neighbours", "victim")
COMPUTE_STREAM, ORDER_STREAM, VICTIM_STREAM = range(3)


class World(NamedTuple):
    """Arrays of one run, see `validate.work_queues.experiment.build_world`."""

    options: Any
    costs: Any
    numa: Any
    blocks: Any
    homes: Any
    queue_of: Any
    queue_memory: Any
    first: Any
    neighbours: Any
    found: Any
    runner: Any
    runs: Any
    link: Any
    head: Any
    tail: Any
    length: Any
    phase: Any
    time: Any
    task: Any
    cursor: Any
    turn: Any
    target: Any
    carried: Any
    lock_free: Any
    memory_free: Any
    memory_busy: Any
    counts: Any
    streams: Any


@jit
def push(w: World, queue: int, task: int) -> None:
    """Append a task to a queue: the shared ones come first, then one per core."""
    w.link[task] = -1
    if w.length[queue] == 0:
        w.head[queue] = task
    else:
        w.link[w.tail[queue]] = task
    w.tail[queue] = task
    w.length[queue] += 1


@part
def pop(w: World, queue: int) -> int:
    """Remove the oldest task of a queue."""
    task = w.head[queue]
    w.head[queue] = w.link[task]
    w.length[queue] -= 1
    return int(task)


@part
def locked(w: World, core: int, group: int, now: float, hold: float) -> float:
    """Wait for the lock of a queue and hold it; return the end."""
    start = max(now, w.lock_free[group])
    factor = w.numa[core // w.options[0]["cluster_cores"], w.queue_memory[group]]
    w.lock_free[group] = start + hold * factor
    w.counts[LOCK_WAIT] += start - now
    return float(w.lock_free[group])


@part
def victim_of(w: World, core: int, own: int) -> int:
    """Return the queue to steal from, -1 where all are too short."""
    best, groups, seen = -1, w.lock_free.size, 0
    cluster = core // w.options[0]["cluster_cores"]
    for step in range(1, groups):
        group = (own + step) % groups
        if w.length[group] <= w.options[0]["protected"]:
            continue
        if best < 0:
            better = True
        elif w.options[0]["victims"] == NEAREST:
            near = w.numa[cluster, w.queue_memory[group]]
            better = near < w.numa[cluster, w.queue_memory[best]]
        else:
            better = w.length[group] > w.length[best]
        seen += 1
        if w.options[0]["victims"] == RANDOM:
            better = uniform(w.streams, VICTIM_STREAM) * seen < 1
        if better:
            best = group
    return best


@part
def obtain(w: World, core: int, now: float) -> None:
    """Let a core without a task look for one: in its own queue, the shared one, those of others."""
    group = core // w.options[0]["group_cores"]
    local = w.lock_free.size + core
    w.task[core] = -1
    if w.length[local] > 0:
        w.task[core] = pop(w, local)
        w.phase[core], w.time[core] = GETTING, now + w.costs[0]["local"]
    elif w.length[group] > 0:
        w.task[core] = pop(w, group)
        w.phase[core], w.time[core] = GETTING, locked(w, core, group, now, w.costs[0]["queue"])
    else:
        thieves = w.options[0]["thieves"]
        if thieves == EVERY or (thieves == SHEPHERD and core % w.options[0]["group_cores"] == 0):
            victim = victim_of(w, core, group)
            if victim >= 0:
                w.target[core] = victim
                w.phase[core], w.time[core] = SEARCHING, now + w.costs[0]["search"]
                return
        w.phase[core], w.time[core] = IDLE, math.inf


@part
def steal(w: World, core: int, now: float) -> None:
    """Take tasks from the victim chosen before, if it still has enough, else look again."""
    victim = w.target[core]
    excess = w.length[victim] - w.options[0]["protected"]
    if excess <= 0:
        obtain(w, core, now)
        return
    loot = min(w.options[0]["most"], max(1, int(w.costs[0]["share"] * excess)))
    hold = w.costs[0]["queue"] + w.costs[0]["item"] * loot
    w.phase[core], w.time[core] = CARRYING, locked(w, core, victim, now, hold)
    w.counts[STOLEN] += loot
    w.counts[THEFTS] += 1
    w.carried[core] = -1
    for _ in range(loot):
        task = pop(w, victim)
        w.link[task] = w.carried[core]
        w.carried[core] = task


@part
def wake(w: World, group: int, now: float) -> None:
    """Let idle cores find what has come into a queue: those it belongs to first, then thieves."""
    each = w.options[0]["group_cores"]
    for core in range(group * each, (group + 1) * each):
        if w.length[group] > 0 and w.phase[core] == IDLE:
            obtain(w, core, now)
    if w.options[0]["thieves"] != NO_THIEF and w.length[group] > w.options[0]["protected"]:
        for core in range(w.phase.size):
            if w.phase[core] == IDLE:
                obtain(w, core, now)


@part
def work(w: World, core: int, now: float) -> None:
    """Fetch the data of a core's task and compute on them."""
    task = w.task[core]
    cluster = core // w.options[0]["cluster_cores"]
    memory = 0
    if w.options[0]["data"] == DATA_HOME:
        memory = w.homes[task]
    elif w.options[0]["data"] == DATA_NEAREST:
        memory = cluster
    start = max(now, w.memory_free[memory])
    w.memory_free[memory] = start + w.costs[0]["transfer"]
    w.memory_busy[memory] += w.costs[0]["transfer"]
    w.counts[MEMORY_WAIT] += start - now
    compute = w.costs[0]["block"] * w.blocks[task] + w.costs[0]["task"]
    if w.costs[0]["spread"] > 0:
        draw = -math.log(uniform(w.streams, COMPUTE_STREAM))
        compute *= 1 - w.costs[0]["spread"] + w.costs[0]["spread"] * draw
    w.counts[COMPUTE] += compute
    w.runner[task] = core
    w.runs[task] += 1
    w.phase[core] = WORKING
    w.time[core] = start + w.costs[0]["transfer"] * w.numa[cluster, memory] + compute


@part
def spawn(w: World, core: int, now: float) -> bool:
    """Put the next neighbour that nobody has found into a queue; return whether the task is finished."""
    task, options = w.task[core], w.options
    degree = w.first[task + 1] - w.first[task]
    while w.cursor[core] < degree:
        place = (w.cursor[core] + w.turn[core]) % degree
        other = w.neighbours[w.first[task] + place]
        w.cursor[core] += 1
        if w.found[other]:
            continue
        w.found[other] = True
        own = core // options[0]["group_cores"]
        group = w.queue_of[other]
        if options[0]["placement"] == NEXT:
            group = (own + 1) % w.lock_free.size
        elif options[0]["placement"] == OWN:
            group = own
        local = w.lock_free.size + core
        if (
            group == own
            and w.length[own] >= options[0]["minimum_length"]
            and w.length[local] < options[0]["local_length"]
        ):
            push(w, local, other)
            w.counts[LOCAL_TASKS] += 1
            w.phase[core], w.time[core] = SPAWNING, now + w.costs[0]["local"]
        else:
            w.carried[core], w.target[core] = other, group
            w.phase[core], w.time[core] = ENQUEUEING, locked(w, core, group, now, w.costs[0]["queue"])
        return False
    return True


@part
def unload(w: World, core: int, now: float) -> None:
    """Put all but one of the stolen tasks into the thief's queue and begin that one."""
    group = core // w.options[0]["group_cores"]
    w.task[core] = w.carried[core]
    rest = w.link[w.carried[core]]
    work(w, core, now)
    while rest >= 0:
        after = w.link[rest]
        push(w, group, rest)
        rest = after
    wake(w, group, now)


@jit
def run(w: World) -> int:
    """Run until every task is finished that can be found; return how many."""
    finished = 0
    for core in range(w.phase.size):
        obtain(w, core, 0.0)
    while True:
        core = int(np.argmin(w.time))
        now = w.time[core]
        if now == math.inf:
            return finished
        phase = w.phase[core]
        if phase == GETTING:
            work(w, core, now)
            continue
        if phase == SEARCHING:
            steal(w, core, now)
            continue
        if phase == CARRYING:
            unload(w, core, now)
            continue
        if phase == WORKING:
            degree = w.first[w.task[core] + 1] - w.first[w.task[core]]
            w.cursor[core] = 0
            w.turn[core] = int(uniform(w.streams, ORDER_STREAM) * degree)
        elif phase == ENQUEUEING:
            # Busy until it has gone on with its own task, so that it does not answer its own call.
            push(w, w.target[core], w.carried[core])
            wake(w, w.target[core], now)
        if spawn(w, core, now):
            finished += 1
            w.counts[MAKESPAN] = now
            obtain(w, core, now)
