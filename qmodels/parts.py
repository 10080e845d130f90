"""Parts of a `qmodels.System`, and the base classes of a part of one's own.

A part that jobs visit is a frozen dataclass that is a `ServingPart`: its ``served`` is the closed form, its
``service`` the simulation.
"""

from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.parts import Offered, Served, Service, ServingPart, Tokens, part_types
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.memory.memory_map import BankedChannels
from qmodels.systems.noc.spec import Noc
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station

__all__ = [
    "BankedChannels",
    "CacheSystem",
    "DramSystem",
    "FreeList",
    "Noc",
    "Offered",
    "Served",
    "Service",
    "ServingPart",
    "Station",
    "Tokens",
    "part_types",
]
