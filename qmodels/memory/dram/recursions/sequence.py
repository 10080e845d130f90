"""The law of the wait along a known sequence of service times, access by access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.numerics.kernels import compiled

CELLS = 1024
SERVED, SKIPPED = 2304, 256
"""Accesses of a sequence that its waits are derived from, and those of them that only lead to its state."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """Extra wait of each access of a sequence over the one before if both arrive together. [cycles]."""

    gap: FloatArray  # that difference of waits
    ahead: IntArray  # accesses of the whole system from the one before to each
    counted: FloatArray  # whether an access that has to wait counts for `waits`

    def waits(self, rate: float, guess: float) -> tuple[float, float]:
        """Return the mean wait at a rate of the whole system, and the share that waits and counts.

        Parameters
        ----------
        rate : float
            Accesses of the whole system, which arrive as a Poisson process. [accesses/cycle]
        guess : float
            About how long the wait is; it decides where the law of waits is cut off. [cycles]
        """
        if rate <= 0:
            return 0.0, 0.0
        gap, ahead, counted = (x[:SERVED] for x in (self.gap, self.ahead, self.counted))
        skip = min(SKIPPED, gap.size // 2)
        wait = late = 0.0
        for _ in range(8):
            cell = max((15 * guess + 6 * float(np.abs(gap).max())) / CELLS, 0.05)
            decay = float(np.exp(-rate * cell))
            moved = 1 / (rate * cell) - decay / max(-np.expm1(-rate * cell), 1e-300)
            wait, late = lindley_along(gap / cell, ahead, counted, decay, moved, CELLS, skip)
            wait *= cell
            if wait < 1.5 * guess:
                break
            guess = 2 * wait
        return wait, late


@compiled
def lindley_along(
    gap: Any, ahead: Any, counted: Any, decay: float, moved: float, cells: int, skip: int
) -> Any:
    r"""Return the mean wait, in cells, and the share of the accesses that wait and count.

    Parameters
    ----------
    gap : array of float
        What each waits longer than the access before if both arrive together; may be below 0. [cells]
    ahead : array of int
        Arrivals of the whole system from the access before to each, whose distances are exponential.
    counted : array of float
        Whether an access counts if it has to wait.
    decay, moved : float
        Of a distance between arrivals: the probability that it is longer than a cell, and the mean of
        what it has beyond whole cells.
    cells : int
        Cells of the law; what is beyond the last one is taken to be there.
    skip : int
        Accesses at the start that are not counted.

    Notes
    -----
    :math:`W_n = (W_{n-1} + G_n - A_n)^+`, with all laws on cells so that means are kept.
    """
    law = np.zeros(cells)
    law[0] = 1.0
    shifted = np.zeros(cells)
    total, late = 0.0, 0.0
    for n in range(gap.size):
        whole = int(np.floor(gap[n]))
        part = gap[n] - whole
        shifted[:] = 0.0
        for k in range(cells):
            shifted[max(min(k + whole, cells - 1), 0)] += (1 - part) * law[k]
            shifted[max(min(k + whole + 1, cells - 1), 0)] += part * law[k]
        for _ in range(ahead[n]):
            above = 0.0
            left = 1.0
            for k in range(cells - 1, 0, -1):
                here = shifted[k] + decay * above
                value = (1 - decay) * ((1 - moved) * here + moved * above)
                shifted[k] = value
                left -= value
                above = here
            shifted[0] = max(left, 0.0)
        law[:] = shifted
        if n >= skip:
            for k in range(1, cells):
                total += k * law[k]
            late += counted[n] * (1 - law[0])
    return total / (gap.size - skip), late / (gap.size - skip)
