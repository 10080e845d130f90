"""Designs as sums of tabulated components: what the integer programs choose from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.search.pareto import FloatArray
from optimize.spaces.running import Plan, Runner
from optimize.spaces.space import Space
from qmodels.systems.spec.fields import replace_paths

Table = Mapping[str, npt.ArrayLike]


@dataclass(frozen=True, kw_only=True, eq=False)
class Component:
    """A part of a design whose metrics depend on several fields, which it may share with others.

    Parameters
    ----------
    fields : tuple of str
        The fields, each once. A field has the same choices in every component that names it.
    table : mapping of str to array_like
        ``{metric: values}``, one axis per field in that order, one entry per choice.

    Raises
    ------
    ValueError
        If there is no field, one is named twice, or there is no metric.
    """

    fields: tuple[str, ...]
    table: Table

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
    """Tabulate the model of one component over the fields it depends on.

    Parameters
    ----------
    space : Space
        The designs; constraints of the space are not looked at.
    evaluate : callable
        Takes a spec and returns metrics, as for `optimize.search.explore`. It must depend on no
        field of the space but the named ones: the others keep the values of the base spec.
    *fields : str
        Fields of the space.
    vectorized : bool
        Whether `evaluate` broadcasts over specs with arrays in their fields.

    Returns
    -------
    Component
        All numeric metrics, each of shape (choices of the first field, ...).

    Raises
    ------
    ValueError
        For a field that the space does not vary, or NaN from the model.

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
    >>> wires.table["wire"]
    array([[ 8., 16.],
           [16., 32.],
           [32., 64.]])
    """
    names = checks.names("fields", fields)
    for name in names:
        if name not in space.choices:
            raise ValueError(f"no field {name!r} in the space{checks.nearest(name, space.choices)}")
    part = Space(space.base, {space.paths[name]: space.choices[name] for name in names})
    plan = Plan(space=part, evaluate=evaluate, vectorized=vectorized)
    columns, _ = Runner(plan=plan).run(part.numbers(None))
    numeric = {name: column for name, column in columns.items() if column.dtype.kind in "bf"}
    return Component(
        fields=names, table={name: column.reshape(part.shape) for name, column in numeric.items()}
    )


def chosen_spec(space: Space, chosen: Mapping[str, int]) -> Any:
    """Return the spec of a choice among components over the fields of a space.

    Parameters
    ----------
    space : Space
        The designs.
    chosen : mapping of str to int
        The row of every field, as in `Choice.chosen`; fields that no component has keep the
        value of the base spec.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Chip:
    ...     channels: int = 1
    ...     width: int = 8
    >>> chosen_spec(Space(Chip(), channels=[1, 2, 4], width=[8, 16]), {"channels": 2})
    Chip(channels=4, width=8)
    """
    return replace_paths(
        space.base, {space.paths[name]: space.choices[name][row] for name, row in chosen.items()}
    )


class Tables:
    """Components with their fields and sizes checked; cells are numbered in row-major order.

    ``owners`` says in how many components every field is.
    """

    def __init__(self, groups: Groups) -> None:
        if not groups:
            raise ValueError("groups must have at least one group, got none")
        self.names = list(groups)
        self._groups = groups
        self.fields = [
            group.fields if isinstance(group, Component) else (name,) for name, group in groups.items()
        ]
        self.owners = Counter(field for fields in self.fields for field in fields)
        self.sizes: dict[str, int] = {}
        self.shapes: list[tuple[int, ...]] = []
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

    def cell(self, component: int, choice: Mapping[str, int]) -> int:
        """Return the cell of a component at the chosen row of every field."""
        rows = [choice[name] for name in self.fields[component]]
        return int(np.ravel_multi_index(rows, self.shapes[component]))

    def digits(self, component: int, cells: npt.ArrayLike) -> dict[str, npt.NDArray[np.int64]]:
        """Return the row of every field of a component in some of its cells."""
        rows = np.unravel_index(np.asarray(cells, dtype=np.int64), self.shapes[component])
        return dict(zip(self.fields[component], rows, strict=True))

    def column(self, component: int, metric: str) -> FloatArray:
        """Return one metric of one component, one value per cell."""
        name, group = self.names[component], self._groups[self.names[component]]
        table = group.table if isinstance(group, Component) else group
        if metric not in table:
            raise ValueError(f"group {name!r} has no metric {metric!r}{checks.nearest(metric, table)}")
        values = np.asarray(table[metric])
        shape = self.shapes[component]
        fits = values.shape == shape and len(shape) == len(self.fields[component]) and prod(shape) > 0
        if isinstance(group, Component):
            if not fits or values.dtype.kind not in "biuf":
                raise ValueError(
                    f"{metric!r} of component {name!r} must be numbers with one axis per field"
                    f" ({', '.join(group.fields)}), got {values.dtype} of shape {values.shape}"
                )
        elif (
            not fits or values.dtype.kind not in "biuf" or len({np.shape(v)[:1] for v in table.values()}) > 1
        ):
            raise ValueError(
                f"{metric!r} of group {name!r} must be one number per option, got {table[metric]!r}"
            )
        if np.isnan(values).any():
            where = int(np.isnan(values).ravel().argmax())
            raise ValueError(f"{metric!r} of group {name!r} must not be NaN, got NaN in option {where}")
        return values.astype(float).ravel()
