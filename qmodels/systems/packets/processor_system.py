"""A joint packet processor as a system of parts: what its engines, slices, lists and channels are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qmodels.checks import Numeric
from qmodels.systems.cache.spec import CacheLevel, CacheSystem
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.steps import (
    Allocate,
    Free,
    Hold,
    Lookup,
    Mark,
    Move,
    Read,
    Repeat,
    Visit,
    Write,
)
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Deterministic, Exponential
from qmodels.systems.spec.ranges import Declared, nonnegative
from qmodels.systems.stations.parts import Station


@dataclass(frozen=True, kw_only=True)
class Energy(Declared, prefix="energy."):
    """Energy per event and background power; replace what you know better.

    Prices only: the model and the simulator each count the events, and add them up, for themselves.

    The router figures are a least-squares reading of [1]_, Tables II and III (32 routers,
    12 powers): power = 32 (15 mW + 1.9 mW per byte of link) + 20 pJ per transported byte over
    about 5.5 routers. The DRAM figures are rounded datasheet magnitudes of a rank of eight
    DDR2-800 devices, the SRAM figures 28 nm magnitudes: our assumptions. A DRAM figure that is left at its
    default is that of the device where the memory is one of a preset, see `dram_power.channel_price`.

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs".
    """

    activation_nj: Numeric = nonnegative(15.0)  # Opening and closing one DRAM row. [nJ]
    burst_nj: Numeric = nonnegative(12.0)  # Moving one segment over a channel's data bus. [nJ]
    # One byte of link width through one router and link, charged per flit. [pJ/byte]
    hop_pj_per_byte: Numeric = nonnegative(3.6)
    # pointer_nj, lookup_nj: One pointer-memory access; one lookup in a slice. [nJ]
    pointer_nj: Numeric = nonnegative(0.05)
    lookup_nj: Numeric = nonnegative(0.1)
    # channel_mw, slice_mw: Background power of a channel with its rank; of an LLC slice. [mW]
    channel_mw: Numeric = nonnegative(300.0)
    slice_mw: Numeric = nonnegative(10.0)
    # router_mw, router_mw_per_byte: Background power of a router, and per byte of link width. [mW, mW/byte]
    router_mw: Numeric = nonnegative(15.0)
    router_mw_per_byte: Numeric = nonnegative(1.9)


@dataclass(frozen=True, kw_only=True)
class Cost(Declared, prefix="cost."):
    """Silicon area equivalent of each part; replace what you know better.

    All figures are our assumptions, of the magnitude of a 28 nm process. A channel that is left at its
    default is that of the device where the memory is one of a preset, see `dram_power.channel_price`.
    """

    channel: Numeric = nonnegative(4.0)  # Memory controller and its pins. [mm2]
    # router, router_per_byte: A router, and its buffers and switch per byte of link width. [mm2, mm2/byte]
    router: Numeric = nonnegative(0.02)
    router_per_byte: Numeric = nonnegative(0.006)
    # One directed link's wires, per byte of link width, requests and responses together. [mm2/byte]
    wire_per_byte: Numeric = nonnegative(0.002)
    slice_per_kib: Numeric = nonnegative(0.003)  # LLC slice. [mm2/KiB]
    pointer_per_mib: Numeric = nonnegative(0.05)  # Pointer memory (8 bytes a block, off-chip SRAM). [mm2/MiB]
    trial: Numeric = nonnegative(0.02)  # Logic for each further allocation trial. [mm2]


STAGES = ("lookup", "write", "held", "read")
"""What ends with each mark of a packet."""


def processor_system(processor: Any, *, window: int = 0) -> System:
    """Return the system that a `PacketProcessor` is, see its method `system`; closed with a window."""
    noc, workload = processor.noc, processor.workload
    engines, channels, slices = noc.initiators, int(processor.channels), int(processor.llc.slices)
    network = noc.network(
        link_width=int(noc.link_width), header_bytes=int(noc.header_bytes), clock_ghz=float(noc.clock_ghz)
    )
    parts: dict[str, Any] = {
        "requests": network,
        "responses": network,
        "pointers": processor.free_list,
        "dram": processor.dram,
    }
    place: dict[str, Any] = {"dram": range(engines, engines + channels)}
    if workload.lookups_per_packet:
        # Without slices nothing is kept: a line that is found in the one there has to be is read as well.
        kept = CacheLevel(
            lines=max(1, slices * int(processor.llc.slice_lines)), slices=max(1, slices), hashing="mixed"
        )
        parts["llc"] = CacheSystem(popularity=workload.popularity, shared=kept)
    if workload.lookups_per_packet and slices:
        time = processor.llc.access_cycles / processor.llc.clock_ghz
        parts["slice"] = Station(service=Deterministic(mean=float(time)))
        nodes = noc.topology.nodes
        place["slice"] = range(nodes, nodes + slices)
    arrives: dict[str, Any] = {"arrivals": workload.arrivals, "rate": float(workload.packet_rate)}
    flow = Flow(
        name="packets",
        **({"population": window} if window else arrives),
        at=range(engines),
        sizes=workload.sizes,
        segment_bytes=workload.segment_bytes,
        program=_program(processor, held=not window),
    )
    return System(
        parts=parts,
        place=place,
        flows=(flow,),
        interconnect="requests",
        replies="responses",
        nodes=len(place.get("slice", ())),
    )


def _program(processor: Any, *, held: bool) -> tuple[Any, ...]:
    workload = processor.workload
    lookup, write, hold, read = (Mark(name) for name in STAGES)
    program: tuple[Any, ...] = () if held else (Move(),)  # jobs that go round keep their place
    if workload.lookups_per_packet:
        program += (Repeat(_lookup(processor), int(workload.lookups_per_packet)),)
    program += (
        lookup,
        Allocate("pointers", "segments", steps=(Write("dram", addresses="allocated"),)),
        write,
    )
    if held and workload.hold_ns > 0:
        program += (Hold(Exponential(mean=float(workload.hold_ns)), counted=False),)
    return (*program, hold, Move(), Free("pointers", steps=(Read("dram", addresses="allocated"),)), read)


def _lookup(processor: Any) -> tuple[Any, ...]:
    """Return a table lookup: over the bus to the slice of the line and back, and to DRAM after a miss."""
    read = Read("dram", addresses="looked-up")
    if not int(processor.llc.slices):
        return (Lookup("llc", hit=(read,), miss=(read,)),)
    bus = Hold(Deterministic(mean=float(processor.llc.bus_cycles / processor.llc.clock_ghz)))
    found = (bus, Visit("slice", by_line=True), bus)
    return (Lookup("llc", hit=found, miss=(*found, read)),)
