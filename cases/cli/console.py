"""Output of the commands on a terminal: answers, progress bars, and errors in one line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from cases.cli.app import Csv, Full, Json, Plot


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` in work that keeps what is finished; elsewhere it ends all."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield what draws progress bars on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show_progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield show_progress


@dataclass(frozen=True)
class Output:
    """Form of a command's answer: text, JSON or CSV, and a picture; refused before anything is computed."""

    as_json: Json = False
    as_csv: Csv = False
    plot: Plot = None

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise ValueError("--json and --csv exclude each other")
        if self.plot is not None:
            from cases.plots import require_format

            require_format(self.plot)

    def show(self, answer: Any, figure: Callable[[], Any] | None = None) -> None:
        """Write the picture, and print the one form of an answer (see `Forms`) that is asked for."""
        if self.plot is not None and figure is not None:
            from cases.plots import save

            save(figure(), self.plot)
        if self.as_csv:
            put(answer.csv())
        elif self.as_json:
            from cases.tables import json_text

            put(json_text(answer.data()))
        else:
            put(answer.text() + "\n")


@dataclass(frozen=True)
class FullOutput(Output):
    """The same, of a text that shows all only where that is asked for."""

    full: Full = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.full and (self.as_json or self.as_csv):
            raise ValueError(
                "--full is of the text: leave it out with --json and --csv, which have all of it"
            )


class Forms(NamedTuple):
    """The forms of an answer: only that one is made that is printed."""

    text: Callable[[], str]
    data: Callable[[], Any]
    csv: Callable[[], str] = str


def listed(paths: Sequence[Path]) -> str:
    """Return the files that were written, to stand below an answer."""
    return "\n\nFiles\n" + "\n".join(f"  {path}" for path in paths) if paths else ""


def put(text: str) -> None:
    """Write to standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def fail(message: str, code: int = 2) -> NoReturn:
    """Say in one line on standard error what is wrong."""
    print("qmodels: error: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)
