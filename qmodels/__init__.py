"""Analytical queueing models of on-chip memory systems and packet processors.

>>> import qmodels as qm
>>> processor = qm.PacketProcessor()
>>> bool(qm.solve(processor).stable)
True
>>> round(float(qm.mmc(arrival_rate=0.9, service_rate=0.5, servers=2).mean_waiting_time), 4)
8.5263
"""

# A package of qmodels-toolkit: `import cases` looks for this line.

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qmodels.answer import Answer
    from qmodels.dispatch import solve
    from qmodels.markov import *  # noqa: F403
    from qmodels.networks import *  # noqa: F403
    from qmodels.queues import *  # noqa: F403
    from qmodels.systems import laws
    from qmodels.systems.cache.llc import Llc
    from qmodels.systems.cache.llc_processor import LlcProcessor
    from qmodels.systems.cache.spec import CacheLevel, CacheSystem
    from qmodels.systems.memory.dram import Dram
    from qmodels.systems.memory.dram_system import DramSystem, dram
    from qmodels.systems.memory.dram_traffic import RandomBlocks, StridedBlocks
    from qmodels.systems.memory.memory_map import InterleavedRegion, MemoryMap
    from qmodels.systems.memory.numa import NumaMachine
    from qmodels.systems.noc.injection import Bernoulli, bursts
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
    from qmodels.systems.noc.spec import Noc
    from qmodels.systems.noc.topologies import (
        concentrated_mesh,
        crossbar,
        from_edge_file,
        mesh,
        ring,
        shared_bus,
        spidergon,
        torus,
    )
    from qmodels.systems.noc.topology import Topology, from_graph
    from qmodels.systems.packets.budget import Cost, Energy
    from qmodels.systems.packets.data_queueing import DataQueueing
    from qmodels.systems.packets.free_list import FreeList
    from qmodels.systems.packets.packet_processor import PacketProcessor
    from qmodels.systems.packets.processor_noc import ProcessorNoc
    from qmodels.systems.programs.messaging import MessageProgram
    from qmodels.systems.programs.work_queues import WorkQueues
    from qmodels.systems.stations.parts import JobClass, Station
    from qmodels.systems.stations.queueing_network import QueueingNetwork, single_station, tandem
    from qmodels.systems.traffic.arrivals import OnOff, Poisson, Recorded
    from qmodels.systems.traffic.popularity import Empirical, Zipf
    from qmodels.systems.traffic.sizes import SizeLaw, bimodal, empirical, fixed, heavy_tailed, imix
    from qmodels.systems.traffic.trace import Trace, read_trace
    from qmodels.systems.traffic.workload import Workload

_HOME = {
    "qmodels.answer": ("Answer",),
    "qmodels.dispatch": ("solve",),
    "qmodels.systems.traffic.arrivals": ("OnOff", "Poisson", "Recorded"),
    "qmodels.systems.packets.budget": ("Cost", "Energy"),
    "qmodels.systems.cache.spec": ("CacheLevel", "CacheSystem"),
    "qmodels.systems.packets.data_queueing": ("DataQueueing",),
    "qmodels.systems.memory.dram": ("Dram",),
    "qmodels.systems.memory.dram_traffic": (
        "RandomBlocks",
        "StridedBlocks",
    ),
    "qmodels.systems.traffic.popularity": ("Empirical", "Zipf"),
    "qmodels.systems.memory.dram_system": ("DramSystem", "dram"),
    "qmodels.systems.packets.free_list": ("FreeList",),
    "qmodels.systems.noc.injection": ("Bernoulli", "bursts"),
    "qmodels.systems.cache.llc": ("Llc",),
    "qmodels.systems.cache.llc_processor": ("LlcProcessor",),
    "qmodels.systems.memory.memory_map": ("InterleavedRegion", "MemoryMap"),
    "qmodels.systems.programs.messaging": ("MessageProgram",),
    "qmodels.systems.stations.parts": ("JobClass", "Station"),
    "qmodels.systems.noc.spec": ("Noc",),
    "qmodels.systems.noc.memory": ("interleaved", "transactions"),
    "qmodels.systems.noc.patterns": (
        "bit_complement",
        "hotspot",
        "neighbour",
        "permutation",
        "rate_matrix",
        "task_graph",
        "tornado",
        "transpose",
        "uniform",
    ),
    "qmodels.systems.memory.numa": ("NumaMachine",),
    "qmodels.systems.packets.packet_processor": ("PacketProcessor",),
    "qmodels.systems.packets.processor_noc": ("ProcessorNoc",),
    "qmodels.systems.stations.queueing_network": ("QueueingNetwork", "single_station", "tandem"),
    "qmodels.systems.noc.router": ("PacketClass", "QosRule", "Router"),
    "qmodels.systems.noc.routes": ("SourceRoute",),
    "qmodels.systems.traffic.sizes": ("SizeLaw", "bimodal", "empirical", "fixed", "heavy_tailed", "imix"),
    "qmodels.systems.noc.topologies": (
        "concentrated_mesh",
        "crossbar",
        "from_edge_file",
        "mesh",
        "ring",
        "shared_bus",
        "spidergon",
        "torus",
    ),
    "qmodels.systems.noc.topology": ("Topology", "from_graph"),
    "qmodels.systems.traffic.trace": ("Trace", "read_trace"),
    "qmodels.systems.programs.work_queues": ("WorkQueues",),
    "qmodels.systems.traffic.workload": ("Workload",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Answer",
    "Bernoulli",
    "CacheLevel",
    "CacheSystem",
    "Cost",
    "DataQueueing",
    "Dram",
    "DramSystem",
    "Empirical",
    "Energy",
    "FreeList",
    "InterleavedRegion",
    "JobClass",
    "Llc",
    "LlcProcessor",
    "MemoryMap",
    "MessageProgram",
    "Noc",
    "NumaMachine",
    "OnOff",
    "PacketClass",
    "PacketProcessor",
    "Poisson",
    "ProcessorNoc",
    "QosRule",
    "QueueingNetwork",
    "RandomBlocks",
    "Recorded",
    "Router",
    "SizeLaw",
    "SourceRoute",
    "Station",
    "StridedBlocks",
    "Topology",
    "Trace",
    "WorkQueues",
    "Workload",
    "Zipf",
    "bimodal",
    "bit_complement",
    "bursts",
    "concentrated_mesh",
    "crossbar",
    "dram",
    "empirical",
    "fixed",
    "from_edge_file",
    "from_graph",
    "heavy_tailed",
    "hotspot",
    "imix",
    "interleaved",
    "laws",
    "mesh",
    "neighbour",
    "permutation",
    "rate_matrix",
    "read_trace",
    "ring",
    "shared_bus",
    "single_station",
    "solve",
    "spidergon",
    "tandem",
    "task_graph",
    "tornado",
    "torus",
    "transactions",
    "transpose",
    "uniform",
]


_PACKAGES = ("qmodels.queues", "qmodels.markov", "qmodels.networks")
"""Packages of which every public function is a name of this one as well."""


def __getattr__(name: str) -> Any:
    """Import a public name where it is first used, so that ``import qmodels`` stays light."""
    if name.startswith("_"):
        raise AttributeError(f"module 'qmodels' has no attribute {name!r}")
    if name == "laws":
        return import_module("qmodels.systems.laws")
    home = _MODULE.get(name)
    if home is None and find_spec(f"qmodels.{name}") is None:  # a module is imported, not looked for
        home = next((package for package in _PACKAGES if name in import_module(package).__all__), None)
    if home is None:
        raise AttributeError(f"module 'qmodels' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for package in _PACKAGES for name in import_module(package).__all__)})
