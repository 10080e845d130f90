"""Accesses to one channel in their order: of packets, streams, traces and random reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import IntArray
from qmodels.systems.memory.dram_system import SPAN, AddressTrace, DramSystem, Packets, RandomBlocks

ACCESSES = 1 << 16
"""Accesses of a channel that its waits are derived from."""
LEAST_PACKETS, MOST_BLOCKS, LONG_PACKETS = 2048, 1 << 18, 4
"""Packets at least, where they have no more blocks than that in all; long ones at least the last."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Visits:
    """Accesses to a channel, those of a packet being one visit."""

    visit: IntArray  # number of the visit of each access, ascending from 0
    offset: IntArray  # from the first access of the visit [cycles]
    # bank, write: bank of the channel of each access; 1 for a write.
    bank: IntArray
    row: IntArray | None  # row of each access of packets; those of others follow from ``hit``
    write: IntArray
    hit: Any  # whether the access before to that bank was to the same row; None for packets
    # Of each visit among the accesses of the whole system, where these arrive as a Poisson process.
    position: IntArray

    @property
    def count(self) -> int:
        """Visits."""
        return int(self.visit[-1]) + 1

    @property
    def size(self) -> float:
        """Accesses of a visit, mean."""
        return self.visit.size / self.count

    def rows(self, run: IntArray, index: IntArray) -> IntArray:
        """Return rows of accesses that are served in runs: 0 is the row that is open before the run."""
        if self.row is not None:
            return self.row[index] + 1
        bank = self.bank[index]
        order = np.lexsort((bank, run))
        missed = ~self.hit[index][order]
        total = np.cumsum(missed)
        new = np.append(True, (np.diff(run[order]) != 0) | (np.diff(bank[order]) != 0))
        before = np.maximum.accumulate(np.where(new, total - missed, 0))
        row = np.empty(index.size, dtype=np.int64)
        row[order] = total - before
        return row


def channel_visits(
    spec: DramSystem, channel: int, rng: np.random.Generator, most: int | None = None
) -> Visits:
    """Sequence of accesses to a channel.

    Packets start at random places and random reads go to random banks, drawn with ``rng``; streams and
    traces are followed from their start. Of packets about the first ``most`` visits are enough, if given.
    """
    g, traffic = spec.geometry, spec.traffic
    if isinstance(traffic, RandomBlocks):
        each = np.arange(ACCESSES)
        return Visits(
            visit=each, offset=0 * each, bank=rng.integers(g.channel_banks, size=ACCESSES), row=None,
            write=_writes(rng, traffic.write_fraction, ACCESSES), position=each,
            hit=rng.random(ACCESSES) < traffic.row_hit_probability,
        )  # fmt: skip
    if isinstance(traffic, Packets):
        return _packets(spec, traffic, channel, rng, most)
    if isinstance(traffic, AddressTrace):
        blocks = np.resize(np.array(traffic.blocks, dtype=np.int64), max(ACCESSES, len(traffic.blocks)))
        write = np.resize(np.array(traffic.writes or (0,), dtype=np.int64), blocks.size)
    else:
        blocks = np.arange(ACCESSES * g.channels, dtype=np.int64) * traffic.stride % SPAN
        write = _writes(rng, traffic.write_fraction, blocks.size)
    place = spec.address_map.locate(blocks, g)
    here = np.flatnonzero(np.broadcast_to(place.channel, blocks.shape) == channel)[: 2 * ACCESSES]
    bank = np.broadcast_to(place.bank, blocks.shape)[here].astype(np.int64)
    row = np.broadcast_to(place.row, blocks.shape)[here]
    order = np.argsort(bank, kind="stable")
    hit = np.zeros(here.size, dtype=bool)
    hit[order[1:]] = (np.diff(bank[order]) == 0) & (np.diff(row[order]) == 0)
    each = np.arange(here.size)
    return Visits(
        visit=each, offset=0 * each, bank=bank, row=None, write=write[here], hit=hit,
        position=here,
    )  # fmt: skip


def _writes(rng: np.random.Generator, share: float, size: int) -> IntArray:
    return (rng.random(size) < share).astype(np.int64)


def _packets(
    spec: DramSystem, traffic: Packets, channel: int, rng: np.random.Generator, most: int | None
) -> Visits:
    g = spec.geometry
    count = max(min(LEAST_PACKETS, MOST_BLOCKS // traffic.blocks), ACCESSES // traffic.blocks, LONG_PACKETS)
    count *= 1 if g.channels == 1 else 2
    start, write = rng.integers(SPAN, size=count), _writes(rng, traffic.write_fraction, count)
    used = count if most is None else min(most, count)
    while True:
        blocks = start[:used, None] + np.arange(traffic.blocks)
        place = spec.address_map.locate(blocks, g)
        here = np.broadcast_to(place.channel, blocks.shape) == channel
        if used == count or np.count_nonzero(here.any(axis=1)) >= (most or 0):
            break
        used = min(2 * used, count)
    packet, number = np.nonzero(here)
    visit = np.cumsum(np.diff(packet, prepend=packet[0]) != 0)
    first = np.flatnonzero(np.diff(visit, prepend=-1))
    offset = number * traffic.spacing
    return Visits(
        visit=visit,
        offset=offset - offset[first][visit],
        bank=np.broadcast_to(place.bank, blocks.shape)[here].astype(np.int64),
        row=np.broadcast_to(place.row, blocks.shape)[here].astype(np.int64),
        write=write[packet],
        hit=None,
        position=np.arange(int(visit[-1]) + 1),
    )
