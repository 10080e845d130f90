"""One cycle of a wormhole network: flits and credits arrive, sources send, the switches are allocated.

The router is input-queued, of one stage: in the cycle in which a flit arrives it can win the switch,
and a head that wins takes a virtual channel of the output with it. Each input puts one virtual
channel forward, each output takes one input (input-first separable allocation); the lowest rank
first, then packets that have their virtual channel before heads, then the next in turn. While the
following flit of a packet is there and has a credit the connection is held, unless each flit is to
compete for it. Circuits have virtual channels of their own and pass all else, held connections too.

What the flits of a packet do one after the other is simulated once for all of them where nothing can
come between them (`validate.noc.flits`): every flit moves in the same cycle as if it were alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from validate.engine.jit import inlined, lean
from validate.noc import state
from validate.noc.flits import (
    CIRCUIT_RANK,
    NONE,
    ONE,
    ask,
    begin_train,
    end_trains,
    forget,
    launch,
    list_input,
    return_credits,
    scatter,
    send_flits,
    time_of,
)
from validate.noc.state import World

_HELD = -1
_RANK = 1 << 20
_WAITS = 1 << 19


@inlined
def allocate(world: World, now: int) -> None:
    """Let every input with something to send ask for an output, and every output take one that asks."""
    channel, clock, lists = world.channel, world.clock, world.lists
    vc, shift = world.vc, clock[state.SHIFT]
    kept = asked = given_up = 0
    for k in range(clock[state.ACTIVE]):
        c = lists[0, k]
        i, key = _put_forward(world, c, now)
        if i >= 0:
            o = vc[i]["out"]
            standing = channel[o]["key"]
            if key < standing:
                channel[o]["key"] = key
                if standing == state.NO_KEY:
                    lists[2, asked] = o
                    asked += 1
                else:
                    c = channel[o]["winner"] >> shift
                channel[o]["winner"] = i
                if standing == state.NO_KEY:
                    continue
        elif i < -1:
            lists[3, given_up] = c
            given_up += 1
        # It stays among the active ones; those that win are put back if something is left.
        lists[0, kept] = c
        kept += 1
    clock[state.ACTIVE] = kept
    for k in range(given_up):
        c = lists[3, k]
        channel[vc[channel[c]["held_vc"]]["out"]]["held_by"] = -1
        channel[c]["held_vc"] = -1
    for k in range(asked):
        o = lists[2, k]
        i = channel[o]["winner"]
        c = i >> shift
        if not _move(world, i, o, now):
            continue
        channel[o]["key"] = state.NO_KEY
        if (channel[c]["body"] | channel[c]["head"]) != NONE or channel[c]["held_vc"] >= 0:
            lists[0, clock[state.ACTIVE]] = c
            clock[state.ACTIVE] += 1
        else:
            channel[c]["listed"] = 0


@inlined
def _put_forward(world: World, c: int, now: int) -> tuple[int, int]:
    """Return the virtual channel of an input that asks for its output, and its key there: lowest first.

    -1 if none can; -2 if the one whose connection is held cannot, which ends the connection.
    """
    channel = world.channel
    body = channel[c]["body"]
    ready = body | channel[c]["head"]
    urgent = ready & channel[c]["circuit"]
    if urgent != NONE:
        i, key = _choose(world, c, urgent, body, now)
        if i >= 0:
            return i, key
        ready &= ~urgent
    held = channel[c]["held_vc"]
    if held >= 0:
        if channel[world.vc[held]["out"]]["busy_until"] > now:
            return -1, 0
        if body & (ONE << np.uint64(held - (c << world.clock[state.SHIFT]))) == NONE:
            return -2, 0
        return held, _HELD
    return _choose(world, c, ready, body, now)


@inlined
def _choose(world: World, c: int, ready: Any, body: Any, now: int) -> tuple[int, int]:
    """Return the first in rank and turn of some virtual channels of an input, and its key; -1 if none can."""
    channel, vc = world.channel, world.vc
    base = c << world.clock[state.SHIFT]
    best, best_key, best_turn = -1, state.NO_KEY, 0
    while ready != NONE:
        bit = trailing_zeros(ready)
        ready &= ready - ONE
        i = base + bit
        o = vc[i]["out"]
        rank = vc[i]["rank"]
        if channel[o]["busy_until"] > now or (channel[o]["held_by"] >= 0 and rank > CIRCUIT_RANK):
            continue
        key = rank * _RANK
        if body & (ONE << np.uint64(bit)) == NONE:
            if channel[o]["free"] & world.masks[vc[i]["allowed"]] == NONE:
                continue
            key += _WAITS
        if key > best_key:
            continue
        turn = 0
        if best >= 0 or ready != NONE:
            turn = _turn(world, c, bit, o)
            if key == best_key and turn > best_turn:
                continue
        best, best_key, best_turn = i, key, turn
    if best >= 0:
        o = vc[best]["out"]
        turn = channel[c]["place_in"] - channel[o]["next_in"]
        best_key += turn if turn >= 0 else turn + channel[c]["inputs"]
    return best, best_key


@inlined
def _turn(world: World, c: int, bit: int, o: int) -> int:
    """Distance of an input's next turn for an output, and of one of its virtual channels."""
    channel = world.channel
    output = channel[o]["place_out"] - channel[c]["next_out"]
    if output < 0:
        output += channel[o]["outputs"]
    turn = bit - channel[c]["next_vc"]
    return (output << 6) + (turn if turn >= 0 else turn + 64)


@inlined
def _move(world: World, i: int, o: int, now: int) -> bool:
    """Send the front flit of a virtual channel over an output that it won; False if its packet is a train."""
    channel, vc, clock = world.channel, world.vc, world.clock
    shift = clock[state.SHIFT]
    vmask = (1 << shift) - 1
    c = i >> shift
    bit = ONE << np.uint64(i & vmask)
    if vc[i]["flit"] & state.HEAD:
        free = channel[o]["free"] & world.masks[vc[i]["allowed"]]
        from_next = free >> np.uint64(channel[o]["next_free"]) << np.uint64(channel[o]["next_free"])
        chosen = trailing_zeros(from_next if from_next != NONE else free)
        channel[o]["next_free"] = chosen + 1
        j = (o << shift) + chosen
        if begin_train(world, i, j, now):
            return False
        flit = vc[i]["flit"]
        world.packet[flit >> state.FLAGS]["hop"] += 1
        if clock[state.ARBITRATION] == state.WEIGHTED:
            channel[o]["fair_time"] = vc[i]["rank"]
        channel[c]["head"] &= ~bit
        if flit & state.TAIL == 0:
            vc[i]["out_vc"] = j
            vc[j]["owner"] = i
            channel[o]["free"] &= ~(ONE << np.uint64(chosen))
    else:
        flit, j = vc[i]["flit"], vc[i]["out_vc"]
    count = vc[i]["count"] - 1
    credits = vc[j]["credits"] - 1
    vc[j]["credits"] = credits
    vc[i]["count"] = count
    if count > 0:
        front = vc[i]["front"]
        vc[i]["flit"] = world.slots[vc[i]["first_slot"] + front]
        vc[i]["front"] = front + 1 if front + 1 < clock[state.BUFFER] else 0
    if channel[o]["key"] != _HELD:
        channel[o]["next_in"] = channel[c]["place_in"] + 1
        channel[c]["next_out"] = channel[o]["place_out"] + 1
        channel[c]["next_vc"] = (i & vmask) + 1
    held = channel[c]["held_vc"] == i
    hold = count > 0 and clock[state.HOLDS] != 0
    if flit & state.TAIL:
        hold = False
        vc[j]["owner"] = -1
        if credits > 0:
            channel[o]["free"] |= ONE << np.uint64(j & vmask)
        else:
            channel[o]["free"] &= ~(ONE << np.uint64(j & vmask))
        channel[c]["body"] &= ~bit
        if count > 0:
            ask(world, i, c, bit, vc[i]["flit"] >> state.FLAGS, now)
    elif count > 0 and credits > 0:
        channel[c]["body"] |= bit
    else:
        channel[c]["body"] &= ~bit
    if hold and not held and vc[i]["rank"] > CIRCUIT_RANK:
        channel[c]["held_vc"] = i
        channel[o]["held_by"] = c
    elif held and not hold:
        channel[c]["held_vc"] = -1
        channel[o]["held_by"] = -1
    clock[state.LAST_MOVE] = max(clock[state.LAST_MOVE], now)
    channel[o]["flits"] += 1
    channel[o]["busy_until"] = now + channel[o]["cycles"]
    channel[c]["occupancy"] += now
    channel[c]["stored"] -= 1
    return_credits(world, i, 1, now + channel[c]["credit_delay"])
    arrival = now + channel[o]["delay"]
    if channel[o]["sink"]:
        clock[state.IN_NETWORK] -= 1
        return_credits(world, j, 1, arrival + channel[o]["credit_delay"])
        if flit & state.TAIL == 0:
            return True
    launch(world, j, flit, arrival)
    return True


@lean
def step(world: World, now: int) -> None:
    """Simulate cycle ``now``; what it delivers is in ``delivered``, ``clock[DELIVERED]`` packets.

    Cycles may be left out while `quiet`.
    """
    for k in range(world.clock[state.DELIVERED]):
        forget(world, world.delivered[k])
    world.clock[state.DELIVERED] = 0
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
    return now - world.clock[state.LAST_MOVE] > world.clock[state.SPAN]


@inlined
def _receive(world: World, now: int) -> None:
    channel, vc, clock = world.channel, world.vc, world.clock
    row = now & clock[state.WHEEL]
    arrivals = world.arrivals
    number = arrivals[row, 0]
    if number == 0:
        return
    arrivals[row, 0] = 0
    clock[state.LAST_MOVE] = max(clock[state.LAST_MOVE], now)
    shift, vmask = clock[state.SHIFT], (1 << clock[state.SHIFT]) - 1
    for k in range(1, number + 1):
        word = arrivals[row, k]
        i, flit = word >> 32, word & 0xFFFFFFFF
        c = i >> shift
        if channel[c]["sink"]:
            world.delivered[clock[state.DELIVERED]] = flit >> state.FLAGS
            clock[state.DELIVERED] += 1
            continue
        count = vc[i]["count"]
        number_of_flits = 1
        if flit & state.WHOLE == state.WHOLE:
            number_of_flits = world.packet[flit >> state.FLAGS]["flits"]
            if count > 0 and number_of_flits > 1:
                scatter(world, i, flit >> state.FLAGS, 1, now)
                flit -= state.TAIL
                number_of_flits = 1
        channel[c]["occupancy"] -= time_of(number_of_flits, now)
        channel[c]["stored"] += number_of_flits
        vc[i]["count"] = count + number_of_flits
        if count > 0:
            place = vc[i]["front"] + count - 1
            if place >= clock[state.BUFFER]:
                place -= clock[state.BUFFER]
            world.slots[vc[i]["first_slot"] + place] = flit
        else:
            vc[i]["flit"] = flit
            vc[i]["came"] = now
            bit = ONE << np.uint64(i & vmask)
            if vc[i]["leaving"]:
                continue
            if flit & state.HEAD:
                ask(world, i, c, bit, flit >> state.FLAGS, now)
                list_input(world, c)
            elif vc[vc[i]["out_vc"]]["credits"] > 0:
                channel[c]["body"] |= bit
                list_input(world, c)


@inlined
def _take_credits(world: World, now: int) -> None:
    channel, vc, clock = world.channel, world.vc, world.clock
    row = now & clock[state.WHEEL]
    credits = world.credits
    number = credits[row, 0]
    if number == 0:
        return
    credits[row, 0] = 0
    clock[state.LAST_MOVE] = max(clock[state.LAST_MOVE], now)
    shift, vmask = clock[state.SHIFT], (1 << clock[state.SHIFT]) - 1
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
