"""Channels of two banks: how many have both busy although others are idle."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
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
