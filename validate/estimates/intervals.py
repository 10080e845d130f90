"""Confidence intervals of a mean, a ratio or a probability from a few independent runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.estimate import Estimate, exactly
from validate.engine.histogram import INF, Histogram, merged


def mean_interval(values: npt.ArrayLike, *, confidence: float) -> Estimate:
    """Return the Student-t interval of the mean of independent replications.

    ``values``: one value of each replication, at least two; any infinite one makes the mean infinite;
    ``confidence``: probability that the interval covers the mean, in (0, 1).

    Exact for normal values; replications are averages of many observations.

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

    ``numerators``, ``denominators``: totals of each replication. With no denominator at all the ratio is 0;
    ``confidence``: probability that the interval covers the ratio.

    With :math:`r = \sum y / \sum x` the spread is that of the residuals
    :math:`(y - r x) / \bar x` (the classical ratio estimator); the bias is of the order of
    one over the replications times the squared spread.

    >>> ratio_interval([10, 12, 11], [100, 100, 100], confidence=0.95).best
    0.11
    """
    above, below = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    if below.sum() == 0:
        return exactly(0.0, confidence=confidence)
    best = float(above.sum() / below.sum())
    return _around(best, (above - best * below) / below.mean(), confidence)


def busy_interval(busy: npt.ArrayLike, times: npt.ArrayLike, *, confidence: float) -> Estimate:
    """Return the interval of a busy fraction, inside [0, 1]: a service cut by the end may take it past.

    >>> busy_interval([9.0, 11.0], [10.0, 10.0], confidence=0.95).high
    1.0
    """
    found = ratio_interval(busy, times, confidence=confidence)
    low, best, high = (min(max(value, 0.0), 1.0) for value in (found.low, found.best, found.high))
    return Estimate(low=low, best=best, high=high, confidence=confidence)


def probability_interval(events: npt.ArrayLike, trials: npt.ArrayLike, *, confidence: float) -> Estimate:
    """Return the interval of a probability, inside [0, 1].

    Where nothing (or everything) happened the spread of the replications says nothing; the
    interval is then the exact one of independent trials.

    >>> round(probability_interval([0, 0], [500, 500], confidence=0.95).high, 5)
    0.00299
    """
    total, happened = float(np.asarray(trials).sum()), float(np.asarray(events).sum())
    estimate = ratio_interval(events, trials, confidence=confidence)
    unseen = -float(np.expm1(np.log1p(-confidence) / total)) if total else 0.0
    low, high = max(estimate.low, 0.0), min(estimate.high, 1.0)
    if happened == 0:
        high = unseen
    if total and happened == total:
        low = 1 - unseen
    return Estimate(low=low, best=estimate.best, high=high, confidence=confidence)


def quantile_interval(histograms: Sequence[Histogram], probability: float, *, confidence: float) -> Estimate:
    r"""Return the interval of a quantile from the histograms of independent replications.

    ``histograms``: one of each replication, all of the same unit; ``probability``: the quantile's order, in
    [0, 1]; ``confidence``: probability that the interval covers the quantile, in (0, 1). Returns the quantile
    of all values together. Its interval includes the relative error of the bins; its upper end is ``inf``
    where the values do not reach far enough to bound it.

    Woodruff's interval [1]_: the share of values below the estimate varies between replications;
    the interval of that share, a ratio, is mapped back through the merged distribution. Values of
    one replication may be correlated; the interval is at least that of independent ones, which
    matters where few values lie beyond the quantile. Approximate, as the ratio's interval is.

    References
    ----------
    .. [1] R. S. Woodruff, "Confidence intervals for medians and other position measures", Journal of
       the American Statistical Association 47, 1952, 635-646.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> runs = [Histogram() for _ in range(10)]
    >>> for run in runs:
    ...     run.add(rng.exponential(size=20_000))
    >>> estimate = quantile_interval(runs, 0.99, confidence=0.999)
    >>> np.log(100) in estimate, estimate.relative_half_width < 0.03
    (True, True)
    """
    checks.probability("probability", probability)
    whole = merged(histograms)
    best = whole.quantile(probability)
    if not np.isfinite(best):
        return exactly(best, confidence=confidence)
    below = [h.share_up_to(best) * h.total for h in histograms]
    share = ratio_interval(below, [h.total for h in histograms], confidence=confidence)
    half = max(share.half_width, _independent_half_width(probability, whole.total, len(below), confidence))
    low, high = probability - half, probability + half
    return Estimate(
        low=whole.quantile(max(low, 0.0)) * (1 - whole.error),
        best=best,
        high=whole.quantile(high) * (1 + whole.error) if high < 1 else INF,
        confidence=confidence,
    )


def _independent_half_width(probability: float, values: int, replications: int, confidence: float) -> float:
    from scipy.special import stdtrit

    spread = np.sqrt(probability * (1 - probability) / values)
    return float(stdtrit(replications - 1, (1 + confidence) / 2) * spread)


def _around(best: float, residuals: FloatArray, confidence: float) -> Estimate:
    replications = residuals.size
    if replications < 2:
        raise ValueError(f"replications must be a whole number >= 2, got {replications!r}")
    from scipy.special import stdtrit

    error = np.sqrt(np.sum(residuals**2) / (replications * (replications - 1)))
    half = float(stdtrit(replications - 1, (1 + confidence) / 2) * error)
    return Estimate(low=best - half, best=best, high=best + half, confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class PairedDifference:
    """The difference of two designs, ``second - first``."""

    difference: Estimate  # mean difference with its interval
    # Variance of the difference of independent runs over that of the paired runs: how many times more
    # replications would be needed without common random numbers. ``inf`` where the pairs do not vary, 1 where
    # nothing varies.
    gain: float

    @property
    def decided(self) -> bool:
        """Whether the interval leaves no doubt which design has the larger value."""
        return 0.0 not in self.difference


def paired_difference(first: npt.ArrayLike, second: npt.ArrayLike, *, confidence: float) -> PairedDifference:
    r"""Compare two designs replication by replication.

    ``first``, ``second``: a metric of each replication of either design; the i-th of both ran with the same
    random numbers. At least two pairs, all finite; ``confidence``: probability that the interval covers the
    difference, in (0, 1).

    Student's interval of the differences, valid whatever the correlation. The gain estimates
    :math:`(\sigma_1^2 + \sigma_2^2) / \sigma_{2-1}^2`.

    >>> pair = paired_difference([9.0, 10.0, 11.0], [9.5, 10.4, 11.6], confidence=0.95)
    >>> round(pair.difference.best, 3), pair.decided, pair.gain > 100
    (0.5, True, True)
    """
    one, other = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if one.shape != other.shape:
        raise ValueError(f"first and second must have as many replications, got {one.size} and {other.size}")
    if not (np.all(np.isfinite(one)) and np.all(np.isfinite(other))):
        raise ValueError("first and second must be finite, got an unstable replication")
    pairs = other - one
    difference = mean_interval(pairs, confidence=confidence)
    alone, paired = float(one.var() + other.var()), float(pairs.var())
    return PairedDifference(
        difference=difference, gain=alone / paired if paired > 0 else (float("inf") if alone > 0 else 1.0)
    )
