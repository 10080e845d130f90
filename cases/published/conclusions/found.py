"""What is found of a conclusion: its margins, where it turns, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cases.published.conclusions.conclusion import Conclusion, Parameter

CONFIRMED, CONTRADICTED, DEPENDS = "confirmed", "contradicted", "depends"
Curve = tuple[tuple[float, float], ...]
"""Values of a parameter and margins there."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """A simulated margin."""

    value: float  # of the parameter
    # margin, half_width: the margin and half of its interval of 95 %.
    margin: float
    half_width: float

    @property
    def holds(self) -> bool | None:
        """Whether the conclusion holds there; None where the interval leaves it open."""
        return None if abs(self.margin) <= self.half_width else self.margin > 0


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the models and the simulation say of a conclusion."""

    conclusion: Conclusion  # what was asked
    curve: Curve  # margins by the models over the parameter
    margin: float  # the one at the paper's value
    # Between which values of the parameter the models turn, the nearest such place to the paper's value:
    # twice the same for a parameter that is continuous; None if nowhere in the range.
    flip: tuple[float, float] | None
    checks: tuple[Check, ...] = ()  # simulated margins of the very same systems
    stale: int = 0  # how many kept simulations are of other systems than those of today, and were left out

    @property
    def simulated(self) -> Check | None:
        """The simulated margin at the paper's value."""
        value = self.conclusion.parameter.value
        return next((check for check in self.checks if check.value == value), None)

    @property
    def turns_in_what_is_open(self) -> bool:
        """Whether the models turn at a value that the text allows."""
        parameter = self.conclusion.parameter
        if parameter.open is None or self.flip is None:
            return False
        low, high = parameter.open
        if parameter.whole:
            return any((margin > 0) != (self.margin > 0) for x, margin in self.curve if low <= x <= high)
        return low <= self.flip[0] <= high

    @property
    def verdict(self) -> str:
        """What the models and the simulation say together.

        "depends" where they differ, where the simulated interval has 0 in it, or where the conclusion turns
        at a value that the text leaves open.
        """
        model = self.margin > 0
        simulated = model if self.simulated is None else self.simulated.holds
        if simulated != model or self.turns_in_what_is_open:
            return DEPENDS
        return CONFIRMED if model else CONTRADICTED

    @property
    def simulated_flip(self) -> tuple[float, float] | None:
        """The neighbouring simulated values between which the decision changes, nearest to the turn."""
        decided = sorted((c.value, c.holds) for c in self.checks if c.holds is not None)
        turns = [(a, b) for (a, here), (b, there) in pairwise(decided) if here is not there]
        near = self.flip[0] if self.flip else self.conclusion.parameter.value
        return min(turns, key=lambda ends: abs(sum(ends) / 2 - near), default=None)

    @property
    def flip_confirmed(self) -> bool | None:
        """Whether the simulation turns where the models do, or nowhere as they; None if not simulated."""
        if len(self.checks) < 2:
            return None
        simulated = self.simulated_flip
        if self.flip is None or simulated is None:
            return self.flip is None and simulated is None
        return simulated[0] <= self.flip[1] and self.flip[0] <= simulated[1]


def find(conclusion: Conclusion, checks: Sequence[Check] = (), stale: int = 0) -> Found:
    """Return what the models say of a conclusion, beside simulations."""
    parameter = conclusion.parameter
    curve = tuple((value, conclusion.solved(value)) for value in parameter.grid)
    return Found(
        conclusion=conclusion,
        curve=curve,
        margin=dict(curve)[parameter.value],
        flip=flip_of(conclusion.solved, curve, parameter),
        checks=tuple(sorted(checks, key=lambda check: check.value)),
        stale=stale,
    )


def flip_of(
    margin: Callable[[float], float], curve: Curve, parameter: Parameter
) -> tuple[float, float] | None:
    """Return where a margin turns that is known at some values, see `Found.flip`."""
    from scipy.optimize import brentq

    turns = [(a, b) for (a, here), (b, there) in pairwise(curve) if (here > 0) != (there > 0)]
    if not turns:
        return None
    # A bracket that begins or ends at the paper's value is at no distance from it.
    low, high = min(turns, key=lambda ends: max(ends[0] - parameter.value, parameter.value - ends[1]))
    if parameter.whole:
        return low, high
    root = float(brentq(margin, low, high, xtol=1e-4 * (high - low), rtol=1e-6))
    return root, root
