"""What the simulation of a data-queueing module found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from qmodels.checks import FloatArray
from validate.estimates.simulation import Simulation


@dataclass(frozen=True, kw_only=True)
class OperationCost:
    """How often an operation ran, and its pointer-memory accesses: mean and most."""

    count: int
    mean_accesses: float
    max_accesses: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DataQueueingSimulation(Simulation):
    """Estimates with what the operations took.

    Parameters
    ----------
    operations : mapping of str to OperationCost
        Of each operation of the queue manager; "allocate" is a part of "enqueue segment", "free"
        one of "delete packet". Not in a saved result.
    allocation_accesses, deletion_accesses : array of float
        Share of the allocations (the deletions) that take 0, 1, 2, ... pointer accesses.
    """

    saved: ClassVar[tuple[str, ...]] = (*Simulation.saved, "allocation_accesses", "deletion_accesses")

    operations: Mapping[str, OperationCost] = field(default_factory=dict)
    allocation_accesses: FloatArray
    deletion_accesses: FloatArray

    def _lines(self) -> Iterator[tuple[str, str, str, str]]:
        yield from super()._lines()
        for name, cost in self.operations.items():
            yield f"accesses to {name}", f"{cost.mean_accesses:.5g}", "", f"at most {cost.max_accesses}"
