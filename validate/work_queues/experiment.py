"""The simulation of run queues and work stealing: its replications and their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.programs.region import Growth, grow
from qmodels.systems.programs.work_queues import WorkQueues
from qmodels.systems.spec.estimate import Estimate
from validate.campaigns.experiment import Experiment, Job
from validate.engine.streams import new_streams
from validate.estimates.intervals import mean_interval
from validate.work_queues.kernel import (
    COMPUTE,
    COSTS,
    COUNTS,
    LOCAL_TASKS,
    LOCK_WAIT,
    MAKESPAN,
    MEMORY_WAIT,
    OPTIONS,
    SOURCES,
    STOLEN,
    World,
    push,
    run,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    counts: FloatArray  # see `validate.work_queues.kernel`
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
    >>> from qmodels.systems.programs.region import Cube, Growth
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
