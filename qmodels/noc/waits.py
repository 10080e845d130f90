"""Waits in a wormhole network at given rates: the model on arrays, without a spec."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.noc.burstiness import burst_factor
from qmodels.noc.turn_taking import smoothness
from qmodels.noc.turns import Turns
from qmodels.systems.noc.routes import Integers


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

    @cached_property
    def at_hop(self) -> FloatArray:
        """Mean delay at each entry of ``table.path_channel``, shape (loads, hops) [cycles]."""
        turns = self.turns
        total = self.at_turn + self.stall[:, turns.source]
        padded = np.concatenate([total, np.zeros((self.loads.size, 1))], axis=1)
        delay = padded[:, turns.of_hop]
        circuit = np.repeat(turns.table.circuit, np.diff(turns.table.path_start))
        if circuit.any():
            delay = np.where(circuit, self._between_circuits()[:, turns.table.path_channel], delay)
        return delay

    def _between_circuits(self) -> FloatArray:
        """Mean wait of a circuit's packet for a channel that other circuits use as well [cycles]."""
        turns = self.turns
        table = turns.table
        flow = np.repeat(np.arange(table.source.size), np.diff(table.path_start))
        busy = table.flits[flow] * table.channel_cycles_per_flit[table.path_channel].astype(float)
        rate = (turns.flow_rate * table.circuit)[flow]
        count = len(table.channel_names)
        square = np.bincount(table.path_channel, rate * busy**2, minlength=count)
        own = np.bincount(table.path_channel, (rate * busy) ** 2, minlength=count)
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
