"""The simulation of run queues and work stealing: its replications and their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.systems.programs.work_queues import WorkQueues
from validate.campaigns.experiment import Experiment
from validate.estimates.statistics import Estimate, mean_interval
from validate.work_queues import state as c
from validate.work_queues.run import Run, run_replication


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
    """Return how many tasks the cores of each cluster ran."""
    return np.bincount(run.runner // spec.machine.cores, minlength=spec.machine.clusters)


def _metrics(spec: WorkQueues, run: Run) -> dict[str, float]:
    tasks, n, clock = spec.task_count, run.counts, spec.clock_ghz
    makespan = float(n[c.MAKESPAN])
    values = {
        "execution_time": makespan / clock,
        "speedup": spec.serial_time / makespan,
        "parallel_efficiency": n[c.COMPUTE] / (spec.cores * makespan),
        "imbalance": cluster_tasks(spec, run).max() * spec.machine.clusters / tasks - 1,
        "stolen_share": n[c.STOLEN] / tasks,
        "local_share": n[c.LOCAL_TASKS] / tasks,
        "lock_waiting_time": n[c.LOCK_WAIT] / tasks / clock,
        "memory_waiting_time": n[c.MEMORY_WAIT] / tasks / clock,
        "controller_utilization": run.memory_busy.max() / makespan,
    }
    return {name: float(value) for name, value in values.items()}
