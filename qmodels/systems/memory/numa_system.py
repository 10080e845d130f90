"""A NUMA machine as a system of parts: what its cores, channels and controllers are, and what a core does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.steps import Acquire, Fork, Hold, Release, Repeat, Visit
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Deterministic, Gamma
from qmodels.systems.memory.numa_parts import BlockWork, DmaEngine, NumaChip
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, positive
from qmodels.systems.stations.parts import Station


def numa_system(machine: Any) -> System:
    """Return the system that a `NumaMachine` is.

    A core is a flow of one job that runs once: its program is all its work. Controllers and cores are
    stations, ways between them pass as time, channels are pools of one token (of all, where any will do)
    that turn from memory to memory. Where a core loads from global memory, a pool of one token is held
    while it computes and waits.
    """
    working = [core for core in range(machine.chip.cores) if machine.steps_of(core)]
    makers = {core: _Core(machine, core) for core in working}
    parts: dict[str, Any] = {}
    for core, maker in makers.items():
        if maker.computes:
            parts[core_name(core)] = Station(service={core_name(core): maker.law})
        if maker.held:
            parts[loading_name(core)] = Tokens(count=1)
    turning = machine.dma.switch_cycles / machine.clock_ghz
    count = machine.dma.channels if machine.dma.assignment == "any" else 1
    for channel in sorted({maker.channel for maker in makers.values()}):
        parts[channel_name(channel)] = Tokens(count=count, turning=turning)
    service = Deterministic(mean=machine.chip.controller_cycles / machine.clock_ghz)
    for memory in sorted(
        {memory for core in working for memory in machine.memories_of(core)[: machine.steps_of(core)]}
    ):
        parts[memory_name(memory)] = Station(service=service)
    flows = [Flow(name=core_name(c), population=1, rounds=1, program=makers[c].program()) for c in working]
    return System(parts=parts, flows=flows)


def core_name(core: int) -> str:
    """Return the name of the flow of a core, and of its station."""
    return f"core-{core}"


def loading_name(core: int) -> str:
    """Return the name of what a core holds that computes and loads."""
    return f"loading-{core}"


def channel_name(channel: int) -> str:
    """Return the name of a channel; of all, -1, where any will do."""
    return f"channel-{channel}" if channel >= 0 else "channels"


def memory_name(memory: int) -> str:
    """Return the name of a memory controller."""
    return f"memory-{memory}"


@dataclass(frozen=True)
class _Core:
    """One core of a machine: it writes the program."""

    machine: Any
    core: int
    known: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)

    @property
    def channel(self) -> int:
        channels: tuple[int, ...] = self.machine.dma.channels_of(self.machine.chip.cores)
        return channels[self.core]

    @property
    def fixed(self) -> float:
        """Time of a core between two loads besides its random computing. [cycles]."""
        work = self.machine.work
        random = work.compute_cycles if work.compute_scv else self.machine.own_cycles
        return float(self.machine.own_cycles - random) / (work.global_loads + 1)

    @property
    def law(self) -> Deterministic | Gamma:
        """Computing between two loads, the same between all of a block."""
        work = self.machine.work
        mean = (self.machine.own_cycles / (work.global_loads + 1) - self.fixed) / self.machine.clock_ghz
        return Gamma(mean=mean, scv=work.compute_scv) if work.compute_scv else Deterministic(mean=mean)

    @property
    def computes(self) -> bool:
        return bool(self.law.mean > 0)

    @property
    def held(self) -> bool:
        return bool(self.machine.work.global_loads or self.fixed)

    def program(self) -> tuple[Any, ...]:
        """Return all that the core does."""
        steps, places = self.machine.steps_of(self.core), len(self.machine.memories_of(self.core))
        if not self.machine.work.double_buffering:
            return self._rounds(0, steps, places)
        first = self._fetch(0)
        if steps == 1:
            return (*first, *self._compute(0), *self._write(0))
        last = (*self._block(steps - 1, fetch=False), *self._write(steps - 1))
        return (*first, *self._block(0, write=False), *self._rounds(1, steps - 1, places), *last)

    def _rounds(self, first: int, end: int, places: int) -> tuple[Any, ...]:
        """Return the blocks from the first up to the end, which lie in n places in turn."""
        blocks = [self._block(k) for k in range(first, first + places)]
        rounds, rest = divmod(max(end - first, 0), places)
        whole = [step for block in blocks for step in block]
        done = () if not rounds else tuple(whole) if rounds == 1 else (Repeat(tuple(whole), rounds),)
        return (*done, *(step for block in blocks[:rest] for step in block))

    def _block(self, block: int, *, fetch: bool = True, write: bool = True) -> tuple[Any, ...]:
        """Return the steps of a block."""
        if not self.machine.work.double_buffering:
            return (*self._fetch(block), *self._compute(block), *self._write(block))
        commands = (*(self._fetch(block + 1) if fetch else ()), *(self._write(block - 1) if write else ()))
        computing = self._compute(block)
        return (Fork((computing, commands)),) if commands and computing else commands + computing

    def _memory(self, block: int) -> int:
        places = self.machine.memories_of(self.core)
        return int(places[block % len(places)])

    def _way(self, memory: int) -> float:
        return float(self.machine.chip.way_cycles(self.core, memory))

    def _fetch(self, block: int) -> tuple[Any, ...]:
        return self._command(block, self.machine.transfers[0])

    def _write(self, block: int) -> tuple[Any, ...]:
        return self._command(block, self.machine.transfers[1]) if len(self.machine.transfers) > 1 else ()

    def _command(self, block: int, accesses: int) -> tuple[Any, ...]:
        key = self._memory(block), accesses
        if key not in self.known:
            self.known[key] = self._moved(*key)
        return self.known[key]

    def _moved(self, memory: int, accesses: int) -> tuple[Any, ...]:
        """Return the steps of a command: one access after the other by a channel."""
        channel = channel_name(self.channel)
        way, there = self._way(memory), Visit(memory_name(memory))
        between = self._times((there, *self._hold(way)), accesses - 1)
        return (
            Acquire(channel, use=memory_name(memory)),
            # Apart from the way: equal times then come about alike, and cores in step stay in their order.
            *self._hold(self.machine.dma.setup_cycles),
            *self._hold(way / 2),
            *between,
            there,
            *self._hold(way / 2),
            Release(channel),
        )

    def _compute(self, block: int) -> tuple[Any, ...]:
        """Return the steps of computing a block, with the core's own loads of it."""
        name, loads = core_name(self.core), self.machine.work.global_loads
        first, again = ((Visit(name, same=same),) if self.computes else () for same in (False, True))
        steps = (*first, *self._hold(self.fixed))
        if loads:
            memory = self._memory(block)
            way, there = self._way(memory), Visit(memory_name(memory))
            load = (there, *self._hold(way / 2), *again)
            on_the_way = self._hold(self.fixed + way / 2)
            between = self._times((*load, *on_the_way), loads - 1)
            steps = (*first, *on_the_way, *between, *load, *self._hold(self.fixed))
        if not self.held:
            return steps
        return (Acquire(loading_name(self.core)), *steps, Release(loading_name(self.core)))

    def _hold(self, cycles: float) -> tuple[Any, ...]:
        return (Hold(Deterministic(mean=cycles / self.machine.clock_ghz)),) if cycles > 0 else ()

    @staticmethod
    def _times(steps: tuple[Any, ...], count: int) -> tuple[Any, ...]:
        return (Repeat(steps, count),) if count > 1 else steps * count


@dataclass(frozen=True, kw_only=True)
class NumaMachine(Replaceable, Declared):
    """Cores, memories and DMA channels, and the work they do.

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

    chip: NumaChip = field(default_factory=NumaChip)  # Cores and memory controllers on their network
    dma: DmaEngine = field(default_factory=DmaEngine)  # Channels, their costs, and which core uses which
    work: BlockWork = field(default_factory=BlockWork)  # What the cores do, and where its data lie
    clock_ghz: float = positive(1.0)  # Clock of all cycles in the parts. [GHz]

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
