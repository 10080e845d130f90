"""Time a packet alone in an idle memory needs: the critical path through links, banks and buses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.numerics.kernels import kernel, part
from qmodels.systems.memory.memory_map import bank_of, channel_of, index_in_bank, index_in_channel

PLACEMENTS = 24
LONGEST_WALK = 48
SPACE = 2**22
"""Places of the address space over which packets are put. [blocks]"""
SOON = 24
"""Packets up to which plain Python is quick enough to be used instead of compiling."""
(
    STEP, CHANNELS, BANKS, BANK_STEP, ROW_BLOCKS, RUN_LENGTH, BURST, RECOVERY, PRECHARGE, ACCESS, SERVICE,
    SPACING, DELIVERED,
) = range(13)  # fmt: skip
"""Numbers of a packet's memory: address map, DRAM times, mean run length of the free list; time of an access
on the link that passes it on, and between two accesses that come to the memory; whether they are done when
that link has passed them on, or when they are there."""
for _formula in (bank_of, channel_of, index_in_bank, index_in_channel):
    part(_formula)


def walks(z: FloatArray, *, count: int, open_page: bool) -> FloatArray:
    """Return when the first 1, 2, ... accesses of packets are done, and how that varies with their place.

    Each packet is put on ``PLACEMENTS`` fixed, evenly spread places of the address space, its run cut as
    often as the free list's runs are.

    Parameters
    ----------
    z : array, (packets, numbers)
        See the names above; times in one unit.
    count : int
        Accesses.
    open_page : bool
        Whether rows stay open.

    Returns
    -------
    array, (4, packets, count)
        With all rows closed at first, and with all rows open that are needed (open pages only); then the
        standard deviations of both over the placements.
    """
    ends = np.zeros((4, len(z), count))
    walk_all(np.ascontiguousarray(z), *_draws(count), open_page, ends)
    ends /= PLACEMENTS
    ends[2:] = np.sqrt(np.maximum(ends[2:] - ends[:2] ** 2, 0.0))
    return ends


@lru_cache(maxsize=64)
def _draws(count: int) -> tuple[FloatArray, IntArray]:
    """Return for each access and placement a level below which the run is cut, and where it goes on then."""
    rng = np.random.default_rng(0)
    spread = (np.arange(PLACEMENTS) + 0.5) / PLACEMENTS
    cut, block = np.zeros((count, PLACEMENTS)), np.zeros((count, PLACEMENTS), dtype=np.int64)
    block[0] = (rng.permutation(spread) * SPACE).astype(np.int64)
    for j in range(1, count):
        cut[j], block[j] = rng.permutation(spread), rng.integers(SPACE, size=PLACEMENTS)
    return cut, block


@kernel(soon=lambda z, *others: z.shape[0] <= SOON)
def walk_all(z: Any, cut: Any, block: Any, open_page: Any, ends: Any) -> None:
    """Add up over the placements when accesses of each packet are done, and the squares, see `walks`."""
    count, placements = cut.shape
    most = int((z[:, CHANNELS] * z[:, BANKS]).max())
    # Of each bank the walk that used it last, when it is free, and its row; then the same of each bus.
    last, row, used = np.full(most, -1), np.zeros(most, dtype=np.int64), np.zeros(most)
    bus_last, bus, line = np.full(most, -1), np.zeros(most), np.zeros(count)
    places = np.zeros((placements, count, 3), dtype=np.int64)
    walk = 0
    for i in range(z.shape[0]):
        if i == 0 or moved(z[i], z[i - 1]):
            put(z[i], cut, block, places)
        for warm in range(2):
            for p in range(placements):
                walk += 1
                latest = 0.0
                for j in range(count):
                    channel, bank, here = places[p, j, 0], places[p, j, 1], places[p, j, 2]
                    arrival = j * z[i, SPACING]
                    hit, free = warm == 1 and open_page, arrival
                    if last[bank] == walk:
                        hit, free = open_page and row[bank] == here, max(arrival, used[bank])
                    if open_page and not hit:
                        free += z[i, PRECHARGE]
                    if bus_last[channel] == walk:
                        free = max(free, bus[channel])
                    end = free + z[i, BURST]
                    last[bank], row[bank], used[bank] = walk, here, end if hit else end + z[i, RECOVERY]
                    bus_last[channel], bus[channel] = walk, end
                    end += z[i, ACCESS]
                    if z[i, DELIVERED]:
                        latest = pass_on(line, j, end, z[i, SERVICE])
                    else:
                        latest = max(latest, end)
                    ends[warm, i, j] += latest
                    ends[2 + warm, i, j] += latest * latest


@part
def moved(z: Any, other: Any) -> Any:
    """Return whether the accesses of two packets are at other places."""
    found = False
    for k in range(RUN_LENGTH + 1):
        found = found or z[k] != other[k]
    return found


@part
def put(z: Any, cut: Any, block: Any, places: Any) -> None:
    """Fill in channel, bank and row of each access, for all placements; divisions take most of the time."""
    at = 0
    for p in range(cut.shape[1]):
        for j in range(cut.shape[0]):
            at = block[j, p] if j == 0 or cut[j, p] < 1.0 / z[RUN_LENGTH] else at + 1
            places[p, j, 0], places[p, j, 1], places[p, j, 2] = locate(z, at)


@part
def locate(z: Any, block: Any) -> Any:
    """Return channel, bank (counted over all channels) and row of a block."""
    step, channels, banks = int(z[STEP]), int(z[CHANNELS]), int(z[BANKS])
    bank_step, index = int(z[BANK_STEP]), index_in_channel(block, step, channels)
    channel, row = channel_of(block, step, channels), index_in_bank(index, bank_step, banks)
    return channel, channel * banks + bank_of(index, bank_step, banks), row // int(z[ROW_BLOCKS])


@part
def pass_on(line: Any, waiting: Any, arrival: Any, service: Any) -> Any:
    """Add an arrival to those on a link, in their order, and return when the link has passed on all of them.

    A link works on without a break once packets wait, so the last of n leaves at
    ``max_k (a_(k) + (n - k + 1) s)`` over the sorted arrivals.
    """
    k = waiting
    while k > 0 and line[k - 1] > arrival:
        line[k] = line[k - 1]
        k -= 1
    line[k] = arrival
    leaves = 0.0
    for k in range(waiting + 1):
        leaves = max(leaves, line[k] + (waiting + 1 - k) * service)
    return leaves
