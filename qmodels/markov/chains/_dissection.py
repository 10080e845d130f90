"""Nested dissection of a sparse graph, and the fronts of the elimination it orders.

The vertices are split by a small separator, the two sides are split again, and each separator
comes after both its sides. Eliminating in that order keeps the fill of planar-like graphs near
``n log n``. The separators are levels of a breadth-first search (automatic nested dissection).

References
----------
.. [1] A. George and J. W.-H. Liu, *Computer Solution of Large Sparse Positive Definite
   Systems*, Prentice-Hall, 1981, ch. 8.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels.markov.chains.compiled import compiled

WORST = 1.0001
"""Largest separator worth taking, relative to the smaller of its two sides; beyond, one dense front."""

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@compiled
def _search(ptr: Int32, adj: Int32, part: Int32, mine: int, start: int, queue: Int32, level: Int32) -> int:
    """Breadth-first levels from ``start`` inside one part; the number of vertices reached."""
    queue[0] = start
    level[start] = 0
    head = 0
    tail = 1
    while head < tail:
        v = queue[head]
        head += 1
        for e in range(ptr[v], ptr[v + 1]):
            w = adj[e]
            if part[w] == mine and level[w] < 0:
                level[w] = level[v] + 1
                queue[tail] = w
                tail += 1
    return tail


@compiled
def _split_components(
    order: Int32,
    low: int,
    queue: Int32,
    level: Int32,
    ptr: Int32,
    adj: Int32,
    part: Int32,
    mine: int,
    size: int,
) -> int:
    """Order a disconnected part by components; where it is best cut in two without a separator."""
    tail = 0
    big_start = 0
    big_end = 0
    cut = 0
    for k in range(low, low + size):
        if level[order[k]] < 0:
            start = tail
            tail += _search(ptr, adj, part, mine, order[k], queue[start:], level)
            if tail - start > big_end - big_start:
                big_start = start
                big_end = tail
            if abs(2 * tail - size) < abs(2 * cut - size):
                cut = tail
    if 2 * (big_end - big_start) > size:
        cut = big_end - big_start
    else:
        big_start = 0
        big_end = 0
    fill = low
    for k in range(big_start, big_end):
        order[fill] = queue[k]
        fill += 1
    for k in range(size):
        if k < big_start or k >= big_end:
            order[fill] = queue[k]
            fill += 1
    return low + cut


@compiled
def dissect(ptr: Int32, adj: Int32, leaf: int) -> tuple[Int32, Int32, Int32, Int32, int]:
    """Nested dissection of a symmetric graph in compressed rows.

    Returns the order of elimination and, per node of the separator tree in preorder, the range
    ``first:last`` of its pivots in that order and its right child (-1 for a leaf; the left child
    of node t is t + 1); the last number is how many nodes there are. Children eliminate before
    their parent.
    """
    n = ptr.size - 1
    order = np.empty(n, np.int32)
    # States linked with very many others come last: they would shorten every path of the search.
    most = max(64.0, 10.0 * np.sqrt(n))
    others = 0
    for k in range(n):
        if ptr[k + 1] - ptr[k] <= most:
            order[others] = k
            others += 1
    hub = others
    for k in range(n):
        if ptr[k + 1] - ptr[k] > most:
            order[hub] = k
            hub += 1
    part = np.full(n, -1, np.int32)
    level = np.full(n, -1, np.int32)
    queue = np.empty(n, np.int32)
    touching = np.empty(n, np.int32)
    first = np.empty(2 * n, np.int32)
    last = np.empty(2 * n, np.int32)
    right = np.full(2 * n, -1, np.int32)
    todo = np.empty((n + 2, 3), np.int32)
    todo[0, 0] = 0
    todo[0, 1] = n
    todo[0, 2] = -1
    top = 1
    nodes = 0
    while top > 0:
        top -= 1
        low = todo[top, 0]
        high = todo[top, 1]
        if todo[top, 2] >= 0:
            right[todo[top, 2]] = nodes
        node = nodes
        nodes += 1
        first[node] = low
        last[node] = high
        size = high - low
        if size <= leaf:
            continue
        if node == 0 and 0 < others < n:
            first[node] = others
            todo[0, 0] = others
            todo[0, 1] = others
            todo[0, 2] = node
            todo[1, 0] = 0
            todo[1, 1] = others
            todo[1, 2] = -1
            top = 2
            continue
        for k in range(low, high):
            part[order[k]] = node
        reached = _search(ptr, adj, part, node, order[low], queue, level)
        if reached < size:
            for k in range(reached):
                level[queue[k]] = -1
            middle = _split_components(order, low, queue, level, ptr, adj, part, node, size)
            separator = high
        else:
            for _ in range(2):  # towards a vertex far out: long thin level structures cut well
                far = queue[size - 1]
                for k in range(size):
                    level[queue[k]] = -1
                _search(ptr, adj, part, node, far, queue, level)
            best = WORST
            cut = 0
            cut_end = 0
            start = 0
            while start < size:
                end = start
                while end < size and level[queue[end]] == level[queue[start]]:
                    end += 1
                if start > 0 and end < size:
                    cost = float(end - start) / min(start, size - end)
                    if cost < best:
                        best = cost
                        cut = start
                        cut_end = end
                start = end
            if cut == 0:  # too dense to separate: one front
                for k in range(size):
                    level[queue[k]] = -1
                continue
            fill = low
            for k in range(cut):
                order[fill] = queue[k]
                fill += 1
            count = 0
            beyond = level[queue[cut]] + 1
            for k in range(cut, cut_end):
                v = queue[k]
                separates = False
                for e in range(ptr[v], ptr[v + 1]):
                    if part[adj[e]] == node and level[adj[e]] == beyond:
                        separates = True
                        break
                if separates:
                    touching[count] = v
                    count += 1
                else:
                    order[fill] = v
                    fill += 1
            middle = fill
            for k in range(cut_end, size):
                order[fill] = queue[k]
                fill += 1
            separator = fill
            for k in range(count):
                order[fill] = touching[k]
                part[touching[k]] = -1
                fill += 1
        for k in range(size):
            level[queue[k]] = -1
        first[node] = separator
        todo[top, 0] = middle
        todo[top, 1] = separator
        todo[top, 2] = node
        todo[top + 1, 0] = low
        todo[top + 1, 1] = middle
        todo[top + 1, 2] = -1
        top += 2
    return order, first, last, right, nodes


@compiled
def fronts(
    ptr: Int32, adj: Int32, first: Int32, last: Int32, right: Int32
) -> tuple[Int32, Int64, Int64, float]:
    """Boundary of every node, for a graph already numbered in elimination order.

    Returns the boundaries one after another with the start of each (nodes are visited from last
    to first), the sizes (largest front, update stack, factor) in numbers, and the operations.
    """
    nodes = first.size
    mark = np.full(ptr.size - 1, -1, np.int32)
    begin = np.zeros(nodes + 1, np.int64)
    boundary = np.empty(4 * ptr.size + 64, np.int32)
    sizes = np.zeros(3, np.int64)
    used = 0
    stack = 0
    work = 0.0
    for t in range(nodes - 1, -1, -1):
        start = used
        # node t occupies begin[t+1]:begin[t], because nodes are visited downwards
        room = np.int64(ptr[last[t]] - ptr[first[t]])
        if right[t] >= 0:
            room += begin[t + 1] - begin[t + 2] + begin[right[t]] - begin[right[t] + 1]
        if used + room > boundary.size:
            larger = np.empty(2 * (used + room), np.int32)
            for k in range(used):
                larger[k] = boundary[k]
            boundary = larger
        for e in range(ptr[first[t]], ptr[last[t]]):
            j = adj[e]
            if j >= last[t] and mark[j] != t:
                mark[j] = t
                boundary[used] = j
                used += 1
        freed = 0
        if right[t] >= 0:
            for child in (np.int64(t + 1), np.int64(right[t])):
                freed += (begin[child] - begin[child + 1]) ** 2
                for e in range(begin[child + 1], begin[child]):
                    j = boundary[e]
                    if j >= last[t] and mark[j] != t:
                        mark[j] = t
                        boundary[used] = j
                        used += 1
        begin[t] = used
        rest = used - start
        pivots = last[t] - first[t]
        size = rest + pivots
        work += 2.0 * pivots * (rest * float(size) + pivots * float(pivots) / 3.0)
        sizes[0] = max(sizes[0], size)
        stack += rest * rest
        sizes[1] = max(sizes[1], stack)
        stack -= freed
        sizes[2] += size * pivots
    return boundary, begin, sizes, work
