"""One cycle of a wormhole network: flits and credits arrive, sources send, the switches are allocated.

The router is input-queued, of one stage: in the cycle in which a flit arrives it can win the switch,
and a head that wins takes a virtual channel of the output with it. Each input puts one virtual
channel forward, each output takes one input (input-first separable allocation); the lowest rank
first, then packets that have their virtual channel before heads, then the next in turn. While the
following flit of a packet is there and has a credit the connection is held, unless each flit is to
compete for it. Circuits have virtual channels of their own and pass all else, held connections too.

What the flits of a packet do one after the other is simulated once for all of them where nothing can
come between them (`validate.noc.trains`): every flit moves in the same cycle as if it were alone.
"""

from __future__ import annotations

import numpy as np

from validate.engine.jit import inlined, lean
from validate.noc.flits import ONE, ask, list_input, return_credits, scatter
from validate.noc.sources import forget, send_flits
from validate.noc.state import (
    BUFFER,
    DELIVERED,
    FLAGS,
    HEAD,
    LAST_MOVE,
    SHIFT,
    SPAN,
    TAIL,
    WHEEL,
    WHOLE,
    World,
)
from validate.noc.switch import allocate
from validate.noc.trains import end_trains, time_of


@lean
def step(world: World, now: int) -> None:
    """Simulate cycle ``now``; what it delivers is in ``delivered``, ``clock[DELIVERED]`` packets.

    Cycles may be left out while `quiet`.
    """
    for k in range(world.clock[DELIVERED]):
        forget(world, world.delivered[k])
    world.clock[DELIVERED] = 0
    _receive(world, now)
    _take_credits(world, now)
    send_flits(world, now)
    allocate(world, now)
    end_trains(world, now)


@lean
def quiet(world: World, now: int) -> bool:
    """Return whether nothing happens until something new is sent: all is delivered, or stuck for ever.

    To be asked after the `step` of the cycle before: what was sent since then has not moved yet. With
    flits left (``clock[IN_NETWORK]``) it is a deadlock.
    """
    return now - world.clock[LAST_MOVE] > world.clock[SPAN]


@inlined
def _receive(world: World, now: int) -> None:
    channel, vc, clock = world.channel, world.vc, world.clock
    row = now & clock[WHEEL]
    arrivals = world.arrivals
    number = arrivals[row, 0]
    if number == 0:
        return
    arrivals[row, 0] = 0
    clock[LAST_MOVE] = max(clock[LAST_MOVE], now)
    shift, vmask = clock[SHIFT], (1 << clock[SHIFT]) - 1
    for k in range(1, number + 1):
        word = arrivals[row, k]
        i, flit = word >> 32, word & 0xFFFFFFFF
        c = i >> shift
        if channel[c]["sink"]:
            world.delivered[clock[DELIVERED]] = flit >> FLAGS
            clock[DELIVERED] += 1
            continue
        count = vc[i]["count"]
        number_of_flits = 1
        if flit & WHOLE == WHOLE:
            number_of_flits = world.packet[flit >> FLAGS]["flits"]
            if count > 0 and number_of_flits > 1:
                scatter(world, i, flit >> FLAGS, 1, now)
                flit -= TAIL
                number_of_flits = 1
        channel[c]["occupancy"] -= time_of(number_of_flits, now)
        channel[c]["stored"] += number_of_flits
        vc[i]["count"] = count + number_of_flits
        if count > 0:
            place = vc[i]["front"] + count - 1
            if place >= clock[BUFFER]:
                place -= clock[BUFFER]
            world.slots[vc[i]["first_slot"] + place] = flit
        else:
            vc[i]["flit"] = flit
            vc[i]["came"] = now
            bit = ONE << np.uint64(i & vmask)
            if vc[i]["leaving"]:
                continue
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
    clock[LAST_MOVE] = max(clock[LAST_MOVE], now)
    shift, vmask = clock[SHIFT], (1 << clock[SHIFT]) - 1
    for k in range(1, number + 1):
        word = credits[row, k]
        i, returned = word & 0xFFFFFFFF, word >> 32
        before = vc[i]["credits"]
        if before > 0:
            # While there is one, it does not matter when the others come: none is used before it is there.
            vc[i]["credits"] = before + returned
            continue
        if returned > 1:
            return_credits(world, i, returned - 1, now + 1)
        vc[i]["credits"] = 1
        owner = vc[i]["owner"]
        if owner < 0:
            channel[i >> shift]["free"] |= ONE << np.uint64(i & vmask)
        elif vc[owner]["count"] > 0 and vc[owner]["leaving"] == 0:
            c = owner >> shift
            channel[c]["body"] |= ONE << np.uint64(owner & vmask)
            list_input(world, c)
