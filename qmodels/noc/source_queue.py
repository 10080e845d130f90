"""Waits in the queues of the network interfaces."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.noc.waits import Waits
from qmodels.queues.general.mmpp_g1 import mmpp_g1_waits
from qmodels.systems.noc.flows import Bernoulli
from qmodels.systems.noc.spec import Noc
from qmodels.systems.traffic.arrivals import OnOff


class SourceLaw(NamedTuple):
    """Blocking between packets at a network interface.

    Parameters
    ----------
    blocked : float
        How far packets of a burst in different virtual channels do, 1 as in the same.
    highest : float
        Load of an interface by packets that do from which on no more is counted: keeps the queue
        stable.
    """

    blocked: float
    highest: float


LAW = kept(SourceLaw, "noc.source")

EVEN = Bernoulli()
FULL = 1 - 1e-12
"""Loads are kept below 1 here; the waits of overloaded networks are set to infinity in the end."""


def source_waits(noc: Noc, waits: Waits) -> FloatArray:
    r"""Return the mean wait of the packets of each flow in their source queue; shape (loads, flows).

    A queue sends packets of :math:`S` cycles one after the other. With rate :math:`\lambda` and
    :math:`\rho = \lambda E[S]`,

    .. math:: W = \frac{\lambda E[S^2] - \rho}{2(1-\rho)}, \qquad
              W = \frac{\lambda E[S^2]}{2(1-\rho)}

    for Bernoulli and Poisson injection. The gaps of on/off injection are a mixture of two
    exponential laws of rates :math:`\gamma_i`; with the peak rate :math:`P` and
    :math:`d(s) = (\gamma_1 - s)(\gamma_2 - s) - (\gamma_1\gamma_2 - sP)E[e^{-sS}]`, which has one
    positive root :math:`z`, the transform of the wait is proportional to :math:`s(s - z)/d(s)`, so

    .. math:: W = \frac{1}{z} + \frac{1 - \gamma_1\gamma_2 E[S^2]/2 - P E[S]}
                              {P + \gamma_1\gamma_2 E[S] - \gamma_1 - \gamma_2}.

    All exact for one kind of packets; :math:`S` is given a gamma law otherwise. Packets also wait for each
    other's turn in the buffers of the interface: they take :math:`S + B`, with :math:`B` the time at the
    front of a buffer, as far as packets share one or block each other nevertheless (`SourceLaw`). What
    that adds for Bernoulli packets of one length is in the waits there already and taken off, for others
    in proportion to the shortest. With priorities each class has a queue of its own; its wait is Cobham's,
    :math:`W (1-\rho)/((1-\sigma_{k-1})(1-\sigma_k))`. A circuit has a queue of its own too.
    """
    turns = waits.turns
    table = turns.table
    rate, busy = turns.flow_rate, turns.busy_cycles
    level = np.broadcast_to(0, table.source.size)
    if noc.router.arbitration == "priority":
        level = np.unique(table.priority, return_inverse=True)[1].astype(np.int64)
    levels = int(level.max(initial=0)) + 1
    ordinary = np.where(table.circuit, 0.0, rate)
    group = table.source * levels + level

    def by_node(values: FloatArray) -> FloatArray:
        sums = np.bincount(group, values, minlength=table.nodes * levels)
        return np.asarray(sums, dtype=float).reshape(table.nodes, levels)

    work, count = by_node(ordinary * busy), by_node(ordinary).sum(axis=1)
    square = by_node(ordinary * busy**2).sum(axis=1)
    loads = waits.loads[:, None]
    upto = np.minimum(loads[:, :, None] * np.cumsum(work, axis=1), FULL)
    before = np.maximum(upto - loads[:, :, None] * work, 0.0)
    rho = upto[:, :, -1]
    mean = np.divide(work.sum(axis=1), count, out=np.zeros(table.nodes), where=count > 0)
    second = np.divide(square, count, out=np.zeros(table.nodes), where=count > 0)
    wait = _queue(noc.process, loads * count, rho, mean, second)
    if isinstance(noc.process, OnOff) or np.ptp(busy) > 0:
        shortest = np.full(table.nodes, np.inf)
        np.minimum.at(shortest, table.source, np.where(ordinary > 0, busy, np.inf))
        wait = _blocked(noc, waits, loads * count, mean, second, np.where(count > 0, shortest, 0.0))
    wait = wait[:, :, None] * (1 - rho)[:, :, None] / ((1 - before) * (1 - upto))
    result = np.where(waits.stable[:, None, None], wait, np.inf)[:, table.source, level]
    if not table.circuit.any():
        return result
    own = np.minimum(loads * rate * busy, FULL)
    alone = _queue(noc.process, loads * rate, own, busy, busy**2)
    return np.where(table.circuit & waits.stable[:, None], alone, result)


def _queue(
    process: Any, rate: FloatArray, rho: FloatArray, mean: FloatArray, second: FloatArray
) -> FloatArray:
    """Return the mean wait of a queue whose packets take a time of these moments."""
    if isinstance(process, OnOff):
        return _bursty_queue(process, rate, rho, mean, second)
    less = rho if isinstance(process, Bernoulli) else 0.0
    wait: FloatArray = np.maximum(rate * second - less, 0.0) / (2 * (1 - rho))
    return wait


def _blocked(
    noc: Noc, waits: Waits, rate: FloatArray, mean: FloatArray, second: FloatArray, shortest: FloatArray
) -> FloatArray:
    """Return the wait of packets that also block each other at the front of their buffers."""
    channels = waits.turns.channels[: mean.size]
    same = 1 / channels[:, 9]
    front = np.where(waits.stable[:, None], waits.front[:, : mean.size], 0.0)
    front = (same + LAW.blocked * (1 - same)) * front
    front = np.minimum(front, np.maximum(LAW.highest / np.maximum(rate, 1e-12) - mean, 0.0))
    longer, more = mean + front, 2 * front * (mean + front)
    idle, busy = np.minimum(rate * mean, FULL), np.minimum(rate * longer, FULL)
    known = _queue(EVEN, rate, busy, longer, mean**2 + more) - _queue(EVEN, rate, idle, mean, mean**2)
    even = np.divide(shortest, mean, out=np.ones(mean.size), where=mean > 0)
    return _queue(noc.process, rate, busy, longer, second + more) - even * known


def _bursty_queue(
    process: OnOff, rate: FloatArray, rho: FloatArray, mean: FloatArray, second: FloatArray
) -> FloatArray:
    """Return the mean wait with on/off arrivals, see `source_waits`."""
    rate, mean, second = np.broadcast_arrays(np.where(rho < FULL, rate, 0.0), mean, second)
    wait, used = np.zeros(rate.shape), rate > 0
    sent = rate[used]
    _, wait[used] = mmpp_g1_waits(
        others=np.zeros(sent.shape), rate=sent, peak=process.peak_to_mean,
        ends=process.peak_to_mean * sent / process.on_packets, mean=mean[used], square=second[used],
    )  # fmt: skip
    return np.where(rho < FULL, wait, np.inf)
