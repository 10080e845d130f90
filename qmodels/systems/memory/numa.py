"""A NUMA chip whose cores work on blocks that DMA channels fetch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.composed.system import System
from qmodels.systems.memory.numa_parts import BlockWork, DmaEngine, NumaChip
from qmodels.systems.memory.numa_system import numa_system
from qmodels.systems.spec.fields import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, positive


@dataclass(frozen=True, kw_only=True)
class NumaMachine(Replaceable, Declared):
    """Cores, memories and DMA channels, and the work they do.

    Parameters
    ----------
    chip : NumaChip
        Cores and memory controllers on their network.
    dma : DmaEngine
        Channels, their costs, and which core uses which.
    work : BlockWork
        What the cores do, and where its data lie.
    clock_ghz : float
        Clock of all cycles in the parts. [GHz]

    Raises
    ------
    ValueError
        If the parts do not fit: a list of the work or the engine has not one entry for each core, or
        names a memory that is not there.

    Examples
    --------
    >>> machine = NumaMachine(work=BlockWork(placement="all"))
    >>> machine.memories_of(5), machine.steps_of(5)
    ((1, 2, 3, 0), 256)
    >>> NumaMachine().memories_of(5)
    (1,)
    """

    chip: NumaChip = field(default_factory=NumaChip)
    dma: DmaEngine = field(default_factory=DmaEngine)
    work: BlockWork = field(default_factory=BlockWork)
    clock_ghz: float = positive(1.0)

    metric_names: ClassVar[MetricNames] = MetricNames(
        (
            "execution_time", "step_time", "transfer_time", "channel_wait", "bandwidth",
            "controller_utilization", "channel_utilization", "core_utilization", "switch_ratio",
        )
    )  # fmt: skip

    def _check_relations(self) -> None:
        lists = {
            "dma.core_channels": self.dma.core_channels,
            "work.core_steps": self.work.core_steps,
            "work.memories": self.work.memories,
        }
        for name, entries in lists.items():
            if entries and len(entries) != self.chip.cores:
                raise ValueError(
                    f"{name} must have one entry for each of {self.chip.cores} cores, got {len(entries)}"
                )
        for row in self.work.memories:
            for memory in row:
                if memory >= self.chip.memories:
                    raise ValueError(
                        f"work.memories must be from 0 to {self.chip.memories - 1}, got {memory!r}"
                    )

    def system(self) -> System:
        """Return the system of parts that the machine is; times are in ns.

        Examples
        --------
        >>> system = NumaMachine().system()
        >>> len(system.flows), system.parts["channel-0"]
        (16, Tokens(count=1, turning=0.0))
        """
        return numa_system(self)

    def memories_of(self, core: int) -> tuple[int, ...]:
        """Return the memories that the blocks of a core are in, in turn."""
        match self.work.placement:
            case "one":
                return (0,)
            case "all":
                count = self.chip.memories
                return tuple((core + k) % count for k in range(count))
            case "clustered":
                return (self.chip.nearest(core),)
            case _:
                return self.work.memories[core]

    def steps_of(self, core: int) -> int:
        """Return the number of blocks of a core."""
        return self.work.core_steps[core] if self.work.core_steps else self.work.steps

    @property
    def transfers(self) -> tuple[int, ...]:
        """Accesses of the commands of one block: its fetch, and the write of its result if any."""
        sizes = (self.work.read_bytes, self.work.write_bytes)
        return tuple(-(-size // self.chip.access_bytes) for size in sizes if size)

    @property
    def own_cycles(self) -> float:
        """Mean time of a core per block without its loads from global memory. [cycles]."""
        work, chip = self.work, self.chip
        hit, miss = 1 - work.local_miss_ratio, work.local_miss_ratio
        local = hit * chip.local_cycles + miss * chip.local_miss_cycles
        return work.compute_cycles + work.scratchpad_loads * chip.scratchpad_cycles + work.local_loads * local

    def accesses_of_memories(self) -> FloatArray:
        """Return the accesses of all the work at each memory: commands and the cores' own loads."""
        found = np.zeros(self.chip.memories)
        each = sum(self.transfers) + self.work.global_loads
        for core in range(self.chip.cores):
            places = self.memories_of(core)
            for k, memory in enumerate(places):
                found[memory] += each * ((self.steps_of(core) - k + len(places) - 1) // len(places))
        return found
