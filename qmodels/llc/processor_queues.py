"""The queues in front of the cores: many single servers under one bound on all requests."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from qmodels.checks import FloatArray
from qmodels.llc.processor_core import Stages, conditional_rates
from qmodels.llc.processor_hits import HitRatios
from qmodels.llc.processor_memory import MemoryPath, memory_path
from qmodels.systems.cache.llc_processor import LlcProcessor

ROUNDS = 200
TOLERANCE = 1e-4
"""Largest change of the law of the number of busy cores, summed, in the last round."""
MOST_PLACES = 4
MEMORY = 4
LEAST_WEIGHT = 1e-250


@dataclass(frozen=True, kw_only=True)
class QueueAnswer:
    """The steady state of all queues.

    Parameters
    ----------
    blocking_probability : float
        Arrivals that are refused.
    mean_number_in_system, busy_cores, busy_slices, busy_banks : float
        Time averages.
    """

    blocking_probability: float
    mean_number_in_system: float
    busy_cores: float
    busy_slices: float
    busy_banks: float


class Mixing:
    """Anderson's acceleration of an iteration: the mixture of the last results that changes least."""

    def __init__(self) -> None:
        self._tried: list[FloatArray] = []
        self._changes: list[FloatArray] = []

    def next(self, tried: FloatArray, result: FloatArray) -> FloatArray:
        """Return what to try next, after what was tried gave a result."""
        self._tried = [*self._tried, tried][-MEMORY:]
        self._changes = [*self._changes, result - tried][-MEMORY:]
        if len(self._tried) == 1:
            return result
        steps = np.diff(self._changes, axis=0)
        weights = np.linalg.lstsq(steps.T, self._changes[-1], rcond=1e-8)[0]
        return np.asarray(result - weights @ (np.diff(self._tried, axis=0) + steps))


def solve_queues(spec: LlcProcessor, hits: HitRatios) -> QueueAnswer:
    r"""Return the steady state of the queues of all cores, given where requests find their lines.

    Parameters
    ----------
    spec : LlcProcessor
        The processor.
    hits : HitRatios
        Shares of the requests that are found at each level.

    Returns
    -------
    QueueAnswer

    Raises
    ------
    RuntimeError
        If the iteration does not converge.

    Notes
    -----
    With exponential services that do not depend on other cores the numbers of requests at the cores
    have a product form, cut off where they add up to more than K [1]_. Here a service has several
    stages, some are skipped, and cores wait for one another inside it. Three steps
    keep the product form as close as possible to that:

    1. The memory path is replaced by its flow equivalent, see `qmodels.llc.processor_memory`: with j busy
       cores each works at the speed :math:`r(j) = X(j) / j`.
    2. A core with k requests, alone, with arrivals at the rates at which the bound admits them and
       with the stages a service has on average, completes at the rate :math:`\nu(k)` [2]_; these
       rates make product-form weights :math:`f(k) = \prod 1 / \nu`, and the others' weights the
       arrivals.
    3. Given n requests in all the number of busy cores is a chain of births and deaths: what
       one core completes arrives at a random one again. The product form says how many of j busy
       cores have one request, and r(j) how fast they are. The throughput with n requests
       follows, and then the law of n.

    Steps 2 and 3 are repeated until the law of j that the stages of step 2 are averages over is
    that of step 3. Exact for one core, and for any number with equal exponential services that need
    no LLC; approximation otherwise, with measured errors in `qmodels.llc.solve_processor`.

    References
    ----------
    .. [1] F. P. Kelly, *Reversibility and Stochastic Networks*, Wiley, 1979.
    .. [2] R. Marie, "An approximate analytical method for general queueing networks", IEEE
       Transactions on Software Engineering SE-5(5), 1979.

    Examples
    --------
    >>> from qmodels.llc.processor_hits import hit_ratios
    >>> spec = LlcProcessor(architecture="none")
    >>> round(solve_queues(spec, hit_ratios(spec)).blocking_probability, 3)
    0.042
    """
    path = memory_path(spec, hits)
    jobs = np.arange(spec.cores + 1)
    enough = np.flatnonzero(path.throughput >= spec.arrival_rate)
    law = np.zeros(spec.cores + 1)
    law[enough[0] if enough.size else spec.cores] = 1.0
    rates = np.full(spec.capacity, float(law @ path.throughput) / float(law @ jobs))
    mixing = Mixing()
    for _ in range(ROUNDS):
        stages = _stages(spec, hits, path, law)
        new_rates = conditional_rates(stages, _admitted(spec, rates))
        mean = float(law @ jobs) / float(law @ path.throughput)
        speed = np.concatenate(([0.0], path.throughput[1:] / jobs[1:] * mean))
        number, new_law = _law_of_requests(spec, new_rates, speed)
        if np.abs(new_law - law).sum() < TOLERANCE:
            break
        mixed = mixing.next(
            np.concatenate((np.log(rates), law)), np.concatenate((np.log(new_rates), new_law))
        )
        rates, law = np.exp(mixed[: spec.capacity]), np.maximum(mixed[spec.capacity :], 0.0)
        law /= law.sum()
    else:
        raise RuntimeError(
            f"the number of busy cores did not settle in {ROUNDS} rounds: change the load a little"
        )
    law = new_law
    busy_slices = float(law @ path.throughput) * hits.misses[1] / spec.llc_rate if spec.llc_slices else 0.0
    return QueueAnswer(
        blocking_probability=float(number[-1]),
        mean_number_in_system=float(number @ np.arange(spec.capacity + 1)),
        busy_cores=float(law @ jobs),
        busy_slices=busy_slices,
        busy_banks=float(law @ path.busy_banks),
    )


def _stages(spec: LlcProcessor, hits: HitRatios, path: MemoryPath, law: FloatArray) -> Stages:
    """Return the stages of a service, means over the law of the number of busy cores."""
    after_l1, after_l2, after_llc = hits.misses
    served = float(law @ path.throughput)
    rates, onward = [spec.l1_rate, spec.l2_rate], [after_l1]
    if spec.llc_slices and after_l2 > 0:
        mean = float(law @ path.at_llc) / served / after_l2
        stages = _hypoexponential(mean, _visit_scv(path, law))
        rates += stages
        onward += [after_l2 / after_l1] + [1.0] * (len(stages) - 1)
    if after_llc > 0:
        rates.append(after_llc * served / float(law @ path.at_memory))
        onward.append(after_llc / (after_l2 if spec.llc_slices else after_l1))
    return Stages(rates=np.array(rates), onward=np.array([*onward, 0.0]))


def _visit_scv(path: MemoryPath, law: FloatArray) -> float:
    """Return the squared coefficient of variation of a visit to a slice.

    Behind n others a visit is n + 1 exponential services, one after the other.
    """
    weights = law[1:] * path.throughput[1:]
    weights = weights / weights.sum()
    # A request sees the network without its own core.
    mean, square = float(weights @ path.queue[:-1]), float(weights @ path.queue_square[:-1])
    return (mean + 1.0 + square - mean**2) / (mean + 1.0) ** 2


def _hypoexponential(mean: float, scv: float) -> list[float]:
    """Return the rates of exponential stages in a row with this mean and scv, at most `MOST_PLACES`."""
    stages = min(max(ceil(1.0 / scv - 1e-9), 1), MOST_PLACES)
    if stages == 1:
        return [1.0 / mean]
    scv = max(scv, 1.0 / stages)
    others = stages - 1
    each = mean * (others - sqrt(others * max(stages * scv - 1.0, 0.0))) / (others * stages)
    last = mean - others * each
    return [1.0 / last] + ([1.0 / each] * others if each > 1e-9 * mean else [])


def _admitted(spec: LlcProcessor, rates: FloatArray) -> FloatArray:
    """Return the rate of accepted arrivals at a core with 0 to K requests, its state being known."""
    room, one = spec.capacity, spec.arrival_rate / spec.cores
    if spec.cores == 1:
        return np.append(np.full(room, one), 0.0)
    # Weights that grow are damped, each by the same factor more than the one before.
    logs = np.log(one / rates)
    damp = float(np.exp(-max(logs.mean(), 0.0)))
    weights = np.exp(np.concatenate(([0.0], np.cumsum(logs + np.log(damp)))))
    others = _power(weights / weights.max(), spec.cores - 1)
    admitted = np.zeros(room + 1)
    before = others[0]
    for n in range(1, room + 1):
        here = others[n] + damp * before
        admitted[room - n] = one * damp * before / here
        before = here
    return admitted


def _power(weights: FloatArray, times: int) -> FloatArray:
    """Return the convolution of so many equal weights, as long as one of them, but for a factor."""
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


def _law_of_requests(
    spec: LlcProcessor, rates: FloatArray, speed: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the laws of the number of requests and of the number of busy cores."""
    room, cores, most = spec.capacity, spec.cores, min(spec.cores, spec.capacity)
    typical = float(np.exp(np.log(rates).mean()))
    weights = np.concatenate(([0.0], np.exp(np.cumsum(np.log(typical / rates)))))
    shared = np.zeros((most + 1, room + 1))  # weights of j busy cores that have n requests
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
    # Births and deaths of the number of busy cores while n requests circulate.
    up = others[:-1] * (cores - busy[:-1])
    down = empties[1:] * busy[:-1]
    grows = np.divide(up, down, out=np.zeros_like(up), where=(down > 0))
    with np.errstate(divide="ignore"):
        logs = np.cumsum(np.vstack((np.zeros(room + 1), np.log(grows))), axis=0)
    given = np.exp(logs - logs.max(axis=0)) * possible
    given[:, 1:] /= given[:, 1:].sum(axis=0)
    throughput = (given * (empties + others)).sum(axis=0)[1:]
    logs = np.concatenate(([0.0], np.cumsum(np.log(spec.arrival_rate / throughput))))
    number = np.exp(logs - logs.max())
    number /= number.sum()
    law = np.zeros(cores + 1)
    law[0] = number[0]
    law[1 : most + 1] = given[:, 1:] @ number[1:]
    return number, law
