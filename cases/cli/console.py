"""What the commands write to the terminal: answers, progress bars, and errors in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


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


def answer(as_json: bool, data: Callable[[], Any], text: Callable[[], str]) -> None:
    """Print one of the two forms of an answer; only that one is made."""
    from cases.tables import json_text

    put(json_text(data()) if as_json else text() + "\n")


def put(text: str) -> None:
    """Write to standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def fail(message: str, code: int = 2) -> NoReturn:
    """Say in one line on standard error what is wrong."""
    print("qmodels: error: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)
