"""The law of a DRAM latency from the parts it consists of."""

from __future__ import annotations

import math

import numpy as np

from qmodels.checks import FloatArray

MOST_CELLS = 1 << 16
"""Cells of a law; those of longer latencies are wider, so that memory is bounded."""

Waits = list[tuple[float, float]]


def _longest(waits: Waits, delays: Waits, fixed: float, row: float) -> float:
    mean = fixed + row + sum(wait for wait, _ in waits) + sum(p * last for p, last in delays)
    return 16 * mean + 4 * max((last for _, last in waits + delays), default=0.0) + 64


def grid(*, waits: Waits, delays: Waits, fixed: float, hits: float, row: float) -> int:
    """Return the width of a cell of `latency_law`: 1 cycle, or a power of two if latencies are long."""
    return 1 << max(0, math.ceil(math.log2(_longest(waits, delays, fixed, row) / MOST_CELLS)))


def mixture(laws: list[tuple[float, FloatArray]]) -> FloatArray:
    """Return the sum of laws of whole numbers, each times its share."""
    total = np.zeros(max(law.size for _, law in laws))
    for share, law in laws:
        total[: law.size] += share * law
    return total


def latency_law(
    *, waits: Waits, delays: Waits, fixed: float, hits: float, row: float, cell: int = 1
) -> FloatArray:
    r"""Return the probabilities of latencies of 0, 1, 2, ... cells.

    ``waits``: of each independent wait behind others: its mean and the longest time one of them causes;
    ``delays``: of each independent delay that happens or not: its probability, and up to when it lasts;
    ``fixed``: time that every access takes [cycles]; ``hits``, ``row``: share of the accesses that open no
    row, and the time that opening takes the others; ``cell``: width of a cell; `grid` gives one of which at
    most `MOST_CELLS` are needed [cycles]. Returns probabilities of 0, 1, 2, ... cells.

    A wait has the form of that in M/D/1, a geometric number of residual service times, each uniform
    up to the longest; their mean number is what makes up the mean wait. A delay is uniform.
    Approximate: waits are taken to be independent.

    >>> law = latency_law(waits=[(1.0, 4.0)], delays=[], fixed=10.0, hits=1.0, row=0.0)
    >>> round(float(law @ np.arange(law.size)), 6)
    11.0
    """
    # A cell may be wider than all latencies here, where another channel has longer ones.
    size = 1 << max(2, math.ceil(math.log2(_longest(waits, delays, fixed, row) / cell)))
    opening = np.zeros(size)
    for at, probability in ((fixed / cell, hits), ((fixed + row) / cell, 1 - hits)):
        low = int(at)
        opening[low] += probability * (low + 1 - at)
        opening[low + 1] += probability * (at - low)
    spectrum = np.fft.rfft(opening)
    for wait, longest in waits:
        if wait > 0:
            more = wait / (wait + longest / 2)
            spectrum = spectrum * (1 - more) / (1 - more * np.fft.rfft(_uniform(longest / cell, size)))
    for probability, last in delays:
        if probability > 0:
            spectrum = spectrum * (1 - probability + probability * np.fft.rfft(_uniform(last / cell, size)))
    return np.asarray(np.maximum(np.fft.irfft(spectrum, size), 0.0))


def _uniform(top: float, size: int) -> FloatArray:
    """Return a uniform law up to a time, spread over whole cycles so that its mean is kept."""
    x = np.arange(size, dtype=float)
    twice = np.where(x < top, x**2 / (2 * top), x - top / 2)
    law = np.diff(twice, n=2, prepend=[0.0, 0.0])
    return np.append(law[1:], 0.0)
