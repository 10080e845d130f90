"""Allocation trials on the walk along a run of free blocks whose channels are partly busy.

A packet's blocks follow one another on a run: chunks of consecutive blocks in one place (a row of one
bank), then the next place, round a ring of them. While somebody's accesses keep some places of the
ring busy, the walk rejects blocks there, skips chunks or is forced to take one. Which depends on the
address map and the number of trials only, so it is tabulated once and serves every rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.evidence.constants import kept
from qmodels.numerics.kernels import part
from qmodels.numerics.tables import between, distinct, remembered

HORIZON = 64
"""Segments after a visit that are followed. [segments]"""
BEHIND = 16
"""Most places of the old run that a new one can find busy."""
PHASES = 64
"""Places of the walk's start over which is averaged, where a ring has more blocks."""
OPERATIONS = 8
"""Packets after a visit that are followed."""
LOADS = np.array([0.02, 0.1, 0.25, 0.5, 0.9, 1.5, 2.5, 4.0, 7.0])
"""Tabulated times a place stays busy, in mean times between packets."""
PACES = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.2])
"""Tabulated times between two segments of a packet, in times a place stays busy."""

MEMORY = 50_000_000
"""Tables that are kept for other sweeps. [bytes]"""
KINDS = ("met", "forced", "extra", "square")
MET, FORCED, EXTRA, SQUARED = range(4)

Key = tuple[int, int, int, float]
Law = tuple[tuple[int, float], ...]


class WalkLaw(NamedTuple):
    """Assumptions on a place that is busy.

    Parameters
    ----------
    spread : float
        Coefficient of variation of the time that it stays busy: places a packet's reads went to together
        become free one after the other, at the expected order statistics of a uniform law.
    """

    spread: float


LAW = kept(WalkLaw, "packet_processor.walk")


class Tables(NamedTuple):
    """Per visit to the ring, (keys, arcs, `KINDS`, `LOADS` x `PACES`), and per start of a run, without arcs.

    Summed over all later segments: heads found busy (``met``), blocks taken busy (``forced``),
    accesses beyond one (``extra``) and their squares (``square``).
    """

    visits: FloatArray
    starts: FloatArray


@remembered(MEMORY, lambda found: found.visits.nbytes + found.starts.nbytes)
def tables(keys: tuple[Key, ...], law: Law, arcs: int) -> Tables:
    """Return the tables of walks.

    ``keys``: places in the ring, blocks of a chunk, most trials, and the probability that the run leaves the
    ring after a block; ``law``: segments of a packet and their probabilities; ``arcs``: most neighbouring
    places that are busy together, at least as many as a ring has, up to `BEHIND`.
    """
    ring, chunk, trials, cut = (np.array(column) for column in zip(*keys, strict=True))
    found = _walk(ring, chunk, trials, cut, arcs)
    fresh, begun = _weights(law)
    ordered = _one_after_another(fresh, arcs)
    grid = len(LOADS) * len(PACES)
    visits, starts = np.zeros((len(keys), arcs, len(KINDS), grid)), np.zeros((len(keys), len(KINDS), grid))
    for p in np.unique(cut):
        mine = np.flatnonzero(cut == p)
        for (arc, busy), weight in ordered.items():
            later = weight + p * (weight[..., ::-1].cumsum(axis=-1)[..., ::-1] - weight)
            visits[mine, arc - 1] += found[mine, busy - 1] @ later.reshape(grid, HORIZON).T
    for places, blocks in {key[:2] for key in keys}:
        mine = np.flatnonzero((ring == places) & (chunk == blocks))
        for arc, weight in enumerate(_left_behind(begun, min(places, BEHIND), blocks)):
            starts[mine] += found[mine, arc] @ weight.reshape(grid, HORIZON).T
    return Tables(visits=visits, starts=starts)


def _walk(ring: IntArray, chunk: IntArray, trials: IntArray, cut: FloatArray, arcs: int) -> FloatArray:
    """Follow the walk from every phase; (keys, arcs, `KINDS`, segments), means over the phases.

    The visit keeps the first places of the ring busy. A place where a block was taken has the walk's
    own row open and is busy no more. What comes after the run has left the ring does not count.
    """
    blocks = ring * chunk
    phases = np.minimum(blocks, PHASES)
    phase, arc = np.arange(PHASES), np.arange(1, arcs + 1)
    use = (phase < phases[:, None, None]) & (arc[:, None] <= ring[:, None, None])
    key, number, start = np.nonzero(use)
    row = key * arcs + number
    count = np.maximum(np.bincount(row, minlength=len(ring) * arcs), 1)
    round_trip, length, most, stay = blocks[key], chunk[key], trials[key], 1.0 - cut[key]
    at = ((start + 0.5) * round_trip / phases[key]).astype(np.int64)
    busy = (np.int64(2) << number) - 1
    weight = np.ones(len(row))
    found = np.empty((len(ring) * arcs, len(KINDS), HORIZON))

    def mean(kind: str, k: int, value: npt.NDArray[Any]) -> None:
        total = np.bincount(row, weights=value * weight, minlength=len(count))
        found[:, KINDS.index(kind), k] = total / count

    for k in range(HORIZON):
        met = (busy >> (at // length)) & 1
        mean("met", k, met)
        rejected = np.zeros(len(row), dtype=np.int64)
        left = np.flatnonzero(met)
        while left.size:
            room, more = length[left] - at[left] % length[left], most[left] - 1 - rejected[left]
            moved = np.minimum(room, more)
            rejected[left] += moved
            at[left] = (at[left] + moved) % round_trip[left]
            again = (busy[left] >> (at[left] // length[left])) & 1
            left = left[(more > moved) & (rejected[left] < round_trip[left]) & (again > 0)]
        place = at // length
        extra = rejected + (rejected > 0)
        mean("forced", k, (busy >> place) & 1)
        mean("extra", k, extra)
        mean("square", k, extra**2)
        busy &= ~(np.int64(1) << place)
        at = (at + 1) % round_trip
        weight *= stay ** (rejected + 1)
    return found.reshape(len(ring), arcs, len(KINDS), HORIZON)


@lru_cache(maxsize=16)
def _weights(law: Law) -> tuple[FloatArray, FloatArray]:
    r"""Return the probability that the k-th segment after a moment comes while a place is busy.

    (`LOADS`, `PACES`, segments), for the end of an operation that visits places, after which packets
    come as a Poisson stream, and for the beginning of a run, which is at a random segment of a packet.
    """
    segment = np.arange(HORIZON)
    size, longer = np.zeros(HORIZON + 1), np.zeros(HORIZON)
    for segments, share in law:
        size[min(segments, HORIZON)] += share
        longer += share * (segment < segments)
    mean = sum(segments * share for segments, share in law)
    rest = (
        np.array([sum(share for segments, share in law if segments > k) for k in range(HORIZON + 1)]) / mean
    )
    load, pace = LOADS[:, None, None], PACES[None, :, None]
    own = rest[::-1].cumsum()[::-1]
    own = np.append(own[1:], 0.0)[:HORIZON]
    fresh = np.zeros((len(LOADS), len(PACES), HORIZON))
    begun = fresh + own * ((segment + 1) * pace < 1.0)
    back = segment[:, None] - segment
    before, before_cut = np.eye(1, HORIZON + 1)[0], rest.copy()
    for number in range(1, OPERATIONS + 1):
        started = longer * _erlang(number, load * np.maximum(1.0 - segment * pace, 0.0))
        for weight, ahead in ((fresh, before), (begun, before_cut)):
            weight += started @ np.where(back >= 0, ahead[np.abs(back)], 0.0).T
        before, before_cut = (np.convolve(x, size)[: HORIZON + 1] for x in (before, before_cut))
    return fresh, begun


def _erlang(number: int, time: FloatArray) -> FloatArray:
    """Return the probability that so many Poisson arrivals of rate 1 come within the time."""
    from scipy.special import gammainc

    return np.asarray(gammainc(number, time))


def _one_after_another(fresh: FloatArray, arcs: int) -> dict[tuple[int, int], FloatArray]:
    """Return the weights of (arc, places still busy) if the places of an arc become free in turn."""
    half = np.sqrt(3.0) * LAW.spread
    ordered = {(1, 1): (_at(fresh, 1.0 - LAW.spread) + _at(fresh, 1.0 + LAW.spread)) / 2.0}
    for arc in range(2, arcs + 1):
        left = [_at(fresh, 1.0 + half * (1.0 - 2.0 * k / (arc + 1))) for k in range(1, arc + 1)]
        left.append(np.zeros_like(fresh))
        ordered |= {(arc, k): left[k - 1] - left[k] for k in range(1, arc + 1)}
    return ordered


def _at(weight: FloatArray, longer: float) -> FloatArray:
    """Return weights for a place that stays busy so many times longer."""
    load, pace = LOADS * longer, PACES / longer
    i, a = _between(LOADS, load)
    j, b = _between(PACES, pace)
    a, b = a[:, None, None], b[:, None]
    low = (1 - b) * weight[i][:, j] + b * weight[i][:, j + 1]
    high = (1 - b) * weight[i + 1][:, j] + b * weight[i + 1][:, j + 1]
    return np.asarray(np.minimum(load / LOADS[0], 1.0)[:, None, None] * ((1 - a) * low + a * high))


def _left_behind(begun: FloatArray, places: int, chunk: int) -> list[FloatArray]:
    """Return the weights of 1, 2, ... places that the old run has left busy, as a new run begins.

    The place a chunk and a half back was last used so many segments earlier.
    """
    padded = np.concatenate([begun, np.zeros((*begun.shape[:2], 1))], axis=-1)
    back = [0] + [round(chunk * (k + 0.5)) for k in range(places - 1)]
    left = [padded[..., np.minimum(np.arange(HORIZON) + k, HORIZON)] for k in back]
    left.append(np.zeros_like(begun))
    return [left[k] - left[k + 1] for k in range(places)]


def _between(grid: FloatArray, value: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the grid point below a value, clipped to the grid, and the part of the way to the next."""
    place = np.interp(value, grid, np.arange(len(grid)))
    below = np.minimum(place.astype(np.int64), len(grid) - 2)
    return below, place - below


@part
def lookup(table: Any, load: Any, pace: Any, vanishes: Any) -> Any:
    """Return the value of a table of `LOADS` x `PACES` points at a load and a pace.

    Below the least load the value ``vanishes`` with it, or stays what a packet alone does to itself.
    """
    i, a = between(LOADS, load)
    j, b = between(PACES, pace)
    first = i * PACES.size + j
    low = (1.0 - b) * table[first] + b * table[first + 1]
    high = (1.0 - b) * table[first + PACES.size] + b * table[first + PACES.size + 1]
    value = (1.0 - a) * low + a * high
    return min(load / LOADS[0], 1.0) * value if vanishes else value


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialColumns:
    """One value per design; the tables belong to all of them."""

    # visits, starts: tables of the walks, see `qmodels.packet_processor.trials.walk.Tables`.
    visits: FloatArray
    starts: FloatArray
    # row, first: walk of a design in the tables, and the same walk with one trial.
    row: IntArray
    first: IntArray
    # ring, chunk: places that a run goes round, and consecutive blocks in each.
    ring: FloatArray
    chunk: FloatArray
    share: FloatArray  # part of all places that are in the ring
    # arcs, reads: visits of a drained packet by the neighbouring places they go to, and the reads in each of
    # these places, (designs, arcs).
    arcs: FloatArray
    reads: FloatArray
    # packets, segments: part of the packets that take blocks by trials, and their segments for each packet of
    # any size.
    packets: FloatArray
    segments: FloatArray


def trial_columns(
    *,
    segments: FloatArray,
    size_share: FloatArray,
    step: FloatArray,
    channels: FloatArray,
    banks: FloatArray,
    row_blocks: FloatArray,
    run_length: FloatArray,
    trials: FloatArray,
    small: FloatArray,
) -> TrialColumns:
    """Return the walks of all designs.

    A place is a row of ``row_blocks`` consecutive blocks in a bank. Steps shorter than a row go
    round the channels and come back to it; longer ones leave a row behind for good, and the ring is
    as long as a walk can get.
    """
    chunk = np.where(channels > 1, np.minimum(step, row_blocks), row_blocks)
    beyond = np.minimum(channels * banks, np.maximum(channels, np.ceil(HORIZON / chunk) + 2.0))
    ring = np.where((channels > 1) & (step < row_blocks), channels, np.minimum(beyond, 62.0))
    cut = np.minimum(1.0 / run_length + 1.0 / (row_blocks * channels), 1.0)
    least = np.minimum(trials, 1024.0)
    shape, of_shape = distinct(np.stack([ring, chunk, run_length]))
    arcs, reads = _arcs(segments, size_share, *shape)
    width = max(arcs.shape[1], min(int(ring.max()), BEHIND))
    walks: list[Tables] = []
    packets, stored = np.zeros((2, ring.size))
    row, first = np.zeros((2, ring.size), dtype=np.int64)
    for least_size in np.unique(small):
        mine = np.flatnonzero(small == least_size)
        large = segments > least_size
        packets[mine], stored[mine] = size_share[large].sum(), size_share[large] @ segments[large]
        both = [np.stack([ring, chunk, t, cut])[:, mine] for t in (least, np.ones_like(least))]
        keys, of_key = distinct(np.concatenate(both, axis=1))
        row[mine], first[mine] = of_key.reshape(2, -1) + sum(len(one.visits) for one in walks)
        key = tuple((int(a), int(b), int(t), p) for a, b, t, p in keys.T.tolist())
        walks.append(tables(key, _law(segments[large], size_share[large]), width))
    return TrialColumns(
        visits=np.concatenate([one.visits for one in walks]),
        starts=np.concatenate([one.starts for one in walks]),
        row=row,
        first=first,
        ring=ring,
        chunk=chunk,
        share=ring / (channels * banks),
        arcs=arcs[of_shape],
        reads=reads[of_shape],
        packets=packets,
        segments=stored,
    )


def _law(segments: FloatArray, size_share: FloatArray) -> Law:
    """Return the law of the sizes that are left, of one segment if none is."""
    if not segments.size:
        return ((1, 1.0),)
    share = size_share / size_share.sum()
    return tuple(zip(segments.astype(int).tolist(), share.tolist(), strict=True))


def _arcs(
    segments: FloatArray, size_share: FloatArray, ring: FloatArray, chunk: FloatArray, run_length: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return a packet's visits by the places they go to, and the accesses in each of these places.

    A packet consists of pieces of runs, see `qmodels.packet_processor.trials.density.row_visits`; a piece
    touches 1 + (length - 1) / chunk places, as a mixture of two whole numbers, at most all of the ring.
    """
    length = np.arange(1.0, segments.max() + 1.0)
    cut = 1.0 / run_length[:, None]
    kept = (1.0 - cut) ** (length - 1.0)
    pieces = np.zeros((len(ring), len(length)))
    for size, share in zip(segments, size_share, strict=True):
        inside = np.maximum(size - length - 1.0, 0.0) * cut**2 + 2.0 * cut
        pieces += share * kept * np.where(length < size, inside, length == size)
    touched = 1.0 + (length - 1.0) / chunk[:, None]
    low = np.floor(touched)
    most = int(np.minimum(ring, np.ceil(touched[:, -1])).max())
    visits, accesses = np.zeros((2, len(ring) * most))
    for places, weight in ((low, 1.0 - touched + low), (low + 1.0, touched - low)):
        arc = np.minimum(np.minimum(places, ring[:, None]), most)
        at = (np.arange(len(ring))[:, None] * most + arc.astype(np.int64) - 1).reshape(-1)
        for total, each in ((visits, pieces * weight), (accesses, pieces * weight * length / arc)):
            total += np.bincount(at, weights=each.reshape(-1), minlength=total.size)
    visits, accesses = visits.reshape(-1, most), accesses.reshape(-1, most)
    return visits, np.maximum(np.divide(accesses, visits, out=np.ones_like(visits), where=visits > 0), 1.0)
