"""Bodies in three-dimensional images, cut into superblocks: the tasks of seeded region growing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.systems.spec.docstrings import Documented
from qmodels.systems.spec.ranges import Declared, count, positive

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
