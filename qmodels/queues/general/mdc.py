"""M/D/1 and M/D/c: constant service, first come first served."""

from __future__ import annotations

from functools import cache, lru_cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.libraries import special
from qmodels.numerics.poisson import poisson_density, poisson_pmf
from qmodels.numerics.series import tail_sums
from qmodels.queues.general.mg1 import mg1_waiting_time, mg1_waiting_time_variance
from qmodels.queues.load import Load, load
from qmodels.queues.words import described
from qmodels.result import QueueResult

_FIRST_TERMS = 32
_NODES = 20
_CLOSEST, _LARGEST_TRANSFORM = 0.02, 1 << 17  # logarithm of a circle's distance from the zero; its points
_DIGITS_OUT, _DIGITS_KEPT = 60.0, 14.0  # -log of what is lost to aliasing, and of what rounding may grow to
_LEAST_IDLE = 1e-4  # below, the distribution would need transforms of more than 2^20 points


@described("kleinrock1975, section 5.7", service_rate="constant", returns="tails")
def md1(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike) -> QueueResult:
    r"""Steady state of M/D/1: constant service time, first come first served.

    Notes
    -----
    .. math:: W_q = \frac{\rho}{2 (\mu - \lambda)}.

    Exact: half the wait of M/M/1. Distributions as for `mdc`.

    Examples
    --------
    A link sends one packet per 4 cycles and is offered 0.2 per cycle:

    >>> q = md1(arrival_rate=0.2, service_rate=0.25)
    >>> round(float(q.mean_waiting_time), 6), round(float(q.waiting_time_quantile(0.95)), 4)
    (8.0, 26.4813)
    """
    q = load(arrival_rate, service_rate=service_rate)
    lam, m1, idle = q.arrival_rate, q.service_time, q.safe_idle
    variance = q.or_endless(mg1_waiting_time_variance(lam, m1, m1**2, m1**3, idle))
    return _result("M/D/1", q, mg1_waiting_time(lam, m1, m1**2, idle), variance, q.utilization)


@described("franx2001", "spitzer1956", service_rate="constant", returns="tails")
def mdc(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike, servers: npt.ArrayLike) -> QueueResult:
    r"""Steady state of M/D/c: c servers with constant service time, first come first served.

    Raises
    ------
    If an argument is out of range. The distributions raise it for utilizations between
    0.9999 and 1.

    Notes
    -----
    Every c-th job meets the same server, so the wait is the maximum of a random walk with
    steps D minus an Erlang time, and Spitzer's identity gives it as a sum of positive terms
    over Poisson counts :math:`A_n` with mean :math:`n \lambda D`:

    .. math:: W_q = \frac{1}{\lambda} \sum_{n \ge 1} \frac{1}{n} E\left[(A_n - nc)^+\right], \qquad
              P(W = 0) = \exp\Big(-\sum_{n \ge 1} \frac{1}{n} P(A_n \ge nc)\Big).

    Exact. Terms beyond the first 32 are smooth in n and summed over dyadic blocks by Gauss
    quadrature for sums; the relative error is below 1e-12 for any c and utilization. The
    number in queue is the compound Poisson law of the same identity (its coefficients by a
    Fourier transform, absolute error about 1e-14), and the tail of the wait is Franx's finite
    sum of positive terms. Quantiles invert that tail numerically.

    Examples
    --------
    Four lookup engines of 10 cycles each behind one queue, 0.36 lookups per cycle:

    >>> q = mdc(arrival_rate=0.36, service_rate=0.1, servers=4)
    >>> round(float(q.mean_waiting_time), 6), round(float(q.waiting_probability), 6)
    (9.999659, 0.775437)
    """
    q = load(arrival_rate, service_rate=service_rate, servers=servers)
    shape = np.broadcast_shapes(*(v.shape for v in q))
    rho, idle, c = (np.broadcast_to(v, shape).ravel() for v in (q.intensity, q.safe_idle, q.servers))
    rho = np.where(idle == 1, 0.0, rho)
    none, first, second = (v.reshape(shape) for v in _spitzer_sums(rho, np.where(rho > 0, idle, 1.0), c))
    per_job = 1 / np.where(q.arrival_rate > 0, q.arrival_rate, 1.0)
    variance = q.or_endless(second * per_job**2)
    return _result("M/D/c", q, first * per_job, variance, np.where(q.stable, -np.expm1(-none), 1.0))


def _result(model: str, q: Load, wait: FloatArray, variance: FloatArray, waits: FloatArray) -> QueueResult:
    return q.result(
        model,
        wait,
        waiting_probability=waits,
        waiting_time_variance=variance,
        response_time_variance=variance,
        number_pmf=partial(_number_pmf, q),
        waiting_tail=partial(_waiting_tail, q),
        response_tail=partial(_response_tail, q),
    )


def _spitzer_sums(
    rho: FloatArray, idle: FloatArray, c: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the sums over n of (1/n) P(A >= nc), (1/n) E[(A - nc)+] and (1/n) E[(A - nc)+ (A - nc - 1)]."""
    total = np.zeros((3, rho.size))
    active = np.flatnonzero(rho > 0)
    start, count = 1, _FIRST_TERMS
    while active.size:
        nodes, weights = _sum_rule(count)
        n = start + nodes
        k = n * c[active, None]
        load, gap = rho[active, None], idle[active, None]
        share = weights / n * poisson_density(k, load, gap)
        block = np.array([(share * s).sum(axis=1) for s in tail_sums(k, load, gap)])
        total[:, active] += block
        active = active[(block > 1e-17 * total[:, active]).any(axis=0)]
        start += count
        count = start
    return total[0], total[1], total[2]


@cache
def _sum_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Return Gauss nodes and weights for sums over 0 .. count - 1 (zeros of a Gram polynomial)."""
    if count <= _FIRST_TERMS:
        return np.arange(count, dtype=float), np.ones(count)
    k = np.arange(1, _NODES, dtype=float)
    scale = float(count)
    off = 0.5 * k * np.sqrt((1 - (k / scale) ** 2) / (4 * k * k - 1))
    values, vectors = np.linalg.eigh(np.diag(off, 1) + np.diag(off, -1))
    return (scale - 1) / 2 + scale * values, scale * vectors[0] ** 2


class _QueueTail(NamedTuple):
    """P(more than i jobs wait) for i = 0, 1, ..., and the logarithm of its ratio beyond."""

    values: FloatArray
    log_ratio: float

    def at(self, i: npt.NDArray[np.int64]) -> FloatArray:
        last = len(self.values) - 1
        beyond = np.maximum(i - last, 0)
        with np.errstate(under="ignore"):
            return np.asarray(self.values[np.minimum(i, last)] * np.exp(self.log_ratio * beyond))


@lru_cache(maxsize=32)
def _queue_tail(rho: float, c: int) -> _QueueTail:
    """Return the law of the number that waits, with relative accuracy however rare.

    The logarithm of 1 - E[z^(A - c)] on a circle between the zeros at 1 and at z0 > 1/rho has the
    coefficients of Spitzer's identity; those of positive index are the rates of a compound
    Poisson law. The coefficients fall as z0^-i and what the transform leaves of them as the
    radius to the -i, so the circle is as close to z0 as the size of the transform allows; where
    rounding takes over, the law has become geometric.
    """
    if rho > 1 - _LEAST_IDLE:
        raise ValueError(
            f"utilization must be at most {1 - _LEAST_IDLE} for the distributions of M/D/c, got {rho:g}"
        )
    growth = _log_zero(rho)
    inside = min(max(_DIGITS_OUT / (_LARGEST_TRANSFORM * growth), _CLOSEST), 0.5)
    size = 1 << int(np.ceil(np.log2(max(_DIGITS_OUT / (inside * growth), 8 * c + 64))))
    log_radius = (1 - inside) * growth
    angle = 2 * np.pi * np.arange(size) / size
    z = np.exp(log_radius + 1j * angle)
    # z^-c by whole turns, which do not round.
    turns = np.exp(-2j * np.pi * ((c * np.arange(size)) % size) / size)
    step = np.exp(c * (rho * (z - 1) - log_radius)) * turns
    scaled = -np.fft.fft(np.log1p(-step)).real / size
    scaled[0] = scaled[size // 2 :] = 0.0
    kept = min(size // 2, max(2, int(_DIGITS_KEPT / (inside * growth))))
    with np.errstate(under="ignore"):
        fall = np.exp(-log_radius * np.arange(size))
        law = np.fft.fft(np.exp(np.fft.ifft(scaled) * size - np.dot(scaled, fall))).real / size
        pmf = np.maximum(law[:kept], 0.0) * fall[:kept]
    # The last of the law and, geometric, all after it.
    pmf[-1] /= -np.expm1(-growth)
    tail = np.cumsum(pmf[::-1])[::-1]
    return _QueueTail(np.append(tail[1:], tail[-1] * np.exp(-growth)), -growth)


def _log_zero(rho: float) -> float:
    """Return y > 0 with y = rho (e^y - 1): the logarithm of the zero beyond 1 / rho, by Newton."""
    y = max(-2 * np.log(rho), 2 * (1 - rho))
    for _ in range(100):
        value, slope = y - rho * np.expm1(y), 1 - rho * np.exp(y)
        y, last = y - value / slope, y
        if abs(y - last) <= 4e-16 * y:
            break
    return float(y)


def _waiting_tail(q: Load, t: FloatArray) -> FloatArray:
    return q.pointwise(_tail_at, 1.0, t / q.service_time, q.intensity, q.servers)


def _response_tail(q: Load, t: FloatArray) -> FloatArray:
    services = t / q.service_time
    late = q.pointwise(_tail_at, 1.0, np.maximum(services - 1, 0.0), q.intensity, q.servers)
    return np.where(services < 1, 1.0, late)


def _tail_at(services: float, rho: float, servers: float) -> float:
    """Return P(W > services * D)."""
    if rho == 0:
        return 0.0
    c = int(servers)
    tail = _queue_tail(rho, c)
    k = np.floor(services) + 1
    mean = c * rho * (k - services)
    top = int(k) * c
    # The terms are those of a Poisson law of the mean that each job fewer makes likelier.
    peak = mean * np.exp(-tail.log_ratio)
    last = int(min(top - 1, peak + 12 * np.sqrt(peak) + 60))
    j = np.arange(last + 1)
    return float(np.dot(poisson_pmf(j, mean), tail.at(top - 1 - j)) + special.gammainc(top, mean))


def _number_pmf(q: Load, n: FloatArray) -> FloatArray:
    return q.pointwise(_number_at, 0.0, n, q.intensity, q.servers)


def _number_at(n: float, rho: float, servers: float) -> float:
    """Return P(N = n): those that wait at one time, and the arrivals of one service time."""
    if rho == 0:
        return float(n == 0)
    c = int(servers)
    tail = _queue_tail(rho, c)
    waiting = -np.diff(np.concatenate([[1.0], tail.at(np.arange(int(n) + 1))]))
    arrivals = poisson_pmf(n - np.arange(len(waiting)), c * rho)
    return float(np.dot(waiting, arrivals))
