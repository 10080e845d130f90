"""Waits of a known sequence of accesses that arrive as a Poisson process: sums over how many are ahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray

STARTS = 512
"""Places of the sequence that runs start from."""
LONGEST = 256
"""Accesses of a run; longer ones continue at the mean pace."""
DENSE = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    r"""Runs of accesses that share a resource, by the number of accesses before the last one."""

    index: IntArray  # the accesses of each run
    # number, weight: accesses :math:`n` before the last one that are looked at, and the weight of each in
    # sums over :math:`1/n`.
    number: FloatArray
    weight: FloatArray
    ahead: FloatArray  # accesses of the whole system from the first of the run to the last
    share: float = 1.0  # share of the accesses that are in such runs

    def of(self, values: Any) -> FloatArray:
        """Return values of all accesses of the runs at the numbers, those of long runs at the mean pace."""
        length = self.index.shape[1] - 1
        short = self.number[self.number <= length].astype(int)
        values = np.asarray(values, dtype=float)
        known = values[:, short]
        pace = float((values[:, -1] - values[:, length // 2]).mean()) / (length - length // 2)
        beyond = self.number[short.size :] - length
        return np.hstack([known, known[:, -1:] + pace * beyond])

    def paths(self, time: FloatArray) -> Paths:
        """Return the paths of the runs, each once, with how many are alike."""
        rows, count = np.unique(np.hstack([self.ahead, np.maximum(time, 0.0)]), axis=0, return_counts=True)
        ahead, time = np.split(rows, 2, axis=1)
        share = self.share * count / count.sum()
        return Paths(weight=self.weight, ahead=ahead, time=time, share=share)


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    r"""Times of the paths that end at an access, for the waits that they make.

    An access waits for the longest of the paths that end at it, :math:`W = \max_n (T_n - A_n)^+`, with
    :math:`T_n` the time of a path of :math:`n` before it and :math:`A_n` the time in which they came, here
    of Erlang's law. By Spitzer's identity

    .. math:: E[W] = \sum_{n \ge 1} \frac{E[(T_n - A_n)^+]}{n},

    exact where the steps are independent; taken here as the mean over the places of the sequence.
    """

    weight: FloatArray  # of each number of accesses in sums over one by that number
    # ahead, time: accesses of the whole system from the first of a path to its last, and the time from the
    # arrival of the first until the last could be served, less what that takes alone, if all arrive together.
    ahead: FloatArray
    time: FloatArray
    share: FloatArray  # share of the accesses of each kind

    def waiting_time(self, rate: float) -> float:
        """Return the mean wait at a rate of the whole system. [cycles]."""
        from scipy.special import gammainc, gammaln

        if rate <= 0:
            return 0.0
        x, n = rate * self.time, self.ahead
        # E[(x - A)^+] by x P(n, x) - n P(n + 1, x), the latter by its recurrence.
        term = np.exp(n * np.log(np.maximum(x, 1e-300)) - x - gammaln(n + 1))
        more = np.maximum((x - n) * gammainc(n, x) + n * term, 0.0)
        return float(self.share @ (more @ self.weight)) / rate


def runs_of(chain: IntArray, key: IntArray, position: IntArray) -> Runs | None:
    """Return runs of a chain of accesses within each of which the key does not change.

    ``chain``: numbers of accesses, those of one key together and in their order; ``key``, ``position``: of
    each access of the chain: what it shares with others, and its number among all accesses.
    """
    length = LONGEST
    while length >= 4:
        ends = np.arange(length, chain.size)
        valid = ends[key[ends] == key[ends - length]] - length
        if 2 * valid.size >= chain.size - length * (key[-1] != key[0]) and valid.size:
            break
        length //= 2
    else:
        return None
    # At irregular places, that no period of the sequence may be hit alone.
    picked = (np.arange(STARTS) + np.arange(STARTS) * 0.618034 % 1) * valid.size / STARTS
    starts = valid[picked.astype(np.int64) % valid.size]
    place = starts[:, None] + np.arange(length + 1)
    grown = np.geomspace(DENSE + 1, max(length, DENSE + 1), 20).astype(int)
    grown = grown[grown <= length]
    short = np.unique(np.append(np.arange(1, min(DENSE, length) + 1), grown)).astype(int)
    number = np.append(short.astype(float), np.geomspace(length * 1.3, length * 400, 14))
    came = (position[place] - position[starts][:, None]).astype(float)
    runs = Runs(index=chain[place], number=number, weight=_weights(number), ahead=came[:, :1])
    ahead = np.maximum(runs.of(came), 1e-9)
    return Runs(index=chain[place], number=number, weight=runs.weight, ahead=ahead)


def _weights(number: FloatArray) -> FloatArray:
    """Return weights that sum a function over all whole numbers from its values at some, divided by each."""
    # Between two numbers the function is taken to be linear: the trapezoidal rule, ends once.
    step = np.diff(number)
    weight = np.zeros(number.size)
    weight[0] = 1.0
    weight[:-1] += (step - 1) / 2
    weight[1:] += (step + 1) / 2
    return np.asarray(weight / number)
