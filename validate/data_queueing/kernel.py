"""The data-queueing module's loop: ports write and read segments one by one in the order of time."""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.data_queueing import operations as manager
from validate.data_queueing import world as c
from validate.data_queueing.free_lists import NONE, prefetch
from validate.data_queueing.world import World
from validate.engine.calendar import next_event, schedule
from validate.engine.jit import inlined, lean, part

NEVER = np.inf


@lean
def run(w: World, until: int) -> None:
    """Run until n packets have arrived; with more than there are, until the last one has left."""
    whole = w.parameters[0]["whole"] == 1
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
        if writes:
            ends = write_next(w, now, port)
            while whole and not ends:
                ends = write_next(w, now, port)
            if ends:
                begin_next(w, port)
        else:
            read_segment(w, now, port)
            while whole and w.outputs[port]["remaining"] > 0:
                read_segment(w, now, port)


@inlined
def write_next(w: World, now: float, port: int) -> bool:
    """Store, lose or refuse an input port's next segment; return whether it was its packet's last one."""
    progress = w.inputs[port]["progress"]
    if progress == 0:
        admit(w, port)
    if find_room(w, port, progress):
        return write_segment(w, now, port)
    if w.parameters[0]["admission"] == c.LOSSY:
        return lose_segment(w, now, port)
    refuse(w, port, progress)
    return True


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
    """Return whether an input port's next segment has a block."""
    segments = w.packets[w.inputs[port]["packet"]]["segments"]
    return (progress > 0 and w.parameters[0]["admission"] == c.BY_PACKET) or manager.reserve(w, segments)


@part
def refuse(w: World, port: int, progress: int) -> None:
    """Let a packet go of which n segments have been stored."""
    packet = w.inputs[port]["packet"]
    queue, segments = w.packets[packet]["queue"], w.packets[packet]["segments"]
    if progress > 0:
        manager.give_up_packet(w, queue, w.inputs[port]["tail_before"], progress, segments)
    count_failure(w, segments, segments)
    let_go(w, packet, queue)


@part
def lose_segment(w: World, now: float, port: int) -> bool:
    """Lose the next segment of an input port's packet alone; return whether it was the last one."""
    packet = w.inputs[port]["packet"]
    queue = w.packets[packet]["queue"]
    count_failure(w, w.packets[packet]["segments"], 1)
    ends = go_on(w, now, port)
    if ends and w.packets[packet]["stored"] == 0:
        let_go(w, packet, queue)
    elif ends:
        manager.close_packet(w, queue)
        offer(w, now, queue)
    return ends


@inlined
def count_failure(w: World, segments: int, lost: int) -> None:
    """Count a failed allocation, of a packet of n segments, and the segments lost by it."""
    w.counts[c.FAILURES] += 1
    w.counts[c.REFUSED_SEGMENTS] += lost
    if manager.is_small(w, segments):
        for k in (c.SMALL_SEGMENTS, c.VMS2_EMPTY, c.VMS3_ASKED, c.VMS3_EMPTY):
            w.counts[k] += 1
    else:
        w.counts[c.LARGE_REFUSED] += lost


@inlined
def let_go(w: World, packet: int, queue: int) -> None:
    """Note that nothing of a packet is stored."""
    w.counts[c.REFUSED_PACKETS] += 1
    if w.packets[packet]["moved_to"] != NONE:
        expect_less(w, w.packets[packet]["moved_to"])
    expect_less(w, queue)


@inlined
def go_on(w: World, now: float, port: int) -> bool:
    """Let an input port have taken a segment's time; return whether it was its packet's last one."""
    w.inputs[port]["free_at"] = now + w.parameters[0]["write_slots"]
    w.inputs[port]["time"] = w.inputs[port]["free_at"]
    w.inputs[port]["progress"] += 1
    return w.inputs[port]["progress"] == w.packets[w.inputs[port]["packet"]]["segments"]


@inlined
def write_segment(w: World, now: float, port: int) -> bool:
    """Store the next segment of an input port's packet; return whether it was the last one."""
    p = w.parameters[0]
    packet = w.inputs[port]["packet"]
    queue, segments = w.packets[packet]["queue"], w.packets[packet]["segments"]
    small = manager.is_small(w, segments)
    if small:
        manager.note_empty_lists(w)
    block, allocation = manager.allocate(w, small)
    ends = go_on(w, now, port)
    begins = w.packets[packet]["stored"] == 0
    w.packets[packet]["stored"] += 1
    accesses = allocation + manager.enqueue_segment(w, queue, packet, block, begins, ends)
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
    if p["service"] >= c.ARRIVAL_ORDER or not w.queues[queue]["waiting"]:
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
    met = manager.access_bank(w.blocks, w.banks, w.recent, w.state, segment)
    w.counts[c.READS] += 1
    w.counts[c.READS_BUSY] += met > 0
    w.counts[c.READS_OTHER_PAGE] += met > 1
    following = w.blocks[segment]["next"]
    prefetch(w.blocks, following)
    w.outputs[port]["segment"] = following
    w.outputs[port]["remaining"] -= 1
    if p["admission"] == c.LOSSY:
        before = NONE if begins else w.outputs[port]["freed"]
        accesses = manager.read_and_free(w, queue, w.outputs[port]["packet"], segment, before)
        w.outputs[port]["freed"] = segment
    else:
        accesses = manager.dequeue_segment(w, begins, 0)
    if w.outputs[port]["remaining"] == 0:
        accesses += finish_packet(w, queue, port)
    charge(w, accesses, met > p["page_control"])
    w.outputs[port]["free_at"] = max(now, w.outputs[port]["free_at"]) + p["read_slots"]
    w.outputs[port]["time"] = w.outputs[port]["free_at"]


@inlined
def finish_packet(w: World, queue: int, port: int) -> int:
    """Let the packet that an output port has read leave; return the accesses of its deletion."""
    packet = w.outputs[port]["packet"]
    before = w.operations[c.FREE, 1]
    if w.parameters[0]["admission"] == c.LOSSY:
        accesses = manager.freeing_accesses(w, packet)
    else:
        accesses = manager.delete_packet(w, queue, packet)
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
    while w.waiting[port][0]["event"] > 0:
        queue = (
            take_random(w, port) if w.parameters[0]["service"] == c.RANDOM else next_event(w.waiting[port])
        )
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
            w.outputs[port]["packet"] = packet
            w.outputs[port]["remaining"] = w.packets[packet]["stored"]
            return True
        w.packets[packet]["moved_to"] = NONE
        if not w.queues[target]["created"]:
            manager.create_queue(w, target)
        manager.move_packet(w, queue, target)
        expect_less(w, queue)
        requeue(w, queue, port)
        offer(w, now, target)
    return False


@part
def take_random(w: World, port: int) -> int:
    """Take the queue of any packet that waits for an output port, all alike."""
    waiting = w.waiting[port]
    count = waiting[0]["event"]
    place = 1 + int(w.draws[w.state[0]["chosen"] % w.draws.size] * count)
    queue = waiting[place]["event"]
    waiting[place] = waiting[count]
    waiting[0]["event"] = count - 1
    w.state[0]["chosen"] += 1
    return queue


@inlined
def requeue(w: World, queue: int, port: int) -> None:
    """Let a queue that still has packets wait for its next turn; in arrival order it does so already."""
    service = w.parameters[0]["service"]
    if service < c.ARRIVAL_ORDER and w.queues[queue]["packets"] > 0 and not w.queues[queue]["waiting"]:
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
