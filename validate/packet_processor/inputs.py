"""From a spec and a seed to the world of one run: everything random is drawn here, before the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import IntArray
from qmodels.systems.memory.address_map import scatter
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.packets.processor_noc import Networks
from validate.cache.lru_kernel import LRU, insert, new_caches
from validate.data_queueing.initial_lists import new_lists
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
    channels, banks = range(int(spec.dram.channels)), range(int(spec.dram.banks))
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
    channels = int(spec.dram.channels)
    sizes = {
        "pointer memory": 1,
        "llc slices": int(spec.llc.slices),
        "request links": links,
        "response links": links,
        "dram buses": channels,
        "dram banks": channels * int(spec.dram.banks),
    }
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


def parameters(spec: PacketProcessor, *, window: int) -> npt.NDArray[Any]:
    """Return the numbers of a spec as the kernel reads them."""
    groups = station_groups(spec)
    llc_ns, dram_ns = 1 / spec.llc.clock_ghz, 1 / spec.dram.clock_ghz
    values = {
        "lookups": spec.workload.lookups_per_packet,
        "slices": spec.llc.slices,
        "channels": spec.dram.channels,
        "banks": spec.dram.banks,
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
        "precharge_ns": spec.dram.precharge_cycles * dram_ns,
        "burst_ns": spec.dram.burst_cycles * dram_ns,
        "recovery_ns": spec.dram.recovery_cycles * dram_ns,
        "access_ns": spec.dram.access_cycles * dram_ns,
        "refresh_interval_ns": spec.dram.refresh_interval_cycles * dram_ns,
        "refresh_ns": spec.dram.refresh_cycles * dram_ns,
        "pointer_ns": 1 / spec.free_list.clock_ghz,
        "enqueue_packet": spec.free_list.enqueue_packet_accesses,
        "enqueue": spec.free_list.enqueue_accesses,
        "dequeue_packet": spec.free_list.dequeue_packet_accesses,
        "dequeue": spec.free_list.dequeue_accesses,
    }
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
    for_packets, for_engines, for_egress, for_hold, for_lookups, for_list, for_lru = (
        np.random.default_rng(child)
        for child in np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(7)
    )
    # Replications take places of a recorded trace that any number of them covers evenly.
    number = seed.spawn_key[-1] if seed.spawn_key else 0
    gaps = unit_gaps(spec.workload.arrivals, for_packets, packets)
    offered = spec.workload.packets(for_packets, packets, place=(number * GOLDEN) % 1.0, gaps=gaps)
    count, total = offered.segments.size, int(offered.segments.sum())
    # More than that never come round, and a short trace would not circulate at all.
    window = min(window, max(1, count // 2))
    records = np.zeros(count, dtype=PACKET)
    records["arrival"] = offered.times_ns
    records["bytes"] = offered.bytes
    records["segments"] = offered.segments
    records["first"] = np.cumsum(offered.segments) - offered.segments
    records["engine"] = for_engines.integers(spec.noc.initiators, size=count)
    records["egress"] = for_egress.integers(spec.noc.initiators, size=count)
    hold = for_hold.exponential(size=count) * float(spec.workload.hold_ns)
    records["hold"] = 0.0 if window else hold
    segments = np.zeros(total, dtype=SEGMENT)
    segments["packet"] = np.repeat(np.arange(count), offered.segments)
    lookups = spec.workload.popularity.sample(for_lookups, count * int(spec.workload.lookups_per_packet))
    slices, lines, index, streams = stationary_slices(spec, for_lru)
    small = int(offered.segments[offered.segments <= spec.free_list.small_packet_segments].sum())
    examined = ((total - small) * int(spec.free_list.alloc_trial_count), small, small)
    blocks, lists, addresses = initial_lists(spec, for_list, examined=examined)
    state = np.zeros(1, dtype=STATE)
    state["operation_head"] = state["operation_tail"] = NONE
    banks = np.zeros(int(spec.dram.channels * spec.dram.banks), dtype=BANK)
    for name in ("open_row", "page", "queued_row"):
        banks[name] = UNOPENED
    for name in ("serving", "head", "tail"):
        banks[name] = NONE
    banks["refreshes"] = 1  # time begins after an interval, see `after_refresh`
    stations = np.zeros(len(station_names(spec)), dtype=STATION)
    return World(
        heap=new_calendar(2 * total + count + 16).heap,
        parameters=parameters(spec, window=window),
        state=state,
        packets=records,
        segments=segments,
        stations=stations,
        banks=banks,
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


def networks_of(spec: PacketProcessor) -> Networks:
    """Return the flow tables of requests and responses."""
    return spec.noc.networks(int(spec.dram.channels))


def new_networks(spec: PacketProcessor, world: World) -> tuple[Network, Network]:
    """Return the empty networks of requests and responses, with room for all segments of a world."""
    both, router = networks_of(spec), spec.noc.router
    requests, responses = (
        new_world(
            table,
            virtual_channels=router.virtual_channels,
            buffer_flits=router.buffer_flits,
            pipeline_cycles=router.pipeline_cycles,
            credit_cycles=router.credit_cycles,
            arbitration=router.arbitration,
            hold_switch_for_packet=router.hold_switch_for_packet,
            packets=world.segments.size,
        )
        for table in (both.requests, both.responses)
    )
    return requests, responses


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
    return new_lists(spec.free_list, spec.address_map.locate, int(spec.dram.banks), rng, examined=examined)
