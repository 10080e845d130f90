"""Which accesses come before a write and before a read of the data memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    """Neighbours of an access where packets of so many segments, mean, are written and read in a row.

    Packets written and read are taken as one after another at random, as many of each.
    """
    return AccessOrder(
        other_access=0.5 / mean_size, other_packet=0.0, read_last=0.5, own_read=1.0, access_within=0.0
    )
