"""The answer of an exploration: a table of designs, the front, the knee, what was excluded."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.checks import Range, size_of
from optimize.search.greedy import Step
from optimize.search.pareto import (
    FloatArray,
    FrontComparison,
    IntArray,
    as_costs,
    compare_fronts,
    knee_index,
    nondominated,
)
from optimize.search.proof import Proof
from optimize.spaces.choices import Column
from optimize.spaces.numbering import Columns
from optimize.spaces.space import Space
from optimize.spaces.stability import STABLE, excess, resources, saturated
from optimize.spaces.tables import save_table


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """How many designs one constraint excludes and by how much the nearest of them misses it.

    Parameters
    ----------
    constraint : str
        One side of a ``subject_to`` range (``"cost <= 40"``), the name of a constraint of the
        space, ``"stable"``, or that an objective is finite (``"latency < inf"``).
    designs : int
        Number of designs that violate it, whatever else they violate.
    nearest : int or None
        Number of the excluded design that misses least, the first of equals; None for a
        constraint without a measure, if all miss it by an infinite amount, or if none is excluded.
    value, miss : float or None
        Its value and how far that is outside the range; of a design that is not stable, the load
        of its fullest resource and how far that is above 1. The miss alone is infinite where it
        is for all.
    resources : str
        Of designs that are not stable, which resources fill up first.
    """

    constraint: str
    designs: int
    nearest: int | None = None
    value: float | None = None
    miss: float | None = None
    resources: str = ""

    def __str__(self) -> str:
        text = f"{self.constraint} excludes {self.designs} designs"
        if self.resources:
            text += f" ({self.resources})"
        if self.nearest is None:
            return text if self.miss is None else f"{text}; all miss it by an infinite amount"
        what = f"a load of {self.value:.4g}" if self.constraint == STABLE else f"{self.value:.6g}"
        return f"{text}; the nearest is design {self.nearest} with {what}, off by {self.miss:.4g}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Exploration:
    """Evaluated designs and the best of them.

    Rows of the table are ordered by design number. ``front``, ``knee`` and ``feasible`` refer
    to rows; ``table["design"]`` has the design numbers of the space.

    Parameters
    ----------
    space : Space
        What was explored.
    method : str
        How.
    minimize, maximize : tuple of str
        The objectives.
    subject_to : dict of str to (low, high)
        The limits.
    table : dict of str to ndarray
        Tidy columns: ``design``, every varied field, every metric. Of an estimate the column
        has the best value and ``<metric>_low`` and ``<metric>_high`` its interval.
    feasible : ndarray of bool
        Whether a row satisfies ``subject_to``, is ``stable`` if the model says so, and is
        infinitely bad in no objective.
    front : ndarray of int
        Rows of the nondominated feasible designs (see `optimize.nondominated`), ascending;
        designs with equal objectives are all kept.
    duplicates : int
        How many rows of the front repeat the objectives of an earlier one.
    knee : int or None
        The row of the knee of the front (see `optimize.knee_index`); None without a front.
    excluded : tuple of Exclusion
        One entry per constraint of the space, for designs that are not stable or infinitely bad
        in an objective if there are any, and one per side of ``subject_to``.
    closest : int or None
        If no row is feasible, the one that misses the fewest constraints by an infinite amount,
        and of those violates the others least (see `violation`); None if all miss by infinite
        amounts alike.
    evaluations, restored : int
        Designs evaluated by this call, and taken from its store.
    history : tuple of Step
        The path of a greedy or coordinate search; empty otherwise.
    proof : Proof or None
        What a branch and bound rests on; None for other methods.
    """

    space: Space
    method: str
    minimize: tuple[str, ...]
    maximize: tuple[str, ...]
    subject_to: dict[str, Range]
    table: Columns
    feasible: npt.NDArray[np.bool_]
    front: IntArray
    duplicates: int
    knee: int | None
    excluded: tuple[Exclusion, ...]
    evaluations: int
    restored: int
    closest: int | None = None
    history: tuple[Step, ...] = ()
    proof: Proof | None = None

    def plot(self, axes: Any = None) -> Any:
        """Draw the designs along the first two objectives, front and knee marked; return the axes.

        With one objective it stands over the field with most choices. Own axes are shown at once in a
        notebook. Needs matplotlib.
        """
        from optimize.search.picture import draw, own_axes

        if axes is None:
            axes = own_axes()
        draw(self, axes)
        return axes

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of the objectives, the minimised ones first."""
        return self.minimize + self.maximize

    @property
    def maximized(self) -> tuple[bool, ...]:
        """Whether an objective is maximised, in that order: the mask of the pareto functions."""
        return (False,) * len(self.minimize) + (True,) * len(self.maximize)

    @property
    def values(self) -> FloatArray:
        """Objectives of all rows, of shape (rows, objectives)."""
        return objective_values(self.table, self.objectives)

    def spec(self, row: int) -> Any:
        """Return the spec of a row."""
        return self.space.spec(int(self.table["design"][row]))

    @property
    def unseen(self) -> int:
        """Number of designs, of those that the constraints of the space admit, that are not in the table."""
        return self.space.count() - len(self.feasible)

    def compare(self, exact: Exploration) -> FrontComparison:
        """Compare the front with that of an exhaustive exploration for the same objectives.

        Returns
        -------
        FrontComparison
            What is missed, with rows of the exact front (see `optimize.compare_fronts`).
        """
        if (exact.minimize, exact.maximize) != (self.minimize, self.maximize):
            raise ValueError(
                f"explorations must have the same objectives, got {self.objectives} and {exact.objectives}"
            )
        own, theirs = self.values[self.front], exact.values[exact.front]
        return compare_fronts(own, theirs, maximize=self.maximized)

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
            f"{self.method}: {len(self.feasible)} of {self.space.size} designs"
            f" ({self.evaluations} evaluated, {self.restored} restored), {int(self.feasible.sum())} feasible,"
            f" {len(self.front)} on the front ({self.duplicates} repeat another's objectives)"
        ]
        if self.knee is not None:
            values = ", ".join(f"{name}={self.table[name][self.knee]:.6g}" for name in self.objectives)
            lines.append(f"knee: {self.space.label(self.table['design'][self.knee])}: {values}")
        if len(self.feasible) and not self.feasible.any():
            alone = [one.constraint for one in self.excluded if one.designs == len(self.feasible)]
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
        return "\n".join(lines + [str(exclusion) for exclusion in self.excluded if exclusion.designs])

    __repr__ = __str__


def objective_values(table: Columns, objectives: tuple[str, ...]) -> FloatArray:
    """Return columns of a table side by side; text is no objective."""
    for name in objectives:
        if table[name].dtype.kind not in "biuf":
            raise ValueError(f"objective {name!r} must be a number, got {table[name][:1].tolist()[0]!r}")
    return np.stack([table[name].astype(float) for name in objectives], axis=1)


def misses(table: Columns, subject_to: dict[str, Range]) -> dict[tuple[str, str, float], FloatArray]:
    """Return how far each row is outside each side of the ranges, 0 if inside."""
    result = {}
    for name, (low, high) in subject_to.items():
        column = objective_values(table, (name,))[:, 0]
        for sign, bound, cost in ((">=", low, -column), ("<=", high, column)):
            if bound is not None:
                outside = cost > (bound if sign == "<=" else -bound)
                with np.errstate(invalid="ignore"):
                    distance = np.abs(column - bound)
                result[name, sign, bound] = np.where(outside, distance, 0.0)
    return result


def violation(table: Columns, subject_to: dict[str, Range]) -> FloatArray:
    """Return how far each row is outside the ranges, summed: relative to the ends, but for 0 and infinity.

    To a row that is not stable the excess of its load over 1 is added, or 1 if the load is not known.
    """
    return np.sum(_shortfalls(table, subject_to), axis=0)


def _shortfalls(table: Columns, subject_to: dict[str, Range]) -> list[FloatArray]:
    """Return the terms of `violation`."""
    full = saturated(table, subject_to)
    too_much = np.zeros(full.size)
    measure = excess(table, np.flatnonzero(full))
    too_much[full] = 1.0 if measure is None else measure[1]
    return [too_much, *(miss / size_of(bound) for (_, _, bound), miss in misses(table, subject_to).items())]


def _exclusion(constraint: str, designs: IntArray, values: Column, miss: FloatArray) -> Exclusion:
    if not miss.size:
        return Exclusion(constraint=constraint, designs=0)
    k = int(miss.argmin())
    if np.isinf(miss[k]):
        return Exclusion(constraint=constraint, designs=miss.size, miss=float(miss[k]))
    return Exclusion(
        constraint=constraint,
        designs=miss.size,
        nearest=int(designs[k]),
        value=float(values[k]),
        miss=float(miss[k]),
    )


def _unstable(table: Columns, rows: IntArray) -> Exclusion:
    """Return what is to be said of the rows that do not keep up."""
    measure, words = excess(table, rows), resources(table, rows)
    if measure is None:
        return Exclusion(constraint=STABLE, designs=rows.size, resources=words)
    return replace(_exclusion(STABLE, table["design"][rows], *measure), resources=words)


def least_miss(table: Columns, subject_to: dict[str, Range], costs: FloatArray) -> int | None:
    """Return the row that is nearest to being feasible; None if all are infinitely far and alike."""
    terms = np.stack(_shortfalls(table, subject_to))
    endless = np.isinf(terms).sum(axis=0) + np.isposinf(costs).sum(axis=1)
    finite = terms.sum(axis=0, where=np.isfinite(terms))
    row = int(np.lexsort((finite, endless))[0])
    alike = (endless == endless[row]).all() and (finite == finite[row]).all()
    return None if endless[row] and alike else row


def conclude(
    *,
    minimize: tuple[str, ...],
    maximize: tuple[str, ...],
    subject_to: dict[str, Range],
    table: Columns,
    excluded: tuple[Exclusion, ...],
    **facts: Any,
) -> Exploration:
    """Find the front, the knee and the exclusions of a finished table; the rest goes into the answer."""
    mask = [False] * len(minimize) + [True] * len(maximize)
    feasible = np.ones(len(table["design"]), dtype=bool)
    front = np.zeros(0, dtype=np.int64)
    duplicates, knee, closest = 0, None, None
    if len(feasible):
        feasible, more = _feasible(table, minimize, maximize, subject_to)
        excluded += more
        costs = as_costs(objective_values(table, minimize + maximize), mask)
        candidates = np.flatnonzero(feasible)
        front = candidates[nondominated(costs[candidates])]
        duplicates = len(front) - len(np.unique(costs[front], axis=0))
        nearest = knee_index(costs[front])
        knee = None if nearest is None else int(front[nearest])
        closest = None if feasible.any() else least_miss(table, subject_to, costs)
    return Exploration(
        minimize=minimize,
        maximize=maximize,
        subject_to=subject_to,
        table=table,
        feasible=feasible,
        front=front,
        duplicates=duplicates,
        knee=knee,
        excluded=excluded,
        closest=closest,
        **facts,
    )


def _feasible(
    table: Columns, minimize: tuple[str, ...], maximize: tuple[str, ...], subject_to: dict[str, Range]
) -> tuple[npt.NDArray[np.bool_], tuple[Exclusion, ...]]:
    """Return which rows keep up, are finite in the objectives and in the ranges, and what excludes others."""
    full = saturated(table, subject_to)
    feasible = ~full
    excluded = [_unstable(table, np.flatnonzero(full))] if full.any() else []
    for name, sign, worst in [(n, "<", np.inf) for n in minimize] + [(n, ">", -np.inf) for n in maximize]:
        endless = np.flatnonzero((table[name] == worst) & ~full)
        if endless.size:
            words = resources(table, endless)
            limit = f"{name} {sign} {worst}"
            excluded.append(Exclusion(constraint=limit, designs=endless.size, miss=np.inf, resources=words))
            feasible[endless] = False
    for (name, sign, bound), miss in misses(table, subject_to).items():
        feasible &= miss == 0
        rows = np.flatnonzero(miss > 0)
        limit = f"{name} {sign} {bound:g}"
        excluded.append(_exclusion(limit, table["design"][rows], table[name][rows], miss[rows]))
    return feasible, tuple(excluded)
