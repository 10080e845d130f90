"""Designs as sums of tabulated components: what the integer programs choose from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum, inf
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.search.pareto import FloatArray, IntArray, nondominated
from optimize.spaces.running import Plan, Runner
from optimize.spaces.space import Space

Table = Mapping[str, npt.ArrayLike]
Bound = tuple[str, float, float]
"""A metric, the sign with which less is better, and the largest signed total: infinite for an objective."""

OVER_BUDGET = "the budgets cannot be met together"
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Component:
    """A part of a design whose metrics depend on several fields, which it may share with others."""

    #: The fields, each once. A field has the same choices in every component that names it
    fields: tuple[str, ...]
    table: Table  #: ``{metric: values}``, one axis per field in that order, one entry per choice

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", checks.names("fields", self.fields))
        if not self.fields:
            raise ValueError("fields must name at least one field, got none")
        if not self.table:
            raise ValueError("table must have at least one metric, got none")


Groups = Mapping[str, Table | Component]
"""Components by name; a plain table has one value per option of a field of its own name."""


def tabulate(
    space: Space, evaluate: Callable[[Any], object], *fields: str, vectorized: bool = False
) -> Component:
    """Tabulate the model of one component over the fields of a space that it depends on.

    ``evaluate`` takes a spec and returns metrics, as for `optimize.explore`; all other fields keep the
    values of the base spec. Constraints of the space are not looked at.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Chip:
    ...     channels: int = 1
    ...     step: int = 1
    ...     width: int = 8
    >>> space = Space(Chip(), channels=[1, 2, 4], step=[1, 8], width=[8, 16])
    >>> wires = tabulate(space, lambda chip: {"wire": chip.channels * chip.width}, "channels", "width")
    >>> wires.table["wire"].tolist()
    [[8.0, 16.0], [16.0, 32.0], [32.0, 64.0]]
    """
    names = checks.names("fields", fields)
    for name in names:
        if name not in space.choices:
            raise ValueError(f"no field {name!r} in the space{checks.nearest(name, space.choices)}")
    part = Space(space.base, {space.paths[name]: space.choices[name] for name in names})
    columns, _ = Runner(plan=Plan(space=part, evaluate=evaluate, vectorized=vectorized)).run(
        part.numbers(None)
    )
    numeric = {name: column for name, column in columns.items() if column.dtype.kind in "bf"}
    return Component(
        fields=names, table={name: column.reshape(part.shape) for name, column in numeric.items()}
    )


class Program:
    """Components with signed rows, objectives before budgets, and the cells that a best choice may have.

    Cells are numbered in row-major order; ``message`` says why there is no choice, if that is plain.
    """

    def __init__(self, groups: Groups, rows: list[Bound]) -> None:
        if not groups:
            raise ValueError("groups must have at least one group, got none")
        self.rows, self.groups, self.message = rows, groups, ""
        self.fields = [g.fields if isinstance(g, Component) else (name,) for name, g in groups.items()]
        owners = Counter(field for fields in self.fields for field in fields)
        self.sizes: dict[str, int] = {}
        self.shapes, self.values = [], []
        for (name, group), fields in zip(groups.items(), self.fields, strict=True):
            table = group.table if isinstance(group, Component) else group
            shape = np.shape(next(iter(table.values())))[: len(fields)] if table else ()
            for field, size in zip(fields, shape, strict=False):
                if self.sizes.setdefault(field, size) != size:
                    raise ValueError(
                        f"field {field!r} must have the same choices everywhere,"
                        f" got {self.sizes[field]} and {size} in component {name!r}"
                    )
            self.shapes.append(shape)
            columns = [sign * _column(name, group, metric, shape) for metric, sign, _ in rows]
            self.values.append(np.stack(columns, axis=1))
        self.shared = [tuple(f for f in fields if owners[f] > 1) for fields in self.fields]
        self.objectives = sum(bound == inf for _, _, bound in rows)
        self.bounds = np.array([bound for _, _, bound in rows])
        # An infinitely bad option is never chosen, however good it is in another row.
        self.cells = [np.flatnonzero((values < inf).all(axis=1)) for values in self.values]
        self._refuse()
        if not self.message:
            self._presolve()

    def _refuse(self) -> None:
        """Refuse infinitely good options; say why there is plainly no choice."""
        reasons = []
        for name, values, cells in zip(self.groups, self.values, self.cells, strict=True):
            for (metric, sign, _), column in zip(self.rows, values[cells].T, strict=True):
                if np.isneginf(column).any():
                    raise ValueError(
                        f"{metric!r} of group {name!r} must not be infinitely good, got {-sign * inf}"
                    )
            if not cells.size:
                none = [
                    row[0] for row, column in zip(self.rows, values.T, strict=True) if (column == inf).all()
                ]
                words = " and ".join(repr(metric) for metric in none[:1] or [row[0] for row in self.rows])
                reasons.append(f"no option of group {name!r} has a finite {words}")
        for k, (metric, sign, bound) in enumerate(self.rows if not reasons else ()):
            least = fsum(v[cells, k].min() for v, cells in zip(self.values, self.cells, strict=True))
            if least > bound:
                reasons.append(
                    f"{metric} {checks.SIGNS[int(sign)]} {sign * bound:g} cannot be met: the best sum is"
                    f" {sign * least:.6g}, off by {least - bound:.4g}"
                )
        self.message = "; ".join(reasons)

    def _presolve(self) -> None:
        """Leave out cells that exceed a budget beside the least of all others, and those that others beat."""
        least = np.array([v[cells].min(axis=0) for v, cells in zip(self.values, self.cells, strict=True)])
        room = self.bounds - least.sum(axis=0)
        room += ROUNDING * (np.abs(least).sum(axis=0) + np.abs(room)) + np.finfo(float).tiny
        self.room = room  # of sums above the least ones, rounding included
        for k, (values, cells) in enumerate(zip(self.values, self.cells, strict=True)):
            cells = cells[(values[cells] - least[k] <= room).all(axis=1)]
            self.cells[k] = cells[pareto(self.keys(k, cells), values[cells], self.objectives)]
            if not self.cells[k].size:
                self.message = OVER_BUDGET

    def keys(self, component: int, cells: IntArray) -> IntArray:
        """Return the rows of the shared fields of a component in some cells."""
        digits = np.array(np.unravel_index(cells, self.shapes[component]), dtype=np.int64)
        kept = [k for k, field in enumerate(self.fields[component]) if field in self.shared[component]]
        return digits[kept].T

    def totals(self, cells: npt.ArrayLike) -> FloatArray:
        """Return the correctly rounded signed sums of choices (rows) of one cell per component."""
        rows = np.asarray(cells, dtype=np.int64).reshape(-1, len(self.values))
        parts = np.stack([values[rows[:, k]] for k, values in enumerate(self.values)])
        return np.array([[fsum(column) for column in choice.T] for choice in parts.swapaxes(0, 1)]).reshape(
            len(rows), len(self.rows)
        )

    def choice(self, cells: npt.ArrayLike) -> dict[str, int]:
        """Return the row of every field at one cell per component."""
        found: dict[str, int] = {}
        for fields, shape, cell in zip(self.fields, self.shapes, np.asarray(cells).tolist(), strict=True):
            found |= dict(zip(fields, map(int, np.unravel_index(cell, shape)), strict=True))
        return found


def pareto(keys: IntArray, sums: FloatArray, objectives: int) -> IntArray:
    """Return one row for each distinct vector of sums that no other with the same keys beats.

    Objectives, the first sums, are distinct by 13 digits: what they are rounded by is no difference.
    """
    rounded, (mantissa, exponent) = sums.copy(), np.frexp(sums[:, :objectives])
    rounded[:, :objectives] = np.ldexp(np.round(mantissa * 2.0**43), exponent - 43)
    first = np.unique(np.concatenate([keys, rounded], axis=1), axis=0, return_index=True)[1]
    if not keys.shape[1]:
        return np.sort(first[nondominated(rounded[first])])
    kept = [np.zeros(0, dtype=np.int64)]
    place = np.unique(keys[first], axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(place, kind="stable")
    for rows in np.split(first[order], np.flatnonzero(np.diff(place[order])) + 1):
        kept.append(rows[nondominated(rounded[rows])])
    return np.sort(np.concatenate(kept))


def budgets_of(subject_to: Mapping[str, checks.Range] | None) -> list[Bound]:
    """Return the sides of budgets that bind, as rows."""
    return [
        (metric, sign, sign * bound)
        for metric, sign, bound in checks.sides(checks.ranges("subject_to", subject_to))
        if sign * bound < inf
    ]


def _column(name: str, group: Table | Component, metric: str, shape: tuple[int, ...]) -> FloatArray:
    """Return one metric of one component, one value per cell, checked."""
    component = isinstance(group, Component)
    table, axes = (group.table, len(group.fields)) if isinstance(group, Component) else (group, 1)
    if metric not in table:
        raise ValueError(f"group {name!r} has no metric {metric!r}{checks.nearest(metric, table)}")
    values = np.asarray(table[metric])
    if values.shape != shape or len(shape) != axes or not values.size or values.dtype.kind not in "biuf":
        rule = f"numbers, {axes} axes of one entry per choice" if component else "one number per option"
        raise ValueError(f"{metric!r} of group {name!r} must be {rule}, got {table[metric]!r}")
    if np.isnan(values).any():
        where = int(np.isnan(values).ravel().argmax())
        raise ValueError(f"{metric!r} of group {name!r} must not be NaN, got NaN in option {where}")
    return values.astype(float).ravel()
