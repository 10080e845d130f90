"""One replication of a queueing network: run, drop the warm-up, and reduce to a few arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from validate.campaigns.experiment import Job
from validate.network.kernel import run
from validate.network.state import BUFFER_FULL, POOL_FULL, STUCK, World
from validate.network.world import grown, new_world

BATCHES = 80
"""Stretches a replication is cut into, the first `WARM_UP_BATCHES` of them before measuring begins."""
WARM_UP_BATCHES = 16
MOST_JOBS_AT_ONCE = 50_000_000

VISIT_COUNTS = ("arrivals", "losses", "reneges", "completions", "departures", "delayed")
VISIT_SUMS = ("wait_sum", "response_sum")
VISIT_AREAS = ("number", "queued", "serving")
VISITS = (*VISIT_COUNTS, *VISIT_SUMS, *VISIT_AREAS)
"""Columns of `Run.visits`: counts, sums of times, and time integrals of numbers of jobs."""
PASSAGES = ("arrivals", "losses", "reneges", "completions", "response_sum", "number")
"""Columns of `Run.passages`."""


@dataclass(frozen=True, kw_only=True)
class NetworkJob(Job):
    """One replication; of a mirrored one the streams of random numbers are."""

    passages: int
    antithetic: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication; all but the series without the warm-up."""

    duration: float  # measured time
    visits: FloatArray  # counts and sums per node and class
    blocked: FloatArray  # time integral of the servers held by blocked jobs
    passages: FloatArray  # counts and sums per class a job began in
    # bins, counts: the bins of all histograms, flattened, that are not empty, and what they hold.
    bins: IntArray
    counts: IntArray
    times: FloatArray  # length of each batch, warm-up included
    numbers: FloatArray  # mean number of jobs at each node in each of them
    # responses, departures: sum of the response times of all visits that ended in each of them, and their
    # number.
    responses: FloatArray
    departures: FloatArray
    # events, most_jobs: events, warm-up included, and the largest number of jobs there was room for.
    events: int
    most_jobs: int
    # Of one server that was run by recursion: the sums of its idle times and of their squares.
    idle: FloatArray | None = None


def run_replication(job: NetworkJob) -> Run:
    """Run one replication and return its numbers."""
    world = new_world(job.spec, seed=job.seed, replication=job.replication, antithetic=job.antithetic)
    measured = BATCHES - WARM_UP_BATCHES
    start, counted = _seen(world), world.histograms
    batches = [_progress(world)]
    for batch in range(BATCHES):
        world = advance(world, ended=max(1, -(-job.passages * (batch + 1) // measured)))
        batches.append(_progress(world))
        if batch == WARM_UP_BATCHES - 1:
            start, counted = _seen(world), world.histograms.copy()
    end = _seen(world)
    times, responses, departures, *numbers = np.diff(np.array(batches), axis=0).T
    rest = (world.histograms - counted).ravel()
    bins = np.flatnonzero(rest)
    return Run(
        duration=end.time - start.time,
        visits=end.visits - start.visits,
        blocked=end.blocked - start.blocked,
        passages=end.passages - start.passages,
        bins=bins,
        counts=rest[bins],
        times=times,
        numbers=np.array(numbers).T / np.maximum(times, np.finfo(float).tiny)[:, None],
        responses=responses,
        departures=departures,
        events=int(world.state["events"][0]),
        most_jobs=world.jobs.size,
    )


def advance(world: World, *, ended: int = 2**62, until: float = np.inf) -> World:
    """Run until so many jobs have ended in all, or to a time; return the world, with more room if need be."""
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
            raise RuntimeError("the buffer of records or of the event trace is full, empty it")
        else:
            return world


def _progress(w: World) -> FloatArray:
    """Return time, sum and number of all responses, and the areas of the numbers at each node, up to now."""
    now = w.state["now"]
    t = w.tallies
    areas = (t["number_sum"] + now * t["number"]).sum(axis=1)
    return np.concatenate([now, [t["response_sum"].sum(), t["departures"].sum()], areas])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Seen:
    time: float
    visits: FloatArray
    blocked: FloatArray
    passages: FloatArray


def _seen(w: World) -> _Seen:
    """Return all counts and sums up to now; areas are sums of -t and +t, so that n t is missing."""
    now = float(w.state["now"][0])

    def area(table: Any, name: str) -> Any:
        return table[f"{name}_sum"] + now * table[name]

    tallies = w.tallies
    shared = (w.nodes["shared"] >= 0)[:, None]
    columns = [tallies[name].astype(float) for name in (*VISIT_COUNTS, *VISIT_SUMS)]
    columns += [area(tallies, "number"), area(tallies, "queued")]
    # Stations of their own pace keep the integral itself.
    columns.append(np.where(shared, tallies["serving_sum"], area(tallies, "serving")))
    passages = [w.classes[name].astype(float) for name in PASSAGES[:-1]] + [area(w.classes, "number")]
    return _Seen(
        time=now,
        visits=np.stack(columns, axis=-1),
        blocked=area(w.nodes, "blocked"),
        passages=np.stack(passages, axis=-1),
    )
