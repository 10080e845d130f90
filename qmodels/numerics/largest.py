"""Moments of the largest of several independent times."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray

NODES = np.linspace(0.0, 1.0, 160) ** 2
"""Where a law is looked at; nodes crowd where it begins: a gamma law of small shape rises steeply."""
MOST_STARTS = 128
"""Starts that are told apart."""
CERTAIN = 1e-12
"""Probability with which a time that began early may still be the last, and is left out."""
FAR = 14.0
"""Standard deviations beyond the mean at which the law is cut, and as many means."""


def largest_moments(
    *, mean: float, variance: float, count: npt.ArrayLike, start: npt.ArrayLike = 0.0
) -> tuple[float, float]:
    r"""Return mean and variance of the largest of independent times: a start and a gamma time each.

    ``mean``, ``variance``: of the gamma times; ``count``: how many have each start; ``start``: what each of
    them begins with.

    :math:`E[\max] = \int_0^\infty (1 - \prod_k F(t - s_k)^{n_k})\,dt` by the trapezoidal rule.
    """
    from scipy.special import gammainc, gammaincinv

    many, begin = np.broadcast_arrays(np.atleast_1d(np.asarray(count, dtype=float)), np.asarray(start))
    last = float(np.max(begin))
    if mean <= 0 or variance <= 1e-12 * mean**2:
        return last + max(mean, 0.0), 0.0
    shape, scale = mean**2 / variance, variance / mean
    if begin.size > MOST_STARTS:
        many, begin = _few_starts(many, begin, last - scale * float(gammaincinv(shape, 1 - CERTAIN)))
    t = last + NODES * (mean + FAR * np.sqrt(variance * (1 + np.log(many.sum()))))
    return _integrated(t, gammainc(shape, (t - begin[:, None]) / scale) ** many[:, None])


def integrated(t: FloatArray, times: Iterable[tuple[float, float, float, float]]) -> tuple[float, float]:
    """Return mean and variance of the largest of independent times from their laws at some nodes.

    ``t``: the nodes, ascending: none of the times ends before the first, hardly one after the last;
    ``times``: mean and variance of a gamma time, how many there are, and what each of them begins with.
    """
    from scipy.special import gammainc

    mean, variance, n, first = np.array(list(times)).T[:, :, None]
    return _integrated(t, gammainc(mean**2 / variance, (t - first) / (variance / mean)) ** n)


def _integrated(t: FloatArray, below: FloatArray) -> tuple[float, float]:
    """Return mean and variance of the largest by the trapezoidal rule, from the law of each."""
    above, steps, least = 1 - below.prod(axis=0), t[1:] - t[:-1], float(t[0])
    weighted = t * above
    first = least + float(steps @ (above[1:] + above[:-1])) / 2
    second = least**2 + float(steps @ (weighted[1:] + weighted[:-1]))
    return first, max(second - first**2, 0.0)


def _few_starts(many: FloatArray, begin: FloatArray, since: float) -> tuple[FloatArray, FloatArray]:
    """Return the starts since a time, neighbours together if there are still many, and how many have each."""
    order = np.argsort(begin)
    order = order[begin[order] >= min(since, begin[order[-1]])]
    groups = np.array_split(order, min(order.size, MOST_STARTS))
    number = np.array([many[group].sum() for group in groups])
    return number, np.array([many[group] @ begin[group] for group in groups]) / number
