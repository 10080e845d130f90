"""GI/M/1 and GI/M/c: any renewal arrivals, exponential service."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.formulas import Formulas
from qmodels.laws.of_law import renewal
from qmodels.numerics.digits import cumulative_product, product_minus
from qmodels.numerics.quantile import bracketed_root
from qmodels.queues.distributions import exponential_law, exponential_wait_response_tail
from qmodels.queues.load import Load
from qmodels.queues.words import described
from qmodels.result import QueueResult
from qmodels.systems.laws.times import Law


@described("kleinrock1975, sections 6.3-6.4")
def gm1(*, arrival: Law, service_rate: npt.ArrayLike) -> QueueResult:
    r"""Steady state of GI/M/1: renewal arrivals, exponential service, first come first served.

    Returns
    -------
    With variances, distributions and quantiles by formula; where overloaded, waiting
    times are ``inf``. The number in system is the one at an arbitrary time.

    Notes
    -----
    An arrival finds n jobs with probability :math:`(1-\sigma)\sigma^n`, where

    .. math:: \sigma = A^*(\mu (1 - \sigma)), \qquad W_q = \frac{\sigma}{\mu (1 - \sigma)}.

    Exact. The root is found for :math:`s = \mu (1-\sigma)` from :math:`R^*(s) = \rho`, with
    :math:`R^*` the transform of the residual time between arrivals: this form keeps its
    digits next to saturation.

    Examples
    --------
    Packets every 5 cycles exactly, exponential service of 4 cycles:

    >>> from qmodels.laws import Deterministic
    >>> q = gm1(arrival=Deterministic(mean=5.0), service_rate=0.25)
    >>> round(float(q.mean_waiting_time), 6), round(float(q.response_time_quantile(0.99)), 4)
    (6.770923, 49.6019)
    """
    gaps = renewal("arrival", arrival)
    q = _load(gaps, service_rate, 1)
    rate, sigma = _root(gaps, q)
    return _result("GI/M/1", q, rate, np.where(q.stable, sigma, 1.0), partial(_number_pmf, q, sigma))


@described("gross2008, section 5.3.2 (after L. Takacs)", returns="tails")
def gmc(*, arrival: Law, service_rate: npt.ArrayLike, servers: npt.ArrayLike) -> QueueResult:
    r"""Steady state of GI/M/c: renewal arrivals, c exponential servers, first come first served.

    Notes
    -----
    With :math:`\sigma = A^*(c\mu(1-\sigma))`, :math:`A_j = A^*(j\mu)` and
    :math:`C_j = \prod_{i \le j} A_i / (1 - A_i)` the wait is exponential of rate
    :math:`c\mu(1-\sigma)` with probability

    .. math:: P(W > 0) = \left[1 + (1-\sigma) \sum_{j=1}^{c} \binom{c}{j} \frac{1}{C_j (1 - A_j)}
              \frac{c (1 - A_j) - j}{c (1-\sigma) - j}\right]^{-1}.

    Exact; all terms are positive, and the last factor is evaluated as a divided difference of
    the residual transform. c operations per point.

    Examples
    --------
    >>> from qmodels.laws import Erlang
    >>> q = gmc(arrival=Erlang(mean=0.25, phases=3), service_rate=1.0, servers=5)
    >>> round(float(q.waiting_probability), 6), round(float(q.mean_waiting_time), 6)
    (0.444938, 0.307846)
    """
    gaps = renewal("arrival", arrival)
    q = _load(gaps, service_rate, servers)
    rate, _ = _root(gaps, q)
    waits = np.where(q.stable, _waiting_probability(gaps, q, rate), 1.0)
    return _result("GI/M/c", q, rate, waits, None)


def _load(arrival: Formulas, service_rate: npt.ArrayLike, servers: npt.ArrayLike) -> Load:
    mu, c = (
        checks.positive("service_rate", service_rate),
        checks.count("servers", servers, maximum=1_000_000).astype(float),
    )
    mean = arrival.moment(1)
    work = mu * mean
    gap = product_minus(c, work, np.ones(())) + c * product_minus(mu, mean, work)
    return Load(*np.broadcast_arrays(1 / mean, 1 / mu, c, 1 / (c * work), gap / (c * work)))


def _root(arrival: Formulas, q: Load) -> tuple[FloatArray, FloatArray]:
    """Return s = c mu (1 - sigma) and sigma."""
    target = np.where(q.stable, q.idle, 0.5)
    # The complement of a transform is below s times the mean, which brackets the root from below.
    low = target * (2 * arrival.moment(1) / arrival.moment(2)) * (1 - 1e-9)
    high = q.servers / q.service_time * (1 + 1e-9) + low

    def excess(s: FloatArray) -> FloatArray:
        return np.log(arrival.residual_complement(s)) - np.log(target)

    top = excess(high)
    # At vanishing load rounding may leave no change of sign: the root is then the upper end in all digits.
    rate = np.where(top > 0, bracketed_root(excess, high, low, top, excess(low)), high)
    sigma = arrival.laplace(rate)
    # At low load the complement is flat at 1, and the defining equation a strong contraction.
    for _ in range(8):
        rate = np.where(sigma < 0.01, q.servers / q.service_time * (1 - sigma), rate)
        sigma = arrival.laplace(rate)
    return rate, sigma


def _result(model: str, q: Load, rate: FloatArray, waits: FloatArray, number_pmf: Any) -> QueueResult:
    rate = np.where(q.stable, rate, 0.0)
    safe_rate = np.where(q.stable, rate, 1.0)
    variance = waits * (2 - waits) / safe_rate**2
    return q.result(
        model,
        waits / safe_rate,
        waiting_probability=waits,
        waiting_time_variance=q.or_endless(variance),
        response_time_variance=q.or_endless(variance + q.service_time**2),
        number_pmf=number_pmf,
        response_tail=partial(exponential_wait_response_tail, waits, rate, 1 / q.service_time),
        **exponential_law("waiting", waits, rate),
    )


def _waiting_probability(arrival: Formulas, q: Load, rate: FloatArray) -> FloatArray:
    largest = int(q.servers.max(initial=1))
    j = np.arange(1, largest + 1, dtype=float).reshape((-1,) + (1,) * rate.ndim)
    s = j / q.service_time
    none = arrival.laplace(s)
    some = np.where(none < 0.5, 1 - none, s / q.arrival_rate * (1 - arrival.residual_complement(s)))
    quotients = s * _divided_differences(arrival, s, rate, q) / (q.intensity * some)
    with np.errstate(divide="ignore", over="ignore"):
        ratios = np.maximum(q.servers - j + 1, 0) / j * (some / none)
    waits = np.empty(rate.shape)
    for i in np.ndindex(rate.shape):
        column = (slice(int(q.servers[i])), *i)
        with np.errstate(over="ignore", invalid="ignore"):
            products = np.ldexp(*cumulative_product(ratios[column]))
            # Arrivals so rare that nobody has ever waited: beyond the largest number, whatever it multiplies.
            total = np.sum(np.where(np.isinf(products), np.inf, products * quotients[column]))
        waits[i] = 1 / (1 + rate[i] * q.service_time[i] / q.servers[i] * total)
    return waits


def _divided_differences(arrival: Formulas, s: FloatArray, rate: FloatArray, q: Load) -> FloatArray:
    """Return (R(rate) - R(s)) / (s - rate) with R the residual transform, R(rate) = rho."""

    def decrease(s: FloatArray) -> FloatArray:
        """Return -R(s), or 1 - R(s) where that has more digits."""
        residual = (1 - arrival.laplace(s)) / (s * arrival.moment(1))
        return np.where(q.intensity < 0.5, -residual, arrival.residual_complement(s))

    gap = s - rate
    near = np.abs(gap) < 1e-5 * s
    at_root = np.where(q.intensity < 0.5, -q.intensity, q.safe_idle)
    plain = (decrease(s) - at_root) / np.where(near, 1.0, gap)
    if not near.any():
        return plain
    # The derivative halfway, by a difference of fourth order: both errors stay below 1e-12.
    nearest = np.clip(np.round(rate * q.service_time), 1, q.servers) / q.service_time
    middle = (nearest + rate) / 2
    step = 3e-4 * middle
    one, two = (decrease(middle + k * step) - decrease(middle - k * step) for k in (1, 2))
    return np.where(near, (8 * one - two) / (12 * step), plain)


def _number_pmf(q: Load, sigma: FloatArray, n: FloatArray) -> FloatArray:
    some = q.intensity * (1 - sigma) * sigma ** np.maximum(n - 1, 0)
    return np.where(q.stable, np.where(n == 0, q.safe_idle, some), 0.0)
