"""The processes of a message-passing program, driving the flit-level network cycle by cycle."""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.engine.jit import jit
from validate.messaging.program import BLOCKED, DELAY, PACKETS, PARTS, SOFTWARE
from validate.noc.kernel import quiet, step
from validate.noc.sources import send
from validate.noc.state import DELIVERED, World

FAR = np.inf


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
    count = start.size - 1
    at = start[:-1].copy()
    ready = np.zeros(count)
    since = np.zeros(count)
    left = np.zeros(count, dtype=np.int64)
    early = np.zeros(count)
    waits_for = np.full(count, -1, dtype=np.int64)
    arrived = np.zeros(mailboxes + 1, dtype=np.int64)
    taken = np.zeros(mailboxes + 1, dtype=np.int64)
    reader = np.full(mailboxes + 1, -1, dtype=np.int64)
    parts = np.zeros((count, PARTS))
    working = count
    now = 0
    following = 0.0
    while working > 0 and now < longest:
        if following <= now:
            for k in range(count):
                while ready[k] <= now:
                    if at[k] == start[k + 1]:
                        ready[k] = FAR
                        working -= 1
                        break
                    o = operations[at[k]]
                    if o["kind"] == DELAY:
                        parts[k, o["part"]] += o["cycles"]
                        ready[k] += o["cycles"]
                        since[k] = ready[k]
                        at[k] += 1
                    elif o["kind"] == PACKETS:
                        if left[k] == 0:
                            left[k] = o["packets"]
                            if o["message"] >= 0:
                                message[o["message"], 0] = ready[k]
                            copying = o["cycles"] if left[k] > 1 else o["last_cycles"]
                            parts[k, SOFTWARE] += copying
                            ready[k] += copying
                            since[k] = ready[k]
                            if copying > 0:
                                left[k] = -left[k]
                                continue
                        elif left[k] < 0:
                            left[k] = -left[k]
                        early[k] = now - ready[k]
                        flits = o["flits"] if left[k] > 1 else o["last_flits"]
                        send(world, o["service"], flits, k, now)
                        ready[k] = FAR
                    elif arrived[o["mailbox"]] > taken[o["mailbox"]]:
                        taken[o["mailbox"]] += 1
                        at[k] += 1
                    else:
                        waits_for[k] = o["mailbox"]
                        reader[o["mailbox"]] = k
                        ready[k] = FAR
            following = np.min(ready)
        step(world, now)
        for d in range(world.clock[DELIVERED]):
            p = world.delivered[d]
            k = world.packet[p]["tag"]
            f = world.packet[p]["flow"]
            latency = now - world.packet[p]["created"]
            service[f, 0] += 1
            service[f, 1] += latency
            service[f, 2] = max(service[f, 2], latency)
            o = operations[at[k]]
            time = now - early[k]
            back = time + response[f]
            parts[k, o["part"]] += back - since[k]
            ready[k] = back
            since[k] = back
            left[k] -= 1
            if left[k] > 0:
                copying = o["cycles"] if left[k] > 1 else o["last_cycles"]
                parts[k, SOFTWARE] += copying
                ready[k] += copying
                since[k] = ready[k]
                left[k] = -left[k]
            else:
                at[k] += 1
                box = o["mailbox"]
                if box >= 0:
                    message[o["message"], 1] = time
                    arrived[box] += 1
                    r = reader[box]
                    if r >= 0 and waits_for[r] == box:
                        waits_for[r] = -1
                        ready[r] = max(since[r], time)
                        parts[r, BLOCKED] += ready[r] - since[r]
                        since[r] = ready[r]
                        following = min(following, ready[r])
            following = min(following, ready[k])
        now += 1
        if following > now and quiet(world, now):
            if following == FAR:
                if working > 0:
                    return since, parts, -1
                break
            now = int(np.ceil(following))
    return since, parts, now if working == 0 else -1
