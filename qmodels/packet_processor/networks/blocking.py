"""Waits that full buffers and blocked heads of a wormhole network add for its channels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.noc.turns import Turns, group_turns
from qmodels.noc.waits import find_waits, saturation_load
from qmodels.numerics.kernels import part
from qmodels.numerics.tables import between
from qmodels.systems.noc.router import PacketClass
from qmodels.systems.noc.routes import EJECTION
from qmodels.systems.packets.packet_processor import ProcessorNoc, one_network

FRACTIONS = np.array([0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88, 0.94, 0.98])
"""Loads, as parts of that at which the network saturates, between which is interpolated."""
SHARE_STEP = 0.1
"""Of the shares of short packets between which is interpolated."""


Group = tuple[int, int, int]
"""Channels, and flits of a long and of a short packet."""


def blocking_nodes(
    noc: ProcessorNoc, groups: Sequence[Group], group: IntArray, *, responses: bool, short_share: FloatArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return rows of a table, one for a share of short packets, and the two around each design, weighed.

    ``groups``, ``group``: the designs' channels and packets, and which of these each has; ``responses``:
    which of the two networks; ``short_share``: share of the short packets, one value per design. A row holds
    the traffic intensity of the most loaded channel at which the network saturates, at most 1; then, at
    `FRACTIONS` of it, how many times longer packets wait on their way than if they waited for busy channels
    alone; then the same for the ejection channel of an engine.

    The wormhole model of `qmodels.noc.solve_noc` for even traffic of single packets; the factors are
    applied to waits behind trains of packets, which full buffers lengthen in proportion.
    """
    place, steps = np.clip(short_share, 0.0, 1.0) / SHARE_STEP, round(1.0 / SHARE_STEP)
    low = np.minimum(np.floor(place), steps - 1.0)
    around = np.stack([low, low + 1.0])
    weight = 1.0 - np.abs(place - around)
    around = np.where(weight > 0.0, around, around[::-1]).astype(np.int64)
    nodes, which = np.unique(group * (steps + 1) + around, return_inverse=True)
    split = (divmod(node, steps + 1) for node in nodes.tolist())
    rows = [_blocking(noc, responses, groups[k], round(node * SHARE_STEP, 6)) for k, node in split]
    return np.array(rows), which.reshape(around.shape), weight


@part
def blocking_factors(row: Any, intensity: Any) -> Any:
    """Return the load as a part of the network's capacity, and the factors on the way and at its end.

    ``row``: one of `blocking_nodes`; ``intensity``: traffic intensity of the most loaded channel.
    """
    used, count = intensity / row[0], FRACTIONS.size
    k, ahead = between(FRACTIONS, used)
    low, high = 1 + k, 1 + count + k
    on_way = row[low] + ahead * (row[low + 1] - row[low])
    return used, on_way, row[high] + ahead * (row[high + 1] - row[high])


@lru_cache(maxsize=512)
def _blocking(noc: ProcessorNoc, responses: bool, group: Group, short: float) -> FloatArray:
    channels, *flits = group
    mix = tuple(
        PacketClass(flits=length, share=share)
        for length, share in zip(flits, (1.0 - short, short), strict=True)
        if share > 0
    )
    network = one_network(noc, channels, responses=responses, mix=mix)
    table = network.flow_table()
    turns = group_turns(table, noc.router, rate=table.unit_rate)
    limit = saturation_load(turns)
    loads = FRACTIONS * limit
    waits = find_waits(turns, loads).at_turn
    ejections = np.flatnonzero(table.channel_kind == EJECTION)
    engine_end = np.isin(np.arange(len(table.channel_names)), ejections[: noc.initiators])
    last = engine_end[turns.sink] if responses else np.zeros(turns.sink.size, dtype=bool)
    alone = _output_waits(turns, loads)
    factors = []
    for here in (~last, last):
        with_blocking, without = ((w[:, here] * turns.packets[here]).sum(axis=1) for w in (waits, alone))
        ratio = np.ones(loads.size)
        np.divide(with_blocking, without, out=ratio, where=np.isfinite(with_blocking) & (without > 1e-9))
        factors.append(np.maximum.accumulate(np.maximum(ratio, 1.0)))
    return np.concatenate([[min(limit * float(table.channel_load().max()), 1.0)], *factors])


def _output_waits(turns: Turns, loads: FloatArray) -> FloatArray:
    """Return the wait at each turn of a packet that waits for the channel alone, (loads, turns) [cycles].

    Behind packets from other channels: the same M/D/1-like work that `links.network` counts.
    """
    count = turns.channels.shape[0]

    def of_channel(values: FloatArray, sink: Any = turns.sink) -> FloatArray:
        return np.asarray(np.bincount(sink, values, minlength=count), dtype=float)

    packets, work, square = (of_channel(v) for v in (turns.packets, turns.work, turns.square))
    together = of_channel(turns.packets**2)
    met = 1.0 - np.divide(together, packets**2, out=np.ones(count), where=packets > 0)
    intensity = np.minimum(np.multiply.outer(loads, work), 1.0 - 1e-9)
    wait = np.multiply.outer(loads, square / 2.0 * met) / (1.0 - intensity)
    return np.asarray(wait[:, turns.sink])
