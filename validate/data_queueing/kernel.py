"""The data-queueing module's loop: ports write and read segments one by one in the order of time."""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.data_queueing import operations as manager
from validate.data_queueing import state as c
from validate.data_queueing.free_lists import NONE
from validate.data_queueing.state import World
from validate.engine.events import next_event, pending, schedule
from validate.engine.jit import inlined, lean, part
from validate.engine.prefetch import prefetch

NEVER = np.inf


@lean
def run(w: World, until: int) -> None:
    """Run until so many packets have arrived; with more than there are, until the last one has left."""
    while w.state[0]["admitted"] < until:
        port, now, writes = NONE, NEVER, True
        for k in range(w.inputs.size):
            if w.inputs[k]["time"] < now:
                port, now = k, w.inputs[k]["time"]
        for k in range(w.outputs.size):
            if w.outputs[k]["time"] < now:
                port, now, writes = k, w.outputs[k]["time"], False
        if port == NONE:
            return
        w.state[0]["time"] = now
        if not writes:
            read_segment(w, now, port)
        else:
            progress = w.inputs[port]["progress"]
            if progress == 0:
                admit(w, port)
            if not find_room(w, port, progress) or write_segment(w, now, port):
                begin_next(w, port)


@inlined
def admit(w: World, port: int) -> None:
    """Let an input port's next packet arrive."""
    packet = w.inputs[port]["packet"]
    queue, segments = w.packets[packet]["queue"], w.packets[packet]["segments"]
    w.state[0]["admitted"] += 1
    w.counts[c.OFFERED_PACKETS] += 1
    w.counts[c.OFFERED_SEGMENTS] += segments
    if not manager.is_small(w, segments):
        w.counts[c.LARGE_SEGMENTS] += segments
    if not w.queues[queue]["created"]:
        manager.create_queue(w, queue)
    w.inputs[port]["tail_before"] = w.queues[queue]["tail"]


@inlined
def find_room(w: World, port: int, progress: int) -> bool:
    """Return whether an input port's next segment has a block; if not, its packet is refused or given up."""
    packet = w.inputs[port]["packet"]
    segments = w.packets[packet]["segments"]
    if (progress > 0 and w.parameters[0]["whole"]) or manager.reserve(w, segments):
        return True
    refuse(w, port, packet, progress)
    return False


@part
def refuse(w: World, port: int, packet: int, progress: int) -> None:
    """Let a packet go of which so many segments have been stored."""
    queue, segments = w.packets[packet]["queue"], w.packets[packet]["segments"]
    if progress > 0:
        manager.give_up_packet(w, queue, w.inputs[port]["tail_before"], progress, segments)
    w.counts[c.REFUSED_PACKETS] += 1
    w.counts[c.REFUSED_SEGMENTS] += segments
    if manager.is_small(w, segments):
        for k in (c.SMALL_SEGMENTS, c.VMS2_EMPTY, c.VMS3_ASKED, c.VMS3_EMPTY):
            w.counts[k] += 1
    else:
        w.counts[c.LARGE_REFUSED] += segments
    if w.packets[packet]["moved_to"] != NONE:
        expect_less(w, w.packets[packet]["moved_to"])
    expect_less(w, queue)


@inlined
def write_segment(w: World, now: float, port: int) -> bool:
    """Store the next segment of an input port's packet; return whether it was the last one."""
    p = w.parameters[0]
    packet, progress = w.inputs[port]["packet"], w.inputs[port]["progress"]
    queue, segments = w.packets[packet]["queue"], w.packets[packet]["segments"]
    small = manager.is_small(w, segments)
    if small:
        manager.note_empty_lists(w)
    block, allocation = manager.allocate(w, small)
    ends = progress + 1 == segments
    accesses = allocation + manager.enqueue_segment(w, queue, packet, block, progress == 0, ends)
    met = manager.access_bank(w.blocks, w.banks, w.recent, w.state, block)
    w.counts[c.WRITES] += 1
    w.counts[c.WRITES_BUSY] += met > 0
    w.counts[c.WRITES_OTHER_PAGE] += met > 1
    conflict = met > p["page_control"]
    if conflict or allocation > 1:
        w.counts[c.WORST_ENQUEUES] += 1
        w.counts[c.WORST_CONFLICTS] += conflict
        w.counts[c.WORST_ACCESSES] += allocation - 1
    charge(w, accesses, conflict)
    w.inputs[port]["free_at"] = now + p["write_slots"]
    w.inputs[port]["progress"] = progress + 1
    w.inputs[port]["time"] = now + p["write_slots"]
    if ends:
        offer(w, now, queue)
    return ends


@inlined
def begin_next(w: World, port: int) -> None:
    """Take up the input port's next packet."""
    w.inputs[port]["progress"] = 0
    place = w.inputs[port]["place"] + 1
    w.inputs[port]["place"] = place
    if place >= w.inputs[port]["end"]:
        w.inputs[port]["time"] = NEVER
        return
    packet = w.order[place]
    w.inputs[port]["packet"] = packet
    w.inputs[port]["time"] = max(w.packets[packet]["arrival"], w.inputs[port]["free_at"])


@inlined
def offer(w: World, now: float, queue: int) -> None:
    """Let a queue that has got a packet wait for its output port; wake the port if it is idle."""
    port = queue % w.outputs.size
    p = w.parameters[0]
    if p["service"] == c.ARRIVAL_ORDER or not w.queues[queue]["waiting"]:
        w.queues[queue]["waiting"] = 1
        schedule(w.waiting[port], float(queue) if p["service"] == c.PRIORITY else 0.0, queue)
    if w.outputs[port]["time"] == NEVER:
        w.outputs[port]["time"] = max(now, w.outputs[port]["free_at"])


@inlined
def read_segment(w: World, now: float, port: int) -> None:
    """Read the next segment of the packet an output port serves; with its last one the packet leaves."""
    p = w.parameters[0]
    begins = w.outputs[port]["remaining"] == 0
    if begins and not choose_queue(w, now, port):
        w.outputs[port]["time"] = NEVER
        return
    queue, segment = w.outputs[port]["queue"], w.outputs[port]["segment"]
    accesses = manager.dequeue_segment(w, queue, segment, begins)
    met = manager.access_bank(w.blocks, w.banks, w.recent, w.state, segment)
    w.counts[c.READS] += 1
    w.counts[c.READS_BUSY] += met > 0
    w.counts[c.READS_OTHER_PAGE] += met > 1
    following = w.blocks[segment]["next"]
    prefetch(w.blocks, following)
    w.outputs[port]["segment"] = following
    w.outputs[port]["remaining"] -= 1
    if w.outputs[port]["remaining"] == 0:
        accesses += finish_packet(w, queue, port)
    charge(w, accesses, met > p["page_control"])
    w.outputs[port]["free_at"] = now + p["read_slots"]
    w.outputs[port]["time"] = now + p["read_slots"]


@inlined
def finish_packet(w: World, queue: int, port: int) -> int:
    """Let the packet that an output port has read leave; return the accesses of its deletion."""
    segments = w.packets[w.blocks[w.queues[queue]["head"]]["packet"]]["segments"]
    before = w.operations[c.FREE, 1]
    accesses = manager.delete_packet(w, queue, segments)
    freeing = w.operations[c.FREE, 1] - before
    if freeing > 1:
        w.counts[c.WORST_DELETIONS] += 1
        w.counts[c.DELETION_ACCESSES] += freeing - 1
    expect_less(w, queue)
    requeue(w, queue, port)
    return accesses


@part
def choose_queue(w: World, now: float, port: int) -> bool:
    """Let an output port take up the next packet, after moving those that belong to other queues."""
    while pending(w.waiting[port]) > 0:
        queue = next_event(w.waiting[port])
        w.queues[queue]["waiting"] = 0
        first = w.queues[queue]["head"]
        packet = w.blocks[first]["packet"]
        target = w.packets[packet]["moved_to"]
        if target == NONE or target == queue or w.queues[target]["writing"]:
            if target != NONE:
                w.counts[c.MOVES_SKIPPED] += 1
                w.packets[packet]["moved_to"] = NONE
                expect_less(w, target)
            w.outputs[port]["queue"] = queue
            w.outputs[port]["segment"] = first
            w.outputs[port]["remaining"] = w.packets[packet]["segments"]
            return True
        w.packets[packet]["moved_to"] = NONE
        if not w.queues[target]["created"]:
            manager.create_queue(w, target)
        manager.move_packet(w, queue, target)
        expect_less(w, queue)
        requeue(w, queue, port)
        offer(w, now, target)
    return False


@inlined
def requeue(w: World, queue: int, port: int) -> None:
    """Let a queue that still has packets wait for its next turn; in arrival order it does so already."""
    service = w.parameters[0]["service"]
    if service != c.ARRIVAL_ORDER and w.queues[queue]["packets"] > 0 and not w.queues[queue]["waiting"]:
        w.queues[queue]["waiting"] = 1
        schedule(w.waiting[port], float(queue) if service == c.PRIORITY else 0.0, queue)


@part
def expect_less(w: World, queue: int) -> None:
    """Note that a packet will not leave a queue any more; destroy a queue that expects none."""
    w.queues[queue]["expected"] -= 1
    if w.queues[queue]["expected"] == 0 and w.queues[queue]["created"]:
        manager.destroy_queue(w, queue)


@inlined
def charge(w: World, accesses: int, conflict: Any) -> None:
    """Note the pointer cycles of a segment access: its operations beside it, or as long as it lasts."""
    p = w.parameters[0]
    fits = p["conflict_accesses"] if conflict else p["free_accesses"]
    w.counts[c.CYCLES] += max(accesses, fits)
    w.counts[c.OVERRUNS] += accesses > fits
