"""The packet processor as a jump process: which of the exponential stages ends next.

All stages are exponential, so that the next event is one of those under way in proportion to their
rates, after a time whose mean is all that averages need: the law of what happens, and less noise than
with drawn times. What is under way at equal rates is a group: cores in their L1 or L2, slices that serve,
channels by their busy banks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from validate.cache.hierarchies import Hierarchies, draw_line, look_up
from validate.engine.jit import inlined, lean, lean_part
from validate.engine.streams import uniform

SOURCES = ("events", "cores", "banks")
EVENTS, CORES, PARTS = range(3)
"""Streams: which event is next, the core of a packet, and the part of the table."""

IN_L1, IN_L2, SLICES, IDLE, FIRST, SECOND, BOTH, GROUPS = range(8)
"""Groups, and how many there are: channels have no, one or both banks busy."""
START, TO_L2, TO_LLC, TO_MEMORY, DONE, NOTHING = range(6)
"""Where a core's request goes next."""
LLC = 2
"""The level behind the private ones; memory comes after it."""

PLAN = np.dtype([("cores", "i8"), ("capacity", "i8"), ("slices", "i8"), ("arrival_rate", "f8")])
"""The spec; ``slices`` is 0 without LLC."""

STATE = np.dtype([("inside", "i8"), ("busy_cores", "i8")])
"""Requests inside, and cores that have one."""

CORE = np.dtype([("level", "i8"), ("slice", "i8"), ("head", "i8"), ("queued", "i8")])
"""The level that has a core's line, and its slice; its queue, the request in service included, in a ring."""

TOTALS = np.dtype(
    [(name, "i8") for name in ("arrivals", "blocked", "started", "served", "l1_hits", "l2_hits", "llc_hits")]
    + [(name, "f8") for name in ("time", "waited", "number", "busy_cores", "busy_slices", "busy_banks")]
)
"""Counts, and integrals over time."""


class World(NamedTuple):
    """Everything a replication consists of."""

    plan: Any
    rates: Any  # of a member of each group
    streams: Any
    caches: Hierarchies
    cores: Any
    arrived: Any  # of each core: when the requests of its queue arrived
    members: Any  # of each group
    sizes: Any
    place: Any  # of each member in its group
    queues: Any  # of cores: at each slice, then for each part of the table; in rings
    heads: Any
    lengths: Any
    busy: Any  # banks of each channel, a bit each
    banks: Any  # the core that each serves
    state: Any
    totals: Any


@lean_part
def add(w: World, group: int, member: int) -> None:
    """Put a member into a group."""
    w.members[group, w.sizes[group]] = member
    w.place[group, member] = w.sizes[group]
    w.sizes[group] += 1


@lean_part
def remove(w: World, group: int, member: int) -> None:
    """Take a member out of its group."""
    w.sizes[group] -= 1
    last, place = w.members[group, w.sizes[group]], w.place[group, member]
    w.members[group, place] = last
    w.place[group, last] = place


@lean_part
def join(w: World, queue: int, core: int) -> None:
    """Put a core at the end of a queue."""
    w.queues[queue, (w.heads[queue] + w.lengths[queue]) % w.queues.shape[1]] = core
    w.lengths[queue] += 1


@lean_part
def shift(w: World, queue: int) -> int:
    """Take the first core of a queue."""
    core = w.queues[queue, w.heads[queue]]
    w.heads[queue] = (w.heads[queue] + 1) % w.queues.shape[1]
    w.lengths[queue] -= 1
    return int(core)


@lean
def enter_memory(w: World, part: int, core: int) -> None:
    """Give a core's request for a part of the table to a bank, in an idle channel if possible, or a queue."""
    other = FIRST + 1 - part  # the other bank alone is busy
    if w.sizes[IDLE] > 0:
        channel = w.members[IDLE, w.sizes[IDLE] - 1]
    elif w.sizes[other] > 0:
        channel = w.members[other, w.sizes[other] - 1]
    else:
        join(w, w.plan[0]["slices"] + part, core)
        return
    w.banks[channel, part] = core
    _turn(w, channel, part)


@lean
def leave_memory(w: World, group: int, channel: int) -> int:
    """End a service in a channel; if both banks are busy it is either one's. Return its core."""
    part = group - FIRST if group != BOTH else int(uniform(w.streams, PARTS) * 2)
    core = w.banks[channel, part]
    queue = w.plan[0]["slices"] + part
    if w.lengths[queue] > 0:
        w.banks[channel, part] = shift(w, queue)
    else:
        _turn(w, channel, part)
    return int(core)


@lean_part
def _turn(w: World, channel: int, part: int) -> None:
    """Let an idle bank be busy, or a busy one idle."""
    remove(w, IDLE + w.busy[channel], channel)
    w.busy[channel] ^= 1 << part
    add(w, IDLE + w.busy[channel], channel)


@inlined
def pass_time(w: World, step: float) -> None:
    """Add up what is inside and busy for a time."""
    totals, state, sizes = w.totals, w.state, w.sizes
    totals[0]["time"] += step
    totals[0]["number"] += step * state[0]["inside"]
    totals[0]["busy_cores"] += step * state[0]["busy_cores"]
    totals[0]["busy_slices"] += step * sizes[SLICES]
    totals[0]["busy_banks"] += step * (sizes[FIRST] + sizes[SECOND] + 2 * sizes[BOTH])


@inlined
def arrive(w: World) -> tuple[int, int]:
    """Let a request arrive; return its core, and whether that begins with it at once."""
    arrived, state, totals = w.arrived, w.state, w.totals
    totals[0]["arrivals"] += 1
    if state[0]["inside"] == w.plan[0]["capacity"]:
        totals[0]["blocked"] += 1
        return 0, NOTHING
    core = int(uniform(w.streams, CORES) * w.plan[0]["cores"])
    own = w.cores[core]
    state[0]["inside"] += 1
    arrived[core, (own["head"] + own["queued"]) % arrived.shape[1]] = totals[0]["time"]
    own["queued"] += 1
    if own["queued"] > 1:
        return core, NOTHING
    state[0]["busy_cores"] += 1
    return core, START


@inlined
def depart(w: World, core: int) -> int:
    """Let a core's request depart with its line; return whether the core begins with another one."""
    own, totals = w.cores[core], w.totals
    totals[0]["l1_hits"] += own["level"] == 0
    totals[0]["l2_hits"] += own["level"] == 1
    totals[0]["llc_hits"] += own["level"] == LLC
    totals[0]["served"] += 1
    w.state[0]["inside"] -= 1
    own["head"] = (own["head"] + 1) % w.arrived.shape[1]
    own["queued"] -= 1
    if own["queued"] > 0:
        return START
    w.state[0]["busy_cores"] -= 1
    return NOTHING


@inlined
def begin(w: World, core: int) -> None:
    """Let a core take the first request of its queue, which wants a line it draws, to its L1."""
    own, totals = w.cores[core], w.totals
    own["level"], own["slice"] = look_up(w.caches, 0, core, draw_line(w.caches, 0))
    totals[0]["started"] += 1
    totals[0]["waited"] += totals[0]["time"] - w.arrived[core, own["head"]]
    add(w, IN_L1, core)


@inlined
def end_stage(w: World, at: float) -> tuple[int, int]:
    """End the stage that a point among the rates of all groups falls on; return its core, where it goes."""
    group, rates, sizes = IN_L1, w.rates, w.sizes
    for one in range(GROUPS):
        share = sizes[one] * rates[one]
        if share > 0:
            group = one
            if at < share:
                break
            at -= share
    member = w.members[group, min(int(at / rates[group]), sizes[group] - 1)]
    if group >= FIRST:
        return leave_memory(w, group, member), DONE
    if group == SLICES:
        core = shift(w, member)
        if w.lengths[member] == 0:
            remove(w, SLICES, member)
        return core, DONE if w.cores[core]["level"] == LLC else TO_MEMORY
    remove(w, group, member)
    if w.cores[member]["level"] == group:
        return member, DONE
    beyond = TO_LLC if w.plan[0]["slices"] > 0 else TO_MEMORY
    return member, TO_L2 if group == IN_L1 else beyond


@lean
def run(w: World, arrivals: int) -> None:
    """Run until n requests have arrived, refused ones included."""
    sizes, rates, rate = w.sizes, w.rates, w.plan[0]["arrival_rate"]
    while w.totals[0]["arrivals"] < arrivals:
        every = rate
        for group in range(GROUPS):
            every += sizes[group] * rates[group]
        pass_time(w, 1.0 / every)
        at = uniform(w.streams, EVENTS) * every
        if at < rate:
            core, then = arrive(w)
        else:
            core, then = end_stage(w, at - rate)
            if then == DONE:
                then = depart(w, core)
        if then == START:
            begin(w, core)
        elif then == TO_L2:
            add(w, IN_L2, core)
        elif then == TO_LLC:
            number = w.cores[core]["slice"]
            join(w, number, core)
            if w.lengths[number] == 1:
                add(w, SLICES, number)
        elif then == TO_MEMORY:
            enter_memory(w, int(uniform(w.streams, PARTS) * 2), core)
