"""Erlang's loss and delay formulas, and the loss of several classes on one link."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.libraries import special
from qmodels.numerics.poisson import poisson_pmf, relative_deviance
from qmodels.queues.words import described

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


__all__ = ["erlang_b", "erlang_b_step", "erlang_c", "erlang_c_from_b", "kaufman_roberts"]


def erlang_c_from_b(blocking: Any, rho: Any, idle: Any = None) -> Any:
    """Erlang's delay probability from his loss probability, rho = a / c < 1; plain arithmetic."""
    if idle is None:
        idle = 1 - rho
    return blocking / (idle + rho * blocking)


@described("cooper1981, chapter 3.3")
def erlang_b(*, servers: npt.ArrayLike, offered_load: npt.ArrayLike) -> FloatArray:
    r"""Blocking probability of M/G/c/c (Erlang's loss formula).

    Returns
    -------
    Probability that an arrival finds all servers busy and is lost; below 1e-308 it is 0.

    Notes
    -----
    .. math:: B(c, a) = \frac{a^c / c!}{\sum_{n=0}^{c} a^n / n!}
              = \frac{a B(c-1, a)}{c + a B(c-1, a)}.

    Exact for Poisson arrivals and any service-time distribution (insensitivity). The
    recurrence takes ``max(servers)`` steps and is stable.

    Examples
    --------
    >>> erlang_b(servers=[10, 10000], offered_load=[5, 10000]).round(6)
    array([0.018385, 0.007937])
    """
    c = checks.count("servers", servers)
    a = checks.nonnegative("offered_load", offered_load)
    return erlang_b_pair(a, c)[0][()]


@described("cooper1981, chapter 3.4")
def erlang_c(*, servers: npt.ArrayLike, offered_load: npt.ArrayLike) -> FloatArray:
    r"""Probability that a job has to wait in M/M/c (Erlang's delay formula).

    Returns
    -------
    Waiting probability; 1 where :math:`a \ge c`.

    Notes
    -----
    .. math:: C(c, a) = \frac{B(c, a)}{1 - \frac{a}{c} \left(1 - B(c, a)\right)}

    with Erlang's loss formula B, see `erlang_b`. Exact.

    Examples
    --------
    >>> round(float(erlang_c(servers=10, offered_load=8)), 6)
    0.40918
    """
    c = checks.count("servers", servers)
    a = checks.nonnegative("offered_load", offered_load)
    stable = a < c
    rho = np.where(stable, a / c, 0.0)
    blocking = erlang_b_pair(a, c)[0]
    return np.where(stable, erlang_c_from_b(blocking, rho, np.where(stable, (c - a) / c, 1.0)), 1.0)[()]


@described("kaufman1981", "roberts1981")
def kaufman_roberts(*, servers: int, offered_load: npt.ArrayLike, units: npt.ArrayLike) -> FloatArray:
    r"""Blocking of each class on a loss link where a job of class k holds several servers at once.

    Parameters
    ----------
    servers : int
        Units of capacity :math:`N \ge 1`.
    offered_load : array_like
        Loads :math:`a_k = \lambda_k / \mu_k \ge 0` in jobs, classes along the last axis.
    units : array_like of int
        Units :math:`b_k \ge 1` that a job of class k holds from start to end, along the last axis.

    Returns
    -------
    Blocking probability of each class; 1 for a class with :math:`b_k > N`.

    Notes
    -----
    With n units occupied, the unnormalised occupancy follows

    .. math:: n \, q(n) = \sum_k a_k b_k \, q(n - b_k), \qquad
              B_k = \frac{\sum_{n > N - b_k} q(n)}{\sum_n q(n)}.

    Exact and insensitive to the distribution of holding times: any job that fits is accepted,
    the others are lost. N steps of one operation per class, rescaled against overflow.

    Examples
    --------
    A pool of 30 descriptors shared by packets that take 1 and packets that take 6:

    >>> kaufman_roberts(servers=30, offered_load=[10, 2], units=[1, 6]).round(4)
    array([0.0298, 0.2261])
    """
    size = int(checks.count("servers", servers, maximum=100_000))
    a = checks.nonnegative("offered_load", offered_load)
    b = checks.count("units", units)
    a, b = np.broadcast_arrays(np.atleast_1d(a), np.atleast_1d(b))
    classes = a.shape[-1]
    loads, widths = a.reshape(-1, classes), b.reshape(-1, classes)
    points = np.arange(len(loads))
    rates = loads * widths
    q = np.zeros((len(loads), size + 1))
    q[:, 0] = 1.0
    for n in range(1, size + 1):
        below = n - widths
        earlier = np.where(below >= 0, q[points[:, None], np.maximum(below, 0)], 0.0)
        q[:, n] = (rates * earlier).sum(axis=1) / n
        if q[:, n].max() > 1e250:
            q[:, : n + 1] /= np.where(q[:, n] > 1e250, 1e250, 1.0)[:, None]
    total = q.sum(axis=1)
    from_top = np.cumsum(q[:, ::-1], axis=1)
    blocked: FloatArray = from_top[points[:, None], np.minimum(widths, size + 1) - 1] / total[:, None]
    return blocked.reshape(a.shape)
