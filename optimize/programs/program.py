"""The integer program behind `choose` and `exact_front`: one cell of every component."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum, inf, nextafter, prod

import numpy as np

from optimize.programs.components import Groups, Tables
from optimize.programs.grid import RESOLUTION, grid_step
from optimize.programs.linear import Model
from optimize.search.pareto import FloatArray, IntArray, nondominated


class Row:
    """One metric of all components, signed so that less is better, with its upper bound."""

    def __init__(self, tables: Tables, metric: str, sign: float, bound: float = inf) -> None:
        self.metric, self.sign, self.bound = metric, sign, bound
        self.values = [sign * tables.column(k, metric) for k in range(len(tables.names))]
        for name, values in zip(tables.names, self.values, strict=True):
            if np.isneginf(values).any():
                raise ValueError(
                    f"{metric!r} of group {name!r} must not be infinitely good, got {-sign * inf}"
                )
        largest = [float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) for values in self.values]
        if sum(largest) == inf:
            raise ValueError(f"{metric!r} must have sums below {np.finfo(float).max:.4g}, got {largest}")

    def total(self, cells: list[int]) -> float:
        """Return the correctly rounded signed sum over one cell per component."""
        return fsum(values[cell] for values, cell in zip(self.values, cells, strict=True))


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Status, the chosen row of every field (empty without a solution), and why there is none.

    The bound is one of the weighted normalised objective, None if nothing was proven.
    """

    status: str
    choice: dict[str, int]
    bound: float | None
    message: str = ""


_OVER_BUDGET = "the budgets cannot be met together"


class Program:
    """Components with objectives and budgets, presolved once, solved for any weights and limits.

    Every row is normalised over the cells that are left: ``(value - least) / scale`` per
    component, at most 1, so that a total is ``floor + scale * normalised``.

    Parameters
    ----------
    groups : mapping
        The components.
    objectives : list of (metric, sign)
        Rows without a bound; an infinite value excludes the cell.
    budgets : list of (metric, sign, bound)
        Bounds of the signed totals, held to the last bit.
    """

    def __init__(
        self,
        groups: Groups,
        objectives: list[tuple[str, float]],
        budgets: list[tuple[str, float, float]],
    ) -> None:
        self.tables = Tables(groups)
        self.objectives = [Row(self.tables, metric, sign) for metric, sign in objectives]
        self.budgets = [Row(self.tables, *budget) for budget in budgets]
        self.rows = self.objectives + self.budgets
        self.message = ""
        self.cells = self._presolve()
        self.solves = 0
        if self.message:
            return
        self.floors: list[float] = []
        self.scales: list[float] = []
        self._weights: list[list[FloatArray]] = []
        for row in self.rows:
            kept = [values[cells] for values, cells in zip(row.values, self.cells, strict=True)]
            least = [float(values.min()) for values in kept]
            above = [values - low for values, low in zip(kept, least, strict=True)]
            scale = max(float(values.max()) for values in above) or 1.0
            self.floors.append(fsum(least))
            self.scales.append(scale)
            self._weights.append([values / scale for values in above])

    def _presolve(self) -> list[IntArray]:
        """Return the cells of every component that may be in a best solution."""
        tables = self.tables
        keep = [np.ones(size, dtype=bool) for size in map(prod, tables.shapes)]
        reasons = []
        for row in self.objectives:
            for k, values in enumerate(row.values):
                keep[k] &= np.isfinite(values)
                if not np.isfinite(values).any():
                    reasons.append(f"no option of group {tables.names[k]!r} has a finite {row.metric!r}")
        for row in self.budgets:
            least = [float(values.min()) for values in row.values]
            if not fsum(least) <= row.bound:
                reasons.append(_unreachable(row, fsum(least)))
                continue
            for k, values in enumerate(row.values):
                others = fsum(least[:k] + least[k + 1 :])
                # A few roundings of slack lose no choice; the check of the solution is exact.
                slack = 8 * np.finfo(float).eps * (abs(others) + abs(row.bound)) if len(least) > 1 else 0.0
                keep[k] &= values + others <= row.bound + slack
        self.message = "; ".join(reasons)
        cells = [np.flatnonzero(good) for good in keep]
        if not self.message and any(not kept.size for kept in cells):
            self.message = _OVER_BUDGET
        return cells if self.message else [self._undominated(k, kept) for k, kept in enumerate(cells)]

    def _undominated(self, component: int, cells: IntArray) -> IntArray:
        """Drop cells that another with the same shared fields beats or equals in every row."""
        costs = np.stack([row.values[component][cells] for row in self.rows], axis=1)
        return cells[best_of_each(self._shared_key(component, cells), costs)]

    def _shared_key(self, component: int, cells: IntArray) -> IntArray:
        owners, key = self.tables.owners, np.zeros(len(cells), dtype=np.int64)
        for name, rows in self.tables.digits(component, cells).items():
            if owners[name] > 1:
                key = key * self.tables.sizes[name] + rows
        return key

    def range(self, row: int) -> float:
        """Return the largest normalised total of a row."""
        return fsum(float(values.max()) for values in self._weights[row])

    def step(self, row: int) -> float | None:
        """Return the step of the grid that normalised values lie on; None if there is none."""
        kept = [values[cells] for values, cells in zip(self.rows[row].values, self.cells, strict=True)]
        if any(_swallowed(values, self.scales[row]) for values in kept):
            return None
        with np.errstate(over="ignore"):  # a scale among the smallest numbers: sizes are infinite beside it
            sizes = [np.abs(values) / self.scales[row] for values in kept]
        return grid_step(np.concatenate(self._weights[row]), np.concatenate(sizes))

    def normalised(self, row: int, choice: Mapping[str, int]) -> float:
        """Return the normalised total of a row at a choice."""
        cells = self.cells_of(choice)
        least = [values[kept].min() for values, kept in zip(self.rows[row].values, self.cells, strict=True)]
        above = [
            values[cell] - low for values, cell, low in zip(self.rows[row].values, cells, least, strict=True)
        ]
        return fsum(above) / self.scales[row]

    def totals(self, choice: Mapping[str, int]) -> dict[str, float]:
        """Return the totals of all metrics with a row at a choice."""
        cells = self.cells_of(choice)
        return {row.metric: row.sign * row.total(cells) + 0.0 for row in self.rows}

    def within(self, choice: Mapping[str, int]) -> bool:
        """Return whether a choice meets all budgets."""
        cells = self.cells_of(choice)
        return all(row.total(cells) <= row.bound for row in self.budgets)

    def cells_of(self, choice: Mapping[str, int]) -> list[int]:
        """Return the cell of every component at a choice."""
        return [self.tables.cell(k, choice) for k in range(len(self.tables.names))]

    def solve(
        self,
        weights: Mapping[int, float],
        limits: Mapping[int, float] | None = None,
        deadline: float = inf,
        extend: Callable[[Build], None] | None = None,
    ) -> Solution:
        """Minimise a weighted sum of normalised objectives.

        Parameters
        ----------
        weights : mapping of int to float
            Weights >= 0 by the number of the objective.
        limits : mapping of int to float, optional
            Upper bounds of normalised objectives, held to the tolerance of the solver.
        deadline : float
            When to stop, on the clock of ``time.perf_counter``.
        extend : callable, optional
            Adds to the model before it is solved, for example costs that are not linear.
        """
        if self.message:
            return Solution(status="infeasible", choice={}, bound=None, message=self.message)
        build = Build(self, weights)
        for objective, limit in (limits or {}).items():
            build.model.at_most(build.terms(self._weights[objective]), limit)
        for number, row in enumerate(self.budgets, start=len(self.objectives)):
            # Rounded outwards: no choice within the budget is lost, the check below does the rest.
            room = (nextafter(row.bound, inf) - nextafter(self.floors[number], -inf)) / self.scales[number]
            if room < 0:  # no cell that the other budgets leave is low enough
                return Solution(status="infeasible", choice={}, bound=None, message=_OVER_BUDGET)
            room = min(room, 2.0 * len(self.cells))  # more does not bind: normalised values are at most 1
            build.model.at_most(build.terms(self._weights[number]), room)
        if extend is not None:
            extend(build)
        while True:
            left = None if deadline == inf else max(deadline - time.perf_counter(), 0.0)
            outcome = build.model.solve(left)
            self.solves += 1
            bound = outcome.bound if np.isfinite(outcome.bound) else None
            if outcome.status == "infeasible":
                return Solution(status="infeasible", choice={}, bound=None, message=_OVER_BUDGET)
            if not outcome.values:
                message = "the time limit came before the first solution"
                return Solution(status=outcome.status, choice={}, bound=bound, message=message)
            choice = build.read(outcome.values)
            if self.within(choice):
                return Solution(status=outcome.status, choice=choice, bound=bound)
            build.exclude(choice)

    def weights_of(self, row: int) -> list[FloatArray]:
        """Return the normalised values of a row, per component and cell."""
        return self._weights[row]


def best_of_each(key: IntArray, costs: FloatArray) -> IntArray:
    """Return the rows, ascending, with distinct nondominated costs among those of equal key."""
    order = np.argsort(key, kind="stable")
    kept = []
    for group in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        best = group[nondominated(costs[group])] if len(group) > 1 else group
        kept.append(best[np.unique(costs[best], axis=0, return_index=True)[1]] if len(best) > 1 else best)
    return np.sort(np.concatenate(kept))


class Build:
    """The variables of one program: a binary per choice of every field, one variable per kept cell.

    The cells of a component that agree with a choice sum to its binary. This holds the
    marginals of every table exactly (the local polytope), so that a cell is a fraction only if
    a binary is. A field of its own component has no binaries where that has fewer cells left
    than its own fields have choices: the cells are binary then.
    """

    def __init__(self, program: Program, weights: Mapping[int, float]) -> None:
        tables, self.model = program.tables, Model()
        self._program = program
        owners = tables.owners
        own = [[name for name in fields if owners[name] == 1] for fields in tables.fields]
        self._binary = [
            bool(names) and len(cells) <= sum(tables.sizes[name] for name in names)
            for names, cells in zip(own, program.cells, strict=True)
        ]
        dropped = {name for names, yes in zip(own, self._binary, strict=True) if yes for name in names}
        self._fields = {
            name: [self.model.binary() for _ in range(size)]
            for name, size in tables.sizes.items()
            if name not in dropped
        }
        for binaries in self._fields.values():
            self.model.equal(dict.fromkeys(binaries, 1.0), 1.0)
        self._cells: list[list[int]] = []
        for k, cells in enumerate(program.cells):
            costs = np.zeros(len(cells))
            for row, weight in weights.items():
                costs += weight * program.weights_of(row)[k]
            numbers = [
                self.model.binary(cost) if self._binary[k] else self.model.continuous(0.0, 1.0, cost)
                for cost in costs.tolist()
            ]
            self._cells.append(numbers)
            digits = tables.digits(k, cells)
            if not any(name in self._fields for name in digits):
                self.model.equal(dict.fromkeys(numbers, 1.0), 1.0)
            for name in digits:
                if name not in self._fields:
                    continue
                parts: list[dict[int, float]] = [{binary: -1.0} for binary in self._fields[name]]
                for number, row in zip(numbers, digits[name].tolist(), strict=True):
                    parts[row][number] = 1.0
                for terms in parts:
                    self.model.equal(terms, 0.0)

    def terms(self, weights: list[FloatArray]) -> dict[int, float]:
        """Return the total of values per component and cell as a linear form."""
        return {
            number: value
            for numbers, values in zip(self._cells, weights, strict=True)
            for number, value in zip(numbers, values.tolist(), strict=True)
        }

    def read(self, values: list[float]) -> dict[str, int]:
        """Return the chosen row of every field."""
        choice = {
            name: int(np.argmax([values[b] for b in binaries])) for name, binaries in self._fields.items()
        }
        for k, (numbers, cells) in enumerate(zip(self._cells, self._program.cells, strict=True)):
            cell = cells[int(np.argmax([values[number] for number in numbers]))]
            for name, row in self._program.tables.digits(k, [cell]).items():
                choice.setdefault(name, int(row[0]))
        return {name: choice[name] for name in self._program.tables.sizes}

    def exclude(self, choice: Mapping[str, int]) -> None:
        """Cut off one choice."""
        taken = [binaries[choice[name]] for name, binaries in self._fields.items()]
        for k, numbers in enumerate(self._cells):
            if self._binary[k]:
                cell = self._program.tables.cell(k, choice)
                taken.append(numbers[int(np.searchsorted(self._program.cells[k], cell))])
        self.model.at_most(dict.fromkeys(taken, 1.0), len(taken) - 1)


def _swallowed(values: FloatArray, scale: float) -> bool:
    """Return whether a value is lost in its normalised one, as 1 is in 1 + 1e300."""
    least = values.min()
    above = values - least
    part = above - values
    lost = (values - (above - part)) - (least + part)  # exact (Knuth's two-sum)
    vanishes = (above > 0) & (above / scale == 0)
    return bool((vanishes | (np.abs(lost) > RESOLUTION * np.abs(values))).any())


def _unreachable(row: Row, least: float) -> str:
    side = "<=" if row.sign > 0 else ">="
    return (
        f"{row.metric} {side} {row.sign * row.bound:g} cannot be met: "
        f"the best sum is {row.sign * least:.6g}, off by {least - row.bound:.4g}"
    )
