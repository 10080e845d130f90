"""Two designs under the same random numbers, and runs with mirrored ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmodels.systems.spec.estimate import Estimate
from validate.estimates.intervals import mean_interval


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


def antithetic_interval(plain: npt.ArrayLike, mirrored: npt.ArrayLike, *, confidence: float) -> Estimate:
    """Return the interval of a mean from pairs of runs, the second with the mirrored random numbers.

    ``plain``, ``mirrored``: a metric of each run with uniform numbers ``u`` and of its twin with ``1 - u``.
    At least two pairs; ``confidence``: probability that the interval covers the mean, in (0, 1).

    The means of the pairs are independent, the runs of a pair are not: only pairs count.

    >>> antithetic_interval([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], confidence=0.95).half_width
    0.0
    """
    one, other = np.asarray(plain, dtype=float), np.asarray(mirrored, dtype=float)
    if one.shape != other.shape:
        raise ValueError(f"plain and mirrored must have as many runs, got {one.size} and {other.size}")
    return mean_interval((one + other) / 2, confidence=confidence)
