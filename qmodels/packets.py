"""The parts of packet processors: networks, DRAM channels, slices, free lists, and what they cost."""

from qmodels.systems.cache.spec import Llc
from qmodels.systems.memory.dram_system import Dram
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.packets.packet_processor import Cost, Energy, PacketProcessor, ProcessorNoc

__all__ = [
    "Cost",
    "DataQueueing",
    "Dram",
    "Energy",
    "FreeList",
    "Llc",
    "PacketProcessor",
    "ProcessorNoc",
]
