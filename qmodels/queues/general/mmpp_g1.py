"""MMPP/G/1: one server of a Poisson stream and of on-off bursts, on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.checks import FloatArray

TINY = 1e-300
ROUNDS, HALVINGS = 60, 60
"""Steps of Newton's method, and of the search for where it begins, at most."""
MOST_SHAPE = 1e6
"""Shape of a gamma law at most; of a larger one the time is as good as constant."""


def mmpp_g1_waits(
    *, others: FloatArray, rate: FloatArray, peak: Any, ends: Any, mean: FloatArray, square: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Mean waits at servers that a Poisson stream shares with on-off bursts, of both.

    ``others``, ``rate``: jobs of the Poisson stream and of the bursts, together less than is carried;
    ``peak``: rate in a burst over the mean rate; ``ends``: rate at which bursts end; ``mean``, ``square``:
    moments of the services, whose law is gamma. Any unit of time.

    The workload of MMPP/G/1 [1]_ with two states, of which the matrix :math:`G` enters by its stationary
    vector alone: the vector is orthogonal to the kernel of :math:`sI + R - \Lambda (1 - H(s))` at the one
    positive root of its determinant. Exact. The Poisson stream waits for the workload, the bursts for what
    is left of the mean wait.

    References
    ----------
    .. [1] H. Heffes, D. M. Lucantoni, "A Markov modulated characterization of packetized voice and data
       traffic and related statistical multiplexer performance", IEEE JSAC 4(6), 1986.

    Examples
    --------
    Bursts of 40 jobs at six times their mean rate, half of the time of a server of 1:

    >>> waits = mmpp_g1_waits(others=np.zeros(1), rate=np.array([0.5]), peak=6.0, ends=6 * 0.5 / 40,
    ...                       mean=np.ones(1), square=np.ones(1))
    >>> [round(float(wait[0]), 2) for wait in waits]
    [22.89, 45.29]
    """
    total = others + rate
    load = total * mean
    on, off, begins = others + peak * rate, others, ends / (peak - 1)
    spread, shape = _gamma(mean, square)
    s = ends + begins + on
    for _ in range(ROUNDS):
        missing, base = _missing(s, mean, spread, shape)
        slope = -mean * (1 - missing) / base
        one, two = s - ends - on * missing, s - begins - off * missing
        step = (one * two - ends * begins) / ((1 + on * slope) * two + one * (1 + off * slope))
        s = s - step
        if np.all(np.abs(step) <= 1e-13 * s):
            break
    first = one / (ends + one)
    busy_on = begins / (ends + begins)
    shift = (on - total) / ends
    left_on = (1 - load) * first + mean * busy_on * on
    left_off = (1 - load) * (1 - first) + mean * (1 - busy_on) * off
    passed = left_on * (total - shift * (1 - busy_on)) + left_off * (total + shift * busy_on)
    workload = (2 * load + total * square - 2 * mean * passed) / (2 * (1 - load))
    # Long bursts and light loads cancel all digits: no less than without bursts, no more than within one.
    least, within = total * square / (2 * (1 - load)), np.minimum(on * mean, 1.0)
    with np.errstate(divide="ignore"):
        most = np.maximum(on * square / (2 * (1 - within)), least)
    workload = np.clip(workload, least, most)
    wait = (workload - total * square / 2) / np.maximum(load, TINY)
    return workload, np.clip((total * wait - others * workload) / np.maximum(rate, TINY), least, most)


@np.errstate(over="ignore", invalid="ignore")
def mmpp_g1_decay(
    *, others: FloatArray, rate: FloatArray, peak: Any, ends: Any, mean: FloatArray, square: FloatArray
) -> FloatArray:
    r"""Rate at which the tail of the work of `mmpp_g1_waits` decays.

    The smallest :math:`\eta > 0` at which the largest eigenvalue of :math:`R + \Lambda (H(-\eta) - 1)` is
    :math:`\eta`: there the determinant of the mean has its other root. Parameters as there; a load below 1.

    Examples
    --------
    >>> decay = mmpp_g1_decay(others=np.zeros(1), rate=np.array([0.5]), peak=6.0, ends=6 * 0.5 / 40,
    ...                       mean=np.ones(1), square=2 * np.ones(1))
    >>> bool(0 < decay[0] < 0.05)
    True
    """
    on, off, begins = others + peak * rate, others, ends / (peak - 1)
    spread, shape = _gamma(mean, square)
    most = np.where(spread > 0, 1 / np.maximum(spread, TINY), 700 / mean) * (1 - 1e-12)

    def beyond(eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much the eigenvalue exceeds a rate, and the derivative of that."""
        missing, base = _missing(-eta, mean, spread, shape)
        more, few = -on * missing, -off * missing
        one, two = more - ends, few - begins
        steep = mean * (1 - missing) / base
        root = np.sqrt((one - two) ** 2 + 4 * ends * begins)
        slope = (on + off + (one - two) * (on - off) / root) * steep / 2
        # The eigenvalue, (one + two + root) / 2, without what cancels in it.
        return 2 * (more * begins + few * ends - more * few) / (root - one - two) - eta, slope - 1

    # Convex, 0 at 0 and falling there: from beyond the other root Newton's steps lead to it.
    found = np.minimum((1 - (others + rate) * mean) / square * mean, most)
    for _ in range(HALVINGS):
        below = beyond(found)[0] < 0
        if not (below & (found < most)).any():
            break
        found = np.where(below, np.minimum(2 * found, most), found)
    for _ in range(ROUNDS):
        value, slope = beyond(found)
        step = np.where((value > 0) & (slope > 0), value / np.where(slope > 0, slope, 1.0), 0.0)
        found = found - step
        if np.all(np.abs(step) <= 1e-13 * found):
            break
    return np.asarray(found)


def _gamma(mean: FloatArray, square: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return scale and shape of the gamma law of two moments; a scale of 0 is a constant time."""
    scale = square / np.maximum(mean, TINY) - mean
    scale = np.where(scale * MOST_SHAPE > mean, scale, 0.0)
    return scale, mean / np.maximum(scale, TINY)


def _missing(
    s: FloatArray, mean: FloatArray, scale: FloatArray, shape: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return 1 less the transform of a gamma law, and the ratio of -mean to its derivative."""
    spread = np.where(scale > 0, np.maximum(s * scale, TINY - 1), 0.0)
    power = np.where(scale > 0, np.where(scale > 0, shape, 1.0) * np.log1p(spread), s * mean)
    return -np.expm1(-power), 1 + spread
