"""A calendar of two arrays: times in the order of a binary heap, and what happens then."""

from __future__ import annotations

from typing import Any

from qmodels.numerics.kernels import part


@part
def push(times: Any, items: Any, size: Any, time: Any, item: Any) -> Any:
    """Add an item and return how many there are."""
    k = size
    while k > 0:
        up = (k - 1) >> 1
        if times[up] <= time:
            break
        times[k], items[k] = times[up], items[up]
        k = up
    times[k], items[k] = time, item
    return size + 1


@part
def pop(times: Any, items: Any, size: Any) -> Any:
    """Remove the earliest item, which is the first, and return how many are left."""
    size -= 1
    time, item = times[size], items[size]
    k = 0
    while 2 * k + 1 < size:
        down = 2 * k + 1
        if down + 1 < size and times[down + 1] < times[down]:
            down += 1
        if times[down] >= time:
            break
        times[k], items[k] = times[down], items[down]
        k = down
    times[k], items[k] = time, item
    return size
