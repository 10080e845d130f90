"""Whether packets of a network-on-chip can wait for each other in a circle."""

from __future__ import annotations

import numpy as np

from qmodels.systems.noc.paths import PathTable


def find_deadlock(table: PathTable) -> tuple[str, ...] | None:
    """Return the channels of a circle in which packets may wait for each other, or None.

    ``table``: the paths of all flows with the virtual channels of every hop. Returns channels with their
    virtual channels, each waiting for the next and the last for the first.

    The channel dependency graph [1]_ has an edge from a virtual channel of a channel to each that a
    packet in it may take next. Without a circle in it no deadlock is possible. With one, packets on
    other virtual channels may still get through where routes leave a choice: the check is then
    pessimistic. Circuits have virtual channels of their own, for which nobody else waits. Network
    interfaces are taken to have room for everything that is ejected, so that requests never wait
    for responses.

    References
    ----------
    .. [1] W. J. Dally, C. L. Seitz, "Deadlock-free message routing in multiprocessor interconnection
       networks", IEEE Transactions on Computers C-36(5), 1987, theorem 1.
    """
    v = table.virtual_channels + 1
    vertex = (table.path_channel.astype(np.int64) * v + table.path_vc_low) * v + table.path_vc_high
    inside = np.ones(vertex.size, dtype=bool)
    inside[table.path_start[1:] - 1] = False
    inside[np.repeat(table.circuit, np.diff(table.path_start))] = False
    most = len(table.channel_names) * v * v
    here = np.flatnonzero(inside)
    both = np.unique(vertex[here] * most + vertex[here + 1])
    turns = [(*_parts(one // most, v), *_parts(one % most, v)) for one in both.tolist()]
    # Virtual channels that every hop uses alike are one vertex: the pieces between all limits in use.
    cuts = sorted({0, table.virtual_channels, *(turn[k] for turn in turns for k in (1, 2, 4, 5))})
    pieces = list(zip(cuts, cuts[1:], strict=False))
    after: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for channel, low, high, following, next_low, next_high in turns:
        for k, (a, b) in enumerate(pieces):
            if low <= a and b <= high:
                after.setdefault((channel, k), []).extend(
                    (following, j) for j, (c, d) in enumerate(pieces) if next_low <= c and d <= next_high
                )
    circle = _circle(after)
    if circle is None:
        return None
    names = (pieces[k] for _, k in circle)
    return tuple(
        f"{table.channel_names[channel]} vc {a}" + (f"-{b - 1}" if b - a > 1 else "")
        for (channel, _), (a, b) in zip(circle, names, strict=True)
    )


def _parts(vertex: int, v: int) -> tuple[int, int, int]:
    """Return channel and the limits of its virtual channels."""
    return vertex // (v * v), vertex // v % v, vertex % v


def _circle(after: dict[tuple[int, int], list[tuple[int, int]]]) -> list[tuple[int, int]] | None:
    """Return the vertices of a circle of a directed graph in order, or None; depth first."""
    finished: set[tuple[int, int]] = set()
    for root in sorted(after):
        if root in finished:
            continue
        path, on_path = [root], {root: 0}
        stack = [iter(sorted(after[root]))]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                done = path.pop()
                del on_path[done]
                finished.add(done)
            elif following in on_path:
                return path[on_path[following] :]
            elif following not in finished:
                on_path[following] = len(path)
                path.append(following)
                stack.append(iter(sorted(after.get(following, ()))))
    return None
