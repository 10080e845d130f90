"""The free list of data blocks and the pointer memory it lives in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import Numeric
from qmodels.systems.spec.ranges import Declared, at_least, choice, count, nonnegative, positive, probability

RETURN_ORDERS = ("together", "as-read", "random")
"""How a packet's blocks return to the free list: in one piece and in their order, one by one as each has been
read, or in random order."""


def allocation_accesses(rejected: Any) -> Any:
    """Return the pointer-memory accesses of one allocation after a number of rejected head blocks.

    One read moves the head on. After rejections there is a read for each of them, one write
    that links them all to the tail, and the read that moves the head on, so that
    ``alloc_trial_count + 1`` is the most ([1]_ sec. 5.2.1 and Table 1).

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., DAC 2002.

    Examples
    --------
    >>> [allocation_accesses(rejected) for rejected in range(4)]
    [1, 3, 4, 5]
    """
    return rejected + 1 + (rejected > 0)


@dataclass(frozen=True, kw_only=True)
class FreeList(Declared, prefix="free_list."):
    """Lists of free blocks, taken at the head, returned at the tail.

    A stored segment takes the head block. If the block's bank still has an unfinished access
    (to another row, when pages are open), the block goes to the tail and the next one is
    tried; the block of trial ``alloc_trial_count`` is taken whatever its bank. The blocks of a
    packet return as ``return_order`` says. A packet that finds fewer free blocks than it has segments is
    refused whole. The pointer memory serves packets to enqueue and to dequeue in one queue, an
    access a cycle.

    With ``small_packet_segments`` > 0 that list, VMS1, keeps the lowest addresses for larger
    packets, and smaller ones have two lists of their own: VMS2 with the other blocks on the
    lower half of every channel's banks and VMS3 with those on the upper half. Their segments
    take the head of VMS2, or that of VMS3 if VMS2's is on a busy bank; a list that is empty
    gives way to the other. Their blocks return one by one ([1]_ sec. 4.2).

    Lists start as runs of consecutive blocks in random order. Numeric fields may be arrays (a
    sweep).

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.
    """

    # Blocks in all ([1]_ sec. 4.2: 4M of 64 bytes). [blocks]
    segments: Numeric = count(4_194_304, maximum=2**31 - 1)
    # Most head blocks examined for one segment ([1]_ sec. 5.2.1: explored over 1 to 5)
    alloc_trial_count: Numeric = count(2, maximum=1024)
    # Most segments of a small packet ([1]_ SmallPktSize, explored over 0 to 4); 0 keeps one list for all.
    # [segments]
    small_packet_segments: Numeric = count(0, minimum=0)
    # Part of the blocks that VMS1 keeps where small packets have lists of their own ([1]_ Vms1Size, over all
    # blocks)
    vms1_share: Numeric = probability(0.5)
    # How the blocks of a packet return to the tail: in one piece and in their order, once all have been read;
    # one by one, each as soon as what `Free` does with it is over; or in one piece in random order (the last
    # two take a write more for each block: ``dequeue_accesses``). Models take the list as it is found, with
    # runs of ``mean_run_length``; the trials of a `System` meet independent blocks, which is exact for single
    # blocks and for those of many packets that return as read. `qmodels.allocator.free_list` has what each
    # order comes to in the long run
    return_order: str = choice("together", RETURN_ORDERS)
    # Mean length of the runs of consecutive addresses in the list: ``inf`` is a fresh list, 1 a thoroughly
    # shuffled one. Each time a block is used, the end of a packet cuts its run with probability 1 / (mean
    # segments of a packet); packets that are freed whole keep the rest together, other return orders leave no
    # runs. [blocks]
    mean_run_length: Numeric = at_least(64.0, 1.0)
    # enqueue_accesses, dequeue_accesses: Pointer accesses for a stored segment besides its allocation
    # (linking it), and for a drained one (following the link) ([1]_ sec. 3). [accesses]
    enqueue_accesses: Numeric = nonnegative(1)
    dequeue_accesses: Numeric = nonnegative(1)
    # enqueue_packet_accesses, dequeue_packet_accesses: Pointer accesses once a packet: the queue's descriptor
    # read and written; the same when it is drained and one write that returns all its blocks ([1]_ sec.
    # 5.2.2); each further block of a small packet takes a write of its own. [accesses]
    enqueue_packet_accesses: Numeric = nonnegative(2)
    dequeue_packet_accesses: Numeric = nonnegative(3)
    # Pointer-memory clock, one 64-bit access a cycle (our assumption: that of the network). [GHz]
    clock_ghz: Numeric = positive(1.0)

    @property
    def vms1_segments(self) -> Any:
        """Blocks of VMS1: all of them where small packets have no lists of their own."""
        kept = np.floor(np.asarray(self.vms1_share) * self.segments)
        return np.where(np.asarray(self.small_packet_segments) > 0, kept, self.segments)[()]
