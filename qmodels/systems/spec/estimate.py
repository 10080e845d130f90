"""A number of which only an interval is known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A best value with the interval that covers the truth with the stated confidence.

    ``doubt`` is why nothing bounds the truth from above, in words: see `doubted`. `valid` says whether
    there is none.

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
    doubt: str = field(default="", repr=False)

    @property
    def valid(self) -> bool:
        """Whether nothing is known that speaks against the interval."""
        return not self.doubt

    def doubted(self, words: str, *, low: float | None = None) -> Estimate:
        """Return the estimate without an upper end: what makes a mean was rare or absent in the runs.

        Its best value is then probably too low, and its lower end holds unless another is given.

        Examples
        --------
        >>> Estimate(low=1.5, best=2.0, high=2.5, confidence=0.95).doubted("moment 4 is infinite")
        Estimate(low=1.5, best=2.0, high=inf, confidence=0.95)
        """
        return replace(self, low=self.low if low is None else low, high=float("inf"), doubt=words)

    def stretched(self, share: float) -> Estimate:
        """Return the estimate with one end farther from the best value: the upper for a positive share.

        Examples
        --------
        >>> Estimate(low=1.5, best=2.0, high=2.5, confidence=0.95).stretched(0.5)
        Estimate(low=1.5, best=2.0, high=2.75, confidence=0.95)
        """
        if not np.isfinite(self.best):
            return self
        low = self.low - max(-share, 0.0) * (self.best - self.low)
        return replace(self, low=low, high=self.high + max(share, 0.0) * (self.high - self.best))

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
        return self.half_width / abs(self.best) if self.best and np.isfinite(self.best) else float("inf")

    def scaled(self, factor: float) -> Estimate:
        """Return the estimate in another unit, a positive number of which makes one of this."""
        return replace(self, low=self.low * factor, best=self.best * factor, high=self.high * factor)

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    def __float__(self) -> float:
        return self.best


def exactly(value: float, *, confidence: float) -> Estimate:
    """Return a value without spread."""
    return Estimate(low=value, best=value, high=value, confidence=confidence)
