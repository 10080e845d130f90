"""Time a packet alone in an idle memory needs: the critical path through links, banks and buses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.memory.address_map import AddressMap

PLACEMENTS = 24
LONGEST_WALK = 48


@dataclass(frozen=True, kw_only=True, eq=False)
class LonePacket:
    """What the walk needs of each design; arrays of one value per design, times in one unit."""

    # step, channels, banks, bank_step, row_blocks, mean_run_length: address map and free list.
    step: FloatArray
    channels: FloatArray
    banks: FloatArray
    bank_step: FloatArray
    row_blocks: FloatArray
    mean_run_length: FloatArray
    open_page: bool  # whether rows stay open
    # burst, recovery, precharge, access: DRAM times.
    burst: FloatArray
    recovery: FloatArray
    precharge: FloatArray
    access: FloatArray

    def done(self, *, first: FloatArray, spacing: FloatArray, count: int, warm: bool = False) -> Any:
        """Return when each access has its data; with ``warm`` rows it needs are open (open pages only).

        Access ``j`` reaches its bank at ``first + j spacing``. The results have the shape
        (designs, placements, count): the packet is put on ``PLACEMENTS`` fixed, evenly spread
        places of the address space, its run cut as often as the free list's runs are.
        """
        channel, bank, row = self._places(count)
        shape = channel.shape
        burst, recovery, access = (x[:, None] for x in (self.burst, self.recovery, self.access))
        precharge = self.precharge[:, None] if self.open_page else np.zeros((shape[0], 1))
        bank_free = np.empty(shape)
        end = np.empty(shape)
        for j in range(count):
            arrival = (first + j * spacing)[:, None]
            ready = np.broadcast_to(arrival + (0.0 if warm else precharge), shape[:2]).copy()
            bus_free = np.zeros(shape[:2])
            hit = np.full(shape[:2], warm and self.open_page)
            for i in range(j):
                same_channel = channel[..., i] == channel[..., j]
                same_bank = same_channel & (bank[..., i] == bank[..., j])
                hit = np.where(same_bank, self.open_page & (row[..., i] == row[..., j]), hit)
                start = np.maximum(arrival, bank_free[..., i]) + np.where(hit, 0.0, precharge)
                ready = np.where(same_bank, start, ready)
                bus_free = np.where(same_channel, np.maximum(bus_free, end[..., i]), bus_free)
            end[..., j] = np.maximum(ready, bus_free) + burst
            bank_free[..., j] = end[..., j] + np.where(hit, 0.0, recovery)
        return end + access[..., None]

    def _places(self, count: int) -> tuple[Any, Any, Any]:
        rng = np.random.default_rng(0)
        spread = (np.arange(PLACEMENTS) + 0.5) / PLACEMENTS
        address_map = AddressMap(
            interleaving_step=_whole(self.step),
            channels=_whole(self.channels),
            banks=_whole(self.banks),
            bank_step=_whole(self.bank_step),
            row_blocks=_whole(self.row_blocks),
        )
        space = 2**22
        block = np.empty((len(self.step), PLACEMENTS, count), dtype=np.int64)
        block[..., 0] = (rng.permutation(spread) * space).astype(np.int64)
        for j in range(1, count):
            cut = rng.permutation(spread) < 1.0 / self.mean_run_length[:, None]
            block[..., j] = np.where(cut, rng.integers(space, size=PLACEMENTS), block[..., j - 1] + 1)
        return address_map.locate(block)


def _whole(values: FloatArray) -> Any:
    return values.astype(np.int64)[:, None, None]


def last_of_first(done: Any) -> Any:
    """Return for every count n the mean time the last of the first n accesses is done, (designs, n)."""
    return np.maximum.accumulate(done, axis=-1).mean(axis=1)


def last_delivered(arrival: Any, service: FloatArray) -> Any:
    """Return for every count n when a link has passed on the first n packets, mean over placements.

    A link works on without a break once packets wait, so the last of n leaves at
    ``max_k (a_(k) + (n - k + 1) s)`` over the sorted arrivals.
    """
    count = arrival.shape[-1]
    result = np.empty((arrival.shape[0], count))
    for n in range(1, count + 1):
        ordered = np.sort(arrival[..., :n], axis=-1)
        behind = service[:, None, None] * np.arange(n, 0, -1)
        result[:, n - 1] = (ordered + behind).max(axis=-1).mean(axis=-1)
    return result
