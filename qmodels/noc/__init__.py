"""Networks-on-chip: their parts, and models of waits, saturation, closed loops, power and messages."""

from __future__ import annotations

from qmodels.systems.memory.memory_map import InterleavedRegion, MemoryMap
from qmodels.systems.noc.flows import Bernoulli, bursts
from qmodels.systems.noc.memory import interleaved, transactions
from qmodels.systems.noc.patterns import (
    bit_complement,
    hotspot,
    neighbour,
    permutation,
    rate_matrix,
    task_graph,
    tornado,
    transpose,
    uniform,
)
from qmodels.systems.noc.router import PacketClass, QosRule, Router
from qmodels.systems.noc.routes import SourceRoute
from qmodels.systems.noc.spec import Noc, cxl_pool
from qmodels.systems.noc.topology import (
    Topology,
    concentrated_mesh,
    crossbar,
    from_graph,
    mesh,
    ring,
    shared_bus,
    spidergon,
    torus,
)

__all__ = [
    "Bernoulli",
    "InterleavedRegion",
    "MemoryMap",
    "Noc",
    "PacketClass",
    "QosRule",
    "Router",
    "SourceRoute",
    "Topology",
    "bit_complement",
    "bursts",
    "concentrated_mesh",
    "crossbar",
    "cxl_pool",
    "from_graph",
    "hotspot",
    "interleaved",
    "mesh",
    "neighbour",
    "permutation",
    "rate_matrix",
    "ring",
    "shared_bus",
    "spidergon",
    "task_graph",
    "tornado",
    "torus",
    "transactions",
    "transpose",
    "uniform",
]
