"""Phase-type distributions: the time until a finite Markov chain is absorbed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.markov.chains.elimination import solve_transient
from qmodels.markov.chains.structure import ROW_SUM_TOLERANCE, square_sparse
from qmodels.markov.processes.series import ExponentialSeries, powers
from qmodels.markov.words import described

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class PhaseType:
    r"""A phase-type law, usable wherever a service law of `qmodels.queues` is.

    Parameters
    ----------
    initial : array_like, shape (n,)
        Probabilities :math:`\alpha` to start in each phase, sum 1.
    generator : array_like, shape (n, n)
        Rates T among the phases: off-diagonal entries >= 0, row sums <= 0; what is missing in a
        row is the rate of absorption, kept as `exit_rates`. [1 / time]

    Raises
    ------
    ValueError
        If an entry is out of range, or absorption is not certain.

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

    >>> access = PhaseType.hyperexponential(probabilities=[0.7, 0.3], means=[15.0, 40.0])
    >>> access.mean, round(access.scv, 4), round(float(access.quantile(0.99)), 1)
    (22.5, 1.5185, 136.4)
    """

    initial: Any
    generator: Any
    exit_rates: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = square_sparse("generator", self.generator).toarray()
        alpha = checks.probability("initial", self.initial)
        if alpha.shape != (len(rows),):
            raise ValueError(
                f"initial must have one probability per phase ({len(rows)}), got shape {alpha.shape}"
            )
        if abs(alpha.sum() - 1.0) > ROW_SUM_TOLERANCE:
            raise ValueError(f"initial must sum to 1, got {alpha.sum():.12g}")
        off = rows - np.diag(rows.diagonal())
        if np.any(off < 0):
            i, j = np.argwhere(off < 0)[0]
            raise ValueError(
                f"generator must be >= 0 off the diagonal, got {off[i, j]:.12g} in row {i}, column {j}"
            )
        leave = -rows.sum(axis=1)
        noise = ROW_SUM_TOLERANCE * np.abs(rows).sum(axis=1)
        if np.any(leave < -noise):
            i = int(np.argmax(leave < -noise))
            raise ValueError(f"generator must have rows that sum to <= 0, row {i} sums to {-leave[i]:.12g}")
        leave[leave < 1e-14 * np.abs(rows).sum(axis=1)] = 0.0
        reached = leave > 0
        for _ in range(len(rows)):
            reached = reached | (off[:, reached] > 0).any(axis=1)
        if not reached.all():
            raise ValueError(f"generator must lead to absorption, phase {int(np.argmin(reached))} never does")
        object.__setattr__(self, "initial", alpha / alpha.sum())
        object.__setattr__(self, "generator", off - np.diag(off.sum(axis=1) + leave))
        object.__setattr__(self, "exit_rates", leave)

    @classmethod
    def exponential(cls, *, mean: float) -> PhaseType:
        """Return the exponential law.

        Examples
        --------
        >>> PhaseType.exponential(mean=2.0).scv
        1.0
        """
        return cls.erlang(mean=mean, phases=1)

    @classmethod
    def erlang(cls, *, mean: float, phases: int) -> PhaseType:
        """Return the sum of equal exponential phases.

        Examples
        --------
        >>> PhaseType.erlang(mean=2.0, phases=4).scv
        0.25
        """
        count = int(checks.count("phases", phases))
        rate = count / float(checks.positive("mean", mean))
        return cls(initial=np.eye(count)[0], generator=rate * (np.eye(count, k=1) - np.eye(count)))

    @classmethod
    def hyperexponential(cls, *, probabilities: Sequence[float], means: Sequence[float]) -> PhaseType:
        """Return a mixture of exponentials.

        Examples
        --------
        >>> PhaseType.hyperexponential(probabilities=[0.5, 0.5], means=[1.0, 3.0]).mean
        2.0
        """
        return cls(initial=probabilities, generator=np.diag(-1.0 / checks.positive("means", means)))

    @classmethod
    def coxian(cls, *, means: Sequence[float], continuations: Sequence[float]) -> PhaseType:
        """Return phases in series, each but the last followed by the next with a given probability.

        Examples
        --------
        >>> PhaseType.coxian(means=[1.0, 2.0], continuations=[0.5]).mean
        2.0
        """
        rates = 1.0 / np.atleast_1d(checks.positive("means", means))
        onward = np.atleast_1d(checks.probability("continuations", continuations))
        if onward.shape != (rates.size - 1,):
            raise ValueError(
                f"continuations must be one fewer than means ({rates.size - 1}), got {onward.size}"
            )
        return cls(
            initial=np.eye(rates.size)[0], generator=np.diag(-rates) + np.diag(rates[:-1] * onward, k=1)
        )

    @property
    def phases(self) -> int:
        """Number of phases."""
        return len(self.initial)

    @property
    def mean(self) -> float:
        """Mean [time]."""
        return float(self.moment(1))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return float(self.moment(2) / self.moment(1) ** 2 - 1.0)

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

    def scaled(self, factor: float) -> PhaseType:
        """Return the law of the time multiplied by a factor > 0."""
        f = float(checks.positive("factor", factor))
        return PhaseType(initial=self.initial, generator=self.generator / f)

    def tail(self, x: Array) -> FloatArray:
        """Return P(X > x)."""
        return self._tail(checks.nonnegative("x", x))[()]

    def cdf(self, x: Array) -> FloatArray:
        """Return P(X <= x), with relative accuracy also for small x."""
        return self.truncated_moment(0, x)

    def density(self, x: Array) -> FloatArray:
        """Return the density [1 / time] at x."""
        return self._density_series(checks.nonnegative("x", x))[()]

    @cached_property
    def _tail(self) -> ExponentialSeries:
        return ExponentialSeries(self.initial, self.generator, np.ones(self.phases))

    @cached_property
    def _density_series(self) -> ExponentialSeries:
        return ExponentialSeries(self.initial, self.generator, self.exit_rates)

    def quantile(self, p: npt.ArrayLike) -> FloatArray:
        """Return the smallest time not exceeded with probability p, by inverting the tail numerically."""
        from qmodels.queues.numerics.quantile import quantile

        return quantile(self._tail, checks.probability("p", p), scale=np.asarray(self.mean))

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
        from scipy.special import gammainc, poch

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
            result[i] = weights @ (poch(stages, order) / q**order * gammainc(stages + order, q * t))
        return result.reshape(times.shape)[()]

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X > x], from the moments of what is left at x."""
        from scipy.special import comb

        order = int(checks.count("k", k, minimum=0))
        times = checks.nonnegative("x", x)
        self.moment(order)  # fills the vectors of moments
        total = np.zeros(times.shape)
        for i in range(order + 1):
            left = ExponentialSeries(self.initial, self.generator, self._moments[i])
            total += float(comb(order, i)) * times ** (order - i) * left(times)
        return total[()]

    def breaks(self) -> FloatArray:
        """Return 0, points that double up to the fastest phase and grow by a quarter to a tail of 1e-20."""
        end = self.mean
        while self.tail(np.asarray(end)) > 1e-20:
            end *= 1.5
        steps = int(np.ceil(np.log(20 * end * self._density_series.q) / np.log(1.25)))
        fine = end / 1.25 ** np.arange(steps, -1.0, -1.0)
        return np.concatenate([[0.0], fine[0] / 2 ** np.arange(56.0, 0.0, -1.0), fine])

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        """Return E[f(X)] by Gauss quadrature."""
        from qmodels.queues.laws import expect_by_density

        return expect_by_density(self, f)

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        """Return the probabilities of 0 .. size - 1 Poisson arrivals during X, along a new last axis."""
        rates = checks.nonnegative("rate", rate)
        result = np.empty((rates.size, size))
        for i, r in enumerate(rates.ravel()):
            # Thinned by arrivals, the phase moves by r (rI - T)^-1 from one arrival to the next.
            inverse = solve_transient(self.generator, self.exit_rates + r, np.eye(self.phases))
            result[i] = powers(self.initial, r * inverse, size) @ (inverse @ self.exit_rates)
        return result.reshape(*rates.shape, size)

    @described()
    def sample(self, *, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw independent times.

        Returns
        -------
        array of length `size`. [time]

        Examples
        --------
        >>> x = PhaseType.erlang(mean=1.0, phases=3).sample(size=10_000, rng=np.random.default_rng(1))
        >>> bool(abs(x.mean() - 1.0) < 0.03)
        True
        """
        count = int(checks.count("size", size, minimum=0))
        leave = -self.generator.diagonal()
        jump = np.column_stack([self.generator + np.diag(leave), self.exit_rates]) / leave[:, None]
        cumulative = np.cumsum(jump, axis=1)
        cumulative[:, -1] = 1.0
        start = np.cumsum(self.initial)
        start[-1] = 1.0
        total = np.zeros(count)
        alive = np.arange(count)
        phase = np.searchsorted(start, rng.random(count), side="right")
        while alive.size:
            total[alive] += rng.exponential(size=alive.size) / leave[phase]
            phase = (rng.random((alive.size, 1)) >= cumulative[phase]).sum(axis=1)
            going = phase < self.phases
            alive, phase = alive[going], phase[going]
        return total
