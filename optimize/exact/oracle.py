"""What is wanted of a design, and the model that says how far a design meets it, asked once a design."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from optimize import checks
from optimize.search.pareto import FloatArray
from optimize.spaces.numbering import Designs
from optimize.spaces.running import Plan, Runner
from optimize.spaces.space import Space
from optimize.spaces.stability import STABLE, saturated
from qmodels.systems.spec.fields import find_field


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A metric wanted small once it is multiplied by ``sign``: the objective, or one side of a range.

    ``limit`` is the largest signed value allowed, infinite for the objective.
    """

    metric: str
    sign: float
    limit: float = inf


def goals_of(
    minimize: str | None, maximize: str | None, subject_to: Mapping[str, checks.Range] | None
) -> list[Goal]:
    """Return the objective, the sides of ranges that bind, and that designs keep up unless that is said."""
    if (minimize is None) == (maximize is None):
        raise ValueError(f"give one of minimize and maximize, got {minimize!r} and {maximize!r}")
    for name, metric in (("minimize", minimize), ("maximize", maximize)):
        if metric is not None and not isinstance(metric, str):
            raise ValueError(f"{name} must name one metric, give the others ranges, got {metric!r}")
    ranges = checks.ranges("subject_to", subject_to)
    first = Goal(metric=minimize, sign=1.0) if minimize else Goal(metric=str(maximize), sign=-1.0)
    sides = [
        Goal(metric=metric, sign=side, limit=side * bound)
        for metric, pair in ranges.items()
        for side, bound in zip((-1.0, 1.0), pair, strict=True)
        if bound is not None and side * bound < inf and metric != STABLE
    ]
    keeps_up = [] if STABLE in ranges else [Goal(metric=STABLE, sign=-1.0, limit=-1.0)]
    return [first, *sides, *keeps_up]


class Oracle:
    """Signed values of goals by design; no design is evaluated twice."""

    def __init__(
        self, space: Space, evaluate: Callable[[Any], object], goals: Sequence[Goal], vectorized: bool
    ) -> None:
        self.space, self._goals = space, list(goals)
        names = dict.fromkeys(goal.metric for goal in goals if goal.metric != STABLE)
        plan = Plan(space=space, evaluate=evaluate, required=tuple(names), vectorized=vectorized)
        self._runner = Runner(plan=plan)
        self._rows: dict[int, int] = {}
        self._values = np.zeros((0, len(self._goals)))
        self.unstable = False

    @property
    def evaluations(self) -> int:
        """Designs evaluated so far."""
        return len(self._rows)

    def look(self, designs: Designs) -> FloatArray:
        """Return the signed values of designs, (designs, goals)."""
        numbers = designs.reshape(-1)
        new = np.array(sorted({int(d) for d in numbers} - self._rows.keys()), dtype=np.int64)
        if new.size:
            table, _ = self._runner.run(new)
            table = {**self.space.columns(new), **table}
            unstable = saturated(table)
            self.unstable |= bool(unstable.any())
            columns = []
            for goal in self._goals:
                column = ~unstable if goal.metric == STABLE else table[goal.metric]
                if column.dtype.kind not in "bif":
                    raise ValueError(f"{goal.metric!r} must be numbers, got {column.dtype}")
                columns.append(goal.sign * column.astype(float))
            self._rows.update(
                zip(new.tolist(), range(len(self._rows), len(self._rows) + new.size), strict=True)
            )
            self._values = np.concatenate([self._values, np.stack(columns, axis=1)])
        return self._values[[self._rows[int(d)] for d in numbers]].reshape(*designs.shape, len(self._goals))

    def feasible(self, values: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tell which signed values meet all limits with a finite objective."""
        limits = np.array([goal.limit for goal in self._goals])
        return np.asarray((values <= limits).all(axis=-1) & (values[..., 0] < inf))


def digits_of(space: Space, designs: Designs) -> Designs:
    """Return the digits of designs, (designs, fields)."""
    return np.stack(space.all_digits(designs.reshape(-1)), axis=1)


def axes_of(space: Space, name: str, groups: Iterable[Iterable[str]]) -> list[tuple[int, ...]]:
    """Return groups of fields as axes of the space; fields that do not vary are passed over."""
    axes = {path: axis for axis, path in enumerate(space.paths.values())}
    result: list[tuple[int, ...]] = []
    for group in groups:
        paths = [find_field(space.base, field) for field in checks.names(name, group)]
        varied = tuple(axes[path] for path in paths if path in axes)
        result += [varied] if varied and varied not in result else []
    return result
