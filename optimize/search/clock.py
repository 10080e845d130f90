"""Progress in words: how much is done, and how long the rest takes at the pace so far."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

SECONDS = 1.0
"""Time between two lines. [s]"""

LONG = 10.0
"""What takes less is not announced. [s]"""


def shown_progress() -> Callable[[int, int], None]:
    """Return a writer of the progress of an exploration to standard error, at most once a second."""
    begun: list[float] = []
    said = 0.0

    def show(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        begun[:] = begun or [now, done]
        if now - said >= SECONDS or done >= total:
            said = now
            print(words(done, total, done - begun[1], now - begun[0]), file=sys.stderr, flush=True)

    return show


def shown_steps(*, always: bool) -> Callable[[object], None]:
    """Return a writer of steps to standard error, at most once a second; silent in a pipe unless `always`."""
    shown = always or sys.stderr.isatty()
    last = time.monotonic() - SECONDS * always

    def show(step: object) -> None:
        nonlocal last
        if shown and time.monotonic() - last >= SECONDS:
            last = time.monotonic()
            print(step, file=sys.stderr, flush=True)

    return show


def announced(
    show: Callable[[int, int], None], *, then: str = "", least: float = LONG
) -> Callable[[int, int], None]:
    """Return a function that says once, on a terminal, how long designs take in all, then shows progress.

    It is told by the first that are done, a second after the begin: none is evaluated twice for it.
    """
    begun: list[float] = []
    told = not sys.stderr.isatty()

    def show_and_tell(done: int, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        begun[:] = begun or [now, done]
        if not told and now - begun[0] >= SECONDS and done > begun[1]:
            told, seconds = True, (total - begun[1]) * (now - begun[0]) / (done - begun[1])
            if seconds >= least:
                text = f"{total} designs: at most about {span(math.ceil(seconds))}{then}"
                print(text, file=sys.stderr, flush=True)
        show(done, total)

    return show_and_tell


def span(seconds: float) -> str:
    """Return a time in words.

    >>> span(7.2), span(125), span(7265)
    ('7 s', '2 min 5 s', '2 h 1 min')
    """
    left = round(seconds)
    hours, minutes, rest = left // 3600, left // 60 % 60, left % 60
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((k for k, (amount, _) in enumerate(parts) if amount), 2)
    return " ".join(f"{amount} {unit}" for amount, unit in parts[first : first + 2])


def words(done: int, total: int, new: float, seconds: float) -> str:
    """Return the share that is done and the time left, from the seconds that `new` designs took."""
    text = f"{100 * done / max(total, 1):.1f} % of {total:,} designs"
    return text if not new or done >= total else f"{text}, {span((total - done) * seconds / new)} left"
