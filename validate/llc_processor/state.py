"""The arrays of one packet processor, and how a replication begins: empty, with full caches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.cache.lines import feistel
from qmodels.systems.cache.llc_processor import BANKS, LlcProcessor
from validate.cache.draw_kernel import zipf_law
from validate.cache.lru_kernel import LRU, NONE, new_caches
from validate.engine.streams import new_streams

SOURCES = ("events", "cores", "lines", "banks")
EVENTS, CORES, LINES, PARTS = range(4)
"""Streams: which event is next, the core of a packet, its line, and the part of the table."""

PLAN = np.dtype(
    [
        ("cores", "i8"),
        ("capacity", "i8"),
        ("slices", "i8"),
        ("keep", "i8"),
        ("arrival_rate", "f8"),
        ("l1_rate", "f8"),
        ("l2_rate", "f8"),
        ("llc_rate", "f8"),
        ("bank_rate", "f8"),
        ("interleaved_bank_rate", "f8"),
    ]
)
"""The spec; ``slices`` is 0 without LLC."""

STATE = np.dtype([("inside", "i8"), ("busy_cores", "i8"), ("busy_slices", "i8")])
"""Requests inside, cores that have one, slices that serve one."""

CORE = np.dtype([("line", "i8"), ("level", "i8"), ("head", "i8"), ("queued", "i8"), ("place", "i8")])
"""What a core works on: its line and the private level that has it (2: none); its queue, the request in
service included, in a ring; its place among those that visit the same private level."""

QUEUE = np.dtype([("head", "i8"), ("length", "i8"), ("place", "i8")])
"""A slice's queue of cores, and its place among those that are busy; or the queue for a part of the table."""

CHANNEL = np.dtype([("busy", "i8"), ("place", "i8")])
"""Its busy banks, a bit each, and its place among the channels of the same state."""

TOTALS = np.dtype(
    [
        ("arrivals", "i8"),
        ("blocked", "i8"),
        ("started", "i8"),
        ("served", "i8"),
        ("l1_hits", "i8"),
        ("l2_hits", "i8"),
        ("llc_hits", "i8"),
        ("time", "f8"),
        ("waited", "f8"),
        ("number", "f8"),
        ("busy_cores", "f8"),
        ("busy_slices", "f8"),
        ("busy_banks", "f8"),
    ]
)
"""Counts, and integrals over time."""


class World(NamedTuple):
    """Everything a replication consists of."""

    plan: Any
    law: Any
    keys: Any  # of the random assignment of entries to lines
    streams: Any
    caches: Any
    slots: Any
    table: Any
    cores: Any
    arrived: Any  # of each core: when the requests of its queue arrived
    visitors: Any  # cores in L1, cores in L2
    visiting: Any  # how many
    slices: Any
    slice_queue: Any
    busy_slices: Any
    channels: Any
    by_state: Any  # channels by their busy banks
    in_state: Any  # how many
    banks: Any  # the core that each serves
    parts: Any
    part_queue: Any
    state: Any
    totals: Any


def new_world(spec: LlcProcessor, *, seed: int, replication: int) -> World:
    """Return an empty processor; a replication has its own assignment of entries to lines."""
    word = np.random.SeedSequence(seed, spawn_key=(replication,)).generate_state(1)
    half, keys = feistel(int(spec.popularity.entries), int(word[0]))
    scattered = spec.assignment == "random"
    law = zipf_law(spec.popularity, entries_per_line=spec.entries_per_line, half=half, scattered=scattered)
    cores, slices = spec.cores, spec.llc_slices
    capacities = [spec.l1_lines, spec.l2_lines] * cores + spec.slice_lines.tolist()
    number = len(capacities)
    caches, slots, table = new_caches(capacities, [LRU] * number, [1.0] * number, lines=spec.lines)
    channels = np.zeros(spec.channels, dtype=CHANNEL)
    channels["place"] = np.arange(spec.channels)
    by_state = np.zeros((1 << BANKS, spec.channels), dtype=np.int64)
    by_state[0] = np.arange(spec.channels)
    in_state = np.zeros(1 << BANKS, dtype=np.int64)
    in_state[0] = spec.channels
    return World(
        plan=_plan(spec),
        law=law,
        keys=np.array(keys, dtype=np.int64),
        streams=new_streams(seed=seed, replication=replication, sources=SOURCES),
        caches=caches,
        slots=slots,
        table=table,
        cores=np.zeros(cores, dtype=CORE),
        arrived=np.zeros((cores, spec.capacity)),
        visitors=np.zeros((2, cores), dtype=np.int64),
        visiting=np.zeros(2, dtype=np.int64),
        slices=np.zeros(max(slices, 1), dtype=QUEUE),
        slice_queue=np.zeros((max(slices, 1), cores), dtype=np.int64),
        busy_slices=np.zeros(max(slices, 1), dtype=np.int64),
        channels=channels,
        by_state=by_state,
        in_state=in_state,
        banks=np.full((spec.channels, BANKS), NONE, dtype=np.int64),
        parts=np.zeros(BANKS, dtype=QUEUE),
        part_queue=np.zeros((BANKS, cores), dtype=np.int64),
        state=np.zeros(1, dtype=STATE),
        totals=np.zeros(1, dtype=TOTALS),
    )


def _plan(spec: LlcProcessor) -> Any:
    plan = np.zeros(1, dtype=PLAN)
    for name in PLAN.names or ():
        if name not in ("slices", "keep"):
            plan[name] = getattr(spec, name)
    plan["slices"], plan["keep"] = spec.llc_slices, spec.llc_hit == "keep"
    return plan


def warm_up_requests(spec: LlcProcessor) -> int:
    """Return how many requests make the caches stationary: several times the lines they hold, by request."""
    held = spec.cores * (spec.l1_lines + spec.l2_lines) + int(spec.slice_lines.sum())
    return 10_000 + 8 * held
