"""One cycle of a wormhole network: flits and credits arrive, sources send, the switches are allocated.

The router is input-queued, of one stage: in the cycle in which a flit arrives it can win the switch,
and a head that wins takes a virtual channel of the output with it. Each input puts one virtual
channel forward, each output takes one input (input-first separable allocation); the lowest rank
first, then packets that have their virtual channel before heads, then the next in turn. While the
following flit of a packet is there and has a credit the connection is held, unless each flit is to
compete for it. Circuits have virtual channels of their own and pass all else, held connections too.
"""

from __future__ import annotations

import numpy as np

from validate.engine.jit import inlined, lean
from validate.noc.flits import ONE, ask, list_input
from validate.noc.sources import forget, send_flits
from validate.noc.state import BUFFER, DELIVERED, FLAGS, HEAD, LAST_MOVE, SHIFT, WHEEL, World
from validate.noc.switch import allocate


@lean
def step(world: World, now: int) -> None:
    """Simulate cycle ``now``; what it delivers is in ``delivered``, so many as ``clock[DELIVERED]``.

    Cycles may be left out while `quiet`.
    """
    for k in range(world.clock[DELIVERED]):
        forget(world, world.delivered[k])
    world.clock[DELIVERED] = 0
    _receive(world, now)
    _take_credits(world, now)
    send_flits(world, now)
    allocate(world, now)


@lean
def quiet(world: World, now: int) -> bool:
    """Return whether nothing happens until something new is sent: all is delivered, or stuck for ever.

    To be asked after the `step` of the cycle before: what was sent since then has not moved yet. With
    flits left (``clock[IN_NETWORK]``) it is a deadlock.
    """
    return now - world.clock[LAST_MOVE] > world.clock[WHEEL]


@inlined
def _receive(world: World, now: int) -> None:
    channel, vc, clock = world.channel, world.vc, world.clock
    row = now & clock[WHEEL]
    arrivals = world.arrivals
    number = arrivals[row, 0]
    if number == 0:
        return
    arrivals[row, 0] = 0
    clock[LAST_MOVE] = now
    shift, vmask = clock[SHIFT], (1 << clock[SHIFT]) - 1
    for k in range(1, number + 1):
        word = arrivals[row, k]
        i, flit = word >> 32, word & 0xFFFFFFFF
        c = i >> shift
        if channel[c]["sink"]:
            world.delivered[clock[DELIVERED]] = flit >> FLAGS
            clock[DELIVERED] += 1
            continue
        channel[c]["occupancy"] -= now
        channel[c]["stored"] += 1
        count = vc[i]["count"]
        vc[i]["count"] = count + 1
        if count > 0:
            place = vc[i]["front"] + count - 1
            if place >= clock[BUFFER]:
                place -= clock[BUFFER]
            world.slots[vc[i]["first_slot"] + place] = flit
        else:
            vc[i]["flit"] = flit
            bit = ONE << np.uint64(i & vmask)
            if flit & HEAD:
                ask(world, i, c, bit, flit >> FLAGS, now)
                list_input(world, c)
            elif vc[vc[i]["out_vc"]]["credits"] > 0:
                channel[c]["body"] |= bit
                list_input(world, c)


@inlined
def _take_credits(world: World, now: int) -> None:
    channel, vc, clock = world.channel, world.vc, world.clock
    row = now & clock[WHEEL]
    credits = world.credits
    number = credits[row, 0]
    if number == 0:
        return
    credits[row, 0] = 0
    clock[LAST_MOVE] = now
    shift, vmask = clock[SHIFT], (1 << clock[SHIFT]) - 1
    for k in range(1, number + 1):
        i = credits[row, k]
        vc[i]["credits"] += 1
        if vc[i]["credits"] == 1:
            owner = vc[i]["owner"]
            if owner < 0:
                channel[i >> shift]["free"] |= ONE << np.uint64(i & vmask)
            elif vc[owner]["count"] > 0:
                c = owner >> shift
                channel[c]["body"] |= ONE << np.uint64(owner & vmask)
                list_input(world, c)
