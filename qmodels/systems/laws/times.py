"""Laws of times: what a source draws its gaps from, or a station its service times.

A law holds parameters and two structural facts, `mean` and `scv`; how it is sampled is the
simulator's business, what follows from it the formulas' (`qmodels.laws`). Times have any one unit.
The parameters of `Deterministic`, `Exponential`, `Erlang` and `Gamma` may be arrays, over which the
formulas broadcast; a system takes one law at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, Numeric
from qmodels.systems.laws.fields import (
    SUM_TOLERANCE,
    keep,
    nested,
    number,
    number_of,
    numbers,
    numeric,
    off_diagonal,
    square,
    stationary,
    weights,
    zero_sums,
)
from qmodels.systems.spec.docstrings import Documented

__all__ = [
    "Deterministic", "Empirical", "Erlang", "Exponential", "Gamma", "Geometric", "HyperExponential", "Law",
    "LogNormal", "MAP", "Pareto", "PhaseType", "Replay", "Uniform", "Weibull",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class HyperExponential(Documented):
    """A mixture of exponentials.

    Examples
    --------
    >>> law = HyperExponential(probabilities=[0.5, 0.5], means=[1.0, 3.0])
    >>> law.mean, law.scv
    (2.0, 1.5)
    """

    probabilities: tuple[float, ...]  # Probability of each branch; they sum to 1
    means: tuple[float, ...]  # Mean of each branch > 0. [time]

    @classmethod
    def balanced(cls, *, mean: float, scv: float) -> HyperExponential:
        """Return two branches with a mean and an SCV >= 1, each of which brings half of the mean.

        Examples
        --------
        >>> law = HyperExponential.balanced(mean=1.0, scv=4.0)
        >>> round(law.mean, 12), round(law.scv, 12)
        (1.0, 4.0)
        """
        m, c = number("mean", checks.positive, mean), number("scv", checks.positive, scv)
        if c < 1:
            raise ValueError(f"scv must be >= 1 for a hyperexponential law, got {c:g}")
        p = (1 + np.sqrt((c - 1) / (c + 1))) / 2
        return cls(probabilities=(p, 1 - p), means=(m / (2 * p), m / (2 * (1 - p))))

    def __post_init__(self) -> None:
        odds = weights("probabilities", self.probabilities)
        means = numbers("means", checks.positive, self.means, odds.size)
        keep(self, probabilities=nested(odds), means=nested(means))

    @property
    def mean(self) -> float:
        """Mean."""
        return float(np.dot(self.probabilities, self.means))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        return float(2 * np.dot(self.probabilities, np.square(self.means)) / self.mean**2 - 1)


@dataclass(frozen=True, kw_only=True)
class PhaseType(Documented):
    """Time until a finite Markov chain is absorbed.

    Examples
    --------
    Two phases in series, the second taken with probability 0.5:

    >>> round(PhaseType(initial=[1, 0], generator=[[-1, 0.5], [0, -1]]).mean, 12)
    1.5
    """

    initial: tuple[float, ...]  # Probabilities to start in each phase; they sum to 1
    # Rates among the phases: >= 0 off the diagonal, rows sum to at most 0; what is missing in a row is the
    # rate of absorption. [1 / time]
    generator: tuple[tuple[float, ...], ...]

    @classmethod
    def coxian(cls, *, means: Sequence[float], continuations: Sequence[float]) -> PhaseType:
        """Return phases in series, each but the last followed by the next with a given probability.

        Examples
        --------
        >>> PhaseType.coxian(means=[1.0, 2.0], continuations=[0.5]).mean
        2.0
        """
        rates = 1.0 / numbers("means", checks.positive, means, None)
        onward = np.atleast_1d(checks.probability("continuations", continuations))
        if onward.shape != (rates.size - 1,):
            raise ValueError(
                f"continuations must be one fewer than means ({rates.size - 1}), got {onward.size}"
            )
        moves = np.diag(-rates) + np.diag(rates[:-1] * onward, k=1)
        return cls(initial=nested(np.eye(rates.size)[0]), generator=nested(moves))

    def __post_init__(self) -> None:
        alpha = weights("initial", self.initial)
        rates = square("generator", self.generator, alpha.size)
        off_diagonal("generator", rates)
        noise = SUM_TOLERANCE * np.abs(rates).sum(axis=1)
        if np.any(rates.sum(axis=1) > noise):
            row = int(np.argmax(rates.sum(axis=1) > noise))
            raise ValueError(
                f"generator must have rows that sum to <= 0, row {row} sums to {rates[row].sum():.12g}"
            )
        ends = -rates.sum(axis=1) > 1e-14 * np.abs(rates).sum(axis=1)
        for _ in range(alpha.size):
            ends = ends | (np.where(np.eye(alpha.size) > 0, 0.0, rates)[:, ends] > 0).any(axis=1)
        if not ends.all():
            raise ValueError(f"generator must lead to absorption, phase {int(np.argmin(ends))} never does")
        keep(self, initial=nested(alpha), generator=nested(rates))

    @property
    def mean(self) -> float:
        """Mean."""
        return self._moments()[0]

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        first, second = self._moments()
        return second / first**2 - 1

    def _moments(self) -> tuple[float, float]:
        alpha, rates = np.array(self.initial), -np.array(self.generator)
        first = np.linalg.solve(rates, np.ones(alpha.size))
        return float(alpha @ first), float(2 * alpha @ np.linalg.solve(rates, first))


@dataclass(frozen=True, kw_only=True)
class MAP(Documented):
    """Correlated gaps: a finite Markov chain some of whose moves bring an arrival.

    Examples
    --------
    Bursts at rate 4 and quiet stretches at rate 2, of mean length 1 each:

    >>> law = MAP(d0=[[-5, 1], [1, -3]], d1=[[4, 0], [0, 2]])
    >>> round(1 / law.mean, 12)
    3.0
    """

    d0: tuple[tuple[float, ...], ...]  # Rates of moves without an arrival, >= 0 off the diagonal. [1 / time]
    d1: tuple[tuple[float, ...], ...]  # Rates of moves with an arrival, >= 0; the rows of d0 + d1 sum to 0

    @classmethod
    def mmpp(cls, *, generator: Any, rates: Any) -> MAP:
        """Return the Poisson process whose rate follows a Markov chain, both in rates per unit of time.

        Examples
        --------
        >>> round(MAP.mmpp(generator=[[-1, 1], [1, -1]], rates=[4.0, 2.0]).rate, 12)
        3.0
        """
        chain = square("generator", generator, None)
        zero_sums("generator", chain)
        marks = np.diag(numbers("rates", checks.nonnegative, rates, len(chain)))
        return cls(d0=nested(chain - marks), d1=nested(marks))

    def __post_init__(self) -> None:
        quiet = square("d0", self.d0, None)
        marks = square("d1", self.d1, len(quiet))
        off_diagonal("d0", quiet)
        if np.any(marks < 0):
            raise ValueError(f"d1 must be >= 0, got {float(marks.min())!r}")
        zero_sums("d0 + d1", quiet + marks)
        keep(self, d0=nested(quiet), d1=nested(marks))
        if not ((self.stationary @ marks).sum() > 0 and np.linalg.matrix_rank(quiet) == len(quiet)):
            raise ValueError("d1 must bring an arrival from every phase sooner or later, got phases without")

    @property
    def stationary(self) -> FloatArray:
        """Share of time in each phase."""
        return stationary(np.array(self.d0) + np.array(self.d1))

    @property
    def start(self) -> FloatArray:
        """Law of the phase right after an arrival."""
        flow = self.stationary @ np.array(self.d1)
        return flow / flow.sum() if flow.sum() > 0 else flow

    @property
    def rate(self) -> float:
        """Arrivals per unit of time [1 / time]."""
        return 1 / self.mean

    @property
    def mean(self) -> float:
        """Mean gap."""
        return float(1 / (self.stationary @ np.array(self.d1)).sum())

    @property
    def scv(self) -> float:
        """Squared coefficient of variation of a gap; gaps may be correlated besides."""
        rates = -np.array(self.d0)
        second = 2 * self.start @ np.linalg.solve(rates, np.linalg.solve(rates, np.ones(len(rates))))
        return float(second / self.mean**2 - 1)


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
        return expm1(logarithm) if logarithm < 700 else np.inf


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
        return 1 / (self.shape * (self.shape - 2)) if self.shape > 2 else np.inf


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
