"""What the simulation of a DRAM system found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray
from qmodels.systems.memory.dram_system import DRAM_METRICS
from validate.estimates.metric_result import MetricResult
from validate.estimates.statistics import INF, Estimate, exactly, ratio_interval


@dataclass(frozen=True, kw_only=True, eq=False)
class DramSimulation(MetricResult):
    """Estimates of a DRAM system's metrics.

    Parameters
    ----------
    metrics : mapping of str to Estimate
        By name, see `DRAM_METRICS`, and the parts of the read latency as ``latency_bank`` and so on;
        also attributes of the result. Latencies of an overloaded system are ``inf``.
    stable : bool
        Whether all channels kept up for as long as the runs lasted.
    overloaded : tuple of int
        The channels that did not.
    channel_share : tuple of float
        Share of the accesses of each channel.
    counts : tuple of array
        Of each replication, reads and writes by latency in cycles, for `quantile`.
    added : int
        The controller's time, which the counts do not include. [cycles]
    accesses, replications, seed : int
        What was run.
    served : int
        Accesses simulated in all.
    seconds : float
        Wall-clock time.
    confidence : float
        Coverage of the intervals.
    """

    metrics: Mapping[str, Estimate]
    stable: bool
    overloaded: tuple[int, ...]
    channel_share: tuple[float, ...]
    counts: tuple[IntArray, ...]
    added: int
    accesses: int
    replications: int
    seed: int
    served: int
    seconds: float
    confidence: float

    def quantile(self, probability: float, *, write: bool = False) -> Estimate:
        """Return a quantile of the read (or write) latency. [cycles].

        Parameters
        ----------
        probability : float
            Its order, in [0, 1].
        write : bool
            Whether of the writes.

        Returns
        -------
        Estimate
            The quantile of all replications together, its interval from how much the share of latencies
            below it varies between them (see `validate.estimates.intervals.quantile_interval`); ``inf``
            where the system is overloaded or nothing was counted.
        """
        checks.probability("probability", probability)
        rows = [count[int(write)] for count in self.counts]
        size = max(row.size for row in rows)
        below = np.cumsum([np.pad(row, (0, size - row.size)) for row in rows], axis=1)
        together = below.sum(axis=0)
        if not self.stable or together[-1] == 0:
            return exactly(INF, confidence=self.confidence)

        def at(order: float) -> float:
            wanted = min(max(order, 0.0), 1.0) * together[-1]
            return float(np.searchsorted(together, max(wanted, 1)) + self.added)

        best = at(probability)
        share = ratio_interval(
            below[:, int(best) - self.added], below[:, -1], confidence=self.confidence
        ).half_width
        return Estimate(
            low=min(at(probability - share), best),
            best=best,
            high=max(at(probability + share), best),
            confidence=self.confidence,
        )

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric."""
        return DRAM_METRICS[metric].unit if metric in DRAM_METRICS else "cycles"

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain dictionaries, numbers and words; no counts."""
        return {
            "metrics": {row["metric"]: row for row in self.rows()},
            "stable": self.stable,
            "overloaded": list(self.overloaded),
            "channel_share": list(self.channel_share),
            "accesses": self.accesses,
            "replications": self.replications,
            "seed": self.seed,
            "served": self.served,
            "seconds": self.seconds,
            "confidence": self.confidence,
        }

    def __repr__(self) -> str:
        lines = [
            f"DRAM, simulated: {self.replications} replications of {self.accesses} accesses, "
            f"seed {self.seed}; {self.confidence:.4g} intervals"
        ]
        lines += self.metric_lines()
        if not self.stable:
            lines.append(f"  overloaded channels: {', '.join(map(str, self.overloaded))}")
        return "\n".join(lines)
