"""The free list of data blocks and the pointer memory it lives in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qmodels import _check
from qmodels._check import Numeric


def allocation_accesses(rejected: Any) -> Any:
    """Return the pointer-memory accesses of one allocation after so many rejected head blocks.

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
class FreeList:
    """One list of free blocks, taken at the head, returned at the tail a packet at a time.

    A stored segment takes the head block. If the block's bank still has an unfinished access
    (to another row, when pages are open), the block goes to the tail and the next one is
    tried; the block of trial ``alloc_trial_count`` is taken whatever its bank. A packet that
    finds fewer free blocks than it has segments is refused whole. The pointer memory serves
    packets to enqueue and to dequeue in one queue, an access a cycle.

    The list starts as runs of consecutive addresses in random order. Numeric fields may be
    arrays (a sweep).

    Parameters
    ----------
    segments : int
        Blocks in all ([1]_ sec. 4.2: 4M of 64 bytes). [blocks]
    alloc_trial_count : int
        Most head blocks examined for one segment ([1]_ sec. 5.2.1: explored over 1 to 5).
    mean_run_length : float
        Mean length of the runs of consecutive addresses in the list: ``inf`` is a fresh list,
        1 a thoroughly shuffled one. Each time a block is used, the end of a packet cuts its run
        with probability 1 / (mean segments of a packet); packets that are freed whole keep the
        rest together. [blocks]
    enqueue_accesses, dequeue_accesses : float
        Pointer accesses for a stored segment besides its allocation (linking it), and for a
        drained one (following the link) ([1]_ sec. 3). [accesses]
    enqueue_packet_accesses, dequeue_packet_accesses : float
        Pointer accesses once a packet: the queue's descriptor read and written; the same when
        it is drained and one write that returns all its blocks ([1]_ sec. 5.2.2). [accesses]
    clock_ghz : float
        Pointer-memory clock, one 64-bit access a cycle (our assumption: that of the network). [GHz]

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.
    """

    segments: Numeric = 4_194_304
    alloc_trial_count: Numeric = 2
    mean_run_length: Numeric = 64.0
    enqueue_accesses: Numeric = 1
    dequeue_accesses: Numeric = 1
    enqueue_packet_accesses: Numeric = 2
    dequeue_packet_accesses: Numeric = 3
    clock_ghz: Numeric = 1.0

    def __post_init__(self) -> None:
        _check.count("free_list.segments", self.segments, maximum=2**31 - 1)
        _check.count("free_list.alloc_trial_count", self.alloc_trial_count, maximum=1024)
        _check.at_least("free_list.mean_run_length", self.mean_run_length, 1.0)
        for name in (
            "enqueue_accesses",
            "dequeue_accesses",
            "enqueue_packet_accesses",
            "dequeue_packet_accesses",
        ):
            _check.nonnegative(f"free_list.{name}", getattr(self, name))
        _check.positive("free_list.clock_ghz", self.clock_ghz)
