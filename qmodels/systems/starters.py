"""A small example of each kind of system whose fields have no defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmodels.systems.cache.spec import CacheLevel, CacheSystem
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Exponential
from qmodels.systems.memory.dram_system import dram
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topology import mesh
from qmodels.systems.programs.collectives import gather
from qmodels.systems.programs.messaging import MessageProgram
from qmodels.systems.stations.parts import JobClass, Station
from qmodels.systems.stations.queueing_network import QueueingNetwork
from qmodels.systems.traffic.arrivals import Poisson


def small_network() -> QueueingNetwork:
    """Return a processor with a disk behind it."""
    return QueueingNetwork(
        stations=[
            Station(name="cpu", service=Exponential(mean=0.5)),
            Station(name="disk", service=Exponential(mean=1.4), servers=2),
        ],
        classes=[JobClass(arrivals=Exponential(mean=1.0))],
        routing={"cpu": "disk"},
    )


def small_cache() -> CacheSystem:
    """Return four cores, each with a cache of its own before a shared one."""
    own, shared = CacheLevel(lines=256), CacheLevel(lines=4096, slices=4)
    return CacheSystem(cores=4, private=(own,), shared=shared)


def small_system() -> System:
    """Return two engines on a mesh that read a table in DRAM, at most eight requests at a time."""
    return System(
        parts={
            "mesh": Noc(topology=mesh(2, 2)),
            "dram": dram("DDR4-3200"),
            "engine": Station(service=Exponential(mean=10.0), servers=2),
            "requests": Tokens(count=8),
        },
        place={"dram": [3]},
        flows=[
            Flow(
                name="lookups",
                arrivals=Poisson(),
                rate=0.05,
                at=[0, 1],
                program="visit engine\nacquire requests\nread dram\nrelease requests",
            )
        ],
    )


STARTERS: dict[str, Callable[[], Any]] = {
    "queueing-network": small_network,
    "noc": lambda: Noc(injection_rate=0.02),
    "message-program": lambda: MessageProgram(topology=mesh(2, 2), processes=gather(processes=4, words=64)),
    "dram": lambda: dram("DDR4-3200"),
    "cache": small_cache,
    "system": small_system,
}
"""By the name of the kind."""
