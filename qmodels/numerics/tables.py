"""Places in a table of one axis, and the distinct columns of a table."""

from __future__ import annotations

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
