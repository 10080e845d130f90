"""Memories: DRAM systems and NUMA machines, and models of their waits, bandwidth and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodels.systems.spec.lazy_names import attached

if TYPE_CHECKING:
    from qmodels.systems.memory.dram_system import DramSystem
    from qmodels.systems.memory.dram_traffic import RandomBlocks, StridedBlocks
    from qmodels.systems.memory.memory_map import InterleavedRegion, MemoryMap
    from qmodels.systems.memory.numa import NumaMachine

__all__ = ["DramSystem", "InterleavedRegion", "MemoryMap", "NumaMachine", "RandomBlocks", "StridedBlocks"]

__getattr__, __dir__ = attached(__name__, __file__, __all__)
