r"""Waits that bursts of on-off traffic add.

A resource gets a packet's work twice, to store it and to read it: with the bursts, and a random hold later
without them. That is a two-state Markov-modulated Poisson process with rates :math:`\lambda (1 + P)` and
:math:`\lambda` in front of a server with general service, whose mean work is known exactly (Heffes and
Lucantoni, "A Markov modulated characterization of packetized voice and data traffic", IEEE JSAC 4, 1986).
What it has beyond that of Poisson arrivals is what bursts add. Over times longer than the hold the reads of a
burst are as bursty as its writes; that is waited for once along the path, where it takes longest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.packet_processor.balance import pointer_work
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.heavy_traffic import heavy_limits
from qmodels.packet_processor.load import OperatingPoint
from qmodels.systems.traffic.arrivals import OnOff

NEWTON, HALVINGS = 40, 60
FULL, LEAST = 1.0 - 1e-9, 1e-9


class Bursts(NamedTuple):
    """What bursts add; times in ns."""

    mean: FloatArray  # waits of write, read, lookup, and for the pointer memory to store and to drain
    longest: FloatArray  # mean of what they add to a packet's latency where that is not 0


def burst_waits(c: Columns, point: OperatingPoint, arrivals: OnOff) -> Bursts:
    """Return what the bursts of on-off arrivals add to the waits of all designs."""
    rate = point.rate
    on, peak = (
        np.broadcast_to(np.asarray(part, dtype=float), c.shape).reshape(-1)
        for part in (arrivals.on_packets, arrivals.peak_to_mean)
    )
    limits = heavy_limits(c, point)
    lumps = {name: limits[name].write @ c.size_share for name in ("dram buses", "request links")}
    tables = [limits[name].table / lump for name, lump in lumps.items()]
    works = np.stack(pointer_work(c, point.accesses))
    scale = c.square_segments / c.mean_segments**2
    lumps["pointer memory"] = scale * (works**2).sum(axis=0) / 2.0 / works.sum(axis=0)
    stored, drained, laters, longest = [], [], [], []
    for name, lump in lumps.items():
        load = np.minimum(point.loads[name], FULL)
        work = load / (2.0 * rate)
        virtual, seen, decay = modulated(rate, on, peak, work, np.maximum(2.0 * lump * work, work**2))
        alone = load * lump / (1.0 - load)
        # Over a time that is long beside the hold a burst's reads come with its writes: the variance of both
        # together is four times that of one. Of the time in which the work builds up, a part is that long.
        held = np.maximum(virtual, alone) / (1.0 - load) / np.maximum(c.hold, LEAST)
        again = 1.0 + np.expm1(-held) / np.maximum(held, LEAST)
        later = 3.0 * again * 2.0 * on * (1.0 - 1.0 / peak) ** 2 * rate * work**2 / (2.0 * (1.0 - load))
        drained.append(np.maximum(virtual - alone, 0.0))
        stored.append(np.maximum(seen - alone, 0.0))
        laters.append(later)
        longest.append(1.0 / decay + later)
    once = np.where(np.arange(len(lumps))[:, None] == np.argmax(laters, axis=0), laters, 0.0)
    store, drain = np.array(stored) + once, np.array(drained) + once
    table = (np.array(tables) * store[:2]).sum(axis=0)
    mean = np.stack([store[:2].sum(axis=0), drain[:2].sum(axis=0), table * c.miss_rate, store[2], drain[2]])
    return Bursts(mean=mean, longest=np.maximum(np.max(longest, axis=0), mean.sum(axis=0)))


@np.errstate(over="ignore", invalid="ignore")
def modulated(
    rate: FloatArray, on: FloatArray, peak: FloatArray, work: FloatArray, square: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return the mean work of a server of on-off and of as many Poisson customers, and its decay.

    The work at a random moment, that which the on-off customers find, and the rate at which the tail of both
    decays. Where :math:`R` is the generator of the states, :math:`\Lambda` their rates and :math:`H` the
    transform of the work of a customer, a gamma law of its two moments, the vector of the states of the idle
    server follows from the positive root of :math:`\det(s I + R - \Lambda (1 - H(s)))`.

    Parameters
    ----------
    rate : ndarray
        Customers of each of the two kinds per ns.
    on, peak : ndarray
        Customers of a burst, mean, and the rate while it lasts over the mean rate.
    work, square : ndarray
        Work of a customer, mean [ns] and second moment [ns^2]; the load is below 1.
    """
    end = rate * peak / on
    begin = end / (peak - 1.0)
    fast, slow, load = rate * (1.0 + peak), rate, 2.0 * rate * work
    scale = np.maximum(square / work - work, 1e-9 * work)
    shape = work / scale

    def transform(s: FloatArray) -> tuple[FloatArray, FloatArray]:
        inside = np.maximum(1.0 + s * scale, 1e-300)
        value = inside**-shape
        return value, -work * value / inside

    s = end + begin + fast
    for _ in range(NEWTON):
        h, slope = transform(s)
        first, second = s - end - fast * (1.0 - h), s - begin - slow * (1.0 - h)
        value = first * second - end * begin
        s = s - value / ((1.0 + fast * slope) * second + first * (1.0 + slow * slope))
    first = s - end - fast * (1.0 - transform(s)[0])
    in_burst = first / (end + first)
    share, both = begin / (end + begin), end + begin
    idle = (1.0 - load) * in_burst
    mean_rate = 2.0 * rate
    # (R + e pi)^-1 L e = L-mean + (state's deviation): R has the one eigenvalue -(end + begin) besides 0.
    one, two = fast - mean_rate, slow - mean_rate
    vector = mean_rate - one / both, mean_rate - two / both
    row = idle + work * share * fast, (1.0 - load) * (1.0 - in_burst) + work * (1.0 - share) * slow
    virtual = (2.0 * load + mean_rate * square - 2.0 * work * (row[0] * vector[0] + row[1] * vector[1])) / (
        2.0 * (1.0 - load)
    )
    arriving = (virtual - mean_rate * square / 2.0) / load
    low, high = np.zeros_like(work), 1.0 / scale * (1.0 - 1e-12)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        gain = transform(-middle)[0] - 1.0
        a, d = fast * gain - end, slow * gain - begin
        growth = (a + d + np.sqrt((a - d) ** 2 + 4.0 * end * begin)) / 2.0
        above = ~(growth < middle)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return virtual, 2.0 * arriving - virtual, (low + high) / 2.0
