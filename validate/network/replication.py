"""One replication of a queueing network: run, drop the warm-up, and reduce to a few arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.stations.queueing_network import QueueingNetwork
from validate.campaigns.experiment import Job
from validate.network.batches import MOST_JOBS_AT_ONCE, BatchRun, job_counts, run_batches
from validate.network.kernel import run
from validate.network.state import BUFFER_FULL, COMPLETED, LOST, POOL_FULL, RENEGED, STUCK, World
from validate.network.world import grown, new_world

VISIT_COUNTS = ("arrivals", "losses", "reneges", "completions", "departures", "delayed")
VISIT_SUMS = ("wait_sum", "response_sum")
VISIT_AREAS = ("number", "queued", "serving")
VISITS = (*VISIT_COUNTS, *VISIT_SUMS, *VISIT_AREAS)
"""Columns of `Run.visits`: counts, sums of times, and time integrals of numbers of jobs."""
PASSAGES = ("arrivals", "losses", "reneges", "completions", "response_sum", "number")
"""Columns of `Run.passages`."""

OUTCOMES = {int(COMPLETED): "completed", int(LOST): "lost", int(RENEGED): "reneged"}
"""How a visit ended, by the number in the records' ``outcome``."""


@dataclass(frozen=True, kw_only=True)
class NetworkJob(Job):
    """One replication; of a mirrored one the streams of random numbers are."""

    passages: int
    antithetic: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Run(BatchRun):
    """Result of a replication."""

    visits: FloatArray  # counts and sums per node and class
    blocked: FloatArray  # time integral of the servers held by blocked jobs
    passages: FloatArray  # counts and sums per class a job began in
    most_jobs: int  # the largest number of jobs there was room for
    # Of one server that was run by recursion: the sums of its idle times and of their squares.
    idle: FloatArray | None = None


def run_replication(job: NetworkJob) -> Run:
    """Run one replication and return its numbers."""
    world, sums, series = run_batches(
        new_world(job.spec, seed=job.seed, replication=job.replication, antithetic=job.antithetic),
        job_counts(job.passages),
        advance=advance,
        world=lambda world: world,
        seen=_seen,
        progress=_progress,
    )
    return Run(most_jobs=world.jobs.size, **sums, **series)


def advance(world: World, *, ended: int = 2**62, until: float = np.inf) -> World:
    """Run until n jobs have ended in all, or to a time; return the world, with more room if need be."""
    while True:
        reason = run(world, until, ended)
        if reason == POOL_FULL:
            if world.jobs.size > MOST_JOBS_AT_ONCE:
                raise RuntimeError(
                    f"more than {MOST_JOBS_AT_ONCE} jobs are in the network at time "
                    f"{world.state['now'][0]:g}: it is overloaded, simulate fewer passages"
                )
            world = grown(world, world.jobs.size)
        elif reason == STUCK:
            raise RuntimeError(
                f"no event is left at time {world.state['now'][0]:g}: every job waits for another "
                "(a cycle of full stations), give one of them more capacity"
            )
        elif reason == BUFFER_FULL:
            raise RuntimeError("the buffer of records is full, empty it")
        else:
            return world


def visit_records(
    spec: QueueingNetwork, *, passages: int, seed: int = 0, replication: int = 0, rows: int = 100_000
) -> Iterator[npt.NDArray[Any]]:
    """Yield a row for every visit of a job to a node, a block of rows at a time, from time 0 on.

    ``passages``: jobs that leave the network, or cycles of closed ones, before it ends; ``seed``,
    ``replication``: as in `validate.network.run.NetworkExperiment`: the same run as there; ``rows``: rows
    kept in memory at once. Yields fields of `validate.network.state.RECORD`: job (numbered from 0), class and
    node by number, times of arrival, first start of service (NaN if there was none) and leaving, the outcome
    (see `OUTCOMES`), and the number of the branch for the task of a fork, -1 otherwise.
    """
    checks.count("passages", passages)
    world = new_world(spec, seed=seed, replication=replication, records=1)
    least = int(world.state["most_rows"][0]) + 1
    world = new_world(spec, seed=seed, replication=replication, records=max(rows, least))
    while True:
        reason = run(world, np.inf, passages)
        if reason == POOL_FULL:
            world = grown(world, world.jobs.size)
            continue
        filled = int(world.state["records"][0])
        world.state["records"] = 0
        yield world.records[:filled].copy()
        if reason != BUFFER_FULL:
            if reason == STUCK:
                raise RuntimeError("no event is left: every job waits for another")
            return


def area(table: Any, name: str, now: float) -> Any:
    """Return the time integral of a number up to now, from a sum of -t and +t over its changes."""
    return table[f"{name}_sum"] + now * table[name]


def served(w: World, now: float) -> Any:
    """Return the time integral of the busy servers of each node, by class."""
    t = w.tallies
    # Stations of their own pace keep the integral itself.
    own_pace = (w.nodes["shared"] >= 0)[:, None]
    return np.where(own_pace, t["serving_sum"], area(t, "serving", now))


def _progress(w: World) -> FloatArray:
    """Return time, sum and number of all responses, and the areas of the numbers at each node, up to now."""
    now, t = float(w.state["now"][0]), w.tallies
    areas = area(t, "number", now).sum(axis=1)
    return np.array([now, t["response_sum"].sum(), t["departures"].sum(), *areas])


def _seen(w: World) -> dict[str, Any]:
    """Return all counts and sums up to now."""
    now, t = float(w.state["now"][0]), w.tallies
    columns = [t[name].astype(float) for name in (*VISIT_COUNTS, *VISIT_SUMS)]
    columns += [area(t, "number", now), area(t, "queued", now), served(w, now)]
    passages = [w.classes[name].astype(float) for name in PASSAGES[:-1]] + [area(w.classes, "number", now)]
    return {
        "time": now,
        "visits": np.stack(columns, axis=-1),
        "blocked": area(w.nodes, "blocked", now),
        "passages": np.stack(passages, axis=-1),
    }
