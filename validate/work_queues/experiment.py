"""The simulation of run queues and work stealing: its replications and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qmodels import checks
from qmodels.systems.programs.work_queues import WORK_QUEUE_METRICS, WorkQueues
from validate.estimates.statistics import Estimate, mean_interval
from validate.work_queues import state as c
from validate.work_queues.result import WorkQueuesResult
from validate.work_queues.run import Job, Run, run_replication


@dataclass(frozen=True, kw_only=True)
class WorkQueuesExperiment:
    """The simulation of one program on run queues; made by `validate.simulate`.

    Parameters
    ----------
    spec : WorkQueues
        What to simulate.
    seed : int
        Everything random follows from it: the order in which a task visits its neighbours, computing
        times, and random victims. The region is the same in all replications.
    confidence : float
        Coverage of the intervals (Student's, over the replications).

    Raises
    ------
    ValueError
        If an argument is out of range.

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
    >>> result.tasks, 1 < result.speedup.best < 16
    (343, True)
    """

    spec: WorkQueues
    seed: int = 0
    confidence: float = 0.95

    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("makespan",)
    run_replication: ClassVar[Callable[[Job], Run]] = staticmethod(run_replication)

    def __post_init__(self) -> None:
        if not isinstance(self.spec, WorkQueues):
            raise ValueError(f"spec must be a WorkQueues, got {self.spec!r}")
        checks.seed(self.seed)
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, got {self.confidence!r}")

    def jobs(self, start: int, stop: int) -> list[Job]:
        """Return a job for each replication."""
        return [Job(spec=self.spec, seed=self.seed, replication=k) for k in range(start, stop)]

    def summarize(
        self, runs: Sequence[tuple[Job, Run]], *, replications: int, seconds: float
    ) -> WorkQueuesResult:
        """Return the estimates of finished replications."""
        each = [_metrics(self.spec, run) for _, run in runs]
        metrics: dict[str, Estimate] = {
            name: mean_interval([one[name] for one in each], confidence=self.confidence)
            for name in WORK_QUEUE_METRICS
        }
        return WorkQueuesResult(
            metrics=metrics,
            cluster_tasks=np.mean([cluster_tasks(self.spec, run) for _, run in runs], axis=0),
            tasks=self.spec.task_count,
            replications=replications,
            seed=self.seed,
            seconds=seconds,
        )


def cluster_tasks(spec: WorkQueues, run: Run) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return how many tasks the cores of each cluster ran."""
    return np.bincount(run.runner // spec.machine.cores, minlength=spec.machine.clusters)


def _metrics(spec: WorkQueues, run: Run) -> dict[str, float]:
    tasks, n = spec.task_count, run.counts
    makespan = float(n[c.MAKESPAN])
    values = {
        "makespan": makespan,
        "speedup": spec.serial_time / makespan,
        "utilization": n[c.COMPUTE] / (spec.cores * makespan),
        "imbalance": cluster_tasks(spec, run).max() * spec.machine.clusters / tasks - 1,
        "stolen_share": n[c.STOLEN] / tasks,
        "local_share": n[c.LOCAL_TASKS] / tasks,
        "lock_waiting_time": n[c.LOCK_WAIT] / tasks,
        "memory_waiting_time": n[c.MEMORY_WAIT] / tasks,
        "memory_utilization": run.memory_busy.max() / makespan,
    }
    return {name: float(value) for name, value in values.items()}
