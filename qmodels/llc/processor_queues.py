"""The queues in front of the cores: many single servers under one bound on all requests."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from qmodels.checks import FloatArray
from qmodels.llc.bounded_queues import Stages, bounded_queues
from qmodels.llc.processor_hits import HitRatios
from qmodels.systems.cache.llc_processor import LlcProcessor


def spread_rates(*, channels: int, most: int, alone: float, both: float) -> tuple[FloatArray, FloatArray]:
    r"""Return the rate of channels of two banks with 0, 1, 2, ... requests, and how many banks are busy.

    ``channels``: channels S, each with everything, half of it in each bank; ``alone``, ``both``: rate of a
    bank while its channel's other bank is idle, and while both are busy [1/time].

    With :math:`n_0` and :math:`n_1` requests for either half, :math:`\min(n_b, S)` banks are busy. If they
    are spread over as many channels as possible, both banks of :math:`(m - S)^+` channels are, m being
    the number of busy banks. How many of n requests want the first half is then a chain of births
    and deaths in which each served one is replaced by one for either half. Exact for up to S requests.

    >>> rates, banks = spread_rates(channels=2, most=4, alone=1.0, both=0.7)
    >>> rates.round(3), banks.round(3)
    (array([0.   , 1.   , 2.   , 2.286, 2.435]), array([0.   , 1.   , 2.   , 2.714, 3.087]))
    """
    banks: FloatArray = np.arange(most + 1, dtype=float)
    rates: FloatArray = banks * alone
    for n in range(channels + 1, most + 1):
        first = np.arange(n + 1)
        here, there = np.minimum(first, channels), np.minimum(n - first, channels)
        twice = np.maximum(here + there - channels, 0)
        rate = (here + there - 2 * twice) * alone + 2 * twice * both
        ends = rate * here / (here + there)
        other = rate - ends
        weight = np.concatenate(([1.0], np.cumprod(other[:-1] / ends[1:])))
        weight /= weight.sum()
        rates[n], banks[n] = weight @ rate, weight @ (here + there)
    return rates, banks


def channels_with_both_busy(spec: LlcProcessor, *, request_rate: float, replaced: float) -> FloatArray:
    """Return the mean number of channels with both banks busy, with 0, 1, 2, ... requests in the DRAM.

    ``request_rate``: requests to the DRAM [1/time]; ``replaced``: probability that a core sends its next
    request as soon as it has one. Returned for 0 to ``cores`` requests.

    A request goes to an idle channel, if there is one, otherwise to the idle bank of another, otherwise
    it waits. With the requests that are not sent at once as Poisson arrivals while fewer requests
    than cores are there, requests and channels with both banks busy are a Markov chain; it is
    solved level by level of the requests. Which part of the table a request wants is left out here.
    """
    most, arrivals = spec.cores, request_rate * (1.0 - replaced)
    levels = [np.arange(*_range(spec, n), dtype=float) for n in range(most + 1)]
    steps: list[FloatArray] = []
    following = np.zeros((0, 0))
    for n in range(most, 0, -1):
        both = levels[n]
        ends = (1.0 - replaced) * _ends(spec, n, levels)
        # Replaced at once, one of a channel with both banks busy goes to an idle channel.
        moved = replaced * 2 * spec.interleaved_bank_rate * both * (n - both < spec.channels)
        balance = np.diag(ends.sum(axis=1) + moved + (arrivals if n < most else 0.0))
        balance -= moved[:, None] * (both[:, None] - 1 == both)
        if n < most:
            balance -= steps[-1] @ following
        following = ends
        steps.append(_arrivals(spec, n - 1, levels, arrivals) @ np.linalg.inv(balance))
    law, means = np.ones(1), [0.0]
    for n, step in enumerate(reversed(steps), start=1):
        law = law @ step
        law = law / law.sum()
        means.append(float(law @ levels[n]))
    return np.array(means)


def _range(spec: LlcProcessor, requests: int) -> tuple[int, int]:
    """Return the least number of channels with both banks busy, and one more than the most."""
    return min(max(requests - spec.channels, 0), spec.channels), min(requests // 2, spec.channels) + 1


def _arrivals(spec: LlcProcessor, n: int, levels: list[FloatArray], rate: float) -> FloatArray:
    both = levels[n]
    idle = n - both < spec.channels  # busy channels: those with one bank busy, and those with both
    target = np.where(idle, both, np.minimum(both + 1, spec.channels))
    return rate * (target[:, None] == levels[n + 1])


def _ends(spec: LlcProcessor, n: int, levels: list[FloatArray]) -> FloatArray:
    both, before = levels[n][:, None], levels[n - 1]
    if n > 2 * spec.channels:
        return 2 * spec.channels * spec.interleaved_bank_rate * (both == before)
    lone = spec.bank_rate * (n - 2 * both) * (both == before)
    return lone + 2 * spec.interleaved_bank_rate * both * (both - 1 == before)


MOST_REPLACED = 0.99
"""Cores that are always busy would never let the number of requests in the DRAM change."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryPath:
    """The path with 0, 1, 2, ... busy cores."""

    throughput: FloatArray  # requests per time unit
    # at_llc, at_memory: mean number of cores that wait for a slice or are served by it, and of those at the
    # DRAM.
    at_llc: FloatArray
    at_memory: FloatArray
    # queue, queue_square: mean number, and mean square, of the cores at the slice of a random request.
    queue: FloatArray
    queue_square: FloatArray
    busy_banks: FloatArray  # mean number of busy banks


def memory_path(spec: LlcProcessor, hits: HitRatios) -> MemoryPath:
    r"""Return the flow-equivalent of the memory path: what it serves with each number of busy cores.

    ``hits``: where requests find their lines.

    A busy core is a customer of a closed network: it looks in L1 and L2 without waiting, waits for
    one of the slices if it misses, and for the DRAM if it misses again. With exponential services and first
    come, first served queues of one rate the network has a product form [1]_; with j customers the
    weights of the stations are convolved, those of slices with loads :math:`v_s` by Newton's identity

    .. math:: m\,h_m = \sum_{i=1}^{m} \Big(\sum_s v_s^i\Big) h_{m-i}.

    The DRAM is one station whose rate depends on the number of requests in it (see `dram_rates`),
    exact while there are no more requests than channels.

    References
    ----------
    .. [1] F. Baskett, K. M. Chandy, R. R. Muntz, F. G. Palacios, "Open, closed, and mixed networks of
       queues with different classes of customers", Journal of the ACM 22(2), 1975.
    """
    after_l1, after_l2, after_llc = hits.misses
    jobs = np.arange(spec.cores + 1)
    think = 1.0 / spec.l1_rate + after_l1 / spec.l2_rate
    # Weights are scaled by the mean time without waiting so that they stay near 1.
    served = after_llc / spec.bank_rate
    unit = think + (after_l2 / spec.llc_rate if spec.llc_slices else 0.0) + served
    with np.errstate(divide="ignore"):
        delay = np.exp(jobs * np.log(think / unit) - np.cumsum(np.log(np.maximum(jobs, 1))))
    llc = np.zeros(jobs.size)
    llc[0] = 1.0
    if spec.llc_slices:
        loads = hits.slice_shares * (after_l2 / spec.llc_rate / unit)
        powers = np.array([(loads**i).sum() / len(loads) for i in jobs[1:]])
        for m in jobs[1:]:
            llc[m] = powers[:m] @ llc[m - 1 :: -1] / m if m > 1 else powers[0]
    busy = min(spec.arrival_rate * unit / spec.cores, MOST_REPLACED)
    rates, banks = dram_rates(spec, request_rate=spec.arrival_rate * after_llc, replaced=busy)
    dram = np.concatenate(([1.0], np.cumprod(after_llc / unit / rates[1:])))
    size = jobs.size
    rest = np.convolve(delay, llc)[:size]
    weights = np.convolve(rest, dram)[:size]
    without_llc = np.convolve(delay, dram)[:size]
    throughput = np.concatenate(([0.0], weights[:-1] / weights[1:])) / unit
    # A slice's queue has i customers or more with the probability v^i G(j - i) / G(j).
    load = float((hits.slice_shares**2).sum() / len(hits.slice_shares)) * (after_l2 / spec.llc_rate / unit)
    longer = load**jobs
    longer[0] = 0.0
    return MemoryPath(
        throughput=throughput,
        at_llc=np.convolve(jobs * llc, without_llc)[:size] / weights,
        at_memory=np.convolve(jobs * dram, rest)[:size] / weights,
        queue=np.convolve(longer, weights)[:size] / weights,
        queue_square=np.convolve((2 * jobs - 1) * longer, weights)[:size] / weights,
        busy_banks=np.convolve(banks * dram, rest)[:size] / weights,
    )


def dram_rates(spec: LlcProcessor, *, request_rate: float, replaced: float) -> tuple[FloatArray, FloatArray]:
    """Return the rate of the DRAM with 0, 1, 2, ... requests in it, and its mean number of busy banks.

    ``request_rate``: requests to the DRAM [1/time]; ``replaced``: probability that a core sends its next
    request as soon as it has one.

    See `spread_rates`. With no more requests than channels, some channels may still have both banks busy,
    see `channels_with_both_busy`.
    Exact if there are no more cores than channels; otherwise an approximation.
    """
    channels = spec.channels
    rates, banks = spread_rates(
        channels=channels, most=spec.cores, alone=spec.bank_rate, both=spec.interleaved_bank_rate
    )
    if spec.cores <= channels:
        return rates, banks
    most = 2 * channels * max(spec.bank_rate, spec.interleaved_bank_rate)
    asked = min(max(request_rate, 1e-9 * most), most)
    found = channels_with_both_busy(spec, request_rate=asked, replaced=replaced)
    lost = 2 * (spec.bank_rate - spec.interleaved_bank_rate) * found[: channels + 1]
    rates[: channels + 1] -= lost
    return rates, banks


MOST_PLACES = 4


@dataclass(frozen=True, kw_only=True)
class QueueAnswer:
    """The steady state of all queues."""

    blocking_probability: float  # Arrivals that are refused
    # mean_number_in_system, busy_cores, busy_slices, busy_banks: Time averages
    mean_number_in_system: float
    busy_cores: float
    busy_slices: float
    busy_banks: float


def solve_queues(spec: LlcProcessor, hits: HitRatios) -> QueueAnswer:
    """Return the steady state of the queues of all cores, given where requests find their lines.

    ``hits``: shares of the requests that are found at each level.

    The memory path is replaced by its flow equivalent, see `qmodels.llc.processor_queues`, and the cores in
    front of it are `qmodels.llc.bounded_queues`. Exact for one core, and for any number with equal
    exponential services that need no LLC; approximation otherwise, with measured errors in
    `qmodels.llc.solve_processor`.

    >>> from qmodels.llc.processor_hits import hit_ratios
    >>> spec = LlcProcessor(architecture="none")
    >>> round(solve_queues(spec, hit_ratios(spec)).blocking_probability, 3)
    0.042
    """
    path = memory_path(spec, hits)
    jobs = np.arange(spec.cores + 1)
    found = bounded_queues(
        servers=spec.cores,
        room=spec.capacity,
        arrival_rate=spec.arrival_rate,
        throughput=path.throughput,
        stages=lambda law: _stages(spec, hits, path, law),
    )
    number, law = found.number, found.busy
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
