"""Where a job is in its program, and how many requests are issued at once there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.composed.plan import ONE
from qmodels.libraries import special
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.steps import SEGMENTS


@dataclass(frozen=True, kw_only=True, eq=False)
class Here:
    """Where a job is in its program: how often a job comes here, from which nodes, how many at once."""

    times: float
    place: FloatArray
    burst: FloatArray
    copies: FloatArray
    """Law of the copies of which this is one, since they came apart."""


def compound(outer: FloatArray, inner: FloatArray) -> FloatArray:
    """Return the law of a sum of as many independent numbers of the inner law as the outer law says.

    Examples
    --------
    >>> compound(np.array([0.0, 0.5, 0.5]), np.array([0.0, 0.0, 1.0]))
    array([0. , 0. , 0.5, 0. , 0.5])
    """
    if outer is ONE or np.array_equal(outer, ONE):
        return inner
    if np.array_equal(inner, ONE):
        return outer
    power = np.ones(1)
    total = np.zeros((outer.size - 1) * (inner.size - 1) + 1)
    for share in outer:
        total[: power.size] += share * power
        power = np.convolve(power, inner)[: total.size]
    return total


def apart(here: Here) -> Here:
    """Return what follows requests that were issued at once: they come apart."""
    if np.array_equal(here.burst, ONE):
        return here
    mean = float(here.burst @ np.arange(here.burst.size))
    return replace(here, times=here.times * mean, burst=ONE, copies=here.burst)


def thinned(here: Here, share: float) -> Here:
    """Return where a job is that does something with a probability; of several at once each does."""
    if np.array_equal(here.burst, ONE):
        return replace(here, times=here.times * share)
    sizes = np.arange(here.burst.size)
    of, kept_of = sizes[:, None], np.minimum(sizes[None, :], sizes[:, None])
    ways = special.gammaln(of + 1) - special.gammaln(kept_of + 1) - special.gammaln(of - kept_of + 1)
    logs = ways + special.xlogy(kept_of, share) + special.xlog1py(of - kept_of, -share)
    kept = here.burst @ np.where(sizes[None, :] <= of, np.exp(logs), 0.0)
    return replace(here, burst=np.asarray(kept, dtype=float))


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


def beside(law: FloatArray) -> float:
    """Return how many there are beside one of so many as a law says, itself included."""
    numbers = np.arange(law.size)
    return float(law @ numbers**2) / max(float(law @ numbers), 1e-300)


def integers(values: Any) -> IntArray:
    """Return numbers of nodes."""
    return np.asarray(values, dtype=np.int64)
