"""Elimination of states along nested dissection: GTH without subtraction for a million states.

Each node of the separator tree is a dense front: its own states (the pivots) and the later
states they can reach or be reached from. Censoring a pivot adds rates of paths through it to
the rates among the states that remain; only non-negative numbers are added, multiplied and
divided, so every probability keeps a small relative error whatever the magnitudes of the rates.

References
----------
.. [1] W. K. Grassmann, M. I. Taksar and D. P. Heyman, "Regenerative analysis and steady state
   distributions for Markov chains", Operations Research 33 (1985), 1107-1116.
.. [2] I. S. Duff and J. K. Reid, "The multifrontal solution of unsymmetric sets of linear
   equations", SIAM J. Sci. Stat. Comput. 5 (1984), 633-641.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.markov.chains._dissection import Int32, Int64, dissect, fronts
from qmodels.numerics.elimination import UNDERFLOW, normalised
from qmodels.numerics.kernels import compiled

WEAK = 1e-290  # rates relative to the largest one that are no longer told from 0
LEAF = 16  # states in a leaf of the separator tree, the fastest of 8..24 measured
TILE = 64  # columns of a dense product that are added up at once, the fastest of 64, 128 and 256 measured
PANEL = 64  # pivots per dense block, the fastest of 32..96 measured

Matrix = tuple[Int32, Int32, FloatArray]
"""Where each row (column) begins, the columns (rows) of its entries, and these."""
Tree = tuple[Int32, Int32, Int32, Int32, Int64]
"""First and last pivot, right child, boundaries and their starts of the nodes; see `dissect` and `fronts`."""


@compiled
def _add_paths(front: FloatArray, start: int, stop: int) -> None:
    """Add the rates of all paths through the states ``start:stop`` to those among the later ones.

    A product of matrices in tiles of four rows by `TILE` columns, which stay in the first-level cache.
    It is as fast as one thread of a BLAS; the many small products of a front cost one that divides
    each among its threads several times as much, where other work keeps the cores busy.
    """
    size = front.shape[0]
    above = np.empty((stop - start, TILE))
    sums = np.empty((4, TILE))
    for left in range(stop, size, TILE):
        right = min(left + TILE, size)
        width = right - left
        for p in range(start, stop):
            for j in range(width):
                above[p - start, j] = front[p, left + j]
        for i in range(stop, size, 4):
            rows = min(4, size - i)
            for r in range(rows):
                for j in range(width):
                    sums[r, j] = front[i + r, left + j]
            # Rows beyond the last repeat it; what they sum up is not stored.
            i1, i2, i3 = i + min(1, rows - 1), i + min(2, rows - 1), i + min(3, rows - 1)
            p = start
            while p + 4 <= stop:
                a0, a1, a2, a3 = front[i, p], front[i, p + 1], front[i, p + 2], front[i, p + 3]
                b0, b1, b2, b3 = front[i1, p], front[i1, p + 1], front[i1, p + 2], front[i1, p + 3]
                c0, c1, c2, c3 = front[i2, p], front[i2, p + 1], front[i2, p + 2], front[i2, p + 3]
                d0, d1, d2, d3 = front[i3, p], front[i3, p + 1], front[i3, p + 2], front[i3, p + 3]
                k = p - start
                for j in range(width):
                    x0, x1, x2, x3 = above[k, j], above[k + 1, j], above[k + 2, j], above[k + 3, j]
                    sums[0, j] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                    sums[1, j] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
                    sums[2, j] += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
                    sums[3, j] += d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3
                p += 4
            while p < stop:
                for r in range(rows):
                    factor = front[i + r, p]
                    for j in range(width):
                        sums[r, j] += factor * above[p - start, j]
                p += 1
            for r in range(rows):
                for j in range(width):
                    front[i + r, left + j] = sums[r, j]


@compiled
def _censor(front: FloatArray, pivots: int, panel: int) -> int:
    """Eliminate the leading states of a dense front in place; return how many were left by a weak rate.

    A state that is left at less than `WEAK` outweighs all later ones by as much: one of them that
    leads to it gets a rate of `WEAK` from it in return. Without such a state the answer is -1.
    """
    size = front.shape[0]
    start = 0
    weak = 0
    while start < pivots:
        stop = min(start + panel, pivots)
        for k in range(start, stop):
            for p in range(start, k):
                factor = front[k, p]
                if factor != 0.0:
                    for j in range(stop, size):
                        front[k, j] += factor * front[p, j]
            if k + 1 == size:
                break
            exit_rate = 0.0
            for j in range(k + 1, size):
                exit_rate += front[k, j]
            if exit_rate < WEAK:
                feeder = k + 1
                for i in range(k + 1, size):
                    if front[i, k] > front[feeder, k]:
                        feeder = i
                if front[feeder, k] < WEAK:
                    return -1
                front[k, feeder] += WEAK
                exit_rate += WEAK
                weak += 1
            for i in range(k + 1, size):
                factor = front[i, k] / exit_rate
                if factor != 0.0:
                    front[i, k] = factor
                    for j in range(k + 1, stop):
                        front[i, j] += factor * front[k, j]
        _add_paths(front, start, stop)
        start = stop
    return weak


@compiled
def _assemble(front: FloatArray, t: int, rows: Matrix, columns: Matrix, tree: Tree, where: Int32) -> None:
    """Put the rates of the pivots of node t into its front, and in `where` the places of its states."""
    first, last, _, boundary, begin = tree
    low, high = first[t], last[t]
    for k in range(high - low):
        where[low + k] = k
    for k in range(begin[t] - begin[t + 1]):
        where[boundary[begin[t + 1] + k]] = high - low + k
    front[:] = 0.0
    ptr, index, rate = rows
    for k in range(high - low):
        for e in range(ptr[low + k], ptr[low + k + 1]):
            if index[e] >= low:
                front[k, where[index[e]]] = rate[e]
    ptr, index, rate = columns
    for k in range(high - low):
        for e in range(ptr[low + k], ptr[low + k + 1]):
            if index[e] >= high:
                front[where[index[e]], k] = rate[e]


@compiled
def _eliminate(
    rows: Matrix, columns: Matrix, tree: Tree, sizes: Int64, panel: int
) -> tuple[FloatArray, Int32]:
    """Numerical elimination; the columns of the factor, node by node from the last to the first.

    Also returns, per node, the number of states left by a weak rate (-1: not at all).
    """
    first, last, right, boundary, begin = tree
    work = np.empty(sizes[0] * sizes[0])
    stack = np.empty(max(sizes[1], 1))
    factor = np.empty(sizes[2])
    weak = np.zeros(first.size, np.int32)
    where = np.empty(rows[0].size - 1, np.int32)
    top = 0
    written = 0
    for t in range(first.size - 1, -1, -1):
        pivots = last[t] - first[t]
        rest = begin[t] - begin[t + 1]
        size = pivots + rest
        front = work[: size * size].reshape(size, size)
        _assemble(front, t, rows, columns, tree, where)
        if right[t] >= 0:
            for child in (np.int64(t + 1), np.int64(right[t])):  # the left child was pushed last
                count = begin[child] - begin[child + 1]
                states = boundary[begin[child + 1] : begin[child]]
                top -= count * count
                update = stack[top : top + count * count].reshape(count, count)
                for i in range(count):
                    row = where[states[i]]
                    for j in range(count):
                        front[row, where[states[j]]] += update[i, j]
        weak[t] = _censor(front, pivots, panel)
        if weak[t] < 0:
            return factor, weak
        for i in range(size):
            for k in range(pivots):
                factor[written + k] = front[i, k]
            written += pivots
        for i in range(rest):
            for j in range(rest):
                stack[top + j] = front[pivots + i, pivots + j]
            top += rest
    return factor, weak


@compiled
def _substitute(n: int, tree: Tree, factor: FloatArray) -> tuple[FloatArray, Int64]:
    """Back-substitution from the state that was left over; numbers and their powers of two."""
    first, last, _, boundary, begin = tree
    x = np.zeros(n)
    power = np.zeros(n, np.int64)
    total = np.empty(n)
    total_power = np.empty(n, np.int64)
    position = factor.size
    for t in range(first.size):
        low = first[t]
        pivots = last[t] - low
        rest = begin[t] - begin[t + 1]
        position -= pivots * (pivots + rest)
        total[:pivots] = 0.0
        for i in range(pivots + rest - 1, -1, -1):
            if i >= pivots:
                state = boundary[begin[t + 1] + i - pivots]
                shared = pivots
            else:
                state = low + i
                shared = i
                value = total[i] if state < n - 1 else 1.0
                power[state] = total_power[i] if value > 0.0 and state < n - 1 else 0
                if value > 0.0 and not 1e-18 < value < 1e6:
                    shifted = math.frexp(value)
                    value = shifted[0]
                    power[state] += shifted[1]
                x[state] = value
            value = x[state]
            here = power[state]
            row = position + i * pivots
            for k in range(shared):
                part = value * factor[row + k]
                if part > 0.0:
                    ahead = here - total_power[k]
                    if total[k] == 0.0:
                        total[k] = part
                        total_power[k] = here
                    elif ahead == 0:
                        total[k] += part
                    elif ahead > 0:
                        total[k] = math.ldexp(total[k], -min(ahead, 3000)) + part
                        total_power[k] = here
                    else:
                        total[k] += math.ldexp(part, max(ahead, -3000))
    return x, power


class Elimination:
    """The order and the size of an elimination, known before its numbers are touched."""

    def __init__(self, rates: Any) -> None:
        adjacency = _int32(rates + rates.T)
        self.order, *tree, nodes = dissect(adjacency.indptr, adjacency.indices, LEAF)
        first, last, self._right = (part[:nodes].copy() for part in tree)
        self._rates = _int32(rates[self.order][:, self.order])
        adjacency = _int32(adjacency[self.order][:, self.order])
        boundary, begin, self._sizes, self.operations = fronts(
            adjacency.indptr, adjacency.indices, first, last, self._right
        )
        self._tree = first, last, self._right, boundary, begin
        self.memory = int(self._sizes[0] ** 2 + self._sizes[1] + self._sizes[2]) * 8

    def solve(self) -> FloatArray:
        """Stationary law of the irreducible chain, in the caller's numbering."""
        largest = self._rates.data.max()
        rows, columns = (
            (part.indptr, part.indices, part.data / largest)
            for part in (self._rates, _int32(self._rates.tocsc()))
        )
        factor, weak = _eliminate(rows, columns, self._tree, self._sizes, PANEL)
        if not self._on_one_path(weak):
            raise RuntimeError(UNDERFLOW)
        n = self.order.size
        x, power = _substitute(n, self._tree, factor)
        result = np.empty(n)
        result[self.order] = normalised(x, power)
        return result

    def _on_one_path(self, weak: Int32) -> bool:
        """Tell whether the weak nodes are nested, so that one part of the chain outweighs all others."""
        if (weak < 0).any():
            return False
        inner = int(self._right.size)
        for t in np.flatnonzero(weak)[::-1].tolist():
            end = t  # of the subtree of t in preorder
            while self._right[end] >= 0:
                end = int(self._right[end])
            if inner < self._right.size and inner > end:
                return False
            inner = t
        return True


def _int32(matrix: Any) -> Any:
    matrix = matrix if matrix.format in ("csr", "csc") else matrix.tocsr()
    matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    matrix.indices = matrix.indices.astype(np.int32, copy=False)
    return matrix
