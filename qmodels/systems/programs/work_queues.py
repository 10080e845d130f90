"""Cores that take tasks from run queues, steal from each other, and find new tasks on the way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.systems.programs.region import Growth, grow
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, at_least, choice, count, nonnegative, positive, probability

IntArray = npt.NDArray[np.int64]

FOUR_CLUSTERS = ((1.0, 1.3, 1.1, 1.5), (1.3, 1.0, 1.5, 1.1), (1.1, 1.5, 1.0, 1.3), (1.5, 1.1, 1.3, 1.0))
"""Cost of an access from each cluster to each memory, of that of its own."""


MOST = 4096
"""Clusters of a machine, and cores of a cluster."""


@dataclass(frozen=True, kw_only=True)
class Bag(Declared, prefix="tasks."):
    """Tasks that are all there at the beginning, of one block each."""

    tasks: tuple[int, ...] = count(
        (400, 200, 200, 200), minimum=0
    )  # Number whose data is in each cluster's memory

    def _check_relations(self) -> None:
        if not sum(self.tasks):
            raise ValueError(f"tasks.tasks must have at least one task, got {self.tasks!r}")


@dataclass(frozen=True, kw_only=True)
class Clusters(Declared, prefix="machine."):
    """Cores in clusters, each with a memory of its own nearby."""

    # clusters, cores: Number of clusters, and cores in each
    clusters: int = count(4, maximum=MOST)
    cores: int = count(4, maximum=MOST)
    # Cost of an access from each cluster (row) to the memory of each (column), of that of a local one
    numa_factors: tuple[tuple[float, ...], ...] = at_least(FOUR_CLUSTERS, 1.0)

    def _check_relations(self) -> None:
        shape = (len(self.numa_factors), *sorted({len(row) for row in self.numa_factors}))
        if shape != (self.clusters, self.clusters):
            raise ValueError(
                f"machine.numa_factors must be {self.clusters} rows of {self.clusters}, "
                f"got {self.numa_factors!r}"
            )


@dataclass(frozen=True, kw_only=True)
class TaskCosts(Declared, prefix="costs."):
    """Costs of a task and of a visit to a queue on an idle machine."""

    # block_cycles, task_cycles: Computing on each block, and on each task in addition. [cycles]
    block_cycles: float = nonnegative(100.0)
    task_cycles: float = nonnegative(0.0)
    # Squared coefficient of variation of the computing time given the blocks, from 0 (fixed) to 1
    # (exponential); a constant and an exponential part in between
    compute_scv: float = probability(0.0)
    # For which a task's data occupy a memory controller, first come first served; a core that is not near
    # that memory waits the NUMA factor as long for them. [cycles]
    transfer_cycles: float = nonnegative(1000.0)
    # For which an access to a shared queue in the nearest memory holds its lock; times the NUMA factor of the
    # memory it is in. [cycles]
    queue_cycles: float = nonnegative(200.0)
    local_cycles: float = nonnegative(40.0)  # An access to a core's own unlocked queue. [cycles]

    def _check_relations(self) -> None:
        if not self.block_cycles + self.task_cycles:
            raise ValueError(f"costs.block_cycles must be > 0 without task_cycles, got {self.block_cycles!r}")


@dataclass(frozen=True, kw_only=True)
class RunQueues(Declared, prefix="queues."):
    """Where tasks wait."""

    # ``"central"``: one queue for all; ``"distributed"``: one for every core; ``"hierarchical"``: one for
    # every cluster and, before it, one for every core that needs no lock
    organisation: str = choice("hierarchical", ("central", "distributed", "hierarchical"))
    # Where new tasks go: ``"home"``, to the cluster whose memory has their data (of distributed queues, its
    # cores in turn); ``"next"``, to the queue after the own one; ``"own"``
    placement: str = choice("home", ("home", "next", "own"))
    # Tasks a core's own queue may hold (hierarchical only; 0 for none)
    local_length: int = count(8, minimum=0)
    # Tasks that a cluster's queue must hold before a core keeps new tasks of its cluster in its own queue
    minimum_length: int = count(10, minimum=0)


@dataclass(frozen=True, kw_only=True)
class Stealing(Declared, prefix="stealing."):
    """Who takes tasks from the queues of others, from whom, and how many."""

    # ``"none"``; ``"shepherd"``: the first core at each queue, for all of them; ``"every"`` core. A thief
    # goes out when its own queues are empty
    thieves: str = choice("none", ("none", "shepherd", "every"))
    # ``"nearest"``: the queue with the lowest NUMA factor; ``"longest"``; ``"random"``: any. All of those
    # longer than `protected`
    victims: str = choice("nearest", ("nearest", "longest", "random"))
    protected: int = count(10, minimum=0)  # Tasks that are left to the victim
    share: float = 0.5  # Of the tasks beyond those, the part that is taken (rounded down, at least one)
    most: int = count(20)  # Most tasks taken at once
    # cycles, item_cycles: Search before the theft, and for each task taken, while the victim's queue is
    # locked. [cycles]
    cycles: float = nonnegative(500.0)
    item_cycles: float = nonnegative(20.0)

    def _check_relations(self) -> None:
        if not checks.probability("stealing.share", self.share) > 0:
            raise ValueError(f"stealing.share must be above 0 and at most 1, got {self.share!r}")


@dataclass(frozen=True, kw_only=True)
class WorkQueues(Replaceable, Declared):
    """A parallel program that takes its tasks from run queues.

    Notes
    -----
    The image is cut along x and y into as many equal parts as there are clusters. A task belongs to
    the part that has the low corner of its superblock. A core finishes a task and then visits its
    neighbours one by one; those that nobody has found are put into a queue, once each.

    Examples
    --------
    >>> WorkQueues().cores, WorkQueues().groups, WorkQueues().task_count
    (16, 4, 3375)
    """

    # A region that grows from a seed, or tasks that are there at the beginning
    tasks: Growth | Bag = Growth()
    machine: Clusters = Clusters()  # Cores and memories
    costs: TaskCosts = TaskCosts()  # Times on an idle machine
    queues: RunQueues = RunQueues()  # Where tasks wait
    stealing: Stealing = Stealing()  # What idle cores do
    # Where a task's data are: ``"home"``, in the memory of the cluster in whose part of the image it lies;
    # ``"one"``, all in the first memory, and the queues too; ``"nearest"``, a copy in each
    data: str = choice("home", ("home", "one", "nearest"))
    clock_ghz: float = positive(1.0)  # Clock of all cycles in the parts. [GHz]

    metric_names: ClassVar[MetricNames] = MetricNames(
        (
            "execution_time", "speedup", "parallel_efficiency", "imbalance", "stolen_share", "local_share",
            "lock_waiting_time", "memory_waiting_time", "controller_utilization",
        )
    )  # fmt: skip

    def _check_relations(self) -> None:
        if isinstance(self.tasks, Bag) and len(self.tasks.tasks) != self.machine.clusters:
            raise ValueError(
                f"tasks.tasks must be {self.machine.clusters} numbers, one per cluster, "
                f"got {self.tasks.tasks!r}"
            )

    @property
    def cores(self) -> int:
        """Cores of all clusters."""
        return self.machine.clusters * self.machine.cores

    @property
    def groups(self) -> int:
        """Shared queues."""
        each = {"central": 1, "distributed": self.cores, "hierarchical": self.machine.clusters}
        return each[self.queues.organisation]

    @property
    def group_cores(self) -> int:
        """Cores that share a queue."""
        return self.cores // self.groups

    @property
    def task_count(self) -> int:
        """Tasks of the whole run."""
        return int(self.blocks.size)

    @cached_property
    def blocks(self) -> IntArray:
        """Blocks of each task."""
        if isinstance(self.tasks, Bag):
            return np.ones(sum(self.tasks.tasks), dtype=np.int64)
        return grow(self.tasks).blocks

    @cached_property
    def homes(self) -> IntArray:
        """Cluster of each task's data."""
        if isinstance(self.tasks, Bag):
            return np.repeat(np.arange(self.machine.clusters), self.tasks.tasks)
        columns = next(
            n for n in range(int(self.machine.clusters**0.5), 0, -1) if self.machine.clusters % n == 0
        )
        rows = self.machine.clusters // columns
        place, (nx, ny, _) = grow(self.tasks).place, self.tasks.grid
        # A part begins where the low corner of a superblock is at or beyond its border.
        return np.asarray(place[:, 0] * rows // nx * columns + place[:, 1] * columns // ny)

    @cached_property
    def serial_time(self) -> float:
        """Cycles for computing and transfers of all tasks, one after the other, near their data."""
        each = self.costs.task_cycles + self.costs.transfer_cycles
        return float(self.costs.block_cycles * self.blocks.sum() + each * self.task_count)

    @cached_property
    def queue_of(self) -> IntArray:
        """Shared queue a task goes to that is placed at home."""
        if self.queues.organisation == "central":
            return np.zeros(self.task_count, dtype=np.int64)
        if self.queues.organisation == "hierarchical":
            return self.homes
        return np.asarray(self.homes * self.machine.cores + np.arange(self.task_count) % self.machine.cores)

    @cached_property
    def queue_memory(self) -> IntArray:
        """Memory that each shared queue is in."""
        if self.data == "one" or self.groups == 1:
            return np.zeros(self.groups, dtype=np.int64)
        return np.arange(self.groups) * self.machine.clusters // self.groups
