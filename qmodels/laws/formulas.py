"""Moments, tails and transforms of a law of times: the base of the formulas of every law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.numerics.quantile import quantile

Array = npt.NDArray[Any]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_AT_ONCE = 1 << 20
"""Values of a transform's integrand that are held at once."""


class Formulas(ABC):
    """Formulas of a law of positive times; those that a law has no closed form of are integrals here.

    Own laws are subclasses: with the abstract methods they are taken wherever a law of independent
    times is.
    """

    mean: Any
    name = "a law of Formulas"
    """Name of the law in errors."""

    @abstractmethod
    def moment(self, k: int) -> FloatArray:
        """Return the raw moment of order k >= 0, ``inf`` where it does not exist. [time^k]."""

    @abstractmethod
    def tail_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X > x]."""

    @abstractmethod
    def breaks(self) -> FloatArray:
        """Return points from 0 to where the tail has vanished, between which the law is smooth."""

    def density(self, x: Array) -> FloatArray:
        """Return the probability density at x > 0."""
        raise ValueError(f"law must have a density, got {self.name}")

    @property
    def scv(self) -> Any:
        """Squared coefficient of variation."""
        return self.moment(2) / self.moment(1) ** 2 - 1.0

    def tail(self, x: Array) -> FloatArray:
        """Return P(X > x)."""
        return self.tail_moment(0, x)

    def cdf(self, x: Array) -> FloatArray:
        """Return P(X <= x)."""
        return self.truncated_moment(0, x)

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X <= x]."""
        return np.asarray(self.moment(k) - self.tail_moment(k, x))

    def quantile(self, p: npt.ArrayLike) -> FloatArray:
        """Return the smallest time not exceeded with probability p, by inverting the tail numerically."""
        return quantile(self.tail, np.asarray(p, dtype=float), scale=np.asarray(self.mean))

    def laplace(self, s: Array) -> Array:
        """Return E[exp(-s X)] for (complex) s with a nonnegative real part."""
        x, dx = panels(self.breaks()[1:])
        return _summed(lambda t: np.exp(-t * x), dx * self.density(x), s)

    def residual_complement(self, s: Array) -> Array:
        """Return 1 - (1 - E[exp(-s X)]) / (s E[X]), the complement of the residual's transform."""
        borders = self.breaks()[1:]
        x, dx = panels(borders)
        # Hardly a time ends before the first border.
        head = borders[0] / self.mean * one_minus_phi(np.asarray(s) * borders[0])
        return np.asarray(head + _summed(lambda t: -np.expm1(-t * x), dx * self.tail(x) / self.mean, s))

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        """Return E[f(X)] of a law with scalar parameters by Gauss quadrature, panel by panel."""
        borders = self.breaks()
        x, dx = panels(borders[1:])
        # The first panel may hold a singularity of the density, but little mass.
        first = borders[1:2]
        return float(np.dot(dx * self.density(x), f(x)) + self.truncated_moment(0, first)[0] * f(first)[0])

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        """Return the probabilities of 0 .. size - 1 Poisson arrivals during X, along a new last axis."""
        raise ValueError(
            "service must be Deterministic, Exponential, Erlang, Gamma, HyperExponential, PhaseType or "
            f"Empirical where arrivals during a service are counted, got {self.name}"
        )

    def decay(self) -> Any:
        """Return up to which rate s the transform is known at -s, 0 if on the right half plane only."""
        return 0.0


def panels(borders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Gauss nodes and weights for the integral over all panels between the borders."""
    half = np.diff(borders) / 2
    nodes = borders[:-1, None] + half[:, None] * (1 + _NODES)
    return nodes.ravel(), (half[:, None] * _WEIGHTS).ravel()


def _summed(kernel: Callable[[Array], Array], weights: FloatArray, s: Array) -> Array:
    """Return the weighted sum of a kernel over its last axis for every s."""
    points = np.asarray(s)
    flat = points.reshape(-1, 1)
    rows = max(1, _AT_ONCE // weights.size)
    parts = [kernel(flat[i : i + rows]) @ weights for i in range(0, len(flat), rows)]
    return np.concatenate([np.zeros(0), *parts]).reshape(points.shape)


def one_minus_phi(x: Array) -> Array:
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
