"""What is known of a model before it is run: how its metrics move with each field.

Branch and bound needs the best value that a metric can take in a box of designs. If a metric never
falls when a field grows, that is its value at the smallest choice of the field: one evaluation
bounds the whole box.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.search.pareto import FloatArray
from optimize.search.proof import Violation
from optimize.spaces.numbering import Columns, Designs
from optimize.spaces.space import Space
from qmodels.systems.spec.fields import find_field

DIRECTIONS = {"increasing": 1, "decreasing": -1, "constant": 0}
"""Words for how a metric moves when a field grows; the first two allow that it stays."""

BoxBound = Callable[[Columns, Columns], tuple[npt.ArrayLike, npt.ArrayLike]]
"""Takes the smallest and the largest value of every field, one entry per box; bounds a metric there."""

Bounds = Mapping[str, "Mapping[str, str] | BoxBound"]


class Derived(Protocol):
    """What a model says of its metrics over boxes of specs; see `qmodels.bounds`, which returns such."""

    @property
    def derived(self) -> Sequence[str]:
        """Metrics with bounds."""

    @property
    def spans(self) -> Sequence[str]:
        """Dotted fields that may differ within a box; all others have one value in each."""

    @property
    def early(self) -> Sequence[str]:
        """Those of them to be told apart first."""

    @property
    def idle(self) -> Mapping[str, Sequence[str]]:
        """Metrics that do not depend on some of these fields at all."""

    @property
    def stages(self) -> Sequence[Callable[[Any, Any], Mapping[str, tuple[FloatArray, FloatArray]]]]:
        """Each takes specs of the lowest and of the highest corners and returns the least and the most."""

    @property
    def assumes(self) -> str:
        """What they hold for, in words."""


ROUNDING = 1e-9
"""Relative difference up to which a step against a declared direction is taken for rounding."""


class Directions:
    """How metrics move along the fields of a space; fields count by rank, the smallest choice first.

    Choices that are no numbers rank in the order in which they are given.
    """

    def __init__(
        self, space: Space, metrics: Sequence[str], bounds: Bounds, tolerance: float = ROUNDING
    ) -> None:
        self.space, self._tolerance = space, tolerance
        self.fields = list(space.choices)
        self.metrics = list(metrics)
        self.functions: dict[str, BoxBound] = {}
        self.known: dict[tuple[str, str], int] = {}
        self.ranks = [  # of every field: the digits in ascending order of their values
            np.argsort(space.column(name), kind="stable")
            if name in space.numeric
            else np.arange(len(values), dtype=np.int64)
            for name, values in space.choices.items()
        ]
        names = {path: name for name, path in space.paths.items()}
        for metric, given in bounds.items():
            if callable(given):
                self.functions[metric] = given
            elif not isinstance(given, Mapping):
                raise ValueError(
                    f"bounds[{metric!r}] must be {{field: direction}} or a function, got {given!r}"
                )
            else:
                for field, word in given.items():
                    checks.choice(f"bounds[{metric!r}][{field!r}]", word, DIRECTIONS)
                    path = find_field(space.base, field)
                    if path in names:
                        self.known[metric, names[path]] = DIRECTIONS[word]
        for metric in self.metrics:
            if metric in space.choices:
                self.known.update({(metric, field): int(field == metric) for field in self.fields})
            elif metric not in bounds:
                raise ValueError(f"bounds must say how {metric!r} moves: {{field: direction}} or a function")

    def word(self, metric: str, field: str) -> str:
        """Return the direction of a metric along a field."""
        sign = self.known[metric, field]
        return next(word for word, value in DIRECTIONS.items() if value == sign)

    def pinned(self) -> list[int]:
        """Return the axes of fields that boxes cannot span: where some metric may go either way.

        Fields that constraints and conditions look at are among them: a box has then designs that
        are admitted all or none.
        """
        names = set(self.space.coupled)
        for field in self.fields:
            for metric in self.metrics:
                if metric in self.functions:
                    if field not in self.space.numeric:
                        names.add(field)
                elif (metric, field) not in self.known:
                    names.add(field)
        return [axis for axis, field in enumerate(self.fields) if field in names]

    def pairs(self, designs: Designs, axis: int) -> tuple[Designs, Designs]:
        """Return rows of neighbours among designs that differ in one field only, the smaller value first."""
        digit = self.space.all_digits(designs, [axis])[0]
        rank = np.argsort(self.ranks[axis])[digit]
        stride = int(self.space.number_of([int(other == axis) for other in range(len(self.fields))]))
        line = designs - digit * stride
        order = np.lexsort((rank, line))
        same = np.flatnonzero(np.diff(line[order]) == 0)
        return order[same], order[same + 1]

    def violations(self, designs: Designs, values: Mapping[str, FloatArray]) -> tuple[list[Violation], int]:
        """Check all directions on evaluated designs that differ in one field only.

        Returns
        -------
        list of Violation, int
            The largest contradiction per metric and field, and the number of comparisons made.
            Neighbours on a line suffice: what holds between them holds along the line.
        """
        found: list[Violation] = []
        compared = 0
        for axis, field in enumerate(self.fields):
            first, second = self.pairs(designs, axis)
            for metric in self.metrics:
                if (metric, field) not in self.known or metric in self.space.choices or not first.size:
                    continue
                sign = self.known[metric, field]
                low, high = values[metric][first], values[metric][second]
                with np.errstate(invalid="ignore"):
                    step = np.where(low == high, 0.0, high - low)
                    size = self._tolerance * np.maximum(np.abs(low), np.abs(high))
                size = np.where(np.isfinite(step), size, 0.0)
                against = np.abs(step) if sign == 0 else -sign * step
                compared += first.size
                bad = against > size
                if bad.any():
                    k = int(np.where(bad, against, -np.inf).argmax())
                    found.append(
                        Violation(
                            metric=metric,
                            field=field,
                            direction=self.word(metric, field),
                            designs=(int(designs[first[k]]), int(designs[second[k]])),
                            values=(float(low[k]), float(high[k])),
                        )
                    )
        return found, compared

    def forget(self, violations: Sequence[Violation]) -> None:
        """Count the contradicted directions as unknown."""
        for violation in violations:
            self.known.pop((violation.metric, violation.field), None)
