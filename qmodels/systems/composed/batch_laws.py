"""Laws of the number of requests that a job issues at once: compounded, thinned, by segments."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.steps import SEGMENTS

ONE = np.array([0.0, 1.0])
"""The law of one request."""
MOST_CONVOLVED = 10_000_000
"""Products of probabilities beyond which laws are compounded by their transforms."""
LEAST_SHARE, REACH = 1e-18, 10.0
"""Probability of a number that is left out, and standard deviations beyond which none has a higher one."""


def law_mean(law: FloatArray) -> float:
    """Return the mean of a number from the probabilities of 0, 1, 2, ..."""
    return float(law @ np.arange(law.size))


def compound(outer: FloatArray, inner: FloatArray) -> FloatArray:
    """Return the law of a sum of as many independent numbers of the inner law as the outer law says."""
    if outer is ONE or np.array_equal(outer, ONE):
        return inner
    if np.array_equal(inner, ONE):
        return outer
    total = np.zeros((outer.size - 1) * (inner.size - 1) + 1)
    if inner[-1] == 1.0:  # always as many
        total[:: inner.size - 1] = outer
        return total
    if outer.size * total.size > MOST_CONVOLVED:
        transform = np.fft.rfft(inner, total.size)
        turned, found = np.ones_like(transform), np.zeros_like(transform)
        for share in outer:
            found, turned = found + share * turned, turned * transform
        return np.maximum(np.fft.irfft(found, total.size), 0.0)
    power = np.ones(1)
    for share in outer:
        total[: power.size] += share * power
        power = np.convolve(power, inner)[: total.size]
    return total


def thinned_law(law: FloatArray, share: float) -> FloatArray:
    """Return the law of how many of a random number of jobs do what each does with a probability.

    >>> thinned_law(np.array([0.0, 0.0, 1.0]), 0.5).round(9)
    array([0.25, 0.5 , 0.25])
    """
    from scipy import special

    if share == 1.0:
        return law
    kept = np.zeros(law.size)
    for of in np.flatnonzero(law > LEAST_SHARE).tolist():
        middle, reach = of * share, REACH * (1 + np.sqrt(of * share * (1 - share)))
        some = np.arange(max(int(middle - reach), 0), min(int(middle + reach) + 1, of) + 1)
        ways = special.gammaln(of + 1) - special.gammaln(some + 1) - special.gammaln(of - some + 1)
        logs = ways + special.xlogy(some, share) + special.xlog1py(of - some, -share)
        kept[some] += law[of] * np.exp(logs)
    return kept


def number_law(flow: Flow, count: int | str) -> FloatArray:
    """Return the probabilities of 0, 1, 2, ... for a count of a step."""
    if count == SEGMENTS:
        assert flow.sizes is not None
        numbers, probabilities = flow.sizes.segments(flow.segment_bytes)
    else:
        numbers, probabilities = np.array([int(count)]), np.ones(1)
    law = np.zeros(int(numbers[-1]) + 1)
    law[numbers] = probabilities
    return law


def batch_companions(law: FloatArray) -> float:
    """Mean size of the batch of a member, itself included."""
    numbers = np.arange(law.size)
    return float(law @ numbers**2) / max(float(law @ numbers), 1e-300)
