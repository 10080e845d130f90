"""Sources that inject packets whatever becomes of them: the driver of open traffic."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from validate.engine.jit import inlined, lean
from validate.engine.sampling import draw
from validate.noc.kernel import quiet, step
from validate.noc.meter import Meter, pick_flow, record
from validate.noc.sources import send
from validate.noc.state import FREE_PACKET, IN_NETWORK, NOW, World

SOURCE = np.dtype(
    [
        ("time", "f8"),
        ("first_group", "i4"),
        ("groups", "i4"),
        ("step", "i4"),
        ("following", "i4"),
        ("sent", "i8"),
    ],
    align=True,
)
"""A source: when its next packet comes, the groups of flows it takes in turn, ``step`` packets of each."""

DONE, FULL, STUCK = range(3)
"""Why a run came back: it is at its end, there is no room for more packets, or nothing moves any more."""

CALENDAR = 1024
"""Cycles that sources are sorted by; a later one is looked at again."""


class Open(NamedTuple):
    """Open traffic: its sources, alias tables of the groups, laws of the gaps and the calendar.

    ``source``, ``pick`` and ``group`` are those of `pick_flow`; ``due`` has the first source of each
    cycle modulo its length, -1 without one. The law of source s draws from stream s, its flows from
    stream s + number of sources.
    """

    source: Any
    pick: Any
    group: Any
    rows: Any
    numbers: Any
    streams: Any
    due: Any


@inlined
def _enter(traffic: Open, s: int, now: int) -> None:
    """Put a source into the calendar: at its time, or at the farthest cycle there is."""
    cycle = max(now + 1, int(ceil(min(traffic.source[s]["time"], now + float(CALENDAR)))))
    place = min(cycle, now + CALENDAR - 1) & (CALENDAR - 1)
    traffic.source[s]["following"] = traffic.due[place]
    traffic.due[place] = s


@inlined
def _inject(world: World, traffic: Open, now: int) -> bool:
    """Send all packets of this cycle; return whether there was room for them."""
    source, due, streams = traffic.source, traffic.due, traffic.streams
    place = now & (CALENDAR - 1)
    while due[place] >= 0:
        s = due[place]
        while source[s]["time"] <= now:
            if world.clock[FREE_PACKET] < 0:
                return False
            flow = pick_flow(source, traffic.pick, traffic.group, streams, s)
            send(world, flow, world.flow[flow]["flits"], 0, now)
            source[s]["time"] += draw(traffic.rows, traffic.numbers, streams, s)
        due[place] = source[s]["following"]
        _enter(traffic, s, now)
    return True


@lean
def run_open(world: World, traffic: Open, meter: Meter, until: int) -> int:
    """Simulate up to a cycle, that cycle not included; return `DONE`, `FULL` or `STUCK`."""
    clock = world.clock
    now = clock[NOW]
    while now < until:
        clock[NOW] = now
        if not _inject(world, traffic, now):
            return FULL
        step(world, now)
        record(world, meter, now)
        now += 1
        if quiet(world, now):
            if clock[IN_NETWORK] > 0:
                clock[NOW] = now
                return STUCK
            while now < until and traffic.due[now & (CALENDAR - 1)] < 0:
                now += 1
    clock[NOW] = now
    return DONE
