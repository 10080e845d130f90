"""The processes of a message-passing program, driving the flit-level network cycle by cycle."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from validate.engine.jit import jit, lean_part
from validate.messaging.program import BLOCKED, DELAY, PACKETS, PARTS, SOFTWARE
from validate.noc.kernel import quiet, step
from validate.noc.sources import send
from validate.noc.state import DELIVERED, World

FAR = np.inf


class Processes(NamedTuple):
    """Where the processes of a program are, and the mailboxes they read.

    Of each process: its next operation and the last, when it is ready and since when it has been, packets
    left of a message (negative while one is copied), by how much its packet was early, the mailbox it waits
    for, and the parts of its time. Of each mailbox messages arrived and taken, and who waits.
    """

    at: Any
    end: Any
    ready: Any
    since: Any
    left: Any
    early: Any
    waits_for: Any
    parts: Any
    arrived: Any
    taken: Any
    reader: Any


@lean_part
def copy(p: Processes, k: int, o: Any) -> None:
    """Let a process copy its next packet, which it sends when it is ready."""
    copying = o["cycles"] if p.left[k] > 1 else o["last_cycles"]
    p.parts[k, SOFTWARE] += copying
    p.ready[k] += copying
    p.since[k] = p.ready[k]
    p.left[k] = -p.left[k]


@lean_part
def advance(world: World, operations: Any, p: Processes, message: Any, k: int, now: int) -> int:
    """Let a process go on until it has to wait; return 1 if it has come to its end."""
    while p.ready[k] <= now:
        if p.at[k] == p.end[k]:
            p.ready[k] = FAR
            return 1
        o = operations[p.at[k]]
        if o["kind"] == DELAY:
            p.parts[k, o["part"]] += o["cycles"]
            p.ready[k] += o["cycles"]
            p.since[k] = p.ready[k]
            p.at[k] += 1
        elif o["kind"] == PACKETS and p.left[k] == 0:
            p.left[k] = o["packets"]
            if o["message"] >= 0:
                message[o["message"], 0] = p.ready[k]
            copy(p, k, o)
        elif o["kind"] == PACKETS:
            p.left[k] = -p.left[k]
            p.early[k] = now - p.ready[k]
            flits = o["flits"] if p.left[k] > 1 else o["last_flits"]
            send(world, o["service"], flits, k, now)
            p.ready[k] = FAR
        elif p.arrived[o["mailbox"]] > p.taken[o["mailbox"]]:
            p.taken[o["mailbox"]] += 1
            p.at[k] += 1
        else:
            p.waits_for[k] = o["mailbox"]
            p.reader[o["mailbox"]] = k
            p.ready[k] = FAR
    return 0


@lean_part
def deliver(operations: Any, p: Processes, message: Any, k: int, time: float, back: float) -> float:
    """Let a process's packet arrive and its response be back; return when somebody is ready next."""
    o = operations[p.at[k]]
    p.parts[k, o["part"]] += back - p.since[k]
    p.ready[k] = back
    p.since[k] = back
    p.left[k] -= 1
    if p.left[k] > 0:
        copy(p, k, o)
        return float(p.ready[k])
    p.at[k] += 1
    box = o["mailbox"]
    if box < 0:
        return back
    message[o["message"], 1] = time
    p.arrived[box] += 1
    r = p.reader[box]
    if r < 0 or p.waits_for[r] != box:
        return back
    p.waits_for[r] = -1
    p.ready[r] = max(p.since[r], time)
    p.parts[r, BLOCKED] += p.ready[r] - p.since[r]
    p.since[r] = p.ready[r]
    return float(min(back, p.ready[r]))


@jit
def run(
    world: World,
    operations: Any,
    start: Any,
    mailboxes: int,
    response: Any,
    message: Any,
    service: Any,
    longest: int,
) -> tuple[Any, Any, int]:
    """Run a program to its end; return finish times, parts of them and the cycle of the end, -1 if stuck.

    ``message`` gets beginning and arrival of each message; ``service`` of each service the packets,
    the sum of their latencies and the longest. A process is late by a part of a cycle where its own
    clock is between two cycles of the network: the next delay makes that up.
    """
    count, boxes = start.size - 1, mailboxes + 1
    p = Processes(
        at=start[:-1].copy(),
        end=start[1:].copy(),
        ready=np.zeros(count),
        since=np.zeros(count),
        left=np.zeros(count, dtype=np.int64),
        early=np.zeros(count),
        waits_for=np.full(count, -1, dtype=np.int64),
        parts=np.zeros((count, PARTS)),
        arrived=np.zeros(boxes, dtype=np.int64),
        taken=np.zeros(boxes, dtype=np.int64),
        reader=np.full(boxes, -1, dtype=np.int64),
    )
    working, now, following = count, 0, 0.0
    while working > 0 and now < longest:
        if following <= now:
            for k in range(count):
                working -= advance(world, operations, p, message, k, now)
            following = np.min(p.ready)
        step(world, now)
        for d in range(world.clock[DELIVERED]):
            packet = world.packet[world.delivered[d]]
            k, f, latency = packet["tag"], packet["flow"], now - packet["created"]
            service[f, 0] += 1
            service[f, 1] += latency
            service[f, 2] = max(service[f, 2], latency)
            time = now - p.early[k]
            following = min(following, deliver(operations, p, message, k, time, time + response[f]))
        now += 1
        if following > now and quiet(world, now):
            if following == FAR:
                break
            now = int(np.ceil(following))
    return p.since, p.parts, now if working == 0 else -1
