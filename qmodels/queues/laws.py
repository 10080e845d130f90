"""Distributions of service times and of times between arrivals, as the exact models need them.

A law knows its moments, its tail and two forms of its Laplace transform. Any object with the
methods of `Law` will do; the families here and in `mixtures` have all of them without cancellation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.numerics.poisson import poisson_pmf

FloatArray = npt.NDArray[np.float64]
Array = npt.NDArray[Any]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


@runtime_checkable
class Law(Protocol):
    """A distribution of a positive time."""

    def moment(self, k: int) -> FloatArray:
        """Return the raw moment of order k = 1, 2, 3. [time^k]."""

    def laplace(self, s: Array) -> Array:
        """Return E[exp(-s X)] for (complex) s with a nonnegative real part."""

    def residual_complement(self, s: Array) -> Array:
        """Return 1 - (1 - E[exp(-s X)]) / (s E[X]), the complement of the residual's transform."""

    def tail(self, x: Array) -> FloatArray:
        """Return P(X > x)."""

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X <= x]."""

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X > x]."""

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        """Return the probabilities of 0 .. size - 1 Poisson arrivals during X, along a new last axis."""

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        """Return E[f(X)] for a law with scalar parameters."""

    def breaks(self) -> FloatArray:
        """Return points from 0 to where the tail has vanished, between which the law is smooth."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Deterministic:
    """A constant time.

    Parameters
    ----------
    mean : float or array
        The time. [time]

    Examples
    --------
    >>> float(Deterministic(mean=2.0).moment(2))
    4.0
    """

    mean: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checks.positive("mean", self.mean)[()])

    def moment(self, k: int) -> FloatArray:
        """Return the raw moment of order k."""
        return np.asarray(self.mean**k)

    def laplace(self, s: Array) -> Array:
        """Return the Laplace transform at s."""
        return np.asarray(np.exp(-s * self.mean))

    def residual_complement(self, s: Array) -> Array:
        """Return the complement of the residual's transform at s."""
        return _one_minus_phi(s * self.mean)

    def tail(self, x: Array) -> FloatArray:
        """Return P(X > x)."""
        return np.where(x < self.mean, 1.0, 0.0)

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X <= x]."""
        return np.where(x < self.mean, 0.0, self.mean**k)

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X > x]."""
        return np.where(x < self.mean, self.mean**k, 0.0)

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        """Return E[f(X)]."""
        return float(f(np.asarray(self.mean)))

    def breaks(self) -> FloatArray:
        """Return 0 and the value."""
        return np.array([0.0, float(self.mean)])

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        """Return the probabilities of 0 .. size - 1 Poisson arrivals during X."""
        return poisson_pmf(np.arange(size), np.asarray(rate * self.mean)[..., None])


@dataclass(frozen=True, kw_only=True, eq=False)
class Gamma:
    """Gamma distribution; SCV 1 is the exponential, 1/k the Erlang distribution of k phases.

    Parameters
    ----------
    mean : float or array
        Mean. [time]
    scv : float or array
        Squared coefficient of variation > 0.

    Examples
    --------
    >>> float(Gamma(mean=2.0, scv=0.5).moment(2))
    6.0
    """

    mean: Any
    scv: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checks.positive("mean", self.mean)[()])
        object.__setattr__(self, "scv", checks.positive("scv", self.scv)[()])

    def moment(self, k: int) -> FloatArray:
        """Return the raw moment of order k."""
        product = np.asarray(1.0)
        for i in range(k):
            product = product * (self.mean * (1 + i * self.scv))
        return product

    def laplace(self, s: Array) -> Array:
        """Return the Laplace transform at s."""
        return np.asarray(np.exp(-_log1p(s * self.mean * self.scv) / self.scv))

    def residual_complement(self, s: Array) -> Array:
        """Return the complement of the residual's transform at s."""
        x = np.asarray(s * self.mean)
        near = np.abs(x) * np.maximum(1.0, self.scv) < 0.05
        # (1 + scv x)^(-1/scv) = sum of (-x)^k prod(1 + i scv) / k!; its first two terms drop out.
        y = np.where(near, x, 0.0)
        series, term = (
            np.zeros(np.shape(x + 0 * self.scv), dtype=x.dtype),
            -np.ones(np.shape(x), dtype=x.dtype),
        )
        for k in range(2, 18):
            term = term * (-y) * (1 + (k - 1) * self.scv) / k
            series = series - term
        with np.errstate(divide="ignore", invalid="ignore"):
            far = 1 - (1 - self.laplace(s)) / x
        return np.where(near, -series, far)

    def tail(self, x: Array) -> FloatArray:
        """Return P(X > x)."""
        from scipy.special import gammaincc

        return np.asarray(gammaincc(1 / self.scv, x / (self.mean * self.scv)))

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X <= x]."""
        from scipy.special import gammainc

        return np.asarray(self.moment(k) * gammainc(1 / self.scv + k, x / (self.mean * self.scv)))

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X > x]."""
        from scipy.special import gammaincc

        return np.asarray(self.moment(k) * gammaincc(1 / self.scv + k, x / (self.mean * self.scv)))

    def density(self, x: Array) -> FloatArray:
        """Return the probability density at x > 0."""
        shape = 1 / self.scv
        work = x / (self.mean * self.scv)
        return np.asarray(poisson_pmf(shape, work) * shape / x)

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        """Return E[f(X)] by Gauss quadrature."""
        return expect_by_density(self, f)

    def breaks(self) -> FloatArray:
        """Return panel borders that resolve the bulk, the tail and the singularity at 0 for SCV > 1."""
        shape, unit = 1 / float(self.scv), float(self.mean * self.scv)
        end = shape + 9 * np.sqrt(shape) + 45
        width = max(1.0, np.sqrt(shape))
        begin = shape - 10 * width
        if begin > 0:
            return unit * np.concatenate([[0.0], np.arange(begin, end + width, width)])
        small = np.exp2(np.arange(np.floor(max(-300.0, -18 / shape) / np.log10(2)), 0.5))
        return unit * np.concatenate([[0.0], small, np.arange(1 + width, end + width, width)])

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        """Return the probabilities of 0 .. size - 1 Poisson arrivals during X (negative binomial)."""
        spread, shape = np.broadcast_arrays(rate * self.mean * self.scv, 1 / np.asarray(self.scv))
        spread, shape = spread[..., None], shape[..., None]
        k = np.arange(1, size)
        ratios = (shape + k - 1) / k * (spread / (1 + spread))
        none = np.exp(-np.log1p(spread) * shape)
        return np.concatenate([none, none * np.cumprod(ratios, axis=-1)], axis=-1)


def Exponential(*, mean: Any) -> Gamma:  # noqa: N802
    """Return the exponential law.

    Parameters
    ----------
    mean : float or array
        Mean. [time]

    Returns
    -------
    Gamma
        With SCV 1.

    Examples
    --------
    >>> float(Exponential(mean=2.0).moment(3))
    48.0
    """
    return Gamma(mean=mean, scv=1.0)


def Erlang(*, mean: Any, phases: Any) -> Gamma:  # noqa: N802
    """Return the Erlang law, the sum of equal exponential phases.

    Parameters
    ----------
    mean : float or array
        Mean of the sum. [time]
    phases : int or array of int
        Number of phases >= 1.

    Returns
    -------
    Gamma
        With SCV 1 / phases.

    Examples
    --------
    >>> float(Erlang(mean=2.0, phases=4).moment(2))
    5.0
    """
    return Gamma(mean=mean, scv=1.0 / checks.count("phases", phases))


def panels(borders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Gauss nodes and weights for the integral over all panels between the borders."""
    half = np.diff(borders) / 2
    nodes = borders[:-1, None] + half[:, None] * (1 + _NODES)
    return nodes.ravel(), (half[:, None] * _WEIGHTS).ravel()


def expect_by_density(law: Any, f: Callable[[FloatArray], FloatArray]) -> float:
    """Return E[f(X)] of a law with a density, panel by panel."""
    borders = law.breaks()
    x, weights = panels(borders[1:])
    # The first panel may hold a singularity of the density, but little mass.
    first = borders[1:2]
    return float(np.dot(weights * law.density(x), f(x)) + law.truncated_moment(0, first)[0] * f(first)[0])


def _log1p(z: Array) -> Array:
    """Return log(1 + z); NumPy's own loses digits of small complex z."""
    if not np.iscomplexobj(z):
        return np.asarray(np.log1p(z))
    x, y = np.real(z), np.imag(z)
    return np.asarray(0.5 * np.log1p(x * (2 + x) + y * y) + 1j * np.arctan2(y, 1 + x))


def _one_minus_phi(x: Array) -> Array:
    """Return 1 - (1 - exp(-x)) / x."""
    x = np.asarray(x)
    near = np.abs(x) < 0.5
    y = np.where(near, x, 0.0)
    series = np.zeros(x.shape, dtype=x.dtype)
    # x/2 - x^2/6 + x^3/24 - ... by Horner.
    for k in range(18, 1, -1):
        series = y / k * (1 - series)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = 1 - (1 - np.exp(-x)) / x
    return np.where(near, series, far)
