"""Formulas of phase-type laws: the time until a finite Markov chain is absorbed."""

# ruff: noqa: D102 (what a method returns is said where `Formulas` declares it)

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.formulas import Array, Formulas
from qmodels.libraries import special
from qmodels.numerics.elimination import solve_transient
from qmodels.numerics.poisson import ExponentialSeries, powers


class Phases(Formulas):
    r"""Formulas of a phase-type law.

    Parameters
    ----------
    initial : array_like, shape (n,)
        Probabilities :math:`\alpha` to start in each phase, sum 1.
    generator : array_like, shape (n, n)
        Rates T among the phases; what is missing in a row is the rate of absorption, kept as
        `exit_rates`. [1 / time]

    Notes
    -----
    .. math:: P(X > x) = \alpha\, e^{Tx} \mathbf{1}, \qquad
              E[X^k] = k!\, \alpha\, (-T)^{-k} \mathbf{1}

    All values are sums of non-negative terms (elimination without subtraction, uniformization),
    so that deep tails and small times keep their relative accuracy.

    References
    ----------
    .. [1] M. F. Neuts, *Matrix-Geometric Solutions in Stochastic Models*, Johns Hopkins
       University Press, 1981, ch. 2.

    Examples
    --------
    A memory access that hits the open row (15 ns) or, with probability 0.3, does not (40 ns), both
    with exponential times:

    >>> access = Phases([0.7, 0.3], [[-1 / 15, 0], [0, -1 / 40]])
    >>> access.mean, round(access.scv, 4), round(float(access.quantile(0.99)), 1)
    (22.5, 1.5185, 136.4)
    """

    name = "PhaseType"

    def __init__(self, initial: Any, generator: Any) -> None:
        rows, alpha = np.array(generator, dtype=float), np.array(initial, dtype=float)
        off = rows - np.diag(rows.diagonal())
        leave = -rows.sum(axis=1)
        leave[leave < 1e-14 * np.abs(rows).sum(axis=1)] = 0.0
        self.initial: FloatArray = alpha / alpha.sum()
        self.generator: FloatArray = off - np.diag(off.sum(axis=1) + leave)
        self.exit_rates: FloatArray = leave

    @property
    def phases(self) -> int:
        """Number of phases."""
        return len(self.initial)

    @cached_property
    def mean(self) -> float:
        """Mean [time]."""
        return float(self.moment(1))

    @property
    def scv(self) -> float:
        return float(super().scv)

    def moment(self, k: int) -> FloatArray:
        """Return the raw moment [time^k] of order k."""
        order = int(checks.count("k", k, minimum=0))
        while len(self._moments) <= order:
            last = self._moments[-1]
            self._moments.append(len(self._moments) * self.solve(last))
        return np.asarray(self.initial @ self._moments[order])

    @cached_property
    def _moments(self) -> list[FloatArray]:
        return [np.ones(self.phases)]

    def solve(self, right: FloatArray) -> FloatArray:
        """Return ``(-T)^-1 right`` without subtraction for a non-negative right side."""
        return solve_transient(self.generator, self.exit_rates, right)

    def tail(self, x: Array) -> FloatArray:
        return self._tail(checks.nonnegative("x", x))[()]

    def density(self, x: Array) -> FloatArray:
        """Return the density [1 / time] at x."""
        return self._density_series(checks.nonnegative("x", x))[()]

    @cached_property
    def _tail(self) -> ExponentialSeries:
        return ExponentialSeries(self.initial, self.generator, np.ones(self.phases))

    @cached_property
    def _density_series(self) -> ExponentialSeries:
        return ExponentialSeries(self.initial, self.generator, self.exit_rates)

    def laplace(self, s: Array) -> Array:
        """Return E[exp(-s X)] for (complex) s with a non-negative real part."""
        return self._resolvent(s, self.initial, self.exit_rates)

    def residual_complement(self, s: Array) -> Array:
        """Return 1 - (1 - E[exp(-s X)]) / (s E[X]) without cancellation."""
        left = self.initial @ self.solve(np.eye(self.phases)) / self.mean
        return np.asarray(s) * self._resolvent(s, left, np.ones(self.phases))

    def _resolvent(self, s: Array, left: FloatArray, right: FloatArray) -> Array:
        points = np.asarray(s)
        matrices = points[..., None, None] * np.eye(self.phases) - self.generator
        return np.asarray(np.linalg.solve(matrices, right[:, None])[..., 0] @ left)

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        r"""Return E[X^k; X <= x].

        The law is a mixture of Erlang laws of rate q with :math:`n + 1` stages, weight
        :math:`\alpha U^n t / q`; their truncated moments are incomplete gamma functions.
        """
        order = int(checks.count("k", k, minimum=0))
        times = checks.nonnegative("x", x)
        q = self._density_series.q
        result = np.empty(times.size)
        for i, t in enumerate(times.ravel()):
            if q * t > 100_000.0:  # nearly the whole law: what is missing is small against the moment
                result[i] = float(self.moment(order)) - float(self.tail_moment(order, np.asarray(t)))
                continue
            stages = np.arange(1.0, q * t + 10.0 * np.sqrt(q * t) + 60.0)
            weights = self._density_series.terms(stages.size) / q
            truncated = special.poch(stages, order) / q**order * special.gammainc(stages + order, q * t)
            result[i] = weights @ truncated
        return result.reshape(times.shape)[()]

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X > x], from the moments of what is left at x."""
        order = int(checks.count("k", k, minimum=0))
        times = checks.nonnegative("x", x)
        self.moment(order)  # fills the vectors of moments
        total = np.zeros(times.shape)
        for i in range(order + 1):
            left = ExponentialSeries(self.initial, self.generator, self._moments[i])
            total += float(special.comb(order, i)) * times ** (order - i) * left(times)
        return total[()]

    def breaks(self) -> FloatArray:
        """Return 0, points that double up to the fastest phase and grow by a quarter to a tail of 1e-20."""
        end = self.mean
        while self.tail(np.asarray(end)) > 1e-20:
            end *= 1.5
        steps = int(np.ceil(np.log(20 * end * self._density_series.q) / np.log(1.25)))
        fine = end / 1.25 ** np.arange(steps, -1.0, -1.0)
        return np.concatenate([[0.0], fine[0] / 2 ** np.arange(56.0, 0.0, -1.0), fine])

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        rates = checks.nonnegative("rate", rate)
        result = np.empty((rates.size, size))
        for i, r in enumerate(rates.ravel()):
            # Thinned by arrivals, the phase moves by r (rI - T)^-1 from one arrival to the next.
            inverse = solve_transient(self.generator, self.exit_rates + r, np.eye(self.phases))
            result[i] = powers(self.initial, r * inverse, size) @ (inverse @ self.exit_rates)
        return result.reshape(*rates.shape, size)
