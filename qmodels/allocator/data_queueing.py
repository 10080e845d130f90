"""The analytic answer of a data-queueing module."""

from __future__ import annotations

import numpy as np

from qmodels.allocator.access_order import AccessOrder, access_order, packet_order
from qmodels.allocator.answer import answer_of, stacked
from qmodels.allocator.large_blocks import LargeBlocks, large_blocks, random_busy
from qmodels.allocator.offered import seen_load
from qmodels.allocator.pointer_cycles import pointer_cycles
from qmodels.allocator.stored import StoredPackets, overflow_metrics, stored_packets
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.spec.answer import Answer
from qmodels.systems.spec.fields import points_of, swept_fields

HALVES = 8
"""Rounds in which the share of the accesses on the lower half of the banks is found."""
SAMPLED = 4096
"""Blocks looked at to see which banks a mapping reaches."""


def solve_data_queueing(spec: DataQueueing) -> Answer:
    """Return conflicts, pointer accesses, overflow and overhead of a data-queueing module.

    Parameters
    ----------
    spec : DataQueueing
        A design; where numeric fields are arrays the metrics have their broadcast shape.

    Returns
    -------
    Answer
        The metrics of `DataQueueing.metric_names` in the steady state, which a list reaches when it has
        been used up several times, whatever its order at the start. In overload what is admitted is what
        can be drained; all metrics stay finite.

    Raises
    ------
    ValueError
        If ``spec`` is no `DataQueueing`.
    RuntimeError
        If the fixed point of a free list is not reached.

    Notes
    -----
    The free list VMS1 with its trials: `free_list`, with the neighbours in time of `access_order`.
    VMS2 and VMS3: their heads are on different halves of the banks, both busy only if two
    accesses keep a bank busy on either half; heads and accesses are taken as independent. A block on
    a busy bank lies in its open page with the probability of two random blocks of the bank. Overflow:
    `list_overflow`. While VMS1 runs dry fewer blocks are left than trials: `starved_list` tells how often,
    `drained_conflicts` what the last blocks meet; a lone block given up and taken at once is a
    conflict, those of packets just read are not followed, nor is a dry VMS2 or VMS3 beyond its
    emptiness. Segments lost alone: `lossy_list` tells how often a write takes the block just read,
    `read_order_heads` what trials meet in a list of blocks that return as they are read. Overload is
    taken as lasting: a trace that fills the memory for a part of the time overflows, and runs its list
    dry, less. The alternatives are accounted for in
    `qmodels.allocator.alternatives`.

    Examples
    --------
    >>> from qmodels.systems.packets.data_queueing import Allocation
    >>> trials = solve_data_queueing(DataQueueing(allocation=Allocation(alloc_trial_count=[1, 2, 3])))
    >>> trials.write_conflict_probability.round(4)
    array([0.125 , 0.0159, 0.0029])
    """
    if not isinstance(spec, DataQueueing):
        raise ValueError(f"spec must be a DataQueueing, got {spec!r}")
    swept = swept_fields(spec)
    if not swept:
        return _solve_one(spec)
    answers = [_solve_one(one) for one in points_of(spec)[1]]
    return stacked(spec, answers, next(iter(swept.values())).shape)


def _solve_one(spec: DataQueueing) -> Answer:
    packets, load = stored_packets(spec)
    order = _order(spec, packets, load)
    banks, unlike = _banks_reached(spec)
    blocks = large_blocks(spec, banks, order, packets, unlike)
    head_busy, small_conflict = _small_heads(spec, packets, banks, unlike)
    large, little = packets.large_share, 1.0 - packets.large_share
    of_large, of_small = large * blocks.conflict, little * small_conflict
    conflict = of_large + of_small
    accesses = large * blocks.accesses
    accesses[1] += little
    read_busy, read_conflict = _reads(
        spec, packets, order, blocks, small_conflict, banks=banks, unlike=unlike, load=load
    )
    freeing = _freeing(spec, packets)
    deletion = np.bincount(freeing, weights=packets.share).astype(float)
    cycles = pointer_cycles(
        segments=packets.segments,
        share=packets.share,
        freeing=freeing,
        allocation=accesses,
        write_conflict=conflict,
        read_conflict=read_conflict,
        queue_empty=_queue_empty(spec, packets, load),
        free_accesses=int(spec.pointer.free_accesses),
        conflict_accesses=int(spec.pointer.conflict_accesses),
    )
    # A block in its bank's open page is taken: every head examined is a chance of one.
    in_page = (1.0 - unlike) * random_busy(spec, banks) * (1.0 + _beyond_one(accesses) / 2.0)
    in_page += large * blocks.just_read
    values = {
        "write_conflict_probability": conflict,
        "read_conflict_probability": read_conflict,
        "write_busy_probability": conflict + in_page,
        "read_busy_probability": read_busy,
        "pointer_accesses_per_allocation": float(accesses @ np.arange(len(accesses))),
        "max_pointer_accesses_per_allocation": blocks.most_accesses if large > 0 else 1.0,
        "pointer_accesses_per_deletion": float(deletion @ np.arange(len(deletion))),
        "max_pointer_accesses_per_deletion": float(freeing.max()),
        **overflow_metrics(packets, head_busy=head_busy),
        **_worst_enqueues(spec, accesses, of_large, of_small, at_only=large * blocks.at_only),
        "deletion_overhead": _beyond_one(deletion) / max(deletion[2:].sum(), 1e-300),
        "cycles_per_segment_access": cycles.mean_cycles,
        "pointer_overrun_probability": cycles.overrun_probability,
    }
    return answer_of(
        spec,
        {name: values[name] for name in spec.metric_names.both},
        load=float(spec.traffic.load_factor),
        carried=load,
        laws=(accesses, deletion),
    )


def _beyond_one(law: FloatArray) -> float:
    """Return the mean of the accesses beyond one, from the law of 0, 1, 2, ... of them."""
    return float(law[1:] @ np.arange(len(law) - 1.0))


def _worst_enqueues(
    spec: DataQueueing, accesses: FloatArray, of_large: float, of_small: float, *, at_only: float
) -> dict[str, float]:
    """Return how often a write is a worst case and what that costs, from the conflicts of large and small.

    Those ``at_only``, at a list's only block, come without a rejection.
    """
    extra, pointer = _beyond_one(accesses), spec.pointer
    # Where nothing is ever rejected a conflict is the worst case, elsewhere it comes with rejections.
    rejecting = float(accesses[2:].sum()) if spec.allocation.policy != "bitmap" else float(extra > 0)
    worst = max(rejecting + at_only, of_large) + of_small
    cycles = extra + float(pointer.conflict_overhead_cycles) * (of_large + of_small)
    overhead = cycles / worst if worst > 0 else 0.0
    return {
        "worst_enqueue_probability": min(worst, 1.0),
        "enqueue_overhead": overhead,
        "enqueue_energy": float(pointer.energy_per_cycle) * overhead,
    }


def _order(spec: DataQueueing, packets: StoredPackets, load: float) -> AccessOrder:
    """Return which accesses follow one another at the load that packets see."""
    traffic = spec.traffic
    if traffic.operations == "packet":
        return packet_order(packets.mean)
    return access_order(
        load=seen_load(traffic, segment_bytes=spec.data.segment_bytes, load=load),
        input_ports=traffic.input_ports,
        output_ports=traffic.output_ports,
        input_speed=float(traffic.input_speed),
        list_share=packets.large_share,
        mean_size=packets.mean,
    )


def _banks_reached(spec: DataQueueing) -> tuple[int, float]:
    """Return the banks that blocks are on, and the part of the blocks on one whose access is a conflict."""
    data = spec.data
    some = np.arange(min(int(data.segments), max(SAMPLED, int(data.banks * data.bank_step))))
    banks = int(np.unique(data.bank_of(some)).size)
    in_bank = int(data.segments) / banks
    same_page = (min(float(data.page_segments), in_bank) - 1.0) / max(in_bank - 1.0, 1.0)
    return banks, 1.0 - same_page if data.page_control else 1.0


def _small_heads(
    spec: DataQueueing, packets: StoredPackets, banks: int, unlike: float
) -> tuple[float, float]:
    """Return the probability that VMS2's head is on a busy bank, and that a small packet meets one."""
    busy = int(spec.data.busy_accesses)
    head_busy = unlike * random_busy(spec, banks)
    both_heads = 1.0 - 2.0 * (1.0 - unlike / banks) ** busy + max(1.0 - 2.0 * unlike / banks, 0.0) ** busy
    alone = packets.overflow.small_empty_probability  # VMS3 has to do, whatever its bank
    return head_busy, max(both_heads, 0.0) * (1.0 - alone) + head_busy * alone


def _reads(
    spec: DataQueueing,
    packets: StoredPackets,
    order: AccessOrder,
    blocks: LargeBlocks,
    small_conflict: float,
    *,
    banks: int,
    unlike: float,
    load: float,
) -> tuple[float, float]:
    """Return the probability that a read meets a busy bank, and a conflict."""
    busy = int(spec.data.busy_accesses)
    if spec.traffic.operations == "packet":
        return _reads_in_rows(packets, blocks, small_conflict, busy=random_busy(spec, banks), unlike=unlike)
    own_busy = 1.0 - (1.0 - blocks.adjacent) * (1.0 - 1.0 / banks) ** max(busy - 1, 0)
    own = order.own_read * (1.0 - 1.0 / packets.mean) * (busy > 0)
    # A lone segment may be read right after it was written, by a port that waited for it.
    lone = float(packets.share[packets.segments == 1].sum()) / packets.mean
    at_once = lone * max(1.0 - load, 0.0) * (busy > 0)
    others = (own * own_busy + (1.0 - own) * random_busy(spec, banks)) * (1.0 - at_once)
    return others + at_once, unlike * others + (0.0 if spec.data.page_control else at_once)


def _reads_in_rows(
    packets: StoredPackets, blocks: LargeBlocks, small_conflict: float, *, busy: float, unlike: float
) -> tuple[float, float]:
    """Return the same where the reads of a packet follow one another: they meet the banks of its own blocks.

    Small packets are mostly on the lower half of the banks, where VMS2 is, so that the first read of a
    packet meets the bank of the packet before more often.
    """
    share, small, behind = packets.share, packets.small, packets.segments - 1.0
    adjacent = np.where(small, small_conflict, blocks.adjacent) @ (share * behind)
    little, empty = float(share[small].sum()), packets.overflow.small_empty_probability
    lower = 0.5
    for _ in range(HALVES):
        lower = little * (1.0 - empty) * (1.0 - 2.0 * busy * lower) + (1.0 - little) / 2.0
    first = busy * 2.0 * (lower**2 + (1.0 - lower) ** 2) if little > 0 else busy
    met = float(first + adjacent) / packets.mean
    return met, unlike * met


def _freeing(spec: DataQueueing, packets: StoredPackets) -> IntArray:
    """Return the accesses that free a packet of each size."""
    policy, segments, alone = spec.allocation.policy, packets.segments, packets.segments_alone
    if policy == "bank-lists":
        return 2 * segments - 1
    if (
        policy == "bitmap"
    ):  # its blocks lie in one or two words, each read and written, by each block if alone
        return 3 * segments - 1 if alone else segments + 1
    return np.where(packets.small, 2 * segments - 1, segments if alone and policy == "lifo" else 1)


def _queue_empty(spec: DataQueueing, packets: StoredPackets, load: float) -> float:
    """Return the probability that a packet finds its queue empty, from the mean number of packets stored."""
    room = int(spec.data.segments) / packets.mean
    square = float(packets.segments**2 @ packets.share) / packets.mean
    waiting = load * load * square / (2.0 * max(1.0 - load, 1e-9)) / packets.mean
    return float(np.exp(-min(load + waiting, room) / spec.traffic.queues))
