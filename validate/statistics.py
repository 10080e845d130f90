"""What a few finite runs say about the steady state: intervals, warm-up and quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmodels import _check
from qmodels._check import FloatArray

INF = float("inf")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A best value with the interval that covers the truth with the stated confidence.

    Examples
    --------
    >>> Estimate(low=1.5, best=2.0, high=2.5, confidence=0.95)
    Estimate(low=1.5, best=2.0, high=2.5, confidence=0.95)
    >>> 1.7 in Estimate(low=1.5, best=2.0, high=2.5, confidence=0.95)
    True
    """

    low: float
    best: float
    high: float
    confidence: float

    def __post_init__(self) -> None:
        if not self.low <= self.best <= self.high:
            raise ValueError(
                f"estimate must have low <= best <= high, got {self.low!r}, {self.best!r}, {self.high!r}"
            )

    @property
    def half_width(self) -> float:
        """Half the interval's width."""
        return 0.0 if self.low == self.high else (self.high - self.low) / 2

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the best value; ``inf`` where that is 0 or infinite."""
        if self.low == self.high and np.isfinite(self.best):
            return 0.0
        return self.half_width / abs(self.best) if self.best and np.isfinite(self.best) else INF

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    def __float__(self) -> float:
        return self.best


def exactly(value: float, *, confidence: float) -> Estimate:
    """Return a value without spread."""
    return Estimate(low=value, best=value, high=value, confidence=confidence)


def mean_interval(values: npt.ArrayLike, *, confidence: float) -> Estimate:
    """Return the Student-t interval of the mean of independent replications.

    Parameters
    ----------
    values : array_like
        One value of each replication, at least two; any infinite one makes the mean infinite.
    confidence : float
        Probability that the interval covers the mean, in (0, 1).

    Notes
    -----
    Exact for normal values; replications are averages of many observations.

    Examples
    --------
    >>> estimate = mean_interval([9.0, 10.0, 11.0], confidence=0.95)
    >>> round(estimate.low, 3), estimate.best, round(estimate.high, 3)
    (7.516, 10.0, 12.484)
    """
    array = np.asarray(values, dtype=float)
    if np.any(np.isinf(array)):
        return exactly(INF, confidence=confidence)
    return _around(float(array.mean()), array - array.mean(), confidence)


def ratio_interval(numerators: npt.ArrayLike, denominators: npt.ArrayLike, *, confidence: float) -> Estimate:
    r"""Return the interval of a ratio of means, such as conflicts over accesses.

    Parameters
    ----------
    numerators, denominators : array_like
        Totals of each replication. With no denominator at all the ratio is 0.
    confidence : float
        Probability that the interval covers the ratio.

    Notes
    -----
    With :math:`r = \sum y / \sum x` the spread is that of the residuals
    :math:`(y - r x) / \bar x` (the classical ratio estimator); the bias is of the order of
    one over the replications times the squared spread.

    Examples
    --------
    >>> ratio_interval([10, 12, 11], [100, 100, 100], confidence=0.95).best
    0.11
    """
    above, below = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    if below.sum() == 0:
        return exactly(0.0, confidence=confidence)
    best = float(above.sum() / below.sum())
    return _around(best, (above - best * below) / below.mean(), confidence)


def probability_interval(events: npt.ArrayLike, trials: npt.ArrayLike, *, confidence: float) -> Estimate:
    """Return the interval of a probability, inside [0, 1].

    Where nothing (or everything) happened the spread of the replications says nothing; the
    interval is then the exact one of independent trials.

    Examples
    --------
    >>> round(probability_interval([0, 0], [500, 500], confidence=0.95).high, 5)
    0.00299
    """
    total, happened = float(np.sum(trials)), float(np.sum(events))
    estimate = ratio_interval(events, trials, confidence=confidence)
    unseen = -float(np.expm1(np.log1p(-confidence) / total)) if total else 0.0
    low, high = max(estimate.low, 0.0), min(estimate.high, 1.0)
    if happened == 0:
        high = unseen
    if total and happened == total:
        low = 1 - unseen
    return Estimate(low=low, best=estimate.best, high=high, confidence=confidence)


def _around(best: float, residuals: FloatArray, confidence: float) -> Estimate:
    replications = residuals.size
    if replications < 2:
        raise ValueError(f"replications must be a whole number >= 2, got {replications!r}")
    from scipy.special import stdtrit

    error = np.sqrt(np.sum(residuals**2) / (replications * (replications - 1)))
    half = float(stdtrit(replications - 1, (1 + confidence) / 2) * error)
    return Estimate(low=best - half, best=best, high=best + half, confidence=confidence)


def warm_up(series: npt.ArrayLike, *, batch: int = 5) -> int:
    r"""Return how many leading observations to drop, by the marginal standard error rule.

    Parameters
    ----------
    series : array_like
        Observations in order.
    batch : int
        Observations averaged into one before the rule is applied (MSER-5).

    Returns
    -------
    int
        At most half of the series; exactly half means that no steady state was seen.

    Notes
    -----
    Drops the :math:`d` leading batch means that minimise
    :math:`\sum_{i > d} (y_i - \bar y_d)^2 / (n - d)^2` over :math:`d \le n / 2`.

    References
    ----------
    .. [1] K. P. White, M. J. Cobb, S. C. Spratt, "A comparison of five steady-state truncation
       heuristics for simulation", Winter Simulation Conference, 2000.

    Examples
    --------
    >>> warm_up([100.0] * 50 + [1.0, 2.0] * 500)
    50
    """
    _check.count("batch", batch)
    array = np.asarray(series, dtype=float)
    count = array.size // batch
    if count < 2:
        return 0
    means = array[: count * batch].reshape(count, batch).mean(axis=1)
    means = means - means.mean()
    kept = np.arange(count, 0, -1)
    sums = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum((means**2)[::-1])[::-1]
    error = (squares - sums**2 / kept) / kept**2
    return int(np.argmin(error[: count // 2 + 1])) * batch


class Histogram:
    """Counts on a logarithmic scale: quantiles in constant memory.

    A quantile is off by at most ``error`` relative to the order statistic it stands for, for
    values from ``smallest`` to ``largest``; values outside are counted at the ends.

    Examples
    --------
    >>> histogram = Histogram()
    >>> histogram.add(np.arange(1.0, 1001.0))
    >>> abs(histogram.quantile(0.99) / 990 - 1) <= histogram.error
    True
    """

    def __init__(self, *, smallest: float = 1e-3, largest: float = 1e12, error: float = 0.0025) -> None:
        self.error = error
        self._offset = np.log(smallest)
        self._width = 2 * np.log1p(error)
        self.counts = np.zeros(
            int(np.ceil((np.log(largest) - self._offset) / self._width)) + 1, dtype=np.int64
        )

    def add(self, values: FloatArray) -> None:
        """Count values."""
        with np.errstate(divide="ignore"):
            bins = np.floor((np.log(values) - self._offset) / self._width)
        self.counts += np.bincount(
            np.clip(bins, 0, self.counts.size - 1).astype(np.int64), minlength=self.counts.size
        )

    def quantile(self, probability: float) -> float:
        """Return the smallest value that this share of the values does not exceed; ``inf`` if empty."""
        _check.probability("probability", probability)
        below = np.cumsum(self.counts)
        if below[-1] == 0:
            return INF
        position = int(np.searchsorted(below, max(1, np.ceil(probability * below[-1]))))
        return float(np.exp(self._offset + (position + 0.5) * self._width))
