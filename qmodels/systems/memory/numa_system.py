"""A NUMA machine as a system of parts: what its cores, channels and controllers are, and what a core does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.steps import Acquire, Fork, Hold, Release, Repeat, Visit
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Deterministic, Gamma
from qmodels.systems.noc.topology import Topology
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, choice, count, nonnegative, positive, probability
from qmodels.systems.stations.parts import Station

ASSIGNMENTS = ("paired", "enumerated", "any", "custom")
PLACEMENTS = ("one", "all", "clustered", "per-core")
QUADRANTS = (0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15)


@dataclass(frozen=True, kw_only=True)
class NumaChip(Declared, prefix="chip."):
    """Cores and memory controllers on a network whose only effect is the length of the way.

    An access takes ``hop_cycles`` for each router on its way (half of it there, half back) and
    ``controller_cycles`` of its controller, which serves one access at a time in order of arrival.
    The cluster of a core is that of its nearest memory.

    Raises
    ------
    ValueError
        If a number is out of range, a node is not in the network, or the matrix has another shape.

    References
    ----------
    .. [1] Master's thesis on task and data placement for the Samsung 16-SRP prototype, Computer Systems
       and Platforms Laboratory, Seoul National University (the paper of the case ``srp``).

    Examples
    --------
    >>> chip = NumaChip()
    >>> chip.clusters
    (0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3)
    >>> [round(chip.numa_factor(2, memory), 3) for memory in range(4)]
    [1.0, 1.375, 1.125, 1.5]
    """

    # Network; the routers on a way are the nodes of its route, both ends included
    topology: Topology = field(default_factory=lambda: Topology(kind="mesh", nodes=16))
    # Node of each core ([1]_ ch. 3: 16 in four clusters; our assumption: cluster k is a quadrant)
    core_nodes: tuple[int, ...] = QUADRANTS
    # Node that each controller is attached to ([1]_: pairs on two opposing sides; our assumption: in the
    # middle of the sides, which makes the memory on the same side the nearest remote one, as [1]_ says)
    memory_nodes: tuple[int, ...] = (4, 7, 8, 11)
    controller_cycles: float = positive(35.0)  # Time a controller is busy with one access. [cycles]
    # Round trip through one router (our default, a seventh of the controller's time, gives the NUMA factors
    # 1.1 to 1.5 of [1]_ at both ends). [cycles]
    hop_cycles: float = nonnegative(5.0)
    access_bytes: int = count(64)  # Bytes of one access (our assumption: 64). [bytes]
    # scratchpad_cycles, local_cycles: Load from the core's scratchpad and from its cache for local data (our
    # default for the cache: as the scratchpad). [cycles]
    scratchpad_cycles: float = nonnegative(10.0)
    local_cycles: float = nonnegative(10.0)
    # Load of local data that misses in the cache ([1]_ sec. 5.1: five times the scratchpad). [cycles]
    local_miss_cycles: float = nonnegative(50.0)
    # Uncongested time of an access from each core (row) to each memory, in units of that over a single
    # router; at least 1. Empty: from the route
    numa_factors: tuple[tuple[float, ...], ...] = ()

    def _check_relations(self) -> None:
        for name in ("core_nodes", "memory_nodes"):
            nodes = getattr(self, name)
            if not nodes:
                raise ValueError(f"chip.{name} must name at least one node, got {nodes!r}")
            checks.count(f"chip.{name}", nodes, minimum=0, maximum=int(self.topology.nodes) - 1)
        if self.numa_factors:
            shape = {len(row) for row in self.numa_factors}
            if len(self.numa_factors) != self.cores or shape != {self.memories}:
                raise ValueError(
                    f"chip.numa_factors must have {self.cores} rows of {self.memories} numbers, "
                    f"got {len(self.numa_factors)} rows of {', '.join(map(str, sorted(shape)))}"
                )
            for row in self.numa_factors:
                checks.at_least("chip.numa_factors", row, 1.0)
                checks.finite("chip.numa_factors", row)

    @property
    def cores(self) -> int:
        """Number of cores."""
        return len(self.core_nodes)

    @property
    def memories(self) -> int:
        """Number of memory controllers."""
        return len(self.memory_nodes)

    def way_cycles(self, core: int, memory: int) -> float:
        """Return the time of an access outside the controller. [cycles]."""
        if self.numa_factors:
            nearest = self.controller_cycles + self.hop_cycles
            return nearest * self.numa_factors[core][memory] - self.controller_cycles
        routers = len(self.topology.route(self.core_nodes[core], self.memory_nodes[memory]))
        return self.hop_cycles * routers

    def access_cycles(self, core: int, memory: int) -> float:
        """Return the time of an access that meets no other. [cycles]."""
        return self.controller_cycles + self.way_cycles(core, memory)

    def nearest(self, core: int) -> int:
        """Return the nearest memory of a core, the first of equals."""
        return min(range(self.memories), key=lambda memory: self.way_cycles(core, memory))

    def numa_factor(self, core: int, memory: int) -> float:
        """Return the time of an access in units of that to the core's nearest memory."""
        return self.access_cycles(core, memory) / self.access_cycles(core, self.nearest(core))

    @property
    def clusters(self) -> tuple[int, ...]:
        """Cluster of each core."""
        return tuple(self.nearest(core) for core in range(self.cores))


@dataclass(frozen=True, kw_only=True)
class DmaEngine(Declared, prefix="dma."):
    """Channels that copy blocks between a memory and scratchpads, one access after the other.

    A channel carries out one command at a time in order of arrival: it is set up, pays for turning to
    another memory than that of its last command, and then has one access under way at a time.

    Raises
    ------
    ValueError
        If a number is out of range or channels are listed with another assignment.

    References
    ----------
    .. [1] See `NumaChip`.

    Examples
    --------
    >>> DmaEngine().channels_of(16)
    (0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)
    >>> DmaEngine(assignment="enumerated").channels_of(16)[7:10]
    (7, 0, 1)
    """

    channels: int = count(8, maximum=65_536)  # Channels ([1]_ ch. 3: 8)
    setup_cycles: float = nonnegative(100.0)  # Time to begin a command, whatever its size. [cycles]
    # Further time to begin one at another memory than the last. [cycles]
    switch_cycles: float = nonnegative(0.0)
    # Channel of core k of n: ``k // ceil(n / channels)``; ``k % channels``; a free one for each command, one
    # that turns to no other memory if there is; or as `core_channels` says
    assignment: str = choice("paired", ASSIGNMENTS)
    core_channels: tuple[int, ...] = ()  # Channel of each core for "custom"

    def _check_relations(self) -> None:
        if (self.assignment == "custom") != bool(self.core_channels):
            raise ValueError(
                f"dma.core_channels must be given for a custom assignment and no other, "
                f"got {self.core_channels!r}"
            )
        if self.core_channels:
            checks.count("dma.core_channels", self.core_channels, minimum=0, maximum=self.channels - 1)

    def channels_of(self, cores: int) -> tuple[int, ...]:
        """Return the channel of each core; all -1 where any will do."""
        if self.assignment == "any":
            return (-1,) * cores
        if self.assignment == "custom":
            return self.core_channels
        if self.assignment == "paired":
            return tuple(k // -(-cores // self.channels) for k in range(cores))
        return tuple(k % self.channels for k in range(cores))


@dataclass(frozen=True, kw_only=True)
class BlockWork(Declared, prefix="work."):
    """Work that every core does block by block: fetch one, compute, write the result.

    With double buffering the next block is fetched and the last result written while the core computes;
    the two are one command after the other, and the step ends with the later of commands and computing.

    Raises
    ------
    ValueError
        If a number is out of range or memories are listed with another placement.
    """

    steps: int = count(256)  # Blocks of each core
    # Blocks of each core where they differ; 0 for an idle core. Empty: `steps` each
    core_steps: tuple[int, ...] = count((), minimum=0)
    # Mean time to compute a block, without the loads below. [cycles]
    compute_cycles: float = nonnegative(40_000.0)
    compute_scv: float = nonnegative(0.0)  # Squared coefficient of variation of that time (gamma law)
    # read_bytes, write_bytes: Bytes of a block and of its result; nothing is written for 0. [bytes]
    read_bytes: int = count(12_288)
    write_bytes: int = count(4_096, minimum=0)
    # scratchpad_loads, local_loads, global_loads: Loads of a block by the core itself from its scratchpad,
    # from local cached memory, and from the memory of the block, one after the other, spread evenly over the
    # computing
    scratchpad_loads: int = count(0, minimum=0)
    local_loads: int = count(0, minimum=0)
    global_loads: int = count(0, minimum=0)
    local_miss_ratio: float = probability(0.0)  # Local loads that miss in the cache
    double_buffering: bool = True  # Whether transfers overlap computing
    # Memory of the blocks of core k: memory 0; all in turn, beginning with k modulo their number; that of its
    # cluster; or those of `memories` in turn
    placement: str = choice("clustered", PLACEMENTS)
    memories: tuple[tuple[int, ...], ...] = ()  # Memories that each core goes round, for "per-core"

    def _check_relations(self) -> None:
        if self.core_steps and not any(self.core_steps):
            raise ValueError(f"work.core_steps must have a core with work, got {self.core_steps!r}")
        if (self.placement == "per-core") != bool(self.memories):
            raise ValueError(
                f"work.memories must be given for a per-core placement and no other, got {self.memories!r}"
            )
        for row in self.memories:
            if not row:
                raise ValueError(f"work.memories must name a memory for every core, got {row!r}")
            checks.count("work.memories", row, minimum=0)


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

        A core is a flow of one job that runs once: its program is all its work. Controllers and cores are
        stations, ways between them pass as time, channels are pools of one token (of all, where any will do)
        that turn from memory to memory. Where a core loads from global memory, a pool of one token is held
        while it computes and waits.

        Examples
        --------
        >>> system = NumaMachine().system()
        >>> len(system.flows), system.parts["channel-0"]
        (16, Tokens(count=1, turning=0.0))
        """
        working = [core for core in range(self.chip.cores) if self.steps_of(core)]
        makers = {core: _Core(self, core) for core in working}
        parts: dict[str, Any] = {}
        for core, maker in makers.items():
            if maker.computes:
                parts[core_name(core)] = Station(service={core_name(core): maker.law})
            if maker.held:
                parts[loading_name(core)] = Tokens(count=1)
        turning = self.dma.switch_cycles / self.clock_ghz
        count = self.dma.channels if self.dma.assignment == "any" else 1
        for channel in sorted({maker.channel for maker in makers.values()}):
            parts[channel_name(channel)] = Tokens(count=count, turning=turning)
        service = Deterministic(mean=self.chip.controller_cycles / self.clock_ghz)
        for memory in sorted(
            {memory for core in working for memory in self.memories_of(core)[: self.steps_of(core)]}
        ):
            parts[memory_name(memory)] = Station(service=service)
        flows = [
            Flow(name=core_name(c), population=1, rounds=1, program=makers[c].program()) for c in working
        ]
        return System(parts=parts, flows=flows)

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
