"""Makespan of a set of tasks on cores with run queues and work stealing."""

from __future__ import annotations

import numpy as np

from qmodels.systems.programs.work_queues import Growth, WorkQueues, grow
from qmodels.systems.spec.answer import Answer
from qmodels.work_queues.growth import Rounds, expected_maximum, ring_block_imbalance, run_rounds


def solve_work_queues(spec: WorkQueues) -> Answer:
    r"""Return the model's answer for a program on run queues.

    Parameters
    ----------
    spec : WorkQueues
        One program.

    Returns
    -------
    Answer
        Metrics, bounds, and how the tasks spread over the clusters.

    Raises
    ------
    ValueError
        If the body of a region has no block in the image.
    RuntimeError
        If there are too many rounds to follow.

    Notes
    -----
    An approximation with four parts. The tasks flow from layer to layer of the search by breadth, a
    round of one task per core at a time (`qmodels.work_queues.growth`); thefts move fluid between
    queues by the spec's own rule. Waits at memories and locks follow from the cores busy in the round
    (`qmodels.work_queues.growth`). Where each queue passes its tasks on to the next, the busiest
    has a surplus (`qmodels.work_queues.growth`). At the end, the slowest of G queues that are not
    balanced is the largest of G normal numbers, and of k cores the last ends
    :math:`\sigma (1/2 + \dots + 1/k)` after the mean, exact for exponential times.

    Exact for one core and for equal tasks without waits. What the model lacks: the order in which
    single tasks are found, and so whether they go through a core's own queue: in the default program that
    share is 0.82 instead of 0.56. Waits are rough: at memories those of equal tasks, which fall into step,
    were found up to 7 times shorter in simulation, those behind a central queue up to 6 times longer; at
    locks between half and 2.5 times.

    Examples
    --------
    A centred cube is not balanced over four clusters, since superblocks in the middle planes belong to
    one side only; stealing makes up for it:

    >>> from dataclasses import replace
    >>> from qmodels.systems.programs.work_queues import Stealing
    >>> alone = WorkQueues()
    >>> stealing = replace(alone, stealing=Stealing(thieves="shepherd"))
    >>> [round(solve_work_queues(spec).speedup, 1) for spec in (alone, stealing)]
    [13.2, 14.0]
    """
    rounds = run_rounds(spec)
    makespan = rounds.makespan + _randomness(spec, rounds)
    costs, count, cores = spec.costs, spec.task_count, spec.cores
    compute = costs.block_cycles * float(spec.blocks.sum()) + costs.task_cycles * count
    bounds = {name: bound / spec.clock_ghz for name, bound in _bounds(spec).items()}
    said = ", ".join(f"{name} {value:.4g}" for name, value in bounds.items())
    cluster_tasks = _per_cluster(spec, rounds)
    imbalance = float(cluster_tasks.max() * spec.machine.clusters / count - 1)
    if spec.queues.placement == "next" and spec.groups > 1 and spec.stealing.thieves == "none":
        imbalance = ring_block_imbalance(
            tasks=count, queues=spec.groups, blocks=spec.machine.clusters, compute_scv=costs.compute_scv
        )
    efficiency = compute / (cores * makespan)
    memories, clock = min(1.0, float(rounds.memory_busy.max()) / makespan), spec.clock_ghz
    return Answer(
        model="work queues",
        spec=spec,
        metrics={
            "execution_time": makespan / clock,
            "speedup": spec.serial_time / makespan,
            "parallel_efficiency": efficiency,
            "imbalance": max(imbalance, 0.0),
            "stolen_share": rounds.stolen / count,
            "local_share": rounds.local / count,
            "lock_waiting_time": rounds.lock_wait / count / clock,
            "memory_waiting_time": rounds.memory_wait / count / clock,
            "controller_utilization": memories,
        },
        utilization={"cores": efficiency, "memories": memories},
        details={"lower_bounds": bounds, "cluster_tasks": cluster_tasks},
        facts=(f"execution time at least {said} ns",),
        bottleneck=max(bounds, key=lambda name: bounds[name]),
    )


def _randomness(spec: WorkQueues, rounds: Rounds) -> float:
    """Return the delay of the last of random tasks behind the fluid."""
    costs = spec.costs
    mean = costs.block_cycles * spec.blocks + costs.task_cycles
    deviation = float(np.sqrt(np.mean(mean**2) * costs.compute_scv + np.var(mean)))
    if deviation == 0:
        return 0.0
    stealing = spec.stealing.thieves != "none" and spec.groups > 1
    together = spec.cores if stealing else spec.group_cores
    together = min(together, spec.task_count)
    tail = deviation * float((1.0 / np.arange(2, together + 1)).sum())
    ring = spec.queues.placement == "next"
    if stealing or ring or spec.groups == 1:
        return tail
    spread = deviation * np.sqrt(rounds.served) / spec.group_cores
    last = float(rounds.ends.max())
    return tail + max(0.0, expected_maximum(means=rounds.ends, deviations=spread) - last)


def _bounds(spec: WorkQueues) -> dict[str, float]:
    costs = spec.costs
    per_memory = np.bincount(spec.homes, minlength=spec.machine.clusters).astype(float)
    if spec.data == "one":
        per_memory = np.array([float(spec.task_count)])
    elif spec.data == "nearest":
        per_memory = np.array([spec.task_count / spec.machine.clusters])
    path = 1
    if isinstance(spec.tasks, Growth):
        path = int(grow(spec.tasks).depth.max()) + 1
    # Of random times the bound is on the mean; a path's blocks are at least one each.
    shortest = costs.task_cycles + costs.block_cycles * float(spec.blocks.min()) + costs.transfer_cycles
    return {
        "work": spec.serial_time / spec.cores,
        "memory": float(per_memory.max()) * costs.transfer_cycles,
        "path": path * shortest,
    }


def _per_cluster(spec: WorkQueues, rounds: Rounds) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    groups = np.arange(spec.cores) // spec.group_cores
    clusters = np.arange(spec.cores) // spec.machine.cores
    tasks = np.zeros(spec.machine.clusters)
    np.add.at(tasks, clusters, rounds.served[groups] / spec.group_cores)
    return tasks
