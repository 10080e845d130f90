"""Tables: places on an axis, distinct columns, and results kept within a size in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.numerics.kernels import part


@part
def between(grid: Any, value: Any) -> Any:
    """Return the point of a grid below a value, and the part of the way to the next, of a value within it.

    >>> import numpy as np
    >>> [float(sum(between(np.array([1.0, 2.0, 4.0]), value))) for value in (0.0, 2.5, 9.0)]
    [0.0, 1.25, 2.0]
    """
    low = 0
    for k in range(1, grid.size - 1):  # short: no branch is quicker than half as many
        low += grid[k] <= value
    ahead = (value - grid[low]) / (grid[low + 1] - grid[low])
    return low, min(max(ahead, 0.0), 1.0)


def distinct(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct columns of a table in order, and which of them each column is.

    As `numpy.unique` does, which compares whole columns and takes several times as long.

    >>> distinct(np.array([[2.0, 1.0, 2.0], [5.0, 7.0, 5.0]]))
    (array([[1., 2.],
           [7., 5.]]), array([1, 0, 1]))
    """
    which = np.zeros(table.shape[1], dtype=np.int64)
    if which.size == 1:
        return table, which
    for row in table:
        if (row != row[0]).any():
            values, at = np.unique(row, return_inverse=True)
            which = np.unique(which * values.size + at, return_inverse=True)[1]
    first = np.empty(which.max() + 1, dtype=np.int64)
    first[which[::-1]] = np.arange(which.size)[::-1]
    return table[:, first], which


class Remembered:
    """A function whose results are kept, the last used ones, up to a size in bytes.

    Arrays that a million designs leave behind are no small cache when only their number is limited.
    """

    def __init__(self, function: Callable[..., Any], most: int, size: Callable[[Any], int]) -> None:
        update_wrapper(self, function)
        self.function, self.most, self.size = function, most, size
        self.kept: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self.bytes, self._lock = 0, Lock()

    def __call__(self, *key: Any) -> Any:
        """Return the function's result, from memory if it is there."""
        with self._lock:
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key][0]
        found = self.function(*key)
        with self._lock:
            if key not in self.kept:
                self.kept[key] = found, self.size(found)
                self.bytes += self.kept[key][1]
            while self.bytes > self.most and len(self.kept) > 1:
                self.bytes -= self.kept.popitem(last=False)[1][1]
        return found

    def cache_clear(self) -> None:
        """Forget all."""
        with self._lock:
            self.kept.clear()
            self.bytes = 0


def remembered(most: int, size: Callable[[Any], int]) -> Callable[[Callable[..., Any]], Remembered]:
    """Return a decorator: keep results up to ``most`` bytes in all; ``size`` gives those of one.

    >>> import numpy as np
    >>> squares = remembered(100, lambda found: found.nbytes)(lambda n: np.arange(n) ** 2)
    >>> [squares(n).size for n in (4, 8, 4, 6)], len(squares.kept), squares.bytes
    ([4, 8, 4, 6], 2, 80)
    """
    return lambda function: Remembered(function, most, size)
