"""Free lists of some memories side by side, for kernels: blocks are taken with trials and given back.

- `free_blocks` says how many blocks a request of a size may take; one that wants more is lost, whole.
- `take_block` takes one, and says which accesses to the pointer memory that took; `chain` puts chains
  together. ``addresses`` has the block's number in the memory, ``blocks[block]["next"]`` the one behind it
  in its chain, -1 for none.
- `give_back` returns a chain.
- `begin_access` and `end_access` keep the scoreboard of a memory: a bank is busy from when an access to it is
  issued until it ends. Trials of the lists that lie in this memory skip blocks of busy banks; with open
  pages not those of the row that was accessed last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import IntArray
from qmodels.systems.packets.free_list import FreeList
from validate.data_queueing.free_lists import (
    BANK,
    BLOCK,
    LIST,
    NONE,
    VMS1,
    VMS2,
    VMS3,
    allocate_by_trials,
    allocate_small,
    free_each,
    splice_tail,
)
from validate.dram.inputs import AddressBooks, locate, new_books
from validate.engine.jit import jit, lean


def new_lists(
    free_list: FreeList, memory: Any, rng: np.random.Generator, *, first_block: int, first_bank: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], IntArray]:
    """Return the table of blocks, the lists VMS1 to VMS3, and the addresses of the table's blocks.

    Each list is made of runs of consecutive ones of its blocks, the runs in random order.

    ``memory``: geometry and address map of the memory that the blocks are in; None if of no memory;
    ``first_block``, ``first_bank``: number of the table's first block, and of the memory's first bank.
    """
    books = new_books([] if memory is None else [memory])
    banks = 1 if memory is None else memory.geometry.channel_banks
    kept, mean = int(free_list.vms1_segments), float(free_list.mean_run_length)
    others = np.arange(kept, int(free_list.segments))
    upper = np.zeros(others.size, dtype=bool)
    if banks > 1 and others.size:
        places = np.zeros(others.size, dtype=BLOCK)
        put_down(places, others, books, banks, 0, 0)
        upper = 2 * (places["bank"] % banks) >= banks
    lists = np.zeros(3, dtype=LIST)
    parts: list[IntArray] = []
    for number, members in enumerate((None, others[~upper], others[upper])):
        size = kept if members is None else members.size
        order = shuffled_runs(size, mean, rng)
        start = first_block + sum(part.size for part in parts)
        parts.append(order if members is None else members[order])
        lists[number]["length"] = size
        lists[number]["head"], lists[number]["tail"] = start, start + order.size - 1
        if size == 0:
            lists[number]["head"] = lists[number]["tail"] = NONE
    addresses = np.concatenate(parts)
    blocks = np.zeros(addresses.size, dtype=BLOCK)
    put_down(blocks, addresses, books, banks, first_block, first_bank)
    blocks["next"][lists["tail"][lists["length"] > 0] - first_block] = NONE
    blocks["list"] = np.repeat(np.arange(3), [part.size for part in parts])
    return blocks, lists, addresses


@lean
def put_down(
    blocks: Any, addresses: Any, books: AddressBooks, banks: int, first_block: int, first_bank: int
) -> None:
    """Chain the blocks with these addresses; note where each lies, by the first of the maps."""
    for k in range(addresses.size):
        blocks[k]["next"] = first_block + k + 1
        if books.numbers.shape[0] > 0:
            channel, bank, row = locate(books, 0, addresses[k])
            blocks[k]["bank"] = first_bank + channel * banks + bank
            blocks[k]["page"] = row


def shuffled_runs(size: int, mean: float, rng: np.random.Generator) -> IntArray:
    """Return the numbers below ``size``, runs of consecutive ones of geometric length in random order."""
    starts = run_starts(size, mean, rng)
    order = np.empty(size, dtype=np.int64)
    fill_runs(order, starts, rng.random(starts.size - 1))
    return order


def run_starts(size: int, mean: float, rng: np.random.Generator) -> IntArray:
    """Return the first number of every run and, as a last element, the size."""
    if mean == 1:
        return np.arange(size + 1)
    pieces, covered = [np.zeros(1, dtype=np.int64)], 0
    while covered < size:
        wanted = int((size - covered) / mean * 1.05) + 64
        lengths = rng.geometric(1 / mean, size=wanted) if np.isfinite(mean) else np.array([size])
        pieces.append(covered + np.cumsum(lengths))
        covered = int(pieces[-1][-1])
    starts = np.concatenate(pieces)
    inside = starts[: int(np.searchsorted(starts, size))]
    return np.append(inside, size)


@jit
def fill_runs(order: Any, starts: Any, uniform: Any) -> None:
    """Write runs into ``order``, in random order (Fisher-Yates)."""
    runs = starts.size - 1
    number = np.arange(runs)
    filled = 0
    for k in range(uniform.size):
        other = k + int(uniform[k] * (runs - k))
        number[k], number[other] = number[other], number[k]
        for value in range(starts[number[k]], starts[number[k] + 1]):
            order[filled] = value
            filled += 1


# Numbers of a pool: most trials, most blocks of a small request, whether pages are open.
TRIALS, SMALL, OPEN_PAGES = range(3)
LISTS = 3
NOWHERE = -1
"""The memory of lists whose blocks are of no memory of the system: no bank is ever busy."""
MOST_BANKS = np.iinfo(np.int16).max


class BlockPools(NamedTuple):
    """Free lists and the scoreboards of memories."""

    numbers: Annotated[Any, "i8", 2]  # see the names above
    # blocks, lists, addresses: of all pools, see `validate.data_queueing.block_pools`; three lists each.
    blocks: Annotated[Any, BLOCK, 1]
    lists: Annotated[Any, LIST, 1]
    addresses: Annotated[Any, "i8", 1]
    banks: Annotated[Any, BANK, 1]  # of all channels of all memories, after one that is never busy
    boards: Annotated[Any, "i8", 2]  # the first bank of each memory, and the banks of a channel
    memory_of: Annotated[Any, "i8", 1]  # of each pool, the memory that its blocks are in, or `NOWHERE`


def new_pools(
    free_lists: Sequence[FreeList],
    memories: Sequence[Any],
    memory_of: Sequence[int],
    rngs: Sequence[np.random.Generator],
) -> BlockPools:
    """Return full lists of free blocks, and idle memories.

    ``memories``: all memories with blocks of lists: their geometry, address map and page policy;
    ``memory_of``: of each of the lists, the memory that its blocks are in, or `NOWHERE`; ``rngs``: of each of
    the lists, what decides their order.
    """
    sizes = [memory.geometry.channels * memory.geometry.channel_banks for memory in memories]
    if sum(sizes) >= MOST_BANKS:
        raise ValueError(
            f"banks of memories with free lists must be fewer than {MOST_BANKS}, got {sum(sizes)}"
        )
    first = 1 + np.cumsum([0, *sizes])
    pieces: list[tuple[Any, Any, Any]] = []
    for free_list, memory, rng in zip(free_lists, memory_of, rngs, strict=True):
        where = (None, 0) if memory == NOWHERE else (memories[memory], int(first[memory]))
        before = sum(blocks.size for blocks, _, _ in pieces)
        pieces.append(new_lists(free_list, where[0], rng, first_block=before, first_bank=where[1]))
    blocks, lists, addresses = (
        each[0] if len(each) == 1 else np.concatenate(each) for each in zip(*pieces, strict=True)
    )
    banks = np.zeros(first[-1], dtype=BANK)
    banks["page"] = NONE
    open_pages = [m != NOWHERE and memories[m].page_policy == "open" for m in memory_of]
    return BlockPools(
        numbers=np.array(
            [
                (int(one.alloc_trial_count), int(one.small_packet_segments), control)
                for one, control in zip(free_lists, open_pages, strict=True)
            ],
            dtype=np.int64,
        ),
        blocks=blocks,
        lists=lists,
        addresses=addresses,
        banks=banks,
        boards=np.array(
            [(at, m.geometry.channel_banks) for at, m in zip(first, memories, strict=False)], dtype=np.int64
        ).reshape(-1, 2),
        memory_of=np.array(memory_of, dtype=np.int64),
    )


@lean
def begin_access(pools: BlockPools, memory: int, channel: int, bank: int, row: int) -> None:
    """Note that an access to a bank of a memory is issued."""
    at = pools.boards[memory, 0] + channel * pools.boards[memory, 1] + bank
    pools.banks[at]["unfinished"] += 1
    pools.banks[at]["page"] = row


@lean
def end_access(pools: BlockPools, memory: int, channel: int, bank: int) -> None:
    """Note that an access to a bank of a memory has ended."""
    at = pools.boards[memory, 0] + channel * pools.boards[memory, 1] + bank
    pools.banks[at]["unfinished"] -= 1


@lean
def free_blocks(pools: BlockPools, k: int, count: int) -> int:
    """Return the blocks that a request for n may take from: small ones have lists of their own."""
    lists = pools.lists[LISTS * k : LISTS * (k + 1)]
    if count <= pools.numbers[k, SMALL]:
        return lists[VMS2]["length"] + lists[VMS3]["length"]
    return lists[VMS1]["length"]


@lean
def take_block(pools: BlockPools, k: int, count: int) -> tuple[int, int]:
    """Take a block for a request for n blocks, which must be free; return it and the accesses this took."""
    p = pools.numbers[k]
    lists = pools.lists[LISTS * k : LISTS * (k + 1)]
    control = p[OPEN_PAGES] == 1
    if count <= p[SMALL]:
        return allocate_small(pools.blocks, lists, pools.banks, control)
    return allocate_by_trials(pools.blocks, lists, pools.banks, control, VMS1, p[TRIALS])


@lean
def chain(pools: BlockPools, last: int, block: int) -> None:
    """Put a block, or the first of a chain, behind the last one of another."""
    pools.blocks[last]["next"] = block


@lean
def give_back(pools: BlockPools, k: int, first: int, last: int, count: int) -> None:
    """Return a chain of n blocks to the tails of their lists."""
    lists = pools.lists[LISTS * k : LISTS * (k + 1)]
    if pools.numbers[k, SMALL] > 0:
        free_each(pools.blocks, lists, first, count)
    else:
        splice_tail(pools.blocks, lists, VMS1, first, last, count)
