"""The simulation of run queues and work stealing: cores that take, fetch, compute and share tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.programs.work_queues import Growth, WorkQueues, grow
from qmodels.systems.spec.estimate import Estimate
from validate.campaigns.experiment import Experiment, Job
from validate.engine.jit import jit, part
from validate.engine.streams import new_streams, uniform
from validate.estimates.intervals import mean_interval

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
    """Arrays of one run, see `validate.work_queues.build_world`."""

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    counts: FloatArray  # see `COUNTS`
    memory_busy: FloatArray  # time that each memory controller is busy [cycles]
    runner: IntArray  # core that ran each task
    runs: IntArray  # how often each task was run


def build_world(job: Job) -> World:
    """Return the world of a run, with the first tasks in their queues."""
    spec = job.spec
    clusters, q, s, k = spec.machine.clusters, spec.queues, spec.stealing, spec.costs
    local_length = q.local_length if q.organisation == "hierarchical" else 0
    chosen = (
        ("none", "shepherd", "every").index(s.thieves),
        ("nearest", "longest", "random").index(s.victims),
        *(s.protected, s.most, ("home", "next", "own").index(q.placement)),
        ("home", "one", "nearest").index(spec.data),
    )
    options = (spec.group_cores, spec.machine.cores, local_length, q.minimum_length, *chosen)
    costs = (
        *(k.block_cycles, k.task_cycles, np.sqrt(k.compute_scv), k.transfer_cycles, k.queue_cycles),
        *(k.local_cycles, s.cycles, s.item_cycles, s.share),
    )
    tasks, cores, groups, total = spec.task_count, spec.cores, spec.groups, spec.groups + spec.cores
    growing = isinstance(spec.tasks, Growth)
    graph = grow(spec.tasks) if isinstance(spec.tasks, Growth) else None
    found = np.zeros(tasks, dtype=np.bool_)
    world = World(
        options=np.array([options], dtype=OPTIONS),
        costs=np.array([costs], dtype=COSTS),
        numa=np.array(spec.machine.numa_factors, dtype=float),
        blocks=spec.blocks,
        homes=np.ascontiguousarray(spec.homes),
        queue_of=np.ascontiguousarray(spec.queue_of),
        queue_memory=np.ascontiguousarray(spec.queue_memory),
        first=np.zeros(tasks + 1, dtype=np.int64) if graph is None else graph.first,
        neighbours=np.zeros(1, dtype=np.int64) if graph is None else graph.neighbours,
        found=found,
        runs=np.zeros(tasks, dtype=np.int64),
        **{name: np.full(tasks, -1, dtype=np.int64) for name in ("runner", "link")},
        **{name: np.zeros(total, dtype=np.int64) for name in ("head", "tail", "length")},
        **{name: np.zeros(cores, dtype=np.int64) for name in ("phase", "cursor", "turn", "target")},
        **{name: np.full(cores, -1, dtype=np.int64) for name in ("task", "carried")},
        time=np.full(cores, np.inf),
        lock_free=np.zeros(groups),
        memory_free=np.zeros(clusters),
        memory_busy=np.zeros(clusters),
        counts=np.zeros(COUNTS),
        streams=new_streams(seed=job.seed, replication=job.replication, sources=SOURCES),
    )
    for task in range(1 if growing else tasks):
        found[task] = True
        # The seed waits in the first queue unless new tasks go home.
        at_home = not growing or spec.queues.placement == "home"
        push(world, int(spec.queue_of[task]) if at_home else 0, task)
    return world


def run_replication(job: Job) -> Run:
    """Run one replication and return its counts."""
    world = build_world(job)
    run(world)
    return Run(counts=world.counts, memory_busy=world.memory_busy, runner=world.runner, runs=world.runs)


@dataclass(frozen=True, kw_only=True)
class WorkQueuesExperiment(Experiment):
    """The simulation of one program on run queues; made by `validate.simulate`.

    Notes
    -----
    A replication runs the whole set of tasks once. Each core does one thing at a time: it takes a task
    (from its own queue, then the shared one under its lock, else it steals or waits), fetches the data
    from a memory controller that serves one transfer at a time, computes, and then puts the neighbours
    that nobody has found into queues one by one, under their locks. Locks and controllers serve first
    come first served. A task that is in a queue is found by an idle core at once.

    Examples
    --------
    >>> from qmodels.systems.programs.work_queues import Cube, Growth
    >>> from validate import simulate
    >>> result = simulate(WorkQueues(tasks=Growth(grid=(9, 9, 9), body=Cube(side=7))), replications=4)
    >>> result.effort["tasks"], 1 < result.speedup.best < 16
    (343, True)
    """

    run_type = Run
    precise = ("execution_time",)
    run_replication = staticmethod(run_replication)

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        each = [_metrics(self.spec, run) for run in runs]
        metrics: dict[str, Estimate] = {
            name: mean_interval([one[name] for one in each], confidence=self.confidence)
            for name in self.spec.metric_names
        }
        return {
            "metrics": metrics,
            "utilization": {
                "cores": metrics["parallel_efficiency"],
                "memories": metrics["controller_utilization"],
            },
            "details": {"cluster_tasks": np.mean([cluster_tasks(self.spec, run) for run in runs], axis=0)},
            "effort": {"tasks": self.spec.task_count},
        }


def cluster_tasks(spec: WorkQueues, run: Run) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the number of tasks that the cores of each cluster ran."""
    return np.bincount(run.runner // spec.machine.cores, minlength=spec.machine.clusters)


def _metrics(spec: WorkQueues, run: Run) -> dict[str, float]:
    tasks, n, clock = spec.task_count, run.counts, spec.clock_ghz
    makespan = float(n[MAKESPAN])
    values = {
        "execution_time": makespan / clock,
        "speedup": spec.serial_time / makespan,
        "parallel_efficiency": n[COMPUTE] / (spec.cores * makespan),
        "imbalance": cluster_tasks(spec, run).max() * spec.machine.clusters / tasks - 1,
        "stolen_share": n[STOLEN] / tasks,
        "local_share": n[LOCAL_TASKS] / tasks,
        "lock_waiting_time": n[LOCK_WAIT] / tasks / clock,
        "memory_waiting_time": n[MEMORY_WAIT] / tasks / clock,
        "controller_utilization": run.memory_busy.max() / makespan,
    }
    return {name: float(value) for name, value in values.items()}
