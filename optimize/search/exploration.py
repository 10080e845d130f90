"""The answer of an exploration: a table of designs, the front, the knee, what was excluded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optimize.search import feasibility, pareto
from optimize.search.feasibility import Exclusion, Goals, Objectives, Reduction
from optimize.search.greedy import Step
from optimize.search.milp import Proof
from optimize.search.pareto import BoolArray, FloatArray, FrontComparison, IntArray
from optimize.spaces.numbering import Columns, Hole
from optimize.spaces.running import distinct_rows, save_table
from optimize.spaces.space import Space


def _numbers(values: Any) -> Any:
    """Return a column as numbers: words by their place in the alphabet."""
    if np.issubdtype(np.asarray(values).dtype, np.number):
        return values
    return np.unique(values, return_inverse=True)[1].astype(float)


SHOWN = 12  # designs of the front that a notebook shows


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Exploration(Objectives):
    """Evaluated designs and the best of them.

    Rows of the table are ordered by design number. ``front``, ``knee`` and ``feasible`` refer
    to rows; ``table["design"]`` has the design numbers of the space.
    """

    space: Space  #: What was explored
    method: str  #: How
    #: Tidy columns: ``design``, every varied field, every metric. Of an estimate the column has the best
    #: value and ``<metric>_low`` and ``<metric>_high`` its interval
    table: Columns
    #: Whether a row satisfies ``subject_to``, is ``stable`` if the model says so, and is infinitely bad in no
    #: objective
    feasible: BoolArray
    #: Rows of the nondominated feasible designs (see `optimize.nondominated`), ascending; designs with equal
    #: objectives are all kept
    front: IntArray
    #: How many designs of the front repeat the objectives of an earlier one: it has `distinct` points
    duplicates: int
    knee: int | None  #: The row of the knee of the front (see `optimize.knee_index`); None without a front
    #: One entry per constraint of the space, for designs that are not stable or infinitely bad in an
    #: objective if there are any, and one per side of ``subject_to``
    excluded: tuple[Exclusion, ...]
    evaluations: int  #: Designs evaluated by this call
    restored: int  #: Designs taken from its store
    #: If no row is feasible, the one that misses the fewest constraints by an infinite amount, and of those
    #: violates the others least; None if all miss by infinite amounts alike
    closest: int | None = None
    history: tuple[Step, ...] = ()  #: The path of a greedy search; empty otherwise
    proof: Proof | None = None  #: The grounds of the exact method; None for other methods
    feasible_designs: int = 0  #: Number of feasible designs
    #: Whether the table has every design that was looked at. If not (``keep="front"``), it has one row for
    #: each distinct point of the front, its first design, and in ``ties`` how many designs have the same
    #: objectives; if nothing is feasible, it has the closest design
    complete: bool = True
    #: Designs at which the model raised or returned NaN, by kind of error: how many, and the first with what
    #: was said there. They are in no other count but evaluations and restored, and in no table
    holes: tuple[Hole, ...] = ()

    def plot(self, axes: Any = None) -> Any:
        """Draw the designs along the first two objectives, front and knee marked; return the axes.

        With one objective it stands over the field with most choices. Own axes are shown at once in a
        notebook. Needs matplotlib.
        """
        from qmodels.systems.spec.pictures import own_axes

        axes = own_axes() if axes is None else axes
        widest = max(self.space.choices, key=lambda name: len(np.unique(self.table[name])))
        x, y = self.objectives[:2] if len(self.objectives) > 1 else (widest, self.objectives[0])
        across, up = (_numbers(self.table[name]) for name in (x, y))
        shown = np.isfinite(across) & np.isfinite(up)
        front = np.zeros(len(shown), dtype=bool)
        front[self.front] = True
        for mask, style in (
            (shown & ~self.feasible, {"c": "lightgrey", "marker": "x", "label": "not feasible"}),
            (shown & self.feasible & ~front, {"c": "grey", "s": 12, "label": "feasible"}),
            (shown & front, {"c": "tab:blue", "s": 28, "label": "front"}),
        ):
            if mask.any():
                axes.scatter(across[mask], up[mask], **style)
        if self.knee is not None and shown[self.knee]:
            knee = (across[self.knee], up[self.knee])
            right = knee[0] > np.mean(axes.get_xlim())
            axes.annotate(
                f"knee: design {self.table['design'][self.knee]}",
                knee,
                xytext=(-8 if right else 8, 8),
                textcoords="offset points",
                ha="right" if right else "left",
            )
            axes.scatter(*knee, facecolors="none", edgecolors="tab:red", s=90)
        if (hidden := len(shown) - int(shown.sum())) > 0:
            axes.set_title(f"{hidden} of {len(shown)} designs are infinite there", fontsize="small")
        for name, label, values in ((x, axes.set_xlabel, self.table[x]), (y, axes.set_ylabel, self.table[y])):
            goal = "least" if name in self.minimize else "most" if name in self.maximize else ""
            label(f"{name} ({goal} is best)" if goal else name)
            if _numbers(values) is not values and axes.get_xlabel() == name:
                axes.set_xticks(np.arange(len(np.unique(values))), np.unique(values))
        axes.legend(fontsize="small")
        return axes

    @property
    def values(self) -> FloatArray:
        """Objectives of all rows, of shape (rows, objectives)."""
        return feasibility.objective_values(self.table, self.objectives)

    def spec(self, row: int) -> Any:
        """Return the spec of a row."""
        return self.space.spec(int(self.table["design"][row]))

    @property
    def bound(self) -> tuple[float, ...] | None:
        """Per objective, the value that no design betters, of the exact method; None for others."""
        return None if self.proof is None else self.proof.bound

    @property
    def gap(self) -> float | None:
        """Gap between the best and the bound (see `Proof`), of the exact method; None for others."""
        return None if self.proof is None else self.proof.gap

    @property
    def unseen(self) -> int:
        """Number of designs, of those that the constraints of the space admit, that were not looked at."""
        return self.space.count() - self._looked

    @property
    def solved(self) -> int:
        """Number of designs with an answer."""
        return self._looked - sum(hole.designs for hole in self.holes)

    @property
    def _looked(self) -> int:
        return self.evaluations + self.restored

    @property
    def distinct(self) -> int:
        """Number of distinct points of the front; designs that tie there count once."""
        return len(self.front) - (self.duplicates if self.complete else 0)

    @cached_property
    def distinct_designs(self) -> int | None:
        """Number of designs that differ in any metric, to all digits; None where not all are in the table."""
        return distinct_rows(self.table, self.space.choices) if self.complete else None

    @property
    def hole_lines(self) -> list[str]:
        """The holes in words."""
        return [
            f"no answer at {hole.designs} designs, as {self.space.label(hole.first)}: {hole}"
            for hole in self.holes
        ]

    def compare(self, exact: Exploration) -> FrontComparison:
        """Compare the front with an exhaustive one for the same objectives; see `optimize.compare_fronts`."""
        if (exact.minimize, exact.maximize) != (self.minimize, self.maximize):
            raise ValueError(
                f"explorations must have the same objectives, got {self.objectives} and {exact.objectives}"
            )
        own, theirs = self.values[self.front], exact.values[exact.front]
        return pareto.compare_fronts(own, theirs, maximize=self.maximized)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the table, with columns ``feasible`` and ``front``, to a file and return its path.

        The ending decides: ``.csv``, or ``.parquet``, which needs pyarrow.
        """
        front = np.zeros(len(self.feasible), dtype=bool)
        front[self.front] = True
        return save_table({**self.table, "feasible": self.feasible, "front": front}, path)

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame; needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.table)

    def __str__(self) -> str:
        lines = [
            f"{self.method}: {self._looked} of {self.space.size} designs"
            f" ({self.evaluations} evaluated, {self.restored} restored)"
            f"{said_distinct(self.distinct_designs)}, {self.feasible_designs} feasible,"
            f" {self.distinct} distinct points and {self.duplicates} ties on the front"
        ]
        if self.knee is not None:
            values = ", ".join(f"{name}={self.table[name][self.knee]:.6g}" for name in self.objectives)
            lines.append(f"knee: {self.space.label(self.table['design'][self.knee])}: {values}")
        if self._looked and not self.feasible_designs:
            alone = [one.constraint for one in self.excluded if one.designs == self._looked]
            reason = (
                " and ".join(f"{name} alone excludes all" for name in alone)
                or "no constraint alone excludes all"
            )
            where = "all designs are infinitely far from it"
            if self.closest is not None:
                where = f"the least violation is at {self.space.label(self.table['design'][self.closest])}"
            lines.append(f"nothing is feasible: {reason}; {where}")
        if self.proof is not None:
            lines.append(str(self.proof))
        lines += self.hole_lines
        return "\n".join(lines + [str(exclusion) for exclusion in self.excluded if exclusion.designs])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the front as a table, at most `SHOWN` designs that are spread over it."""
        from qmodels.systems.spec.result import table_html

        head, *remarks = str(self).splitlines()
        varied = [name for name, choices in self.space.choices.items() if len(choices) > 1]
        names = [*dict.fromkeys(("design", *varied, *self.objectives))]
        order = np.argsort(self.table[self.objectives[0]][self.front], kind="stable")
        spread = np.unique(np.linspace(0, max(len(order) - 1, 0), SHOWN).astype(int))
        rows = self.front[order[spread]] if len(order) else order
        cells = ([_said(self.table[name][row]) for name in names] for row in rows)
        return table_html(head, [names, *cells], remarks)


def said_distinct(designs: int | None) -> str:
    """Return the number of distinct designs in words; nothing where it is not known."""
    return "" if designs is None else f", {designs} distinct"


def conclude(
    goals: Goals,
    table: Columns,
    *,
    seen: Columns | None = None,
    outside: tuple[int, ...] = (),
    holes: tuple[Hole, ...] = (),
    **facts: Any,
) -> Exploration:
    """Conclude from a table of designs, ascending; `seen` has its columns as they are compared."""
    total, feasible, front = feasibility.judged(goals, table, table if seen is None else seen, outside, holes)
    return of_kept(goals, total, whole=(table, feasible, front), **facts)


def of_kept(
    goals: Goals,
    total: Reduction,
    *,
    space: Space,
    whole: tuple[Columns, BoolArray, IntArray] | None = None,
    evaluations: int = 0,
    **facts: Any,
) -> Exploration:
    """Conclude from what is kept of designs; `whole`: a table of all of them, feasible rows and the front."""
    if total.holes and not total.designs:
        first = total.holes[0]
        raise ValueError(
            f"evaluate answers at none of {total.looked} designs: {space.label(first.first)}: {first}"
        )
    some = total.feasible > 0
    if whole is None:
        count = len(total.ties)
        rows = np.arange(count)
        table, feasible, front = (
            total.table | {"ties": total.ties},
            np.full(count, some),
            rows[: count * some],
        )
    else:
        table, feasible, front = whole
        rows = np.searchsorted(table["design"], total.table["design"])
    knee = pareto.knee_index(total.costs) if some else None
    pairs = zip(space.tables, total.outside, strict=True) if total.outside else ()
    outside = [Exclusion(constraint=name, designs=count) for name, count in pairs]
    lost = total.rank is None or (bool(total.rank[0]) and total.alike)
    return Exploration(
        space=space,
        **vars(goals),
        table=table,
        feasible=feasible,
        feasible_designs=total.feasible,
        front=front,
        duplicates=int(total.ties.sum()) - len(total.ties) if some else 0,
        knee=None if knee is None else int(rows[knee]),
        excluded=(*outside, *goals.said(total.tallies)),
        closest=None if lost else int(rows[0]),
        complete=whole is not None,
        evaluations=evaluations,
        restored=total.looked - evaluations,
        holes=total.holes,
        **facts,
    )


def _said(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
