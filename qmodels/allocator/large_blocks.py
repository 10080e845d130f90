"""Allocation of the blocks of large packets, by the policy of the free blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qmodels.allocator.list_memory import free_list
from qmodels.allocator.short_lists import drained_conflicts
from qmodels.allocator.stored import StoredPackets
from qmodels.allocator.trial_states import accesses_law, bank_lists_busy, bitmap_busy, stack_busy
from qmodels.checks import FloatArray
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.packets.free_list import allocation_accesses

NODES = 32
"""Points of the integral over the gap between two allocations."""


@dataclass(frozen=True, kw_only=True)
class AccessOrder:
    """Neighbours of an access in the order of time."""

    # Probability that an access that is no allocation from the list comes between an allocation from it and
    # the one before.
    other_access: float
    # Probability that a block of the list for another packet is allocated between two of a packet.
    other_packet: float
    # Probability that the first allocation from the list after a packet's return follows the read that
    # returned it, if no other packet returns before that allocation.
    read_last: float
    own_read: float  # probability that nothing comes between two reads of a packet
    # ``other_access`` between two blocks of a packet with no other packet's block of the list between.
    access_within: float


def access_order(
    *,
    load: float,
    input_ports: int,
    output_ports: int,
    input_speed: float,
    list_share: float,
    mean_size: float,
) -> AccessOrder:
    r"""Neighbours of an access where ports write and read segment by segment, each at its own pace.

    ``load``: segments stored per segment that can be drained, as an arriving packet meets it;
    ``input_ports``, ``output_ports``: ports. All output ports together read a segment a slot;
    ``input_speed``: segments an input port writes in a slot [segments / slot]; ``list_share``: share of the
    stored segments whose blocks come from the list in question; ``mean_size``: mean segments of a packet.

    Of the other :math:`I - 1` input ports each is busy with probability
    :math:`a = \min(1, \rho / (I v))`, each output port with probability :math:`\rho`, all at
    random phases of their periods :math:`1/v` and :math:`O`. With :math:`k` other inputs busy,
    the gap :math:`G` between two allocations is :math:`1/v` times a Beta(1, k) variable, and an
    output port reads in it with probability :math:`\rho \min(G/O, 1)`. As there are as many reads as
    allocations, a read is followed by an allocation as often as an allocation follows a read; a
    read returns a packet with the probability of one in its mean size; while all inputs are idle
    packets return as often as they arrive. Approximate: the ports are
    taken as independent of each other and of the state of the queues.
    """
    active = min(1.0, load / (input_ports * input_speed))
    reading = min(load, 1.0)
    levels = (np.arange(NODES) + 0.5) / NODES
    from_list, alone = 0.0, 1.0
    chance = (1.0 - active) ** (input_ports - 1)
    for others in range(input_ports):
        gap = (1.0 - (1.0 - levels) ** (1.0 / others) if others else np.ones(1)) / input_speed
        quiet = float(np.mean((1.0 - reading * np.minimum(gap / output_ports, 1.0)) ** output_ports))
        if others == 0:
            alone = quiet
        from_list += chance * quiet * (1.0 + others * list_share) / (1.0 + others)
        if active >= 1.0:
            chance = float(others + 1 == input_ports - 1)
        else:
            chance *= (input_ports - 1 - others) / (others + 1) * active / (1.0 - active)
    writes = active * min(1.0, output_ports * input_speed)
    other = min(max(1.0 - from_list, 0.0), 1.0)
    ends = 1.0 / mean_size
    # Other inputs that write no block of the list are idle, or write others' segments.
    no_block = 1.0 - active * list_share
    quiet_inputs = ((1.0 - active) / no_block) ** (input_ports - 1) if no_block > 0 else 1.0
    idle = (1.0 - active) ** input_ports
    # With all inputs idle packets return as often as they arrive, which ends it; reads are single blocks.
    soon = max(other - idle / (1.0 + mean_size), 0.0) / max(1.0 - idle, 1e-300)
    soon = min(soon, 1.0)
    busy_first = (1.0 - soon) * ends / max(1.0 - (1.0 - ends) * (1.0 - soon), 1e-300)
    returned_first = idle / 2.0 + (1.0 - idle) * busy_first
    return AccessOrder(
        other_access=other,
        other_packet=1.0 - (1.0 - active * list_share) ** (input_ports - 1),
        read_last=min(other / (1.0 - returned_first), 1.0) if other > 0 else 0.0,
        access_within=1.0 - alone * quiet_inputs,
        own_read=(1.0 - reading) ** (output_ports - 1) * (1.0 - writes) ** input_ports,
    )


def packet_order(mean_size: float) -> AccessOrder:
    """Neighbours of an access where packets of n segments, mean, are written and read in a row.

    Packets written and read are taken as one after another at random, as many of each.
    """
    return AccessOrder(
        other_access=0.5 / mean_size, other_packet=0.0, read_last=0.5, own_read=1.0, access_within=0.0
    )


TOLERANCE = 1e-12
MOST_ROUNDS = 500
MOST_MATES = 8
"""Blocks rejected by one allocation that are told apart."""


@lru_cache(maxsize=4096)
def read_order_heads(
    *,
    banks: int,
    trials: int,
    other_access: float,
    access_within: float,
    access_again: float,
    other_packet: float,
    same_packet: float,
) -> tuple[FloatArray, float]:
    r"""Return busy heads in turn, and the probability of a block on the bank of its packet's block before.

    A bank is busy for one access.

    ``banks``, ``trials``: banks, and most blocks examined; ``other_access``: probability that a read comes
    right before an allocation: as often an allocation right after a read; ``access_within``: the same between
    two blocks of a packet; ``access_again``: the same if one came between the two before as well: ports at
    their steady paces take turns; ``other_packet``: probability that a block of another packet is allocated
    between two of a packet; ``same_packet``: probability that the block freed next is the next one of the
    same packet.

    An allocation right after a read that finds its head on the bank of that read puts this block at the tail,
    behind the block that has just been freed there: a *mate* of the same bank. Those rejected after a write
    stand alone. With :math:`g(k)` the probability that the k blocks behind one are all on its bank, from a
    chain over read blocks, their mates and lone ones, the first k heads are busy with probability
    :math:`a\,g(k-1)/b + (1-a)\,g(k)`: after a read the bank is any, after a write the head is the block that
    stood behind the one taken. What a packet's blocks have in common when it is stored follows from g and is
    what they have when they return: a fixed point. Approximate, see the error map: neighbours further apart,
    and the order in which reads and writes follow each other, are taken as independent.
    """
    any_bank, most = 1.0 / banks, min(trials - 1, MOST_MATES)
    alike = alike_again = any_bank
    run = np.append(1.0, np.full(trials, any_bank))
    for _ in range(MOST_ROUNDS):
        rejected = np.append(1.0, np.full(max(most - 1, 0), run[1])).cumprod()[:most]
        mates, lone = other_access * any_bank * rejected, (1.0 - other_access) * run[1] * rejected
        shares = np.concatenate(([1.0 - alike, alike], mates, lone))
        # To a block read: its kind then is that of one behind a block of its own bank.
        lone_next = lone[:1].sum() / (1.0 + lone[:1].sum())
        steps = np.zeros((len(shares), len(shares)))
        steps[:, 1] = (1.0 - lone_next) * alike
        steps[1, 1] = (1.0 - lone_next) * alike_again
        steps[2 + most :, 1] = any_bank
        if most > 0:
            steps[: 2 + most, 2 + most] = lone_next * any_bank
            further = [k for k in range(2, len(steps)) if k not in (1 + most, 1 + 2 * most)]
            for k, to, chance in [(0, 2, mates[0]), (1, 2, mates[0]), *((k, k + 1, run[1]) for k in further)]:
                steps[k] *= 1.0 - chance
                steps[k, to] += chance
        runs = [np.ones(len(shares))]
        for _ in range(trials):
            runs.append(steps @ runs[-1])
        run = np.array(runs) @ shares / shares.sum()
        between = (1.0 - any_bank) * run[1] + any_bank**2
        adjacent, adjacent_again = (
            (1.0 - other_packet) * ((1.0 - access) * run[trials] + access * between) + other_packet * any_bank
            for access in (access_within, access_again)
        )
        alike_again = same_packet * adjacent_again + (1.0 - same_packet) * any_bank
        before, alike = alike, same_packet * adjacent + (1.0 - same_packet) * any_bank
        if abs(alike - before) < TOLERANCE:
            break
    else:
        raise RuntimeError(
            f"the runs of a free list did not settle in {MOST_ROUNDS} rounds; use fewer trials"
        )
    heads = np.append(1.0, other_access * any_bank * run[:-1] + (1.0 - other_access) * run[1:])
    return heads, float(adjacent)


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
