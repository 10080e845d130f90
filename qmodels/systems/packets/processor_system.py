"""A joint packet processor as a system of parts: what its engines, slices, lists and channels are."""

from __future__ import annotations

from typing import Any

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
from qmodels.systems.noc.spec import Noc
from qmodels.systems.stations.parts import Station

STAGES = ("lookup", "write", "held", "read")
"""What ends with each mark of a packet."""


def processor_system(processor: Any, *, window: int = 0) -> System:
    """Return the system that a `PacketProcessor` is, see its method `system`; closed with a window."""
    noc, workload = processor.noc, processor.workload
    engines, channels, slices = noc.initiators, int(processor.channels), int(processor.llc.slices)
    network = Noc(
        topology=noc.topology,
        routing=noc.routing,
        router=noc.router,
        link_width=int(noc.link_width),
        header_bytes=int(noc.header_bytes),
        clock_ghz=float(noc.clock_ghz),
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
