"""Formulas of uniform, lognormal, Weibull, Pareto and geometric times; their transforms are integrals.

The nodes of these integrals grow by a tenth from panel to panel, over all orders of magnitude that
the law reaches: fine enough for every s of the inversion of a transform.
"""

# ruff: noqa: D102 (what a method returns is said where `Formulas` declares it)

from __future__ import annotations

from collections.abc import Callable
from math import comb, exp, inf, lgamma, log, log1p, pi, sqrt
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.laws.formulas import Array, Formulas, one_minus_phi
from qmodels.libraries import special
from qmodels.systems.laws.times import Geometric, LogNormal, Pareto, Uniform, Weibull

_STEP = 0.1
"""Width of a panel on the logarithmic scale."""
_SURE = 42.0
"""Exponent of a probability that no double sees beside 1."""
_FAR = 300.0
"""Exponent of the probability of the longest times that are still integrated over."""
_LONGEST = 1 << 22
"""Ticks of a geometric law that are summed."""


class _Wide(Formulas):
    """A law that may reach over many orders of magnitude, from exp(low) to exp(high)."""

    low: float
    high: float

    def breaks(self) -> FloatArray:
        """Return 0 and borders that grow by a tenth from the least to the longest times."""
        count = int(np.ceil((self.high - self.low) / _STEP)) + 1
        return np.concatenate([[0.0], np.exp(np.linspace(self.low, self.high, count))])


class LogNormals(_Wide):
    """A time whose logarithm is normal."""

    name = "LogNormal"

    def __init__(self, law: LogNormal) -> None:
        variance = log1p(law.scv)
        self.mean, self._centre, self._sigma = law.mean, log(law.mean) - variance / 2, sqrt(variance)
        self.low, self.high = (
            self._centre - 9 * self._sigma,
            self._centre + (13 + 4 * self._sigma) * self._sigma,
        )

    def moment(self, k: int) -> FloatArray:
        return np.exp(np.asarray(k * self._centre + (k * self._sigma) ** 2 / 2))

    def density(self, x: Array) -> FloatArray:
        z = (np.log(x) - self._centre) / self._sigma
        return np.asarray(np.exp(-z * z / 2) / (x * self._sigma * sqrt(2 * pi)))

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        return self._part(k, x, -1.0)

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        return self._part(k, x, 1.0)

    def _part(self, k: int, x: Array, sign: float) -> FloatArray:
        with np.errstate(divide="ignore"):
            z = (np.log(x) - self._centre) / self._sigma - k * self._sigma
        return np.asarray(self.moment(k) * special.ndtr(sign * z))


class Weibulls(_Wide):
    """A time with the tail exp(-(x / scale)**shape)."""

    name = "Weibull"

    def __init__(self, law: Weibull) -> None:
        self.mean, self._shape = law.mean, law.shape
        self._log_scale = log(law.mean) - lgamma(1 + 1 / law.shape)
        self._scale = exp(self._log_scale)
        self.low = self._log_scale - _SURE / law.shape
        self.high = self._log_scale + log(_FAR) / law.shape

    def moment(self, k: int) -> FloatArray:
        return np.exp(np.asarray(k * self._log_scale + lgamma(1 + k / self._shape)))

    def density(self, x: Array) -> FloatArray:
        power = self._power(x)
        return np.asarray(self._shape * power / x * np.exp(-power))

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        return np.asarray(self.moment(k) * special.gammaincc(1 + k / self._shape, self._power(x)))

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        return np.asarray(self.moment(k) * special.gammainc(1 + k / self._shape, self._power(x)))

    def _power(self, x: Array) -> Any:
        return (np.asarray(x) / self._scale) ** self._shape


class Paretos(_Wide):
    """A time with the tail (smallest / x)**shape."""

    name = "Pareto"

    def __init__(self, law: Pareto) -> None:
        self.mean, self._shape = law.mean, law.shape
        self._least = law.mean * (law.shape - 1) / law.shape
        self.low = log(self._least)
        self.high = self.low + _FAR / law.shape

    def moment(self, k: int) -> FloatArray:
        """Return the raw moment of order k, ``inf`` from the shape on."""
        return self.tail_moment(k, np.asarray(self._least))

    def density(self, x: Array) -> FloatArray:
        return np.where(x < self._least, 0.0, self._shape / x * (self._least / x) ** self._shape)

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        if k >= self._shape:
            return np.full(np.shape(x), inf)
        y = np.maximum(x, self._least)
        return np.asarray(self._shape / (self._shape - k) * y**k * (self._least / y) ** self._shape)

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        grown = np.log(np.maximum(x, self._least) / self._least)
        rate = self._shape - k
        share = -np.expm1(-rate * grown) / rate if rate else grown
        return np.asarray(self._shape * self._least**k * share)


class Uniforms(Formulas):
    """A time anywhere between two bounds."""

    name = "Uniform"

    def __init__(self, law: Uniform) -> None:
        self.mean, self._low, self._high = law.mean, law.low, law.high

    def moment(self, k: int) -> FloatArray:
        return self.truncated_moment(k, np.asarray(self._high))

    def density(self, x: Array) -> FloatArray:
        return np.where((x < self._low) | (x > self._high), 0.0, 1 / (self._high - self._low))

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        return self._between(k, np.clip(x, self._low, self._high), self._high)

    def truncated_moment(self, k: int, x: Array) -> FloatArray:
        return self._between(k, self._low, np.clip(x, self._low, self._high))

    def _between(self, k: int, a: Any, b: Any) -> FloatArray:
        powers = sum(a**i * b ** (k - i) for i in range(k + 1)) / (k + 1)
        return np.asarray((b - a) / (self._high - self._low) * powers)

    def breaks(self) -> FloatArray:
        """Return 0 and borders from the lower bound, or next to 0, to the upper one."""
        return np.concatenate([[0.0], np.linspace(max(self._low, 1e-18 * self._high), self._high, 65)])

    def poisson_counts(self, rate: Array, size: int) -> FloatArray:
        """Return the mean of the Poisson law between the bounds: a difference of Erlang's tails."""
        low, high = (np.asarray(rate * end)[..., None] for end in (self._low, self._high))
        k = np.arange(1.0, size + 1)
        return np.asarray((special.gammainc(k, high) - special.gammainc(k, low)) / (high - low))


class Geometrics(Formulas):
    """A whole number of ticks, each of which ends the time with probability 1 / mean."""

    name = "Geometric"

    def __init__(self, law: Geometric) -> None:
        self.mean = law.mean
        self._end, self._stay = 1 / law.mean, 1 - 1 / law.mean

    def moment(self, k: int) -> FloatArray:
        """Return the raw moment of order k <= 3."""
        m = self.mean
        return np.asarray((1.0, m, m * (2 * m - 1), m * (6 * m * (m - 1) + 1))[k])

    def tail_moment(self, k: int, x: Array) -> FloatArray:
        """Return E[X^k; X > x]: the law begins anew at every tick."""
        n = np.floor(x)
        after = sum(comb(k, i) * n ** (k - i) * self.moment(i) for i in range(k + 1))
        return np.asarray(self._stay**n * after)

    def laplace(self, s: Array) -> Array:
        less = -np.expm1(-np.asarray(s))
        return np.asarray(self._end * (1 - less) / (self._end + self._stay * less))

    def residual_complement(self, s: Array) -> Array:
        less = -np.expm1(-np.asarray(s))
        aged = one_minus_phi(np.asarray(s))
        return np.asarray((self._end * aged + self._stay * less) / (self._end + self._stay * less))

    def expect(self, f: Callable[[FloatArray], FloatArray]) -> float:
        x = self.breaks()[1:]
        return float(np.dot(self._end * self._stay ** (x - 1), f(x)))

    def breaks(self) -> FloatArray:
        """Return 0 and the ticks to where the tail has vanished."""
        ticks = 1 if self._stay == 0 else int(np.ceil(_SURE * 1.1 / -log1p(-self._end)))
        if ticks > _LONGEST:
            raise ValueError(f"mean must be at most 90,000 ticks to sum over them, got {self.mean:g}")
        return np.arange(ticks + 1.0)
