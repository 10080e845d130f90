"""The bin of a value inside a kernel: the arithmetic of `validate.engine.histogram`, compiled."""

from __future__ import annotations

import numpy as np

from validate.engine.histogram import BINS, FIRST, SHIFT
from validate.engine.jit import lean_part

_LAST = BINS - 1
_BELOW = FIRST - 1


@lean_part
def bin_of(value: float) -> int:
    """Return the bin that `validate.engine.histogram.bins_of` gives for a value of the histogram's unit."""
    position = int(np.float64(value).view(np.int64) >> SHIFT) - _BELOW
    return 0 if position < 0 else _LAST if position > _LAST else position
