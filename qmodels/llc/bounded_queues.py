"""Queues in front of many single servers under one bound on all jobs, servers that slow each other down."""

from __future__ import annotations

from collections.abc import Callable
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
    return np.maximum(rates, PASSED_BY * arrivals[1:])


PASSED_BY = 1e-12
"""Completions for each arrival below which a number is next to never there, however few they are."""


def _steps(stages: Stages, arrivals: FloatArray) -> FloatArray:
    """Return the inverses of the matrices of `conditional_rates`.

    Without the arrivals that are put back to the first stage each is the inverse of two diagonals, which is
    a product along the stages; the rest is a change of rank one. A service that begins ends before the next
    arrival with what is left of 1 where arrivals take it: summed over the stages it may be next to nothing.
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
    soon = inverse[:, 0] @ (stages.rates * (1.0 - stages.onward))
    scale = arrivals / np.maximum(soon, LEAST_WEIGHT)
    return inverse + (scale[:, None] * rows)[:, :, None] * inverse[:, :1, :]


ROUNDS = 200
TOLERANCE = 1e-4
"""Largest change of the law of the number of busy servers, summed, in the last round."""
MEMORY = 4
LEAST_WEIGHT = 1e-250


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedQueues:
    """The steady state of the queues."""

    # number, busy: laws of the number of jobs and of the number of busy servers.
    number: FloatArray
    busy: FloatArray
    throughput: FloatArray  # rate at which 1, 2, ... jobs leave [1/time]


def bounded_queues(
    *,
    servers: int,
    room: int,
    arrival_rate: float,
    throughput: FloatArray,
    stages: Callable[[FloatArray], Stages],
) -> BoundedQueues:
    r"""Return the steady state of single servers with a queue each, to which jobs go at random.

    ``servers``, ``room``: servers, and jobs at most, K; those that come when there are so many are lost;
    ``arrival_rate``: Poisson arrivals [1/time]; ``throughput``: what 0, 1, 2, ... busy servers serve, X(j)
    [1/time]; ``stages``: the stages that a service has on average, from the law of the number of busy
    servers.

    With exponential services that do not depend on other servers the numbers of jobs there
    have a product form, cut off where they add up to more than K [1]_. Here a service has several
    stages, and servers wait for one another inside it. Two steps keep the product form as close as possible
    to that; with j busy servers each works at the speed :math:`r(j) = X(j) / j`.

    1. A server with k jobs, alone, with arrivals at the rates at which the bound admits them, completes at
       the rate :math:`\nu(k)` [2]_; these rates make product-form weights :math:`f(k) = \prod 1 / \nu`,
       and the others' weights the arrivals.
    2. Given n jobs in all the number of busy servers is a chain of births and deaths: what
       one server completes arrives at a random one again. The product form says how many of j busy
       servers have one job, and r(j) how fast they are. The throughput with n jobs
       follows, and then the law of n.

    They are repeated until the law of j that the stages are averages over is that of step 2. Exact for one
    server, and for any number with equal exponential services that do not slow each other down.

    References
    ----------
    .. [1] F. P. Kelly, *Reversibility and Stochastic Networks*, Wiley, 1979.
    .. [2] R. Marie, "An approximate analytical method for general queueing networks", IEEE
       Transactions on Software Engineering SE-5(5), 1979.

    Examples
    --------
    Two servers of rate 1, three jobs at most:

    >>> one = Stages(rates=np.array([1.0]), onward=np.array([0.0]))
    >>> found = bounded_queues(
    ...     servers=2, room=3, arrival_rate=1.0, throughput=np.arange(3.0), stages=lambda busy: one
    ... )
    >>> found.number.round(4), found.throughput.round(4)
    (array([0.3077, 0.3077, 0.2308, 0.1538]), array([1.    , 1.3333, 1.5   ]))
    """
    jobs = np.arange(servers + 1)
    enough = np.flatnonzero(throughput >= arrival_rate)
    law = np.zeros(servers + 1)
    law[enough[0] if enough.size else servers] = 1.0
    rates = np.full(room, float(law @ throughput) / float(law @ jobs))
    mixing = Mixing()
    for _ in range(ROUNDS):
        admitted = _admitted(rates, servers=servers, arrival_rate=arrival_rate)
        new_rates = conditional_rates(stages(law), admitted)
        mean = float(law @ jobs) / float(law @ throughput)
        speed = np.concatenate(([0.0], throughput[1:] / jobs[1:] * mean))
        number, new_law, given = _laws(new_rates, speed, servers=servers, arrival_rate=arrival_rate)
        if np.abs(new_law - law).sum() < TOLERANCE:
            return BoundedQueues(number=number, busy=new_law, throughput=given)
        mixed = mixing.next(
            np.concatenate((np.log(rates), law)), np.concatenate((np.log(new_rates), new_law))
        )
        rates, law = np.exp(mixed[:room]), np.maximum(mixed[room:], 0.0)
        law /= law.sum()
    raise RuntimeError(
        f"the number of busy servers did not settle in {ROUNDS} rounds: change the load a little"
    )


class Mixing:
    """Anderson's acceleration of an iteration: the mixture of the last results that changes least."""

    def __init__(self) -> None:
        self._tried: list[FloatArray] = []
        self._changes: list[FloatArray] = []

    def next(self, tried: FloatArray, result: FloatArray) -> FloatArray:
        """Return the next value to try, from the result of the last."""
        self._tried = [*self._tried, tried][-MEMORY:]
        self._changes = [*self._changes, result - tried][-MEMORY:]
        if len(self._tried) == 1:
            return result
        steps = np.diff(self._changes, axis=0)
        weights = np.linalg.lstsq(steps.T, self._changes[-1], rcond=1e-8)[0]
        return np.asarray(result - weights @ (np.diff(self._tried, axis=0) + steps))


def _admitted(rates: FloatArray, *, servers: int, arrival_rate: float) -> FloatArray:
    """Return the rate of accepted arrivals at a server with 0 to K jobs, its state being known."""
    room, one = rates.size, arrival_rate / servers
    if servers == 1:
        return np.append(np.full(room, one), 0.0)
    # Weights that grow are damped, each by the same factor more than the one before.
    logs = np.log(one / rates)
    damp = float(np.exp(-max(logs.mean(), 0.0)))
    weights = np.exp(np.concatenate(([0.0], np.cumsum(logs + np.log(damp)))))
    others = _power(weights / weights.max(), servers - 1)
    admitted = np.zeros(room + 1)
    before = others[0]
    for n in range(1, room + 1):
        here = others[n] + damp * before
        admitted[room - n] = one * damp * before / here
        before = here
    return admitted


def _power(weights: FloatArray, times: int) -> FloatArray:
    """Return the convolution of n equal weights, as long as one of them, but for a factor."""
    whole = np.zeros_like(weights)
    whole[0] = 1.0
    while times:
        shifted = _shifted(weights)
        if times % 2:
            whole = whole @ shifted
            whole /= whole.max()
        times //= 2
        if times:
            weights = weights @ shifted
            weights /= weights.max()
    return whole


def _shifted(weights: FloatArray) -> FloatArray:
    """Return the matrix that convolves: the weights in each row, one place further than in the row above."""
    size = weights.size
    padded = np.concatenate((np.zeros(size - 1), weights))
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(padded, size)[::-1])


def _laws(
    rates: FloatArray, speed: FloatArray, *, servers: int, arrival_rate: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the laws of the number of jobs and of busy servers, and the throughput by the number of jobs."""
    room = rates.size
    most = min(servers, room)
    typical = float(np.exp(np.log(rates).mean()))
    weights = np.concatenate(([0.0], np.exp(np.cumsum(np.log(typical / rates)))))
    shared = np.zeros((most + 1, room + 1))  # weights of j busy servers that have n jobs
    shared[0, 0] = 1.0
    shifted = _shifted(weights)
    heights = np.ones((most, 1))
    for j in range(1, most + 1):
        shared[j] = shared[j - 1] @ shifted
        heights[j - 1] = shared[j].max()
        shared[j] /= heights[j - 1]
    before = np.zeros_like(shared)
    before[:, 1:] = shared[:, :-1]
    busy = np.arange(1, most + 1)[:, None]
    possible = shared[1:] > LEAST_WEIGHT
    pace, none = speed[1 : most + 1, None] * typical * busy, np.zeros_like(shared[1:])
    empties = np.divide(pace * before[:-1] / heights, shared[1:], out=none.copy(), where=possible)
    others = np.divide(pace * before[1:], shared[1:], out=none, where=possible)
    # Births and deaths of the number of busy servers while n jobs circulate.
    up = others[:-1] * (servers - busy[:-1])
    down = empties[1:] * busy[:-1]
    grows = np.divide(up, down, out=np.zeros_like(up), where=(down > 0))
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.vstack((np.zeros(room + 1), np.log(grows))), axis=0)
    given = np.exp(logs - logs.max(axis=0)) * possible
    given[:, 1:] /= given[:, 1:].sum(axis=0)
    throughput = (given * (empties + others)).sum(axis=0)[1:]
    logs = np.concatenate(([0.0], np.cumsum(np.log(arrival_rate / throughput))))
    number = np.exp(logs - logs.max())
    number /= number.sum()
    law = np.zeros(servers + 1)
    law[0] = number[0]
    law[1 : most + 1] = given[:, 1:] @ number[1:]
    return number, law, throughput
