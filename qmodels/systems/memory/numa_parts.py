"""The parts of a NUMA chip with DMA channels: cores and memories, DMA engine, and work in blocks."""

from __future__ import annotations

from dataclasses import dataclass, field

from qmodels import checks
from qmodels.systems.noc.topology import Topology
from qmodels.systems.spec.ranges import Declared, choice, count, nonnegative, positive, probability

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
