"""What the packet-processor kernel reads and writes: record layouts, counters and the world of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PARAMETERS = np.dtype(
    [
        *((name, "i8") for name in ("lookups", "slices", "channels", "banks")),
        *((name, "i8") for name in ("trials", "small", "open_pages", "initiators", "window")),
        *((name, "i8") for name in ("first_slice", "first_bus", "first_bank", "first_phase")),
        *((name, "f8") for name in ("bus_ns", "slice_ns", "router_ns", "segment_ns", "request_ns")),
        *((name, "f8") for name in ("precharge_ns", "burst_ns", "recovery_ns", "access_ns", "pointer_ns")),
        *((name, "f8") for name in ("enqueue_packet", "enqueue", "dequeue_packet", "dequeue")),
    ]
)
"""Numbers of the spec, times in ns; ``window`` is 0 in an open run."""

STATE = np.dtype(
    [
        ("operation_head", "i8"),  # packets that wait for the pointer memory, a linked list
        ("operation_tail", "i8"),
        ("pointer_busy", "i8"),
        ("admitted", "i8"),
        ("active", "i8"),  # packets in the system and not on hold
        ("traced", "i8"),
    ]
)

PACKET = np.dtype(
    [
        ("arrival", "f8"),
        ("looked_up", "f8"),
        ("write_start", "f8"),
        ("write_end", "f8"),
        ("written", "f8"),
        ("read_join", "f8"),
        ("read_start", "f8"),
        ("read_end", "f8"),
        ("left", "f8"),
        ("hold", "f8"),
        ("first", "i4"),  # its first segment
        ("segments", "i4"),
        ("remaining", "i4"),  # segments not yet written, or not yet back
        ("progress", "i4"),  # lookups done, then segments the operation has begun
        ("bytes", "i4"),
        ("engine", "i2"),
        ("egress", "i2"),
        ("stage", "i2"),
        ("blocked", "i2"),
        ("next", "i4"),  # behind it at the pointer memory
    ]
)

LOOKUP, WRITE, READ = 0, 1, 2
"""Stages of a packet, and the kinds of DRAM access it makes in each."""

SEGMENT = np.dtype(
    [
        ("row", "i8"),
        ("joined", "f8"),  # when it joined its bank
        ("hold_ns", "f8"),  # time it holds a link
        ("block", "i4"),
        ("packet", "i4"),
        ("bank", "i4"),  # channel * banks + bank
        ("hop", "i4"),  # position in `paths`
        ("next", "i4"),  # behind it at its bank
        ("hit", "i2"),
        ("returning", "i2"),  # on the response network
    ]
)
"""A segment's one access under way at a time; lookups use their packet's first segment."""

BANK = np.dtype(
    [
        ("open_row", "i8"),
        ("page", "i8"),  # row of the access the allocator's scoreboard saw last
        ("queued_row", "i8"),  # of the access that joined last
        ("unfinished", "i4"),  # on the scoreboard
        ("serving", "i4"),
        ("head", "i4"),
        ("tail", "i4"),
    ]
)

SLICE = np.dtype([("newest", "i4"), ("oldest", "i4"), ("lines", "i4"), ("capacity", "i4")])
LINE = np.dtype([("newer", "i4"), ("older", "i4"), ("held", "i4")])
NOTE = np.dtype([("time", "f8"), ("station", "i4"), ("change", "i4")])

(
    OFFERED_PACKETS,
    OFFERED_SEGMENTS,
    BLOCKED_PACKETS,
    BLOCKED_SEGMENTS,
    LEFT_PACKETS,
    LEFT_BYTES,
    LOOKUPS,
    LOOKUP_HITS,
    ALLOCATIONS,
    ALLOCATION_ACCESSES,
    MOST_ALLOCATION_ACCESSES,
    WRITES,
    WRITE_CONFLICTS,
    READS,
    READ_CONFLICTS,
    ACCESSES,
    ROW_HITS,
    EVENTS,
) = range(18)
COUNTS = 18

NONE = -1
UNOPENED = -1
"""No row: data rows count from 0 and the row of table entry e is -e - 2."""


class World(NamedTuple):
    """All arrays of one run.

    ``blocks`` and ``lists`` are those of `validate.free_list_ops`; only blocks that the run can
    reach are in the table, ``addresses`` tells which they are.
    """

    heap: Any
    parameters: Any
    state: Any
    packets: Any
    segments: Any
    stations: Any
    banks: Any
    slices: Any
    lines: Any
    blocks: Any
    lists: Any
    addresses: Any
    paths: Any
    path_starts: Any
    lookups: Any
    counts: Any
    trace: Any
