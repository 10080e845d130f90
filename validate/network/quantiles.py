"""Quantiles of the times in a queueing network, from what its replications counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray
from validate.engine.histogram import BINS
from validate.estimates.statistics import Estimate, Histogram, exactly, quantile_interval

INF = float("inf")


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """Histograms of all times of all replications, without their empty bins."""

    unit: float  # unit of the histograms [time]
    # Which histograms to add up for ``waiting`` and ``response`` by place and ``system response`` by class.
    rows: Mapping[str, tuple[int, ...]]
    # Per replication the bins that are not empty, counted through all histograms, and their counts.
    runs: tuple[tuple[IntArray, IntArray], ...]

    def histograms(self, what: str) -> list[Histogram]:
        """Return one histogram per replication."""
        found = []
        for bins, counts in self.runs:
            mine = np.isin(bins // BINS, self.rows[what])
            merged = np.bincount(bins[mine] % BINS, weights=counts[mine], minlength=BINS)
            found.append(Histogram(unit=self.unit, counts=merged.astype(np.int64)))
        return found


def time_quantile(
    counted: Counted,
    overloaded: tuple[str, ...],
    stable: bool | None,
    confidence: float,
    what: str,
    probability: float,
) -> Estimate:
    """Return a quantile of a time, its interval the error of the histogram's bins included.

    Parameters
    ----------
    counted, overloaded, stable, confidence
        What was found.
    what : str
        ``"waiting"``, ``"response"`` or ``"system response"``, with a place in brackets as in the
        metrics' names: ``"response[disk, read]"``.
    probability : float
        The quantile's order, in [0, 1].

    Returns
    -------
    Estimate
        ``inf`` where the place is overloaded.

    Raises
    ------
    ValueError
        If there is no such time.
    """
    if what not in counted.rows:
        close = checks.nearest(what, counted.rows)
        raise ValueError(f"what must be a time of the network, got {what!r}{close}")
    place = what.partition("[")[2].rstrip("]").split(", ")[0]
    if stable is False and (place in overloaded or what.startswith("system") or not place):
        return exactly(INF, confidence=confidence)
    return quantile_interval(counted.histograms(what), probability, confidence=confidence)
