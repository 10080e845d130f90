"""The law of a DRAM latency from the parts it consists of."""

from __future__ import annotations

import numpy as np

from qmodels._check import FloatArray


def latency_law(
    *,
    waits: list[tuple[float, float]],
    delays: list[tuple[float, float]],
    fixed: float,
    hits: float,
    row: float,
) -> FloatArray:
    r"""Return the probabilities of latencies of 0, 1, 2, ... cycles.

    Parameters
    ----------
    waits : list of tuple of float
        Of each independent wait behind others: its mean and the longest time one of them causes.
    delays : list of tuple of float
        Of each independent delay that happens or not: its probability, and up to when it lasts.
    fixed : float
        Time that every access takes. [cycles]
    hits, row : float
        Share of the accesses that open no row, and the time that opening takes the others.

    Returns
    -------
    array
        Probabilities of whole cycles.

    Notes
    -----
    A wait has the form of that in M/D/1, a geometric number of residual service times, each uniform
    up to the longest; their mean number is what makes up the mean wait. A delay is uniform.
    Approximate: waits are taken to be independent.

    Examples
    --------
    >>> law = latency_law(waits=[(1.0, 4.0)], delays=[], fixed=10.0, hits=1.0, row=0.0)
    >>> round(float(law @ np.arange(law.size)), 6)
    11.0
    """
    mean = fixed + row + sum(wait for wait, _ in waits) + sum(p * last for p, last in delays)
    longest = max((last for _, last in waits + delays), default=0.0)
    size = 1 << int(np.ceil(np.log2(16 * mean + 4 * longest + 64)))
    opening = np.zeros(size)
    for at, probability in ((fixed, hits), (fixed + row, 1 - hits)):
        low = int(at)
        opening[low] += probability * (low + 1 - at)
        opening[low + 1] += probability * (at - low)
    spectrum = np.fft.rfft(opening)
    for wait, longest in waits:
        if wait > 0:
            more = wait / (wait + longest / 2)
            spectrum = spectrum * (1 - more) / (1 - more * np.fft.rfft(_uniform(longest, size)))
    for probability, last in delays:
        if probability > 0:
            spectrum = spectrum * (1 - probability + probability * np.fft.rfft(_uniform(last, size)))
    return np.asarray(np.maximum(np.fft.irfft(spectrum, size), 0.0))


def _uniform(top: float, size: int) -> FloatArray:
    """Return a uniform law up to a time, spread over whole cycles so that its mean is kept."""
    x = np.arange(size, dtype=float)
    twice = np.where(x < top, x**2 / (2 * top), x - top / 2)
    law = np.diff(twice, n=2, prepend=[0.0, 0.0])
    return np.append(law[1:], 0.0)
