"""The event loop of a packet processor: events in continuous time beside networks that go cycle by cycle."""

from __future__ import annotations

from math import ceil

import numpy as np

from validate.dram.channels import Channels
from validate.engine.events import next_event, pending, schedule
from validate.engine.jit import jit, lean, lean_part, part
from validate.noc.kernel import quiet, step
from validate.noc.sources import send
from validate.noc.state import DELIVERED, WAITING
from validate.noc.state import World as Network
from validate.packet_processor.controllers import end_access, give_commands, join_controller
from validate.packet_processor.kernel import (
    admit,
    continue_operation,
    end_hold,
    end_slice_access,
    end_write,
    receive,
)
from validate.packet_processor.network import (
    ACCESS_DONE,
    ARRIVAL,
    BANK_FREE,
    BANK_READY,
    COMMANDS_DUE,
    HOLD_OVER,
    KINDS,
    POINTER_DONE,
    SLICE_DONE,
    answer,
    free_bank,
    join_bank,
    use_bus,
)
from validate.packet_processor.state import EVENTS, REQUESTS, WRITE, World

ROUNDING = 1e-6
"""Of a cycle: times are multiples of clocks and may come out a little late."""


@jit
def begin(w: World) -> None:
    """Schedule the first arrival of an open run, or admit the packets that circulate in a closed one."""
    window = w.parameters[0]["window"]
    if window == 0:
        schedule(w.heap, w.packets[0]["arrival"], ARRIVAL)
    for _ in range(min(window, w.packets.size)):
        admit(w, 0.0)


@lean
def run(w: World, requests: Network, responses: Network, channels: Channels, until: int) -> None:
    """Run until so many packets have arrived, or to the last departure if there are not so many.

    Events are in continuous time, the networks go from cycle to cycle: an event comes before the cycle
    that begins at its time, and what it sends enters the networks in that cycle.
    """
    ghz, controlled = w.parameters[0]["noc_ghz"], w.parameters[0]["controlled"]
    post(w, requests, responses)
    while w.state[0]["admitted"] < until:
        cycle = w.state[0]["cycle"]
        still = rests(requests, cycle) and rests(responses, cycle)
        if still and pending(w.heap) == 0:
            break
        if pending(w.heap) > 0:
            due = np.int64(ceil(w.heap[1]["time"] * ghz - ROUNDING))
            if still or due <= cycle:
                w.state[0]["cycle"] = max(cycle, due)
                handle(w, channels)
                post(w, requests, responses)
                continue
        now = cycle / ghz
        step(requests, cycle)
        for k in range(requests.clock[DELIVERED]):
            w.counts[EVENTS] += 1
            segment = requests.packet[requests.delivered[k]]["tag"]
            if controlled:
                join_controller(w, channels, now, segment)
            else:
                join_bank(w, now, segment)
        step(responses, cycle)
        for k in range(responses.clock[DELIVERED]):
            w.counts[EVENTS] += 1
            receive(w, now, responses.packet[responses.delivered[k]]["tag"])
        w.state[0]["cycle"] = cycle + 1
        w.heap[0]["time"] = now
        post(w, requests, responses)


@lean_part
def rests(network: Network, cycle: int) -> bool:
    """Return whether a network has nothing to carry."""
    return network.clock[WAITING] == 0 and quiet(network, cycle)


@lean_part
def post(w: World, requests: Network, responses: Network) -> None:
    """Hand the outbox to the networks."""
    cycle = w.state[0]["cycle"]
    for k in range(w.state[0]["sends"]):
        letter = w.outbox[k]
        if letter["network"] == REQUESTS:
            send(requests, letter["flow"], letter["flits"], letter["segment"], cycle)
        else:
            send(responses, letter["flow"], letter["flits"], letter["segment"], cycle)
    w.state[0]["sends"] = 0


@part
def handle(w: World, channels: Channels) -> None:
    """Let the next event happen."""
    event = next_event(w.heap)
    now = w.heap[0]["time"]
    item = event // KINDS
    kind = event % KINDS
    w.counts[EVENTS] += 1
    if kind == BANK_READY:
        use_bus(w, now, item)
    elif kind == BANK_FREE:
        free_bank(w, now, item)
    elif kind == COMMANDS_DUE:
        give_commands(w, channels, now, item)
    elif kind == ACCESS_DONE:
        if w.parameters[0]["controlled"]:
            end_access(w, now, item)
        if w.packets[w.segments[item]["packet"]]["stage"] == WRITE:
            end_write(w, now, item)
        else:
            answer(w, item)
    elif kind == POINTER_DONE:
        continue_operation(w, now, item)
    elif kind == HOLD_OVER:
        end_hold(w, now, item)
    elif kind == SLICE_DONE:
        end_slice_access(w, now, item)
    else:
        admit(w, now)
