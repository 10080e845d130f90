"""The queue manager's operations; each returns the pointer-memory accesses it took.

A queue's record and the pointer part of a segment are one 64-bit word each: an operation reads or
writes a word at most once for each need, and links that are kept in registers (heads and tails of
free lists, the segment an output port reads) are not read again.
"""

from __future__ import annotations

from validate.data_queueing import free_lists as fl
from validate.data_queueing import world as c
from validate.data_queueing.free_lists import NONE, VMS1, VMS2, VMS3, prefetch
from validate.data_queueing.world import World
from validate.engine.jit import inlined, part

access_bank = fl.access_bank


@inlined
def count_accesses(w: World, operation: int, accesses: int) -> int:
    """Note the accesses of an operation and return them."""
    w.operations[operation, 0] += 1
    w.operations[operation, 1] += accesses
    w.operations[operation, 2] = max(w.operations[operation, 2], accesses)
    return accesses


@inlined
def is_small(w: World, segments: int) -> bool:
    """Return whether a packet takes its blocks from VMS2 and VMS3."""
    return w.parameters[0]["policy"] == c.LISTS and segments <= w.parameters[0]["small"]


@inlined
def room(w: World, small: bool) -> int:
    """Return the free blocks that a packet of this kind may take and that are promised to no other."""
    if small:
        return w.lists[VMS2]["length"] + w.lists[VMS3]["length"] - w.lists[VMS2]["reserved"]
    free = w.lists[VMS1]["length"] - w.lists[VMS1]["reserved"]
    if w.parameters[0]["policy"] == c.BANK_LISTS:
        for which in range(1, w.lists.size):
            free += w.lists[which]["length"]
    return free


@inlined
def reserve(w: World, segments: int) -> bool:
    """Promise a packet its blocks, or one if it is admitted by the segment; nothing if they are missing."""
    small = is_small(w, segments)
    wanted = segments if w.parameters[0]["admission"] == c.BY_PACKET else 1
    if room(w, small) < wanted:
        return False
    w.lists[VMS2 if small else VMS1]["reserved"] += wanted
    return True


@inlined
def allocate(w: World, small: bool) -> tuple[int, int]:
    """Take a reserved block; return it and the accesses this took."""
    p = w.parameters[0]
    control = p["page_control"] == 1
    w.lists[VMS2 if small else VMS1]["reserved"] -= 1
    if small:
        w.counts[c.SMALL_SEGMENTS] += 1
        block, accesses = fl.allocate_small(w.blocks, w.lists, w.banks, control)
    elif p["policy"] == c.LISTS:
        block, accesses = fl.allocate_by_trials(w.blocks, w.lists, w.banks, control, VMS1, p["trials"])
    elif p["policy"] == c.BANK_LISTS:
        block, accesses = fl.allocate_by_bank(w.blocks, w.lists, w.banks, control, w.state)
    elif p["policy"] == c.BITMAP:
        block, accesses = fl.allocate_from_bitmap(
            w.blocks, w.lists, w.banks, control, p["trials"], w.words, w.free, w.state
        )
    else:
        block, accesses = fl.allocate_from_stack(w.blocks, w.lists, w.banks, control, p["trials"])
    w.histograms[0, min(accesses, w.histograms.shape[1] - 1)] += 1
    return block, count_accesses(w, c.ALLOCATE, accesses)


@inlined
def note_empty_lists(w: World) -> None:
    """Count how often a segment of a small packet finds the list it asks empty."""
    if w.lists[VMS2]["length"] == 0:
        w.counts[c.VMS2_EMPTY] += 1
    elif not fl.is_busy(w.blocks, w.banks, w.parameters[0]["page_control"] == 1, w.lists[VMS2]["head"]):
        return
    w.counts[c.VMS3_ASKED] += 1
    if w.lists[VMS3]["length"] == 0:
        w.counts[c.VMS3_EMPTY] += 1


@inlined
def free_block(w: World, block: int, small: bool, before: int) -> int:
    """Return the block of a segment that has been read; ``before`` is the packet's block freed last, or NONE.

    The packet's own links serve the list: an access is needed, beside those of the packet's deletion, only
    where a rejected block has come between.
    """
    policy = w.parameters[0]["policy"]
    if policy == c.BITMAP:
        fl.free_in_bitmap(w.blocks, w.lists, block, 1, w.words, w.free)
    elif policy == c.LIFO:
        fl.splice_head(w.blocks, w.lists, VMS1, block, block, 1)
    elif policy == c.BANK_LISTS or small:
        fl.splice_tail(w.blocks, w.lists, w.blocks[block]["list"], block, block, 1)
    else:
        tail = w.lists[VMS1]["tail"]
        fl.splice_tail(w.blocks, w.lists, VMS1, block, block, 1)
        return int(before != NONE and tail != NONE and tail != before)
    return 0


@inlined
def freeing_accesses(w: World, packet: int) -> int:
    """Note and return what freeing a packet's segments one by one took, but for broken links."""
    policy, segments = w.parameters[0]["policy"], w.packets[packet]["stored"]
    small = is_small(w, w.packets[packet]["segments"])
    accesses = 1
    if policy == c.BITMAP:
        accesses = 3 * segments - 1  # a word read and written each, and the links
    elif policy == c.BANK_LISTS or small:
        accesses = 2 * segments - 1
    elif policy == c.LIFO:
        accesses = segments
    return note_freeing(w, accesses)


@inlined
def note_freeing(w: World, accesses: int) -> int:
    """Note the accesses that freed a packet and return them."""
    w.histograms[1, min(accesses, w.histograms.shape[1] - 1)] += 1
    return count_accesses(w, c.FREE, accesses)


@part
def free_packet(w: World, first: int, last: int, segments: int, small: bool) -> int:
    """Return the blocks of a packet to where they came from."""
    policy = w.parameters[0]["policy"]
    if policy == c.BITMAP:
        accesses = fl.free_in_bitmap(w.blocks, w.lists, first, segments, w.words, w.free)
    elif policy == c.BANK_LISTS or small:
        accesses = fl.free_each(w.blocks, w.lists, first, segments)
    elif policy == c.LIFO:
        fl.splice_head(w.blocks, w.lists, VMS1, first, last, segments)
        accesses = 1
    else:
        fl.splice_tail(w.blocks, w.lists, VMS1, first, last, segments)
        accesses = 1
    return note_freeing(w, accesses)


@part
def create_queue(w: World, queue: int) -> int:
    """Write the record of an empty queue."""
    w.queues[queue]["created"] = 1
    w.queues[queue]["head"] = NONE
    w.queues[queue]["tail"] = NONE
    return count_accesses(w, c.CREATE, 1)


@part
def destroy_queue(w: World, queue: int) -> int:
    """Read the record to see that the queue is empty, and write that it is no more."""
    w.queues[queue]["created"] = 0
    return count_accesses(w, c.DESTROY, 2)


@inlined
def enqueue_segment(w: World, queue: int, packet: int, block: int, begins: bool, ends: bool) -> int:
    """Link a block at the end of a queue: the first segment of a packet or the next one of its tail packet.

    The queue's record is read, and the tail packet's first segment for its last one; that one's
    link, the first segment's PktPtr (one word where they are the same segment), the new segment
    and, for the first of a packet, the queue's record are written.
    """
    q = w.queues[queue]
    w.blocks[block]["next"] = NONE
    if begins:
        w.blocks[block]["last"] = block
        w.blocks[block]["packet"] = packet
        accesses = 3
        if q["head"] == NONE:
            q["head"] = block
        else:
            w.blocks[w.blocks[q["tail"]]["last"]]["next"] = block
            accesses = 5
        q["tail"] = block
    else:
        first = q["tail"]
        before = w.blocks[first]["last"]
        w.blocks[before]["next"] = block
        w.blocks[first]["last"] = block
        accesses = 4 if before == first else 5
    q["writing"] = not ends
    if ends:
        q["packets"] += 1
    return count_accesses(w, c.ENQUEUE, accesses)


@inlined
def close_packet(w: World, queue: int) -> None:
    """Note that a queue's tail packet, whose last segment was lost, is whole."""
    w.queues[queue]["writing"] = 0
    w.queues[queue]["packets"] += 1


@inlined
def dequeue_segment(w: World, begins: bool, broken: int) -> int:
    """Read a segment's word for the next one; the first time the queue's record as well."""
    return count_accesses(w, c.DEQUEUE, (2 if begins else 1) + broken)


@inlined
def unlink_packet(w: World, queue: int) -> tuple[int, int, int]:
    """Take the whole head packet off a queue; return its first and last segment and the accesses."""
    q = w.queues[queue]
    first = q["head"]
    last = w.blocks[first]["last"]
    q["packets"] -= 1
    if first == q["tail"]:
        q["head"] = NONE
        q["tail"] = NONE
        return first, last, 3
    following = w.blocks[last]["next"]
    prefetch(w.blocks, following)
    q["head"] = following
    w.blocks[last]["next"] = NONE
    return first, last, 4


@part
def give_up_packet(w: World, queue: int, tail_before: int, stored: int, segments: int) -> int:
    """Take the tail packet, of which n segments are stored, off a queue and free its blocks.

    The queue's record and the packet's first segment are read, the record is written, and so is the
    link of the packet before it if that is still there.
    """
    q = w.queues[queue]
    first = q["tail"]
    last = w.blocks[first]["last"]
    q["writing"] = 0
    accesses = 3
    if q["head"] == first:
        q["head"] = NONE
        q["tail"] = NONE
    else:
        w.blocks[w.blocks[tail_before]["last"]]["next"] = NONE
        q["tail"] = tail_before
        accesses = 5
    count_accesses(w, c.DELETE, accesses)
    return accesses + free_packet(w, first, last, stored, is_small(w, segments))


@inlined
def read_and_free(w: World, queue: int, packet: int, segment: int, before: int) -> int:
    """Read a segment's word and free its block; return the accesses.

    The packet's block freed before it is ``before``, or NONE. With its first segment the packet is taken
    off its queue: the blocks may soon be another packet's.
    """
    accesses = 0
    if before == NONE:
        _, _, accesses = unlink_packet(w, queue)
        count_accesses(w, c.DELETE, accesses)
    broken = free_block(w, segment, is_small(w, w.packets[packet]["segments"]), before)
    return accesses + dequeue_segment(w, before == NONE, broken)


@inlined
def delete_packet(w: World, queue: int, packet: int) -> int:
    """Take the head packet off a queue and free its blocks."""
    first, last, accesses = unlink_packet(w, queue)
    count_accesses(w, c.DELETE, accesses)
    stored, small = w.packets[packet]["stored"], is_small(w, w.packets[packet]["segments"])
    return accesses + free_packet(w, first, last, stored, small)


@part
def move_packet(w: World, source: int, target: int) -> int:
    """Take the head packet off one queue and append it to another one, whose tail packet is whole."""
    first, last, accesses = unlink_packet(w, source)
    # A packet that others followed carries a link that is not its own any more.
    accesses += accesses - 3
    t = w.queues[target]
    if t["head"] == NONE:
        t["head"] = first
        accesses += 2
    else:
        w.blocks[w.blocks[t["tail"]]["last"]]["next"] = first
        accesses += 4
    t["tail"] = first
    t["packets"] += 1
    return count_accesses(w, c.MOVE, accesses)
