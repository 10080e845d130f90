"""A packet processor of ports of 100 Gb/s whose pointer memory has banks, each with a free list of its own.

The chip of ``cases/systems/packet-processor-400g.toml``, of any number of ports: for each a row of the mesh,
whose links are twice as wide here, with a part of the forwarding table and two channels of DDR5-6400.
"""

from __future__ import annotations

from dataclasses import dataclass

from qmodels.systems.composed.system import System
from qmodels.systems.spec.text.toml import spec_from_toml
from qmodels.systems.traffic.sizes import imix

PORT_GBPS = 100
COLUMNS = 4
BLOCKS = 1_048_576
"""Blocks of 64 bytes in all lists together."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is chosen."""

    gbps: int = 800  # line rate, a multiple of 100 [Gb/s]
    banks: int = 8  # banks of the pointer memory, each a memory of its own of one access a cycle
    trials: int = 1  # head blocks examined for a segment, at most
    # Most segments of a packet that uses the two lists for small packets; 0 keeps one list a bank.
    small: int = 0
    clock_ghz: float = 1.0  # of the pointer memory: 2 stands for two ports at 1 GHz [GHz]
    load: float = 1.0  # share of the line rate that arrives


def processor(design: Design) -> System:
    """Return the system of a design.

    Packets of a port go round the banks in turn, flow by flow: with more banks than ports a port has several
    flows, with fewer several ports share a bank.
    """
    ports = design.gbps // PORT_GBPS
    flows = max(ports, design.banks)
    rate = design.load * design.gbps / (8 * imix().mean_bytes) / flows
    lists = [_pointers(design, bank) for bank in range(design.banks)]
    streams = [_flow(flow, flow % ports, flow % design.banks, rate) for flow in range(flows)]
    system: System = spec_from_toml("\n".join([_chip(ports), *lists, *streams]))
    return system


def _chip(ports: int) -> str:
    first = [COLUMNS * row for row in range(ports)]
    dram = [node + column for node in first for column in (2, 3)]
    return f"""
kind = "system"
[parts.mesh]
topology = "mesh {ports} {COLUMNS}"
link_width = 64
clock_ghz = 1.5
[parts.dram]
preset = "DDR5-6400"
geometry = {{ channels = {2 * ports} }}
[parts.table]
popularity = {{ entries = 200000, exponent = 0.9 }}
entries_per_line = 4
shared = {{ lines = {4096 * ports}, slices = {ports}, hashing = "mixed" }}
[place]
table = {[node + 1 for node in first]}
dram = {dram}
"""


def _pointers(design: Design, bank: int) -> str:
    return f"""
[parts.pointers-{bank}]
kind = "free-list"
segments = {BLOCKS // design.banks}
alloc_trial_count = {design.trials}
small_packet_segments = {design.small}
clock_ghz = {design.clock_ghz}
"""


def _flow(flow: int, port: int, bank: int, rate: float) -> str:
    return f"""
[[flows]]
name = "flow-{flow}"
arrivals = "poisson"
rate = {rate!r}
at = {COLUMNS * port}
sizes = "imix"
program = \"\"\"
lookup table reply_bytes=16 hit {{ hold 4 }} miss {{ hold 4; read dram }}
allocate pointers-{bank} segments
write dram segments allocated
hold exponential(mean=2000) counted=false
read dram segments allocated
free pointers-{bank}
\"\"\"
"""
