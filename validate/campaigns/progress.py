"""Progress of a campaign: on a terminal or in a notebook, not in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic, perf_counter
from types import TracebackType
from typing import Any, Self

from validate.campaigns.experiment import Experiment

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
