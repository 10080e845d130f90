"""Free lists of blocks linked through the pointer memory, and the scoreboard of busy banks.

Small compiled functions on arrays: blocks (`BLOCK`), lists (`LIST`), banks (`BANK`). Each allocation
returns the block and the pointer-memory accesses it took; each deallocation its accesses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from validate.engine.jit import inlined, part


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
