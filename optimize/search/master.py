"""The program of the exact method: choices of fields, boxes that hold them, sums and constraints as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from optimize.programs.linear import RESOLUTION, Model
from optimize.search.bounds import ROUNDING, Ranking, Ranks, Sum
from optimize.search.pareto import FloatArray


class Master:
    r"""Minimize the first objective over choices in boxes.

    With one binary :math:`x_{fv}` for each choice of each field and one column :math:`y_b` for each box,

    .. math:: \sum_v x_{fv} = 1, \quad \sum_b y_b = 1, \quad \sum_{b : v \in b_f} y_b \ge x_{fv},
       \quad z_k \ge \sum_b L_{bk} y_b,

    where :math:`L_{bk}` is the bound of objective k in box b: all boxes with a share of the unit hold the
    choices. An objective that is a sum has :math:`z_k` at least that, with a column for each pair of choices
    in tables of two fields, and limited sums are rows.
    """

    def __init__(self, ranking: Ranking, sums: Mapping[int, Sum], objectives: Sequence[int]) -> None:
        self._model, self._sums, self._objectives = Model(), sums, list(objectives)
        self.x = [[self._model.binary() for _ in range(size)] for size in ranking.space.shape]
        self._z = [self._model.continuous(-1.0, None, cost=float(k == 0)) for k in range(len(objectives))]
        for choices in self.x:
            self._model.equal(dict.fromkeys(choices, 1.0), 1.0)

    def solve(
        self, low: Ranks, high: Ranks, bound: FloatArray, limits: FloatArray, epsilon: FloatArray
    ) -> Ranks | None:
        """Return the ranks of the best choices in boxes, within limits and below epsilon; None if none."""
        model, goals = self._model, self._objectives
        y = [model.continuous(0.0, 1.0) for _ in range(len(low))]
        rows = {k: self._row(one) for k, one in self._sums.items()}
        model.equal(dict.fromkeys(y, 1.0), 1.0)
        for axis, choices in enumerate(self.x):
            holds = (low[:, axis] <= np.arange(len(choices))[:, None]) & (
                np.arange(len(choices))[:, None] <= high[:, axis]
            )
            for choice, boxes in zip(choices, holds, strict=True):
                if not boxes.all():
                    model.at_most({choice: 1.0, **{y[b]: -1.0 for b in np.flatnonzero(boxes).tolist()}}, 0.0)
        for z, k, most in zip(self._z, goals, epsilon.tolist(), strict=True):
            ends = bound[np.isfinite(bound[:, k]), k]
            if k in rows:
                ends = np.array([self._sums[k].end(np.min), self._sums[k].end(np.max)])
            least = ends.min(initial=np.inf) if ends.size else 0.0
            scale = np.ptp(ends) if ends.size and np.ptp(ends) > 0 else max(abs(least), 1.0)
            below = np.where(np.isfinite(bound[:, k]), (bound[:, k] - least) / scale, -1.0)
            model.at_most({z: -1.0, **dict(zip(y, below.tolist(), strict=True))}, 0.0)
            if k in rows:
                row = {variable: value / scale for variable, value in rows[k].items()}
                model.at_most({**row, z: -1.0}, (least - self._sums[k].constant) / scale)
            if most < np.inf:
                model.at_most({z: 1.0}, (most - least) / scale - RESOLUTION)
        for k, row in rows.items():
            if limits[k] < np.inf:
                scale = max(self._sums[k].end(np.max) - self._sums[k].end(np.min), 1e-300)
                scaled = {variable: value / scale for variable, value in row.items()}
                model.at_most(scaled, (limits[k] - self._sums[k].constant) / scale + ROUNDING)
        outcome = model.solve()
        if outcome.status == "infeasible":
            return None
        if not outcome.values:
            raise RuntimeError(f"HiGHS gave up on the program of {len(low)} boxes: {outcome.status}")
        chosen = [np.argmax([outcome.values[choice] for choice in choices]) for choices in self.x]
        return np.array(chosen, dtype=np.int32)

    def _row(self, one: Sum) -> dict[int, float]:
        """Return a sum as a row; each pair of choices of a table of two fields has a column."""
        model, terms = self._model, dict[int, float]()
        for axes, table in one.tables.items():
            cells = self.x[axes[0]]
            if len(axes) == 2:
                grid = [[model.continuous(0.0, 1.0) for _ in row] for row in table]
                cells = [variable for row in grid for variable in row]
                for axis, lines in zip(axes, (grid, zip(*grid, strict=True)), strict=True):
                    for choice, line in zip(self.x[axis], lines, strict=True):
                        model.equal({**dict.fromkeys(line, 1.0), choice: -1.0}, 0.0)
            for variable, value in zip(cells, table.ravel().tolist(), strict=True):
                terms[variable] = terms.get(variable, 0.0) + value
        return terms

    def exclude(self, designs: Sequence[Ranks]) -> None:
        """Exclude designs."""
        for ranks in designs:
            taken = {choices[rank]: 1.0 for choices, rank in zip(self.x, ranks.tolist(), strict=True)}
            self._model.at_most(taken, len(taken) - 1.0)

    def constrain(self, ranking: Ranking) -> None:
        """Add the constraints of the space, and the conditions under which its fields matter."""
        space = ranking.space
        x = [
            [choices[rank] for rank in np.argsort(order).tolist()]  # by digits
            for choices, order in zip(self.x, ranking.orders, strict=True)
        ]
        for axes, allowed in (table for _, table in space.tables.values() if table is not None and table[0]):
            for cell in np.ndindex(allowed.shape[:-1]):
                taken = [x[axis][digit] for axis, digit in zip(axes, cell, strict=False)]
                barred = [x[axes[-1]][digit] for digit in np.flatnonzero(~allowed[cell]).tolist()]
                if barred:
                    self._model.at_most(dict.fromkeys([*taken, *barred], 1.0), float(len(taken)))
        for axis, parents in space.structure.parents.items():
            for parent, allowed in parents.items():
                good = {x[parent][digit]: -1.0 for digit in np.flatnonzero(allowed).tolist()}
                self._model.at_most({**dict.fromkeys(x[axis][1:], 1.0), **good}, 0.0)
