"""What each event of a packet processor leads to: lookups, the pointer memory, and departures."""

from __future__ import annotations

from validate.cache.lru_kernel import find, insert, use
from validate.data_queueing.free_lists import (
    VMS1,
    VMS2,
    VMS3,
    allocate_by_trials,
    allocate_small,
    free_each,
    splice_tail,
)
from validate.engine.events import schedule, serve
from validate.engine.jit import part
from validate.packet_processor import state as c
from validate.packet_processor.network import (
    ARRIVAL,
    HOLD_OVER,
    KINDS,
    POINTER_DONE,
    SLICE_DONE,
    issue,
    note,
    place_block,
    request_lookup,
    scatter,
    send,
)
from validate.packet_processor.state import World

POINTER_MEMORY = 0
"""Station number; its queue holds packets, its services are whole operations."""


@part
def admit(w: World, now: float) -> None:
    """Let the next packet of the sequence arrive."""
    p = w.parameters[0]
    packet = w.state[0]["admitted"]
    w.state[0]["admitted"] = packet + 1
    w.state[0]["active"] += 1
    w.packets[packet]["arrival"] = now
    w.packets[packet]["stage"] = c.LOOKUP
    w.packets[packet]["progress"] = 0
    note(w, now, p["first_phase"], 1)
    if p["window"] == 0 and packet + 1 < w.packets.size:
        schedule(w.heap, w.packets[packet + 1]["arrival"], ARRIVAL)
    begin_lookup(w, now, packet)


@part
def begin_lookup(w: World, now: float, packet: int) -> None:
    """Begin a packet's next lookup, or send it to the pointer memory after the last."""
    p = w.parameters[0]
    done = w.packets[packet]["progress"]
    if done == p["lookups"]:
        w.packets[packet]["looked_up"] = now
        w.packets[packet]["stage"] = c.WRITE
        note(w, now, p["first_phase"], -1)
        note(w, now, p["first_phase"] + 1, 1)
        join_pointer_memory(w, now, packet)
        return
    entry = w.lookups[packet * p["lookups"] + done]
    if p["slices"] == 0:
        w.counts[c.LOOKUPS] += 1
        request_lookup(w, packet, entry)
        return
    station = p["first_slice"] + scatter(entry) % p["slices"]
    end = serve(w.stations, station, now + p["bus_ns"], p["slice_ns"])
    w.counts[c.SLICE_ACCESSES] += 1
    note(w, now + p["bus_ns"], station, 1)
    note(w, end, station, -1)
    schedule(w.heap, end + p["bus_ns"], packet * KINDS + SLICE_DONE)


@part
def end_slice_access(w: World, now: float, packet: int) -> None:
    """Finish a lookup on a hit, read the entry from DRAM on a miss."""
    p = w.parameters[0]
    entry = w.lookups[packet * p["lookups"] + w.packets[packet]["progress"]]
    w.counts[c.LOOKUPS] += 1
    if look_up(w, scatter(entry) % p["slices"], entry):
        w.counts[c.LOOKUP_HITS] += 1
        w.packets[packet]["progress"] += 1
        begin_lookup(w, now, packet)
    else:
        request_lookup(w, packet, entry)


@part
def look_up(w: World, number: int, entry: int) -> bool:
    """Return whether a slice holds an entry; from now on it does."""
    slot = find(w.slices, w.lines, w.index, number, entry)
    if slot == c.NONE:
        insert(w.slices, w.lines, w.index, w.streams, number, entry)
        return False
    use(w.slices, w.lines, number, slot)
    return True


@part
def join_pointer_memory(w: World, now: float, packet: int) -> None:
    """Queue a packet's operation."""
    note(w, now, POINTER_MEMORY, 1)
    w.packets[packet]["next"] = c.NONE
    if w.state[0]["operation_head"] == c.NONE:
        w.state[0]["operation_head"] = packet
    else:
        w.packets[w.state[0]["operation_tail"]]["next"] = packet
    w.state[0]["operation_tail"] = packet
    if not w.state[0]["pointer_busy"]:
        start_operation(w, now)


@part
def start_operation(w: World, now: float) -> None:
    """Start the operation at the head of the queue; a packet the free list cannot hold is refused."""
    p = w.parameters[0]
    packet = w.state[0]["operation_head"]
    if packet == c.NONE:
        w.state[0]["pointer_busy"] = 0
        return
    w.state[0]["operation_head"] = w.packets[packet]["next"]
    w.state[0]["pointer_busy"] = 1
    w.packets[packet]["progress"] = 0
    w.packets[packet]["remaining"] = w.packets[packet]["segments"]
    w.stations[POINTER_MEMORY]["served"] += 1
    if w.packets[packet]["stage"] == c.WRITE:
        w.packets[packet]["write_start"] = now
        segments = w.packets[packet]["segments"]
        blocked = free_blocks(w, packet) < segments
        w.packets[packet]["blocked"] = blocked
        # Counted with their fate, so that a share of a stretch of time is never above 1.
        w.counts[c.OFFERED_PACKETS] += 1
        w.counts[c.OFFERED_SEGMENTS] += segments
        w.counts[c.BLOCKED_PACKETS] += blocked
        w.counts[c.BLOCKED_SEGMENTS] += blocked * segments
        w.stations[POINTER_MEMORY]["waited"] += now - w.packets[packet]["looked_up"]
        access_pointers(w, now, packet, p["enqueue_packet"])
    else:
        w.packets[packet]["read_start"] = now
        w.stations[POINTER_MEMORY]["waited"] += now - w.packets[packet]["read_join"]
        returns = w.packets[packet]["segments"] if is_small(w, packet) else 1
        access_pointers(w, now, packet, p["dequeue_packet"] + returns - 1)


@part
def access_pointers(w: World, now: float, packet: int, accesses: float) -> None:
    """Keep the pointer memory busy for so many accesses."""
    duration = accesses * w.parameters[0]["pointer_ns"]
    w.stations[POINTER_MEMORY]["busy"] += duration
    w.stations[POINTER_MEMORY]["free_at"] = now + duration
    schedule(w.heap, now + duration, packet * KINDS + POINTER_DONE)


@part
def continue_operation(w: World, now: float, packet: int) -> None:
    """Send off the segment the pointer memory has finished and go on to what is next."""
    p = w.parameters[0]
    done = w.packets[packet]["progress"]
    segment = w.packets[packet]["first"] + done
    w.packets[packet]["progress"] = done + 1
    writing = w.packets[packet]["stage"] == c.WRITE
    if done > 0:
        if writing:
            send(w, c.REQUESTS, segment - 1, w.packets[packet]["engine"], p["segment_flits"])
        else:
            issue(w, segment - 1)
            send(w, c.REQUESTS, segment - 1, w.packets[packet]["egress"], p["request_flits"])
    if w.packets[packet]["blocked"]:
        note(w, now, POINTER_MEMORY, -1)
        note(w, now, p["first_phase"] + 1, -1)
        leave(w, now, packet)
        start_operation(w, now)
    elif done < w.packets[packet]["segments"]:
        access_pointers(w, now, packet, allocate(w, segment) + p["enqueue"] if writing else p["dequeue"])
    else:
        if writing:
            w.packets[packet]["write_end"] = now
        else:
            w.packets[packet]["read_end"] = now
        note(w, now, POINTER_MEMORY, -1)
        start_operation(w, now)


@part
def is_small(w: World, packet: int) -> bool:
    """Return whether the packet has the lists for small packets."""
    return w.packets[packet]["segments"] <= w.parameters[0]["small"]


@part
def free_blocks(w: World, packet: int) -> int:
    """Return the blocks the packet may take."""
    if is_small(w, packet):
        return w.lists[VMS2]["length"] + w.lists[VMS3]["length"]
    return w.lists[VMS1]["length"]


@part
def allocate(w: World, segment: int) -> float:
    """Take a block for a segment; return the pointer accesses this takes."""
    p = w.parameters[0]
    packet = w.segments[segment]["packet"]
    if is_small(w, packet):
        block, accesses = allocate_small(w.blocks, w.lists, w.banks, p["open_pages"])
    else:
        block, accesses = allocate_by_trials(w.blocks, w.lists, w.banks, p["open_pages"], VMS1, p["trials"])
    if segment > w.packets[packet]["first"]:
        w.blocks[w.segments[segment - 1]["block"]]["next"] = block
    place_block(w, segment, block)
    issue(w, segment)
    w.counts[c.ALLOCATIONS] += 1
    w.counts[c.ALLOCATION_ACCESSES] += accesses
    w.counts[c.MOST_ALLOCATION_ACCESSES] = max(w.counts[c.MOST_ALLOCATION_ACCESSES], accesses)
    return float(accesses)


@part
def end_write(w: World, now: float, segment: int) -> None:
    """Note that a segment is in DRAM; with the last one the packet goes on hold."""
    packet = w.segments[segment]["packet"]
    w.packets[packet]["remaining"] -= 1
    if w.packets[packet]["remaining"] > 0:
        return
    first_phase = w.parameters[0]["first_phase"]
    w.packets[packet]["written"] = now
    w.state[0]["active"] -= 1
    note(w, now, first_phase + 1, -1)
    note(w, now, first_phase + 2, 1)
    schedule(w.heap, now + w.packets[packet]["hold"], packet * KINDS + HOLD_OVER)


@part
def end_hold(w: World, now: float, packet: int) -> None:
    """Let a held packet ask for its segments."""
    first_phase = w.parameters[0]["first_phase"]
    w.packets[packet]["read_join"] = now
    w.packets[packet]["stage"] = c.READ
    w.state[0]["active"] += 1
    note(w, now, first_phase + 2, -1)
    note(w, now, first_phase + 3, 1)
    join_pointer_memory(w, now, packet)


@part
def receive(w: World, now: float, segment: int) -> None:
    """Take delivery of a lookup's answer or of a segment; with the last segment the packet leaves."""
    packet = w.segments[segment]["packet"]
    if w.packets[packet]["stage"] == c.LOOKUP:
        w.packets[packet]["progress"] += 1
        begin_lookup(w, now, packet)
        return
    w.packets[packet]["remaining"] -= 1
    if w.packets[packet]["remaining"] > 0:
        return
    note(w, now, w.parameters[0]["first_phase"] + 3, -1)
    segments = w.packets[packet]["segments"]
    first = w.packets[packet]["first"]
    head, last = w.segments[first]["block"], w.segments[first + segments - 1]["block"]
    if is_small(w, packet):
        free_each(w.blocks, w.lists, head, segments)
    else:
        splice_tail(w.blocks, w.lists, VMS1, head, last, segments)
    w.counts[c.LEFT_PACKETS] += 1
    w.counts[c.LEFT_BYTES] += w.packets[packet]["bytes"]
    leave(w, now, packet)


@part
def leave(w: World, now: float, packet: int) -> None:
    """Let a packet go; in a closed run the next one of the sequence takes its place."""
    w.packets[packet]["left"] = now
    w.state[0]["active"] -= 1
    if w.parameters[0]["window"] > 0 and w.state[0]["admitted"] < w.packets.size:
        admit(w, now)
