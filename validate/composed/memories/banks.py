"""Channels of banks that slow each other down: which bank a strand gets, and how fast it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.systems.composed.system import System
from qmodels.systems.memory.memory_map import BankedChannels
from validate.composed.kernels import named
from validate.composed.state import BANKED, BANKING, Core
from validate.composed.strands import enter, line_up, wake_at
from validate.engine.jit import lean_part
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.routes import unlink
from validate.network.state import NONE, QUEUE, World
from validate.network.world import Sources


def new_banks(spec: System, sources: Sources) -> dict[str, Any]:
    """Return the arrays of all such memories, idle."""
    parts = named(spec, BankedChannels)
    rows = np.zeros(len(parts), dtype=BANKED)
    channels = banks = queues = 0
    speeds: list[float] = []
    for row, (name, part) in zip(rows, parts.items(), strict=True):
        row["channels"], row["banks"] = part.channels, part.banks
        row["law"] = sources.law(f"banks {name}", part.service)
        row["stream"] = sources.stream(f"bank {name}")
        row["busy_at"], row["jobs_at"], row["queues_at"] = channels, banks, queues
        row["speeds_at"] = len(speeds) - 1
        speeds += part.speed_of_all
        channels, banks, queues = (
            channels + part.channels,
            banks + part.channels * part.banks,
            queues + part.banks,
        )
    return {
        "banked": rows,
        "bank_busy": np.zeros(channels, dtype=np.int64),
        "bank_jobs": np.full(banks, NONE, dtype=np.int64),
        "bank_queues": np.full(queues, NONE, dtype=QUEUE),
        "bank_speeds": np.array(speeds),
    }


@lean_part
def come_to_bank(w: World, c: Core, j: int, part: int) -> None:
    """Give a strand that wants a random part a bank that has it, or let it wait for one."""
    b, strand = c.banked[c.parts[part]["member"]], c.strands[j]
    enter(w, c, part, j)
    strand["bank"] = int(uniform(w.streams, b["stream"]) * b["banks"])
    strand["left"] = draw(w.laws, w.numbers, w.streams, b["law"])
    found, least = NONE, b["banks"]
    for channel in range(b["channels"]):
        busy = c.bank_busy[b["busy_at"] + channel]
        if busy < least and c.bank_jobs[b["jobs_at"] + channel * b["banks"] + strand["bank"]] < 0:
            found, least = channel, busy
            if busy == 0:
                break
    if found >= 0:
        _set_pace(w, c, part, found, 1)
        _begin(w, c, part, found, j)
        return
    line_up(w, c.bank_queues[b["queues_at"] + strand["bank"]], j)


@lean_part
def leave_bank(w: World, c: Core, j: int, part: int) -> None:
    """End the service of a strand; the first that waits for its part is next."""
    b, strand = c.banked[c.parts[part]["member"]], c.strands[j]
    c.bank_jobs[b["jobs_at"] + strand["channel"] * b["banks"] + strand["bank"]] = NONE
    queue = c.bank_queues[b["queues_at"] + strand["bank"]]
    first = queue["head"]
    if first < 0:
        _set_pace(w, c, part, strand["channel"], -1)
        return
    unlink(w, queue, first)
    _begin(w, c, part, strand["channel"], first)


@lean_part
def _begin(w: World, c: Core, part: int, channel: int, j: int) -> None:
    b, strand, now = c.banked[c.parts[part]["member"]], c.strands[j], w.state[0]["now"]
    c.bank_jobs[b["jobs_at"] + channel * b["banks"] + strand["bank"]] = j
    strand["channel"], strand["paced"] = channel, now
    speed = c.bank_speeds[b["speeds_at"] + c.bank_busy[b["busy_at"] + channel]]
    wake_at(w, j, BANKING, now + strand["left"] / speed)


@lean_part
def _set_pace(w: World, c: Core, part: int, channel: int, more: int) -> None:
    """Let n more banks of a channel be busy; those that were are slower or faster from now on."""
    b, now = c.banked[c.parts[part]["member"]], w.state[0]["now"]
    busy = c.bank_busy[b["busy_at"] + channel]
    c.bank_busy[b["busy_at"] + channel] = busy + more
    b["busy"] += more
    b["busy_sum"] -= more * now
    if busy == 0 or busy + more == 0:
        return
    before, after = c.bank_speeds[b["speeds_at"] + busy], c.bank_speeds[b["speeds_at"] + busy + more]
    if before == after:
        return
    for place in range(channel * b["banks"], (channel + 1) * b["banks"]):
        j = c.bank_jobs[b["jobs_at"] + place]
        if j >= 0:
            strand = c.strands[j]
            strand["left"] = max(strand["left"] - (now - strand["paced"]) * before, 0.0)
            strand["paced"] = now
            wake_at(w, j, BANKING, now + strand["left"] / after)
