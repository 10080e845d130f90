"""Poisson probabilities and their tails, and exponentials of matrices as sums over them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.libraries import special

_TWO_PI = 2 * np.pi


def relative_deviance(eps: FloatArray) -> FloatArray:
    """Return ``eps - log(1 + eps)`` for eps > -1 without cancellation."""
    small = np.abs(eps) < 0.1
    e = np.where(small, eps, 0.0)
    # log(1+e) = 2 artanh(v) with v = e / (2 + e); the odd series starts with e itself.
    v = e / (2 + e)
    square = v * v
    series = np.zeros(np.shape(e))
    for k in range(21, 1, -2):
        series = (series + 2.0 / k) * square
    near = v * e - v * series
    with np.errstate(divide="ignore"):
        far = eps - np.log1p(eps)
    return np.where(small, near, far)


def stirling_error(n: FloatArray) -> FloatArray:
    """Return ``log(n!) - log(sqrt(2 pi n) (n/e)^n)`` for n > 0."""
    big = n >= 16
    x = np.where(big, n, 16.0)
    s = 1 / (x * x)
    far = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / x
    y = np.where(big, 1.0, n)
    near = special.gammaln(y + 1) - ((y + 0.5) * np.log(y) - y + 0.5 * np.log(_TWO_PI))
    return np.where(big, far, near)


def poisson_pmf(n: npt.ArrayLike, mean: npt.ArrayLike) -> FloatArray:
    """Return e^-mean mean^n / n! by Loader's saddle-point form (relative error near 1e-15).

    C. Loader, "Fast and accurate computation of binomial probabilities", 2000: the deviance is
    evaluated as a whole, because log(n!) and n log(mean) cancel.
    """
    n, mean = np.broadcast_arrays(np.asarray(n, dtype=float), np.asarray(mean, dtype=float))
    x = np.where(n > 0, n, 1.0)
    eps = (mean - x) / x
    with np.errstate(divide="ignore"):
        far = eps - np.log(mean / x)
    deviance = x * np.where(np.abs(eps) < 0.1, relative_deviance(eps), far)
    inner = np.exp(-stirling_error(x) - deviance) / np.sqrt(_TWO_PI * x)
    return np.asarray(np.where(n > 0, inner, np.exp(-mean)))


def poisson_density(k: FloatArray, rho: FloatArray, idle: FloatArray) -> FloatArray:
    """Return e^-y y^k / Gamma(k + 1) at y = k rho, k > 0, given ``idle = 1 - rho`` with full precision."""
    with np.errstate(divide="ignore"):
        far = -idle - np.log(rho)
    deviance = k * np.where(idle < 0.1, relative_deviance(-idle), far)
    return np.exp(-stirling_error(k) - deviance) / np.sqrt(_TWO_PI * k)


def terms_needed(mean: float) -> int:
    """Return a number of terms that a Poisson variable exceeds with probability below 1e-18."""
    return int(mean + 10.0 * np.sqrt(mean) + 40.0)


LONGEST = 200_000
"""Value of q t above which the matrix is squared instead."""


class ExponentialSeries:
    r"""Evaluates ``u exp(K t) v`` for arrays of t; u, v and the off-diagonal part of K are >= 0.

    With :math:`K = q\,(U - I)` and :math:`U \ge 0` it is a sum of positive terms,
    :math:`u\,e^{Kt}\,v = \sum_k e^{-qt} (qt)^k / k! \; u U^k v`;
    the numbers :math:`u U^k v` are computed once for all t.
    """

    def __init__(self, u: FloatArray, matrix: FloatArray, v: FloatArray) -> None:
        self.q = float(-matrix.diagonal().min())
        self.matrix = matrix
        self.left, self._v = u, v
        self._step = matrix / self.q
        np.fill_diagonal(self._step, 1.0 + self._step.diagonal())
        self._terms = np.array([float(u @ v)])

    def terms(self, count: int) -> FloatArray:
        """Return u U^k v for k = 0 .. count - 1."""
        if self._terms.size < count:
            self._terms = powers(self.left, self._step, max(count, 2 * self._terms.size)) @ self._v
        return self._terms[:count]

    def __call__(self, t: FloatArray) -> FloatArray:
        """Return the values at times t >= 0."""
        means = self.q * np.asarray(t, dtype=float)
        flat = means.ravel()
        result = np.empty(flat.size)
        large = flat > LONGEST
        for i in np.flatnonzero(large):
            result[i] = self._squared(float(flat[i]))
        order = np.flatnonzero(~large)[np.argsort(flat[~large])]
        start = 0
        while start < order.size:  # times of similar size share their Poisson probabilities
            rows = max(1, 1_000_000 // terms_needed(float(flat[order[start]])))
            group = order[start : start + rows]
            count = terms_needed(float(flat[group[-1]]))
            weights = poisson_pmf(np.arange(count, dtype=float), flat[group][:, None])
            result[group] = weights @ self.terms(count)
            start += rows
        return result.reshape(means.shape)

    def _squared(self, mean: float) -> float:
        doublings = int(np.ceil(np.log2(mean)))
        part = poisson_pmf(np.arange(24.0), np.asarray(mean / 2.0**doublings))
        power = np.zeros_like(self._step)
        term = np.eye(len(self._step))
        for weight in part:
            power += weight * term
            term = term @ self._step
        for _ in range(doublings):
            power = power @ power
        return float(self.left @ power @ self._v)


def powers(start: FloatArray, step: FloatArray, count: int) -> FloatArray:
    """Return the rows start, start @ step, ..., start @ step^(count - 1), by doubling their number."""
    rows = start[None, :]
    power = step
    while len(rows) < count:
        rows = np.concatenate([rows, rows[: count - len(rows)] @ power])
        power = power @ power
    return rows
