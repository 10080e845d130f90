"""The largest packet rate at which every resource of a packet processor keeps up."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.packet_processor.balance import Balance

STEPS = 60
TOLERANCE = 1e-6
OVERSHOOT = 0.02


def saturation_rate(point: Balance) -> FloatArray:
    """Return the largest packet rate at which every resource keeps up, from a balance at any rate.

    The load of the fullest resource is nearly proportional to the rate: the secant through the
    last two loads leads past 1, then false position (the Illinois rule, which halves the weight of
    an end that stays) narrows the bracket to `TOLERANCE`. Only designs that have not got there are
    computed again. Where a load jumps, the rate of the jump is the answer.
    """
    count = point.rate.size
    low, low_gap = np.zeros(count), np.full(count, -1.0)
    high, high_gap = np.full(count, np.inf), np.ones(count)
    rate, gap = point.rate.copy(), point.load - 1.0
    kept_low, kept_high = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    todo = np.arange(count)
    for _ in range(STEPS):
        now, off = rate[todo], gap[todo]
        below = off < 0.0
        up, down = todo[below], todo[~below]
        slope = np.maximum(off[below] - low_gap[up], 1e-12) / (now[below] - low[up])
        beyond = now[below] - off[below] * (1.0 + OVERSHOOT) / slope + 1e-4 * now[below]
        high_gap[up[kept_high[up]]] /= 2.0
        low_gap[down[kept_low[down]]] /= 2.0
        low[up], low_gap[up] = now[below], off[below]
        high[down], high_gap[down] = now[~below], off[~below]
        kept_high[up], kept_low[up] = True, False
        kept_high[down], kept_low[down] = False, True
        following = np.empty_like(now)
        following[below] = np.minimum(beyond, 4.0 * now[below])
        bracketed = np.isfinite(high[todo])
        both = todo[bracketed]
        part = -low_gap[both] / (high_gap[both] - low_gap[both])
        following[bracketed] = low[both] + (high[both] - low[both]) * np.clip(part, 0.01, 0.99)
        rate[todo] = following
        open_still = ~bracketed | (high[todo] - low[todo] > TOLERANCE * rate[todo])
        todo = todo[open_still]
        if todo.size == 0:
            break
        point = point.at(rate, todo)
        gap[todo] = point.load[todo] - 1.0
    return np.where(np.isfinite(high), (low + high) / 2, low)
