"""What a branch and bound rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Violation:
    """Two evaluated designs that differ in one field and contradict a direction.

    Parameters
    ----------
    metric, field, direction : str
        What was declared.
    designs : tuple of int
        The two, the one with the smaller value of the field first.
    values : tuple of float
        The metric there.
    """

    metric: str
    field: str
    direction: str
    designs: tuple[int, int]
    values: tuple[float, float]

    def __str__(self) -> str:
        return (
            f"{self.metric} is declared {self.direction} in {self.field}, but is"
            f" {self.values[0]:.6g} at design {self.designs[0]} and {self.values[1]:.6g} at {self.designs[1]}"
        )


@dataclass(frozen=True, kw_only=True)
class Left:
    """What a search with derived bounds leaves open at one time."""

    seconds: float  # Since its begin. [s]
    evaluations: int  # Designs evaluated until then
    boxes: int  # Boxes of designs that may hold points of the front
    # Part of the hypervolume of the front and of these boxes' bounds that the front does not have, up to the
    # worst feasible values seen: no more can be missing. Of one objective, how far the bound is from the best
    # value, relative. 1 before there is a feasible design
    gap: float

    def __str__(self) -> str:
        return (
            f"{self.seconds:.1f} s: {self.evaluations:,} designs evaluated, {self.boxes:,} boxes open,"
            f" gap {self.gap:.2%}"
        )


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What a branch and bound rests on, and what it did not look at.

    Parameters
    ----------
    proven : bool
        Whether the front is the exact one, provided that the bounds hold: of the declared directions that
        the search relied on in the end none was contradicted by an evaluated design.
    boxes : int
        Boxes of designs that were bounded.
    unseen : int
        Designs that satisfy the constraints of the space and were excluded without an evaluation.
    compared : int
        Pairs of evaluated designs on which directions were checked.
    violations : tuple of Violation
        Directions found wrong, the worst pair of each. They were given up and the search
        repeated without them.
    left : tuple of Left
        With bounds that the model derives: what was open from time to time, at last in the end.
    assumes : str
        What these bounds hold for, in words.
    unbounded : tuple of str
        Metrics for which nothing was derived: they may take any value.
    """

    proven: bool
    boxes: int
    unseen: int
    compared: int = 0
    violations: tuple[Violation, ...] = ()
    left: tuple[Left, ...] = ()
    assumes: str = ""
    unbounded: tuple[str, ...] = ()

    @property
    def gap(self) -> float | None:
        """How much of the front may be missing, see `Left`; None unless the model derives bounds."""
        return self.left[-1].gap if self.left else None

    def _derived(self) -> str:
        words = "proven" if self.proven else f"not finished after {self.left[-1]}"
        rests = f"by bounds derived from the model's formulas ({self.assumes})"
        text = f"{words}, {rests}; {self.boxes} boxes bounded"
        nothing = f"; nothing is known of {', '.join(self.unbounded)}" if self.unbounded else ""
        return f"{text}, {self.unseen} designs not looked at{nothing}"

    def __str__(self) -> str:
        if self.left:
            return self._derived()
        lines = [
            f"proven if the declared bounds hold; {self.boxes} boxes bounded,"
            f" {self.unseen} designs not looked at, directions checked on {self.compared} pairs of designs"
        ]
        return "\n".join([*lines, *(f"contradicted: {violation}" for violation in self.violations)])
