"""What a branch and bound rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Violation:
    """Two evaluated designs that differ in one field and contradict a direction.

    Parameters
    ----------
    metric, field, direction : str
        What was declared or learned.
    designs : tuple of int
        The two, the one with the smaller value of the field first.
    values : tuple of float
        The metric there.
    declared : bool
        Whether it was declared, rather than learned.
    """

    metric: str
    field: str
    direction: str
    designs: tuple[int, int]
    values: tuple[float, float]
    declared: bool

    def __str__(self) -> str:
        source = "declared" if self.declared else "learned"
        return (
            f"{self.metric} is {source} {self.direction} in {self.field}, but is"
            f" {self.values[0]:.6g} at design {self.designs[0]} and {self.values[1]:.6g} at {self.designs[1]}"
        )


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a branch and bound rests on, and what it did not look at.

    Parameters
    ----------
    proven : bool
        Whether the front is the exact one provided that the declared directions and functions
        hold: no direction was learned, and none that the search relied on in the end was
        contradicted by an evaluated design.
    boxes : int
        Boxes of designs that were bounded.
    unseen : int
        Designs that satisfy the constraints of the space and were excluded without an evaluation.
    compared : int
        Pairs of evaluated designs on which directions were checked.
    violations : tuple of Violation
        Directions found wrong, the worst pair of each. They were given up and the search
        repeated without them.
    learned : tuple of (metric, field, direction)
        Directions relied upon that were seen on samples only.
    """

    proven: bool
    boxes: int
    unseen: int
    compared: int
    violations: tuple[Violation, ...]
    learned: tuple[tuple[str, str, str], ...]

    def __str__(self) -> str:
        words = (
            "proven if the declared bounds hold" if self.proven else "not proven: some directions are learned"
        )
        lines = [
            f"{words}; {self.boxes} boxes bounded, {self.unseen} designs not looked at,"
            f" directions checked on {self.compared} pairs of designs"
        ]
        return "\n".join([*lines, *(f"contradicted: {violation}" for violation in self.violations)])
