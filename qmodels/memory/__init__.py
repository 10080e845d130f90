"""Memories: DRAM systems and NUMA machines, and models of their waits, bandwidth and limits."""

from __future__ import annotations

from qmodels.systems.memory.dram_system import DramSystem, RandomBlocks, StridedBlocks
from qmodels.systems.memory.memory_map import InterleavedRegion, MemoryMap
from qmodels.systems.memory.numa_system import NumaMachine

__all__ = ["DramSystem", "InterleavedRegion", "MemoryMap", "NumaMachine", "RandomBlocks", "StridedBlocks"]
