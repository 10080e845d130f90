"""Birth-death chains, finite and infinite, without overflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.markov.words import described
from qmodels.numerics.digits import cumulative_ratio

RateLaw = Callable[[npt.NDArray[np.float64]], Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class BirthDeathResult:
    r"""Steady state of a birth-death chain.

    Parameters
    ----------
    stable : bool
        Whether a steady state exists.
    probabilities, log_probabilities : array
        :math:`p_0, p_1, \dots` of the states held one by one and their logarithms, finite also
        where the probability underflows (0 and ``-inf`` where no steady state exists).
    tail_ratio : float
        From the last of these states on :math:`p_{n+1} = r\,p_n`, an exact geometric tail; 0 if the
        chain ends there.
    truncation_bound : float
        Bound on the probability of the states left out, 0 where nothing is left out.
    throughput : float
        Mean rate of births, which equals that of deaths; where no steady state exists, the
        death rate of the highest state known. [1 / time]
    """

    stable: bool
    probabilities: FloatArray
    log_probabilities: FloatArray
    tail_ratio: float
    truncation_bound: float
    throughput: float

    def probability(self, n: npt.ArrayLike) -> FloatArray:
        """Return the probability of state n, also in the geometric tail."""
        state = checks.count("n", n, minimum=0)
        last = self.probabilities.size - 1
        beyond = np.maximum(state - last, 0)
        return (self.probabilities[np.minimum(state, last)] * self.tail_ratio**beyond)[()]

    def tail(self, n: npt.ArrayLike) -> FloatArray:
        """Return the probability of the states n and above (0 where no steady state exists)."""
        state = checks.count("n", n, minimum=0)
        last = self.probabilities.size - 1
        sums = np.cumsum(self._with_tail[::-1])[::-1]
        beyond = np.maximum(state - last, 0)
        return (sums[np.minimum(state, last)] * self.tail_ratio**beyond)[()]

    @property
    def mean_number(self) -> float:
        """Mean state; ``inf`` where no steady state exists."""
        return self._moments[0]

    @property
    def number_variance(self) -> float:
        """Variance of the state; ``inf`` where no steady state exists."""
        return self._moments[1]

    @cached_property
    def _with_tail(self) -> FloatArray:
        weights = self.probabilities.copy()
        weights[-1] /= 1.0 - self.tail_ratio if self.stable else 1.0
        return weights

    @cached_property
    def _moments(self) -> tuple[float, float]:
        if not self.stable:
            return np.inf, np.inf
        weights = self._with_tail
        n = np.arange(weights.size, dtype=float)
        r = self.tail_ratio
        # Within the tail the state is last + G with G geometric, mean r / (1 - r).
        extra = r / (1.0 - r)
        mean = float(weights @ n + weights[-1] * extra)
        spread = weights @ (n - mean) ** 2 + weights[-1] * (2 * (n[-1] - mean) * extra + extra**2)
        return mean, float(spread + weights[-1] * r / (1.0 - r) ** 2)


@described("kleinrock1975, ch. 3")
def birth_death(
    *, birth_rates: npt.ArrayLike, death_rates: npt.ArrayLike, repeating: bool = False
) -> BirthDeathResult:
    r"""Steady state of a birth-death chain from its rates.

    Parameters
    ----------
    birth_rates : array_like
        Rates :math:`\lambda_0, \dots, \lambda_{N-1} \ge 0` from state n to n + 1; where one is
        0 the chain ends. [1 / time]
    death_rates : array_like
        Rates :math:`\mu_1, \dots, \mu_N > 0` from state n to n - 1, as many. [1 / time]
    repeating : bool
        The last pair of rates holds for all higher states too.

    Returns
    -------
    States 0 .. N one by one and, if repeating, a geometric tail of ratio
    :math:`\lambda_{N-1}/\mu_N`. A ratio of 1 or more gives stable False, an infinite mean
    and probabilities 0.

    Raises
    ------
    If a rate is out of range or the lists differ in length.

    Notes
    -----
    .. math:: p_n = p_0 \prod_{k=1}^n \frac{\lambda_{k-1}}{\mu_k}

    with the products held as mantissa and exponent: no overflow for any number of states, and a
    relative error near 1e-13 for a million of them. Exact.

    Examples
    --------
    A buffer of 3 lines (M/M/1/3) at load 1/2, and the same without end:

    >>> birth_death(birth_rates=[1, 1, 1], death_rates=[2, 2, 2]).probabilities.round(4)
    array([0.5333, 0.2667, 0.1333, 0.0667])
    >>> birth_death(birth_rates=[1], death_rates=[2], repeating=True).mean_number
    1.0
    """
    up = checks.nonnegative("birth_rates", birth_rates)
    down = checks.positive("death_rates", death_rates)
    if up.ndim != 1 or up.shape != down.shape or up.size == 0:
        raise ValueError(
            "birth_rates and death_rates must be two lists of one length >= 1, "
            f"got shapes {up.shape} and {down.shape}"
        )
    with np.errstate(over="ignore"):
        ratio = float(up[-1] / down[-1]) if repeating else 0.0
    if not ratio < 1.0 and np.all(up > 0):
        return _unstable(up.size + 1, float(down[-1]))
    return _summed(up, down, ratio if np.all(up > 0) else 0.0)


@described("kleinrock1975, ch. 3")
def birth_death_infinite(
    *, birth_rate: RateLaw, death_rate: RateLaw, tail_tolerance: float = 1e-15, max_states: int = 1 << 24
) -> BirthDeathResult:
    r"""Steady state of an infinite birth-death chain whose rates are functions of the state.

    Parameters
    ----------
    birth_rate, death_rate : callable
        Rate from state n to n + 1 (n >= 0) and to n - 1 (n >= 1), for an array of n. [1 / time]
    tail_tolerance : float
        Largest probability of the states left out.
    max_states : int
        Largest number of states held.

    Returns
    -------
    Truncated, with a bound on what is left out. Where the ratio of the rates still is 1 or
    more at `max_states`, stable is False.

    Raises
    ------
    ValueError
        If a rate is out of range.
    RuntimeError
        If the ratio is below 1 there, but the tail is still above the tolerance.

    Notes
    -----
    The states are doubled until, with N the last one,
    :math:`p_N\, r / (1 - r) \le` `tail_tolerance`, where r is the largest
    :math:`\lambda_{n-1}/\mu_n` among the last half of the states. The bound holds if the ratio
    does not rise again beyond them; that is all the truncation assumes.

    Examples
    --------
    Jobs that give up waiting at rate 0.5 each in front of two servers (M/M/2+M) under overload:

    >>> q = birth_death_infinite(
    ...     birth_rate=lambda n: np.full(n.shape, 3.0),
    ...     death_rate=lambda n: np.minimum(n, 2.0) + 0.5 * np.maximum(n - 2.0, 0.0),
    ... )
    >>> q.stable, round(q.mean_number, 4)
    (True, 4.1537)
    """
    tolerance = float(checks.positive("tail_tolerance", tail_tolerance))
    limit = int(checks.count("max_states", max_states, minimum=4))
    size = min(64, limit)
    while True:
        n = np.arange(size, dtype=float)
        up = np.broadcast_to(checks.nonnegative("birth_rate", birth_rate(n)), n.shape)
        down = np.broadcast_to(checks.positive("death_rate", death_rate(n + 1.0)), n.shape)
        if not np.all(up > 0):
            return _summed(up, down, 0.0)
        with np.errstate(over="ignore"):
            ratio = float(np.max(up[size // 2 :] / down[size // 2 :]))
        if ratio < 1.0:
            found = _summed(up, down, 0.0)
            bound = float(found.probabilities[-1]) * ratio / (1.0 - ratio)
            if bound <= tolerance:
                return replace(found, truncation_bound=bound)
        if size >= limit:
            if ratio >= 1.0:
                return _unstable(size + 1, float(down[-1]))
            raise RuntimeError(
                f"the states beyond max_states = {limit} may hold a probability of {bound:.2g}, above "
                f"tail_tolerance {tolerance:.2g}: raise one of the two"
            )
        size = min(2 * size, limit)


def _summed(up: FloatArray, down: FloatArray, ratio: float) -> BirthDeathResult:
    products, powers = cumulative_ratio(up, down)
    mantissa, exponent = np.append(1.0, products), np.append(0, powers)
    top = exponent[mantissa > 0].max()
    weights = np.ldexp(mantissa, np.maximum(exponent - top, -2000))
    in_tail = weights[-1] / (1.0 - ratio)
    total = weights[:-1].sum() + in_tail
    weights /= total
    with np.errstate(divide="ignore"):
        logs = np.log(mantissa) + (exponent - top) * np.log(2.0) - np.log(total)
    return BirthDeathResult(
        stable=True,
        probabilities=weights,
        log_probabilities=logs,
        tail_ratio=ratio,
        truncation_bound=0.0,
        throughput=float(weights[1:] @ down + in_tail / total * ratio * down[-1]),
    )


def _unstable(states: int, death_rate: float) -> BirthDeathResult:
    return BirthDeathResult(
        stable=False,
        probabilities=np.zeros(states),
        log_probabilities=np.full(states, -np.inf),
        tail_ratio=1.0,
        truncation_bound=0.0,
        throughput=death_rate,
    )
