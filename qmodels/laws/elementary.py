"""Formulas in closed form, without cancellation: constant and gamma times, and mixtures of them."""

# ruff: noqa: D102 (what a method returns is said where `Formulas` declares it)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.laws.formulas import Array, Formulas, one_minus_phi
from qmodels.libraries import special
from qmodels.numerics.poisson import poisson_pmf


class Constant(Formulas):
    """A constant time >= 0; the mean may be an array."""

    name = "Deterministic"

    def __init__(self, mean: Any) -> None:
        self.mean = np.asarray(mean, dtype=float)[()]

    def moment(self, k: int) -> FloatArray:
        return np.asarray(self.mean**k)

    def laplace(self, s: Array) -> Array:
        return np.asarray(np.exp(-s * self.mean))

    def residual_complement(self, s: Array) -> Array:
        return one_minus_phi(s * self.mean)

    def tail(self, x: Array) -> FloatArray:
        return np.where(x < self.mean, 1.0, 0.0)

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        return np.where(x < self.mean, 0.0, self.mean**k)

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        return np.where(x < self.mean, self.mean**k, 0.0)

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        return float(f(np.asarray(self.mean)))

    def breaks(self) -> FloatArray:
        """Return 0 and the value."""
        return np.array([0.0, float(self.mean)])

    def decay(self) -> Any:
        """Return as far as the transform at -s is a double."""
        with np.errstate(divide="ignore"):
            return 600 / self.mean

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        return poisson_pmf(np.arange(size), np.asarray(rate * self.mean)[..., None])


class Gammas(Formulas):
    """A gamma time; mean and SCV may be arrays. SCV 1 is exponential, 1 / k the sum of k such phases."""

    name = "Gamma"

    def __init__(self, mean: Any, scv: Any) -> None:
        self.mean, self._scv = (np.asarray(value, dtype=float)[()] for value in (mean, scv))

    @property
    def scv(self) -> Any:
        return self._scv

    def moment(self, k: int) -> FloatArray:
        product = np.asarray(1.0)
        for i in range(k):
            product = product * (self.mean * (1 + i * self.scv))
        return product

    def laplace(self, s: Array) -> Array:
        return np.asarray(np.exp(-_log1p(s * self.mean * self.scv) / self.scv))

    def residual_complement(self, s: Array) -> Array:
        x = np.asarray(s * self.mean)
        near = np.abs(x) * np.maximum(1.0, self.scv) < 0.05
        # (1 + scv x)^(-1/scv) = sum of (-x)^k prod(1 + i scv) / k!; its first two terms drop out.
        y = np.where(near, x, 0.0)
        series, term = np.zeros(np.shape(near), dtype=x.dtype), -np.ones(np.shape(x), dtype=x.dtype)
        for k in range(2, 18):
            term = term * (-y) * (1 + (k - 1) * self.scv) / k
            series = series - term
        with np.errstate(divide="ignore", invalid="ignore"):
            far = 1 - (1 - self.laplace(s)) / x
        return np.where(near, -series, far)

    def tail(self, x: Array) -> FloatArray:
        return np.asarray(special.gammaincc(1 / self.scv, x / (self.mean * self.scv)))

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        return np.asarray(self.moment(k) * special.gammainc(1 / self.scv + k, x / (self.mean * self.scv)))

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        return np.asarray(self.moment(k) * special.gammaincc(1 / self.scv + k, x / (self.mean * self.scv)))

    def density(self, x: Array) -> FloatArray:
        shape = 1 / self.scv
        work = x / (self.mean * self.scv)
        return np.asarray(poisson_pmf(shape, work) * shape / x)

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

    def decay(self) -> Any:
        """Return the pole of the transform, without its sign."""
        return 1 / (self.mean * self.scv)

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        """Return the probabilities of 0 .. size - 1 Poisson arrivals during X (negative binomial)."""
        spread, shape = np.broadcast_arrays(rate * self.mean * self.scv, 1 / np.asarray(self.scv))
        spread, shape = spread[..., None], shape[..., None]
        k = np.arange(1, size)
        ratios = (shape + k - 1) / k * (spread / (1 + spread))
        none = np.exp(-np.log1p(spread) * shape)
        return np.concatenate([none, none * np.cumprod(ratios, axis=-1)], axis=-1)


class Mixture(Formulas):
    """A time drawn from one of several laws, each with scalar parameters.

    Parameters
    ----------
    probabilities : sequence of float
        Probability of each part; they sum to 1.
    parts : sequence of Formulas
        The laws.
    """

    def __init__(self, probabilities: Any, parts: Sequence[Formulas]) -> None:
        self.probabilities = np.asarray(probabilities, dtype=float)
        self.parts = parts
        self.means = np.array([float(part.mean) for part in parts])
        self.mean = float(self.probabilities @ self.means)
        self.name = " or ".join(sorted({part.name for part in parts}))

    def moment(self, k: int) -> FloatArray:
        return self._mix(lambda part: part.moment(k))

    def laplace(self, s: Array) -> Array:
        return self._mix(lambda part: part.laplace(s))

    def residual_complement(self, s: Array) -> Array:
        return self._mix(lambda part: part.mean * part.residual_complement(s)) / self.mean

    def tail(self, x: Array) -> FloatArray:
        return self._mix(lambda part: part.tail(x))

    def density(self, x: Array) -> FloatArray:
        return self._mix(lambda part: part.density(x))

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        return self._mix(lambda part: part.truncated_moment(k, x))

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        return self._mix(lambda part: part.tail_moment(k, x))

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        return float(self._mix(lambda part: part.expect(f)))

    def breaks(self) -> FloatArray:
        """Return the panel borders of all parts."""
        return np.unique(np.concatenate([part.breaks() for part in self.parts]))

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        return self._mix(lambda part: part.poisson_counts(rate, size))

    def decay(self) -> Any:
        """Return up to which rate s the transform is known at -s."""
        return min((part.decay() for part, p in zip(self.parts, self.probabilities, strict=True) if p > 0))

    def _mix(self, of_part: Callable[[Any], Any]) -> Array:
        pairs = zip(self.probabilities, self.parts, strict=True)
        return np.asarray(sum(p * of_part(part) for p, part in pairs))


class Exponentials(Mixture):
    """A mixture of exponential times, whose queues have sums of exponentials for tails."""

    def __init__(self, probabilities: Any, means: Any) -> None:
        super().__init__(probabilities, [Gammas(mean, 1.0) for mean in means])


def _log1p(z: Array) -> Array:
    """Return log(1 + z); NumPy's own loses digits of small complex z."""
    if not np.iscomplexobj(z):
        return np.asarray(np.log1p(z))
    x, y = np.real(z), np.imag(z)
    return np.asarray(0.5 * np.log1p(x * (2 + x) + y * y) + 1j * np.arctan2(y, 1 + x))
