"""From a spec and a seed to the world of one run: everything random is drawn here, before the kernel."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import IntArray
from qmodels.systems.memory.address_map import scatter
from qmodels.systems.memory.dram import Dram
from qmodels.systems.memory.dram_system import DramSystem, dram
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.packets.processor_noc import Networks
from qmodels.systems.traffic.workload import Packets
from validate.cache.lru_kernel import LRU, insert, new_caches
from validate.data_queueing.initial_lists import new_lists
from validate.dram.channels import Channels, new_channels
from validate.engine.events import STATION, new_calendar
from validate.engine.jit import lean
from validate.engine.sampling import unit_gaps
from validate.noc.state import World as Network
from validate.noc.state import new_world
from validate.packet_processor.state import (
    BANK,
    COUNTS,
    NONE,
    NOTE,
    PACKET,
    PARAMETERS,
    SEGMENT,
    SEND,
    STATE,
    UNOPENED,
    World,
)

OUTBOX = 64
"""More packets than an event sends, but for the first of a closed run, which sends a window of them."""
GOLDEN = (5.0**0.5 - 1.0) / 2.0

PHASES = ("lookup", "write", "hold", "read")
"""What a packet is doing; counted in the trace after the stations."""


def station_names(spec: PacketProcessor) -> tuple[str, ...]:
    """Return the names of all stations, in the order of their numbers."""
    links = networks_of(spec).link_names
    channels, banks = range(int(spec.channels)), range(_served_banks(spec))
    return (
        "pointer memory",
        *(f"llc slice {k}" for k in range(int(spec.llc.slices))),
        *(f"request {link}" for link in links),
        *(f"response {link}" for link in links),
        *(f"channel {c} bus" for c in channels),
        *(f"channel {c} bank {b}" for c in channels for b in banks),
    )


def station_groups(spec: PacketProcessor) -> dict[str, slice]:
    """Return the station numbers of each group."""
    links = len(networks_of(spec).link_names)
    channels = int(spec.channels)
    sizes = {
        "pointer memory": 1,
        "llc slices": int(spec.llc.slices),
        "request links": links,
        "response links": links,
        "dram buses": channels,
        "dram banks": channels * _served_banks(spec),
    }
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


def _served_banks(spec: PacketProcessor) -> int:
    """Return the banks of a channel that are stations: those behind a controller are not."""
    return int(spec.dram.banks) if isinstance(spec.dram, Dram) else 0


def parameters(spec: PacketProcessor, *, window: int) -> npt.NDArray[Any]:
    """Return the numbers of a spec as the kernel reads them."""
    groups = station_groups(spec)
    llc_ns = 1 / spec.llc.clock_ghz
    values = {
        "lookups": spec.workload.lookups_per_packet,
        "slices": spec.llc.slices,
        "channels": spec.channels,
        "banks": spec.banks,
        "trials": spec.free_list.alloc_trial_count,
        "small": spec.free_list.small_packet_segments,
        "open_pages": spec.dram.page_policy == "open",
        "initiators": spec.noc.initiators,
        "window": window,
        "first_slice": groups["llc slices"].start,
        "first_bus": groups["dram buses"].start,
        "first_bank": groups["dram banks"].start,
        "first_phase": groups["dram banks"].stop,
        "bus_ns": spec.llc.bus_cycles * llc_ns,
        "slice_ns": spec.llc.access_cycles * llc_ns,
        "noc_ghz": spec.noc.clock_ghz,
        "segment_flits": spec.segment_flits,
        "request_flits": spec.request_flits,
        "dram_ghz": spec.dram.clock_ghz,
        "controlled": isinstance(spec.dram, DramSystem),
        "pointer_ns": 1 / spec.free_list.clock_ghz,
        "enqueue_packet": spec.free_list.enqueue_packet_accesses,
        "enqueue": spec.free_list.enqueue_accesses,
        "dequeue_packet": spec.free_list.dequeue_packet_accesses,
        "dequeue": spec.free_list.dequeue_accesses,
    }
    if isinstance(spec.dram, Dram):
        for name in ("precharge", "burst", "recovery", "access", "refresh_interval", "refresh"):
            values[f"{name}_ns"] = getattr(spec.dram, f"{name}_cycles") / spec.dram.clock_ghz
    record = np.zeros(1, dtype=PARAMETERS)
    for name, value in values.items():
        record[name] = value
    return record


def draw_world(
    spec: PacketProcessor,
    *,
    seed: np.random.SeedSequence,
    packets: int,
    window: int = 0,
    trace: int = 0,
) -> World:
    """Return the world of one replication before its first event.

    Parameters
    ----------
    spec : PacketProcessor
        One design.
    seed : numpy.random.SeedSequence
        Seed of the replication; each source of randomness has a stream of its own, so that
        designs that differ elsewhere meet the same packets, lookups and free list.
    packets : int
        Packets wanted (a short trace has fewer).
    window : int
        Packets that circulate in a closed run, at most half of them; 0 for an open one.
    trace : int
        Notes kept of jobs that come and go.
    """
    for_packets, for_engines, for_egress, for_hold, for_lookups, for_list, for_lru, for_refresh = (
        np.random.default_rng(child)
        for child in np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(8)
    )
    # Replications take places of a recorded trace that any number of them covers evenly.
    number = seed.spawn_key[-1] if seed.spawn_key else 0
    gaps = unit_gaps(spec.workload.arrivals, for_packets, packets)
    offered = spec.workload.packets(for_packets, packets, place=(number * GOLDEN) % 1.0, gaps=gaps)
    count, total = offered.segments.size, int(offered.segments.sum())
    # More than that never come round, and a short trace would not circulate at all.
    window = min(window, max(1, count // 2))
    records = packet_records(offered)
    records["engine"] = for_engines.integers(spec.noc.initiators, size=count)
    records["egress"] = for_egress.integers(spec.noc.initiators, size=count)
    hold = for_hold.exponential(size=count) * float(spec.workload.hold_ns)
    records["hold"] = 0.0 if window else hold
    lookups = spec.workload.popularity.sample(for_lookups, count * int(spec.workload.lookups_per_packet))
    slices, lines, index, streams = stationary_slices(spec, for_lru)
    small = int(offered.segments[offered.segments <= spec.free_list.small_packet_segments].sum())
    examined = ((total - small) * int(spec.free_list.alloc_trial_count), small, small)
    blocks, lists, addresses = initial_lists(spec, for_list, examined=examined)
    numbers = parameters(spec, window=window)
    numbers["refresh_start"] = for_refresh.random()
    return World(
        heap=new_calendar(2 * total + count + 16).heap,
        parameters=numbers,
        state=empty_state(),
        packets=records,
        segments=segment_records(offered),
        stations=np.zeros(len(station_names(spec)), dtype=STATION),
        banks=idle_banks(int(spec.channels * spec.banks)),
        slices=slices,
        lines=lines,
        index=index,
        streams=streams,
        blocks=blocks,
        lists=lists,
        addresses=addresses,
        outbox=np.zeros(window + OUTBOX, dtype=SEND),
        flows=networks_of(spec).flow.astype(np.int32),
        lookups=lookups.astype(np.int64),
        counts=np.zeros(COUNTS, dtype=np.int64),
        trace=np.zeros(trace, dtype=NOTE),
    )


def empty_state() -> npt.NDArray[Any]:
    """Return the state of a processor without packets."""
    state = np.zeros(1, dtype=STATE)
    state["operation_head"] = state["operation_tail"] = NONE
    return state


def packet_records(offered: Packets) -> npt.NDArray[Any]:
    """Return the records of realised packets: times, sizes and segments."""
    records = np.zeros(offered.segments.size, dtype=PACKET)
    records["arrival"] = offered.times_ns
    records["bytes"] = offered.bytes
    records["segments"] = offered.segments
    records["first"] = np.cumsum(offered.segments) - offered.segments
    return records


def segment_records(offered: Packets) -> npt.NDArray[Any]:
    """Return the records of the segments of realised packets."""
    segments = np.zeros(int(offered.segments.sum()), dtype=SEGMENT)
    segments["packet"] = np.repeat(np.arange(offered.segments.size), offered.segments)
    return segments


def idle_banks(number: int) -> npt.NDArray[Any]:
    """Return banks without an open row."""
    banks = np.zeros(number, dtype=BANK)
    for name in ("open_row", "page", "queued_row"):
        banks[name] = UNOPENED
    for name in ("serving", "head", "tail"):
        banks[name] = NONE
    banks["refreshes"] = 1  # time begins after an interval, see `after_refresh`
    return banks


def networks_of(spec: PacketProcessor) -> Networks:
    """Return the flow tables of requests and responses."""
    return spec.noc.networks(int(spec.channels))


def new_parts(spec: PacketProcessor, world: World) -> tuple[Network, Network, Channels]:
    """Return the parts that go from cycle to cycle, empty, with room for all segments of a world.

    These are the networks of requests and responses, and the controllers of a `DramSystem`.
    """
    both, router = networks_of(spec), spec.noc.router
    requests, responses = (
        new_world(table, **asdict(router), packets=world.segments.size)
        for table in (both.requests, both.responses)
    )
    controlled = isinstance(spec.dram, DramSystem)
    memory = spec.dram if isinstance(spec.dram, DramSystem) else dram("DDR4-3200")
    channels = new_channels(
        [memory],
        capacity=world.segments.size if controlled else 0,
        start=float(world.parameters["refresh_start"][0]),
    )
    return requests, responses, channels


def stationary_slices(spec: PacketProcessor, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Return slices in the stationary state of LRU under independent lookups, as `new_caches` does.

    The time since an entry of probability p was last wanted is exponential with rate p; the
    entries of a slice in the order of these ages are the stationary recency order.
    """
    popularity, number = spec.workload.popularity, int(spec.llc.slices)
    caches, slots, index = new_caches(
        [int(spec.llc.slice_lines)] * number, [LRU] * number, [1.0] * number, lines=popularity.entries
    )
    streams = np.ones((1, 5), dtype=np.uint64)
    if number:
        recent = np.argsort(
            rng.exponential(size=popularity.entries) / popularity.probabilities(), kind="stable"
        )
        fill(caches, slots, index, streams, recent[::-1], (scatter(recent) % number)[::-1])
    return caches, slots, index, streams


@lean
def fill(caches: Any, slots: Any, index: Any, streams: Any, entries: Any, slices: Any) -> None:
    """Insert entries into their slices, the last one of each as its newest."""
    for k in range(entries.size):
        insert(caches, slots, index, streams, slices[k], entries[k])


def initial_lists(
    spec: PacketProcessor, rng: np.random.Generator, *, examined: tuple[int, int, int]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], IntArray]:
    """Return the blocks and lists of a design before its first packet, see `new_lists`."""
    return new_lists(spec.free_list, spec.locate, int(spec.banks), rng, examined=examined)
