r"""Values :math:`u\,e^{Kt}\,v` of a matrix with non-negative off-diagonal entries, as sums of positive terms.

With :math:`K = q\,(U - I)` and :math:`U \ge 0`,
:math:`u\,e^{Kt}\,v = \sum_k e^{-qt} (qt)^k / k! \; u U^k v`;
the numbers :math:`u U^k v` are computed once for all t.
"""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.numerics.poisson import poisson_pmf, terms_needed

LONGEST = 200_000
"""Value of q t above which the matrix is squared instead."""


class ExponentialSeries:
    """Evaluates ``u exp(K t) v`` for arrays of t; u, v and the off-diagonal part of K are >= 0."""

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
