"""Mixtures of laws: hyperexponential and discrete times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.queues.laws import Deterministic, Exponential, expect_by_density

FloatArray = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class HyperExponential:
    """A mixture of exponentials, SCV >= 1.

    Parameters
    ----------
    probabilities : sequence of float
        Probability of each branch, sum 1.
    means : sequence of float
        Mean of each branch. [time]

    Examples
    --------
    The second moment has its factor 2:

    >>> float(HyperExponential(probabilities=[0.5, 0.5], means=[1.0, 3.0]).moment(2))
    10.0
    """

    probabilities: Any
    means: Any

    def __post_init__(self) -> None:
        p, m = _mixture("means", self.probabilities, self.means)
        object.__setattr__(self, "probabilities", p)
        object.__setattr__(self, "means", m)

    def moment(self, k: int) -> FloatArray:
        """Return the raw moment of order k."""
        return self._mix(lambda m: float(np.prod(np.arange(1.0, k + 1))) * m**k)

    def laplace(self, s: Array) -> Array:
        """Return the Laplace transform at s."""
        return self._mix(lambda m: 1 / (1 + s * m))

    def residual_complement(self, s: Array) -> Array:
        """Return the complement of the residual's transform at s."""
        return self._mix(lambda m: s * m * m / (1 + s * m)) / self.moment(1)

    def tail(self, x: Array) -> FloatArray:
        """Return P(X > x)."""
        return self._mix(lambda m: np.exp(-x / m))

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X <= x]."""
        return self._mix(lambda m: Exponential(mean=m).truncated_moment(k, x))

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X > x]."""
        return self._mix(lambda m: Exponential(mean=m).tail_moment(k, x))

    def density(self, x: Array) -> FloatArray:
        """Return the probability density at x > 0."""
        return self._mix(lambda m: np.exp(-x / m) / m)

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        """Return E[f(X)] by Gauss quadrature."""
        return expect_by_density(self, f)

    def breaks(self) -> FloatArray:
        """Return the panel borders of all branches."""
        return np.unique(np.concatenate([Exponential(mean=m).breaks() for m in self.means]))

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        """Return the probabilities of 0 .. size - 1 Poisson arrivals during X."""
        return self._mix(lambda m: Exponential(mean=m).poisson_counts(rate, size))

    def _mix(self, of_branch: Any) -> Array:
        return np.asarray(sum(p * of_branch(m) for p, m in zip(self.probabilities, self.means, strict=True)))


def balanced_hyperexponential(*, mean: float, scv: float) -> HyperExponential:
    """Return the two-branch hyperexponential with a mean, an SCV and balanced means.

    Parameters
    ----------
    mean : float
        Mean. [time]
    scv : float
        Squared coefficient of variation >= 1.

    Returns
    -------
    HyperExponential
        Both branches contribute half of the mean.

    Raises
    ------
    ValueError
        If the SCV is below 1.

    Examples
    --------
    >>> law = balanced_hyperexponential(mean=1.0, scv=4.0)
    >>> round(float(law.moment(1)), 12), round(float(law.moment(2)), 12)
    (1.0, 5.0)
    """
    m, c = float(checks.positive("mean", mean)), float(checks.positive("scv", scv))
    if c < 1:
        raise ValueError(f"scv must be >= 1 for a hyperexponential law, got {c:g}")
    p = (1 + np.sqrt((c - 1) / (c + 1))) / 2
    return HyperExponential(probabilities=[p, 1 - p], means=[m / (2 * p), m / (2 * (1 - p))])


@dataclass(frozen=True, kw_only=True, eq=False)
class Discrete:
    """Finitely many constant times, such as measured packet sizes over the link rate.

    Parameters
    ----------
    probabilities : sequence of float
        Probability of each value, sum 1.
    values : sequence of float
        The times > 0. [time]

    Examples
    --------
    >>> float(Discrete(probabilities=[0.5, 0.5], values=[1.0, 3.0]).moment(2))
    5.0
    """

    probabilities: Any
    values: Any

    def __post_init__(self) -> None:
        p, v = _mixture("values", self.probabilities, self.values)
        object.__setattr__(self, "probabilities", p)
        object.__setattr__(self, "values", v)

    def moment(self, k: int) -> FloatArray:
        """Return the raw moment of order k."""
        return self._mix(lambda v: v.moment(k))

    def laplace(self, s: Array) -> Array:
        """Return the Laplace transform at s."""
        return self._mix(lambda v: v.laplace(s))

    def residual_complement(self, s: Array) -> Array:
        """Return the complement of the residual's transform at s."""
        return self._mix(lambda v: v.mean * v.residual_complement(s)) / self.moment(1)

    def tail(self, x: Array) -> FloatArray:
        """Return P(X > x)."""
        return self._mix(lambda v: v.tail(x))

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X <= x]."""
        return self._mix(lambda v: v.truncated_moment(k, x))

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X > x]."""
        return self._mix(lambda v: v.tail_moment(k, x))

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        """Return E[f(X)]."""
        return float(np.dot(self.probabilities, f(self.values)))

    def breaks(self) -> FloatArray:
        """Return 0 and the values."""
        return np.concatenate([[0.0], np.unique(self.values)])

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        """Return the probabilities of 0 .. size - 1 Poisson arrivals during X."""
        return self._mix(lambda v: v.poisson_counts(rate, size))

    def _mix(self, of_value: Any) -> Array:
        pairs = zip(self.probabilities, self.values, strict=True)
        return np.asarray(sum(p * of_value(Deterministic(mean=v)) for p, v in pairs))


def _mixture(name: str, probabilities: Any, values: Any) -> tuple[FloatArray, FloatArray]:
    p = np.atleast_1d(checks.probability("probabilities", probabilities))
    v = np.atleast_1d(checks.positive(name, values))
    if p.shape != v.shape or p.ndim != 1:
        raise ValueError(
            f"probabilities and {name} must be two lists of one length, got {p.shape} and {v.shape}"
        )
    if abs(p.sum() - 1) > 1e-9:
        raise ValueError(f"probabilities must sum to 1, got {p.sum():.12g}")
    return p / p.sum(), v
