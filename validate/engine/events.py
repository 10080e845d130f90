"""The calendar of an event-driven simulation: a binary heap ordered by (time, sequence number).

It starts at index 1; entry 0 keeps the book: its ``order`` is the number of events scheduled so far, its
``event`` the number of pending ones, its ``time`` that of the last one taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.engine.jit import jit

ENTRY = np.dtype([("time", "f8"), ("order", "i8"), ("event", "i8")])
"""A pending event; ``order`` is the sequence number that breaks ties."""


def new_calendar(capacity: int) -> Any:
    """Return an empty calendar for at most so many pending events."""
    return np.zeros(capacity + 2, dtype=ENTRY)


@jit
def schedule(heap: Any, time: float, event: int) -> None:
    """Add an event; of two at the same time the one scheduled first happens first.

    >>> heap = new_calendar(4)
    >>> for time, event in ((2.0, 7), (1.0, 8), (1.0, 9)):
    ...     schedule(heap, time, event)
    >>> [next_event(heap) for _ in range(3)], pending(heap)
    ([8, 9, 7], 0)
    """
    order = heap[0]["order"]
    hole = heap[0]["event"] + 1
    heap[0]["order"] = order + 1
    heap[0]["event"] = hole
    while hole > 1:
        parent = hole >> 1
        # The newcomer has the highest sequence number: on a tie it stays below.
        if heap[parent]["time"] <= time:
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole]["time"] = time
    heap[hole]["order"] = order
    heap[hole]["event"] = event


@jit
def next_event(heap: Any) -> int:
    """Take the earliest event off the calendar and set the clock to its time."""
    event = heap[1]["event"]
    last = heap[0]["event"]
    heap[0]["event"] = last - 1
    heap[0]["time"] = heap[1]["time"]
    time, order = heap[last]["time"], heap[last]["order"]
    hole, child = 1, 2
    while child < last:
        if child + 1 < last and _before(heap, child + 1, heap[child]["time"], heap[child]["order"]):
            child += 1
        if not _before(heap, child, time, order):
            break
        heap[hole] = heap[child]
        hole, child = child, 2 * child
    heap[hole] = heap[last]
    return event


@jit
def _before(heap: Any, entry: int, time: float, order: int) -> bool:
    tie = heap[entry]["time"] == time and heap[entry]["order"] < order
    return tie or heap[entry]["time"] < time


@jit
def pending(heap: Any) -> int:
    """Return the number of pending events."""
    return heap[0]["event"]
