"""Exponential times by the block: several times as fast as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.engine.jit import lean_part
from validate.engine.streams import uniform

_LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")
_LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
"""ln 2 in two parts; the product of the first with an exponent is exact."""
_ROOT_HALF = np.int64(0x3FE6A09E667F3BCD)
_INTEGER_BITS = np.int64(0x4338000000000000)
_INTEGER_BASE = 6755399441055744.0  # 1.5 * 2**52: added to its bits, a small integer becomes a double


@lean_part
def _minus_log(values: Any, scale: float) -> None:
    """Replace each u in (0, 1) by -scale * log(u); without branches or calls, so that it runs in vectors.

    u = 2**k m with m around 1, and log m = 2 artanh s for s = (m - 1) / (m + 1), |s| < 0.172.
    """
    for i in range(values.size):
        shifted = np.float64(values[i]).view(np.int64) - _ROOT_HALF
        k = shifted >> 52
        m = np.int64(shifted - (k << 52) + _ROOT_HALF).view(np.float64)
        exponent = np.int64(k + _INTEGER_BITS).view(np.float64) - _INTEGER_BASE
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        tail = 1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21)))
        tail = 1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z * tail)))
        tail = z * (1 / 3 + z * (1 / 5 + z * tail))
        values[i] = -scale * (exponent * _LN2_HIGH + (2 * s + (2 * s * tail + exponent * _LN2_LOW)))


@lean_part
def fill_exponential(streams: Any, stream: int, mean: float, out: Any) -> None:
    """Fill an array with the next exponential times of a stream."""
    for i in range(out.size):
        out[i] = uniform(streams, stream)
    _minus_log(out, mean)
