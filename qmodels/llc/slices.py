"""Balance of the requests that an address hash spreads over slices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.cache.lines import HASHES, slice_of


def slice_shares(*, popularity: npt.ArrayLike, slices: int, hashing: str = "modulo") -> FloatArray:
    """Share of the requests that go to each slice.

    ``popularity``: probability of a request for each line, in the order of line numbers; ``slices``: slices;
    a power of two for XOR folding; ``hashing``: "modulo", "xor" or "mixed", see
    `qmodels.systems.cache.lines.slice_of`. Returns one share per slice. The largest times the slices is the
    imbalance: slices of one server each carry at most one over it of what balanced ones would.

    Exact.

    >>> slice_shares(popularity=[0.4, 0.3, 0.2, 0.1], slices=2)
    array([0.6, 0.4])
    """
    p = checks.nonnegative("popularity", popularity)
    number = int(checks.count("slices", slices))
    checks.choice("hashing", hashing, HASHES)
    if hashing == "xor" and number & (number - 1):
        raise ValueError(f"slices must be a power of two for XOR hashing, got {slices!r}")
    where = slice_of(np.arange(len(p)), slices=number, hashing=hashing)
    return np.asarray(np.bincount(where, weights=p, minlength=number), dtype=float)
