"""The event loop of a system with memories and an interconnect, whose kernels go from cycle to cycle."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np

from validate.cache.draw_kernel import LAW
from validate.cache.hierarchies import PRIVATE, Hierarchies, draw_core, draw_line, look_up
from validate.cache.hierarchy_kernel import PLAN
from validate.cache.lru_kernel import CACHE, SLOT
from validate.composed.interpreter import arrive, drain
from validate.composed.kernel import core_at, handle
from validate.composed.state import ACCESSING, LOOKUP, PACKET, Core
from validate.composed.strands import go_on, wake_at
from validate.dram.channels import NEVER, Channels, advance, offer, take_ended
from validate.engine.jit import lean, lean_part
from validate.engine.pointers import Layout, compiled, pointer_to, table_of
from validate.engine.streams import uniform
from validate.network.calendar import EARLY, drop, put
from validate.network.kernel import world_at
from validate.network.service import catch_up
from validate.network.state import POOL_FULL, REACHED, STUCK, World
from validate.noc import state as noc
from validate.noc.kernel import quiet
from validate.noc.kernel import step as step_network
from validate.noc.sources import send
from validate.noc.state import DELIVERED, WAITING
from validate.noc.state import World as Network

ROUNDING = 1e-6
"""Of a cycle: times are multiples of clocks and may come out a little early or late."""

NETWORK: Layout = {
    "channel": (noc.CHANNEL, 1),
    "vc": (noc.VC, 1),
    "slots": ("i4", 1),
    "packet": (noc.PACKET, 1),
    "flow": (noc.FLOW, 1),
    "service": (noc.SERVICE, 1),
    "hop": ("i4", 1),
    "masks": ("u8", 1),
    "finish": ("i8", 1),
    "queue": (noc.QUEUE, 1),
    "node": (noc.NODE, 1),
    "arrivals": ("i8", 2),
    "credits": ("i4", 2),
    "lists": ("i4", 2),
    "delivered": ("i4", 1),
    "clock": ("i8", 1),
}
CHANNELS: Layout = {
    **dict.fromkeys(("p",), ("i8", 2)),
    **dict.fromkeys(("arrival", "bank_of", "row", "write", "number", "following", "end"), ("i8", 1)),
    "banks": ("i8", 3),
    "queues": ("i8", 3),
    "entries": ("i8", 4),
    "limits": ("i8", 2),
    "ranks": ("i8", 3),
    "clock": ("i8", 2),
    "sums": ("i8", 4),
    "counts": ("i8", 2),
    "asked": ("i8", 2),
}
CACHES: Layout = {
    "plan": (PLAN, 1),
    "bounds": ("i8", 1),
    "drawn": ("i8", 1),
    "caches": (CACHE, 1),
    "slots": (SLOT, 1),
    "table": ("i4", 1),
    "streams": ("u8", 2),
    "cut": ("f8", 1),
    "other": ("i4", 1),
    "law": (LAW, 1),
    "keys": ("i8", 2),
    "hits": ("i8", 2),
}
network_at: Any = pointer_to("SystemNetwork", NETWORK)
channels_at: Any = pointer_to("SystemChannels", CHANNELS)
caches_at: Any = pointer_to("SystemCaches", CACHES)


class Kernels(NamedTuple):
    """The parts that have kernels of their own: interconnect, channels of memories, caches."""

    network: Network
    channels: Channels
    caches: Hierarchies
    tables: Any
    """Of the arrays of these, see `tables_of`."""


def tables_of(network: Network, channels: Channels, caches: Hierarchies) -> tuple[Any, Any, Any]:
    """Return the tables of the arrays of parts."""
    return table_of(network, NETWORK), table_of(channels, CHANNELS), table_of(caches, CACHES)


def run(w: World, c: Core, k: Kernels, until: float, ended: int, born: int) -> int:
    """Run as `validate.composed.kernel.run` does."""
    if compiled():
        return int(_run((w.table, c.table, *k.tables), until, ended, born))
    return int(loop(w, c, k.network, k.channels, k.caches, until, ended, born))


@lean
def _run(tables: Any, until: float, ended: int, born: int) -> int:
    return loop(
        world_at(tables[0]),
        core_at(tables[1]),
        network_at(tables[2]),
        channels_at(tables[3]),
        caches_at(tables[4]),
        until,
        ended,
        born,
    )


@lean_part
def loop(
    w: World, c: Core, n: Network, d: Channels, h: Hierarchies, until: float, ended: int, born: int
) -> int:
    """Take events off the calendar, and let the network go on while it has something to carry.

    Events are in continuous time, the network goes from cycle to cycle: an event comes before the cycle
    that begins at its time, and what it sends enters the network in that cycle.
    """
    s, own, heap = w.state[0], c.state[0], w.heap
    reason = REACHED
    while True:
        if not drain(w, c):
            reason = POOL_FULL
            break
        if own["letters"] > 0:
            post(w, c, n, d, h)
            continue
        if s["ended"] >= ended or own["born"] >= born:
            break
        cycle = own["cycle"]
        still = n.clock[WAITING] == 0 and quiet(n, cycle)
        if heap[0]["event"] > 0:
            due = np.int64(ceil(heap[1]["time"] * own["ghz"] - ROUNDING))
            if still or due <= cycle:
                if heap[1]["time"] > until:
                    s["now"] = until
                    break
                own["cycle"] = max(cycle, due)
                s["now"] = max(s["now"], heap[1]["time"])
                s["events"] += 1
                _handle(w, c, d, heap[1]["event"])
                continue
        elif still:
            reason = STUCK
            break
        if cycle / own["ghz"] > until:
            s["now"] = until
            break
        _carry(w, c, n, cycle)
    for node in range(own["stations"]):
        if w.nodes[node]["shared"] >= 0:
            catch_up(w, node)
    return reason


@lean_part
def _carry(w: World, c: Core, n: Network, cycle: int) -> None:
    """Simulate a cycle of the network; strands that it delivers go on."""
    s, own = w.state[0], c.state[0]
    step_network(n, cycle)
    delivered = n.clock[DELIVERED]
    if delivered > 0:
        s["now"] = max(s["now"], cycle / own["ghz"])
        s["events"] += delivered
        for k in range(delivered):
            arrive(w, c, n.packet[n.delivered[k]]["tag"])
    own["cycle"] = cycle + 1


@lean_part
def _handle(w: World, c: Core, d: Channels, event: int) -> None:
    channel = event - w.classes.size - c.state[0]["stations"]
    if 0 <= channel < c.channels.size:
        drop(w.heap, w.places, event)
        ghz = c.channels[channel]["ghz"]
        _call_again(w, c, channel, advance(d, channel, np.int64(w.state[0]["now"] * ghz + 0.5)))
        j = take_ended(d, channel)
        while j >= 0:
            end = c.strands[j]["asked"] + (d.end[j] - c.strands[j]["cycle"]) / ghz
            wake_at(w, j, ACCESSING, max(end, w.state[0]["now"]))
            j = take_ended(d, channel)
    else:
        handle(w, c, event)


@lean_part
def _call_again(w: World, c: Core, channel: int, cycle: int) -> None:
    """Let the calendar advance a channel in a cycle, if it is to be."""
    if cycle < NEVER:
        event = w.classes.size + c.state[0]["stations"] + channel
        put(w.heap, w.places, event, cycle / c.channels[channel]["ghz"], EARLY)


@lean_part
def post(w: World, c: Core, n: Network, d: Channels, h: Hierarchies) -> None:
    """Hand what strands ask for to the kernels of parts."""
    own = c.state[0]
    for k in range(own["letters"]):
        j = c.letters[k]["strand"]
        strand = c.strands[j]
        if c.letters[k]["kind"] == PACKET:
            send(n, _way(w, c, strand["place"], strand["target"]), strand["flits"], j, own["cycle"])
        elif c.letters[k]["kind"] == LOOKUP:
            _look_up(w, c, h, j)
        else:
            channel = strand["channel"]
            write = c.code[strand["at"] - 1]["at"]
            strand["cycle"] = np.int64(w.state[0]["now"] * c.channels[channel]["ghz"] + ROUNDING)
            first = offer(d, channel, j, strand["bank"], strand["row"], write, strand["cycle"])
            _call_again(w, c, channel, first)
    own["letters"] = 0


@lean_part
def _look_up(w: World, c: Core, h: Hierarchies, j: int) -> None:
    """Let a strand look for a line, and go on where the instruction says that it is or is not."""
    strand = c.strands[j]
    i = c.code[strand["at"] - 1]
    p, home = c.parts[i["part"]], c.strands[strand["root"]]["home"]
    member = p["member"]
    core = home % h.plan[member]["cores"] if home >= 0 else draw_core(h, member)
    found, piece = look_up(h, member, core, draw_line(h, member))
    strand["at"] = c.choices[i["at"] + found]["at"]
    strand["target"] = strand["place"]
    if found != PRIVATE and p["places"] > 0 and h.plan[member]["slices"] > 0:
        strand["target"] = c.places[p["places_at"] + piece % p["places"]]
    go_on(w, c, j)


@lean_part
def _way(w: World, c: Core, source: int, target: int) -> int:
    """Return the flow of the network that goes from a node to another; one of several by their shares."""
    way = c.routes[source, target]
    if c.ways[way]["below"] < 1:
        u = uniform(w.streams, c.state[0]["ways"])
        while c.ways[way]["below"] < u:
            way += 1
    return c.ways[way]["at"]
