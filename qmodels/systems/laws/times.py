"""Laws of times: what a source draws its gaps from, or a station its service times.

A law holds parameters and two structural facts, `mean` and `scv`; how it is sampled is the
simulator's business, what follows from it the formulas' (`qmodels.laws`). Times have any one unit.
The parameters of `Deterministic`, `Exponential`, `Erlang` and `Gamma` may be arrays, over which the
formulas broadcast; a system takes one law at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import Numeric
from qmodels.systems.laws.fields import keep, nested, number, number_of, numbers, numeric
from qmodels.systems.laws.phases import MAP as MAP
from qmodels.systems.laws.phases import HyperExponential as HyperExponential
from qmodels.systems.laws.phases import PhaseType as PhaseType
from qmodels.systems.spec.docstrings import Documented

INF = float("inf")


class _Numbers(Documented):
    """A law whose fields are numbers, each with a check."""

    _read: ClassVar[Any] = staticmethod(number)

    def __post_init__(self) -> None:
        for name, item in self.__dataclass_fields__.items():  # type: ignore[attr-defined]
            keep(self, **{name: self._read(name, item.metadata["rule"], getattr(self, name))})


class _Sweeps(_Numbers):
    """A law whose fields may be arrays, over which the formulas broadcast."""

    _read = staticmethod(numeric)


@dataclass(frozen=True, kw_only=True)
class Deterministic(_Sweeps):
    """A constant time.

    Examples
    --------
    >>> Deterministic(mean=2).scv
    0.0
    """

    mean: Numeric = number_of(checks.nonnegative)  # The time, 0 allowed. [time]

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class Exponential(_Sweeps):
    """The memoryless time.

    Examples
    --------
    >>> Exponential(mean=0.5).scv
    1.0
    """

    mean: Numeric = number_of(checks.positive)  # Mean > 0. [time]

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return 1.0


@dataclass(frozen=True, kw_only=True)
class Erlang(_Sweeps):
    """Sum of equal exponential phases.

    Examples
    --------
    >>> Erlang(mean=2.0, phases=4).scv
    0.25
    """

    mean: Numeric = number_of(checks.positive)  # Mean of the sum > 0. [time]
    phases: Numeric = number_of(checks.count)  # Number of phases, at least 1

    @property
    def scv(self) -> Numeric:
        """Squared coefficient of variation."""
        return 1 / self.phases


@dataclass(frozen=True, kw_only=True)
class Gamma(_Sweeps):
    """A gamma law: between deterministic and heavier than exponential by its variation.

    Examples
    --------
    >>> Gamma(mean=2.0, scv=3.0).scv
    3.0
    """

    # mean, scv: Mean [time] and squared coefficient of variation, both > 0; the shape is 1 / scv
    mean: Numeric = number_of(checks.positive)
    scv: Numeric = number_of(checks.positive)


@dataclass(frozen=True, kw_only=True)
class LogNormal(_Numbers):
    """A time whose logarithm is normal.

    Examples
    --------
    >>> LogNormal(mean=2.0, scv=3.0).mean
    2.0
    """

    # mean, scv: Mean [time] and squared coefficient of variation of the time itself, both > 0
    mean: float = number_of(checks.positive)
    scv: float = number_of(checks.positive)


@dataclass(frozen=True, kw_only=True)
class Weibull(_Numbers):
    """A Weibull law: its tail is exp(-(x / scale)**shape).

    Examples
    --------
    >>> round(Weibull(mean=2.0, shape=0.5).scv, 12)
    5.0
    """

    mean: float = number_of(checks.positive)  # Mean > 0. [time]
    shape: float = number_of(checks.positive)  # Shape > 0: 1 is exponential, less is heavier

    @property
    def scv(self) -> float:
        """Squared coefficient of variation, ``inf`` where no floating-point number holds it."""
        from math import expm1, lgamma

        logarithm = lgamma(1 + 2 / self.shape) - 2 * lgamma(1 + 1 / self.shape)
        return expm1(logarithm) if logarithm < 700 else INF


@dataclass(frozen=True, kw_only=True)
class Pareto(_Numbers):
    """A power law: its tail is (smallest / x)**shape from the smallest time on.

    Examples
    --------
    >>> Pareto(mean=3.0, shape=3.0).scv, Pareto(mean=3.0, shape=1.5).scv
    (0.3333333333333333, inf)
    """

    # Mean > 0; the smallest time is mean * (shape - 1) / shape. [time]
    mean: float = number_of(checks.positive)
    shape: float = number_of(checks.positive)  # Tail index > 1. Up to 2 the variance is infinite

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape <= 1:
            raise ValueError(f"shape must be > 1 for a finite mean, got {self.shape!r}")

    @property
    def scv(self) -> float:
        """Squared coefficient of variation, ``inf`` for a shape up to 2."""
        return 1 / (self.shape * (self.shape - 2)) if self.shape > 2 else INF


@dataclass(frozen=True, kw_only=True)
class Uniform(_Numbers):
    """A time anywhere between two bounds.

    Examples
    --------
    >>> Uniform(low=0.0, high=2.0).mean
    1.0
    """

    # low, high: Bounds, 0 <= low < high. [time]
    low: float = number_of(checks.nonnegative)
    high: float = number_of(checks.nonnegative)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.high > self.low:
            raise ValueError(f"high must be > low ({self.low!r}), got {self.high!r}")

    @property
    def mean(self) -> float:
        """Mean."""
        return (self.low + self.high) / 2

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return (self.high - self.low) ** 2 / 12 / self.mean**2


@dataclass(frozen=True, kw_only=True)
class Geometric(_Numbers):
    """Whole numbers 1, 2, ...: the memoryless time of clocked systems.

    Examples
    --------
    >>> Geometric(mean=4.0).scv
    0.75
    """

    # Mean >= 1; each tick ends the time with probability 1 / mean. [ticks]
    mean: float = number_of(checks.positive)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mean < 1:
            raise ValueError(f"mean must be >= 1 tick, got {self.mean!r}")

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return 1 - 1 / self.mean


@dataclass(frozen=True, kw_only=True)
class Empirical(Documented):
    """Independent draws from a list of times.

    Examples
    --------
    >>> Empirical(values=[1.0, 4.0], weights=[2, 1]).mean
    2.0
    """

    values: tuple[float, ...]  # Times >= 0. [time]
    weights: tuple[float, ...] = ()  # Relative frequency of each >= 0; equal if left out

    def __post_init__(self) -> None:
        values = numbers("values", checks.nonnegative, self.values, None)
        given = checks.nonnegative("weights", self.weights)
        given = given if given.size else np.ones(values.size)
        weights = numbers("weights", checks.nonnegative, given, values.size)
        if not weights.sum() > 0:
            raise ValueError(f"weights must have a positive sum, got {float(weights.sum())!r}")
        keep(self, values=nested(values), weights=nested(weights))

    @property
    def mean(self) -> float:
        """Mean."""
        return float(np.average(self.values, weights=self.weights))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        second = np.average(np.square(self.values), weights=self.weights)
        return max(float(second / self.mean**2 - 1), 0.0) if self.mean else 0.0


@dataclass(frozen=True, kw_only=True)
class Replay(Documented):
    """A recorded sequence of times, in order; at its end it starts again.

    Every replication plays it from its beginning: their spread then shows what else is random,
    not what another recording would have brought.

    Examples
    --------
    >>> Replay(values=[1.0, 0.5, 1.5]).mean
    1.0
    """

    values: tuple[float, ...]  # Times >= 0, not all 0. [time]

    def __post_init__(self) -> None:
        values = numbers("values", checks.nonnegative, self.values, None)
        if not values.sum() > 0:
            raise ValueError("values must not all be 0")
        keep(self, values=nested(values))

    @property
    def mean(self) -> float:
        """Mean."""
        return float(np.mean(self.values))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation; the order is ignored."""
        return float(np.var(self.values) / self.mean**2)


Law = (
    Deterministic | Exponential | Erlang | Gamma | LogNormal | Weibull | Pareto | Uniform | Geometric
    | HyperExponential | PhaseType | MAP | Empirical | Replay
)  # fmt: skip
"""Any law of times."""
