r"""Waits of every resource between its light and its heavy traffic.

With a load :math:`\rho` of its capacity, the one that saturation is made of, the wait at a resource is

.. math:: W(\rho) = K(\rho) \frac{\rho}{1 - \rho}, \qquad K(\rho) = K_0 (1 - \rho) + K_1 \rho,

an interpolation between the slope in light traffic, :math:`K_0`, which the waits of single packets behind
single others have, and the limit in heavy traffic, :math:`K_1 = E[X^2] / 2 E[X]` for work that comes in lumps
:math:`X` (Burman and Smith 1983; Reiman and Simon, "An interpolation approximation for queueing systems with
Poisson input", Operations Research 36, 1988). Nothing is fitted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.numerics.tables import distinct
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.link_waits import WORK, WORK_SQUARE, WORK_TRAINS, link_shares
from qmodels.packet_processor.load import OperatingPoint
from qmodels.packet_processor.numbers import REQUESTS, RESPONSES
from qmodels.packet_processor.ring import AREA_HIT, AREA_OPENED
from qmodels.systems.packets.packet_processor import ProcessorNoc

NEVER_CUT = 1.0 - 1e-7
"""Probability that a run goes on for a block more, at most: sums over its blocks have an end."""


class Waits(NamedTuple):
    """Waits of a packet at one resource, in ns."""

    write: FloatArray  # (designs, sizes)
    read: FloatArray  # (designs, sizes)
    table: FloatArray  # of one lookup in DRAM, (designs,)

    def times(self, factor: FloatArray) -> Waits:
        """Return the waits that many times longer, by design."""
        return Waits(self.write * factor[:, None], self.read * factor[:, None], self.table * factor)

    def plus(self, other: Waits) -> Waits:
        """Return the sum."""
        return Waits(self.write + other.write, self.read + other.read, self.table + other.table)


def interpolated(point: OperatingPoint, light: OperatingPoint, slopes: dict[str, Waits]) -> dict[str, Waits]:
    """Return the waits at each resource.

    ``light``: the same designs in light traffic; ``slopes``: their waits there, by resource.
    """
    faster = point.rate / light.rate
    found = {name: waits.times(faster * (1.0 - light.loads[name])) for name, waits in slopes.items()}
    for name, limit in heavy_limits(point.c, point).items():
        load = point.loads[name]
        more = limit.times(np.where(load < 1.0, load**2 / np.maximum(1.0 - load, 1e-300), np.inf))
        found[name] = found[name].plus(more) if name in found else more
    return found


def heavy_limits(c: Columns, point: OperatingPoint) -> dict[str, Waits]:
    """Return the limits of the waits times 1 - load in heavy traffic, by resource.

    The memory is passed by writes, reads and lookups; the last of the channels of a packet counts: the
    harmonic number of independent channels, one of channels that fill up together.
    """
    limits = {"dram buses": heavy_buses(c, point.loads["dram buses"]), **_links(c, point)}
    if "dram banks" in point.loads:
        opened = np.minimum(point.changes[1] * c.mean_segments / point.trains, 1.0)
        area = opened * point.found[:, AREA_OPENED] + (1.0 - opened) * point.found[:, AREA_HIT]
        area = 2.0 * point.trains * area + c.miss_rate * c.opening**2 / 2.0
        bank = area / (point.intensity["dram banks"] / point.rate * c.places)
        last = bank[:, None] * _last(c, _lumps(c)[1])
        limits["dram banks"] = Waits(last, last, bank)
    return limits


def heavy_buses(c: Columns, load: FloatArray) -> Waits:
    """Return the limits of the DRAM buses, at loads of these.

    Banks take turns on a bus, so that a lump of work at another bank costs a read one turn for each of its
    own accesses.
    """
    lump, together = _lumps(c)
    bus, last = c.burst * lump, _last(c, together)
    own, turns = _shares_of_banks(c, load)
    piece = c.segments / c.touched * c.burst[:, None]
    return Waits(
        bus[:, None] * last,
        (bus * own)[:, None] * last + piece * turns[:, None],
        bus * own + c.burst * turns,
    )


def _last(c: Columns, together: FloatArray) -> FloatArray:
    """Ratio of the wait for the last of a packet's channels to that for one, (designs, sizes)."""
    return np.asarray(1.0 + (harmonic(c.touched) - 1.0) * (1.0 - together[:, None]))


def harmonic(count: FloatArray) -> FloatArray:
    """Return the mean of the largest of so many exponential times of mean 1, for any count >= 1."""
    from scipy.special import digamma

    return np.asarray(digamma(count + 1.0) + np.euler_gamma)


def _links(c: Columns, point: OperatingPoint) -> dict[str, Waits]:
    """Return the limits of the fullest links; segments come paced by the pointer memory."""
    keys, which = distinct(c.channels[None])
    again = np.array([_same_on_fullest(c.spec.noc.structure, int(n)) for n in keys[0]])[which].T
    z, follow = point.z, c.square_segments / c.mean_segments - 1.0
    paced = np.minimum(c.segment_time, point.allocation)
    data = follow * c.mean_segments * c.segment_time * paced
    request = z[:, REQUESTS + WORK_SQUARE] + (z[:, REQUESTS + WORK_TRAINS] - data) * again[0]
    response = z[:, RESPONSES + WORK_SQUARE] + z[:, RESPONSES + WORK_TRAINS] * again[1]
    request /= 2.0 * z[:, REQUESTS + WORK]
    response /= 2.0 * z[:, RESPONSES + WORK]
    every = np.ones((1, c.segments.size))
    return {
        "request links": Waits(request[:, None] * every, request[:, None] * every, request),
        "response links": Waits(0.0 * response[:, None] * every, response[:, None] * every, response),
    }


@lru_cache(maxsize=256)
def _same_on_fullest(noc: ProcessorNoc, channels: int) -> tuple[float, float]:
    """Probability that a packet's next segment crosses the fullest link of each network as well."""
    requests, responses = link_shares(noc, channels)
    return (
        float(requests.same_source[requests.share >= requests.share.max() * (1.0 - 1e-9)].max()),
        float(responses.same_target[responses.share >= responses.share.max() * (1.0 - 1e-9)].max()),
    )


def _shares_of_banks(c: Columns, load: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return the part of the work on a bus that a read waits for, and the turns that others have.

    With as many pieces of work on the bus as customers in a processor-sharing queue, geometric with mean
    :math:`\rho / (1 - \rho)`, each at one of B banks: a read waits for its own bank, at the pace of the
    banks that are busy then, and each of its accesses for a turn of the other busy banks. The turns are
    given for each :math:`\rho / (1 - \rho)`.
    """
    idle, banks = np.maximum(1.0 - load, 1e-12), c.banks
    one, two = (idle / (idle + load * np.minimum(k / banks, 1.0)) for k in (1.0, 2.0))
    also = np.maximum(1.0 - 2.0 * one + two, 0.0) / np.maximum(1.0 - one, 1e-12)
    turns = (banks - 1.0) * (1.0 - one) * idle / np.maximum(load, 1e-12)
    return np.where(banks > 1, (1.0 + (banks - 1.0) * also) / banks, 1.0), turns


def _lumps(c: Columns) -> tuple[FloatArray, FloatArray]:
    """Return E[X^2] / 2 E[X] of a channel's lumps [segments], and how alike the channels' work is."""
    keys, which = distinct(np.stack([c.channels, c.step, c.run_length]))
    law = tuple(c.segments.tolist()), tuple(c.size_share.tolist())
    return tuple(np.array([_lump(*law, *key) for key in keys.T.tolist()])[which].T)


@lru_cache(maxsize=4096)
def _lump(
    segments: tuple[float, ...], share: tuple[float, ...], channels: float, step: float, run: float
) -> tuple[float, float]:
    r"""Segments of a packet at one channel, and the correlation of two channels.

    A packet of n consecutive blocks that starts anywhere has X of them on a channel; two blocks d apart share
    their channel with probability :math:`r(d)`, a triangle of the interleaving's step every round, so that
    :math:`E[X^2] = (n + 2 \sum_{d<n} (n - d) r(d)) / C`. Reads come so. Writes follow one another along a run
    of the free list, round after round: in the long run a channel gets its share of all blocks, but for
    where runs end, :math:`E[n]` times the variance of the blocks of runs and :math:`E[n^2] / C^2`.
    """
    n, p = np.array(segments), np.array(share)
    mean, square = float(p @ n), float(p @ n**2)
    around = channels * step
    apart = np.arange(1.0, max(n.max(), around) + 1.0)
    phase = apart % around
    same = np.maximum(1.0 - np.minimum(phase, around - phase) / step, 0.0)
    if channels == 1:
        same = np.ones_like(apart)
    pairs = np.append(0.0, np.cumsum(np.append(0.0, np.cumsum(same))))
    read = float(p @ (n + 2.0 * pairs[n.astype(int)])) / channels
    kept = min(1.0 - 1.0 / run, NEVER_CUT)
    round_ = apart[: int(around)]
    beyond = kept**round_ @ (same[: int(around)] / channels - 1.0 / channels**2) / (1.0 - kept**around)
    write = mean * max(1.0 / channels - 1.0 / channels**2 + 2.0 * float(beyond), 0.0) + square / channels**2
    both = read + write
    alike = (2.0 * square / channels - both) / max(channels - 1.0, 1.0) / both
    return both / (4.0 * mean / channels), min(max(alike, 0.0), 1.0)
