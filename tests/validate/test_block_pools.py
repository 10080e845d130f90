"""Blocks taken with trials from lists that lie in a memory, against plain Python."""

from collections import deque

import numpy as np

from qmodels import dram
from qmodels.packets import FreeList
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.packets.free_list import allocation_accesses
from validate.data_queueing.free_lists import (
    NOWHERE,
    begin_access,
    chain,
    end_access,
    free_blocks,
    give_back,
    new_pools,
    take_block,
)

MEMORIES = [
    dram("DDR4-3200", channels=2, page_policy="closed", address_map=Interleaved(step=4)),
    dram("HBM2", channels=3, page_policy="open"),
]
LISTS = [
    FreeList(segments=900, alloc_trial_count=4, mean_run_length=3.0),
    FreeList(segments=700, alloc_trial_count=2, mean_run_length=5.0),
    FreeList(segments=50, alloc_trial_count=3, mean_run_length=1.0),
]
WHERE = [0, 1, NOWHERE]


def pools_of(lists=LISTS, where=WHERE, seed=0):
    rngs = [np.random.default_rng([seed, k]) for k in range(len(lists))]
    return new_pools(lists, MEMORIES, where, rngs)


class Plain:
    """One list as a deque of block numbers, and busy banks counted by (channel, bank)."""

    def __init__(self, pools, k):
        self.free, self.memory, self.trials = deque(), WHERE[k], LISTS[k].alloc_trial_count
        block = int(pools.lists[3 * k]["head"])
        while block != -1:
            self.free.append(int(pools.addresses[block]))
            block = int(pools.blocks[block]["next"])
        self.unfinished, self.row = {}, {}

    def place(self, address):
        spec = MEMORIES[self.memory]
        return tuple(int(x) for x in spec.address_map.locate(address, spec.geometry)[:3])

    def busy(self, address):
        if self.memory == NOWHERE:
            return False
        *bank, row = self.place(address)
        control = MEMORIES[self.memory].page_policy == "open"
        return self.unfinished.get(tuple(bank), 0) > 0 and not (control and self.row[tuple(bank)] == row)

    def take(self):
        rejected = 0
        while rejected + 1 < min(self.trials, len(self.free)) and self.busy(self.free[0]):
            self.free.append(self.free.popleft())
            rejected += 1
        return self.free.popleft(), allocation_accesses(rejected)


def take_blocks(pools, k, count):
    """Take n blocks; return the first, the last, and the accesses this took."""
    first, accesses = take_block(pools, k, count)
    last = first
    for _ in range(count - 1):
        block, more = take_block(pools, k, count)
        chain(pools, last, block)
        last, accesses = block, accesses + more
    return first, last, accesses


def test_blocks_and_accesses_are_those_of_plain_lists():
    pools, rng = pools_of(), np.random.default_rng(3)
    plain = [Plain(pools, k) for k in range(3)]
    held, under_way, rejections = [], [], 0
    for _ in range(3000):
        k, count = int(rng.integers(3)), int(rng.integers(1, 6))
        move = rng.random()
        if move < 0.45 and free_blocks(pools, k, count) >= count:
            first, last, accesses = take_blocks(pools, k, count)
            known = [plain[k].take() for _ in range(count)]
            rejections += accesses > count
            assert accesses == sum(a for _, a in known)
            assert walk(pools, first, last) == [address for address, _ in known]
            held.append((k, first, last, count))
            for address, _ in known:
                if WHERE[k] != NOWHERE:
                    channel, bank, row = plain[k].place(address)
                    begin_access(pools, WHERE[k], channel, bank, row)
                    board = plain[k]
                    board.unfinished[channel, bank] = board.unfinished.get((channel, bank), 0) + 1
                    board.row[channel, bank] = row
                    under_way.append((k, channel, bank))
        elif move < 0.8 and held:
            k, first, last, count = held.pop(int(rng.integers(len(held))))
            plain[k].free.extend(walk(pools, first, last))
            give_back(pools, k, first, last, count)
        while len(under_way) > 12:
            k, channel, bank = under_way.pop(0)
            end_access(pools, WHERE[k], channel, bank)
            plain[k].unfinished[channel, bank] -= 1
    assert rejections > 50
    for k, one in enumerate(plain):
        assert pools.lists[3 * k]["length"] == len(one.free)
        for _ in range(len(one.free)):
            block, accesses = take_block(pools, k, 1)
            assert (pools.addresses[block], accesses) == one.take()
        assert free_blocks(pools, k, 1) == 0


def walk(pools, first, last):
    """Return the addresses of a chain."""
    found = [first]
    while found[-1] != last:
        found.append(int(pools.blocks[found[-1]]["next"]))
    assert pools.blocks[last]["next"] == -1
    return pools.addresses[found].tolist()


def test_blocks_lie_where_the_memory_says():
    pools = pools_of()
    start = 0
    for k, (one, where) in enumerate(zip(LISTS, WHERE, strict=True)):
        table = slice(start, start + one.segments)
        start += one.segments
        assert np.array_equal(np.sort(pools.addresses[table]), np.arange(one.segments))
        if where == NOWHERE:
            assert not pools.blocks["bank"][table].any()
            continue
        spec = MEMORIES[where]
        place = spec.address_map.locate(pools.addresses[table], spec.geometry)
        first = 1 + sum(m.geometry.channels * m.geometry.channel_banks for m in MEMORIES[:where])
        assert np.array_equal(
            pools.blocks["bank"][table], first + place.channel * spec.geometry.channel_banks + place.bank
        )
        assert np.array_equal(pools.blocks["page"][table], place.row)
        assert pools.boards[where].tolist() == [first, spec.geometry.channel_banks], k


def test_small_requests_have_lists_on_either_half_of_the_banks():
    one = FreeList(segments=600, small_packet_segments=2, vms1_share=0.5, mean_run_length=4.0)
    pools = pools_of([LISTS[1], one], [1, 0])
    spec = MEMORIES[0]
    assert (free_blocks(pools, 1, 3), free_blocks(pools, 1, 2)) == (300, 300)
    first, last, accesses = take_blocks(pools, 1, 2)
    small = walk(pools, first, last)
    assert accesses == 2 and min(small) >= 300
    # The head of VMS2 lies in the lower half; with all banks there busy that of VMS3 in the upper half.
    total = spec.geometry.channel_banks
    assert all(2 * spec.address_map.locate(block, spec.geometry).bank < total for block in small)
    for channel in range(2):
        for bank in range(total // 2):
            begin_access(pools, 0, channel, bank, 0)
    other, _ = take_block(pools, 1, 1)
    assert 2 * spec.address_map.locate(int(pools.addresses[other]), spec.geometry).bank >= total
    chain(pools, last, other)
    large, end, _ = take_blocks(pools, 1, 5)
    assert max(walk(pools, large, end)) < 300
    chain(pools, other, large)
    give_back(pools, 1, first, end, 8)
    # Each block is on the list that it came from.
    assert [int(n) for n in pools.lists["length"][3:]] == [300, *np.bincount(pools.blocks["list"][700:])[1:]]
    assert free_blocks(pools, 0, 1) == 700
