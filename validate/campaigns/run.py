"""Running the replications of many points: rounds, executors, the store, and interruptions."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from queue import Empty, SimpleQueue
from typing import Any

from qmodels import checks
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.spec.store import ResultStore
from validate.campaigns.experiment import Experiment
from validate.campaigns.progress import Progress
from validate.campaigns.store import decode, encode, keys_of
from validate.estimates.stopping import more_replications

IN_FLIGHT = 256
"""Submitted jobs that are not finished: bounds the memory of a long campaign."""


class Point:
    """One experiment of a campaign: the jobs of its present round, and the result of those before."""

    def __init__(
        self, experiment: Experiment, *, replications: int, precision: Mapping[str, float], maximum: int
    ) -> None:
        self.experiment = experiment
        self.result: Any = None
        self.finished = False
        self.started: float | None = None
        self._precision, self._maximum = precision, maximum
        self._replications = 0
        self._all: list[tuple[Any, Any]] = []
        self._plan(replications)

    def _plan(self, further: int) -> None:
        start = self._replications
        self._replications += further
        self.jobs = list(self.experiment.jobs(start, self._replications))
        self._runs: dict[int, Any] = {}

    def accept(self, number: int, run: Any) -> bool:
        """Take the run of one job of the round; return whether another round starts with that."""
        self._runs[number] = run
        if len(self._runs) < len(self.jobs):
            return False
        self._all += [(job, self._runs[k]) for k, job in enumerate(self.jobs)]
        seconds = 0.0 if self.started is None else time.perf_counter() - self.started
        self.result = self.experiment.summarize(self._all, replications=self._replications, seconds=seconds)
        further = self._further(self.result)
        if further:
            self._plan(further)
        else:
            self.finished = True
            self._all, self._runs = [], {}  # of thousands of points only the results stay
        return further > 0

    def _further(self, result: Any) -> int:
        """Return the number of replications to add: none where the system does not keep up."""
        wanted = [0]
        for name, target in self._precision.items() if getattr(result, "stable", True) is not False else ():
            if name not in result.metrics:
                raise ValueError(
                    f"precision must be of a metric, got {name!r}{checks.nearest(name, result.metrics)}"
                )
            estimate: Estimate = result.metrics[name]
            wanted.append(
                more_replications(
                    [estimate], replications=self._replications, precision=target, maximum=self._maximum
                )
            )
        return max(wanted)


class Replicator:
    """Runs all jobs of points to their end, in an order that changes no number.

    Parameters
    ----------
    points : sequence of Point
        What to run.
    executor : concurrent.futures.Executor
        Where.
    store : ResultStore, optional
        Where runs are looked up first and committed one by one.
    progress : callable
        Told after every run, and every second.
    """

    def __init__(
        self, points: Sequence[Point], *, executor: Executor, store: ResultStore | None, progress: Progress
    ) -> None:
        self.restored = self.simulated = 0
        self._points, self._executor, self._store, self._progress = points, executor, store, progress
        self._waiting: deque[tuple[Point, int, str]] = deque()
        self._running: dict[Future[Any], tuple[Point, int, str]] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()

    def run(self) -> None:
        """Run until every point has its result.

        Raises
        ------
        Exception
            What a job raised, with a note of the point and the replication. What is finished by
            then is in the store, also after an interruption.
        """
        try:
            for point in self._points:
                self._waiting.extend(self._begin(point))
            self._report()
            while self._waiting or self._running:
                while self._waiting and len(self._running) < IN_FLIGHT:
                    self._submit()
                try:
                    self._take(self._done.get(timeout=1.0))
                except Empty:
                    pass  # time passes: the rate that is shown falls
                self._report()
        except BaseException:
            self._stop()
            raise

    def _begin(self, point: Point) -> list[tuple[Point, int, str]]:
        """Take what the store has of a point's round, and of later ones; return what is to be run."""
        while True:
            tasks = [(point, k, "") for k in range(len(point.jobs))]
            if self._store is None:
                return tasks
            keys = keys_of(point.experiment.run_replication, point.jobs)
            tasks = [(point, k, key) for k, key in enumerate(keys)]
            found = self._store.get(key for _, _, key in tasks)
            self.restored += sum(key in found for _, _, key in tasks)
            again = False
            for _, k, key in tasks:
                if key in found:
                    again = point.accept(k, decode(found[key], point.experiment.run_type))
            if not again:
                return [task for task in tasks if task[2] not in found]

    def _submit(self) -> None:
        task = self._waiting.popleft()
        point, number, _ = task
        if point.started is None:
            point.started = time.perf_counter()
        future = self._executor.submit(point.experiment.run_replication, point.jobs[number])
        self._running[future] = task
        future.add_done_callback(self._done.put)

    def _take(self, future: Future[Any]) -> None:
        point, number, key = self._running[future]
        try:
            run = future.result()
        except Exception as error:
            where = self._points.index(point)
            error.add_note(f"while simulating point {where}, job {number} of its round")
            raise
        if self._store is not None:
            self._store.put({key: encode(run)})
        del self._running[future]
        self.simulated += 1
        if point.accept(number, run):
            self._waiting.extendleft(reversed(self._begin(point)))

    def _stop(self) -> None:
        """Start nothing more, wait for what has begun, and keep it."""
        self._waiting.clear()
        begun = [future for future in self._running if not future.cancel()]
        wait(begun)
        for future in begun:
            if not future.cancelled() and future.exception() is None:
                self._take(future)

    def _report(self) -> None:
        done = self.restored + self.simulated
        self._progress(done, done + len(self._running) + len(self._waiting))
