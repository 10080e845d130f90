"""What the simulation of a DRAM system found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray
from validate.estimates.simulation import Simulation
from validate.estimates.statistics import INF, Estimate, exactly, ratio_interval


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DramSimulation(Simulation):
    """Estimates of a DRAM system's metrics; see `Simulation` for what all have.

    Latency parts are those of the model, but for its wait behind batches of writes, which is in the others.
    """

    overloaded: tuple[int, ...] = ()  # The channels that did not keep up for as long as the runs lasted
    channel_share: tuple[float, ...] = ()  # Share of the accesses of each channel
    # Of each replication, reads and writes by latency in cycles, without the controller's time
    counts: tuple[IntArray, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What speaks against the intervals, and which channels did not keep up."""
        full = [f"overloaded channels: {', '.join(map(str, self.overloaded))}"] if self.overloaded else []
        return (*super().notes, *full)

    def quantile(self, probability: float, *, write: bool = False) -> Estimate:
        """Return a quantile of the read (or write) latency. [ns].

        Parameters
        ----------
        probability : float
            Its order, in [0, 1].
        write : bool
            Whether of the writes.

        Returns
        -------
        Estimate
            ``inf`` where the system is overloaded or nothing was counted, see `latency_quantile`.

        Raises
        ------
        ValueError
            If the probability is not in that range, or the result was loaded from a file.
        """
        if not self.counts:
            raise ValueError("quantile needs a result that was simulated, got one from a file")
        if not self.stable:
            return exactly(INF, confidence=self.confidence)
        rows, added = [count[int(write)] for count in self.counts], self.spec.controller_cycles
        found = latency_quantile(rows, probability, added=added, confidence=self.confidence)
        return found.scaled(1 / self.spec.clock_ghz)


def latency_quantile(
    rows: Sequence[IntArray], probability: float, *, added: int, confidence: float
) -> Estimate:
    """Return a quantile of latencies counted by cycle, ``inf`` where there are none. [cycles].

    It is that of all replications together, its interval from how much the share of latencies below it
    varies between them (see `validate.estimates.intervals.quantile_interval`).
    """
    checks.probability("probability", probability)
    size = max(row.size for row in rows)
    below = np.cumsum([np.pad(row, (0, size - row.size)) for row in rows], axis=1)
    together = below.sum(axis=0)
    if together[-1] == 0:
        return exactly(INF, confidence=confidence)

    def at(order: float) -> float:
        wanted = min(max(order, 0.0), 1.0) * together[-1]
        return float(np.searchsorted(together, max(wanted, 1)) + added)

    best = at(probability)
    share = ratio_interval(below[:, int(best) - added], below[:, -1], confidence=confidence).half_width
    return Estimate(
        low=min(at(probability - share), best),
        best=best,
        high=max(at(probability + share), best),
        confidence=confidence,
    )
