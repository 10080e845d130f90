"""Density of packets around a packet relative to the mean, which the accesses of other packets meet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray, Numeric
from qmodels.numerics.kernels import part
from qmodels.numerics.tables import distinct
from qmodels.systems.traffic.arrivals import OnOff, Recorded, Workload, modelled
from qmodels.systems.traffic.sizes import segment_count
from qmodels.systems.traffic.trace import Trace

SCALES = np.geomspace(1e-3, 1e5, 49)
"""Times after a packet up to which later ones are counted. [mean gaps]"""
AGES = np.geomspace(1e-3, 20.0, 60)
"""Ages of a packet at which its hold is averaged. [mean holds]"""
LOGARITHMS = np.log(AGES)
FIRST, STEP = math.log(SCALES[0]), math.log(SCALES[-1] / SCALES[0]) / (SCALES.size - 1)
WEIGHTS = AGES**2 * np.exp(-AGES) / (AGES**2 * np.exp(-AGES)).sum()


@dataclass(frozen=True, kw_only=True, eq=False)
class Density:
    r"""Segments of packets up to a time after a segment, over those that come in such a time on average.

    1 for Poisson packets. With pairs of packets that lie :math:`u` apart :math:`g(u)` times as often,

    .. math:: K(t) = \frac{1}{t} \int_0^t g(u)\,du,\qquad
        m(h) = \int_0^\infty \frac{e^{-u/h}}{h} g(u)\,du
             = \int_0^\infty x e^{-x} K(h x)\,dx ,

    ``near`` and ``held``: a packet read after an exponential hold of mean :math:`h` meets packets being
    stored, and others being read, :math:`m` times as often as if they came evenly. Packets on one run have
    their blocks in one row of a bank and do not disturb each other there: with a run that ends after a packet
    with probability c, K is less :math:`(1 - e^{-c t K(t)})/(c t)` of these.
    """

    # K at the `SCALES`, for each law of arrivals in the sweep; one number where it is the same at all.
    tables: tuple[FloatArray, ...]
    law: IntArray  # the law of each design; empty if there is only one


@part
def near(time: Any, law: Any) -> Any:
    """Return K at a time in mean gaps, from its table."""
    return near_at(math.log(max(time, 1e-300)), law)


@part
def near_at(logarithm: Any, law: Any) -> Any:
    """Return K at a time in mean gaps whose logarithm is given."""
    if law.size == 1:
        return law[0]
    place = min(max((logarithm - FIRST) / STEP, 0.0), law.size - 1.0)
    k = min(int(place), law.size - 2)
    return law[k] + (place - k) * (law[k + 1] - law[k])


@part
def held(hold: Any, cut: Any, law: Any) -> Any:
    """Return m at a mean hold in mean gaps, for pairs on different runs, and for all pairs."""
    same, every, logarithm = 0.0, 0.0, math.log(max(hold, 1e-300))
    for k in range(AGES.size):
        time, dense = max(hold * AGES[k], 1e-12), near_at(logarithm + LOGARITHMS[k], law)
        every += WEIGHTS[k] * dense
        if dense > 0.0:
            same += WEIGHTS[k] * math.expm1(-cut * time * dense) / (cut * time)
    return every + same, every


def density(workload: Workload, shape: tuple[int, ...] = ()) -> Density:
    r"""Return the density of a workload's segments around one of them, for a sweep of this shape.

    Poisson: 1. On/off arrivals with peak :math:`P` and states that end at rates :math:`\alpha` and
    :math:`\beta`: :math:`g(u) = 1 + (P - 1) e^{-(\alpha + \beta) u}`, exact. Recorded: counted in the
    trace, its end joined to its beginning, each pair by the product of its segments.
    """
    arrivals = modelled("workload.arrivals", workload.arrivals)
    one = np.array([], dtype=np.int64)
    if isinstance(arrivals, Recorded):
        return Density(tables=(_recorded(arrivals.trace, int(workload.segment_bytes)),), law=one)
    if isinstance(arrivals, OnOff):
        parameters = (arrivals.on_packets, arrivals.peak_to_mean)
        laws = [np.broadcast_to(part, shape).reshape(-1) for part in parameters]
        kinds, law = distinct(np.stack(laws))
        return Density(tables=tuple(_on_off(on, peak) for on, peak in kinds.T), law=law)
    return Density(tables=(np.ones(1),), law=one)


def _on_off(on_packets: float, peak_to_mean: float) -> FloatArray:
    change = peak_to_mean / on_packets * (1.0 + 1.0 / (peak_to_mean - 1.0)) * SCALES
    return np.asarray(1.0 - (peak_to_mean - 1.0) * np.expm1(-change) / change)


@lru_cache(maxsize=8)
def _recorded(trace: Trace, segment_bytes: int) -> FloatArray:
    work = segment_count(trace.bytes, segment_bytes).astype(float)
    times = (trace.times_ns - trace.times_ns[0]) * trace.packet_rate
    total, period = work.sum(), float(len(times))
    before = np.concatenate([[0.0], np.cumsum(work)])
    found = np.ones_like(SCALES)
    inside = SCALES < period
    for number, scale in enumerate(SCALES[inside]):
        end = times + scale
        rounds = np.floor(end / period)
        ahead = before[np.searchsorted(times, end - rounds * period, side="right")] + rounds * total
        found[number] = work @ (ahead - before[1:]) / (total**2 / period * scale)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class RowVisits:
    """Row visits of a packet of each size; a visit is its consecutive accesses to one row.

    All arrays have the shape (designs, sizes).
    """

    visits: FloatArray  # mean visits: accesses that need their row opened even in an idle memory
    square: FloatArray  # mean over packets of the sum of squared accesses per visit
    channels: FloatArray  # mean channels a run of the packet touches, summed over its runs
    # within, across: accesses that continue a row right after the block before them; and after a round over
    # the other channels.
    within: FloatArray
    across: FloatArray


def row_visits(
    *, segments: FloatArray, step: Numeric, channels: Numeric, row_blocks: Numeric, mean_run_length: Numeric
) -> RowVisits:
    r"""Row visits of packets stored on runs of consecutive blocks with a random start.

    ``segments``: packet sizes [segments]; ``step``, ``channels``, ``row_blocks``: interleaving step,
    channels, consecutive blocks of a channel in one row; ``mean_run_length``: mean length of the free list's
    runs [blocks].

    With adjacencies cut independently with probability :math:`p = 1/m`, a packet of :math:`n`
    segments has :math:`(n-\ell-1) p^2 (1-p)^{\ell-1} + 2 p (1-p)^{\ell-1}` pieces of length
    :math:`\ell < n` and one of length :math:`n` with probability :math:`(1-p)^{n-1}`. A piece
    touches :math:`1 + (\ell-1)/s` chunks of :math:`s` blocks on average (a mixture of two whole
    numbers :math:`k`), hence :math:`\min(k, C)` channels. A row ends with one in :math:`r/s`
    chunks, or :math:`s/r` times in a chunk longer than a row. Exact in the mean for a random
    start of each piece, rows that are whole chunks or parts of one, and no rejected blocks.
    """
    s, c, rows, m = (
        np.asarray(x, dtype=float)[:, None] for x in (step, channels, row_blocks, mean_run_length)
    )
    length = np.arange(1.0, segments.max() + 1.0)
    chunks = 1.0 + (length - 1.0) / s
    low = np.floor(chunks)
    above = chunks - low
    touched = (1 - above) * np.minimum(low, c) + above * np.minimum(low + 1, c)
    # Rows end where chunks do, or several times inside a chunk that is longer than a row.
    inside = np.maximum(s / rows - 1.0, 0.0) / np.maximum(s - 1.0, 1.0)
    between = np.minimum(s / rows, 1.0)
    within = (length - chunks) * (1.0 - inside)
    across = (chunks - touched) * (1.0 - between)
    visits = length - within - across
    per_piece = {
        "visits": visits,
        "square": length**2 / visits,
        "channels": touched,
        "within": within,
        "across": across,
    }
    cut = 1.0 / m
    survive = (1.0 - cut) ** (length - 1.0)
    n = segments[:, None]
    inner = np.maximum(n - length - 1.0, 0.0) * (length < n)
    pieces = (
        inner[None] * (cut**2 * survive)[:, None]
        + (2.0 * (length < n))[None] * (cut * survive)[:, None]
        + (length == n)[None] * survive[:, None]
    )
    return RowVisits(**{name: np.einsum("dnl,dl->dn", pieces, value) for name, value in per_piece.items()})
