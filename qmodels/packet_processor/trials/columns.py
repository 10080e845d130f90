"""The walks of the free list that the designs of a sweep need, and who visits their places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.packet_processor.trials.walk import BEHIND, HORIZON, Law, Tables, lookup, tables


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialColumns:
    """One value per design; the tables belong to all of them."""

    walks: tuple[Tables, ...]  # walks of the packets of each number of sizes that take blocks by trials
    # walk, row, first: of a design: its walks, its row there, and that of the same walk with one trial.
    walk: IntArray
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

    def take(self, designs: IntArray) -> TrialColumns:
        """Return some of the designs."""
        columns: dict[str, Any] = {
            name: value[designs] for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        return replace(self, **columns)

    def by_visits(
        self,
        kind: str,
        *,
        busy: FloatArray,
        lone: FloatArray,
        pace: FloatArray,
        rate: FloatArray,
        lone_rate: FloatArray,
        lookups: FloatArray,
    ) -> FloatArray:
        """Return what reads and lookups of others do to a segment, mean.

        Parameters
        ----------
        kind : str
            One of `qmodels.packet_processor.trials.walk.KINDS`.
        busy, lone : ndarray
            Time that a visit keeps its places busy, by arc, and that of a lookup. [ns]
        pace : ndarray
            Time between the segments of a packet. [ns]
        rate, lone_rate : ndarray
            Packets stored per ns, after a visit and after a lookup.
        lookups : ndarray
            Lookups of a packet that go to DRAM.
        """
        times = np.concatenate([np.maximum(busy, 1e-3), np.maximum(lone, 1e-3)[:, None]], axis=1)
        visits = np.concatenate([self.arcs, lookups[:, None]], axis=1)
        number = self.walks[0].visits[kind].shape[1]
        arc = np.append(np.arange(self.arcs.shape[1]), 0)
        load = times * self.packets[:, None]
        load[:, :-1] *= rate[:, None]
        load[:, -1] *= lone_rate
        each = self._of_walks(kind, "visits", self.row[:, None] * number + arc, load, pace[:, None] / times)
        total = (visits * each).sum(axis=1) * self.share
        return np.divide(total, self.segments, out=np.zeros_like(total), where=self.segments > 0)

    def by_starts(
        self,
        kind: str,
        *,
        busy: FloatArray,
        pace: FloatArray,
        rate: FloatArray,
        cut: FloatArray,
        first: bool = False,
    ) -> FloatArray:
        """Return what a run's end does to a segment: writes of the old run keep their places ``busy``."""
        time = np.maximum(busy, 1e-3)
        row = self.first if first else self.row
        each = self._of_walks(kind, "starts", row, rate * self.packets * time, pace / time)
        return np.where(self.segments > 0, each * self.share * cut, 0.0)

    def _of_walks(
        self, kind: str, table: str, row: IntArray, load: FloatArray, pace: FloatArray
    ) -> FloatArray:
        if len(self.walks) == 1:
            return lookup(
                getattr(self.walks[0], table)[kind], row, load=load, pace=pace, vanishes=table == "visits"
            )
        each = np.zeros_like(load)
        for number, walk in enumerate(self.walks):
            mine = self.walk == number
            each[mine] = lookup(
                getattr(walk, table)[kind],
                row[mine],
                load=load[mine],
                pace=pace[mine],
                vanishes=table == "visits",
            )
        return each


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
    cut = 1.0 / run_length + 1.0 / (row_blocks * channels)
    least = np.minimum(trials, 1024.0)
    shape, of_shape = np.unique(np.stack([ring, chunk, run_length]), axis=1, return_inverse=True)
    arcs, reads = _arcs(segments, size_share, *shape)
    width = max(arcs.shape[1], min(int(ring.max()), BEHIND))
    walks: list[Tables] = []
    packets, stored = np.zeros((2, ring.size))
    walk, row, first = np.zeros((3, ring.size), dtype=np.int64)
    for number, least_size in enumerate(np.unique(small)):
        mine = np.flatnonzero(small == least_size)
        large = segments > least_size
        packets[mine], stored[mine] = size_share[large].sum(), size_share[large] @ segments[large]
        both = [np.stack([ring, chunk, t, cut])[:, mine] for t in (least, np.ones_like(least))]
        keys, of_key = np.unique(np.concatenate(both, axis=1), axis=1, return_inverse=True)
        row[mine], first[mine] = of_key.reshape(2, -1)
        walk[mine] = number
        key = tuple((int(a), int(b), int(t), p) for a, b, t, p in keys.T.tolist())
        walks.append(tables(key, _law(segments[large], size_share[large]), width))
    return TrialColumns(
        walks=tuple(walks),
        walk=walk,
        row=row,
        first=first,
        ring=ring,
        chunk=chunk,
        share=ring / (channels * banks),
        arcs=arcs[of_shape.reshape(-1)],
        reads=reads[of_shape.reshape(-1)],
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

    A packet consists of pieces of runs, see `qmodels.packet_processor.trials.row_visits.row_visits`; a piece
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
    visits, accesses = np.zeros((len(ring), most)), np.zeros((len(ring), most))
    design = np.arange(len(ring))
    for k in range(len(length)):
        for places, part in (
            (low[:, k], 1.0 - touched[:, k] + low[:, k]),
            (low[:, k] + 1.0, touched[:, k] - low[:, k]),
        ):
            arc = np.minimum(np.minimum(places, ring), most).astype(np.int64)
            visits[design, arc - 1] += pieces[:, k] * part
            accesses[design, arc - 1] += pieces[:, k] * part * length[k] / arc
    return visits, np.maximum(np.divide(accesses, visits, out=np.ones_like(visits), where=visits > 0), 1.0)
