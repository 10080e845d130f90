"""Compiled walks: along a free list by trials, and along the lengths of one with operations of packets."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.numerics.kernels import compiled
from qmodels.systems.packets.free_list import RETURN_ORDERS

AS_READ, RANDOM = (RETURN_ORDERS.index(order) for order in ("as-read", "random"))
NONE = -1
WRITTEN, READ = 0, 1
"""The access before: a write, or a read of a packet's last block; one more for a read of another list."""
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_11, _27, _30, _31 = (np.uint64(n) for n in (11, 27, 30, 31))
_UNIT = 2.0**-53


@compiled
def _uniform(state: Any) -> float:
    """Next number in [0, 1) of SplitMix64 (G. L. Steele et al., OOPSLA 2014)."""
    state[0] += _STEP
    bits = state[0]
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    return float(np.int64((bits ^ (bits >> _31)) >> _11)) * _UNIT


@compiled
def _access(recent: Any, unfinished: Any, place: int, bank: int) -> int:
    """Access a bank, which stays busy during as many later accesses as ``recent`` has places."""
    if recent[place] != NONE:
        unfinished[recent[place]] -= 1
    recent[place] = bank
    unfinished[bank] += 1
    return (place + 1) % recent.size


@compiled
def follow(
    state: Any,
    blocks: Any,
    banks: int,
    trials: int,
    busy: int,
    sizes: Any,
    cumulative: Any,
    within: float,
    elsewhere: float,
    other_packet: float,
    read_last: float,
    order: int,
    readers: int,
    kept: int,
    skipped: int,
    counted: int,
) -> Any:
    """Count busy heads, blocks on the bank of their packet's block before, and pairs of such blocks.

    ``blocks``: the banks of all blocks, of which the first half is in the list and the others are in use;
    ``within``, ``elsewhere``: chance of another access before an allocation right behind one of the same
    packet, and before others; ``kept``: packets in use.
    """
    room, free, longest = blocks.size, blocks.size // 2, sizes[-1]
    ring, head, listed = blocks.copy(), 0, free
    stored, length, packets = np.empty((room, longest), np.int64), np.zeros(room, np.int64), 0
    writing, written, wanted = np.empty((2, longest), np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64)
    reading, read, left = (
        np.empty((readers, longest), np.int64), np.zeros(readers, np.int64), np.zeros(readers, np.int64)
    )  # fmt: skip
    recent, place, unfinished = np.full(busy, NONE), 0, np.zeros(banks, np.int64)
    heads, near, pairs = np.zeros(trials + 1, np.int64), 0, 0
    port, turn, in_use, last = 0, 0, free, NONE
    for step in range(skipped + counted):
        counts = step >= skipped
        before = port
        if _uniform(state) < other_packet:
            port = 1 - port
        if wanted[port] == 0:
            size = np.searchsorted(cumulative, _uniform(state), "right")
            wanted[port], written[port] = sizes[min(size, sizes.size - 1)], 0
        # Between two allocations lies the read that returned a packet, or another access.
        if last != NONE and _uniform(state) < read_last:
            place = _access(recent, unfinished, place, last)
        elif _uniform(state) < (within if port == before and written[port] > 0 else elsewhere):
            place = _access(recent, unfinished, place, int(_uniform(state) * banks))
        last = NONE
        rejected = 0
        while True:
            bank = ring[head]
            head = (head + 1) % room
            found = unfinished[bank] > 0
            heads[rejected] += counts
            if not found or rejected == trials - 1:
                break
            ring[(head + listed - 1) % room] = bank
            rejected += 1
        heads[rejected + 1] += counts and found
        listed -= 1
        place = _access(recent, unfinished, place, bank)
        if written[port] > 0:
            pairs += counts
            near += counts and writing[port, written[port] - 1] == bank
        writing[port, written[port]] = bank
        written[port] += 1
        if written[port] == wanted[port]:
            stored[packets, : written[port]] = writing[port, : written[port]]
            length[packets] = written[port]
            packets, wanted[port] = packets + 1, 0
        if in_use > 0:  # one of those that were in use from the start
            in_use -= 1
            ring[(head + listed) % room] = blocks[free + in_use]
            listed += 1
        # Of packets chosen at random as many blocks return as are taken, or one packet for each stored.
        while packets > (0 if order == AS_READ else kept) and (listed < free or order != AS_READ):
            chosen, turn = turn, (turn + 1) % readers
            if left[chosen] == 0:
                k, packets = int(_uniform(state) * packets), packets - 1
                n = length[k]
                reading[chosen, :n] = stored[k, :n]
                stored[k, : length[packets]], length[k] = stored[packets, : length[packets]], length[packets]
                if order == RANDOM:
                    for i in range(n - 1, 0, -1):
                        other = int(_uniform(state) * (i + 1))
                        bank = reading[chosen, i]
                        reading[chosen, i], reading[chosen, other] = reading[chosen, other], bank
                left[chosen], read[chosen] = n, 0
            for _ in range(1 if order == AS_READ else left[chosen]):
                last = reading[chosen, read[chosen]]
                ring[(head + listed) % room] = last
                read[chosen], left[chosen], listed = read[chosen] + 1, left[chosen] - 1, listed + 1
    return heads, near, pairs


@compiled
def walk_lengths(
    state: Any, rate: float, ends: Any, listed: Any, own: Any, other: Any, slots: int, phase: float
) -> Any:
    """Move the law of a list's length on by n slots of one input and one output at steady paces.

    ``state``: law of the last access (`WRITTEN`, `READ` of a block of the list, or of another one), of the
    length, of the segments of the next packet that have arrived, and of those of a packet still to be read;
    ``rate``: segments that arrive a slot; ``ends``: probability that a packet ends with its k-th segment if
    it has that many; ``listed``: whether packets of k segments take blocks of the list; ``own``, ``other``:
    probability that a packet that leaves returns k blocks to the list, or has k that it does not.
    Returns how often a packet's first write finds n blocks, by the last access; the same for its middle
    writes and its last one; how often n segments are stored of packets of each size; the
    phase of the input.
    """
    kinds, room, arriving, leaving = state.shape
    first, within = np.zeros((kinds, room)), np.zeros((2, room))
    stored = np.zeros((arriving + 1, arriving + 1))
    for _ in range(slots):
        taken_up = np.zeros((room, arriving))
        for kind in range(kinds):
            for length in range(room):
                for has in range(arriving):
                    mass = state[kind, length, has, 1]
                    taken_up[length, has] += mass
                    for left in range(1, leaving - 1):
                        state[kind, length, has, left] = state[kind, length, has, left + 1]
                    state[kind, length, has, leaving - 1] = 0.0
        for length in range(room):
            for has in range(arriving):
                mass = taken_up[length, has]
                if mass > 0.0:
                    for size in range(1, leaving):
                        state[READ, min(length + size, room - 1), has, size] += mass * own[size]
                        state[READ + 1, length, has, size] += mass * other[size]
        phase += rate
        while phase >= 1.0:
            phase -= 1.0
            after = np.zeros_like(state)
            for kind in range(kinds):
                for length in range(room):
                    for has in range(arriving):
                        size = has + 1
                        taken = min(size, length) if listed[size] else 0
                        for left in range(1, leaving):
                            mass = state[kind, length, has, left]
                            if mass == 0.0:
                                continue
                            if ends[size] < 1.0:
                                after[kind, length, size, left] += mass * (1.0 - ends[size])
                            mass *= ends[size]
                            if listed[size]:
                                stored[size, taken] += mass
                                if taken > 0:
                                    first[kind, length] += mass
                                for more in range(1, taken):
                                    within[int(more == taken - 1), length - more] += mass
                            write = taken > 0 or not listed[size]
                            after[WRITTEN if write else kind, length - taken, 0, left] += mass
            state[:] = after
    return first, within, stored, phase
