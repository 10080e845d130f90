"""Erlang's recurrence for many points at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.libraries import special
from qmodels.numerics.poisson import poisson_pmf, relative_deviance

_BLOCK = 8192  # points whose arrays stay in the first-level caches
_MANY = 1 << 15  # servers beyond which the recurrence takes longer than the integral
_END = 40.0  # -log of where the integrand counts as 0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_WEIGHTS = _WEIGHTS * (2 / _WEIGHTS.sum())  # NumPy leaves them 2e-14 short


def erlang_b_step(servers: Any, load: Any, blocking: Any) -> Any:
    """Blocking with `servers` servers from `blocking` with one server less; plain arithmetic."""
    return load * blocking / (servers + load * blocking)


def erlang_b_pair(load: FloatArray, servers: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return Erlang's blocking probability and its complement, each with full relative precision.

    The recurrence in the number of servers adds positive terms only and damps what rounding
    puts in; beyond 2^15 servers an integral takes its place. A blocking below 1e-308 is
    returned as 0.
    """
    load, servers = np.broadcast_arrays(load, servers)
    a, c = load.ravel(), servers.ravel()
    before = np.empty(a.shape)
    many = c > _MANY
    if many.any():
        before[many] = _blocking_of_many(a[many], (c[many] - 1).astype(np.float64))
        before[~many] = _recurrence(a[~many], c[~many])
    else:
        before = _recurrence(a, c)
    carried = load * before.reshape(load.shape)
    total = servers + carried
    return carried / total, servers / total


def _blocking_of_many(a: FloatArray, c: FloatArray) -> FloatArray:
    r"""Return Erlang's blocking for many servers.

    .. math:: 1 / B = \int_0^\infty e^{-t} (1 + t/a)^c \, dt

    decreases with t where a > c, and a Gauss rule takes it; elsewhere its peak is the whole
    Poisson law, and :math:`B` the probability of c over that of at most c.
    """
    blocking = np.empty(a.shape)
    light = a <= c
    blocking[light] = poisson_pmf(c[light], a[light]) / special.gammaincc(c[light] + 1, a[light])
    a, c = a[~light], c[~light]
    idle = (a - c) / a
    # Beyond: idle t > 40, or c (t/a - log(1 + t/a)) > 40.
    end = np.minimum(_END / idle, 1.1 * np.sqrt(2 * _END / c) * a)[:, None]
    t = end / 2 * (1 + _NODES)
    exponent = -t * idle[:, None] - c[:, None] * relative_deviance(t / a[:, None])
    blocking[~light] = 1 / (np.exp(exponent) @ _WEIGHTS * end[:, 0] / 2)
    return blocking


def _recurrence(a: FloatArray, c: IntArray) -> FloatArray:
    """Return the blocking with c - 1 servers."""
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
    return before


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
