"""Trains: the flits of a packet that follow one another, one a cycle, with nobody to come between them.

Whoever looks sees every flit move in the cycle in which it would move by itself. Nothing can come between
the flits of a train that

* waited, so that it holds the switch, and input and output are its own; or
* goes on as it comes: it is alone in its input, and no other packet has a virtual channel of its output,
  so that only heads ask for that, which flits of a packet under way go before;

if all its flits are there or follow one another, and the virtual channel has room for all.
"""

from __future__ import annotations

import numpy as np

from validate.engine.jit import apart, inlined
from validate.noc.flits import NONE, ONE, ask, launch, list_end, list_input, return_credits, scatter
from validate.noc.sources import end_source_train
from validate.noc.state import (
    BUFFER,
    FLAGS,
    HOLDS,
    IN_NETWORK,
    LAST_MOVE,
    NO_KEY,
    SHIFT,
    TAIL,
    TRAIN,
    VCS,
    WHEEL,
    WHOLE,
    World,
)

_TAKEN = -1
"""Key of an output that no head can win."""


@inlined
def time_of(flits: int, now: int) -> int:
    """Return the sum of the cycles in which flits pass that follow one another from now on."""
    return flits * now + flits * (flits - 1) // 2


@inlined
def begin_train(world: World, i: int, j: int, now: int) -> bool:
    """Send the packet whose head won an output as a train into one of its virtual channels, if it is one."""
    channel, vc, clock = world.channel, world.vc, world.clock
    c, o = i >> clock[SHIFT], j >> clock[SHIFT]
    flit, count = vc[i]["flit"], vc[i]["count"]
    p = flit >> FLAGS
    flits = world.packet[p]["flits"]
    if flits == 1 or flits > clock[TRAIN] or count < flits:
        return False
    # Flits that came by themselves are all there.
    waited = now - vc[i]["came"] if flit & WHOLE == WHOLE else flits
    if waited > 0:
        alone = clock[HOLDS] != 0
    else:
        others = channel[o]["free"] ^ np.uint64((1 << clock[VCS]) - 1)
        alone = others == NONE and channel[c]["stored"] == flits
    if not alone or vc[j]["credits"] < flits or channel[o]["cycles"] > 1:
        if flit & WHOLE == WHOLE:
            _split(world, i, c, flits, now)
        return False
    bit = ONE << np.uint64(i - (c << clock[SHIFT]))
    channel[c]["head"] &= ~bit
    channel[o]["free"] &= ~(ONE << np.uint64(j - (o << clock[SHIFT])))
    world.packet[p]["hop"] += 1
    vc[j]["owner"] = i
    vc[j]["credits"] -= flits
    vc[j]["waited"] = min(waited, flits)
    vc[i]["count"] = count - flits
    vc[i]["leaving"] = 1
    if count > flits:
        place = vc[i]["front"] + flits - 1
        place -= clock[BUFFER] if place >= clock[BUFFER] else 0
        vc[i]["flit"] = world.slots[vc[i]["first_slot"] + place]
        vc[i]["front"] = place + 1 if place + 1 < clock[BUFFER] else 0
    channel[o]["next_in"] = channel[c]["place_in"] + 1
    channel[c]["next_out"] = channel[o]["place_out"] + 1
    channel[c]["next_vc"] = i - (c << clock[SHIFT]) + 1
    channel[c]["listed"] = 0
    last = now + flits - 1
    if waited > 0:
        channel[c]["held_vc"] = i
        channel[o]["key"] = NO_KEY
        channel[o]["busy_until"] = last + 1
    else:
        channel[o]["key"] = _TAKEN
        channel[o]["busy_until"] = now + 1
    clock[LAST_MOVE] = max(clock[LAST_MOVE], last)
    channel[o]["flits"] += flits
    channel[c]["occupancy"] += time_of(flits, now)
    channel[c]["stored"] -= flits
    list_end(world, j, flits, now)
    return_credits(world, i, flits, now + channel[c]["credit_delay"])
    if channel[o]["sink"]:
        clock[IN_NETWORK] -= flits
        return_credits(world, j, flits, now + channel[o]["delay"] + channel[o]["credit_delay"])
        launch(world, j, (p << FLAGS) | TAIL, last + channel[o]["delay"])
    else:
        launch(world, j, (p << FLAGS) | WHOLE, now + channel[o]["delay"])
    return True


@apart
def _split(world: World, i: int, c: int, flits: int, now: int) -> None:
    """Let the flits of a train that is in front of a virtual channel be single ones."""
    channel, vc = world.channel, world.vc
    flit, came = vc[i]["flit"], vc[i]["came"]
    there = min(flits, now - came + 1)
    vc[i]["flit"] = flit - TAIL
    vc[i]["count"] -= flits - there
    channel[c]["occupancy"] += time_of(flits, came) - time_of(there, came)
    channel[c]["stored"] -= flits - there
    for k in range(1, there):
        place = vc[i]["front"] + k - 1
        place -= world.clock[BUFFER] if place >= world.clock[BUFFER] else 0
        last = TAIL if k == flits - 1 else 0
        world.slots[vc[i]["first_slot"] + place] = (flit >> FLAGS << FLAGS) | last
    scatter(world, i, flit >> FLAGS, there, came)


@inlined
def end_trains(world: World, now: int) -> None:
    """Give up what the trains had whose last flit was sent in this cycle."""
    channel, vc, clock = world.channel, world.vc, world.clock
    row = now & clock[WHEEL]
    shift, vmask = clock[SHIFT], (1 << clock[SHIFT]) - 1
    number = world.ends[row, 0]
    world.ends[row, 0] = 0
    for k in range(1, number + 1):
        j = world.ends[row, k]
        i, o = vc[j]["owner"], j >> shift
        if i < 0:
            end_source_train(world, vc[j]["waited"])
            continue
        c = i >> shift
        vc[j]["owner"] = -1
        if vc[j]["credits"] > 0:
            channel[o]["free"] |= ONE << np.uint64(j & vmask)
        channel[o]["key"] = NO_KEY
        if channel[c]["held_vc"] == i:
            channel[c]["held_vc"] = -1
        vc[i]["leaving"] = 0
        if vc[i]["count"] > 0:
            ask(world, i, c, ONE << np.uint64(i & vmask), vc[i]["flit"] >> FLAGS, now)
        if (channel[c]["head"] | channel[c]["body"]) != NONE:
            list_input(world, c)
