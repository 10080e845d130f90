"""Waits in a wormhole network at given rates: the model on arrays, without a spec."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.noc.turns import Turns
from qmodels.queues.general.mmpp_g1 import mmpp_g1_waits
from qmodels.systems.noc.routes import Integers

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
    hops = np.diff(table.paths.start)
    flow = np.repeat(np.arange(hops.size), hops)
    flow_of_hop = np.flatnonzero((table.source_step[table.source] == 1)[flow])
    mine = flow[flow_of_hop]
    key, pair = np.unique(
        table.source[mine].astype(np.int64) * count + table.paths.channel[flow_of_hop], return_inverse=True
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


class WormholeLaw(NamedTuple):
    """Weights in the model of `qmodels.noc.solve_noc`; the compiled kernel reads them by name.

    Parameters
    ----------
    conflict : float
        How far other virtual channels of an input are in the way.
    clump : float
        Packets that follow right behind another.
    hold : float
        Hold-ups by full buffers.
    others : float
        How much rarer these are with more virtual channels: power of the chance, for each one more.
    fellow : float
        Hold-ups of others that want the same output.
    tail : float
        Delays of tails of packets longer than a buffer.
    room : float
        Room in a buffer beyond the credit loop. [flits]
    typical : float
        Length of a short wait. [packets]
    passed : float
        Conflicts at an input that pass on to the virtual channel behind.
    bunched : float
        Packets that follow another because heads were blocked.
    beside : float
        Heads for the same output beside one another.
    preemption : float
        How far packets need not wait for one of lower priority under way, whose flits that come late
        find the output taken, where buffers hold a credit loop; 0 none, 1 preemption at any flit.
    together : float
        Power of the credit loop over the buffer in that, for flits stay together in longer ones.
    """

    conflict: float
    clump: float
    hold: float
    others: float
    fellow: float
    tail: float
    room: float
    typical: float
    passed: float
    bunched: float
    beside: float
    preemption: float
    together: float


LAW = kept(WormholeLaw, "noc.waits")

SEARCH_TOLERANCE = 2e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class Waits:
    """Results of the fixed point for each load; the loads multiply the rates of the turns."""

    turns: Turns  # the network
    loads: FloatArray  # loads
    stable: np.ndarray  # whether all queues have a steady state
    at_turn: FloatArray  # mean wait in a buffer before each turn; shape (loads, turns) [cycles]
    # Mean delay of tails behind each channel, by bodies that did not fit into a buffer [cycles].
    stall: FloatArray
    # Mean time that packets behind each channel keep the front of a buffer, waiting [cycles].
    front: FloatArray

    def along(self, point: int, power: int = 1) -> FloatArray:
        """Sum of a power of the mean delays on the path of each flow, at a load by its number."""
        turns = self.turns
        found = turns.along((self.at_turn[point] + self.stall[point, turns.source]) ** power)
        if turns.table.circuit.any():
            alone = turns.table.paths.along(np.add, self._between_circuits()[point] ** power)
            found = np.where(turns.table.circuit, alone, found)
        return found

    def _between_circuits(self) -> FloatArray:
        """Mean wait of a circuit's packet for a channel that other circuits use as well [cycles]."""
        turns = self.turns
        table = turns.table
        rate, count = turns.flow_rate * table.circuit, len(table.channel_names)
        cycles = table.channel_cycles_per_flit.astype(float) ** 2
        square = cycles * table.paths.by_channel(rate * table.flits.astype(float) ** 2, count)
        own = cycles * table.paths.by_channel((rate * table.flits) ** 2, count)
        load = turns.channels[:, 6]
        other = 1 - np.divide(own, load**2, out=np.ones(count), where=load > 0)
        use = np.minimum(np.multiply.outer(self.loads, load), 1 - 1e-12)
        wait: FloatArray = np.multiply.outer(self.loads, square * other) / (2 * (1 - use))
        return wait

    @cached_property
    def by_channel(self) -> FloatArray:
        """Mean delay of a packet in the buffers at the end of each channel [cycles]."""
        turns = self.turns
        total = self.at_turn + self.stall[:, turns.source]
        return _mean_by(turns.source, turns.packets, total, turns.channels[:, 0].size)

    @cached_property
    def for_channel(self) -> FloatArray:
        """Mean wait of a packet for each channel [cycles]."""
        turns = self.turns
        return _mean_by(turns.sink, turns.packets, self.at_turn, turns.channels[:, 0].size)


def _mean_by(group: Integers, weight: FloatArray, values: FloatArray, groups: int) -> FloatArray:
    total = np.bincount(group, weight, minlength=groups)
    sums = np.array([np.bincount(group, weight * row, minlength=groups) for row in values])
    mean = np.zeros_like(sums)
    np.divide(sums, total, out=mean, where=total > 0)
    return mean


def find_waits(turns: Turns, loads: FloatArray) -> Waits:
    """Return the waits at loads, see `qmodels.noc.solve_noc` for the model.

    ``loads``: factors of all rates; 1-dimensional.
    """
    from qmodels.noc.fixed_point import STABLE, Network, solve_turns

    loads = np.asarray(loads, dtype=float)
    count = turns.channels.shape[0]
    at_turn = np.zeros((loads.size, turns.source.size))
    stall, front = np.zeros((2, loads.size, count))
    state = np.zeros(loads.size, dtype=np.int64)
    network = Network(*(getattr(turns, name) for name in Network._fields))
    smooth = smoothness(turns, loads)
    alone = turns.channels[:, 8] * smooth * burst_factor(turns, loads)
    solve_turns(loads, network, smooth, alone, LAW, at_turn, stall, front, state)
    stable = (state == STABLE) & (loads < turns.jam[0])
    for values in (at_turn, stall, front):
        values[~stable] = np.inf
    return Waits(turns=turns, loads=loads, stable=stable, at_turn=at_turn, stall=stall, front=front)


def largest_load(turns: Turns) -> float:
    """Return the load at which the first channel is busy all the time: the ideal capacity."""
    most = float((turns.channels[:, 1] + turns.channels[:, 6]).max(initial=0.0))
    return 1 / most if most > 0 else float("inf")


def saturation_load(turns: Turns) -> float:
    """Return the load from which there is no steady state.

    Found by bisection to 0.2 %.
    """
    high = largest_load(turns)
    if not np.isfinite(high):
        return high
    low = 0.0
    while high - low > SEARCH_TOLERANCE * high:
        middle = (low + high) / 2
        if find_waits(turns, np.array([middle])).stable[0]:
            low = middle
        else:
            high = middle
    return (low + high) / 2
