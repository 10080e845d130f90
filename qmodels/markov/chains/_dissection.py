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

from qmodels.numerics.kernels import compiled

WORST = 1.0001
"""Largest separator worth taking, relative to the smaller of its two sides; beyond, one dense front."""

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Graph = tuple[Int32, Int32]
"""Where the row of each vertex begins, and the neighbours row by row."""


@compiled
def _search(graph: Graph, part: Int32, mine: int, start: int, queue: Int32, level: Int32) -> int:
    """Breadth-first levels from ``start`` inside one part; the number of vertices reached."""
    ptr, adj = graph
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
def _forget(queue: Int32, size: int, level: Int32) -> None:
    """Take the levels of a search back."""
    for k in range(size):
        level[queue[k]] = -1


@compiled
def _split_components(order: Int32, graph: Graph, part: Int32, mine: int, queue: Int32, level: Int32) -> int:
    """Order a disconnected part by components; how many go first where it is best cut in two."""
    size = order.size
    tail = 0
    big_start = 0
    big_end = 0
    cut = 0
    for v in order:
        if level[v] < 0:
            start = tail
            tail += _search(graph, part, mine, v, queue[start:], level)
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
    count = big_end - big_start
    order[:count] = queue[big_start:big_end]
    order[count:big_end] = queue[:big_start]
    order[big_end:] = queue[big_end:size]
    return cut


@compiled
def _best_level(queue: Int32, size: int, level: Int32) -> tuple[int, int]:
    """Return where in the queue the level smallest against its sides begins and ends; 0, 0 if none is."""
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
    return cut, cut_end


@compiled
def _separate(
    order: Int32, graph: Graph, part: Int32, mine: int, queue: Int32, level: Int32
) -> tuple[int, int]:
    """Order a connected part, searched already: two sides and what separates them; where these begin.

    A part too dense to be separated keeps its order, and its second side begins at 0.
    """
    ptr, adj = graph
    size = order.size
    for _ in range(2):  # towards a vertex far out: long thin level structures cut well
        far = queue[size - 1]
        _forget(queue, size, level)
        _search(graph, part, mine, far, queue, level)
    cut, cut_end = _best_level(queue, size, level)
    if cut == 0:
        return 0, size
    beyond = level[queue[cut]] + 1
    separator = size
    for k in range(cut_end - 1, cut - 1, -1):
        v = queue[k]
        for e in range(ptr[v], ptr[v + 1]):
            if part[adj[e]] == mine and level[adj[e]] == beyond:
                separator -= 1
                order[separator] = v
                part[v] = -1
                break
    middle = 0
    for k in range(cut_end):
        if part[queue[k]] == mine:
            order[middle] = queue[k]
            middle += 1
    order[middle:separator] = queue[cut_end:size]
    return middle, separator


@compiled
def _hubs_last(ptr: Int32) -> tuple[Int32, int]:
    """Order states linked with very many others, which would shorten every search, last; how many are not."""
    many = np.diff(ptr) > max(64.0, 10.0 * np.sqrt(ptr.size - 1))
    order = np.concatenate((np.flatnonzero(~many), np.flatnonzero(many))).astype(np.int32)
    return order, order.size - many.sum()


@compiled
def dissect(ptr: Int32, adj: Int32, leaf: int) -> tuple[Int32, Int32, Int32, Int32, int]:
    """Nested dissection of a symmetric graph in compressed rows.

    Returns the order of elimination and, per node of the separator tree in preorder, the range
    ``first:last`` of its pivots in that order and its right child (-1 for a leaf; the left child
    of node t is t + 1); the last number is how many nodes there are. Children eliminate before
    their parent.
    """
    n = ptr.size - 1
    order, others = _hubs_last(ptr)
    graph = (ptr, adj)
    part = np.full(n, -1, np.int32)
    level = np.full(n, -1, np.int32)
    queue = np.empty(n, np.int32)
    first = np.empty(2 * n, np.int32)
    last = np.empty(2 * n, np.int32)
    right = np.full(2 * n, -1, np.int32)
    todo = np.empty((n + 2, 3), np.int32)
    todo[0] = np.array((0, n, -1))
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
            middle = separator = others
        else:
            here = order[low:high]
            for v in here:
                part[v] = node
            reached = _search(graph, part, node, here[0], queue, level)
            if reached < size:
                _forget(queue, reached, level)
                middle = _split_components(here, graph, part, node, queue, level)
                separator = size
            else:
                middle, separator = _separate(here, graph, part, node, queue, level)
            _forget(queue, size, level)
            if middle == 0:  # one front
                continue
        first[node] = low + separator
        todo[top] = np.array((low + middle, low + separator, node))
        todo[top + 1] = np.array((low, low + middle, -1))
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
