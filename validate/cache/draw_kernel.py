"""Drawing lines: by an alias table where every line has a place in one, by inversion in huge catalogues."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np

from qmodels.systems.cache.lines import feistel_step
from qmodels.systems.traffic.popularity import Zipf
from validate.engine.jit import jit, lean, lean_part
from validate.engine.streams import uniform

LAW = np.dtype(
    [
        ("entries", "i8"),
        ("per_line", "i8"),
        ("exponent", "f8"),
        ("shift", "f8"),
        ("low", "f8"),
        ("high", "f8"),
        ("accept", "f8"),
        ("half", "i8"),
        ("scattered", "i8"),
    ]
)
"""A Zipf-like law, its entries per line, and the constants of `zipf_rank`."""

_step = lean_part(feistel_step)


@jit
def alias(p: Any, cut: Any, other: Any) -> None:
    """Fill the alias table of weights (Walker's method by Vose's algorithm)."""
    n = p.size
    small = np.empty(n, dtype=np.int64)
    large = np.empty(n, dtype=np.int64)
    smalls = larges = 0
    total = p.sum()
    for k in range(n):
        cut[k] = p[k] / total * n
        other[k] = k
        if cut[k] < 1.0:
            small[smalls] = k
            smalls += 1
        else:
            large[larges] = k
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        low = small[smalls]
        high = large[larges - 1]
        other[low] = high
        cut[high] -= 1.0 - cut[low]
        if cut[high] < 1.0:
            larges -= 1
            small[smalls] = high
            smalls += 1
    for k in range(smalls):
        cut[small[k]] = 1.0
    for k in range(larges):
        cut[large[k]] = 1.0


@lean
def alias_line(cut: Any, other: Any, streams: Any, stream: int) -> Any:
    """Return a random line of an alias table."""
    at = uniform(streams, stream) * cut.size
    line = np.int64(at)
    return line if at - line <= cut[line] else np.int64(other[line])


@lean
def integral(x: float, exponent: float) -> float:
    """Return the integral of ``y**-exponent`` from 1 to x."""
    scaled = (1.0 - exponent) * log(x)
    if abs(scaled) < 1e-8:
        return log(x) * (1.0 + scaled / 2.0)
    return (exp(scaled) - 1.0) / (1.0 - exponent)


@lean
def inverse(area: float, exponent: float) -> float:
    """Return the x up to which `integral` is that area."""
    scaled = area * (1.0 - exponent)
    if abs(scaled) < 1e-8:
        return exp(area * (1.0 - scaled / 2.0))
    return exp(log(max(1.0 + scaled, 1e-300)) / (1.0 - exponent))


def zipf_law(zipf: Zipf, *, entries_per_line: int, half: int, scattered: bool) -> Any:
    """Return the constants to draw lines of a Zipf-like law with."""
    law = np.zeros(1, dtype=LAW)
    entries, exponent, shift = int(zipf.entries), float(zipf.exponent), float(zipf.shift)
    law["entries"], law["exponent"], law["shift"] = entries, exponent, shift
    law["per_line"] = entries_per_line
    law["low"] = integral(1.5 + shift, exponent) - (1.0 + shift) ** -exponent
    law["high"] = integral(entries + 0.5 + shift, exponent)
    second = inverse(integral(2.5 + shift, exponent) - (2.0 + shift) ** -exponent, exponent)
    law["accept"] = 2.0 + shift - second
    law["half"], law["scattered"] = half, scattered
    return law


@lean
def zipf_rank(law: Any, streams: Any, stream: int) -> int:
    """Return a random rank, from 1, of a Zipf-like law, without a table.

    Rejection-inversion [1]_: fewer than 1.1 pairs of logarithm and exponential on average.

    References
    ----------
    .. [1] W. Hoermann, G. Derflinger, "Rejection-inversion to generate variates from monotone
       discrete distributions", ACM Transactions on Modeling and Computer Simulation 6(3), 1996.
    """
    exponent, shift = law[0]["exponent"], law[0]["shift"]
    while True:
        area = law[0]["high"] + uniform(streams, stream) * (law[0]["low"] - law[0]["high"])
        x = inverse(area, exponent)
        rank = min(max(np.int64(x - shift + 0.5), 1), law[0]["entries"])
        y = rank + shift
        if y - x <= law[0]["accept"] or area >= integral(y + 0.5, exponent) - exp(-exponent * log(y)):
            return rank


@lean
def zipf_line(law: Any, keys: Any, streams: Any, stream: int) -> int:
    """Return the line of a random entry, as `qmodels.systems.cache.lines.line_of` places it."""
    entry = zipf_rank(law, streams, stream) - 1
    if law[0]["scattered"]:
        entry = _step(entry, law[0]["half"], keys)
        while entry >= law[0]["entries"]:
            entry = _step(entry, law[0]["half"], keys)
    return entry // law[0]["per_line"]
