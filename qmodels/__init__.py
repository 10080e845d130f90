"""Analytical queueing models of on-chip memory systems and packet processors.

>>> import qmodels as qm
>>> bool(qm.solve(qm.PacketProcessor()).stable)
True
>>> round(float(qm.queues.mmc(arrival_rate=0.9, service_rate=0.5, servers=2).mean_waiting_time), 4)
8.5263

Verbs, kinds of systems and what most need stand here. The rest is in groups: `qm.queues` (single
stations), `qm.networks`, `qm.markov`, `qm.laws` (times), `qm.traffic` (arrivals, sizes, popularity, traces),
`qm.noc` (topologies, patterns, routers), `qm.memory`, `qm.packets` (parts of processors), `qm.steps` and
`qm.parts` (programs and parts of a `qm.System`), `qm.symbolic`; the explorer is `qm.optimize`, the
simulators are `qm.validate`, the studies `qm.cases`.
"""

# A package of qmodels-toolkit: `qmodels.beside` looks for this name.

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodels.systems.spec.lazy_names import attached

if TYPE_CHECKING:
    from qmodels import (
        cases,
        laws,
        markov,
        memory,
        networks,
        noc,
        optimize,
        packets,
        parts,
        queues,
        steps,
        symbolic,
        traffic,
        validate,
    )
    from qmodels.dispatch import bounds, solve
    from qmodels.interactive import what_if
    from qmodels.systems.cache.llc_processor import LlcProcessor
    from qmodels.systems.cache.spec import CacheLevel, CacheSystem
    from qmodels.systems.composed.flow import Flow
    from qmodels.systems.composed.parts import Tokens
    from qmodels.systems.composed.system import System
    from qmodels.systems.memory.dram_system import DramSystem, dram
    from qmodels.systems.memory.numa import NumaMachine
    from qmodels.systems.noc.spec import Noc
    from qmodels.systems.noc.topologies import crossbar, mesh, ring, spidergon, torus
    from qmodels.systems.packets.data_queueing import DataQueueing
    from qmodels.systems.packets.packet_processor import PacketProcessor
    from qmodels.systems.programs.messaging import MessageProgram
    from qmodels.systems.programs.work_queues import WorkQueues
    from qmodels.systems.spec.answer import Answer, load
    from qmodels.systems.stations.parts import JobClass, Station
    from qmodels.systems.stations.queueing_network import QueueingNetwork, single_station, tandem
    from qmodels.systems.traffic.trace import read_trace
    from qmodels.systems.traffic.workload import Workload

__all__ = [
    "Answer",
    "CacheLevel",
    "CacheSystem",
    "DataQueueing",
    "DramSystem",
    "Flow",
    "JobClass",
    "LlcProcessor",
    "MessageProgram",
    "Noc",
    "NumaMachine",
    "PacketProcessor",
    "QueueingNetwork",
    "Station",
    "System",
    "Tokens",
    "WorkQueues",
    "Workload",
    "cases",
    "bounds",
    "crossbar",
    "dram",
    "laws",
    "load",
    "markov",
    "memory",
    "mesh",
    "networks",
    "noc",
    "optimize",
    "packets",
    "parts",
    "queues",
    "read_trace",
    "ring",
    "single_station",
    "solve",
    "spidergon",
    "steps",
    "symbolic",
    "tandem",
    "torus",
    "traffic",
    "validate",
    "what_if",
]

GROUPS = ("queues", "networks", "markov", "laws", "traffic", "noc", "memory", "packets", "steps", "parts")

__getattr__, __dir__ = attached(__name__, __file__, __all__, GROUPS)
