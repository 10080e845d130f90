"""One core alone: a single server whose service goes through stages, with arrivals that know its queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Stages:
    """A service of exponential stages in a row."""

    rates: FloatArray  # rate of each stage [1/time]
    onward: FloatArray  # probability that the next stage follows, 0 for the last one


def conditional_rates(stages: Stages, arrivals: FloatArray) -> FloatArray:
    r"""Return the rate at which a core with 1, 2, ..., K requests completes them.

    ``arrivals``: rates of arrivals with 0 to K requests; the last one is 0. Returns :math:`\nu(k)`: the
    probability flow from k to k - 1 over the probability of k.

    The vectors :math:`x_k` of stages with k requests follow from the balance of each state and from
    the flow between k and k + 1, which is as large up as down:

    .. math:: x_k (\lambda_k I + D - \lambda_k \mathbf 1 e_1^T) = \lambda_{k-1} x_{k-1},

    where D has the stages' rates and transitions and :math:`x_0 = e_1`. Exact.
    """
    ends = stages.rates * (1.0 - stages.onward)
    steps = _steps(stages, arrivals[1:])
    rates = np.empty(len(steps))
    vector = np.eye(ends.size)[0]
    for k, step in enumerate(steps):
        vector = vector @ step
        vector /= vector.sum()
        rates[k] = vector @ ends
    return rates


def _steps(stages: Stages, arrivals: FloatArray) -> FloatArray:
    """Return the inverses of the matrices of `conditional_rates`.

    Without the arrivals that are put back to the first stage each is the inverse of two diagonals, which is
    a product along the stages; the rest is a change of rank one.
    """
    size = stages.rates.size
    through = stages.rates * stages.onward / (stages.rates + arrivals[:, None])
    inverse = np.zeros((arrivals.size, size, size))
    for i in range(size):
        inverse[:, i, i] = 1.0
        for j in range(i + 1, size):
            inverse[:, i, j] = inverse[:, i, j - 1] * through[:, j - 1]
    inverse /= (stages.rates + arrivals[:, None])[:, None, :]
    rows = inverse.sum(axis=2)
    scale = arrivals / (1.0 - arrivals * rows[:, 0])
    return inverse + (scale[:, None] * rows)[:, :, None] * inverse[:, :1, :]
