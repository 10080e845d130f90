"""Allocation of the blocks of large packets, by the policy of the free blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.allocator.access_order import AccessOrder, read_order_heads
from qmodels.allocator.list_memory import free_list
from qmodels.allocator.short_lists import drained_conflicts
from qmodels.allocator.stored import StoredPackets
from qmodels.allocator.trials import accesses_law, bank_lists_busy, bitmap_busy, stack_busy
from qmodels.checks import FloatArray
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.packets.free_list import allocation_accesses


@dataclass(frozen=True, kw_only=True, eq=False)
class LargeBlocks:
    """Conflicts and costs of a block of a large packet."""

    conflict: float  # probability of a conflict
    adjacent: float  # probability that a block is on the bank of its packet's block before it
    accesses: FloatArray  # law of the pointer accesses
    most_accesses: float  # most of them
    # Probability of a block whose bank is busy with its own page, having just been read.
    just_read: float = 0.0
    at_only: float = 0.0  # probability of a conflict at the only block of a list


def random_busy(spec: DataQueueing, banks: int) -> float:
    """Return the probability that a random bank is busy."""
    return 1.0 - (1.0 - 1.0 / banks) ** int(spec.data.busy_accesses)


def large_blocks(
    spec: DataQueueing, banks: int, order: AccessOrder, packets: StoredPackets, unlike: float
) -> LargeBlocks:
    """Return the allocation of large packets; ``unlike`` part of a bank's blocks are in other pages."""
    first = unlike * random_busy(spec, banks)
    if spec.allocation.policy in ("bank-lists", "bitmap"):
        return _from_all_banks(spec, banks, packets, first)
    if spec.allocation.policy == "lifo":
        return _from_stack(spec, banks, order, packets, first)
    if not (~packets.small & (packets.share > 0)).any():
        return LargeBlocks(conflict=0.0, adjacent=0.0, accesses=np.array([0.0, 1.0]), most_accesses=1.0)
    return _from_list(spec, banks, order, packets, unlike)


def _from_all_banks(spec: DataQueueing, banks: int, packets: StoredPackets, first: float) -> LargeBlocks:
    """Return the allocation from a list for each bank, or from a bitmap."""
    busy, trials = int(spec.data.busy_accesses), int(spec.allocation.alloc_trial_count)
    conflict, accesses = bank_lists_busy(banks=banks, busy=busy), np.array([0.0, 1.0])
    if spec.allocation.policy == "bitmap":
        conflict, accesses = bitmap_busy(busy_probability=first, trials=trials)
    adjacent, just_read = conflict, 0.0
    if packets.lossy is not None and busy > 0:
        heads = np.array([1.0, conflict])
        conflict, _, just_read, _ = packets.lossy.taken(heads, page_control=spec.data.page_control)
    return LargeBlocks(
        conflict=conflict,
        adjacent=adjacent,
        accesses=accesses,
        most_accesses=float(len(accesses) - 1),
        just_read=just_read,
    )


def _from_stack(
    spec: DataQueueing, banks: int, order: AccessOrder, packets: StoredPackets, first: float
) -> LargeBlocks:
    """Return the allocation from a stack: where blocks return as they are read, the last read lies on top."""
    busy, trials = int(spec.data.busy_accesses), int(spec.allocation.alloc_trial_count)
    heads, control = stack_busy(busy_probability=first, trials=trials), spec.data.page_control
    just_read = at_only = 0.0
    if packets.segments_alone and busy > 0:
        just_read = order.other_access * control
        top = order.other_access * (not control) + (1.0 - order.other_access) * first
        heads[1:] = top * heads[:-1]
    conflict = float(heads[-1])
    if packets.lossy is not None and busy > 0 and trials > 1:
        at_only = float(packets.lossy.just_read[0]) * (not control)  # no other block to try
        conflict += at_only * (1.0 - conflict)
    return LargeBlocks(
        conflict=conflict,
        adjacent=1.0 / banks,
        accesses=accesses_law(heads),
        most_accesses=float(allocation_accesses(trials - 1)),
        just_read=just_read,
        at_only=at_only,
    )


def _from_list(
    spec: DataQueueing, banks: int, order: AccessOrder, packets: StoredPackets, unlike: float
) -> LargeBlocks:
    """Return the allocation from the list VMS1."""
    busy, trials = int(spec.data.busy_accesses), int(spec.allocation.alloc_trial_count)
    heads, adjacent = _long_list(spec, banks, order, packets)
    heads = heads * unlike ** np.arange(trials + 1)
    conflict, accesses, just_read, at_only = float(heads[-1]), accesses_law(heads), 0.0, 0.0
    if packets.lossy is not None and busy > 0:
        conflict, at_only, just_read, accesses = packets.lossy.taken(
            heads, page_control=spec.data.page_control
        )
    if packets.rows is not None:
        conflict, at_only, just_read, adjacent, accesses = packets.rows.taken(
            banks=banks,
            trials=trials,
            busy=busy,
            page_control=spec.data.page_control,
            long=float(heads[-1]),
        )
    if packets.dry is not None:
        conflict += _drained(spec, banks, packets, float(heads[-1]), unlike)
    return LargeBlocks(
        conflict=conflict,
        adjacent=adjacent,
        accesses=accesses,
        most_accesses=float(allocation_accesses(trials - 1)),
        just_read=just_read,
        at_only=at_only,
    )


def _long_list(
    spec: DataQueueing, banks: int, order: AccessOrder, packets: StoredPackets
) -> tuple[FloatArray, float]:
    """Return the busy heads of a list that is not short, and `LargeBlocks.adjacent`."""
    busy, trials, traffic = int(spec.data.busy_accesses), int(spec.allocation.alloc_trial_count), spec.traffic
    alone = packets.segments_alone and traffic.operations == "segment"
    if alone and busy == 1 and banks > 1:
        single = traffic.input_ports == traffic.output_ports == 1
        return read_order_heads(
            banks=banks,
            trials=trials,
            other_access=order.other_access,
            access_within=order.access_within,
            # Of a steady input's writes between two reads all but the first follow a write.
            access_again=max(2.0 - float(traffic.input_speed), 0.0) if single else order.access_within,
            other_packet=order.other_packet,
            same_packet=(1.0 - 1.0 / packets.mean) * (traffic.output_ports == 1),
        )
    large = ~packets.small & (packets.share > 0)
    share = packets.share[large] / packets.share[large].sum()
    law = free_list(
        banks=banks,
        alloc_trial_count=trials,
        busy_accesses=busy,
        segments=packets.segments[large],
        probability=share,
        other_access=order.other_access,
        other_packet=order.other_packet,
        read_last=order.read_last,
        access_within=order.access_within,
    )
    return law.busy_heads, float(law.adjacent_probability)


def _drained(spec: DataQueueing, banks: int, packets: StoredPackets, usual: float, unlike: float) -> float:
    """Return the conflicts of the last blocks of a list, taken by packets that are given up."""
    busy, trials, dry = int(spec.data.busy_accesses), int(spec.allocation.alloc_trial_count), packets.dry
    assert dry is not None
    drained = drained_conflicts(banks=banks, trials=trials, busy=busy)[: trials + 1]
    more = 0.0
    for left, (writes, meets) in enumerate(zip(dry.writes, drained, strict=False), start=1):
        more += writes / dry.writes_per_refusal * (meets * unlike ** min(trials, left) - usual)
    if busy > 0 and not spec.data.page_control:  # the same block again is in the open page
        begins = float(spec.traffic.load_factor) / float(packets.offered @ packets.segments)
        at_once = 1.0 + np.expm1(-begins) / begins
        more += dry.one_taken / dry.writes_per_refusal * at_once * (1.0 - drained[0])
    return float(more)
