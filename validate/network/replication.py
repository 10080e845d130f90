"""One replication of a queueing network: run, drop the warm-up, and reduce to a few arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.spec.estimate import Estimate, exactly
from qmodels.systems.stations.queueing_network import QueueingNetwork
from validate.campaigns.experiment import Job
from validate.engine.histogram import BINS, Histogram
from validate.estimates.doubts import batch_means, warm_up
from validate.estimates.intervals import busy_interval, probability_interval, ratio_interval
from validate.network.kernel import run
from validate.network.state import BUFFER_FULL, COMPLETED, LOST, POOL_FULL, RENEGED, STUCK, World
from validate.network.world import grown, new_world

BATCHES = 80
"""Stretches a replication is cut into, the first `WARM_UP_BATCHES` of them before measuring begins."""
WARM_UP_BATCHES = 16
MOST_JOBS_AT_ONCE = 50_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchRun:
    """A replication in stretches; all but the series without the warm-up."""

    duration: float  # measured time
    # bins, counts: the bins of all histograms, flattened, that are not empty, and what they hold.
    bins: IntArray
    counts: IntArray
    times: FloatArray  # length of each batch, warm-up included
    numbers: FloatArray  # mean number of jobs at each node, or of each flow, in each of them
    # responses, departures: sum of the response times of all visits, or jobs, that ended in each of them, and
    # their number.
    responses: FloatArray
    departures: FloatArray
    events: int  # warm-up included


def job_counts(passages: int) -> list[dict[str, Any]]:
    """Return the number of jobs that have ended at the end of each batch, by the number measured."""
    measured = BATCHES - WARM_UP_BATCHES
    return [{"ended": max(1, -(-passages * (batch + 1) // measured))} for batch in range(BATCHES)]


def run_batches(
    state: Any,
    goals: Iterable[dict[str, Any]],
    *,
    advance: Callable[..., Any],
    world: Callable[[Any], Any],
    seen: Callable[[Any], dict[str, Any]],
    progress: Callable[[Any], FloatArray],
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Run a replication from goal to goal; return its end, sums after the warm-up, and fields of `BatchRun`.

    ``world``: of a state, with the histograms; ``seen``: all sums up to now, the ``time`` among them;
    ``progress``: time, sum and number of the responses, and the time integrals of the numbers of jobs.
    """
    start, counted, ends = seen(state), world(state).histograms.copy(), [progress(state)]
    for batch, goal in enumerate(goals):
        state = advance(state, **goal)
        ends.append(progress(state))
        if batch == WARM_UP_BATCHES - 1:
            start, counted = seen(state), world(state).histograms.copy()
    end = seen(state)
    times, responses, departures, *areas = np.diff(np.array(ends), axis=0).T
    rest = (world(state).histograms - counted).ravel()
    bins = np.flatnonzero(rest)
    sums = {name: end[name] - start[name] for name in end}
    return (
        state,
        sums,
        {
            "duration": sums.pop("time"),
            "bins": bins,
            "counts": rest[bins],
            "times": times,
            "numbers": np.array(areas).T / np.maximum(times, np.finfo(float).tiny)[:, None],
            "responses": responses,
            "departures": departures,
            "events": int(world(state).state["events"][0]),
        },
    )


class Replications:
    """The estimates of some runs."""

    def __init__(self, runs: Sequence[BatchRun], *, confidence: float, together: int = 1) -> None:
        """``together``: replications that are one observation."""
        self.runs, self.confidence, self.together = runs, confidence, together
        self._stacked: dict[str, FloatArray] = {}
        self.time = self.stacked("duration")

    def stacked(self, name: str) -> FloatArray:
        """Return a field of all runs with one leading axis, those that are one observation added up."""
        if name not in self._stacked:
            array = np.array([getattr(run, name) for run in self.runs], dtype=float)
            pairs = len(self.runs) // self.together, self.together
            self._stacked[name] = array.reshape(*pairs, *array.shape[1:]).sum(axis=1)
        return self._stacked[name]

    def columns(self, name: str, names: Sequence[str]) -> dict[str, FloatArray]:
        """Return the columns of a table of all runs by their names."""
        return dict(zip(names, np.moveaxis(self.stacked(name), -1, 0), strict=True))

    def exactly(self, value: float) -> Estimate:
        """Return a value without spread."""
        return exactly(value, confidence=self.confidence)

    def ratio(self, above: Any, below: Any) -> Estimate:
        """Return the ratio of two sums; 0 where there is nothing to divide by."""
        return ratio_interval(above, below, confidence=self.confidence)

    def share(self, above: Any, below: Any, *, possible: bool = True) -> Estimate:
        """Return a probability; exactly 0 of what cannot happen."""
        if not possible:
            return self.exactly(0.0)
        return probability_interval(above, below, confidence=self.confidence)

    def busy(self, above: Any, below: Any) -> Estimate:
        """Return a busy fraction."""
        return busy_interval(above, below, confidence=self.confidence)

    def histograms(self, rows: Sequence[int], *, unit: float = 1.0) -> list[Histogram]:
        """Return some of the histograms added up, one for each replication."""
        found = []
        for one in self.runs:
            mine = np.isin(one.bins // BINS, rows)
            merged = np.bincount(one.bins[mine] % BINS, weights=one.counts[mine], minlength=BINS)
            found.append(Histogram(unit=unit, counts=merged.astype(np.int64)))
        return found

    def unsettled(self) -> bool:
        """Return whether in most runs the response times had not settled or do not average out."""
        wrong = 0
        for one in self.runs:
            seen = one.departures > 0
            if not seen[WARM_UP_BATCHES:].all():
                return True
            measured = one.responses[WARM_UP_BATCHES:], one.departures[WARM_UP_BATCHES:]
            settled = warm_up(one.responses[seen] / one.departures[seen], batch=1) <= BATCHES // 2 - 1
            wrong += not (settled and batch_means(*measured, confidence=0.95).independent)
        return 2 * wrong > len(self.runs)


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
