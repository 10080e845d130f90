"""What the packet-processor kernel reads and writes: record layouts, counters and the world of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PARAMETERS = np.dtype(
    [
        *((name, "i8") for name in ("lookups", "slices", "channels", "banks")),
        *((name, "i8") for name in ("trials", "small", "open_pages", "initiators", "window")),
        *((name, "i8") for name in ("first_slice", "first_bus", "first_bank", "first_phase")),
        *((name, "i8") for name in ("segment_flits", "request_flits", "controlled")),
        *((name, "f8") for name in ("bus_ns", "slice_ns", "noc_ghz")),
        *((name, "f8") for name in ("precharge_ns", "burst_ns", "recovery_ns", "access_ns", "pointer_ns")),
        *((name, "f8") for name in ("refresh_interval_ns", "refresh_ns", "dram_ghz", "refresh_start")),
        *((name, "f8") for name in ("enqueue_packet", "enqueue", "dequeue_packet", "dequeue")),
    ]
)
"""Numbers of the spec, times in ns; ``window`` is 0 in an open run, ``controlled`` 1 of a `DramSystem`."""

STATE = np.dtype(
    [
        ("operation_head", "i8"),  # packets that wait for the pointer memory, a linked list
        ("operation_tail", "i8"),
        ("pointer_busy", "i8"),
        ("admitted", "i8"),
        ("active", "i8"),  # packets in the system and not on hold
        ("traced", "i8"),
        ("cycle", "i8"),  # of the networks, the next one to simulate
        ("sends", "i8"),  # packets in the outbox
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
        ("cycle", "i8"),  # of its controller in which it did
        ("block", "i4"),
        ("packet", "i4"),
        ("bank", "i4"),  # channel * banks + bank
        ("next", "i4"),  # behind it at its bank
        ("hit", "i4"),
    ]
)
"""A segment's one access under way at a time; lookups use their packet's first segment."""

BANK = np.dtype(
    [
        ("open_row", "i8"),
        ("page", "i8"),  # row of the access the allocator's scoreboard saw last
        ("queued_row", "i8"),  # of the access that joined last
        ("refreshes", "i8"),  # of its channel before its last access
        ("unfinished", "i4"),  # on the scoreboard
        ("present", "i4"),  # at the controller and not ended
        ("serving", "i4"),
        ("head", "i4"),
        ("tail", "i4"),
    ]
)

SEND = np.dtype([("network", "i4"), ("flow", "i4"), ("flits", "i4"), ("segment", "i4")])
"""A NoC packet that is to enter its network, `REQUESTS` or `RESPONSES`."""
REQUESTS, RESPONSES = 0, 1
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
    ACTIVATIONS,
    BURSTS,
    SLICE_ACCESSES,
    FLIT_HOPS,
) = range(22)
COUNTS = 22

NONE = -1
UNOPENED, REFRESHED = -1, -(2**62)
"""No row, and none since a refresh: data rows count from 0 and the row of table entry e is -e - 2."""


class World(NamedTuple):
    """All arrays of one run.

    ``blocks`` and ``lists`` are those of `validate.data_queueing.free_lists`; only blocks that the run can
    reach are in the table, ``addresses`` tells which they are. ``slices``, ``lines`` and ``index`` are
    the caches of `validate.cache.lru_kernel`. What is sent in an event waits in ``outbox``; ``flows`` has
    the flow by network, initiator and channel.
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
    index: Any
    streams: Any
    blocks: Any
    lists: Any
    addresses: Any
    outbox: Any
    flows: Any
    lookups: Any
    counts: Any
    trace: Any
