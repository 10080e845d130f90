"""Sources that send to their targets in turn: how much smoother the channels' traffic is than at random."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.noc.turns import Turns

CLOSEST = 1e-3
"""Least part of a channel's time that is taken to be idle."""


def smoothness(turns: Turns, loads: FloatArray) -> FloatArray:
    r"""Return the factor of the waits for each channel, shape (loads, channels).

    Of a source whose cycle is one packet to each of *C* targets, the packets for a part :math:`p` of
    them pass a channel. Of *n* consecutive packets these are :math:`pn` on average with a variance
    :math:`v(n)` over where in its cycle the source is, which returns to 0 after each cycle. The
    index of dispersion of the counts in a time of :math:`n` packets of a Poisson source is

    .. math:: I(n) = p + \frac{v(n)}{pn},

    1 at once and :math:`p` in the long run. A queue's mean wait is that with Poisson arrivals times
    the index at the time that it takes to settle [1]_, here :math:`n = \lambda_i E[S]/(1 - \rho)^2`
    packets of source *i*; of a channel's sources the mean counts.

    An approximation, for a source's packets one at a time to each target. Runs of several packets to
    a target get the factor 1, as if targets were random: such sources also follow one another from
    target to target, which makes the waits longer.

    References
    ----------
    .. [1] K. W. Fendick, W. Whitt, "Measurements and approximations to describe the offered traffic
       and predict the average workload in a single-server queue", Proc. IEEE 77(1), 1989 (idea;
       recalled).
    """
    table = turns.table
    count = len(table.channel_names)
    result = np.ones((loads.size, count))
    if not (table.source_step == 1).any():
        return result
    hops = np.diff(table.path_start)
    flow = np.repeat(np.arange(hops.size), hops)
    flow_of_hop = np.flatnonzero((table.source_step[table.source] == 1)[flow])
    mine = flow[flow_of_hop]
    key, pair = np.unique(
        table.source[mine].astype(np.int64) * count + table.path_channel[flow_of_hop], return_inverse=True
    )
    source, channel = key // count, key % count
    cycle = int(table.order.max()) + 1
    # The chance that a source's packet for each target passes the channel; below 1 with split routes.
    passes = np.zeros((key.size, cycle))
    np.add.at(passes, (pair, table.order[mine]), table.share[mine] * cycle)
    part = passes.mean(axis=1)
    variance = _window_variance(passes)

    busy, packets = turns.channels[:, 1], turns.channels[:, 0]
    service = np.divide(busy, packets, out=np.zeros(count), where=packets > 0)
    sent = np.bincount(table.source, turns.flow_rate, minlength=table.nodes)[source]
    through = np.bincount(channel, sent * part, minlength=count)
    for row, load in zip(result, loads, strict=True):
        idle = np.maximum(1 - busy * load, CLOSEST)
        window = np.maximum(load * sent * (service / idle**2)[channel], 1e-9)
        whole = (window % cycle).astype(np.int64)
        rest = window % cycle - whole
        at = np.arange(key.size)
        spread = (1 - rest) * variance[at, whole] + rest * variance[at, whole + 1]
        index = part + (spread / window + (passes * (1 - passes)).mean(axis=1)) / part
        total = np.bincount(channel, sent * part * index, minlength=count)
        np.divide(total, through, out=row, where=through > 0)
    return result


def _window_variance(passes: FloatArray) -> FloatArray:
    """Return the variance of the passes in 0, 1, ... up to all consecutive packets of the cycles."""
    cycle = passes.shape[1]
    sums = np.cumsum(np.concatenate([np.zeros((len(passes), 1)), passes, passes], axis=1), axis=1)
    windows = [sums[:, n : n + cycle] - sums[:, :cycle] for n in range(cycle + 1)]
    return np.stack([window.var(axis=1) for window in windows], axis=1)
