"""Calendars of event-driven simulations: binary heaps ordered by (time, sequence number).

They start at index 1; entry 0 keeps the book: its ``order`` is the number of events scheduled so far, its
``event`` the number of pending ones, its ``time`` that of the last one taken. `schedule` and `next_event` are
for events that stay where they are; `put`, `drop` and `pending` for those that may be moved and dropped,
whose places in the heap are known. One calendar is used with one of the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.engine.jit import jit, lean_part, quick

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
    >>> [next_event(heap) for _ in range(3)], int(heap[0]["event"])
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


EARLY: Any = np.int64(0)
LATE: Any = np.int64(2**62)
"""Added to the sequence number of an event; a late one waits for all others of the same time."""

_FIRST: Any = np.int64(1)


@quick
def put(heap: Any, places: Any, event: int, time: float, rank: int) -> None:
    """Set or change the time of an event that may be moved or dropped.

    ``places`` holds where in the heap each event is, 0 if it is not pending. Of events at the same time
    the `EARLY` ones come first, and of these the one that was put first.

    Times are not negative: that of the first place is, from when its event is dropped until another one is
    put there, as most events do, or `pending` is asked.
    """
    order = heap[0]["order"]
    heap[0]["order"] = order + 1
    order += rank
    hole = places[event]
    sinks = hole > 0 and not _earlier(heap, hole, time, order)
    if hole == 0:
        sinks = heap[1]["time"] < 0
        hole = _FIRST
        if not sinks:
            hole = heap[0]["event"] + 1
            heap[0]["event"] = hole
    if sinks:
        _sink(heap, places, hole, time, order, event)
    else:
        _rise(heap, places, hole, time, order, event)


@quick
def drop(heap: Any, places: Any, event: int) -> None:
    """Take a pending event off."""
    hole = places[event]
    places[event] = 0
    if hole == 1:
        heap[1]["time"] = -np.inf
    else:
        _close(heap, places, hole)


@quick
def pending(heap: Any, places: Any) -> int:
    """Return the number of pending events, of which entry 1 is then the first."""
    if heap[1]["time"] < 0:
        heap[1]["time"] = 0.0
        _close(heap, places, _FIRST)
    return heap[0]["event"]


@lean_part
def _close(heap: Any, places: Any, hole: int) -> None:
    """Fill the place of an event that was taken off with the last one."""
    last = heap[0]["event"]
    heap[0]["event"] = last - 1
    if hole < last:
        time, order, moved = heap[last]["time"], heap[last]["order"], heap[last]["event"]
        if hole > 1 and _earlier(heap, hole >> 1, time, order):
            _rise(heap, places, hole, time, order, moved)
        else:
            _sink(heap, places, hole, time, order, moved)


@lean_part
def _earlier(heap: Any, entry: int, time: float, order: int) -> bool:
    """Whether (time, order) comes before an entry."""
    # Without branches, which would be mispredicted.
    there = heap[entry]["time"]
    return (time < there) | ((time == there) & (order < heap[entry]["order"]))


@lean_part
def _rise(heap: Any, places: Any, hole: int, time: float, order: int, event: int) -> None:
    while hole > 1 and _earlier(heap, hole >> 1, time, order):
        _set(heap, places, hole, heap[hole >> 1]["time"], heap[hole >> 1]["order"], heap[hole >> 1]["event"])
        hole >>= 1
    _set(heap, places, hole, time, order, event)


@lean_part
def _sink(heap: Any, places: Any, hole: int, time: float, order: int, event: int) -> None:
    last = heap[0]["event"]
    child = 2 * hole
    while child <= last:
        # There is one more entry than there are events.
        child += (child < last) & _earlier(heap, child, heap[child + 1]["time"], heap[child + 1]["order"])
        if _earlier(heap, child, time, order):
            break
        _set(heap, places, hole, heap[child]["time"], heap[child]["order"], heap[child]["event"])
        hole, child = child, 2 * child
    _set(heap, places, hole, time, order, event)


@lean_part
def _set(heap: Any, places: Any, hole: int, time: float, order: int, event: int) -> None:
    heap[hole]["time"] = time
    heap[hole]["order"] = order
    heap[hole]["event"] = event
    places[event] = hole
