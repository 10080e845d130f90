"""A reference simulation of a free list, which shares nothing with the models."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

Simulate = Callable[..., tuple[float, Any, float]]


def _simulate(
    banks, recent, trials, ring, stored, sizes, cumulative, allocations,
    other_access, other_packet, read_last, order, rng,
):  # fmt: skip
    """Store packets and return random ones, one for each beyond ``stored``; count after a tenth.

    Gives the share of blocks taken on busy banks, that of 0, 1, ... rejections, and that of
    blocks on the bank of their packet's block before. With ``other_packet`` two packets are stored in
    turn; with ``read_last`` the last access before an allocation that follows a return is to
    the returned packet's last block. ``order``: 0 together, 1 in random order, 1 + n as read
    by n readers, in turn a block of each, one for each block taken.
    """
    blocks = ring.size
    head, free, at = 0, blocks, 0
    following = np.empty(blocks, np.int64)
    first, length = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
    kept = 0
    left, begin = np.zeros(2, np.int64), np.zeros(2, np.int64)
    count, before = np.zeros(2, np.int64), np.zeros(2, np.int64)
    reading, unread = np.zeros(max(order, 1), np.int64), np.zeros(max(order, 1), np.int64)
    port, turn, in_use = 0, 0, 0
    conflicts, counted, near, pairs = 0, 0, 0, 0
    rejections = np.zeros(trials)
    for step in range(allocations):
        if rng.random() < other_packet:
            port = 1 - port
        if left[port] == 0:
            drawn, kind = rng.random(), 0
            while cumulative[kind] <= drawn:
                kind += 1
            size = sizes[kind]
            left[port], count[port], before[port] = size, size, -1
        rejected = 0
        while True:
            block = ring[head]
            head = (head + 1) % blocks
            free -= 1
            found = False
            for other in recent:
                found |= other == block % banks
            if not found or rejected == trials - 1:
                break
            ring[(head + free) % blocks] = block
            free += 1
            rejected += 1
        if step >= allocations // 10:
            counted += 1
            conflicts += found
            rejections[rejected] += 1
            if before[port] >= 0:
                pairs += 1
                near += before[port] % banks == block % banks
        recent[at] = block % banks
        at = (at + 1) % recent.size
        if before[port] < 0:
            begin[port] = block
        else:
            following[before[port]] = block
        before[port] = block
        left[port] -= 1
        if rng.random() < other_access:
            recent[at] = rng.integers(0, banks)
            at = (at + 1) % recent.size
        in_use += 1
        if left[port] == 0:
            first[kept], length[kept] = begin[port], count[port]
            kept += 1
        while order > 1 and 2 * in_use > blocks:
            turn = (turn + 1) % (order - 1)
            if unread[turn] == 0:
                place = rng.integers(0, kept)
                reading[turn], unread[turn] = first[place], length[place]
                kept -= 1
                first[place], length[place] = first[kept], length[kept]
            ring[(head + free) % blocks] = reading[turn]
            reading[turn] = following[reading[turn]]
            unread[turn] -= 1
            free += 1
            in_use -= 1
        if left[port] > 0 or order > 1 or kept <= stored:
            continue
        kept -= 1
        place = rng.integers(0, stored + 1)
        block = first[place]
        for k in range(length[place]):
            ring[(head + free) % blocks] = block
            free += 1
            if k + 1 < length[place]:
                block = following[block]
        if order == 1:
            for k in range(length[place] - 1):
                other = rng.integers(k, length[place])
                one, two = (head + free - 1 - k) % blocks, (head + free - 1 - other) % blocks
                ring[one], ring[two] = ring[two], ring[one]
        first[place], length[place] = first[stored], length[stored]
        if read_last:
            recent[at] = block % banks
            at = (at + 1) % recent.size
    return conflicts / counted, rejections / counted, near / max(pairs, 1)


@pytest.fixture(scope="session")
def simulate_list() -> Simulate:
    """Return the simulation, compiled."""
    compiled = numba.njit(_simulate)

    def simulate(
        *,
        banks: int,
        busy: int = 1,
        trials: int,
        blocks: int | None = None,
        stored: int = 3000,
        segments: tuple[int, ...] = (1,),
        probability: tuple[float, ...] = (1.0,),
        allocations: int = 4_000_000,
        other_access: float = 0.0,
        other_packet: float = 0.0,
        read_last: bool = False,
        return_order: str = "together",
        readers: int = 1,
        seed: int = 1,
    ) -> tuple[float, Any, float]:
        sizes, cumulative = np.array(segments), np.cumsum(probability)
        cumulative[-1] = 1.0
        mean = float(sizes @ np.array(probability))
        room = blocks or round(2 * stored * mean / banks) * banks
        order = {"together": 0, "random": 1, "as-read": 1 + readers}[return_order]
        rng = np.random.default_rng(seed)
        return compiled(
            banks, np.full(busy, -1), trials, rng.permutation(room), stored, sizes, cumulative, allocations,
            other_access, other_packet, read_last, order, rng,
        )  # fmt: skip

    return simulate
