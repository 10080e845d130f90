"""Sources that send in bursts: how much longer packets wait for a channel than behind random ones."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.noc.turns import Turns
from qmodels.queues.general.mmpp_g1 import mmpp_g1_waits

FULL = 1 - 1e-9


def burst_factor(turns: Turns, loads: FloatArray) -> FloatArray:
    r"""Return the factor of the waits for each channel, shape (loads, channels).

    The mean wait of MMPP/G/1 over that of M/G/1. Of each on-off source a channel gets a part, at random; its
    sources are taken for :math:`n = 1 / \sum_i (r_i / \lambda)^2` equal ones, :math:`r_i` of its
    :math:`\lambda` packets per cycle being of source i. The sum of their rates is binomial; two states have
    the same mean, variance :math:`\lambda^2 (P - 1) / n`, skewness and correlation time, hence the same
    index of dispersion on all time scales, and are the source itself where there is one [1]_.

    Where bursts do not fill a channel this is a number of the order of :math:`P`, however long they are;
    :math:`1 + 2 N (1 - 1/P)^2`, the squared coefficient of variation of the gaps, is its limit for one
    source near saturation.

    An approximation: bursts that were delayed at one channel come to the next as they began.

    References
    ----------
    .. [1] H. Heffes, D. M. Lucantoni, "A Markov modulated characterization of packetized voice and data
       traffic and related statistical multiplexer performance", IEEE JSAC 4(6), 1986 (moments matched here
       are others).
    """
    bursts, channels = turns.bursts, turns.channels
    factor = np.ones((loads.size, len(channels)))
    used = np.flatnonzero(turns.own_share > 0)
    loaded = loads > 0
    if bursts is None or not (used.size and loaded.any()):
        return factor
    load, share = loads[loaded, None], turns.own_share[used]
    packets, work = load * channels[used, 0], np.minimum(load * channels[used, 1], FULL)
    mean = work / packets
    every = np.bincount(turns.sink, turns.square, minlength=len(channels))[used]
    square = np.maximum(load * every / packets, mean**2)

    on, change = (
        1 / bursts.peak_to_mean,
        bursts.peak_to_mean / (1 - 1 / bursts.peak_to_mean) / bursts.on_packets,
    )
    deviation = packets * np.sqrt(share * (bursts.peak_to_mean - 1))
    skew = (1 - 2 * on) * np.sqrt(share / (on * (1 - on)))
    high = (1 - skew / np.sqrt(4 + skew**2)) / 2
    low_rate = np.maximum(packets - deviation * np.sqrt(high / (1 - high)), 0.0)
    names = ("others", "rate", "peak", "ends", "mean", "square")
    ends = (1 - high) * change * load * turns.sent[used]
    columns = np.broadcast_arrays(low_rate, packets - low_rate, 1 / high, ends, mean, square)
    behind, within = mmpp_g1_waits(**dict(zip(names, columns, strict=True)))
    wait = (low_rate * behind + (packets - low_rate) * within) / packets
    poisson = packets * square / (2 * (1 - work))
    factor[np.ix_(loaded, used)] = np.maximum(wait / poisson, 1.0)
    return factor
