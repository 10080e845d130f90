"""What the data-queueing kernel reads and writes: record layouts, counters and the world of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PARAMETERS = np.dtype(
    [
        *((name, "i8") for name in ("policy", "trials", "small", "page_control", "service", "admission")),
        *((name, "i8") for name in ("whole", "free_accesses", "conflict_accesses")),
        *((name, "f8") for name in ("write_slots", "read_slots")),
    ]
)
"""Numbers of the spec; ``policy``, ``service`` and ``admission`` count in the order of their names there.

``whole``: 1 if operations are atomic on whole packets."""

LISTS, BANK_LISTS, BITMAP, LIFO = range(4)
ROUND_ROBIN, PRIORITY, ARRIVAL_ORDER, RANDOM = range(4)
BY_PACKET, BY_SEGMENT, LOSSY = range(3)

STATE = np.dtype(
    [
        ("time", "f8"),
        ("admitted", "i8"),  # packets that have arrived
        ("chosen", "i8"),  # packets that output ports have taken up at random
        ("cursor", "i4"),  # bank or bitmap word used last
        ("recent", "i4"),  # oldest place of the scoreboard
    ]
)

QUEUE = np.dtype(
    [
        ("head", "i4"),  # first segment of the head packet
        ("tail", "i4"),  # first segment of the tail packet
        ("packets", "i4"),  # whole packets in it
        ("expected", "i4"),  # packets of the run that have yet to leave it
        ("created", "i2"),
        ("writing", "i2"),  # its tail packet is not whole yet
        ("waiting", "i2"),  # it waits for its output port
    ]
)

PACKET = np.dtype(
    [("arrival", "f8"), *((name, "i4") for name in ("segments", "stored", "queue", "moved_to", "input"))]
)
"""A packet; of its segments so many have got a block."""

INPUT = np.dtype(
    [
        *((name, "f8") for name in ("time", "free_at")),
        *((name, "i4") for name in ("packet", "progress", "tail_before", "place", "end")),
    ]
)
"""An input port: when it acts next, the queue's tail before its packet, its packets ``order[place:end]``."""

OUTPUT = np.dtype(
    [
        *((name, "f8") for name in ("time", "free_at")),
        *((name, "i4") for name in ("queue", "packet", "segment", "remaining", "freed")),
    ]
)
"""An output port: when it acts next, queue and packet it serves, segment to read next, block freed last."""

OPERATIONS = (
    "create queue",
    "destroy queue",
    "enqueue segment",
    "dequeue segment",
    "move packet",
    "delete packet",
    "allocate",
    "free",
)
"""Allocation is a part of enqueueing a segment, freeing one of deleting a packet."""
CREATE, DESTROY, ENQUEUE, DEQUEUE, MOVE, DELETE, ALLOCATE, FREE = range(8)

(
    OFFERED_PACKETS,
    OFFERED_SEGMENTS,
    REFUSED_PACKETS,
    REFUSED_SEGMENTS,
    LARGE_SEGMENTS,
    LARGE_REFUSED,
    SMALL_SEGMENTS,
    VMS2_EMPTY,
    VMS3_ASKED,
    VMS3_EMPTY,
    WRITES,
    WRITES_BUSY,
    WRITES_OTHER_PAGE,
    READS,
    READS_BUSY,
    READS_OTHER_PAGE,
    WORST_ENQUEUES,
    WORST_CONFLICTS,
    WORST_ACCESSES,
    WORST_DELETIONS,
    DELETION_ACCESSES,
    CYCLES,
    OVERRUNS,
    MOVES_SKIPPED,
    FAILURES,
) = range(25)
COUNTS = 25
ACCESS_BINS = 258
"""Bins of the histograms of accesses; the last one takes what is above."""


class World(NamedTuple):
    """All arrays of one run."""

    parameters: Any
    state: Any
    blocks: Any
    lists: Any
    banks: Any
    recent: Any
    words: Any
    free: Any
    queues: Any
    packets: Any
    order: Any
    inputs: Any
    outputs: Any
    waiting: Any
    counts: Any
    operations: Any
    histograms: Any
    draws: Any  # what chooses each packet that leaves in random order
