"""Writes that are forced out: how fast a channel serves waiting accesses, and how long it does not read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq

from qmodels.checks import FloatArray
from qmodels.numerics.kernels import compiled
from qmodels.systems.memory.dram_system import DramSystem, Packets

COUNTS = np.arange(128.0)
"""Waiting accesses of a direction that are told apart."""
NO_ROWS = 1e-9
"""Share of the accesses that open a row below which none does."""
LEAST_LEFT = 0.02
"""Share of what is served that is left to shorten a queue, at least."""


@dataclass(frozen=True, kw_only=True)
class Turns:
    """Drains of the write queue: how a channel turns between reads and writes."""

    spec: DramSystem  # the system
    miss: float  # share of the accesses that open a row
    each: float  # time of the channel for an access [cycles]
    row_open: float = 1.0  # probability that another row is to be closed before

    @property
    def opening(self) -> float:
        """Opening a row. [cycles]."""
        closing = 0.0 if self.spec.page_policy == "closed" else self.row_open * self.spec.timing.t_rp
        return self.spec.timing.t_rcd + closing

    @property
    def turning(self) -> float:
        """Time to turn to writes and back beyond the accesses themselves. [cycles].

        The first read opens its row, unless others find theirs open; writes open theirs one beside the other.
        """
        t = self.spec.timing
        hits = 0.0 if isinstance(self.spec.traffic, Packets) else 1 - self.miss
        kept = hits * (self.spec.write_high - self.spec.write_low) * self.each
        back = max(t.write_to_read, self.opening * min(self.miss * COUNTS.size, 1.0) - kept)
        return max(t.read_to_write + back - 2 * self.each, 0.0)

    def paces(self, number: FloatArray, cycle: float) -> FloatArray:
        r"""Return accesses served per cycle, by the number that waits and the time a bank is busy with each.

        As many are there as come while one stays: its row is opened, and it waits for its bank as in M/D/1,
        :math:`n = x\,(m o + \rho c / 2 (1 - \rho))`, :math:`\rho = x m c / B`. Derived here.
        """
        if self.miss < NO_ROWS:
            return np.full(np.shape(number), 1 / self.each)
        banks, own = self.spec.geometry.channel_banks, self.miss * self.opening
        full = number * self.miss * cycle / banks
        busy = 2 * full / np.maximum(own + full + np.sqrt((full - own) ** 2 + 2 * cycle * full), 1e-300)
        return np.minimum(busy * banks / (cycle * self.miss), 1 / self.each)

    def drains(self, coming: float) -> tuple[FloatArray, FloatArray]:
        """Time until ``write_low`` of 0, 1, ..., ``write_high`` writes are left.

        Mean and variance, from the first write to the last. Others come meanwhile: the numbers are a birth
        and death process.
        """
        found: tuple[FloatArray, FloatArray]
        found = _drains(self._forced, coming, self.spec.write_low, self.spec.write_high)
        return found

    @cached_property
    def _forced(self) -> FloatArray:
        """Writes per cycle where they are forced out, by how many wait."""
        return self.paces(COUNTS[1:], self.spec.timing.write_cycle)

    def load(self, reads: float, writes: float) -> float:
        """Return which share of the time reads take and writes do, all of them forced out.

        Writes that come during a drain are written in it.
        """
        drain = float(self.drains(writes)[0][-1])
        number = self.spec.write_high - self.spec.write_low + writes * drain
        return reads * self.each + writes / number * (drain + self.turning)

    def limit(self, write: float) -> float:
        """Return the largest rate of accesses of which a share writes. [accesses/cycle]."""

        def beyond(rate: float) -> float:
            return self.load(rate * (1 - write), rate * write) - 1

        most = 1 / self.each
        return most if beyond(most) <= 0 else float(brentq(beyond, 1e-6 * most, most, xtol=1e-9))


@compiled
def _drains(pace: Any, coming: Any, low: Any, high: Any) -> Any:
    mean, variance = np.zeros(high + 1), np.zeros(high + 1)
    last = pace[-1]
    longer, square = 1 / max(last - coming, LEAST_LEFT * last), 0.0
    for k in range(pace.size, low, -1):
        step, more = 1 / pace[k - 1], coming / pace[k - 1]
        one = step + more * longer
        square = 2 * step * one + more * (square + 2 * longer * one)
        longer = one
        if k <= high:
            mean[k], variance[k] = one, max(square - one * one, 0.0)
    return np.cumsum(mean), np.cumsum(variance)
