"""Laws of times made of exponential phases; the public place of them is `qmodels.systems.laws.times`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.laws.fields import (
    SUM_TOLERANCE,
    keep,
    nested,
    number,
    numbers,
    off_diagonal,
    square,
    stationary,
    weights,
    zero_sums,
)
from qmodels.systems.spec.docstrings import Documented


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
