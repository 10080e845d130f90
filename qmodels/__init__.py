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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from qmodels.dispatch import solve
    from qmodels.markov import *  # noqa: F403
    from qmodels.networks import *  # noqa: F403
    from qmodels.queues import *  # noqa: F403
    from qmodels.system_result import SystemResult
    from qmodels.systems import laws
    from qmodels.systems.arrivals import OnOff, Poisson, Recorded
    from qmodels.systems.budget import Cost, Energy
    from qmodels.systems.cache import CacheLevel, CacheSystem
    from qmodels.systems.data_queueing import DataQueueing
    from qmodels.systems.dram import Dram
    from qmodels.systems.dram_system import DramSystem, dram
    from qmodels.systems.dram_traffic import RandomBlocks, StridedBlocks
    from qmodels.systems.free_list import FreeList
    from qmodels.systems.injection import Bernoulli, bursts
    from qmodels.systems.llc import Llc
    from qmodels.systems.llc_processor import LlcProcessor
    from qmodels.systems.memory_map import InterleavedRegion, MemoryMap
    from qmodels.systems.messaging import MessageProgram
    from qmodels.systems.network_parts import JobClass, Station
    from qmodels.systems.noc import Noc
    from qmodels.systems.noc_memory import interleaved, transactions
    from qmodels.systems.noc_traffic import (
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
    from qmodels.systems.numa import NumaMachine
    from qmodels.systems.packet_processor import PacketProcessor
    from qmodels.systems.popularity import Empirical, Zipf
    from qmodels.systems.processor_noc import ProcessorNoc
    from qmodels.systems.queueing_network import QueueingNetwork, single_station, tandem
    from qmodels.systems.router import PacketClass, QosRule, Router
    from qmodels.systems.routes import SourceRoute
    from qmodels.systems.sizes import SizeLaw, bimodal, empirical, fixed, heavy_tailed, imix
    from qmodels.systems.topologies import (
        concentrated_mesh,
        crossbar,
        from_edge_file,
        mesh,
        ring,
        shared_bus,
        spidergon,
        torus,
    )
    from qmodels.systems.topology import Topology, from_graph
    from qmodels.systems.trace import Trace, read_trace
    from qmodels.systems.work_queues import WorkQueues
    from qmodels.systems.workload import Workload

_HOME = {
    "qmodels.dispatch": ("solve",),
    "qmodels.system_result": ("SystemResult",),
    "qmodels.systems.arrivals": ("OnOff", "Poisson", "Recorded"),
    "qmodels.systems.budget": ("Cost", "Energy"),
    "qmodels.systems.cache": ("CacheLevel", "CacheSystem"),
    "qmodels.systems.data_queueing": ("DataQueueing",),
    "qmodels.systems.dram": ("Dram",),
    "qmodels.systems.dram_traffic": (
        "RandomBlocks",
        "StridedBlocks",
    ),
    "qmodels.systems.popularity": ("Empirical", "Zipf"),
    "qmodels.systems.dram_system": ("DramSystem", "dram"),
    "qmodels.systems.free_list": ("FreeList",),
    "qmodels.systems.injection": ("Bernoulli", "bursts"),
    "qmodels.systems.llc": ("Llc",),
    "qmodels.systems.llc_processor": ("LlcProcessor",),
    "qmodels.systems.memory_map": ("InterleavedRegion", "MemoryMap"),
    "qmodels.systems.messaging": ("MessageProgram",),
    "qmodels.systems.network_parts": ("JobClass", "Station"),
    "qmodels.systems.noc": ("Noc",),
    "qmodels.systems.noc_memory": ("interleaved", "transactions"),
    "qmodels.systems.noc_traffic": (
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
    "qmodels.systems.numa": ("NumaMachine",),
    "qmodels.systems.packet_processor": ("PacketProcessor",),
    "qmodels.systems.processor_noc": ("ProcessorNoc",),
    "qmodels.systems.queueing_network": ("QueueingNetwork", "single_station", "tandem"),
    "qmodels.systems.router": ("PacketClass", "QosRule", "Router"),
    "qmodels.systems.routes": ("SourceRoute",),
    "qmodels.systems.sizes": ("SizeLaw", "bimodal", "empirical", "fixed", "heavy_tailed", "imix"),
    "qmodels.systems.topologies": (
        "concentrated_mesh",
        "crossbar",
        "from_edge_file",
        "mesh",
        "ring",
        "shared_bus",
        "spidergon",
        "torus",
    ),
    "qmodels.systems.topology": ("Topology", "from_graph"),
    "qmodels.systems.trace": ("Trace", "read_trace"),
    "qmodels.systems.work_queues": ("WorkQueues",),
    "qmodels.systems.workload": ("Workload",),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
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
    "SystemResult",
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
    home = _MODULE.get(name) or next((p for p in _PACKAGES if name in import_module(p).__all__), None)
    if home is None:
        raise AttributeError(f"module 'qmodels' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for package in _PACKAGES for name in import_module(package).__all__)})
