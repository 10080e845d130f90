"""Counts on a logarithmic scale, the same in kernels and in NumPy: quantiles in constant memory."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray

INF = float("inf")

MANTISSA_BITS = 8
"""Every power of two is cut into 2**8 bins of equal width."""
SHIFT = 52 - MANTISSA_BITS
"""The bits of a double that a bin does not look at."""
FIRST = (1023 - 20) << MANTISSA_BITS
"""The leading bits of the smallest value told apart from 0: 2**-20."""
BINS = (60 << MANTISSA_BITS) + 1
"""Bin 0 for everything below 2**-20, then sixty powers of two; what is larger goes to the last."""


def bins_of(values: npt.ArrayLike) -> IntArray:
    """Return the bin of each value: the leading bits of its floating-point representation."""
    bits = np.asarray(values, dtype=np.float64).view(np.int64) >> SHIFT
    return np.clip(bits - (FIRST - 1), 0, BINS - 1)


def middle_of(position: int) -> float:
    """Return the value that stands for a bin; 0 for the first."""
    if position == 0:
        return 0.0
    edges = (np.array([position, position + 1]) + (FIRST - 1)) << SHIFT
    low, high = edges.view(np.float64)
    # The harmonic mean of the edges: equal relative errors at both.
    return float(2 * low * high / (low + high))


class Histogram:
    """Counts of non-negative values on a logarithmic scale.

    Parameters
    ----------
    unit : float
        What a count of 1 means: values are divided by it. A typical value (a mean service time)
        places the scale. [unit of the values]
    counts : array_like of int, optional
        Counts of the `BINS` bins, as a kernel filled them.

    Notes
    -----
    A quantile is off by at most ``error`` relative to the order statistic it stands for, for values
    from ``unit * 2**-20`` to ``unit * 2**40`` (1e-6 to 1e12); smaller values count as 0, larger ones
    at the end. Histograms of the same unit add up.

    Examples
    --------
    >>> histogram = Histogram()
    >>> histogram.add(np.arange(1.0, 1001.0))
    >>> abs(histogram.quantile(0.99) / 990 - 1) <= histogram.error
    True
    >>> (histogram + histogram).total
    2000
    """

    error = 1 / (2 ** (MANTISSA_BITS + 1) + 1)

    def __init__(self, *, unit: float = 1.0, counts: npt.ArrayLike | None = None) -> None:
        self.unit = float(checks.positive("unit", unit))
        self.counts: IntArray = np.zeros(BINS, dtype=np.int64)
        if counts is not None:
            given = np.asarray(counts, dtype=np.int64)
            if given.shape != (BINS,):
                raise ValueError(f"counts must have shape ({BINS},), got {given.shape}")
            self.counts += given

    def add(self, values: FloatArray) -> None:
        """Count values."""
        self.counts += np.bincount(bins_of(np.asarray(values) / self.unit), minlength=BINS)

    def __add__(self, other: Histogram) -> Histogram:
        if other.unit != self.unit:
            raise ValueError(f"unit must be that of the other histogram, {other.unit!r}, got {self.unit!r}")
        return Histogram(unit=self.unit, counts=self.counts + other.counts)

    @property
    def total(self) -> int:
        """Number of values counted."""
        return int(self.counts.sum())

    def quantile(self, probability: float) -> float:
        """Return the smallest value that this share of the values does not exceed; ``inf`` if empty."""
        checks.probability("probability", probability)
        below = np.cumsum(self.counts)
        if below[-1] == 0:
            return INF
        return self.unit * middle_of(int(np.searchsorted(below, max(1, np.ceil(probability * below[-1])))))

    def share_up_to(self, value: float) -> float:
        """Return the share of the values in the bin of ``value`` or below it; 0 if empty."""
        last = int(bins_of(value / self.unit))
        return float(self.counts[: last + 1].sum() / max(1, self.total))


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """Return the sum of histograms of the same unit."""
    first, *others = histograms
    total = Histogram(unit=first.unit, counts=first.counts)
    for other in others:
        total = total + other
    return total
