"""The way of one access through the networks and the DRAM, event by event."""

from __future__ import annotations

import numpy as np

from qmodels.systems.memory import address_map
from validate.engine.events import schedule, serve
from validate.engine.jit import part
from validate.packet_processor import state as c
from validate.packet_processor.state import World

ARRIVAL, SLICE_DONE, POINTER_DONE, BANK_READY, BANK_FREE, ACCESS_DONE, HOLD_OVER, COMMANDS_DUE = range(8)
KINDS = 8
"""An event is the number of its packet, segment, bank or channel times `KINDS` plus its kind."""

scatter = part(address_map.scatter)


@part
def note(w: World, time: float, station: int, change: int) -> None:
    """Record that a job came to or left a station, when a trace is kept."""
    k = w.state[0]["traced"]
    if k < w.trace.size:
        w.trace[k]["time"] = time
        w.trace[k]["station"] = station
        w.trace[k]["change"] = change
        w.state[0]["traced"] = k + 1


@part
def place_block(w: World, segment: int, block: int) -> None:
    """Aim a segment's access at a block."""
    w.segments[segment]["block"] = block
    w.segments[segment]["bank"] = w.blocks[block]["bank"]
    w.segments[segment]["row"] = w.blocks[block]["page"]


@part
def place_entry(w: World, segment: int, entry: int) -> None:
    """Aim a lookup's access at the bank that keeps a table entry."""
    p = w.parameters[0]
    spread = scatter(scatter(entry) + 1) % (p["channels"] * p["banks"])
    w.segments[segment]["bank"] = spread % p["channels"] * p["banks"] + spread // p["channels"]
    w.segments[segment]["row"] = -entry - 2


@part
def issue(w: World, segment: int) -> None:
    """Enter an access on the scoreboard the allocator looks at."""
    bank = w.segments[segment]["bank"]
    w.banks[bank]["unfinished"] += 1
    w.banks[bank]["page"] = w.segments[segment]["row"]


@part
def send(w: World, network: int, segment: int, engine: int, flits: int) -> None:
    """Put the NoC packet of a segment's access, from or to an engine, into the outbox.

    It enters its network, requests or responses, when the event is over.
    """
    k = w.state[0]["sends"]
    w.state[0]["sends"] = k + 1
    w.outbox[k]["network"] = network
    w.outbox[k]["flow"] = w.flows[network, engine, w.segments[segment]["bank"] // w.parameters[0]["banks"]]
    w.outbox[k]["flits"] = flits
    w.outbox[k]["segment"] = segment


@part
def note_conflict(w: World, now: float, segment: int, idle: bool) -> None:
    """Count an access that comes to its bank, and whether it finds it busy with another row."""
    bank = w.segments[segment]["bank"]
    row = w.segments[segment]["row"]
    conflict = not idle and not (w.parameters[0]["open_pages"] and row == w.banks[bank]["queued_row"])
    stage = w.packets[w.segments[segment]["packet"]]["stage"]
    if stage == c.WRITE:
        w.counts[c.WRITES] += 1
        w.counts[c.WRITE_CONFLICTS] += conflict
    elif stage == c.READ:
        w.counts[c.READS] += 1
        w.counts[c.READ_CONFLICTS] += conflict
    w.banks[bank]["queued_row"] = row
    w.segments[segment]["joined"] = now


@part
def join_bank(w: World, now: float, segment: int) -> None:
    """Let a delivered access join its bank's queue."""
    p = w.parameters[0]
    bank = w.segments[segment]["bank"]
    idle = w.banks[bank]["serving"] == c.NONE
    note_conflict(w, now, segment, idle)
    w.segments[segment]["next"] = c.NONE
    note(w, now, p["first_bank"] + bank, 1)
    if idle:
        start_bank(w, now, segment)
    elif w.banks[bank]["head"] == c.NONE:
        w.banks[bank]["head"] = segment
        w.banks[bank]["tail"] = segment
    else:
        w.segments[w.banks[bank]["tail"]]["next"] = segment
        w.banks[bank]["tail"] = segment


@part
def start_bank(w: World, now: float, segment: int) -> None:
    """Let a free bank begin an access: it is ready for the data bus at once or after a precharge."""
    p = w.parameters[0]
    bank = w.segments[segment]["bank"]
    begin = now
    if p["refresh_ns"] > 0.0:
        begin = after_refresh(w, now, bank)
    hit = p["open_pages"] and w.segments[segment]["row"] == w.banks[bank]["open_row"]
    closed = w.banks[bank]["open_row"] == c.REFRESHED
    precharge_ns = p["precharge_ns"] if p["open_pages"] and not hit and not closed else 0.0
    w.banks[bank]["serving"] = segment
    w.banks[bank]["open_row"] = w.segments[segment]["row"]
    w.segments[segment]["hit"] = hit
    w.counts[c.ACCESSES] += 1
    w.counts[c.ROW_HITS] += hit
    w.counts[c.ACTIVATIONS] += not hit
    station = p["first_bank"] + bank
    w.stations[station]["busy"] += precharge_ns + p["burst_ns"] + (0.0 if hit else p["recovery_ns"])
    w.stations[station]["waited"] += begin - w.segments[segment]["joined"]
    w.stations[station]["served"] += 1
    if begin + precharge_ns > now:
        schedule(w.heap, begin + precharge_ns, segment * KINDS + BANK_READY)
    else:
        use_bus(w, now, segment)


@part
def after_refresh(w: World, now: float, bank: int) -> float:
    """Return when a bank may begin an access; a refresh since its last one has closed its row."""
    p = w.parameters[0]
    interval = p["refresh_interval_ns"]
    since = now + (1.0 + bank // p["banks"] / p["channels"]) * interval
    number = np.int64(since / interval)
    if number != w.banks[bank]["refreshes"]:
        w.banks[bank]["refreshes"] = number
        if p["open_pages"]:
            w.banks[bank]["open_row"] = c.REFRESHED
    return now + max(0.0, p["refresh_ns"] - (since - number * interval))


@part
def use_bus(w: World, now: float, segment: int) -> None:
    """Let a ready access join the queue for its channel's data bus."""
    p = w.parameters[0]
    bank = w.segments[segment]["bank"]
    station = p["first_bus"] + bank // p["banks"]
    end = serve(w.stations, station, now, p["burst_ns"])
    w.counts[c.BURSTS] += 1
    free = end if w.segments[segment]["hit"] else end + p["recovery_ns"]
    note(w, now, station, 1)
    note(w, end, station, -1)
    note(w, free, p["first_bank"] + bank, -1)
    schedule(w.heap, free, bank * KINDS + BANK_FREE)
    schedule(w.heap, end + p["access_ns"], segment * KINDS + ACCESS_DONE)


@part
def free_bank(w: World, now: float, bank: int) -> None:
    """End a bank's access and let it begin the next one that waits."""
    w.banks[bank]["unfinished"] -= 1
    w.banks[bank]["serving"] = c.NONE
    segment = w.banks[bank]["head"]
    if segment != c.NONE:
        w.banks[bank]["head"] = w.segments[segment]["next"]
        start_bank(w, now, segment)


@part
def request_lookup(w: World, packet: int, entry: int) -> None:
    """Ask DRAM for a table entry no slice holds."""
    segment = w.packets[packet]["first"]
    place_entry(w, segment, entry)
    issue(w, segment)
    send(w, c.REQUESTS, segment, w.packets[packet]["engine"], w.parameters[0]["request_flits"])


@part
def answer(w: World, segment: int) -> None:
    """Send the data of a finished lookup or read back to whoever asked."""
    packet = w.segments[segment]["packet"]
    lookup = w.packets[packet]["stage"] == c.LOOKUP
    engine = w.packets[packet]["engine"] if lookup else w.packets[packet]["egress"]
    send(w, c.RESPONSES, segment, engine, w.parameters[0]["segment_flits"])
