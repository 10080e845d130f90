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
MANY_TIMES = 1000
"""Times at which a law is wanted from which on it is found by series about a few of them."""
STEP, TERMS, MOST_SHAPE = 0.05, 8, 8.0
"""Relative distance of these, terms of a series, and the shape up to which they give 14 digits."""


def largest_moments(
    *, mean: float, variance: float, count: npt.ArrayLike, start: npt.ArrayLike = 0.0
) -> tuple[float, float]:
    r"""Return mean and variance of the largest of independent times: a start and a gamma time each.

    ``mean``, ``variance``: of the gamma times; ``count``: how many have each start; ``start``: what each of
    them begins with.

    :math:`E[\max] = \int_0^\infty (1 - \prod_k F(t - s_k)^{n_k})\,dt` by the trapezoidal rule.
    """
    from scipy.special import gammaincinv

    many, begin = np.broadcast_arrays(np.atleast_1d(np.asarray(count, dtype=float)), np.asarray(start))
    last = float(np.max(begin))
    if mean <= 0 or variance <= 1e-12 * mean**2:
        return last + max(mean, 0.0), 0.0
    shape, scale = mean**2 / variance, variance / mean
    if begin.size > MOST_STARTS:
        many, begin = _few_starts(many, begin, last - scale * float(gammaincinv(shape, 1 - CERTAIN)))
    t = last + NODES * (mean + FAR * np.sqrt(variance * (1 + np.log(many.sum()))))
    below = _gamma_law(shape, (t - begin[:, None]) / scale)
    return _integrated(t, below if (many == 1).all() else below ** many[:, None])


def _gamma_law(shape: float, x: FloatArray) -> FloatArray:
    r"""Return the probabilities of a gamma law of scale 1 up to some times.

    The incomplete gamma function takes about a microsecond; many times are so close to each other that Taylor
    series about a few of them give all digits. Of :math:`b_n = P^{(n)}(c) c^n / n!`, which is multiplied by
    the n-th power of the relative distance to :math:`c`, by the differential equation of the density

    .. math:: (n + 1) b_{n+1} = (a - n - c) b_n - \frac{n-1}{n} c b_{n-1}.
    """
    from scipy.special import gammainc, gammaln

    if x.size < MANY_TIMES or not shape <= MOST_SHAPE or not np.isfinite(x).all():
        return np.asarray(gammainc(shape, x))
    some = np.maximum(x, x[x > 0].min())
    place = np.log(some)
    first = float(place.min())
    about = np.exp(first + STEP * np.arange(int((place.max() - first) / STEP) + 2))
    series = [gammainc(shape, about), np.exp(shape * np.log(about) - about - gammaln(shape))]
    for n in range(1, TERMS):
        before = (n - 1) / n * about * series[n - 1]
        series.append(((shape - n - about) * series[n] - before) / (n + 1))
    near = np.rint((place - first) / STEP).astype(np.intp)
    apart, law = some / about[near] - 1, series[TERMS][near]
    for coefficient in series[-2::-1]:
        law = law * apart + coefficient[near]
    return np.where(x > 0, law, 0.0)


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
