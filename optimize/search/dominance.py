"""Which points are dominated by those of a front: the test of every bound."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from optimize.search.pareto import FloatArray, nondominated

BLOCK = 4096
"""Points of a front, and points tested, at a time: bounds memory to a few MB."""

_Bits = npt.NDArray[np.uint64]


def dominated_by(points: FloatArray, front: FloatArray) -> npt.NDArray[np.bool_]:
    """Tell which points some point of a front dominates: no worse anywhere (all minimised), better once.

    ``points``: costs; infinite is allowed; ``front``: costs, distinct and none dominating another (see
    `distinct_front`). A point equal to one of them is then dominated by none.

    For every objective, the front is sorted and each prefix kept as a set of bits: those that are no
    worse than a point are the intersection of one prefix per objective.
    """
    result = np.zeros(len(points), dtype=bool)
    todo = np.arange(len(points))
    for start in range(0, len(front), BLOCK):
        block = front[start : start + BLOCK]
        columns = [_prefixes(column) for column in block.T]
        for k in range(0, todo.size, BLOCK):
            rows = todo[k : k + BLOCK]
            no_worse: _Bits | None = None
            for (values, prefixes), own in zip(columns, points[rows].T, strict=True):
                part = prefixes[np.searchsorted(values, own, side="right")]
                no_worse = part if no_worse is None else np.bitwise_and(no_worse, part, out=no_worse)
            assert no_worse is not None
            result[rows] = no_worse.any(axis=1)
        todo = todo[~result[todo]]
    hit = np.flatnonzero(result)
    same = set(map(bytes, np.ascontiguousarray(front + 0.0)))  # + 0.0: -0 and 0 are equal
    result[hit] = [bytes(row) not in same for row in np.ascontiguousarray(points[hit] + 0.0)]
    return result


def _prefixes(column: FloatArray) -> tuple[FloatArray, _Bits]:
    """Return sorted values, and for every number of them the set of rows that hold the smallest ones."""
    order = np.argsort(column, kind="stable")
    prefixes = np.zeros((len(order) + 1, (len(order) + 63) // 64), dtype=np.uint64)
    prefixes[np.arange(1, len(order) + 1), order // 64] = np.uint64(1) << (order % 64).astype(np.uint64)
    return column[order], np.bitwise_or.accumulate(prefixes, axis=0)


def distinct_front(costs: FloatArray) -> FloatArray:
    """Return the distinct nondominated rows of costs, all minimised."""
    return np.unique(costs[nondominated(costs)], axis=0)
