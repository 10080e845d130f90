"""The sources of a network: packets queue there without bound, one flit per cycle enters."""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from validate.engine.jit import inlined, lean
from validate.noc.flits import NONE, ONE, launch, list_end
from validate.noc.state import (
    CLOSED,
    FLAGS,
    FREE_PACKET,
    FREE_PACKETS,
    HEAD,
    IN_NETWORK,
    LAST_MOVE,
    MASK_BITS,
    SENDING,
    SHIFT,
    TAIL,
    TRAIN,
    VCS,
    WAITING,
    World,
)


@lean
def send(world: World, flow: int, flits: int, tag: int, now: int) -> int:
    """Put a packet into the source queue of a flow; it can leave in this cycle if `step` comes after.

    ``flow``, ``flits``: the packet's flow and length; ``tag``: whatever the driver wants to find in
    ``packet["tag"]`` when it is delivered; ``now``: the cycle it is created in. Returns the packet's number
    until the cycle after its delivery; -1 if there is no room for it (`grown`).
    """
    clock, packet, queue, node, flows = world.clock, world.packet, world.queue, world.node, world.flow
    p = clock[FREE_PACKET]
    if p < 0:
        return -1
    clock[FREE_PACKET] = packet[p]["following"]
    clock[FREE_PACKETS] -= 1
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
    clock[WAITING] += 1
    if node[n]["listed"] == 0:
        node[n]["listed"] = 1
        world.lists[1, clock[SENDING]] = n
        clock[SENDING] += 1
    return p


@inlined
def forget(world: World, p: int) -> None:
    """Make the place of a packet free."""
    world.packet[p]["following"] = world.clock[FREE_PACKET]
    world.clock[FREE_PACKET] = p
    world.clock[FREE_PACKETS] += 1


@inlined
def send_flits(world: World, now: int) -> None:
    """Let each source send a flit."""
    channel, queue, node, clock = world.channel, world.queue, world.node, world.clock
    k = 0
    while k < clock[SENDING]:
        n = world.lists[1, k]
        k += 1
        c = node[n]["channel"]
        if channel[c]["busy_until"] > now:
            continue
        first = node[n]["first_queue"]
        chosen = -1
        for q in range(first, first + node[n]["circuits"]):
            asks = queue[q]["first"] >= 0 and (clock[CLOSED] == 0 or queue[q]["sent"] > 0)
            if asks and _has_room(world, n, q):
                chosen = q
                break
        if chosen < 0:
            q = node[n]["current"]
            if q < 0 and clock[CLOSED] == 0:
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
                clock[SENDING] -= 1
                k -= 1
                world.lists[1, k] = world.lists[1, clock[SENDING]]


@inlined
def _has_room(world: World, n: int, q: int) -> bool:
    """Return whether the next flit of a source queue can be sent; give a head its virtual channel."""
    vc, queue, node, clock = world.vc, world.queue, world.node, world.clock
    i = queue[q]["vc"]
    if i >= 0:
        return vc[i]["credits"] > 0
    c = node[n]["channel"]
    hop = world.packet[queue[q]["first"]]["hop"]
    free = world.channel[c]["free"] & world.masks[world.hop[hop] & ((1 << MASK_BITS) - 1)]
    if free == NONE:
        return False
    above = free >> np.uint64(node[n]["last_vc"] + 1) << np.uint64(node[n]["last_vc"] + 1)
    bit = trailing_zeros(above if above != NONE else free)
    if bit < clock[VCS]:
        node[n]["last_vc"] = bit
    queue[q]["vc"] = (c << clock[SHIFT]) + bit
    return True


@inlined
def _send_flit(world: World, n: int, q: int, c: int, now: int) -> bool:
    """Let the next flit of a source queue enter; return whether the whole packet does, as a train."""
    channel, vc, queue, packet, clock = world.channel, world.vc, world.queue, world.packet, world.clock
    i = queue[q]["vc"]
    p = queue[q]["first"]
    sent = queue[q]["sent"]
    flits = packet[p]["flits"]
    flit = p << FLAGS
    number = 1
    if sent == 0:
        flit |= HEAD
        packet[p]["injected"] = now
        if 1 < flits <= min(clock[TRAIN], vc[i]["credits"]) and channel[c]["cycles"] == 1:
            flit |= TAIL
            number = flits
            vc[i]["waited"] = q
            list_end(world, i, flits, now)
    sent += 1
    if sent == flits:
        flit |= TAIL
        end_packet(world, n, q)
    else:
        queue[q]["sent"] = sent
    clock[IN_NETWORK] += number
    clock[LAST_MOVE] = max(clock[LAST_MOVE], now + number - 1)
    vc[i]["credits"] -= number
    if vc[i]["credits"] == 0:
        channel[c]["free"] &= ~(ONE << np.uint64(i & ((1 << clock[SHIFT]) - 1)))
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
    world.clock[WAITING] -= 1


@inlined
def end_source_train(world: World, q: int) -> None:
    """Let a source go on after a train."""
    n = world.queue[q]["node"]
    end_packet(world, n, q)
    world.node[n]["listed"] = world.node[n]["waiting"] > 0
    if world.node[n]["listed"]:
        world.lists[1, world.clock[SENDING]] = n
        world.clock[SENDING] += 1
