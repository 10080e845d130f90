"""Free lists of blocks linked through the pointer memory, and the scoreboard of busy banks.

Small compiled functions on arrays: blocks (`BLOCK`), lists (`LIST`), banks (`BANK`). Each allocation
returns the block and the pointer-memory accesses it took; each deallocation its accesses.

`BlockPools` are the free lists of some memories side by side:

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
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from qmodels.checks import IntArray
from qmodels.systems.packets.free_list import FreeList
from validate.dram.state import AddressBooks, locate, new_books
from validate.engine.jit import inlined, jit, lean, part


def prefetch(array: Any, place: int) -> None:
    """Do nothing; in compiled code, start to load ``array[place]`` (any place will do) into the caches."""


@intrinsic
def _start_to_load(typing_context: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = make_array(signature.args[0])(context, builder, arguments[0])
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        pointer = builder.gep(view.data, [index])
        byte = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [byte, number(1), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, place), generate


@overload(prefetch)
def _prefetch(array: Any, place: Any) -> Any:
    def compiled(array: Any, place: Any) -> None:
        _start_to_load(array, place)  # type: ignore[call-arg]

    return compiled


BLOCK = np.dtype(
    [
        ("next", "i4"),  # SgtPtr: behind it in its queue or free list
        ("last", "i4"),  # PktPtr: of a packet's first segment, the packet's last one
        ("packet", "i4"),  # of a packet's first segment: its number
        ("page", "i4"),
        ("bank", "i2"),
        ("list", "i2"),  # the free list it belongs to
    ]
)
"""A block: its links, and where it lies in the data memory."""

LIST = np.dtype([("head", "i4"), ("tail", "i4"), ("length", "i4"), ("reserved", "i4")])
"""A free list; ``reserved`` blocks are promised to packets under way."""

BANK = np.dtype([("unfinished", "i4"), ("page", "i4")])
"""A bank: accesses on it that still keep it busy, and the page of the last one."""

VMS1, VMS2, VMS3 = 0, 1, 2
WORD = 64
"""Blocks of one word of the bitmap."""

NONE = -1


@inlined
def is_busy(blocks: Any, banks: Any, page_control: bool, block: int) -> bool:
    """Return whether an access to the block would be a conflict."""
    bank = blocks[block]["bank"]
    return banks[bank]["unfinished"] > 0 and not (
        page_control and banks[bank]["page"] == blocks[block]["page"]
    )


@inlined
def take_head(blocks: Any, lists: Any, which: int) -> int:
    """Take the head block off a list that is not empty."""
    block = lists[which]["head"]
    following = blocks[block]["next"]
    prefetch(blocks, following)
    lists[which]["head"] = following
    lists[which]["length"] -= 1
    if lists[which]["length"] == 0:
        lists[which]["tail"] = NONE
    blocks[block]["next"] = NONE
    return block


@inlined
def splice_tail(blocks: Any, lists: Any, which: int, first: int, last: int, count: int) -> None:
    """Put a chain of blocks at a list's tail."""
    blocks[last]["next"] = NONE
    if lists[which]["length"] == 0:
        lists[which]["head"] = first
    else:
        blocks[lists[which]["tail"]]["next"] = first
    lists[which]["tail"] = last
    lists[which]["length"] += count


@part
def splice_head(blocks: Any, lists: Any, which: int, first: int, last: int, count: int) -> None:
    """Put a chain of blocks on top of a list."""
    blocks[last]["next"] = lists[which]["head"]
    if lists[which]["length"] == 0:
        blocks[last]["next"] = NONE
        lists[which]["tail"] = last
    lists[which]["head"] = first
    lists[which]["length"] += count


@inlined
def allocate_by_trials(
    blocks: Any, lists: Any, banks: Any, page_control: bool, which: int, trials: int
) -> tuple[int, int]:
    """Take a block from a FIFO list: heads on busy banks go to the tail, a limited number is examined."""
    reads, writes = 0, 0
    trials = min(trials, lists[which]["length"])
    while reads + 1 < trials and is_busy(blocks, banks, page_control, lists[which]["head"]):
        block = take_head(blocks, lists, which)
        splice_tail(blocks, lists, which, block, block, 1)
        reads += 1
        writes = 1  # the rejected blocks are a chain already: one write links it to the tail
    return take_head(blocks, lists, which), reads + 1 + writes


@part
def allocate_small(blocks: Any, lists: Any, banks: Any, page_control: bool) -> tuple[int, int]:
    """Take the head of VMS2, or of VMS3 if that of VMS2 is on a busy bank or missing."""
    which = VMS2
    if lists[VMS2]["length"] == 0 or (
        lists[VMS3]["length"] > 0 and is_busy(blocks, banks, page_control, lists[VMS2]["head"])
    ):
        which = VMS3
    return take_head(blocks, lists, which), 1


@part
def allocate_from_stack(
    blocks: Any, lists: Any, banks: Any, page_control: bool, trials: int
) -> tuple[int, int]:
    """Take the first of the top blocks that is not on a busy bank, else the last one examined."""
    rejected, before, block = 0, NONE, lists[VMS1]["head"]
    trials = min(trials, lists[VMS1]["length"])
    while rejected + 1 < trials and is_busy(blocks, banks, page_control, block):
        before, block = block, blocks[block]["next"]
        rejected += 1
    if before == NONE:
        return take_head(blocks, lists, VMS1), 1
    blocks[before]["next"] = blocks[block]["next"]
    if lists[VMS1]["tail"] == block:
        lists[VMS1]["tail"] = before
    lists[VMS1]["length"] -= 1
    blocks[block]["next"] = NONE
    return block, rejected + 1 + 1  # each block examined is read, one write closes the gap


@part
def allocate_by_bank(blocks: Any, lists: Any, banks: Any, page_control: bool, state: Any) -> tuple[int, int]:
    """Take the head of the list of the next bank in turn that is not busy, else of the next with blocks."""
    chosen = NONE
    for k in range(lists.size):
        which = (state[0]["cursor"] + 1 + k) % lists.size
        if lists[which]["length"] > 0:
            if not is_busy(blocks, banks, page_control, lists[which]["head"]):
                chosen = which
                break
            if chosen == NONE:
                chosen = which
    state[0]["cursor"] = chosen
    return take_head(blocks, lists, chosen), 1


@part
def allocate_from_bitmap(
    blocks: Any, lists: Any, banks: Any, page_control: bool, trials: int, words: Any, free: Any, state: Any
) -> tuple[int, int]:
    """Take a free block of the first word, from the last one used, that has one on a bank not busy.

    At most ``trials`` words with free blocks are examined; of the last one the first free block
    is taken. Every word read is an access, and so is the word written back.
    """
    word, reads, examined, chosen = state[0]["cursor"], 0, 0, NONE
    while chosen == NONE:
        reads += 1
        if words[word] > 0:
            examined += 1
            for block in range(word * WORD, min((word + 1) * WORD, free.size)):
                if free[block] and not is_busy(blocks, banks, page_control, block):
                    chosen = block
                    break
            if chosen == NONE and (examined == trials or reads >= words.size):
                for block in range(word * WORD, min((word + 1) * WORD, free.size)):
                    if free[block]:
                        chosen = block
                        break
        if chosen == NONE:
            word = (word + 1) % words.size
    state[0]["cursor"] = word
    words[word] -= 1
    free[chosen] = 0
    lists[VMS1]["length"] -= 1
    return chosen, reads + 1


@part
def free_each(blocks: Any, lists: Any, first: int, count: int) -> int:
    """Return each block of a chain to the tail of the list it came from; reading the links costs too."""
    block = first
    for _ in range(count):
        following = blocks[block]["next"]
        splice_tail(blocks, lists, blocks[block]["list"], block, block, 1)
        block = following
    return 2 * count - 1


@part
def free_in_bitmap(blocks: Any, lists: Any, first: int, count: int, words: Any, free: Any) -> int:
    """Mark the blocks of a chain free: a read and a write for every word met in turn, and the links."""
    block, before, accesses = first, NONE, count - 1
    for _ in range(count):
        word = block // WORD
        if word != before:
            accesses += 2
        before = word
        words[word] += 1
        free[block] = 1
        block = blocks[block]["next"]
    lists[VMS1]["length"] += count
    return accesses


@inlined
def access_bank(blocks: Any, banks: Any, recent: Any, state: Any, block: int) -> int:
    """Access a block: 0 if its bank is free, 1 if it is busy with this page, 2 with another one.

    The bank stays busy during as many later accesses as ``recent`` has places.
    """
    bank, page = blocks[block]["bank"], blocks[block]["page"]
    met = 0
    if banks[bank]["unfinished"] > 0:
        met = 1 if banks[bank]["page"] == page else 2
    banks[bank]["page"] = page
    if recent.size > 0:
        place = state[0]["recent"]
        if recent[place] != NONE:
            banks[recent[place]]["unfinished"] -= 1
        recent[place] = bank
        state[0]["recent"] = (place + 1) % recent.size
        banks[bank]["unfinished"] += 1
    return met


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
    # blocks, lists, addresses: of all pools, see `validate.data_queueing.free_lists`; three lists each.
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
