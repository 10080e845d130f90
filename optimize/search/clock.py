"""Progress in words: how much is done, and how long the rest takes at the pace so far."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

SECONDS = 1.0
"""Time between two lines. [s]"""


def shown_progress() -> Callable[[int, int], None]:
    """Return what writes the progress of an exploration to standard error, at most once a second."""
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


def words(done: int, total: int, new: float, seconds: float) -> str:
    """Return how much is done and how long the rest takes, `new` designs having taken so many seconds."""
    text = f"{100 * done / max(total, 1):.1f} % of {total:,} designs"
    if not new or done >= total:
        return text
    left = round((total - done) * seconds / new)
    hours, minutes, rest = left // 3600, left // 60 % 60, left % 60
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((k for k, (amount, _) in enumerate(parts) if amount), 2)
    return f"{text}, {' '.join(f'{amount} {unit}' for amount, unit in parts[first : first + 2])} left"
