"""The memory of a simulated system beside that of its stations: programs, jobs, pools, flows, counts.

A job, and each branch of a fork it is in, is a *strand*: a record of `validate.network.state.JOB` and one
of `STRAND` under one number. What a strand does next stands in the table of instructions.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from validate.network.state import QUEUE, constants

# What an instruction does; its numbers are named after it.
(
    END,
    JOIN,  # the end of a branch
    FORK,  # at, size: of the branches, resume: where to go on, column
    EACH,  # size: branches, or BY_SEGMENTS, resume, column; the branch begins with the next instruction
    # Those that take no time:
    JUMP,  # at: instruction
    CHOOSE,  # at, size: of the choices
    COUNT,  # at: slot, size: rounds, or BY_SEGMENTS
    REPEAT,  # at: slot, resume: first instruction of a round
    PICK,  # part: choose a copy, whose place becomes the target
    RELEASE,  # part, size: tokens
    SAVE,  # at: slot for the place
    RECALL,  # at: slot whose place becomes the target
    RETURN,  # at: slot whose place becomes that of the strand at once
    ADDRESS,  # part, size: blocks, at: one of the ways below, resume: stream of addresses
    MARK,  # at: number of the stage that ends
    MOVE,  # stream: to any node of the flow
    # Those that may take some:
    HOLD,  # law, column
    ACQUIRE,  # part, size: tokens, at: number of their use
    SERVE,  # part, at: whether the service is the strand's last one again
    TRAVEL,  # size: flits of the packet to the target, at: whether it comes back
    LOCATE,  # part, at: as of ADDRESS, size: 1 if a branch has the block of its number, OWN_BLOCK if
    # one of its own; sets the target
    ACCESS,  # part, at: whether it is a write, stream: kind for the counts
    LOOK,  # part, at: what to do if the first private level, ..., the shared one or none has the line
    ALLOCATE,  # part, size: blocks, stream: one of those below, resume: what comes after the branches
    FREE,  # part, stream, resume: as of ALLOCATE
    GIVE,  # part: of FREE whose blocks have branches
    ENQUIRE,  # part, stream: number of the stream at the part
    PASS,  # part: a station that knows when it will be done, service: its time, -1 if that is random; time:
    # what passes after it, column: of that, at: as of SERVE
    BANK,  # part
) = constants(0, 29)
FIRST_VISIT: Any = HOLD
VARIED = (RELEASE, ACQUIRE, ENQUIRE, PASS, BANK)
"""Instructions of varied systems, see `Core.varied`."""
BY_SEGMENTS: Any = np.int64(-1)

# Ways to address blocks, as `qmodels.systems.composed.steps.ADDRESSES`.
RANDOMLY, IN_SEQUENCE, AS_ALLOCATED, LOOKED_UP = constants(0, 4)
OWN_BLOCK: Any = np.int64(2)
# Operations of free lists: all blocks and then on; each block begins a branch, or one whose access is on the
# score of its bank from when the block is taken.
AT_ONCE, BRANCHING, BRANCHING_SCORED = constants(0, 3)
# How blocks return, as `qmodels.systems.packets.free_list.RETURN_ORDERS`.
TOGETHER, AS_READ, RANDOM_ORDER = constants(0, 3)
# Kinds of accesses to a memory.
WRITTEN, READ, READ_LINE = constants(0, 3)

# Why the kernel returned, beside the reasons of `validate.network.state` (REACHED to STUCK).
ASKED: Any = np.int64(4)

# Phases of a strand beside those of `validate.network.state` (FREE to FORKED).
HOLDING, THINKING, QUEUEING, READY = constants(5, 4)
ACCESSING, TRAVELLING, LOOKING, OPERATING, ENQUIRING, TURNING, PASSING, BANKING = constants(10, 8)
OPENING: Any = np.int64(18)
# Letters to the kernels of parts.
PACKET, MEMORY_ACCESS, LOOKUP, PLACING, OPERATION, GIVING_BACK = constants(0, 6)

# Columns of the times of a strand after those of the parts.
FORKED_TIME, HELD_TIME, OUTSIDE_TIME, UNCOUNTED_TIME, OWN_COLUMNS = constants(0, 5)
COLUMN_NAMES = ("fork", "hold", "window")
"""Times that belong to no part, as results call them."""
PART_TIME: Any = np.int64(-1)
"""The column of a wait for branches that is that of its last branch, part by part."""

INSTRUCTION = np.dtype(
    [(name, "i8") for name in ("op", "part", "at", "size", "resume", "law", "column", "stream")]
    + [("time", "f8"), ("service", "f8")]
)
CHOICE = np.dtype([("below", "f8"), ("at", "i8")])
"""The instruction that a choice or a branch begins with, and the cumulative probability."""

STRAND = np.dtype(
    [
        ("since", "f8"),  # its times are counted up to then
        ("asked", "f8"),  # beginning of the present visit to a part
        ("at", "i8"),  # next instruction
        ("root", "i8"),  # the strand that is the job
        ("place", "i8"),  # node, -1 where there are none
        ("home", "i8"),  # number of the node of a job among those of its flow, -1 where there are none
        ("target", "i8"),  # node to go to
        ("copy", "i8"),  # of the part
        ("wants", "i8"),  # tokens
        ("use", "i8"),  # of them
        ("round", "i8"),  # rounds that a job of a closed flow has done
        ("column", "i8"),  # where the wait for its branches belongs
        ("bytes", "i8"),  # of a job
        ("segments", "i8"),
        ("marked", "f8"),  # when its last stage ended
        ("line", "i8"),  # that it last looked for, and its slice
        ("piece", "i8"),
        ("lost", "i8"),  # a job that only ends what it has begun
        ("number", "i8"),  # of the branch
        ("next", "i8"),  # of those that go on now
        ("flits", "i8"),  # of its packet
        ("block", "i8"),  # the first that it reads or writes
        ("channel", "i8"),  # where it is: among those of all memories
        ("bank", "i8"),
        ("row", "i8"),
        ("cycle", "i8"),  # of the memory, in which it came there
        ("issued", "i8"),  # whether its access is on the score of a bank
        ("own", "i8"),  # the block that a branch of an operation is done for
        ("returns", "i8"),  # whether the branch returns this block as it ends
        ("returned", "i8"),  # blocks of a job that have returned in this way
        ("done", "i8"),  # blocks that its operation has taken, -1 before it begins
        ("refused", "i8"),  # whether there were too few
        ("blocks", "i8"),  # that a job has: how many, the first and the last
        ("first_block", "i8"),
        ("last_block", "i8"),
        ("holder", "i8"),  # the free lists they are of
        ("began", "f8"),  # its operation
        ("left", "f8"),  # of its service at a bank, at the speed of one that is alone
        ("paced", "f8"),  # when that was so
    ]
)
PART = np.dtype(
    [
        ("first", "i8"),  # of its copies: among the nodes of stations, the pools or the channels
        ("member", "i8"),  # its number among the parts of its kind
        ("copies", "i8"),
        ("pools", "i8"),  # whether its copies are pools
        ("scored", "i8"),  # whether it is a memory in which free lists look for banks that are not busy
        ("places_at", "i8"),  # nodes of its copies, -1 if it is nowhere
        ("places", "i8"),
        ("visits", "i8"),
        ("time_sum", "f8"),
        ("turns", "i8"),  # visits to pools whose tokens had to turn
        ("number", "i8"),
        ("number_sum", "f8"),
    ]
)
"""A part and its visits. The time integral of their number up to t is ``number_sum + number t``."""

POOL = np.dtype(
    [
        ("tokens", "i8"),
        ("free", "i8"),
        ("head", "i8"),
        ("tail", "i8"),
        ("held_sum", "f8"),  # as of `PART`, for the tokens that are held
        ("turning", "f8"),
        ("tokens_at", "i8"),  # the first of its tokens, -1 if they have no uses
    ]
)
TOKEN = np.dtype([("use", "i8"), ("holder", "i8")])
"""What a token was last used for, -1 for nothing yet, and the strand that has it, -1 for none."""
CHANNEL = np.dtype(
    [
        ("ghz", "f8"),
        ("node", "i8"),  # its place, or -1
        ("memory", "i8"),
        ("free_at", "f8"),  # the bus, of one whose banks serve in order: how long it was taken and waited for
        ("busy", "f8"),
        ("waited", "f8"),
        ("served", "i8"),
    ]
)
"""A channel of a memory."""

MEMORY = np.dtype(
    [
        *((name, "i8") for name in ("first", "channels", "banks", "first_bank", "open_pages")),
        # In ns, of banks that serve in order.
        *((name, "f8") for name in ("precharge", "burst", "recovery", "access", "interval", "refresh")),
        ("accesses", "i8"),  # begun by banks that serve in order, and those to an open row
        ("hits", "i8"),
    ]
)
"""A memory."""

ARRIVED = np.dtype([("number", "i8"), ("conflicts", "i8")])
"""Accesses of a kind that came to their bank, and those that found it busy with another row."""

ROWS = np.dtype(
    [
        *((name, "i8") for name in ("queued_row", "present", "open_row", "refreshes")),
        *((name, "i8") for name in ("serving", "head", "tail", "served")),
        ("busy", "f8"),
        ("waited", "f8"),
    ]
)
"""A bank: the row of the access that came last, accesses not ended; the rest of one that serves in order."""

STAGE = np.dtype([("ended", "i8"), ("time_sum", "f8")])
"""What ends with a mark of a name."""

LETTER = np.dtype([("kind", "i8"), ("strand", "i8")])
"""What a strand asks of the kernel of a part."""

SERVER = np.dtype(
    [
        ("taken", "i8"),  # whether it is in an operation
        ("head", "i8"),
        ("tail", "i8"),
        ("busy_sum", "f8"),  # as of `PART`
        ("period", "f8"),  # of an access
        ("small", "i8"),  # most blocks of a job with lists of its own
        ("order", "i8"),  # in which blocks return, as of `RETURN_ORDERS`
        ("stream", "i8"),  # of a random order
        *((name, "f8") for name in ("enqueue_packet", "enqueue", "dequeue_packet", "dequeue")),
        *((name, "i8") for name in ("taken_blocks", "accesses", "most_accesses")),
    ]
)
"""The pointer memory of free lists, and the accesses that its operations take."""

DONE = np.dtype([("begun", "i8"), ("waited", "f8"), ("served", "i8"), ("service", "f8")])
"""Operations of a kind: those begun and their waits, those that were not refused and their time."""

BANKED = np.dtype(
    [
        *((name, "i8") for name in ("channels", "banks", "law", "stream")),
        # Where its channels, banks, queues and speeds begin, those with 1, 2, ... busy banks one earlier.
        *((name, "i8") for name in ("busy_at", "jobs_at", "queues_at", "speeds_at")),
        ("busy", "i8"),  # banks
        ("busy_sum", "f8"),  # as of `PART`
    ]
)
"""A memory of channels whose banks slow each other down."""

FLOW = np.dtype(
    [
        ("entry", "i8"),
        ("law", "i8"),  # of the times between arrivals, or of thinking; -1 for none
        ("scale", "f8"),  # of the times between arrivals
        ("sizes", "i8"),  # law of the bytes, or -1
        ("segment_bytes", "i8"),
        ("window", "i8"),  # 0 for none
        ("rounds", "i8"),  # 0 for ever
        ("loses", "i8"),  # whether jobs that find it full are lost
        ("population", "i8"),
        ("places_at", "i8"),
        ("places", "i8"),
        ("stream", "i8"),
        ("inside", "i8"),  # of the window
        ("head", "i8"),  # of the jobs outside it
        ("tail", "i8"),
        ("born", "i8"),
        ("ended", "i8"),
        ("lost", "i8"),
        ("bytes", "i8"),  # of those that ended
        ("segments", "i8"),
        ("lost_segments", "i8"),
        ("latency_sum", "f8"),
        ("uncounted_sum", "f8"),
        ("last_end", "f8"),
        ("number", "i8"),  # outside the window or inside
        ("number_sum", "f8"),
    ]
)
STATE = np.dtype(
    [
        ("ready", "i8"),  # strands that go on now: the first, the last
        ("last_ready", "i8"),
        ("most_new_jobs", "i8"),  # one instruction can need
        ("fork_column", "i8"),  # of the times: the first behind the parts
        ("born", "i8"),
        ("letters", "i8"),
        ("enquiries", "i8"),  # strands whose parts are asked, outside of compiled code, when they end
        ("cycle", "i8"),  # of the interconnect, that is to come
        ("sent", "i8"),  # cycle of the last packet that entered it
        ("ghz", "f8"),  # of the interconnect
        ("interconnect", "i8"),  # its number as a part, -1 for none
        ("ways", "i8"),  # stream of the choices between several
        ("stations", "i8"),  # nodes that are stations; those behind are channels, then banks
        ("controlled", "i8"),  # channels behind controllers, which come first
        ("connected", "i8"),  # nodes of the interconnect
    ]
)


class Core(NamedTuple):
    """All of it.

    ``times`` has the time of each strand by part and then by the columns above, ``worked`` its last service
    at each station, 0 before, if any visit asks for it, ``slots`` what its instructions remember, ``holds``
    its tokens of each pool; ``places`` are the nodes of flows and parts,
    ``copy_at`` says which copy of a part is at a node, -1 for none; ``free_at`` is when the visits end that a
    station knows of, see `PASS`; ``flow_times`` sums up the times of the
    jobs that ended. ``letters`` are what strands ask of the kernels of parts, ``enquiries`` are the strands
    that came to parts of others. ``rows`` are the banks of all memories, ``arrived`` the accesses of each by
    kind, ``operations`` those of each pointer memory that take and that give back. ``bank_busy`` are the busy
    banks of each channel, ``bank_jobs`` the strands that banks serve, ``bank_queues`` the first and the last
    of those that wait for each part.
    ``map_numbers`` and ``map_images`` are the address maps of the memories, see
    `validate.dram.state`, ``sequences`` the next blocks of streams of addresses; ``routes`` are the first
    of the ``ways`` from each node to each, which are flows of the network.
    """

    code: Annotated[Any, INSTRUCTION, 1]
    choices: Annotated[Any, CHOICE, 1]
    strands: Annotated[Any, STRAND, 1]
    times: Annotated[Any, "f8", 2]
    worked: Annotated[Any, "f8", 2]
    slots: Annotated[Any, "i8", 2]
    holds: Annotated[Any, "i8", 2]
    parts: Annotated[Any, PART, 1]
    places: Annotated[Any, "i8", 1]
    copy_at: Annotated[Any, "i8", 2]
    pools: Annotated[Any, POOL, 1]
    tokens: Annotated[Any, TOKEN, 1]
    free_at: Annotated[Any, "f8", 1]
    flows: Annotated[Any, FLOW, 1]
    flow_times: Annotated[Any, "f8", 2]
    letters: Annotated[Any, LETTER, 1]
    channels: Annotated[Any, CHANNEL, 1]
    memories: Annotated[Any, MEMORY, 1]
    rows: Annotated[Any, ROWS, 1]
    arrived: Annotated[Any, ARRIVED, 1]
    operations: Annotated[Any, DONE, 1]
    stages: Annotated[Any, STAGE, 1]
    servers: Annotated[Any, SERVER, 1]
    enquiries: Annotated[Any, "i8", 1]
    banked: Annotated[Any, BANKED, 1]
    bank_busy: Annotated[Any, "i8", 1]
    bank_jobs: Annotated[Any, "i8", 1]
    bank_queues: Annotated[Any, QUEUE, 1]
    bank_speeds: Annotated[Any, "f8", 1]
    map_numbers: Annotated[Any, "i8", 2]
    map_images: Annotated[Any, "i8", 3]
    sequences: Annotated[Any, "i8", 1]
    routes: Annotated[Any, "i8", 2]
    ways: Annotated[Any, CHOICE, 1]
    state: Annotated[Any, STATE, 1]
    table: Any
    varied: Any = True
    """Whether there is more than plain stations, caches, free lists, banks in order, an interconnect."""
    alone: Any = False
    """Whether there are stations and pools alone, no parts with kernels of their own."""
    timed: Any = False
    """Whether there are channels behind controllers."""
