"""Which accesses follow one another, and the runs of banks in a list whose blocks return as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qmodels.checks import FloatArray

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
