"""Effective bandwidth of processors that share interleaved memory banks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray

MOST_PROCESSORS = 36
"""Processors up to which the chain is solved: 18,000 states."""


def memory_bandwidth(*, processors: int, banks: int) -> float:
    r"""Return the requests that banks serve in a cycle for processors that ask at random, exactly.

    Every processor always has one request under way. A bank serves one request in a cycle; the others
    stay, and a processor that was served asks a random bank at once.

    Parameters
    ----------
    processors, banks : int
        Processors :math:`n`, at most `MOST_PROCESSORS`, and banks :math:`m`.

    Returns
    -------
    float
        Mean number of busy banks.

    Raises
    ------
    ValueError
        If a count is not a whole number, or there are too many processors for the chain;
        `memory_bandwidth_rau` covers those.

    Notes
    -----
    The numbers of requests at the banks, in descending order, are a Markov chain over the partitions
    of :math:`n` into at most :math:`m` parts. In a cycle each non-empty bank loses a request; these
    are thrown one after the other, each into a bank with :math:`k` requests with the probability
    :math:`1/m` times their number. Exact; the law is iterated to a change below 1e-13.

    Examples
    --------
    >>> [round(memory_bandwidth(processors=n, banks=n), 6) for n in (1, 2, 4, 8)]
    [1.0, 1.5, 2.620968, 4.947119]
    """
    n = int(checks.count("processors", processors, maximum=MOST_PROCESSORS))
    m = int(checks.count("banks", banks))
    levels = [_partitions(total, m) for total in range(n + 1)]
    numbers = [{state: k for k, state in enumerate(level)} for level in levels]
    throws = [_throw(levels[total], numbers[total + 1], m) for total in range(n)]
    served: list[Any] = [([], []) for _ in range(n)]
    for k, state in enumerate(levels[n]):
        left = tuple(part - 1 for part in state if part > 1)
        total = n - len(state)
        served[total][0].append(k)
        served[total][1].append(numbers[total][left])
    busy = np.array([float(len(state)) for state in levels[n]])
    law = np.full(busy.size, 1.0 / busy.size)
    change = 1.0
    while change > 1e-13:
        thrown: Any = np.zeros(1)
        for total in range(n):
            at, to = served[total]
            thrown = thrown + np.bincount(to, weights=law[at], minlength=len(levels[total]))
            source, target, probability = throws[total]
            thrown = np.bincount(
                target, weights=thrown[source] * probability, minlength=len(levels[total + 1])
            )
        change = float(np.abs(thrown - law).sum())
        law = thrown / thrown.sum()
    return float(law @ busy)


def _partitions(total: int, parts: int) -> list[tuple[int, ...]]:
    """Return the partitions of a number into at most so many parts, each in descending order."""

    def extend(rest: int, largest: int, room: int) -> Any:
        if rest == 0:
            yield ()
        elif room:
            for first in range(min(rest, largest), (rest - 1) // room, -1):
                for others in extend(rest - first, first, room - 1):
                    yield (first, *others)

    return list(extend(total, total, parts))


def _throw(states: list[tuple[int, ...]], numbers: dict[tuple[int, ...], int], banks: int) -> Any:
    """Return source, target and probability of throwing one request."""
    moves = []
    for k, state in enumerate(states):
        for size in (*dict.fromkeys(state), 0):
            alike = state.count(size) if size else banks - len(state)
            if alike:
                place = state.index(size) if size else len(state)
                moves.append(
                    (k, numbers[(*state[:place], size + 1, *state[place + (size > 0) :])], alike / banks)
                )
    source, target, probability = zip(*moves, strict=True)
    return np.array(source), np.array(target), np.array(probability)


def memory_bandwidth_rau(*, processors: npt.ArrayLike, banks: npt.ArrayLike) -> FloatArray:
    r"""Return the requests that banks serve in a cycle for processors that ask at random, approximately.

    Parameters
    ----------
    processors, banks : array_like of int
        Processors :math:`n` and banks :math:`m`.

    Returns
    -------
    float or array
        Mean number of busy banks, of the broadcast shape.

    Raises
    ------
    ValueError
        If a count is not a whole number of at least 1.

    Notes
    -----
    .. math:: \sum_i 2^i \binom{n-1}{i} \binom{m-1}{i} \Big/
              \sum_i \frac{2^i}{i+1} \binom{n-1}{i} \binom{m-1}{i}

    An approximation to `memory_bandwidth`: measured within 0.16 % for 2 to 32 of each.

    References
    ----------
    .. [1] B. R. Rau, "Interleaved memory bandwidth in a model of a multiprocessor computer system",
       IEEE Transactions on Computers C-28(9), 1979.

    Examples
    --------
    >>> memory_bandwidth_rau(processors=[4, 1000], banks=[4, 1000]).round(4)
    array([  2.625 , 586.0365])
    """
    from scipy.special import gammaln, logsumexp

    n, m = np.broadcast_arrays(checks.count("processors", processors), checks.count("banks", banks))
    i = np.arange(float(np.min([n, m], axis=0).max()))
    n, m = (x[..., None].astype(float) for x in (n, m))
    with np.errstate(invalid="ignore"):
        terms = i * np.log(2) - 2 * gammaln(i + 1)
        for x in (n, m):
            terms = terms + np.where(x > i, gammaln(x) - gammaln(np.maximum(x - i, 1.0)), -np.inf)
    ratio = np.exp(logsumexp(terms, axis=-1) - logsumexp(terms - np.log(i + 1), axis=-1))
    return np.asarray(ratio)[()]
