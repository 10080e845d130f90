"""The chain embedded at departures of a single server with Poisson arrivals."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.laws.formulas import Formulas

_LONGEST = 1 << 20


def arrival_tails(law: Formulas, rate: FloatArray, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return P(A = 0), P(A > l) and E[(A - l)+] for l >= 0 along the last axis, A arrivals during a service.

    At least `size` values of l, and as many more as the tail needs to end below 1e-305; loads whose tail is
    too long for that are told by what is below.
    """
    load = np.asarray(rate * law.moment(1))
    length = max(64, 2 * size)
    while True:
        counts = law.poisson_counts(rate, length)
        ended = (counts[..., -1] < 1e-305) & (load < length / 2)
        if np.all(ended | (load >= _LONGEST / 2)) or length >= max(_LONGEST, size):
            break
        length *= 2
    at_least = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    more = np.concatenate([at_least[..., 1:], np.zeros((*at_least.shape[:-1], 1))], axis=-1)
    excess = np.cumsum(more[..., ::-1], axis=-1)[..., ::-1]
    if not np.all(ended):
        missing = np.where(ended[..., None], 0.0, np.maximum(1 - at_least[..., :1], 0.0))
        more = more + missing
        below = np.maximum(load[..., None] - np.cumsum(more, axis=-1) + more, excess)
        excess = np.where(ended[..., None], excess, below)
    return counts[..., 0], more, excess


def embedded_weights(none: float, more: FloatArray, size: int) -> tuple[FloatArray, float]:
    r"""Return w, w_0 = 1, and log z: w_j z^-j is the stationary weight of j < `size` jobs left behind.

    Up- and down-crossings of a level balance,

    .. math:: a_0 \pi_{j+1} = \pi_0 \bar{A}_j + \sum_{k=1}^j \pi_k \bar{A}_{j-k+1},

    a sum of positive terms. The weights grow or decay like :math:`z^{-j}` with z the root of
    :math:`\sum_l \bar{A}_l z^l = a_0`; the recursion runs on :math:`\pi_j z^j`, which tends to
    a constant, so that nothing overflows and a short window of coefficients suffices.
    """
    from scipy.signal import lfilter

    if size == 1:
        return np.ones(1), 0.0
    none = max(none, 1e-290)
    order = np.arange(1, len(more))
    log_z = decay_root(none, more)
    with np.errstate(divide="ignore"):
        log_more = np.log(more)
    coefficients = np.exp(log_more[1:size] + order[: size - 1] * log_z) / none
    rest = np.cumsum(coefficients[::-1])[::-1]
    window = max(1, int(np.searchsorted(-rest, -1e-18)))
    known = min(len(more), size - 1)
    source = np.zeros(size - 1)
    source[:known] = np.exp(log_more[:known] + np.arange(1, known + 1) * log_z) / none
    scaled = lfilter([1.0], np.concatenate([[1.0], -coefficients[:window]]), source)
    return np.concatenate([[1.0], scaled]), log_z


def decay_root(none: float, more: FloatArray) -> float:
    """Return log z at which the sum of more[l] z^l over l >= 1 is `none`; close is good enough."""
    order = np.flatnonzero(more[1:] > 0) + 1
    if not len(order):
        return 0.0
    log_more, log_none = np.log(more[order]), np.log(none)

    def too_large(log_z: float) -> bool:
        exponents = log_more + order * log_z
        top = exponents.max()
        return bool(top + np.log(np.exp(exponents - top).sum()) > log_none)

    low, high = -1500.0, 1500.0
    for _ in range(70):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if too_large(middle) else (middle, high)
    return low
