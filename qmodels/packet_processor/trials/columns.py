"""The walks of the free list that the designs of a sweep need, and who visits their places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.numerics.tables import distinct
from qmodels.packet_processor.trials.walk import BEHIND, HORIZON, Law, Tables, tables


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
    for places, part in ((low, 1.0 - touched + low), (low + 1.0, touched - low)):
        arc = np.minimum(np.minimum(places, ring[:, None]), most)
        at = (np.arange(len(ring))[:, None] * most + arc.astype(np.int64) - 1).reshape(-1)
        for total, each in ((visits, pieces * part), (accesses, pieces * part * length / arc)):
            total += np.bincount(at, weights=each.reshape(-1), minlength=total.size)
    visits, accesses = visits.reshape(-1, most), accesses.reshape(-1, most)
    return visits, np.maximum(np.divide(accesses, visits, out=np.ones_like(visits), where=visits > 0), 1.0)
