"""Programs whose tasks wait in run queues and are stolen: regions that grow, queues, stealing and costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.systems.spec.docstrings import Documented, Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, at_least, choice, count, nonnegative, positive, probability

BoolArray = npt.NDArray[np.bool_]
MOST_BLOCKS = 20_000_000


@dataclass(frozen=True, kw_only=True)
class Cube(Declared, prefix="body."):
    """A cube in the middle of the image."""

    side: float = positive(15.0)  # Edge. [superblocks]


@dataclass(frozen=True, kw_only=True)
class Uneven(Declared, prefix="body."):
    """A lump whose radius changes with the direction.

    Notes
    -----
    In the direction u the radius is ``radius * (1 + roughness * f(u))``, where f is the sum of
    ``cos(waves * w.u + phase)`` over six random directions w and phases, scaled to be 1 at most.
    """

    radius: float = positive(9.0)  # Mean radius. [superblocks]
    # How far the radius departs from its mean, as a share of it: from 0, a ball, to below 1
    roughness: float = 0.4
    # Where the middle of the body is, from the middle of the image along x, y and z. [superblocks]
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    # How quickly the radius changes with the direction: higher for a more rugged surface
    waves: float = positive(4.0)
    form: int = count(0, minimum=0)  # Number of the form: which waves run over the surface

    def _check_relations(self) -> None:
        if not checks.probability("body.roughness", self.roughness) < 1:
            raise ValueError(f"body.roughness must be at least 0 and below 1, got {self.roughness!r}")
        if len(self.shift) != 3:
            raise ValueError(f"body.shift must be three numbers, got {self.shift!r}")
        checks.finite("body.shift", self.shift)


@dataclass(frozen=True, kw_only=True)
class Drawn(Documented):
    """A body given block by block."""

    # For each z a layer, for each y of it a row, with ``#`` where the block at x belongs to the body and
    # ``.`` where it does not. Blocks beyond the picture do not belong to it
    layers: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for layer in self.layers:
            for row in layer:
                if set(row) - {"#", "."}:
                    raise ValueError(f"body.layers must be rows of '#' and '.', got {row!r}")


@dataclass(frozen=True, kw_only=True)
class Growth(Declared, prefix="tasks."):
    """Seeded region growing: a task for every superblock the region reaches."""

    grid: tuple[int, int, int] = count((21, 21, 21))  # Superblocks of the image along x, y and z
    block_side: int = count(4)  # Blocks along an edge of a superblock
    # What the region fills. It grows from the block of the body nearest to the middle of the body (of all its
    # blocks), from superblock to superblock over faces where blocks of both sides belong to the body
    body: Cube | Uneven | Drawn = Cube()

    def _check_relations(self) -> None:
        if len(self.grid) != 3:
            raise ValueError(f"tasks.grid must be three whole numbers, got {self.grid!r}")
        blocks = math.prod(self.grid) * self.block_side**3
        if blocks > MOST_BLOCKS:
            raise ValueError(f"tasks.grid must hold at most {MOST_BLOCKS} blocks, got {blocks}")


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskGraph:
    """Tasks and which of them find which."""

    # Blocks to work on in each task. Tasks are in the order in which a search by breadth finds them.
    blocks: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]  # superblock of each task
    # first, neighbours: the neighbours of task k are ``neighbours[first[k]:first[k + 1]]``.
    first: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int64]  # least number of steps from the seed, task 0
    parent: npt.NDArray[np.int64]  # the neighbour from which the search by breadth found it; -1 for the seed


@lru_cache(maxsize=32)
def grow(tasks: Growth) -> TaskGraph:
    """Return the tasks of a region."""
    image = body_blocks(tasks)
    if not image.any():
        raise ValueError(f"tasks.body must have a block in the image, got {tasks.body!r}")
    side = tasks.block_side
    nx, ny, nz = tasks.grid
    counts = image.reshape(nx, side, ny, side, nz, side).sum(axis=(1, 3, 5))
    number = np.arange(counts.size).reshape(counts.shape)
    pairs = []
    for axis in range(3):
        before = image.take(range(side - 1, image.shape[axis] - 1, side), axis)
        after = image.take(range(side, image.shape[axis], side), axis)
        shape = [n if k == axis else n * side for k, n in enumerate(tasks.grid)]
        shape[axis] -= 1
        split = [part for k, n in enumerate(shape) for part in ((n, 1) if k == axis else (n // side, side))]
        touching = (before & after).reshape(split).any(axis=(1, 3, 5))
        low = number.take(range(tasks.grid[axis] - 1), axis)[touching]
        high = number.take(range(1, tasks.grid[axis]), axis)[touching]
        pairs.append(np.stack([low, high]))
    low, high = np.concatenate(pairs, axis=1)
    start, stop = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((stop, start))
    start, stop = start[order], stop[order]
    bounds = np.searchsorted(start, np.arange(counts.size + 1))
    return _by_breadth(counts, _seed(image) // side, bounds, stop)


def _by_breadth(
    counts: npt.NDArray[np.int64],
    seed: npt.NDArray[np.int64],
    bounds: npt.NDArray[np.int64],
    stop: npt.NDArray[np.int64],
) -> TaskGraph:
    from scipy.sparse import csgraph, csr_array

    graph = csr_array((np.ones(stop.size), stop, bounds), shape=(counts.size, counts.size))
    root = int(np.ravel_multi_index(tuple(seed), counts.shape))
    cells, before = (one.astype(np.int64) for one in csgraph.breadth_first_order(graph, root))
    rank = np.full(counts.size, -1)
    rank[cells] = np.arange(cells.size)
    parent = np.append(-1, rank[before[cells[1:]]])
    depth = np.zeros(cells.size, dtype=np.int64)
    for task in range(1, cells.size):  # whose parent comes before it
        depth[task] = depth[parent[task]] + 1
    neighbours = [rank[stop[bounds[cell] : bounds[cell + 1]]] for cell in cells]
    return TaskGraph(
        blocks=counts.ravel()[cells].astype(np.int64),
        place=np.stack(np.unravel_index(cells, counts.shape), axis=1).astype(np.int64),
        first=np.append(0, np.cumsum([one.size for one in neighbours])),
        neighbours=np.concatenate(neighbours),
        depth=depth,
        parent=parent,
    )


def _seed(image: BoolArray) -> npt.NDArray[np.int64]:
    where = np.argwhere(image)
    nearest = np.argmin(((where - where.mean(axis=0)) ** 2).sum(axis=1))
    return np.asarray(where[nearest], dtype=np.int64)


def body_blocks(tasks: Growth) -> BoolArray:
    """Return which blocks of the image belong to the body, by x, y and z."""
    shape = tuple(n * tasks.block_side for n in tasks.grid)
    body = tasks.body
    if isinstance(body, Drawn):
        image = np.zeros(shape, dtype=bool)
        for level, layer in enumerate(body.layers[: shape[2]]):
            for line, row in enumerate(layer[: shape[1]]):
                filled = [at for at, mark in enumerate(row[: shape[0]]) if mark == "#"]
                image[filled, line, level] = True
        return image
    middles = [(np.arange(n) + 0.5 - n / 2) / tasks.block_side for n in shape]
    if isinstance(body, Cube):
        inside = [np.abs(one) <= body.side / 2 for one in middles]
        return np.asarray(
            inside[0][:, None, None] & inside[1][None, :, None] & inside[2][None, None, :], dtype=bool
        )
    x, y, z = np.meshgrid(
        *(one - move for one, move in zip(middles, body.shift, strict=True)), indexing="ij", sparse=True
    )
    distance = np.sqrt(x**2 + y**2 + z**2) + 1e-12
    rng = np.random.default_rng(body.form)
    wave = np.zeros(shape)
    for a, b, c in rng.normal(size=(6, 3)):
        length = np.sqrt(a * a + b * b + c * c)
        wave += np.cos(body.waves * (a * x + b * y + c * z) / (length * distance) + rng.uniform(0, 2 * np.pi))
    largest = float(np.abs(wave).max())
    return np.asarray(distance <= body.radius * (1 + body.roughness * wave / largest), dtype=bool)


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
