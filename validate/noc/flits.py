"""Events of a network's channels: arrival of a flit, return of a credit, request of a head for its output."""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.engine.jit import apart, inlined
from validate.noc.state import (
    ACTIVE,
    ARBITRATION,
    CIRCUITS,
    FCFS,
    FLAGS,
    MASK_BITS,
    PRIORITY,
    ROUND_ROBIN,
    SCALE,
    TAIL,
    WHEEL,
    World,
)

ONE = np.uint64(1)
NONE = np.uint64(0)
CIRCUIT_RANK = -(1 << 20)
"""Of the packets of circuits; all others have ranks of 0 and more."""


@inlined
def launch(world: World, i: int, flit: int, time: int) -> None:
    """Let a flit arrive at a virtual channel at a time to come."""
    row = time & world.clock[WHEEL]
    place = world.arrivals[row, 0] + 1
    world.arrivals[row, 0] = place
    world.arrivals[row, place] = (i << 32) | flit


@apart
def scatter(world: World, i: int, p: int, first: int, time: int) -> None:
    """Let the flits of a packet from the ``first`` on arrive in turn, as if its head did at a time."""
    flits = world.packet[p]["flits"]
    for k in range(first, flits):
        launch(world, i, (p << FLAGS) | (TAIL if k == flits - 1 else 0), time + k)


@inlined
def list_end(world: World, i: int, flits: int, now: int) -> None:
    """Note when the last flit is sent of a train that is sent into a virtual channel from now on."""
    row = (now + flits - 1) & world.clock[WHEEL]
    place = world.ends[row, 0] + 1
    world.ends[row, 0] = place
    world.ends[row, place] = i


@inlined
def return_credits(world: World, i: int, number: int, time: int) -> None:
    """Let slots of a virtual channel be free, one a cycle from a time to come."""
    row = time & world.clock[WHEEL]
    place = world.credits[row, 0] + 1
    world.credits[row, 0] = place
    world.credits[row, place] = (number << 32) | i


@inlined
def list_input(world: World, c: int) -> None:
    """Put an input among those with something to send."""
    if world.channel[c]["listed"] == 0:
        world.channel[c]["listed"] = 1
        world.lists[0, world.clock[ACTIVE]] = c
        world.clock[ACTIVE] += 1


@inlined
def ask(world: World, i: int, c: int, bit: Any, p: int, now: int) -> None:
    """Let the head of a packet that came to the front of a virtual channel ask for its output."""
    vc, service = world.vc, world.service
    hop = world.packet[p]["hop"] + 1
    word = world.hop[hop]
    vc[i]["out"] = word >> MASK_BITS
    vc[i]["allowed"] = word & ((1 << MASK_BITS) - 1)
    world.channel[c]["head"] |= bit
    arbitration = world.clock[ARBITRATION]
    if arbitration != ROUND_ROBIN or world.clock[CIRCUITS] > 0:
        f = world.packet[p]["flow"]
        rank = 0
        if service[f]["circuit"] >= 0:
            rank = CIRCUIT_RANK
        elif arbitration == FCFS:
            rank = now
        elif arbitration == PRIORITY:
            rank = service[f]["priority"]
        elif arbitration != ROUND_ROBIN:
            rank = _fair_finish(world, hop, f, p)
        vc[i]["rank"] = rank


@apart
def _fair_finish(world: World, hop: int, f: int, p: int) -> int:
    """Return the virtual time at which a packet would end if its flow got its share of the channel."""
    c = world.hop[hop] >> MASK_BITS
    start = max(world.finish[hop], world.channel[c]["fair_time"])
    finish = start + int(world.packet[p]["flits"] * SCALE / world.service[f]["weight"])
    world.finish[hop] = finish
    return finish
