"""Placing work on cores, its data on memories and cores on DMA channels: the problem and its cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optimize.search.pareto import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class DmaProblem:
    r"""Tasks that fetch a block each, cores that compute them, memories and channels that are shared.

    The cost of a placement is the time of the most loaded resource, by which the whole work cannot
    end sooner, and for the way the mean time of a core's commands:

    .. math:: \max(T_{cores}, T_{commands}, T_{channels}, T_{memories}) + \tfrac{1}{cores} \sum_t a_t u_{km}

    with the sums of computing and of commands :math:`a_t u_{km}` per core, of commands and turning
    per channel, and of :math:`a_t s` per memory.
    """

    computing: npt.ArrayLike  # time of a core to compute each task [cycles]
    accesses: npt.ArrayLike  # memory accesses of its block
    access_cycles: npt.ArrayLike  # time of an access that meets no other: it grows with the way [cycles]
    controller_cycles: float  # time of an access that keeps the memory itself busy [cycles]
    channels: int  # DMA channels; each core uses one
    # Loss of a channel for each task whose block it moves, if it serves more than one memory: all its
    # commands turn it then [cycles].
    switch_cycles: float = 0.0
    # Most tasks of a core: 1 keeps a core for each, where the cost would leave the far cores idle.
    most_tasks: int | None = None

    def __post_init__(self) -> None:
        for name, dimensions in (("computing", 1), ("accesses", 1), ("access_cycles", 2)):
            array = np.asarray(getattr(self, name), dtype=float)
            if array.ndim != dimensions or not array.size:
                raise ValueError(f"{name} must have {dimensions} axes and no empty one, got {array.shape}")
            if not (np.isfinite(array).all() and (array >= 0).all()):
                raise ValueError(f"{name} must be finite and >= 0, got {array.min()} to {array.max()}")
            object.__setattr__(self, name, array)
        if len(self._table("computing")) != len(self._table("accesses")):
            raise ValueError(
                f"accesses must have one entry per task ({len(self._table('computing'))}), "
                f"got {len(self._table('accesses'))}"
            )
        for name in ("controller_cycles", "switch_cycles"):
            value = getattr(self, name)
            if not 0 <= value < np.inf:
                raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
        if self.channels < 1 or self.channels != int(self.channels):
            raise ValueError(f"channels must be a whole number >= 1, got {self.channels!r}")
        if self.most_tasks is not None and self.most_tasks * self.cores < self.tasks:
            raise ValueError(
                f"most_tasks must leave room for {self.tasks} tasks on {self.cores} cores, "
                f"got {self.most_tasks!r}"
            )

    def _table(self, name: str) -> FloatArray:
        return np.asarray(getattr(self, name), dtype=float)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self._table("computing"))

    @property
    def cores(self) -> int:
        """Number of cores."""
        return len(self._table("access_cycles"))

    @property
    def memories(self) -> int:
        """Number of memories."""
        return int(self._table("access_cycles").shape[1])

    def moving(self) -> FloatArray:
        """Return the time of each task's commands at each core and memory, alone. [cycles]."""
        return self._table("accesses")[:, None, None] * self._table("access_cycles")[None]

    def cost(self, cores: IntArray, memories: IntArray, channels: IntArray) -> float:
        """Return the cost of a placement: core and memory of each task, channel of each core. [cycles].

        Infinite where a core has more tasks than it may.
        """
        if self.most_tasks is not None and np.bincount(cores).max() > self.most_tasks:
            return float("inf")
        busy, way = self.loads(cores, memories, channels)
        return float(max(one.max() for one in busy.values()) + way)

    def loads(
        self, cores: IntArray, memories: IntArray, channels: IntArray
    ) -> tuple[dict[str, FloatArray], float]:
        """Return the loads by kind of resource, and the mean time of a core's commands. [cycles]."""
        computing, accesses = self._table("computing"), self._table("accesses")
        moving = accesses * self._table("access_cycles")[cores, memories]
        of_task = channels[cores]
        serves = np.zeros((self.channels, self.memories), dtype=bool)
        serves[of_task, memories] = True
        turning = np.where(serves.sum(axis=1) > 1, self.switch_cycles, 0.0)
        occupied = accesses * self.controller_cycles

        def total(places: IntArray, weights: FloatArray, count: int) -> FloatArray:
            return np.asarray(np.bincount(places, weights=weights, minlength=count), dtype=float)

        return {
            "computing": total(cores, computing, self.cores),
            "commands": total(cores, moving, self.cores),
            "channels": total(of_task, moving + turning[of_task], self.channels),
            "memories": total(memories, occupied, self.memories),
        }, float(moving.sum() / self.cores)
