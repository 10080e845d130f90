"""Hit ratio over capacity: from a popularity law, and from a recorded sequence of requests."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.llc.characteristic_time import hit_ratios


def hit_ratio_curve(
    *,
    popularity: npt.ArrayLike,
    capacities: npt.ArrayLike,
    count: npt.ArrayLike = 1,
    replacement: str = "lru",
    insertion_probability: float = 1.0,
) -> FloatArray:
    """Overall hit ratio of one cache at each of several capacities.

    Parameters
    ----------
    popularity, count, replacement, insertion_probability
        See `qmodels.llc.characteristic_time.hit_ratios`.
    capacities : array_like
        Lines that fit.

    Returns
    -------
    ndarray
        Of the shape of ``capacities``.

    Examples
    --------
    >>> hit_ratio_curve(popularity=[0.5, 0.3, 0.2], capacities=[0, 1, 3]).round(3)
    array([0.   , 0.371, 1.   ])
    """
    p = np.asarray(popularity, dtype=float)
    sizes = checks.nonnegative("capacities", capacities)
    weight = p * np.asarray(count, dtype=float)
    curve = [
        weight
        @ hit_ratios(
            popularity=p,
            capacity=float(size),
            count=count,
            replacement=replacement,
            insertion_probability=insertion_probability,
        )
        for size in sizes.ravel()
    ]
    return np.clip(np.reshape(curve, sizes.shape), 0.0, 1.0)


def recorded_hit_ratio_curve(keys: Iterable[Hashable], *, capacities: npt.ArrayLike) -> FloatArray:
    r"""LRU hit ratio of a recorded sequence of requests, whatever makes its working set change.

    Parameters
    ----------
    keys : iterable
        What each request is for, such as a trace's flow numbers.
    capacities : array_like
        Entries that fit.

    Returns
    -------
    ndarray
        Of the shape of ``capacities``; first requests are misses.

    Raises
    ------
    ValueError
        If there is no request or a capacity is negative.

    Notes
    -----
    The footprint theory [1]_: with :math:`f(w)` the mean number of different keys in a window of
    :math:`w` requests, found for all windows in one pass over the times between requests for the
    same key, an LRU cache of :math:`f(w)` entries hits the requests that come at most :math:`w`
    after the one before for the same key. It needs no independence of requests, only that windows of
    a length are alike. Approximation; against exact replay of the recorded sequence see
    ``tests/qmodels/llc/test_miss_curve.py``.

    References
    ----------
    .. [1] X. Xiang, C. Ding, H. Luo, B. Bao, "HOTL: a higher order theory of locality", ASPLOS 2013.

    Examples
    --------
    >>> recorded_hit_ratio_curve("abcabcabcabc", capacities=[1, 3]).round(2)
    array([0.  , 0.75])
    """
    sizes = checks.nonnegative("capacities", capacities)
    numbers: dict[Hashable, int] = {}
    order = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), dtype=np.int64)
    n, different = len(order), len(numbers)
    if n == 0:
        raise ValueError("keys must have at least one request, got none")
    by_key = np.lexsort((np.arange(n), order))
    same = order[by_key][1:] == order[by_key][:-1]
    gaps = np.diff(by_key)[same]
    starts, ends = np.r_[True, ~same], np.r_[~same, True]
    first, last = by_key[starts] + 1, n - by_key[ends]
    reuse = np.bincount(gaps, minlength=n + 2).astype(float)
    # A window misses a key that it lies wholly between two requests for, before the first or after the last.
    absent = (np.bincount(first, minlength=n + 2) + np.bincount(last, minlength=n + 2) + reuse).astype(float)
    window = np.arange(n + 1)
    longer = absent.sum() - np.cumsum(absent)[: n + 1]
    weighted = (absent * np.arange(n + 2)).sum() - np.cumsum(absent * np.arange(n + 2))[: n + 1]
    footprint = different - (weighted - window * longer) / (n - window + 1)
    hits_within = np.cumsum(reuse)[: n + 1] / n
    return np.interp(sizes, np.maximum.accumulate(footprint), hits_within, right=(n - different) / n)
