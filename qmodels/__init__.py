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

from qmodels.systems.spec.named import attached

GROUPS = ("queues", "networks", "markov", "laws", "traffic", "noc", "memory", "packets", "steps", "parts")

if TYPE_CHECKING:
    from qmodels import cases as cases
    from qmodels import laws as laws
    from qmodels import markov as markov
    from qmodels import memory as memory
    from qmodels import networks as networks
    from qmodels import noc as noc
    from qmodels import optimize as optimize
    from qmodels import packets as packets
    from qmodels import parts as parts
    from qmodels import queues as queues
    from qmodels import steps as steps
    from qmodels import symbolic as symbolic
    from qmodels import traffic as traffic
    from qmodels import validate as validate
    from qmodels.dispatch import bounds as bounds
    from qmodels.dispatch import solve as solve
    from qmodels.interactive import explore as explore
    from qmodels.interactive import presets as presets
    from qmodels.interactive import read as read
    from qmodels.interactive import size as size
    from qmodels.interactive import what_if as what_if
    from qmodels.optimize import Space as Space
    from qmodels.systems.cache.llc_processor import LlcProcessor as LlcProcessor
    from qmodels.systems.cache.spec import CacheLevel as CacheLevel
    from qmodels.systems.cache.spec import CacheSystem as CacheSystem
    from qmodels.systems.composed.flow import Flow as Flow
    from qmodels.systems.composed.parts import Tokens as Tokens
    from qmodels.systems.composed.system import System as System
    from qmodels.systems.memory.dram_system import DramSystem as DramSystem
    from qmodels.systems.memory.dram_system import dram as dram
    from qmodels.systems.memory.numa_system import NumaMachine as NumaMachine
    from qmodels.systems.noc.spec import Noc as Noc
    from qmodels.systems.noc.topology import crossbar as crossbar
    from qmodels.systems.noc.topology import mesh as mesh
    from qmodels.systems.noc.topology import ring as ring
    from qmodels.systems.noc.topology import spidergon as spidergon
    from qmodels.systems.noc.topology import torus as torus
    from qmodels.systems.packets.data_queueing import DataQueueing as DataQueueing
    from qmodels.systems.packets.packet_processor import PacketProcessor as PacketProcessor
    from qmodels.systems.programs.messaging import MessageProgram as MessageProgram
    from qmodels.systems.programs.work_queues import WorkQueues as WorkQueues
    from qmodels.systems.spec.answer import Answer as Answer
    from qmodels.systems.spec.answer import load as load
    from qmodels.systems.stations.parts import JobClass as JobClass
    from qmodels.systems.stations.parts import Station as Station
    from qmodels.systems.stations.queueing_network import QueueingNetwork as QueueingNetwork
    from qmodels.systems.stations.queueing_network import single_station as single_station
    from qmodels.systems.stations.queueing_network import tandem as tandem
    from qmodels.systems.traffic.arrivals import Workload as Workload
    from qmodels.systems.traffic.trace import read_trace as read_trace
    from qmodels.validate import compare as compare
    from qmodels.validate import simulate as simulate
else:
    __getattr__, __dir__, __all__ = attached(
        __name__,
        {
            "qmodels": (
                "cases laws markov memory networks noc optimize packets parts queues steps symbolic "
                "traffic validate"
            ),
            "qmodels.dispatch": "bounds solve",
            "qmodels.interactive": "explore presets read size what_if",
            "qmodels.optimize": "Space",
            "qmodels.systems.cache.llc_processor": "LlcProcessor",
            "qmodels.systems.cache.spec": "CacheLevel CacheSystem",
            "qmodels.systems.composed.flow": "Flow",
            "qmodels.systems.composed.parts": "Tokens",
            "qmodels.systems.composed.system": "System",
            "qmodels.systems.memory.dram_system": "DramSystem dram",
            "qmodels.systems.memory.numa_system": "NumaMachine",
            "qmodels.systems.noc.spec": "Noc",
            "qmodels.systems.noc.topology": "crossbar mesh ring spidergon torus",
            "qmodels.systems.packets.data_queueing": "DataQueueing",
            "qmodels.systems.packets.packet_processor": "PacketProcessor",
            "qmodels.systems.programs.messaging": "MessageProgram",
            "qmodels.systems.programs.work_queues": "WorkQueues",
            "qmodels.systems.spec.answer": "Answer load",
            "qmodels.systems.stations.parts": "JobClass Station",
            "qmodels.systems.stations.queueing_network": "QueueingNetwork single_station tandem",
            "qmodels.systems.traffic.trace": "read_trace",
            "qmodels.systems.traffic.arrivals": "Workload",
            "qmodels.validate": "compare simulate",
        },
        GROUPS,
    )
