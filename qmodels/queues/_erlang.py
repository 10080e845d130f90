"""Erlang's recurrence for many points at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_BLOCK = 8192  # points whose arrays stay in the first-level caches


def erlang_b_step(servers: Any, load: Any, blocking: Any) -> Any:
    """Blocking with `servers` servers from `blocking` with one server less; plain arithmetic."""
    return load * blocking / (servers + load * blocking)


def erlang_b_pair(load: FloatArray, servers: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return Erlang's blocking probability and its complement, each with full relative precision.

    The recurrence in the number of servers adds positive terms only and damps what rounding
    puts in. A blocking below 1e-308 is returned as 0.
    """
    load, servers = np.broadcast_arrays(load, servers)
    a, c = load.ravel(), servers.ravel()
    before = np.empty(a.shape)
    if a.size <= 8:
        for i, (one_load, one_count) in enumerate(zip(a.tolist(), c.tolist(), strict=True)):
            blocking = 1.0
            for n in range(1, one_count):
                blocking = erlang_b_step(n, one_load, blocking)
            before[i] = blocking
    else:
        for start in range(0, a.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            before[part] = _sorted_recurrence(a[part], c[part])
    carried = load * before.reshape(load.shape)
    total = servers + carried
    return carried / total, servers / total


def _sorted_recurrence(a: FloatArray, c: IntArray) -> FloatArray:
    """Return the blocking with c - 1 servers; points leave the loop once their count is reached."""
    small = c.astype(np.int16) if c.max() < 32768 else c
    order = np.argsort(small, kind="stable")[::-1]
    a, counts = a[order], c[order]
    last = int(counts[0])
    running = np.searchsorted(-counts, -np.arange(1, last + 1), side="left")
    blocking, carried, total = np.ones(a.shape), np.empty(a.shape), np.empty(a.shape)
    for n in range(1, last):
        k = running[n - 1]
        # erlang_b_step written with buffers: three passes without an allocation.
        np.multiply(a[:k], blocking[:k], out=carried[:k])
        np.add(carried[:k], n, out=total[:k])
        np.divide(carried[:k], total[:k], out=blocking[:k])
    result = np.empty(a.shape)
    result[order] = blocking
    return result
