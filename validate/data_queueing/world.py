"""The world of a run: record layouts and counters, and how a spec and a seed fill them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.systems.memory.memory_map import bank_of, index_in_bank, scatter
from qmodels.systems.packets.data_queueing import ADMISSIONS, POLICIES, SERVICES, DataQueueing, QueuedPackets
from validate.data_queueing.free_lists import BANK, BLOCK, LIST, NONE, VMS1, VMS2, VMS3, WORD, shuffled_runs
from validate.engine.calendar import ENTRY
from validate.engine.sampling import unit_gaps

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
"""A packet; with the number of its segments that have a block."""

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
    OFFERED_PACKETS, OFFERED_SEGMENTS, REFUSED_PACKETS, REFUSED_SEGMENTS, LARGE_SEGMENTS, LARGE_REFUSED,
    SMALL_SEGMENTS, VMS2_EMPTY, VMS3_ASKED, VMS3_EMPTY, WRITES, WRITES_BUSY, WRITES_OTHER_PAGE, READS,
    READS_BUSY, READS_OTHER_PAGE, WORST_ENQUEUES, WORST_CONFLICTS, WORST_ACCESSES, WORST_DELETIONS,
    DELETION_ACCESSES, CYCLES, OVERRUNS, MOVES_SKIPPED, FAILURES,
) = range(25)  # fmt: skip
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


def draw_packets(spec: DataQueueing, *, seed: np.random.SeedSequence, packets: int) -> QueuedPackets:
    """Return the packets of a replication: the same for all designs with one seed and traffic."""
    rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 0)))
    gaps = unit_gaps(spec.traffic.arrivals, rng, packets)
    return spec.traffic.packets(rng, packets, spec.data.segment_bytes, gaps)


def build_world(spec: DataQueueing, offered: QueuedPackets, *, seed: np.random.SeedSequence) -> World:
    """Return the world of a run before its first packet.

    ``offered``: the packets to come; ``seed``: decides the order of the free lists.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1)))
    traffic = spec.traffic
    blocks, lists, words, free = build_memory(spec, rng)
    count = offered.segments.size
    packets = np.zeros(count, dtype=PACKET)
    packets["arrival"] = offered.times
    packets["segments"] = offered.segments
    packets["queue"] = offered.queues
    packets["moved_to"] = offered.moved_to
    packets["input"] = offered.queues % traffic.input_ports
    queues = np.zeros(traffic.queues, dtype=QUEUE)
    queues["head"] = queues["tail"] = NONE
    moved = offered.moved_to[offered.moved_to != NONE]
    queues["expected"] = np.bincount(np.concatenate((offered.queues, moved)), minlength=traffic.queues)
    order = np.argsort(packets["input"], kind="stable").astype(np.int32)
    inputs = np.zeros(traffic.input_ports, dtype=INPUT)
    inputs["end"] = np.cumsum(np.bincount(packets["input"], minlength=traffic.input_ports))
    inputs["place"] = np.concatenate(([0], inputs["end"][:-1]))
    inputs["time"] = np.inf
    for port in np.flatnonzero(inputs["place"] < inputs["end"]):
        inputs["packet"][port] = order[inputs["place"][port]]
        inputs["time"][port] = packets["arrival"][inputs["packet"][port]]
    outputs = np.zeros(traffic.output_ports, dtype=OUTPUT)
    outputs["time"] = np.inf
    each = traffic.service in ("arrival-order", "random")  # a queue waits once for each of its packets
    room = (count if each else traffic.queues) + 2
    banks = np.zeros(int(spec.data.banks), dtype=BANK)
    banks["page"] = NONE
    return World(
        parameters=parameters(spec),
        state=np.zeros(1, dtype=STATE),
        blocks=blocks,
        lists=lists,
        banks=banks,
        recent=np.full(int(spec.data.busy_accesses), NONE, dtype=np.int32),
        words=words,
        free=free,
        queues=queues,
        packets=packets,
        order=order,
        inputs=inputs,
        outputs=outputs,
        waiting=np.zeros((traffic.output_ports, room + 1), dtype=ENTRY),
        counts=np.zeros(COUNTS, dtype=np.int64),
        operations=np.zeros((len(OPERATIONS), 3), dtype=np.int64),
        histograms=np.zeros((2, ACCESS_BINS), dtype=np.int64),
        draws=rng.random(2 * count if traffic.service == "random" else 0),
    )


def parameters(spec: DataQueueing) -> npt.NDArray[Any]:
    """Return the numbers of a spec as the kernel reads them."""
    record = np.zeros(1, dtype=PARAMETERS)
    values = {
        "policy": POLICIES.index(spec.allocation.policy),
        "trials": spec.allocation.alloc_trial_count,
        "small": spec.allocation.small_packet_segments,
        "page_control": spec.data.page_control,
        "admission": ADMISSIONS.index(spec.allocation.admission),
        "service": SERVICES.index(spec.traffic.service),
        "whole": spec.traffic.operations == "packet",
        "free_accesses": spec.pointer.free_accesses,
        "conflict_accesses": spec.pointer.conflict_accesses,
        "write_slots": 0.0 if spec.traffic.operations == "packet" else 1 / spec.traffic.input_speed,
        "read_slots": spec.traffic.output_ports,
    }
    for name, value in values.items():
        record[name] = value
    return record


def build_memory(
    spec: DataQueueing, rng: np.random.Generator
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return blocks and free lists, and the words and flags of the bitmap (empty for other policies)."""
    data, allocation = spec.data, spec.allocation
    size, banks, step = int(data.segments), int(data.banks), int(data.bank_step)
    number = np.arange(size)
    place = number * int(data.block_pitch)
    blocks = np.full(size, NONE, dtype=BLOCK)
    blocks["bank"] = scatter(number) % banks if data.mapping == "random" else bank_of(place, step, banks)
    blocks["page"] = index_in_bank(place, step, banks) // int(data.page_segments)
    blocks["list"] = VMS1
    if allocation.policy == "bank-lists":
        blocks["list"] = blocks["bank"]
    elif allocation.policy == "lists":
        others = blocks[int(allocation.vms1_size) :]
        others["list"] = np.where(2 * others["bank"] < banks, VMS2, VMS3)
    lists = np.zeros(banks if allocation.policy == "bank-lists" else 3, dtype=LIST)
    lists["head"] = lists["tail"] = NONE
    words, free = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
    if allocation.policy == "bitmap":
        free = np.ones(size, dtype=np.uint8)
        words = np.add.reduceat(free, np.arange(0, size, WORD), dtype=np.int32)
        lists["length"][VMS1] = size
        return blocks, lists, words, free
    order = shuffled_runs(size, float(allocation.mean_run_length), rng)
    if blocks["list"].any():
        order = order[np.argsort(blocks["list"][order], kind="stable")]
    blocks["next"][order[:-1]] = order[1:]
    lists["length"] = np.bincount(blocks["list"], minlength=lists.size)
    some, ends = lists["length"] > 0, np.cumsum(lists["length"])
    lists["head"][some], lists["tail"][some] = order[(ends - lists["length"])[some]], order[ends[some] - 1]
    blocks["next"][lists["tail"][some]] = NONE
    return blocks, lists, words, free
