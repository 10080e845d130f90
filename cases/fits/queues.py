"""Fits of queues: rings of queues that pass tasks on, and round robin with weights.

``python -m cases.fits.queues`` makes their data in a minute: ``ring-queues.csv`` and ``round-robin.csv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from cases.fits.fit import Fit, Problem
from cases.fits.round_robin import simulated_waits
from cases.study.packet_processor import DATA
from cases.tables import columns_of, load_table, write_table
from qmodels.checks import FloatArray
from qmodels.queues.disciplines import round_robin
from qmodels.systems.programs.region import Cube, Growth
from qmodels.systems.programs.work_queues import Clusters, RunQueues, TaskCosts, WorkQueues
from qmodels.work_queues import imbalance

RING, ROUND_ROBIN = DATA / "ring-queues.csv", DATA / "round-robin.csv"
SIDES, CORES, SCVS = (9.0, 12.0, 15.0, 18.0, 20.0), (1, 2, 4, 8), (0.0, 0.1, 0.5, 1.0)
REPLICATIONS, SEED = 64, 3
LOADS, SYSTEMS = (0.3, 0.6, 0.8, 0.9), 20


def ring_specs() -> Iterator[WorkQueues]:
    """Yield programs on rings of 4 to 32 queues: cubes of superblocks, times of some variation."""
    usual = WorkQueues()
    for side, cores, scv in product(SIDES, CORES, SCVS):
        yield replace(
            usual,
            tasks=Growth(body=Cube(side=side)),
            machine=Clusters(cores=cores),
            costs=TaskCosts(compute_scv=scv),
            queues=RunQueues(organisation="distributed", placement="next", local_length=0),
        )


def measure_rings() -> list[dict[str, Any]]:
    """Return by how many tasks the busiest queue exceeds the mean, simulated."""
    from validate.campaigns.experiment import Job
    from validate.work_queues.experiment import run_replication

    rows = []
    for spec in ring_specs():
        surplus = []
        for number in range(REPLICATIONS):
            run = run_replication(Job(spec=spec, seed=SEED, replication=number))
            ran = np.bincount(run.runner, minlength=spec.cores)
            surplus.append(ran.max() - ran.mean())
        error = np.std(surplus, ddof=1) / REPLICATIONS**0.5
        rows.append(
            {
                "tasks": spec.task_count,
                "queues": spec.cores,
                "compute_scv": spec.costs.compute_scv,
                "surplus": round(float(np.mean(surplus)), 3),
                "standard_error": round(float(error), 3),
            }
        )
    return rows


def measure_round_robin() -> list[dict[str, Any]]:
    """Return the waits of random systems of 2 to 8 queues, a row for each queue."""
    dice = np.random.default_rng(SEED)
    rows = []
    for system in range(SYSTEMS):
        load, queues = LOADS[system % len(LOADS)], int(dice.integers(2, 9))
        part = dice.dirichlet(np.full(queues, 2.0))
        mean = dice.uniform(0.5, 2.0, queues).round(3)
        rate = (load * part / mean).round(5)
        weight = dice.integers(1, 9, queues)
        scv = float(dice.choice([0.0, 1.0]))
        waits = np.array(
            [simulated_waits(rate, mean, scv, weight, jobs=1_000_000, seed=seed) for seed in range(4)]
        )
        error = waits.std(axis=0, ddof=1) / 2
        for k in range(queues):
            values = (system, load, rate[k], mean[k], scv, weight[k], waits[:, k].mean(), error[k])
            names = ("system", "load", "rate", "mean", "scv", "weight", "wait", "standard_error")
            rows.append(dict(zip(names, (round(float(value), 5) for value in values), strict=True)))
    return rows


def ring() -> Problem:
    """Relative errors of the surplus of the busiest queue."""
    kept = load_table(RING)
    points = list(zip(kept["tasks"], kept["queues"], kept["compute_scv"], strict=True))

    def errors() -> FloatArray:
        model = [
            imbalance.ring_surplus(tasks=tasks, queues=int(queues), compute_scv=scv)
            for tasks, queues, scv in points
        ]
        return np.array(model) / kept["surplus"] - 1

    return Problem(errors=errors, groups=np.arange(len(points)))


def weights() -> Problem:
    """Relative errors of the waits under weighted round robin."""
    kept = load_table(ROUND_ROBIN)
    systems = [kept["system"] == number for number in np.unique(kept["system"])]

    def errors() -> FloatArray:
        waits = [
            round_robin.weighted_round_robin(
                arrival_rate=kept["rate"][mine],
                mean_service_time=kept["mean"][mine],
                service_scv=kept["scv"][mine],
                weights=kept["weight"][mine],
            ).mean_waiting_time
            for mine in systems
        ]
        return np.concatenate(waits) / kept["wait"] - 1

    return Problem(errors=errors, groups=kept["system"].astype(np.int64))


FITS = (
    Fit(
        name="work_queues.ring",
        module=imbalance,
        fields=imbalance.RingLaw._fields,
        data="cases/data/ring-queues.csv",
        problem=ring,
    ),
    Fit(
        name="queues.round_robin",
        module=round_robin,
        fields=round_robin.RoundRobinLaw._fields,
        data="cases/data/round-robin.csv",
        problem=weights,
        scale=0.1,
        parts=5,
        slow=True,
    ),
)

if __name__ == "__main__":
    for path, measure in ((RING, measure_rings), (ROUND_ROBIN, measure_round_robin)):
        write_table(path, columns_of(measure()))
