"""Confidence intervals from a few independent runs, and when these are enough or say nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


FEWEST_REPLICATIONS = 10
"""Replications before their spread may stop a simulation."""
FEWEST_OBSERVATIONS = 500
"""Observations after the warm-up below which a run is short."""
GROWTH_OF_INSTABILITY = 1.5
"""Ratio of late to early numbers above which growth is not a rest of the warm-up.

A number that grows like the time reaches 3 between the second and the last fifth of a run, one that
grows like its square root (a load of exactly 1) reaches 1.7.
"""

OVERLOAD_GROWTH = 0.005
"""Jobs piled up for each that arrived above which a system is taken to be overloaded."""

PILE = 6.0
"""Growth of a pile, in square roots of the jobs that left meanwhile, that is no fluctuation."""
CONFIDENCE = 0.99
"""How sure a growth must be."""
POINTS = 32
"""Stretches of a run that are looked at for whether its mean wanders."""


def more_replications(
    estimates: Iterable[Estimate],
    *,
    replications: int,
    precision: float,
    minimum: int = FEWEST_REPLICATIONS,
    maximum: int | None = None,
) -> int:
    r"""Replications to add before every estimate is precise enough.

    ``estimates``: student-t intervals of all that must be precise, from the replications so far. One that is
    infinite cannot become precise and is left out; one without an upper end takes as many as ``maximum``
    allows; ``precision``: relative half-width asked for, > 0; ``minimum``: replications before the rule may
    say stop; at least 2; ``maximum``: replications beyond which none are added. Returns 0 to stop. At most as
    many as there are, so that a poor first guess of the spread costs little.

    The half-width shrinks like :math:`t_{n-1} / \sqrt n`. A rule that looks at the spread tends to
    stop where it happens to be small, so that the interval covers a little less often than it says;
    with 10 replications at least, 95 % intervals of normal and moderately skewed values covered
    92.3 to 96.3 %, and 99.9 % intervals 99.77 to 99.91 % (measured).

    >>> wide = Estimate(low=9.0, best=10.0, high=11.0, confidence=0.95)
    >>> more_replications([wide], replications=20, precision=0.08)
    10
    >>> more_replications([wide], replications=20, precision=0.1)
    0
    """
    so_far = int(checks.count("replications", replications, minimum=0))
    target = float(checks.positive("precision", precision))
    fewest = int(checks.count("minimum", minimum, minimum=2))
    limit = None if maximum is None else int(checks.count("maximum", maximum))
    if so_far < fewest:
        wanted = fewest - so_far
    else:
        wanted = max((_missing(e, so_far, target) for e in estimates), default=0)
    return wanted if limit is None else max(0, min(wanted, limit - so_far))


def _missing(estimate: Estimate, replications: int, precision: float) -> int:
    goal = precision * abs(estimate.best)
    if not np.isfinite(estimate.best) or estimate.relative_half_width <= precision:
        return 0
    if goal == 0 or not estimate.valid:
        return replications
    from scipy.special import stdtrit

    level = (1 + estimate.confidence) / 2
    counts = np.arange(replications + 1, 2 * replications + 1)
    shrink = stdtrit(counts - 1, level) / np.sqrt(counts)
    half_widths = estimate.half_width * shrink / (stdtrit(replications - 1, level) / np.sqrt(replications))
    return min(int(np.searchsorted(-half_widths, -goal)) + 1, replications)


def early_and_late(series: npt.ArrayLike) -> tuple[float, float]:
    """Return the means of the second and the last fifth of a series, for `stability`.

    >>> early_and_late(range(10))
    (2.5, 8.5)
    """
    array = np.asarray(series, dtype=float)
    checks.count("length of the series", array.size, minimum=5)
    fifth = array.size // 5
    return float(array[fifth : 2 * fifth].mean()), float(array[-fifth:].mean())


def stability(series: Iterable[npt.ArrayLike], *, left: npt.ArrayLike = np.inf) -> bool | None:
    r"""Return whether a system keeps up: true, false, or None where the runs cannot tell.

    ``series``: of each of two or more replications, what grows without end where the system does not keep up
    (jobs inside, latencies), at least 5 values at equal distances after the warm-up; ``left``: jobs that left
    meanwhile in each replication, where jobs are counted.

    False: the mean of the last fifth is above that of the second for certain (`CONFIDENCE`), and
    `GROWTH_OF_INSTABILITY` times; or in every replication by a pile that no steady queue holds.

    True: the opposite is tested as well, since what has not been seen to grow may yet do so. At a load of 1
    the number is a reflected random walk, above it has a drift besides: both wander, and von Neumann's ratio
    :math:`\sum (x_k - x_{k-1})^2 / \sum (x_k - \bar x)^2`, 2 for values that do not depend on
    each other [1]_, is small. It must be above what 99 % of such walks have (`wandering`).

    At the default lengths M/M/1 is called stable up to a load of 0.95, in half of the cases at 0.98.

    References
    ----------
    .. [1] J. von Neumann, "Distribution of the ratio of the mean square successive difference to the
       variance", *Annals of Mathematical Statistics* 12(4), 1941, pp. 367-395.

    Examples
    --------
    >>> grows, steady = [[10.0 * k + r for k in range(50)] for r in range(3)], [[4.0, 5.1] * 20] * 2
    >>> stability(grows), stability(steady), stability([[1.0, 3.0, 4.0, 4.0, 3.0]] * 2)
    (False, True, None)
    """
    runs = [np.asarray(one, dtype=float) for one in series]
    early, late = np.array([early_and_late(one) for one in runs]).T
    growth = mean_interval(late - early, confidence=CONFIDENCE)
    much = late > GROWTH_OF_INSTABILITY * early
    # Two replications tell nothing for certain, unless jobs pile up that a steady queue never holds.
    if np.all(much & (late - early > PILE * np.sqrt(left))):
        return False
    if growth.low > 0:
        return False if late.sum() > GROWTH_OF_INSTABILITY * early.sum() else None
    points = min(POINTS, *(one.size for one in runs))
    means = np.array([[part.mean() for part in np.array_split(one, points)] for one in runs])
    steps, spread = np.diff(means, axis=1), means - means.mean(axis=1, keepdims=True)
    return True if np.sum(steps**2) >= wandering(points, len(runs)) * np.sum(spread**2) else None


def periodic_stability(growth: npt.ArrayLike, *, confidence: float = 0.99) -> bool | None:
    """Return whether a system under periodic traffic keeps up, or None where the runs cannot tell.

    ``growth``: of each replication, by how much the number of jobs inside grew from an instant of one
    rotation to the same of a later one, for each job that came meanwhile. False where it grew for certain
    (``confidence``) by more than `OVERLOAD_GROWTH`, true where it did so in no replication.

    >>> [periodic_stability(found) for found in ([0.02, 0.021, 0.022], [1e-4, -1e-4], [0.0, 0.02])]
    [False, True, None]
    """
    found = mean_interval(np.asarray(growth, dtype=float), confidence=confidence)
    if found.best > OVERLOAD_GROWTH and found.low > 0:
        return False
    return True if np.asarray(growth).max() < OVERLOAD_GROWTH else None


def wandering(points: int, replications: int) -> float:
    """Return the ratio that 99 % of replicated random walks stay below, see `stability`.

    Fitted to 40,000 walks of 640 normal steps reflected at 0, without the first fifth, averaged in 16 and 32
    points, 2 to 64 of them together: 0 to 6 % above (``tests/validate/test_statistics_stopping.py`` draws
    them).

    >>> round(wandering(32, 8), 3)
    0.359
    """
    return (0.17 + 0.88 * replications**-0.74) * (POINTS / points) ** 0.9


def worst(verdicts: Iterable[bool | None]) -> bool | None:
    """Return whether all keep up: false if one does not, None if one cannot tell.

    >>> worst([True, None]), worst([None, False]), worst([])
    (None, False, True)
    """
    found = set(verdicts)
    return False if False in found else None if None in found else True
