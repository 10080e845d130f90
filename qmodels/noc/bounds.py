"""Worst-case latencies in wormhole networks by network calculus: circuits and priorities."""

from __future__ import annotations

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.noc.turns import group_turns
from qmodels.systems.noc.spec import Noc

ROUNDS = 200

ENDLESS = 1e15
"""Stands for no bound inside sums. [cycles]"""


def latency_bounds(noc: Noc, *, burst_packets: float = 1.0) -> FloatArray:
    r"""Return upper bounds of the packet latency of each flow.

    ``burst_packets``: every flow sends at most this many packets at once and its mean rate beyond that: at
    most :math:`b + rt` flits in any :math:`t` cycles. Returns in the order of ``noc.flow_table()``; ``inf``
    where nothing is guaranteed: for flows that are no circuits without the arbitration "priority" or where
    packets may deadlock, and on channels that more urgent flows fill [cycles].

    A flow has a channel of rate :math:`R_c` for itself, less the flows that may go first: circuits
    before priorities, and those of its own level. That leaves a rate-latency server [1]_ of rate
    :math:`R_c - \sum r_i` and latency :math:`(\sum b_i + l)/(R_c - \sum r_i)`, with :math:`l` the
    longest packet of lower priority, which may have begun; channels in a row add latencies and take
    the lowest rate, so

    .. math:: D = D_0 - L + \frac{b}{\min_c (R_c - \sum r_i)} + \sum_c T_c .

    Bursts of others grow by :math:`r_i D_i` on their way, which makes this a fixed point; there is
    none above some load, and the bounds are infinite there. Valid for circuits, which have virtual
    channels of their own; for priorities if no packet waits behind one of lower priority in the same
    virtual channel, and if buffers hold what the bounds say.

    References
    ----------
    .. [1] J.-Y. Le Boudec and P. Thiran, *Network Calculus*, Springer, 2001, ch. 1 (recalled).
    """
    checks.at_least("burst_packets", burst_packets, 1.0)
    if np.ndim(noc.injection_rate):
        raise ValueError(f"injection_rate must be one number for bounds, got {noc.injection_rate!r}")
    table = noc.flow_table()
    turns = group_turns(table, noc.router, rate=table.rate)
    hops = np.diff(table.paths.start)
    flow, channel = np.repeat(np.arange(hops.size), hops), table.paths.channel.astype(np.int64)
    ranked = noc.router.arbitration == "priority"
    sure = table.circuit | (ranked and noc.find_deadlock() is None)
    level = np.where(table.circuit, 0, 1 + (table.priority if ranked else 0)).astype(np.int64)
    levels, count = int(level.max(initial=0)) + 1, len(table.channel_names)
    key = channel * levels + level[flow]
    flits = table.flits.astype(float)
    rate, burst = table.rate * flits, burst_packets * flits * (table.rate > 0)

    def first(values: FloatArray) -> FloatArray:
        """Sum over the flows on each hop's channel that may go before, the flow itself left out."""
        sums = np.bincount(key, values[flow], minlength=count * levels).reshape(count, levels)
        total: FloatArray = np.cumsum(sums, axis=1)[channel, level[flow]] - values[flow]
        return total

    longest = np.zeros((count, levels + 1))
    np.maximum.at(longest, (channel, level[flow]), np.where(table.rate > 0, flits, 0.0)[flow])
    lower = np.maximum.accumulate(longest[:, ::-1], axis=1)[:, ::-1][channel, level[flow] + 1]
    lower = np.where(table.circuit[flow], 0.0, lower)
    left = 1 / table.channel_cycles_per_flit[channel] - first(rate)
    starved = np.logical_or.reduceat(left <= 0, table.paths.start[:-1]) | ~sure
    left = np.maximum(left, 1e-12)
    slowest = np.minimum.reduceat(left, table.paths.start[:-1])
    own = turns.zero_load - flits + burst_packets * flits / slowest
    bound = own
    for _ in range(ROUNDS):
        grown = np.where(starved, ENDLESS, burst + rate * bound)
        new = own + np.add.reduceat((first(grown) + lower) / left, table.paths.start[:-1])
        new = np.minimum(new, ENDLESS)
        settled = np.isclose(new, bound, rtol=1e-9, atol=0.0)
        bound = new
        if settled.all():
            break
    return np.where(starved | ~settled | (bound > ENDLESS / 10), np.inf, bound)
