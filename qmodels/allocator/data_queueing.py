"""The analytic answer of a data-queueing module."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.allocator.access_order import AccessOrder, access_order
from qmodels.allocator.alternatives import accesses_law, bank_lists_busy, bitmap_busy, stack_busy
from qmodels.allocator.answer import DataQueueingAnswer, answer_of, stacked
from qmodels.allocator.conflict_errors import is_validated
from qmodels.allocator.dry_list import drained_conflicts
from qmodels.allocator.list_memory import free_list
from qmodels.allocator.offered import seen_load
from qmodels.allocator.pointer_cycles import pointer_cycles
from qmodels.allocator.read_order import read_order_heads
from qmodels.allocator.stored import StoredPackets, overflow_metrics, stored_packets
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.packets.free_list import allocation_accesses
from qmodels.systems.spec.fields import points_of, swept_fields

SAMPLED = 4096
"""Blocks looked at to see which banks a mapping reaches."""


def solve_data_queueing(spec: DataQueueing) -> DataQueueingAnswer:
    """Return conflicts, pointer accesses, overflow and overhead of a data-queueing module.

    Parameters
    ----------
    spec : DataQueueing
        A design; where numeric fields are arrays the metrics have their broadcast shape.

    Returns
    -------
    DataQueueingAnswer
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
    `list_overflow`. While VMS1 runs dry fewer blocks are left than trials: `dry_list` tells how often,
    `drained_conflicts` what the last blocks meet; a lone block given up and taken at once is a
    conflict, those of packets just read are not followed, nor is a dry VMS2 or VMS3 beyond its
    emptiness. Overload is taken as lasting: a trace that fills the memory for a part of the time
    overflows, and runs its list dry, less. The error of the write conflicts, signed, is in
    ``answer.error``, made by ``python -m cases.published.dqm.errors``: within 5 % where the answer is
    validated, and otherwise as it says. The alternatives are accounted for in
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Blocks:
    """How large packets get their blocks."""

    conflict: float
    adjacent: float
    accesses: FloatArray
    most_accesses: float
    just_read: float = 0.0
    at_only: float = 0.0


def _solve_one(spec: DataQueueing) -> DataQueueingAnswer:
    packets, load = stored_packets(spec)
    order = _order(spec, packets, load)
    banks, unlike = _banks_reached(spec)
    blocks = _large_blocks(spec, banks, order, packets, unlike)
    head_busy, small_conflict = _small_heads(spec, packets, banks, unlike)
    large, little = packets.large_share, 1.0 - packets.large_share
    of_large, of_small = large * blocks.conflict, little * small_conflict
    conflict = of_large + of_small
    accesses = large * blocks.accesses
    accesses[1] += little
    read_busy, read_conflict = _reads(spec, packets, order, blocks, banks=banks, unlike=unlike, load=load)
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
    in_page = (1.0 - unlike) * _random_busy(spec, banks) * (1.0 + _beyond_one(accesses) / 2.0)
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
        validated=is_validated(spec),
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


def _random_busy(spec: DataQueueing, banks: int) -> float:
    """Return the probability that a random bank is busy."""
    return 1.0 - (1.0 - 1.0 / banks) ** int(spec.data.busy_accesses)


def _small_heads(
    spec: DataQueueing, packets: StoredPackets, banks: int, unlike: float
) -> tuple[float, float]:
    """Return the probability that VMS2's head is on a busy bank, and that a small packet meets one."""
    busy = int(spec.data.busy_accesses)
    head_busy = unlike * _random_busy(spec, banks)
    both_heads = 1.0 - 2.0 * (1.0 - unlike / banks) ** busy + max(1.0 - 2.0 * unlike / banks, 0.0) ** busy
    alone = packets.overflow.small_empty_probability  # VMS3 has to do, whatever its bank
    return head_busy, max(both_heads, 0.0) * (1.0 - alone) + head_busy * alone


def _reads(
    spec: DataQueueing,
    packets: StoredPackets,
    order: AccessOrder,
    blocks: _Blocks,
    *,
    banks: int,
    unlike: float,
    load: float,
) -> tuple[float, float]:
    """Return the probability that a read meets a busy bank, and a conflict."""
    busy = int(spec.data.busy_accesses)
    own_busy = 1.0 - (1.0 - blocks.adjacent) * (1.0 - 1.0 / banks) ** max(busy - 1, 0)
    own = order.own_read * (1.0 - 1.0 / packets.mean) * (busy > 0)
    # A lone segment may be read right after it was written, by a port that waited for it.
    lone = float(packets.share[packets.segments == 1].sum()) / packets.mean
    at_once = lone * max(1.0 - load, 0.0) * (busy > 0)
    others = (own * own_busy + (1.0 - own) * _random_busy(spec, banks)) * (1.0 - at_once)
    return others + at_once, unlike * others + (0.0 if spec.data.page_control else at_once)


def _large_blocks(
    spec: DataQueueing, banks: int, order: AccessOrder, packets: StoredPackets, unlike: float
) -> _Blocks:
    """Return how large packets get their blocks, by policy."""
    policy, trials = spec.allocation.policy, int(spec.allocation.alloc_trial_count)
    busy = int(spec.data.busy_accesses)
    first = unlike * _random_busy(spec, banks)
    alone, control = spec.allocation.admission == "lossy", spec.data.page_control
    if policy in ("bank-lists", "bitmap"):
        conflict, accesses = bank_lists_busy(banks=banks, busy=busy), np.array([0.0, 1.0])
        if policy == "bitmap":
            conflict, accesses = bitmap_busy(busy_probability=first, trials=trials)
        adjacent, just_read = conflict, 0.0
        if packets.lossy is not None and busy > 0:
            conflict, _, just_read, _ = packets.lossy.taken(np.array([1.0, conflict]), page_control=control)
        return _Blocks(
            conflict=conflict,
            adjacent=adjacent,
            accesses=accesses,
            most_accesses=float(len(accesses) - 1),
            just_read=just_read,
        )
    most, just_read, at_only = float(allocation_accesses(trials - 1)), 0.0, 0.0
    if policy == "lifo":
        heads, adjacent = stack_busy(busy_probability=first, trials=trials), 1.0 / banks
        if alone and busy > 0:  # the block on top after a read is the one just read
            just_read = order.other_access * control
            heads[1:] *= (order.other_access * (not control) + (1.0 - order.other_access) * first) / first
    elif alone and busy == 1 and banks > 1:
        traffic = spec.traffic
        single = traffic.input_ports == traffic.output_ports == 1
        heads, adjacent = read_order_heads(
            banks=banks,
            trials=trials,
            other_access=order.other_access,
            access_within=order.access_within,
            access_again=max(2.0 - float(traffic.input_speed), 0.0) if single else order.access_within,
            other_packet=order.other_packet,
            same_packet=(1.0 - 1.0 / packets.mean) * (traffic.output_ports == 1),
        )
        heads = heads * unlike ** np.arange(trials + 1)
    else:
        large = ~packets.small & (packets.share > 0)
        if not large.any():
            return _Blocks(conflict=0.0, adjacent=0.0, accesses=np.array([0.0, 1.0]), most_accesses=1.0)
        share = packets.share[large] / packets.share[large].sum()
        law = free_list(
            banks=banks,
            alloc_trial_count=trials,
            busy_accesses=busy,
            segments=packets.segments[large],
            probability=share / share.sum(),
            other_access=order.other_access,
            other_packet=order.other_packet,
            read_last=order.read_last,
            access_within=order.access_within,
        )
        heads = law.busy_heads * unlike ** np.arange(trials + 1)
        adjacent = float(law.adjacent_probability)
    conflict, accesses = float(heads[-1]), accesses_law(heads)
    if policy == "lists" and packets.lossy is not None and busy > 0:
        conflict, at_only, just_read, accesses = packets.lossy.taken(heads, page_control=control)
    if policy == "lists" and packets.dry is not None:
        dry = packets.dry
        drained = drained_conflicts(banks=banks, trials=trials, busy=busy)[: trials + 1]
        for left, (writes, meets) in enumerate(zip(dry.writes, drained, strict=False), start=1):
            usual, last = float(heads[-1]), meets * unlike ** min(trials, left)
            conflict += writes / dry.writes_per_refusal * (last - usual)
        if busy > 0 and not spec.data.page_control:  # the same block again is in the open page
            begins = float(spec.traffic.load_factor) / float(packets.offered @ packets.segments)
            at_once = 1.0 + np.expm1(-begins) / begins
            conflict += dry.one_taken / dry.writes_per_refusal * at_once * (1.0 - drained[0])
    return _Blocks(
        conflict=conflict,
        adjacent=adjacent,
        accesses=accesses,
        most_accesses=most,
        just_read=just_read,
        at_only=at_only,
    )


def _freeing(spec: DataQueueing, packets: StoredPackets) -> IntArray:
    """Return the accesses that free a packet of each size."""
    policy, segments = spec.allocation.policy, packets.segments
    if policy == "bank-lists":
        return 2 * segments - 1
    if policy == "bitmap":  # its blocks lie in one or two words, each read and written
        return segments + 1
    return np.where(packets.small, 2 * segments - 1, 1)


def _queue_empty(spec: DataQueueing, packets: StoredPackets, load: float) -> float:
    """Return the probability that a packet finds its queue empty, from the mean number of packets stored."""
    room = int(spec.data.segments) / packets.mean
    square = float(packets.segments**2 @ packets.share) / packets.mean
    waiting = load * load * square / (2.0 * max(1.0 - load, 1e-9)) / packets.mean
    return float(np.exp(-min(load + waiting, room) / spec.traffic.queues))
