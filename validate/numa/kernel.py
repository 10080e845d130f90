"""The events of a NUMA chip: cores that step through blocks, channels that carry out their commands.

Cores and channels are the agents; each has at most one access under way. The next access of a command
sets out when the last one is back, so that one event per access, its arrival at the controller, does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from validate.engine.events import next_event, pending, schedule, serve
from validate.engine.jit import jit, lean_part

COMPUTED, ARRIVES, BACK, READY = range(4)
"""Kinds of events: computing pauses, an access is at its controller, or back; a channel is set up."""

NOTHING = -1

CORE = np.dtype(
    [
        ("steps", "i8"),
        ("step", "i8"),  # the block being computed
        ("first", "i8"),  # where its computing times and memories begin
        ("places", "i8"),
        ("round", "i8"),
        ("loads", "i8"),  # loads left of this block
        ("since", "f8"),  # when computing this block began
        ("computing", "i8"),
        ("reads", "i8"),  # the block to be fetched, then the one to be written
        ("writes", "i8"),
        ("block", "i8"),  # the block of the command under way
        ("issued", "f8"),
        ("next", "i8"),  # the core behind it in the queue of its channel
        ("channel", "i8"),
        ("busy", "f8"),
        ("end", "f8"),
    ]
)
CHANNEL = np.dtype(
    [("core", "i8"), ("memory", "i8"), ("left", "i8"), ("since", "f8"), ("busy", "f8"), ("commands", "i8")]
)
QUEUE = np.dtype([("head", "i8"), ("tail", "i8")])

WAITED, TRANSFERRED, COMMANDS, SWITCHES, EVENTS = range(5)
"""Sums over commands."""


class World(NamedTuple):
    """Everything the events change, and the numbers they need.

    ``ways`` (agent or core, memory) are times outside the controller; ``sizes`` the accesses of a fetch
    and of a result; ``costs`` controller, set-up and turning times; ``flags`` loads per block, double
    buffering, and whether any channel will do.
    """

    heap: Any
    cores: Any
    channels: Any
    queues: Any
    controllers: Any
    computing: Any
    places: Any
    ways: Any
    sizes: Any
    costs: Any
    flags: Any
    sums: Any
    load_memory: Any


@lean_part
def _memory(world: Any, core: int, block: int) -> int:
    mine = world.cores[core]
    return int(world.places[mine["places"] + block % mine["round"]])


@lean_part
def _start(world: Any, channel: int, core: int, time: float) -> None:
    """Let a channel begin with the command of a core."""
    one, mine = world.channels[channel], world.cores[core]
    memory = _memory(world, core, mine["block"])
    cost = world.costs[1]
    if one["memory"] != memory and one["memory"] != NOTHING:
        cost += world.costs[2]
        world.sums[SWITCHES] += 1
    one["core"], one["memory"], one["since"] = core, memory, time
    one["left"] = world.sizes[0] if mine["reads"] == mine["block"] else world.sizes[1]
    one["commands"] += 1
    world.sums[WAITED] += time - mine["issued"]
    schedule(world.heap, time + cost, READY * world.ways.shape[0] + world.cores.size + channel)


@lean_part
def _free_channel(world: Any, memory: int) -> int:
    """Return a free channel: one that was at the memory last, else one never used, else the first."""
    found, best = NOTHING, -1
    for channel in range(world.channels.size):
        if world.channels[channel]["core"] == NOTHING:
            last = world.channels[channel]["memory"]
            rank = 2 if last == memory else (1 if last == NOTHING else 0)
            if rank > best:
                found, best = channel, rank
    return found


@lean_part
def _issue(world: Any, core: int, block: int, time: float) -> None:
    """Hand a core's command to its channel, or to the queue for it."""
    mine = world.cores[core]
    mine["block"], mine["issued"] = block, time
    world.sums[COMMANDS] += 1
    channel = int(mine["channel"])
    queue = max(channel, 0)
    if channel == NOTHING:
        channel = _free_channel(world, _memory(world, core, block))
    if channel != NOTHING and world.channels[channel]["core"] == NOTHING:
        _start(world, channel, core, time)
        return
    line = world.queues[queue]
    mine["next"] = NOTHING
    if line["head"] == NOTHING:
        line["head"] = core
    else:
        world.cores[line["tail"]]["next"] = core
    line["tail"] = core


@lean_part
def _compute(world: Any, core: int, time: float) -> None:
    """Begin to compute a block."""
    mine = world.cores[core]
    mine["computing"], mine["since"], mine["loads"] = 1, time, world.flags[0]
    _segment(world, core, time)


@lean_part
def _segment(world: Any, core: int, time: float) -> None:
    """Compute until the next load, or the end."""
    mine = world.cores[core]
    share = world.computing[mine["first"] + mine["step"]] / (world.flags[0] + 1)
    schedule(world.heap, time + share, COMPUTED * world.ways.shape[0] + core)


@lean_part
def _go_on(world: Any, core: int, time: float) -> None:
    """Let a core that has no command under way do what comes next."""
    mine = world.cores[core]
    overlaps = world.flags[1] > 0
    if mine["reads"] == NOTHING and mine["writes"] == NOTHING:
        if mine["computing"] > 0:
            return
        mine["step"] += 1
        step, steps = mine["step"], mine["steps"]
        if step < steps:
            if overlaps:
                mine["reads"] = step + 1 if step + 1 < steps else NOTHING
                mine["writes"] = step - 1 if world.sizes[1] > 0 else NOTHING  # NOTHING before the first
                _compute(world, core, time)
            else:
                mine["reads"] = step
        elif step == steps and overlaps and world.sizes[1] > 0:
            mine["writes"] = steps - 1
        else:
            mine["end"] = time
    if mine["reads"] != NOTHING:
        _issue(world, core, mine["reads"], time)
    elif mine["writes"] != NOTHING:
        _issue(world, core, mine["writes"], time)


@lean_part
def _ended(world: Any, channel: int, time: float) -> None:
    """End the command of a channel, and begin with the next one in its queue."""
    one = world.channels[channel]
    core = one["core"]
    mine = world.cores[core]
    one["busy"] += time - one["since"]
    one["core"] = NOTHING
    world.sums[TRANSFERRED] += time - mine["issued"]
    line = world.queues[channel if mine["channel"] != NOTHING else 0]
    if line["head"] != NOTHING:
        waiting = line["head"]
        line["head"] = world.cores[waiting]["next"]
        _start(world, channel, waiting, time)
    if mine["reads"] == mine["block"]:
        mine["reads"] = NOTHING
        if world.flags[1] == 0:
            _compute(world, core, time)
            return
    else:
        mine["writes"] = NOTHING
    _go_on(world, core, time)


@jit
def run(world: Any) -> None:
    """Run from the start until nothing is left to do."""
    agents = world.ways.shape[0]
    cores = world.cores.size
    for core in range(cores):
        if world.cores[core]["steps"] > 0:
            world.cores[core]["step"] = NOTHING
            if world.flags[1] > 0:
                world.cores[core]["reads"] = 0
            _go_on(world, core, 0.0)
    while pending(world.heap) > 0:
        event = next_event(world.heap)
        time = world.heap[0]["time"]
        kind, agent = event // agents, event % agents
        world.sums[EVENTS] += 1
        if kind == ARRIVES:
            own = agent < cores
            memory = world.load_memory[agent] if own else world.channels[agent - cores]["memory"]
            core = agent if own else world.channels[agent - cores]["core"]
            way = world.ways[core, memory]
            end = serve(world.controllers, memory, time, world.costs[0])
            more = False
            if not own:
                world.channels[agent - cores]["left"] -= 1
                more = world.channels[agent - cores]["left"] > 0
            if more:
                schedule(world.heap, end + way, event)
            else:
                schedule(world.heap, end + way / 2, BACK * agents + agent)
        elif kind == READY:
            one = world.channels[agent - cores]
            way = world.ways[one["core"], one["memory"]]
            schedule(world.heap, time + way / 2, ARRIVES * agents + agent)
        elif kind == BACK and agent >= cores:
            _ended(world, agent - cores, time)
        elif kind == BACK:
            world.cores[agent]["loads"] -= 1
            _segment(world, agent, time)
        else:
            mine = world.cores[agent]
            if mine["loads"] > 0:
                memory = _memory(world, agent, mine["step"])
                world.load_memory[agent] = memory
                schedule(world.heap, time + world.ways[agent, memory] / 2, ARRIVES * agents + agent)
            else:
                mine["computing"] = 0
                mine["busy"] += time - mine["since"]
                if world.flags[1] == 0:
                    mine["writes"] = mine["step"] if world.sizes[1] > 0 else NOTHING
                if world.flags[1] == 0 or (mine["reads"] == NOTHING and mine["writes"] == NOTHING):
                    _go_on(world, agent, time)
