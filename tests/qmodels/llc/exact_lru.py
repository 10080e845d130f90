"""Exact hit ratios of one LRU cache with few lines under independent references."""

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.llc.characteristic_time import checked_popularity

NODES = 400


def exact_lru_hit_ratios(*, popularity: npt.ArrayLike, capacity: int) -> FloatArray:
    r"""Return the exact hit ratio of every line of an LRU cache, to about nine digits.

    With references as Poisson processes a line is still held at its next reference, a time :math:`t` later,
    if at most :math:`C - 1` of the others were referenced in between, a Poisson-binomial count:
    :math:`h_i = \int_0^\infty p_i e^{-p_i t} P(\sum_{j \ne i} B_j(t) \le C - 1)\,dt`.
    """
    p, _ = checked_popularity(popularity, 1)
    size = int(capacity)
    hits = np.zeros(len(p))
    used = np.flatnonzero(p)
    if size >= len(used):
        hits[used] = 1.0
        return hits
    if size == 0:
        return hits
    q = p[used]
    roots = len(q) + 1 - len(q) % 2  # odd, so that -1 is not among them
    z = np.exp(2j * np.pi * np.arange(roots) / roots)
    # Sum over counts 0..C-1 of z**-count: turns values on the circle into a cumulative probability.
    fold = (z[:, None] ** -np.arange(size)).sum(axis=1) / roots
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low, high = np.log(1e-6 / q.max()), np.log(60.0 / q.min())
    times = np.exp(low + (nodes + 1.0) * (high - low) / 2.0)
    steps = weights * (high - low) / 2.0 * times
    total = -np.expm1(-q * np.exp(low))  # until then hardly any other was referenced
    for t, step in zip(times, steps, strict=True):
        absent = np.exp(-q * t)
        factor = absent[:, None] + (1.0 - absent)[:, None] * z
        all_others = np.prod(factor, axis=0) / factor
        total += step * q * absent * (all_others @ fold).real
    hits[used] = np.clip(total, 0.0, 1.0)
    return hits
