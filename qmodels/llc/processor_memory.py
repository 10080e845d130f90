"""The memory path of the LLC-slice processor with n cores busy: a closed network in product form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray
from qmodels.llc.processor_channels import channels_with_both_busy, spread_rates
from qmodels.llc.processor_hits import HitRatios
from qmodels.systems.cache.llc_processor import LlcProcessor

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
