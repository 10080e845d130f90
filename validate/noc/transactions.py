"""Initiators that wait for the answers to their requests: the driver of closed traffic."""

from __future__ import annotations

from math import ceil, log
from typing import Any, NamedTuple

import numpy as np

from validate.engine.events import next_event, schedule
from validate.engine.jit import inlined, lean
from validate.engine.streams import uniform
from validate.noc.kernel import quiet, step
from validate.noc.meter import Meter, pick_flow, record
from validate.noc.open_traffic import DONE, STUCK
from validate.noc.sources import send
from validate.noc.state import DELIVERED, IN_NETWORK, NOW, World

ENGINE = np.dtype(
    [("initiator", "i4"), ("flow", "i4"), ("asked", "i8"), ("done", "i8"), ("latency", "i8")], align=True
)
"""One of an initiator's engines: the flow and cycle of its request, transactions done, sum of their times."""


class Closed(NamedTuple):
    """Closed traffic: engines, the picks of their initiators, the memory nodes and the calendar.

    ``initiator``, ``pick`` and ``group`` are those of `pick_flow`; ``reply`` has the answer of each
    flow and ``memory`` the place of its memory node, whose server is free at ``free_at``. ``times`` are
    the means of thinking, service and latency, whether the first two are exponential, drawn from the
    streams after those of the picks, and whether memories cut through. Event e is a request of engine e,
    event e + engines its answer.
    """

    engine: Any
    initiator: Any
    pick: Any
    group: Any
    reply: Any
    memory: Any
    free_at: Any
    times: Any
    streams: Any
    heap: Any


@inlined
def _time(traffic: Closed, which: int, stream: int) -> float:
    mean = traffic.times[which]
    if traffic.times[3 + which] > 0:
        return -mean * log(uniform(traffic.streams, stream))
    return mean


@inlined
def _events(world: World, traffic: Closed, now: int) -> None:
    """Send the requests and the answers of this cycle."""
    engine, heap = traffic.engine, traffic.heap
    while heap[0]["event"] > 0 and heap[1]["time"] <= now:
        e = next_event(heap)
        if e >= engine.size:
            e -= engine.size
            flow = traffic.reply[engine[e]["flow"]]
        else:
            s = engine[e]["initiator"]
            flow = pick_flow(traffic.initiator, traffic.pick, traffic.group, traffic.streams, s)
            engine[e]["flow"] = flow
            engine[e]["asked"] = now
        send(world, flow, world.flow[flow]["flits"], e, now)


@inlined
def _react(world: World, traffic: Closed, now: int) -> None:
    """Let memory nodes serve the requests that came in, and initiators think about the answers."""
    engine, packet = traffic.engine, world.packet
    thinkers = 2 * traffic.initiator.size
    for k in range(world.clock[DELIVERED]):
        p = world.delivered[k]
        e = packet[p]["tag"]
        if packet[p]["flow"] == engine[e]["flow"]:
            flow = packet[p]["flow"]
            m = traffic.memory[flow]
            first, last = 0, 0
            if traffic.times[5] > 0:
                # Flits that came before the last one, and those that leave before the last one.
                first, last = world.flow[flow]["flits"] - 1, world.flow[traffic.reply[flow]]["flits"] - 1
            start = max(float(now - first), traffic.free_at[m])
            done = max(float(now), start + _time(traffic, 1, thinkers + traffic.initiator.size + m))
            traffic.free_at[m] = done
            answer = max(float(now), max(start, done - last) + traffic.times[2])
            schedule(traffic.heap, answer, e + engine.size)
        else:
            engine[e]["done"] += 1
            engine[e]["latency"] += now - engine[e]["asked"]
            think = _time(traffic, 0, thinkers + engine[e]["initiator"])
            schedule(traffic.heap, now + think, e)


@lean
def run_closed(world: World, traffic: Closed, meter: Meter, until: int, packets: int) -> int:
    """Simulate up to a cycle, or on until n packets are delivered; return `DONE` or `STUCK`."""
    clock = world.clock
    now = clock[NOW]
    done = 0
    while now < until or done < packets:
        _events(world, traffic, now)
        step(world, now)
        record(world, meter, now)
        _react(world, traffic, now)
        done += clock[DELIVERED]
        now += 1
        if quiet(world, now):
            if clock[IN_NETWORK] > 0:
                clock[NOW] = now
                return STUCK
            now = max(now, int(ceil(traffic.heap[1]["time"])))
    clock[NOW] = now
    return DONE
