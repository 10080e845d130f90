"""The joint packet processor: a workload and the four components that carry it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray, Numeric
from qmodels.systems.cache.spec import CacheLevel, CacheSystem, Llc
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
from qmodels.systems.memory.dram_power import channel_price
from qmodels.systems.memory.dram_system import Dram, DramSystem
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.patterns import RateMatrix
from qmodels.systems.noc.router import PacketClass, Router
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topology import Topology
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, count, nonnegative, positive
from qmodels.systems.stations.parts import Station
from qmodels.systems.traffic.arrivals import Workload


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


Priced = TypeVar("Priced", Energy, Cost)


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


@dataclass(frozen=True, kw_only=True)
class ProcessorNoc(Declared, prefix="noc."):
    """Two networks of one topology: requests to the channels, responses to the initiators.

    Each is a wormhole network, see `qmodels.systems.noc.spec.Noc`: packets wait in the queue of their
    network interface, cross the routers flit by flit, and are delivered with their tail. Initiators
    sit on nodes ``0..initiators-1``, channels on the contiguous nodes after them, as in [1]_ (Fig. 2).

    Numeric fields other than ``initiators`` and those of the routers may be arrays (a sweep).

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs".
    """

    # Shape and routes ([1]_: Spidergon of 8, 16 or 32 nodes)
    topology: Topology = field(default_factory=Topology)
    # A routing with one path for each pair of nodes, see `qmodels.systems.noc.routing.find_routes`
    routing: str = "default"
    # All routers (our assumption: one stage, 2 virtual channels of 8 flits)
    router: Router = field(default_factory=Router)
    initiators: int = 4  # Packet engines, each on a node of its own ([1]_, first set-up: 4)
    link_width: Numeric = count(16)  # Width of every link ([1]_: 8, 16 or 32). [bytes]
    header_bytes: Numeric = count(8)  # Header of every NoC packet ([1]_: 8). [bytes]
    payload_bytes: Numeric = count(128)  # Largest payload of a NoC packet ([1]_: 128). [bytes]
    clock_ghz: Numeric = positive(1.0)  # Network clock ([1]_: 1). [GHz]

    def _check_relations(self) -> None:
        checks.count("noc.initiators", self.initiators, maximum=self.topology.nodes - 1)
        if self.topology.edge_widths:
            raise ValueError(
                "noc.topology.edge_widths must be left out, all links have the width noc.link_width, "
                f"got {self.topology.edge_widths!r}"
            )

    def flits(self, payload_bytes: Numeric) -> Numeric:
        """Return the flits of a NoC packet with that payload: header and payload over the link width."""
        return -(-(self.header_bytes + payload_bytes) // self.link_width)

    def network(self, **fields: Any) -> Noc:
        """Return one of the networks, with further fields of a `Noc`."""
        return Noc(topology=self.topology, routing=self.routing, router=self.router, **fields)

    @cached_property
    def structure(self) -> ProcessorNoc:
        """The same with all numbers that do not change who sends to whom on which path set to 1."""
        return replace(self, link_width=1, header_bytes=1, payload_bytes=1, clock_ghz=1.0)

    def networks(self, channels: int) -> Networks:
        """Return the network of requests and that of responses.

        Raises
        ------
        ValueError
            If there is no path, more than one for a pair of nodes, or packets could wait for each other
            in a circle.
        """
        return _networks(self.structure, int(channels))


@dataclass(frozen=True, kw_only=True, eq=False)
class Networks:
    """Flow tables of requests and responses; their rates say nothing."""

    # requests, responses: one flow for each initiator and channel.
    requests: FlowTable
    responses: FlowTable
    flow: IntArray  # the flow of a request to a channel; of a response from it

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the channels of either network: injection, links, ejection."""
        return self.requests.channel_names


def one_network(noc: ProcessorNoc, channels: int, *, responses: bool, mix: tuple[PacketClass, ...]) -> Noc:
    """Return one of the networks with even traffic: every source sends to every target alike."""
    nodes, engines = noc.topology.nodes, noc.initiators
    wanted = np.zeros((nodes, nodes))
    wanted[:engines, engines : engines + channels] = 1.0
    matrix = tuple(map(tuple, (wanted.T if responses else wanted).tolist()))
    return noc.network(traffic=RateMatrix(rates=matrix), injection_rate=0.0, mix=mix)


@lru_cache(maxsize=64)
def _networks(noc: ProcessorNoc, channels: int) -> Networks:
    engines = noc.initiators
    flow = np.zeros((2, engines, channels), dtype=np.int64)
    tables = []
    for number in range(2):
        network = one_network(noc, channels, responses=number == 1, mix=(PacketClass(flits=1),))
        table = network.flow_table()
        if table.source.size != engines * channels:
            raise ValueError(f"noc.routing must have one path for each pair of nodes, got {noc.routing!r}")
        circle = network.find_deadlock()
        if circle is not None:
            raise ValueError(
                f"noc.router.virtual_channels must be more for {noc.topology.kind}: packets could wait for "
                f"each other on {' '.join(circle)}, got {noc.router.virtual_channels!r}"
            )
        ends: Any = (table.source, table.target) if number == 0 else (table.target, table.source)
        flow[number, ends[0], ends[1] - engines] = np.arange(table.source.size)
        tables.append(table)
    flow.flags.writeable = False
    return Networks(requests=tables[0], responses=tables[1], flow=flow)


@dataclass(frozen=True, kw_only=True)
class PacketProcessor(Replaceable, Declared):
    """A store-and-forward packet processor.

    A packet arrives whole at a random packet engine, which does its table lookups one after
    the other (LLC slice, on a miss DRAM). The packet then joins the pointer memory's queue,
    where its segments take blocks from the free list one by one; each is sent over the request
    network as soon as it has its block and is written to DRAM. When the last write is done the
    packet is held for an exponential time (its turn at the egress scheduler), then joins the
    pointer memory's queue again; its segments are read one after the other on the order of a
    random engine and come back over the response network. With the last one the packet leaves
    and its blocks return to the free list's tail together.

    Raises
    ------
    ValueError
        If engines and channels together exceed the nodes, a segment does not fit a NoC packet,
        a row does not hold a whole number of segments, or a segment is not a block of the `DramSystem`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> processor = PacketProcessor()
    >>> narrow = replace(processor, noc=replace(processor.noc, link_width=8))
    >>> int(processor.segment_flits), int(narrow.segment_flits)
    (5, 9)
    """

    workload: Workload = field(default_factory=Workload)  # Packets, lookups and how long packets are held
    # The networks between packet engines and memory channels
    noc: ProcessorNoc = field(default_factory=ProcessorNoc)
    # Memory of packets and of the lookup table: banks that serve in order, or devices behind the controllers
    # of `qmodels.dram`, whose own traffic does not count; a segment of several of their blocks is an access
    # of as many bursts to one row. A write is done when its data are in the device, and an access is
    # unfinished until then, or until its data are there
    dram: Dram | DramSystem = field(default_factory=Dram)
    llc: Llc = field(default_factory=Llc)  # Cache slices that lookups go to first
    # Which blocks of the memory are free, and the pointer memory that says so
    free_list: FreeList = field(default_factory=FreeList)
    energy: Energy = field(default_factory=Energy)  # What events and parts are charged in energy
    cost: Cost = field(default_factory=Cost)  # What parts are charged in area

    metric_names: ClassVar[MetricNames] = MetricNames(
        both=(
            "packet_latency", "packet_latency_p99", "lookup_latency", "write_latency",
            "read_latency", "data_rate", "saturation_data_rate", "write_conflict_probability",
            "read_conflict_probability", "row_hit_ratio", "pointer_accesses_per_allocation",
            "max_pointer_accesses_per_allocation", "llc_hit_ratio", "overflow_probability",
            "blocking_probability", "max_utilization", "energy_per_packet", "cost",
        ),
    )  # fmt: skip

    def _check_relations(self) -> None:
        most = int(np.max(self.channels))
        name = "dram.geometry.channels" if isinstance(self.dram, DramSystem) else "dram.channels"
        if self.noc.initiators + most > self.noc.topology.nodes:
            nodes, engines = self.noc.topology.nodes, self.noc.initiators
            room = f"at most {nodes - engines} on {nodes} nodes"
            raise ValueError(f"{name} must leave a node for each of {engines} initiators: {room}, got {most}")
        segment, payload = self.workload.segment_bytes, self.noc.payload_bytes
        if np.any(np.asarray(segment) > payload):
            rule = f"at most noc.payload_bytes = {payload}"
            raise ValueError(f"workload.segment_bytes must be {rule}, got {segment}")
        if isinstance(self.dram, DramSystem):
            block = self.dram.geometry.block_bytes
            if np.ndim(segment) == 0 and segment > block and segment % block == 0:  # of several bursts
                object.__setattr__(self, "dram", self.dram.in_blocks(segment))
                block = segment
            if segment != block:
                rule = f"dram.geometry.block_bytes = {block}, one access a segment"
                raise ValueError(f"workload.segment_bytes must be {rule}, got {segment}")
        elif np.any(np.asarray(self.dram.row_bytes) % segment):
            rule = f"a multiple of workload.segment_bytes = {segment}"
            raise ValueError(f"dram.row_bytes must be {rule}, got {self.dram.row_bytes}")

    @property
    def segment_flits(self) -> int:
        """Flits of a NoC packet that carries a segment or a table line."""
        return self.noc.flits(self.workload.segment_bytes)

    @property
    def request_flits(self) -> int:
        """Flits of a read request."""
        return self.noc.flits(0)

    @property
    def channels(self) -> Numeric:
        """Memory channels."""
        return self.dram.geometry.channels if isinstance(self.dram, DramSystem) else self.dram.channels

    @property
    def banks(self) -> Numeric:
        """Banks of a channel, those of all its ranks."""
        return self.dram.geometry.channel_banks if isinstance(self.dram, DramSystem) else self.dram.banks

    @property
    def row_blocks(self) -> int:
        """Segments in a DRAM row."""
        if isinstance(self.dram, DramSystem):
            return self.dram.geometry.row_blocks
        return self.dram.row_bytes // self.workload.segment_bytes

    def locate(self, block: Any) -> tuple[Any, Any, Any]:
        """Return channel, bank and row of a block (an int or an integer array)."""
        if isinstance(self.dram, DramSystem):
            return self.dram.address_map.locate(block, self.dram.geometry)[:3]
        return self.dram.locate(block, self.row_blocks)

    def system(self) -> System:
        """Return the system of parts that the processor is, for `validate.simulate`; times are in ns.

        Lookups move lines when they are made, and not when the slice is done with them. Its stages
        (``stage_latency``) are those of `qmodels.systems.packets.packet_processor.STAGES`.

        Examples
        --------
        >>> system = PacketProcessor().system()
        >>> sorted(system.parts)
        ['dram', 'llc', 'pointers', 'requests', 'responses', 'slice']
        """
        return processor_system(self)

    @property
    def prices(self) -> tuple[Energy, Cost]:
        """Energy and area of parts; of a channel of a preset's devices theirs, where left at its default."""
        device = channel_price(self.dram) if isinstance(self.dram, DramSystem) else None
        if device is None:
            return self.energy, self.cost
        return (
            _where_default(
                self.energy,
                activation_nj=device.activation_nj,
                burst_nj=device.burst_nj,
                channel_mw=device.background_mw,
            ),
            _where_default(self.cost, channel=device.area_mm2),
        )

    @property
    def area(self) -> Numeric:
        """Area equivalent of all parts at their `Cost` [mm2]."""
        price, width, topology = self.prices[1], self.noc.link_width, self.noc.topology
        links = len(topology.links) + 2 * (self.noc.initiators + self.channels)
        slice_kib = self.llc.slice_lines * self.workload.segment_bytes / 1024
        return (
            self.channels * price.channel
            + topology.nodes * (price.router + width * price.router_per_byte)
            + links * width * price.wire_per_byte
            + self.llc.slices * slice_kib * price.slice_per_kib
            + self.free_list.segments * 8 / 2**20 * price.pointer_per_mib
            + (self.free_list.alloc_trial_count - 1) * price.trial
        )


def _where_default(price: Priced, **own: float) -> Priced:
    """Return prices with other ones where they are still the default of their class."""
    left = {name for name in own if np.array_equal(getattr(price, name), getattr(type(price), name))}
    return replace(price, **{name: own[name] for name in left})
