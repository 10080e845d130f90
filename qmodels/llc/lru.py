"""LRU caches under independent references, by characteristic time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels import _check
from qmodels._check import FloatArray


def lru_hit_ratios(*, popularity: npt.ArrayLike, capacity: float) -> FloatArray:
    r"""Hit ratio of every item of an LRU cache.

    Parameters
    ----------
    popularity : array_like
        Probability that a reference is to the item; they sum to 1.
    capacity : float
        Items that fit, at least 0. From the number of items on, everything hits.

    Returns
    -------
    ndarray
        Hit ratio of each item; the overall hit ratio is ``popularity @ hit_ratios``.

    Raises
    ------
    ValueError
        If a probability is negative, they do not sum to 1, or the capacity is negative.

    Notes
    -----
    The characteristic-time approximation [1]_: an item stays for a time :math:`T` after its
    last reference,

    .. math:: h_i = 1 - e^{-p_i T}, \qquad \sum_i h_i = C,

    solved by a bracketed Newton iteration on :math:`\log T`. Approximation for independent
    references; for 1,000 items of exponent 0.83 the overall ratio is within 0.6, 0.2 and 0.04
    percentage points of a simulated cache of 1, 10 and 100.

    References
    ----------
    .. [1] H. Che, Y. Tung, Z. Wang, "Hierarchical web caching systems: modeling, design and
       experimental results", IEEE JSAC 20(7), 2002.

    Examples
    --------
    >>> import numpy as np
    >>> weight = np.arange(1, 1001) ** -0.83
    >>> p = weight / weight.sum()
    >>> round(float(p @ lru_hit_ratios(popularity=p, capacity=100)), 3)
    0.406
    """
    p = _check.nonnegative("popularity", popularity)
    if p.ndim != 1 or not np.isclose(p.sum(), 1.0, rtol=0, atol=1e-9):
        raise ValueError(
            f"popularity must be one row of probabilities that sum to 1, got a sum of {p.sum()!r}"
        )
    size = float(_check.nonnegative("capacity", capacity))
    wanted = p > 0
    if size >= np.count_nonzero(wanted):
        return wanted.astype(float)
    if size == 0:
        return np.zeros_like(p)
    low, high = np.log(size), np.log(40.0 / p[wanted].min())
    log_time = low
    for _ in range(200):
        scaled = p * np.exp(log_time)
        gap = -np.expm1(-scaled).sum() - size
        low, high = (log_time, high) if gap < 0 else (low, log_time)
        slope = np.sum(scaled * np.exp(-scaled))
        previous = log_time
        log_time = log_time - gap / slope if slope > 1e-9 * abs(gap) else high
        if not low < log_time < high:
            log_time = (low + high) / 2
        if abs(log_time - previous) < 1e-13 * max(abs(log_time), 1.0):
            break
    return -np.expm1(-p * np.exp(log_time))
