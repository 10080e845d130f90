"""Flits on their way: sources send them, channels hand them on, and trains of them move as one.

Packets queue at their sources without bound; one flit per cycle enters. Trains are the flits of a packet that
follow one another, one a cycle, with nobody to come between them. Whoever looks sees every flit move in the
cycle in which it would move by itself. Nothing can come between the flits of a train that

* waited, so that it holds the switch, and input and output are its own; or
* goes on as it comes: it is alone in its input, and no other packet has a virtual channel of its output,
  so that only heads ask for that, which flits of a packet under way go before;

if all its flits are there or follow one another, and the virtual channel has room for all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from validate.engine.jit import apart, inlined, lean
from validate.noc import state
from validate.noc.state import World

ONE = np.uint64(1)
NONE = np.uint64(0)
CIRCUIT_RANK = -(1 << 20)
"""Of the packets of circuits; all others have ranks of 0 and more."""


@inlined
def launch(world: World, i: int, flit: int, time: int) -> None:
    """Let a flit arrive at a virtual channel at a time to come."""
    row = time & world.clock[state.WHEEL]
    place = world.arrivals[row, 0] + 1
    world.arrivals[row, 0] = place
    world.arrivals[row, place] = (i << 32) | flit


@apart
def scatter(world: World, i: int, p: int, first: int, time: int) -> None:
    """Let the flits of a packet from the ``first`` on arrive in turn, as if its head did at a time."""
    flits = world.packet[p]["flits"]
    for k in range(first, flits):
        launch(world, i, (p << state.FLAGS) | (state.TAIL if k == flits - 1 else 0), time + k)


@inlined
def list_end(world: World, i: int, flits: int, now: int) -> None:
    """Note when the last flit is sent of a train that is sent into a virtual channel from now on."""
    row = (now + flits - 1) & world.clock[state.WHEEL]
    place = world.ends[row, 0] + 1
    world.ends[row, 0] = place
    world.ends[row, place] = i


@inlined
def return_credits(world: World, i: int, number: int, time: int) -> None:
    """Let slots of a virtual channel be free, one a cycle from a time to come."""
    row = time & world.clock[state.WHEEL]
    place = world.credits[row, 0] + 1
    world.credits[row, 0] = place
    world.credits[row, place] = (number << 32) | i


@inlined
def list_input(world: World, c: int) -> None:
    """Put an input among those with something to send."""
    if world.channel[c]["listed"] == 0:
        world.channel[c]["listed"] = 1
        world.lists[0, world.clock[state.ACTIVE]] = c
        world.clock[state.ACTIVE] += 1


@inlined
def ask(world: World, i: int, c: int, bit: Any, p: int, now: int) -> None:
    """Let the head of a packet that came to the front of a virtual channel ask for its output."""
    vc, service = world.vc, world.service
    hop = world.packet[p]["hop"] + 1
    word = world.hop[hop]
    vc[i]["out"] = word >> state.MASK_BITS
    vc[i]["allowed"] = word & ((1 << state.MASK_BITS) - 1)
    world.channel[c]["head"] |= bit
    arbitration = world.clock[state.ARBITRATION]
    if arbitration != state.ROUND_ROBIN or world.clock[state.CIRCUITS] > 0:
        f = world.packet[p]["flow"]
        rank = 0
        if service[f]["circuit"] >= 0:
            rank = CIRCUIT_RANK
        elif arbitration == state.FCFS:
            rank = now
        elif arbitration == state.PRIORITY:
            rank = service[f]["priority"]
        elif arbitration != state.ROUND_ROBIN:
            rank = _fair_finish(world, hop, f, p)
        vc[i]["rank"] = rank


@apart
def _fair_finish(world: World, hop: int, f: int, p: int) -> int:
    """Return the virtual time at which a packet would end if its flow got its share of the channel."""
    c = world.hop[hop] >> state.MASK_BITS
    start = max(world.finish[hop], world.channel[c]["fair_time"])
    finish = start + int(world.packet[p]["flits"] * state.SCALE / world.service[f]["weight"])
    world.finish[hop] = finish
    return finish


@lean
def send(world: World, flow: int, flits: int, tag: int, now: int) -> int:
    """Put a packet into the source queue of a flow; it can leave in this cycle if `step` comes after.

    ``flow``, ``flits``: the packet's flow and length; ``tag``: whatever the driver wants to find in
    ``packet["tag"]`` when it is delivered; ``now``: the cycle it is created in. Returns the packet's number
    until the cycle after its delivery; -1 if there is no room for it (`grown`).
    """
    clock, packet, queue, node, flows = world.clock, world.packet, world.queue, world.node, world.flow
    p = clock[state.FREE_PACKET]
    if p < 0:
        return -1
    clock[state.FREE_PACKET] = packet[p]["following"]
    clock[state.FREE_PACKETS] -= 1
    packet[p]["flow"] = flow
    packet[p]["flits"] = flits
    packet[p]["hop"] = flows[flow]["first_hop"]
    packet[p]["following"] = -1
    packet[p]["created"] = now
    packet[p]["tag"] = tag
    q = flows[flow]["queue"]
    if queue[q]["first"] < 0:
        queue[q]["first"] = p
    else:
        packet[queue[q]["last"]]["following"] = p
    queue[q]["last"] = p
    n = queue[q]["node"]
    node[n]["waiting"] += 1
    clock[state.WAITING] += 1
    if node[n]["listed"] == 0:
        node[n]["listed"] = 1
        world.lists[1, clock[state.SENDING]] = n
        clock[state.SENDING] += 1
    return p


@inlined
def forget(world: World, p: int) -> None:
    """Make the place of a packet free."""
    world.packet[p]["following"] = world.clock[state.FREE_PACKET]
    world.clock[state.FREE_PACKET] = p
    world.clock[state.FREE_PACKETS] += 1


@inlined
def send_flits(world: World, now: int) -> None:
    """Let each source send a flit."""
    channel, queue, node, clock = world.channel, world.queue, world.node, world.clock
    k = 0
    while k < clock[state.SENDING]:
        n = world.lists[1, k]
        k += 1
        c = node[n]["channel"]
        if channel[c]["busy_until"] > now:
            continue
        first = node[n]["first_queue"]
        chosen = -1
        for q in range(first, first + node[n]["circuits"]):
            asks = queue[q]["first"] >= 0 and (clock[state.CLOSED] == 0 or queue[q]["sent"] > 0)
            if asks and _has_room(world, n, q):
                chosen = q
                break
        if chosen < 0:
            q = node[n]["current"]
            if q < 0 and clock[state.CLOSED] == 0:
                q = first + node[n]["circuits"]
                stop = first + node[n]["queues"]
                while q < stop and queue[q]["first"] < 0:
                    q += 1
                if q == stop:
                    q = -1
            if q >= 0 and _has_room(world, n, q):
                chosen = q
                node[n]["current"] = q
        if chosen >= 0:
            train = _send_flit(world, n, chosen, c, now)
            if train or node[n]["waiting"] == 0:
                node[n]["listed"] = train
                clock[state.SENDING] -= 1
                k -= 1
                world.lists[1, k] = world.lists[1, clock[state.SENDING]]


@inlined
def _has_room(world: World, n: int, q: int) -> bool:
    """Return whether the next flit of a source queue can be sent; give a head its virtual channel."""
    vc, queue, node, clock = world.vc, world.queue, world.node, world.clock
    i = queue[q]["vc"]
    if i >= 0:
        return vc[i]["credits"] > 0
    c = node[n]["channel"]
    hop = world.packet[queue[q]["first"]]["hop"]
    free = world.channel[c]["free"] & world.masks[world.hop[hop] & ((1 << state.MASK_BITS) - 1)]
    if free == NONE:
        return False
    above = free >> np.uint64(node[n]["last_vc"] + 1) << np.uint64(node[n]["last_vc"] + 1)
    bit = trailing_zeros(above if above != NONE else free)
    if bit < clock[state.VCS]:
        node[n]["last_vc"] = bit
    queue[q]["vc"] = (c << clock[state.SHIFT]) + bit
    return True


@inlined
def _send_flit(world: World, n: int, q: int, c: int, now: int) -> bool:
    """Let the next flit of a source queue enter; return whether the whole packet does, as a train."""
    channel, vc, queue, packet, clock = world.channel, world.vc, world.queue, world.packet, world.clock
    i = queue[q]["vc"]
    p = queue[q]["first"]
    sent = queue[q]["sent"]
    flits = packet[p]["flits"]
    flit = p << state.FLAGS
    number = 1
    if sent == 0:
        flit |= state.HEAD
        packet[p]["injected"] = now
        if 1 < flits <= min(clock[state.TRAIN], vc[i]["credits"]) and channel[c]["cycles"] == 1:
            flit |= state.TAIL
            number = flits
            vc[i]["waited"] = q
            list_end(world, i, flits, now)
    sent += 1
    if sent == flits:
        flit |= state.TAIL
        end_packet(world, n, q)
    else:
        queue[q]["sent"] = sent
    clock[state.IN_NETWORK] += number
    clock[state.LAST_MOVE] = max(clock[state.LAST_MOVE], now + number - 1)
    vc[i]["credits"] -= number
    if vc[i]["credits"] == 0:
        channel[c]["free"] &= ~(ONE << np.uint64(i & ((1 << clock[state.SHIFT]) - 1)))
    channel[c]["flits"] += number
    channel[c]["busy_until"] = now + channel[c]["cycles"]
    launch(world, i, flit, now + channel[c]["delay"])
    return number > 1


@inlined
def end_packet(world: World, n: int, q: int) -> None:
    """Go on with the next packet of a source queue."""
    queue, node = world.queue, world.node
    queue[q]["first"] = world.packet[queue[q]["first"]]["following"]
    queue[q]["sent"] = 0
    queue[q]["vc"] = -1
    if node[n]["current"] == q:
        node[n]["current"] = -1
    node[n]["waiting"] -= 1
    world.clock[state.WAITING] -= 1


@inlined
def end_source_train(world: World, q: int) -> None:
    """Let a source go on after a train."""
    n = world.queue[q]["node"]
    end_packet(world, n, q)
    world.node[n]["listed"] = world.node[n]["waiting"] > 0
    if world.node[n]["listed"]:
        world.lists[1, world.clock[state.SENDING]] = n
        world.clock[state.SENDING] += 1


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
    c, o = i >> clock[state.SHIFT], j >> clock[state.SHIFT]
    flit, count = vc[i]["flit"], vc[i]["count"]
    p = flit >> state.FLAGS
    flits = world.packet[p]["flits"]
    if flits == 1 or flits > clock[state.TRAIN] or count < flits:
        return False
    # Flits that came by themselves are all there.
    waited = now - vc[i]["came"] if flit & state.WHOLE == state.WHOLE else flits
    if waited > 0:
        alone = clock[state.HOLDS] != 0
    else:
        others = channel[o]["free"] ^ np.uint64((1 << clock[state.VCS]) - 1)
        alone = others == NONE and channel[c]["stored"] == flits
    if not alone or vc[j]["credits"] < flits or channel[o]["cycles"] > 1:
        if flit & state.WHOLE == state.WHOLE:
            _split(world, i, c, flits, now)
        return False
    bit = ONE << np.uint64(i - (c << clock[state.SHIFT]))
    channel[c]["head"] &= ~bit
    channel[o]["free"] &= ~(ONE << np.uint64(j - (o << clock[state.SHIFT])))
    world.packet[p]["hop"] += 1
    vc[j]["owner"] = i
    vc[j]["credits"] -= flits
    vc[j]["waited"] = min(waited, flits)
    vc[i]["count"] = count - flits
    vc[i]["leaving"] = 1
    if count > flits:
        place = vc[i]["front"] + flits - 1
        place -= clock[state.BUFFER] if place >= clock[state.BUFFER] else 0
        vc[i]["flit"] = world.slots[vc[i]["first_slot"] + place]
        vc[i]["front"] = place + 1 if place + 1 < clock[state.BUFFER] else 0
    channel[o]["next_in"] = channel[c]["place_in"] + 1
    channel[c]["next_out"] = channel[o]["place_out"] + 1
    channel[c]["next_vc"] = i - (c << clock[state.SHIFT]) + 1
    channel[c]["listed"] = 0
    last = now + flits - 1
    if waited > 0:
        channel[c]["held_vc"] = i
        channel[o]["key"] = state.NO_KEY
        channel[o]["busy_until"] = last + 1
    else:
        channel[o]["key"] = _TAKEN
        channel[o]["busy_until"] = now + 1
    clock[state.LAST_MOVE] = max(clock[state.LAST_MOVE], last)
    channel[o]["flits"] += flits
    channel[c]["occupancy"] += time_of(flits, now)
    channel[c]["stored"] -= flits
    list_end(world, j, flits, now)
    return_credits(world, i, flits, now + channel[c]["credit_delay"])
    if channel[o]["sink"]:
        clock[state.IN_NETWORK] -= flits
        return_credits(world, j, flits, now + channel[o]["delay"] + channel[o]["credit_delay"])
        launch(world, j, (p << state.FLAGS) | state.TAIL, last + channel[o]["delay"])
    else:
        launch(world, j, (p << state.FLAGS) | state.WHOLE, now + channel[o]["delay"])
    return True


@apart
def _split(world: World, i: int, c: int, flits: int, now: int) -> None:
    """Let the flits of a train that is in front of a virtual channel be single ones."""
    channel, vc = world.channel, world.vc
    flit, came = vc[i]["flit"], vc[i]["came"]
    there = min(flits, now - came + 1)
    vc[i]["flit"] = flit - state.TAIL
    vc[i]["count"] -= flits - there
    channel[c]["occupancy"] += time_of(flits, came) - time_of(there, came)
    channel[c]["stored"] -= flits - there
    for k in range(1, there):
        place = vc[i]["front"] + k - 1
        place -= world.clock[state.BUFFER] if place >= world.clock[state.BUFFER] else 0
        last = state.TAIL if k == flits - 1 else 0
        world.slots[vc[i]["first_slot"] + place] = (flit >> state.FLAGS << state.FLAGS) | last
    scatter(world, i, flit >> state.FLAGS, there, came)


@inlined
def end_trains(world: World, now: int) -> None:
    """Give up what the trains had whose last flit was sent in this cycle."""
    channel, vc, clock = world.channel, world.vc, world.clock
    row = now & clock[state.WHEEL]
    shift, vmask = clock[state.SHIFT], (1 << clock[state.SHIFT]) - 1
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
        channel[o]["key"] = state.NO_KEY
        if channel[c]["held_vc"] == i:
            channel[c]["held_vc"] = -1
        vc[i]["leaving"] = 0
        if vc[i]["count"] > 0:
            ask(world, i, c, ONE << np.uint64(i & vmask), vc[i]["flit"] >> state.FLAGS, now)
        if (channel[c]["head"] | channel[c]["body"]) != NONE:
            list_input(world, c)
