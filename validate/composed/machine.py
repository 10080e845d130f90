"""The event loop of a system, and what its strands ask of parts whose kernels go from cycle to cycle."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from validate.cache.hierarchies import Hierarchies, draw_core, draw_line, look_up
from validate.composed import state
from validate.composed.blocks import give_all_back, give_own_back, operate, place
from validate.composed.interpreter import drain, wake
from validate.composed.kernels import Kernels
from validate.composed.memories import bank_of, come, free_bank, join_bank, use_bus
from validate.composed.state import Core
from validate.composed.strands import arrive, be_born, finish, finish_shared, go_on, pass_again, wake_at
from validate.data_queueing.free_lists import BlockPools, end_access
from validate.dram.kernel import NEVER, Channels, advance, offer, take_ended
from validate.engine.calendar import EARLY, LATE, drop, pending, put
from validate.engine.jit import lean, lean_part
from validate.engine.pointers import compiled, pointer_to
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.kernel import plain_at, world_at
from validate.network.service import catch_up, count_noted, rest, time_over
from validate.network.state import ON, POOL_FULL, REACHED, SERVED, STUCK, World
from validate.noc.flits import send
from validate.noc.kernel import quiet
from validate.noc.kernel import step as step_network
from validate.noc.state import DELIVERED, SPAN, WAITING
from validate.noc.state import World as Network


@lean_part
def pass_on(w: World, c: Core, until: float) -> bool:
    """Let the first event happen and those after it, while all of them begin a visit in a loop anew."""
    s, heap, stations = w.state[0], w.heap, w.classes.size + w.nodes.size
    some = False
    while heap[1]["time"] <= until:
        j = heap[1]["event"] - stations
        if j < 0 or w.jobs[j]["phase"] != state.PASSING:
            break
        s["now"] = heap[1]["time"]
        if not pass_again(w, c, j):
            break
        s["events"] += some
        some = True
    return some


@lean_part
def handle(w: World, c: Core, event: int) -> None:
    """Let an event happen."""
    classes, stations = w.classes.size, w.classes.size + w.nodes.size
    if event >= stations:
        if w.jobs[event - stations]["phase"] == SERVED:
            finish(w, c, event - stations)
        else:
            wake(w, c, event - stations)
    elif event < classes:
        come_in(w, c, event)
    elif w.varied:
        if w.nodes[event - classes]["mode"] != ON:
            time_over(w, event - classes)
        else:
            finish_shared(w, c, event - classes)


@lean_part
def come_in(w: World, c: Core, f: int) -> None:
    """Let a job come in, and schedule the next one."""
    flow = c.flows[f]
    home = flow["places"] - 1
    if home > 0:
        home = int(uniform(w.streams, flow["stream"]) * flow["places"])
    be_born(w, c, f, home)
    gap = flow["scale"] * draw(w.laws, w.numbers, w.streams, flow["law"])
    put(w.heap, w.places, f, w.state[0]["now"] + gap, LATE)


@lean_part
def set_going(w: World, c: Core) -> None:
    """Schedule the first arrivals, let servers that are not needed leave, begin the closed flows; once."""
    if w.state[0]["begun"]:
        return
    w.state[0]["begun"] = 1
    if w.varied:
        for node in range(w.nodes.size):
            rest(w, node)
    for f in range(c.flows.size):
        flow = c.flows[f]
        for number in range(flow["population"]):
            be_born(w, c, f, number % flow["places"] if flow["places"] > 0 else -1)
        if flow["population"] == 0:
            first = flow["scale"] * draw(w.laws, w.numbers, w.streams, flow["law"])
            put(w.heap, w.places, f, first, LATE)


ROUNDING = 1e-6
"""Of a cycle: times are multiples of clocks and may come out a little early or late."""
TABLE_ROWS = 1 << 40
"""Rows of lines at a controller, which knows no negative ones, begin here."""

core_at: Any = pointer_to(Core, varied=True, alone=False, timed=False)
"""In compiled code: return the core of a table."""
plain_core_at: Any = pointer_to(Core, varied=False, alone=False, timed=False)
lone_core_at: Any = pointer_to(Core, varied=True, alone=True, timed=False)
timed_core_at: Any = pointer_to(Core, varied=True, alone=False, timed=True)
network_at: Any = pointer_to(Network)
channels_at: Any = pointer_to(Channels)
caches_at: Any = pointer_to(Hierarchies)
blocks_at: Any = pointer_to(BlockPools)


def run(w: World, c: Core, k: Kernels | None, until: float, ended: int, born: int) -> int:
    """Run until a time, or until n jobs have ended or begun in all; return why it stopped.

    After `POOL_FULL` the run goes on where it stopped once there is more room, after `ASKED` once parts of
    others have said when the strands in ``enquiries`` will be done.
    """
    if not compiled():
        network, channels, caches, blocks = (None,) * 4 if k is None else k[:4]
        return int(loop(w, c, network, channels, caches, blocks, until, ended, born))
    if k is None:
        return int(_run_alone(w.table, c.table, until, ended, born))
    kernel = _run_timed if c.timed else _run_varied if c.varied else _run_plain
    return int(kernel((w.table, c.table, *k.tables), until, ended, born))


@lean
def _run_alone(table: Any, own_table: Any, until: float, ended: int, born: int) -> int:
    return loop(world_at(table), lone_core_at(own_table), None, None, None, None, until, ended, born)


@lean
def _run_timed(tables: Any, until: float, ended: int, born: int) -> int:
    n, d, h, b = _kernels_at(tables)
    return loop(world_at(tables[0]), timed_core_at(tables[1]), n, d, h, b, until, ended, born)


@lean
def _run_varied(tables: Any, until: float, ended: int, born: int) -> int:
    n, d, h, b = _kernels_at(tables)
    return loop(world_at(tables[0]), core_at(tables[1]), n, d, h, b, until, ended, born)


@lean
def _run_plain(tables: Any, until: float, ended: int, born: int) -> int:
    n, d, h, b = _kernels_at(tables)
    return loop(plain_at(tables[0]), plain_core_at(tables[1]), n, d, h, b, until, ended, born)


@lean_part
def _kernels_at(tables: Any) -> Any:
    return network_at(tables[2]), channels_at(tables[3]), caches_at(tables[4]), blocks_at(tables[5])


@lean_part
def loop(
    w: World,
    c: Core,
    n: Any,
    d: Any,
    h: Any,
    b: Any,
    until: float,
    ended: int,
    born: int,
) -> int:
    """Take events off the calendar, and let the network go on while it has something to carry.

    Events are in continuous time, the network goes from cycle to cycle: an event comes before the cycle
    that begins at its time, and what it sends enters the network in that cycle. A system of stations and
    pools alone has events only.
    """
    s, own, heap = w.state[0], c.state[0], w.heap
    reason = REACHED
    set_going(w, c)
    while True:
        if not drain(w, c):
            reason = POOL_FULL
            break
        if not c.alone and own["letters"] > 0:
            post(w, c, n, d, h, b)
            continue
        if own["enquiries"] > 0:
            reason = state.ASKED
            break
        if s["ended"] >= ended or own["born"] >= born:
            break
        events, still = pending(heap, w.places), True
        if not c.alone:
            still, due = _rests(c, n), own["cycle"]
            if events > 0:
                due = np.int64(ceil(heap[1]["time"] * own["ghz"] - ROUNDING))
                still |= due <= own["cycle"]
        if events == 0 and still:
            reason = STUCK
            break
        if events > 0 and still:
            if heap[1]["time"] > until:
                s["now"] = until
                break
            s["events"] += 1
            if not c.alone:
                own["cycle"] = max(own["cycle"], due)
                s["now"] = max(s["now"], heap[1]["time"])
                _handle(w, c, d, b, heap[1]["event"])
                continue
            s["now"] = heap[1]["time"]
            if not pass_on(w, c, until):
                handle(w, c, heap[1]["event"])
        elif not c.alone:
            if own["cycle"] / own["ghz"] > until:
                s["now"] = until
                break
            _carry(w, c, n, own["cycle"])
    if w.varied:
        for node in range(own["stations"]):
            if w.nodes[node]["shared"] >= 0:
                catch_up(w, node)
    count_noted(w)
    return reason


@lean_part
def _rests(c: Core, n: Network) -> bool:
    """Return whether the network has nothing to carry, or is stuck for ever with what it has."""
    own = c.state[0]
    # What was sent last may not have moved yet.
    settled = n.clock[WAITING] == 0 or own["cycle"] - own["sent"] > n.clock[SPAN]
    return settled and quiet(n, own["cycle"])


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
def _handle(w: World, c: Core, d: Channels, b: BlockPools, event: int) -> None:
    j = event - w.classes.size - w.nodes.size
    channel = event - w.classes.size - c.state[0]["stations"]
    if j >= 0 and w.jobs[j]["phase"] == state.OPENING:
        use_bus(w, c, j)
    elif j >= 0:
        if w.jobs[j]["phase"] == state.ACCESSING:
            _end_access(w, c, b, j)
        handle(w, c, event)
    elif channel >= c.channels.size:
        free_bank(w, c, b, event, channel - c.channels.size)
    elif channel >= 0 and c.timed:
        drop(w.heap, w.places, event)
        ghz = c.channels[channel]["ghz"]
        _call_again(w, c, channel, advance(d, channel, int(w.state[0]["now"] * ghz + 0.5)))
        j = take_ended(d, channel)
        while j >= 0:
            end = c.strands[j]["asked"] + (d.end[j] - c.strands[j]["cycle"]) / ghz
            wake_at(w, j, state.ACCESSING, max(end, w.state[0]["now"]))
            j = take_ended(d, channel)
    else:
        handle(w, c, event)


@lean_part
def _end_access(w: World, c: Core, b: BlockPools, j: int) -> None:
    """Take a strand whose access ends off its bank, and off the score unless the bank does that."""
    p, strand = c.parts[c.code[c.strands[j]["at"] - 1]["part"]], c.strands[j]
    strand["issued"] = 0
    if strand["channel"] >= c.state[0]["controlled"]:
        return
    c.rows[bank_of(c, j)]["present"] -= 1
    if p["scored"]:
        end_access(b, p["member"], strand["channel"] - p["first"], strand["bank"])


@lean_part
def _call_again(w: World, c: Core, channel: int, cycle: int) -> None:
    """Let the calendar advance a channel in a cycle, if it is to be."""
    if cycle < NEVER:
        event = w.classes.size + c.state[0]["stations"] + channel
        put(w.heap, w.places, event, cycle / c.channels[channel]["ghz"], EARLY)


@lean_part
def post(w: World, c: Core, n: Network, d: Channels, h: Hierarchies, b: BlockPools) -> None:
    """Hand what strands ask for to the kernels of parts."""
    own = c.state[0]
    k = 0
    while k < own["letters"]:
        j = c.letters[k]["strand"]
        kind = c.letters[k]["kind"]
        k += 1
        strand = c.strands[j]
        if kind == state.PACKET:
            own["sent"] = own["cycle"]
            send(n, _way(w, c, j), strand["flits"], j, own["cycle"])
        elif kind == state.LOOKUP:
            _look_up(w, c, h, j)
        elif kind == state.PLACING:
            place(w, c, b, j)
        elif kind == state.OPERATION:
            operate(w, c, b, j)
        elif kind == state.GIVING_BACK:
            if strand["returns"]:
                give_own_back(c, b, j)
            else:
                give_all_back(w, c, b, strand["root"])
            go_on(w, c, j)
        elif strand["channel"] >= own["controlled"]:
            join_bank(w, c, j)
        elif c.timed:
            channel = strand["channel"]
            write, row = c.code[strand["at"] - 1]["at"], strand["row"]
            bank = c.rows[bank_of(c, j)]
            come(c, j, bank["present"] == 0)
            bank["present"] += 1
            strand["cycle"] = int(w.state[0]["now"] * c.channels[channel]["ghz"] + ROUNDING)
            place_in_bank = row if row >= 0 else TABLE_ROWS - row
            first = offer(d, channel, j, strand["bank"], place_in_bank, write, strand["cycle"])
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
    strand["line"] = draw_line(h, member)
    level, piece = look_up(h, member, core, strand["line"])
    strand["piece"] = piece
    strand["at"] = c.choices[i["at"] + level]["at"]
    strand["target"] = strand["place"]
    if level >= h.plan[member]["private"] and p["places"] > 0 and h.plan[member]["slices"] > 0:
        strand["target"] = c.places[p["places_at"] + piece % p["places"]]
    go_on(w, c, j)


@lean_part
def _way(w: World, c: Core, j: int) -> int:
    """Return the flow of the network that a strand takes to its target; one of several by their shares."""
    strand = c.strands[j]
    back = c.code[strand["at"] - 1]["at"] if c.routes.shape[0] > c.routes.shape[1] else 0
    way = c.routes[strand["place"] + back * c.routes.shape[1], strand["target"]]
    if c.ways[way]["below"] < 1:
        u = uniform(w.streams, c.state[0]["ways"])
        while c.ways[way]["below"] < u:
            way += 1
    return c.ways[way]["at"]
