"""One cell of every component under budgets: what `choose`, `exact_front` and `sum_front` have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import frexp, fsum, inf, ldexp, nextafter

import numpy as np

from optimize.programs.components import Groups, Tables
from optimize.programs.enumeration import Reached, best_of_each, enumerated
from optimize.programs.linear import Model
from optimize.programs.whole import WholeRow, combined, whole_row
from optimize.search.pareto import FloatArray, IntArray


class Row:
    """One metric of all components, signed so that less is better, with its upper bound."""

    def __init__(self, tables: Tables, metric: str, sign: float, bound: float = inf) -> None:
        self.metric, self.sign, self.bound = metric, sign, bound
        self.values = [sign * tables.column(k, metric) for k in range(len(tables.names))]

    def check(self, tables: Tables, usable: list[IntArray]) -> None:
        """Refuse options that are infinitely good, and sums that are no numbers, among the usable ones."""
        largest = []
        for name, values, kept in zip(tables.names, self.values, usable, strict=True):
            if np.isneginf(values[kept]).any():
                raise ValueError(
                    f"{self.metric!r} of group {name!r} must not be infinitely good, got {-self.sign * inf}"
                )
            largest.append(float(np.abs(values[kept]).max(initial=0.0)))
        if sum(largest) == inf:
            raise ValueError(f"{self.metric!r} must have sums below {np.finfo(float).max:.4g}, got {largest}")

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


OVER_BUDGET = "the budgets cannot be met together"

PRICE_BITS = 20
"""Bits of a price in a surrogate row."""


class Program:
    """Components with objectives and budgets, presolved once: enumerated, or solved for any weights.

    Every row is normalised over the cells that are left: ``(value - least) / scale`` per
    component, at most 1, so that a total is ``floor + scale * normalised``.

    ``groups``: the components; ``objectives``: rows without a bound; an infinite value excludes the cell;
    ``budgets``: bounds of the signed totals, held to the last bit.
    """

    def __init__(
        self, groups: Groups, objectives: list[tuple[str, float]], budgets: list[tuple[str, float, float]]
    ) -> None:
        self.tables = Tables(groups)
        self.objectives = [Row(self.tables, metric, sign) for metric, sign in objectives]
        self.budgets = [Row(self.tables, *budget) for budget in budgets]
        self.rows = self.objectives + self.budgets
        self.message = ""
        self.counts: list[FloatArray] = []
        self.cells = self._presolve()
        self.solves = 0
        if self.message:
            return
        self.whole = [
            whole_row(
                [values[cells] for values, cells in zip(row.values, self.cells, strict=True)], row.bound
            )
            for row in self.rows
        ]
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
        # An infinitely bad option is never chosen, however good it is in another row.
        usable = [
            ~np.any(np.isposinf(own), axis=0) for own in zip(*(r.values for r in self.rows), strict=True)
        ]
        keep = [np.asarray(good) for good in usable]
        reasons = []
        for k, name in enumerate(tables.names):
            if not keep[k].any():
                none = [row.metric for row in self.rows if np.isposinf(row.values[k]).all()]
                what = repr(none[0]) if none else " and ".join(repr(row.metric) for row in self.rows)
                reasons.append(f"no option of group {name!r} has a finite {what}")
        for row in self.rows:
            row.check(tables, [np.flatnonzero(good) for good in usable])
        for row in self.budgets if not reasons else ():
            least = [float(values[good].min()) for values, good in zip(row.values, usable, strict=True)]
            if not fsum(least) <= row.bound:
                reasons.append(_unreachable(row, fsum(least)))
                continue
            for k, values in enumerate(row.values):
                others = fsum(least[:k] + least[k + 1 :])
                # A few roundings of slack lose no choice; the check of the solution is exact.
                slack = 8 * np.finfo(float).eps * (abs(others) + abs(row.bound)) if len(least) > 1 else 0.0
                keep[k] = keep[k] & (values + others <= row.bound + slack)
        self.message = "; ".join(reasons)
        cells = [np.flatnonzero(good) for good in keep]
        if not self.message and any(not kept.size for kept in cells):
            self.message = OVER_BUDGET
        return cells if self.message else [self._undominated(k, kept) for k, kept in enumerate(cells)]

    def _undominated(self, component: int, cells: IntArray) -> IntArray:
        """Drop cells that another with the same shared fields beats or equals in every row."""
        costs = np.stack([row.values[component][cells] for row in self.rows], axis=1)
        key = np.zeros(len(cells), dtype=np.int64)
        for name, rows in self.tables.digits(component, cells).items():
            if self.tables.owners[name] > 1:
                key = key * self.tables.sizes[name] + rows
        kept, counts = best_of_each(key, costs, np.ones(len(cells)))
        self.counts.append(counts)
        return cells[kept]

    def enumerate(
        self, rows: list[WholeRow] | None = None, *, most: float = inf, deadline: float = inf
    ) -> Reached | None:
        """Return all that the sums can reach, see `optimize.programs.enumeration.enumerated`."""
        return enumerated(
            self.tables,
            self.cells,
            self.counts,
            self.whole if rows is None else rows,
            len(self.objectives),
            most=most,
            deadline=deadline,
        )

    def costs(self, cells: IntArray) -> FloatArray:
        """Return the correctly rounded signed objectives of cells of shape (choices, components)."""
        totals = [[row.total(one) for row in self.objectives] for one in cells.tolist()]
        return np.array(totals).reshape(len(cells), len(self.objectives))

    def choice_of(self, cells: list[int]) -> dict[str, int]:
        """Return the row of every field at one cell of every component."""
        choice: dict[str, int] = {}
        for k, cell in enumerate(cells):
            choice |= {name: int(row[0]) for name, row in self.tables.digits(k, [cell]).items()}
        return {name: choice[name] for name in self.tables.sizes}

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
        deadline: float = inf,
        extend: Callable[[Build], None] | None = None,
        tries: float = inf,
    ) -> Solution:
        """Minimise a weighted sum of normalised objectives.

        Parameters
        ----------
        weights : mapping of int to float
            Weights >= 0 by the number of the objective.
        deadline : float
            When to stop, on the clock of ``time.perf_counter``.
        extend : callable, optional
            Adds to the model before it is solved, for example costs that are not linear.
        tries : float
            How many choices that exceed a budget within the tolerance of the solver are cut off, one by one.
        """
        if self.message:
            return Solution(status="infeasible", choice={}, bound=None, message=self.message)
        build = Build(self, weights)
        if self._add_budgets(build) is None:
            return Solution(status="infeasible", choice={}, bound=None, message=OVER_BUDGET)
        if extend is not None:
            extend(build)
        while True:
            left = None if deadline == inf else max(deadline - time.perf_counter(), 0.0)
            outcome = build.model.solve(left)
            self.solves += 1
            bound = outcome.bound if np.isfinite(outcome.bound) else None
            if outcome.status == "infeasible":
                return Solution(status="infeasible", choice={}, bound=None, message=OVER_BUDGET)
            if not outcome.values:
                message = "the time limit came before the first solution"
                return Solution(status=outcome.status, choice={}, bound=bound, message=message)
            choice = build.read(outcome.values)
            if self.within(choice):
                return Solution(status=outcome.status, choice=choice, bound=bound)
            if self.solves > tries:
                return Solution(status="feasible", choice={}, bound=bound)
            build.exclude(choice)

    def weights_of(self, row: int) -> list[FloatArray]:
        """Return the normalised values of a row, per component and cell."""
        return self._weights[row]

    def _add_budgets(self, build: Build) -> list[int] | None:
        """Add the budgets to a model and return their rows; None if one cannot be met."""
        rows = []
        for number, row in enumerate(self.budgets, start=len(self.objectives)):
            # Rounded outwards: no choice within the budget is lost, the check of the choice does the rest.
            room = (nextafter(row.bound, inf) - nextafter(self.floors[number], -inf)) / self.scales[number]
            if room < 0:  # no cell that the other budgets leave is low enough
                return None
            room = min(room, 2.0 * len(self.cells))  # more does not bind: normalised values are at most 1
            rows.append(build.model.at_most(build.terms(self._weights[number]), room))
        return rows

    def surrogate(self, deadline: float) -> WholeRow:
        """Return a row that is at most the first objective for every choice within the budgets.

        It is the objective plus what exceeds the budgets, at the prices of the relaxed program. That holds
        whatever the prices are (weak duality): nothing rests on the rounding of the solver.
        """
        build = Build(self, {0: 1.0}, relaxed=True)
        rows = self._add_budgets(build) or []
        duals = build.model.prices(None if deadline == inf else max(deadline - time.perf_counter(), 0.0))
        prices = []
        for number, row in enumerate(rows if duals else (), start=1):
            price = max(-duals[row], 0.0) * self.scales[0] / self.scales[number]
            mantissa, exponent = frexp(price) if price < inf else (0.0, 0)
            # Few bits of a price do as well and keep the numbers short.
            prices.append(ldexp(round(mantissa * 2**PRICE_BITS), exponent - PRICE_BITS))
        return self.priced(prices)

    def priced(self, prices: Sequence[float]) -> WholeRow:
        """Return the first objective plus what exceeds the budgets at some prices >= 0, without rounding."""
        chosen, weights = [replace(self.whole[0], ceiling=0)], [1.0]
        for row, price in zip(self.whole[len(self.objectives) :], prices, strict=False):
            if price and row.ceiling is not None:
                chosen.append(row)
                weights.append(price)
        total = combined(chosen, weights)
        assert total.ceiling is not None
        return WholeRow([total.parts[0] - total.ceiling, *total.parts[1:]], total.exponent)


class Build:
    """The variables of one program: a binary per choice of every field, one variable per kept cell.

    The cells of a component that agree with a choice sum to its binary. This holds the
    marginals of every table exactly (the local polytope), so that a cell is a fraction only if
    a binary is. A field of its own component has no binaries where that has fewer cells left
    than its own fields have choices: the cells are binary then.
    """

    def __init__(self, program: Program, weights: Mapping[int, float], *, relaxed: bool = False) -> None:
        tables, self.model = program.tables, Model(relaxed=relaxed)
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


def _unreachable(row: Row, least: float) -> str:
    side = "<=" if row.sign > 0 else ">="
    return (
        f"{row.metric} {side} {row.sign * row.bound:g} cannot be met: "
        f"the best sum is {row.sign * least:.6g}, off by {least - row.bound:.4g}"
    )
