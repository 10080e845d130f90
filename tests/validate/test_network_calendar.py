"""The calendar against a sorted list."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as hs

from validate.engine.events import new_calendar
from validate.network.calendar import EARLY, LATE, drop, pending, put

EVENTS = 12
# Few times, so that ties are common.
steps = hs.lists(
    hs.tuples(hs.integers(0, EVENTS - 1), hs.integers(0, 5), hs.booleans(), hs.booleans()), max_size=80
)


@given(steps=steps)
@settings(deadline=None, derandomize=True, max_examples=50)
def test_first_event_is_always_that_of_a_sorted_list(steps):
    heap, places = new_calendar(EVENTS).heap, np.zeros(EVENTS, dtype=np.int64)
    expected: dict[int, tuple[float, bool, int]] = {}
    for number, (event, time, late, remove) in enumerate(steps):
        if remove and event in expected:
            drop(heap, places, event)
            del expected[event]
        else:
            put(heap, places, event, float(time), LATE if late else EARLY)
            expected[event] = (float(time), late, number)
        if number % 3:
            continue  # The place of a first event that was dropped may stay open for several steps.
        assert pending(heap, places) == len(expected)
        assert {e for e in range(EVENTS) if places[e] > 0} == set(expected)
        if expected:
            first = min(expected, key=lambda e: expected[e])
            assert (heap[1]["event"], heap[1]["time"]) == (first, expected[first][0])
    for event in sorted(expected, key=lambda e: expected[e]):
        assert pending(heap, places) and heap[1]["event"] == event
        drop(heap, places, event)
