"""Running the replications of many points: rounds, executors, the store, and interruptions."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from time import monotonic, perf_counter
from types import FrameType, TracebackType
from typing import Any, Self

from qmodels import checks
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.spec.store import ResultStore
from validate.campaigns.experiment import Experiment, decode, encode, keys_of
from validate.estimates.intervals import more_replications

Progress = Callable[[int, int], None]
"""Called with (runs finished, runs in all as far as is known)."""

QUIET_SECONDS = 1.0
"""What takes less shows nothing."""

PILOT = 100_000
"""Packets, passages or accesses of a replication from which it is said how long all will take."""


class TerminalProgress:
    """A bar with the rate and the remaining time, gone at the end: on standard error, or under a cell.

    The rate counts what was simulated, not what was found in a store.
    """

    def __init__(self) -> None:
        self._started = monotonic()
        self._found: int | None = None
        self._bars: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Draw."""
        if self._found is None:
            self._found = done
        elapsed = monotonic() - self._started
        if not (sys.stderr.isatty() or in_notebook()) or elapsed < QUIET_SECONDS:
            return
        if self._bars is None:
            self._open(done, total)
        rate = (done - self._found) / elapsed
        left = f"{duration((total - done) / rate)} left" if rate else ""
        self._bars.update(self._task, completed=done, total=total, rate=f"{rate:.3g}/s", left=left)

    def _open(self, done: int, total: int) -> None:
        if in_notebook():
            self._bars = CellBar()
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bars

        columns = (
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[left]}"),
        )
        self._bars = Bars(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bars.add_task("", completed=done, total=total, rate="", left="")
        self._bars.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()


class CellBar:
    """A bar under the cell of a notebook, gone at the end."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._place = display(HTML(""), display_id=True)

    def update(self, _: Any, *, completed: int, total: int, rate: str, left: str) -> None:
        """Draw."""
        words = f"runs {completed}/{total} {rate} {left}"
        self._place.update(self._html(f"<progress value='{completed}' max='{total}'></progress> {words}"))

    def stop(self) -> None:
        """Leave nothing."""
        self._place.update(self._html(""))


def in_notebook() -> bool:
    """Return whether a kernel of a notebook runs this."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


def duration(seconds: float) -> str:
    """Return a time as a reader of a clock says it.

    >>> duration(7.2), duration(125), duration(7265)
    ('8 s', '2:05', '2:01:05')
    """
    whole = int(-(-seconds // 1))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def announce(
    pilot: Callable[[Experiment, dict[str, int]], Any],
    experiments: Sequence[Experiment],
    *,
    replications: int,
    cores: int,
) -> None:
    """Say how long simulations will take, from the rate of two short replications of the first.

    ``pilot``: runs two replications of an experiment with other lengths; ``replications``, ``cores``: of
    each, and threads.
    """
    lengths = [one.lengths()[0] for one in experiments if one.lengths()]
    if not sys.stderr.isatty() or not lengths or max(length for _, length in lengths) < PILOT:
        return
    name, _ = lengths[0]
    _, brief = replace(experiments[0], **{name: PILOT // 10}).lengths()[0]
    if brief > PILOT:  # a rotation of a recorded trace has to be simulated in any case
        return
    for _ in range(2):  # the first compiles the kernels
        started = perf_counter()
        pilot(experiments[0], {name: PILOT // 10})
        seconds = perf_counter() - started
    runs = sum(length for _, length in lengths) * replications / brief
    seconds *= runs / min(cores, replications * len(experiments))
    print(f"about {duration(seconds)} on {cores} cores", file=sys.stderr)


@contextmanager
def interruption_put_off() -> Iterator[None]:
    """Let Ctrl-C come after what is done here: a run that begins meanwhile would not be known."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *what: came.append(what))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])


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
        with interruption_put_off():
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
