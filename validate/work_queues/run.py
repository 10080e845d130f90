"""One replication of the work queues: build, run, count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.programs.region import Growth, grow
from qmodels.systems.programs.work_queues import WorkQueues
from validate.campaigns.experiment import Job
from validate.engine.streams import new_streams
from validate.work_queues import state as c
from validate.work_queues.kernel import World, push, run


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What is left of a replication."""

    counts: FloatArray  # see `validate.work_queues.state`
    memory_busy: FloatArray  # time that each memory controller is busy [cycles]
    runner: IntArray  # core that ran each task
    runs: IntArray  # how often each task was run


def build_world(job: Job) -> World:
    """Return the world of a run, with the first tasks in their queues."""
    spec = job.spec
    clusters = spec.machine.clusters
    tasks, cores, groups, total = spec.task_count, spec.cores, spec.groups, spec.groups + spec.cores
    growing = isinstance(spec.tasks, Growth)
    graph = grow(spec.tasks) if isinstance(spec.tasks, Growth) else None
    found = np.zeros(tasks, dtype=np.bool_)
    world = World(
        options=_options(spec),
        costs=_costs(spec),
        numa=np.array(spec.machine.numa_factors, dtype=float),
        blocks=spec.blocks,
        homes=np.ascontiguousarray(spec.homes),
        queue_of=np.ascontiguousarray(spec.queue_of),
        queue_memory=np.ascontiguousarray(spec.queue_memory),
        first=np.zeros(tasks + 1, dtype=np.int64) if graph is None else graph.first,
        neighbours=np.zeros(1, dtype=np.int64) if graph is None else graph.neighbours,
        found=found,
        runner=np.full(tasks, -1, dtype=np.int64),
        runs=np.zeros(tasks, dtype=np.int64),
        link=np.full(tasks, -1, dtype=np.int64),
        head=np.zeros(total, dtype=np.int64),
        tail=np.zeros(total, dtype=np.int64),
        length=np.zeros(total, dtype=np.int64),
        phase=np.zeros(cores, dtype=np.int64),
        time=np.full(cores, np.inf),
        task=np.full(cores, -1, dtype=np.int64),
        cursor=np.zeros(cores, dtype=np.int64),
        turn=np.zeros(cores, dtype=np.int64),
        target=np.zeros(cores, dtype=np.int64),
        carried=np.full(cores, -1, dtype=np.int64),
        lock_free=np.zeros(groups),
        memory_free=np.zeros(clusters),
        memory_busy=np.zeros(clusters),
        counts=np.zeros(c.COUNTS),
        streams=new_streams(seed=job.seed, replication=job.replication, sources=c.SOURCES),
    )
    for task in range(1 if growing else tasks):
        found[task] = True
        # The seed waits in the first queue unless new tasks go home.
        at_home = not growing or spec.queues.placement == "home"
        push(world, int(spec.queue_of[task]) if at_home else 0, task)
    return world


def _options(spec: WorkQueues) -> IntArray:
    q, s = spec.queues, spec.stealing
    options = np.zeros(c.OPTIONS, dtype=np.int64)
    options[c.GROUP_CORES], options[c.CLUSTER_CORES] = spec.group_cores, spec.machine.cores
    options[c.LOCAL_LENGTH] = q.local_length if q.organisation == "hierarchical" else 0
    options[c.MINIMUM_LENGTH], options[c.PROTECTED], options[c.MOST] = q.minimum_length, s.protected, s.most
    options[c.THIEVES] = ("none", "shepherd", "every").index(s.thieves)
    options[c.VICTIMS] = ("nearest", "longest", "random").index(s.victims)
    options[c.PLACEMENT] = ("home", "next", "own").index(q.placement)
    options[c.DATA] = ("home", "one", "nearest").index(spec.data)
    return options


def _costs(spec: WorkQueues) -> FloatArray:
    k, s = spec.costs, spec.stealing
    costs = np.zeros(c.COSTS)
    costs[c.BLOCK], costs[c.TASK], costs[c.SPREAD] = k.block_cycles, k.task_cycles, np.sqrt(k.compute_scv)
    costs[c.TRANSFER], costs[c.QUEUE], costs[c.LOCAL] = k.transfer_cycles, k.queue_cycles, k.local_cycles
    costs[c.SEARCH], costs[c.ITEM], costs[c.SHARE] = s.cycles, s.item_cycles, s.share
    return costs


def run_replication(job: Job) -> Run:
    """Run one replication and return its counts."""
    world = build_world(job)
    run(world)
    return Run(counts=world.counts, memory_busy=world.memory_busy, runner=world.runner, runs=world.runs)
