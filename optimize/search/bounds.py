"""Least values of metrics over boxes, and the program that chooses among boxes and sums of choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.programs.linear import RESOLUTION, Model
from optimize.search.feasibility import Demand
from optimize.search.pareto import FloatArray
from optimize.spaces.evaluation import STABLE
from optimize.spaces.numbering import Designs
from optimize.spaces.space import Space
from qmodels.systems.spec.fields import find_field

DIRECTIONS = {"increasing": 1, "decreasing": -1, "constant": 0}
"""Words for how a metric moves when a field grows; the first two allow that it stays."""
ROUNDING = 1e-9  # relative difference up to which two values count as equal
START = 1 << 14
"""Boxes to begin with up to which the fields that bounds need at one value are told apart at once."""
HELD_OUT = 16  # designs drawn to check that a metric is a sum
Ranks = npt.NDArray[np.int32]
Directions = Mapping[str, Mapping[str, str]]


class Derived(Protocol):
    """Bounds that a model derives over boxes of specs; see `qmodels.bounds`, which returns such."""

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
        """The conditions under which they hold, in words."""


class Ranking:
    """Designs of a space by ranks: the place of each field's value among its choices, the smallest first.

    Choices that are no numbers rank in the order in which they are given.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.orders = [
            np.argsort(space.column(name), kind="stable") if name in space.numeric else np.arange(len(values))
            for name, values in space.choices.items()
        ]

    def numbers(self, ranks: npt.NDArray[Any]) -> Designs:
        """Return the design of each row of ranks."""
        return self.space.number_of(order[rank] for order, rank in zip(self.orders, ranks.T, strict=True))

    def ranks(self, designs: Designs) -> Ranks:
        """Return the ranks of designs, one row each."""
        digits = self.space.all_digits(designs)
        columns = [np.argsort(order)[digit] for order, digit in zip(self.orders, digits, strict=True)]
        return np.stack(columns, axis=1).astype(np.int32)


class DerivedBounds:
    """Bounds that a model derives, as the least of every demand over boxes of ranks."""

    def __init__(self, ranking: Ranking, demands: Sequence[Demand], bounds: Derived) -> None:
        space = ranking.space
        self._ranking, self._demands, self._bounds = ranking, demands, bounds
        self.stages, self.assumes = len(bounds.stages), bounds.assumes
        self.effects = np.ones(len(space.choices))
        self.known = {demand.metric for demand in demands} & set(bounds.derived)
        axes = {path: axis for axis, path in enumerate(space.paths.values())}
        names = list(space.choices)
        coupled = {names.index(name) for name in space.coupled}
        self._words = [axis for axis, name in enumerate(names) if name not in space.numeric]
        spans = {
            axes[path] for path in (find_field(space.base, name) for name in bounds.spans) if path in axes
        }
        pinned = set(range(len(names))) - (spans - coupled - set(self._words))
        early = [find_field(space.base, name) for name in bounds.early]
        self.first = [axes[path] for path in early if path in axes]
        for axis in self.first:
            if math.prod(space.shape[other] for other in pinned | {axis}) <= START:
                pinned.add(axis)
        self.pinned = sorted(pinned)
        self.idle = np.zeros((len(demands), len(names)), dtype=bool)
        for k, demand in enumerate(demands):
            for name in bounds.idle.get(demand.metric, ()):
                if (path := find_field(space.base, name)) in axes:
                    self.idle[k, axes[path]] = True

    def least(self, low: Ranks, high: Ranks, stage: int) -> FloatArray:
        """Return the least of every demand in boxes, infinite where no design is stable."""
        least = np.full((len(low), len(self._demands)), -np.inf)
        _, alike = np.unique(low[:, self._words], axis=0, return_inverse=True)
        for group in range(int(alike.max(initial=-1)) + 1):
            rows = np.flatnonzero(alike.reshape(-1) == group)
            corners = [self._ranking.space.batch(self._ranking.numbers(ranks[rows])) for ranks in (low, high)]
            ends = self._bounds.stages[stage](*corners)
            full = ends[STABLE][1] == 0.0
            for k, demand in enumerate(self._demands):
                if demand.metric in self.known:
                    low_end, high_end = ends[demand.metric]
                    least[rows, k] = low_end if demand.sign > 0 else -high_end
                least[rows[full], k] = np.inf
        return least


class DeclaredBounds:
    """Directions that a user declares: the best corner of a box, solved, bounds it."""

    stages, assumes = 1, "declared directions"

    def __init__(
        self,
        ranking: Ranking,
        demands: Sequence[Demand],
        bounds: Directions,
        solve: Callable[[Designs], FloatArray],
    ) -> None:
        space = ranking.space
        self._ranking, self._demands, self._solve = ranking, demands, solve
        self.fields = list(space.choices)
        names = {path: name for name, path in space.paths.items()}
        self.directions: dict[str, dict[int, int]] = {}
        for metric, given in bounds.items():
            if not isinstance(given, Mapping):
                raise ValueError(f"bounds[{metric!r}] must be {{field: direction}}, got {given!r}")
            for field, word in given.items():
                checks.choice(f"bounds[{metric!r}][{field!r}]", word, DIRECTIONS)
                path = find_field(space.base, field)
                if path in names:
                    axis = self.fields.index(names[path])
                    self.directions.setdefault(metric, {})[axis] = DIRECTIONS[word]
        self.known = {demand.metric for demand in demands} & self.directions.keys()
        self.pinned = [self.fields.index(name) for name in space.coupled]
        self.idle = np.zeros((len(demands), len(self.fields)), dtype=bool)
        self.effects = np.ones(len(self.fields))

    def measure(self, seed: int) -> None:
        """Solve the designs along every field from one: the effect of a field says where to halve boxes."""
        space = self._ranking.space
        if not self.known or space.first() is None:
            return
        centre = self._ranking.ranks(space.sample(1, seed=seed))
        lines = [np.repeat(centre, size, axis=0) for size in space.shape]
        for axis, line in enumerate(lines):
            line[:, axis] = np.arange(len(line))
        numbers = [np.unique(space.numbers(self._ranking.numbers(line))) for line in lines]
        costs = [self._solve(space.admitted(each)) for each in numbers]
        spread = np.stack([np.ptp(np.where(np.isfinite(each), each, 0.0), axis=0) for each in costs])
        self.effects = (spread / np.maximum(spread.max(axis=0), 1e-300)).sum(axis=1) + 1e-6

    @property
    def first(self) -> list[int]:
        """Axes along which some metric has no direction: boxes are bounded once these have one value."""
        given = [self.directions[metric] for metric in self.known]
        return [axis for axis in range(len(self.fields)) if any(axis not in each for each in given)]

    def least(self, low: Ranks, high: Ranks, stage: int) -> FloatArray:
        """Return the demands at the best corners, where all fields without a direction have one value."""
        least = np.full((len(low), len(self._demands)), -np.inf)
        corners = []
        for demand in self._demands:
            given = self.directions.get(demand.metric, {})
            free = [axis for axis in range(len(self.fields)) if axis not in given]
            rows = np.flatnonzero((low[:, free] == high[:, free]).all(axis=1))
            rows = rows if demand.metric in self.known else rows[:0]
            falls = [axis for axis, sign in given.items() if demand.sign * sign < 0]
            ranks = low[rows]
            ranks[:, falls] = high[rows][:, falls]
            wide = (low[rows] < high[rows]).any(axis=1)
            for axis in (axis for axis, sign in given.items() if sign == 0 and axis not in self.pinned):
                ranks[wide, axis] = 0  # any choice does: the same one for all boxes
            corners.append((rows, self._ranking.numbers(ranks)))
        designs, place = np.unique(np.concatenate([numbers for _, numbers in corners]), return_inverse=True)
        costs, start = self._solve(designs.astype(np.int64)), 0
        for k, (rows, numbers) in enumerate(corners):
            least[rows, k] = costs[place.reshape(-1)[start : start + numbers.size], k]
            start += numbers.size
        return least

    def contradicted(self, designs: Designs, costs: FloatArray, tolerance: float) -> list[str]:
        """Give up the directions that neighbours among solved designs contradict, and say which."""
        ranks, words = self._ranking.ranks(designs), []
        for axis, field in enumerate(self.fields):
            order = np.lexsort((ranks[:, axis], *np.delete(ranks, axis, axis=1).T))
            line = np.delete(ranks[order], axis, axis=1)
            same = np.flatnonzero((line[1:] == line[:-1]).all(axis=1))
            first, second = order[same], order[same + 1]
            for k, demand in enumerate(self._demands):
                sign = self.directions.get(demand.metric, {}).get(axis)
                if sign is None or not same.size:
                    continue
                low, high = demand.sign * costs[first, k], demand.sign * costs[second, k]
                with np.errstate(invalid="ignore"):
                    step = np.where(low == high, 0.0, high - low)
                    size = tolerance * np.maximum(np.abs(low), np.abs(high))
                against = np.abs(step) if sign == 0 else -sign * step
                bad = against > np.where(np.isfinite(step), size, 0.0)
                if bad.any():
                    at = int(np.where(bad, against, -np.inf).argmax())
                    word = next(word for word, value in DIRECTIONS.items() if value == sign)
                    words.append(
                        f"{demand.metric} is declared {word} in {field}, but is {low[at]:.6g} at design"
                        f" {designs[first[at]]} and {high[at]:.6g} at design {designs[second[at]]}"
                    )
                    del self.directions[demand.metric][axis]
        return words


@dataclass(frozen=True, kw_only=True, eq=False)
class Sum:
    """A signed metric that is a constant and tables over the ranks of one field or of two."""

    constant: float
    tables: Mapping[tuple[int, ...], FloatArray]

    def at(self, ranks: Ranks) -> FloatArray:
        """Return its values at designs."""
        return self.constant + sum(
            (table[tuple(ranks[:, axis] for axis in axes)] for axes, table in self.tables.items()),
            np.zeros(len(ranks)),
        )

    def end(self, of: Callable[[FloatArray], float]) -> float:
        """Return the sum of the least, or of the largest, entries of all tables: no value lies beyond it."""
        return self.constant + sum(float(of(table)) for table in self.tables.values())

    def least(self, low: Ranks, high: Ranks) -> FloatArray:
        """Return no more than the least in boxes; the least itself where no table has two fields."""
        total = np.full(len(low), self.constant)
        for axes, table in self.tables.items():
            inside = np.ones((len(low), *table.shape), dtype=bool)
            for place, axis in enumerate(axes):
                shape = [-1 if other == place else 1 for other in range(len(axes))]
                rank = np.arange(table.shape[place]).reshape(1, *shape)
                ends = (end[:, axis].reshape(-1, *([1] * len(axes))) for end in (low, high))
                inside &= (next(ends) <= rank) & (rank <= next(ends))
            total += np.where(inside, table, np.inf).reshape(len(low), -1).min(axis=1)
        return total


def field_sums(ranking: Ranking, demands: Sequence[Demand]) -> dict[int, Sum]:
    """Return those demands that are varied fields, as sums of one table."""
    space, names = ranking.space, list(ranking.space.choices)
    found = {}
    for k, demand in enumerate(demands):
        if demand.metric in names:
            axis = names.index(demand.metric)
            table = demand.sign * space.column(demand.metric)[ranking.orders[axis]].astype(float)
            found[k] = Sum(constant=0.0, tables={(axis,): table})
    return found


def learned_sums(
    ranking: Ranking,
    demands: Sequence[Demand],
    wanted: Sequence[int],
    solve: Callable[[Designs], FloatArray],
    seed: int,
) -> dict[int, Sum]:
    """Return those of some demands that are sums of choices or of pairs, as far as solved designs tell.

    Differences along every field from one design give the tables of single fields, differences along two
    fields those of pairs (the anchored decomposition, cut-HDMR [1]_); designs drawn at random, which the
    tables have not seen, check both. Where pairs would take more than a quarter of the designs, none is
    looked for.

    References
    ----------
    .. [1] H. Rabitz et al., "General foundations of high-dimensional model representations", Journal of
       Mathematical Chemistry 25, 1999.
    """
    space, count = ranking.space, ranking.space.count()
    start = space.start()
    if start is None or not wanted:
        return {}
    anchor = ranking.ranks(space.numbers([int(space.number_of(start))]))[0]
    drawn = ranking.ranks(space.sample(min(HELD_OUT, count), seed=seed))

    def values(*axes: int) -> FloatArray | None:
        """Return the demands over all choices of some fields around the anchor."""
        sizes = [space.shape[axis] for axis in axes]
        ranks = np.tile(anchor, (math.prod(sizes), 1))
        ranks[:, list(axes)] = np.stack([grid.ravel() for grid in np.indices(sizes)], axis=1)
        numbers = ranking.numbers(ranks)
        if space.admitted(space.numbers(numbers)).size < numbers.size:
            return None
        return solve(numbers).reshape(*sizes, len(demands))

    def unexplained(sums: dict[int, Sum], ranks: Ranks) -> list[int]:
        costs = solve(ranking.numbers(ranks))
        with np.errstate(invalid="ignore"):
            bad = {k: np.abs(one.at(ranks) - costs[:, k]) > ROUNDING * sizes[k] for k, one in sums.items()}
        return [k for k in sums if bad[k].any() or not np.isfinite(costs[:, k]).all()]

    lines = [line for axis in range(len(anchor)) if (line := values(axis)) is not None]
    if len(lines) < len(anchor):
        return {}
    base = solve(ranking.numbers(anchor[None]))[0]
    every = np.concatenate(lines)
    sizes = np.abs(every).max(axis=0)
    tables: dict[int, dict[tuple[int, ...], FloatArray]] = {
        k: {(axis,): line[:, k] - base[k] for axis, line in enumerate(lines)}
        for k in wanted
        if np.isfinite(every[:, k]).all()
    }
    sums = {k: Sum(constant=float(base[k]), tables=own) for k, own in tables.items()}
    rest = unexplained(sums, drawn)
    far = np.where(anchor > 0, 0, np.array(space.shape) - 1)
    moving = np.flatnonzero(far != anchor).tolist()
    pairs = [(a, b) for b in moving for a in moving if a > b] if rest else []
    corners = np.tile(anchor, (len(pairs), 1))
    for row, pair in zip(corners, pairs, strict=True):
        row[list(pair)] = far[list(pair)]
    numbers = ranking.numbers(corners)
    if space.admitted(space.numbers(numbers)).size == numbers.size > 0:
        off = np.stack([sums[k].at(corners) - solve(numbers)[:, k] for k in rest], axis=1)
        met = [pairs[row] for row in np.flatnonzero((np.abs(off) > ROUNDING * sizes[rest]).any(axis=1))]
        if sum(space.shape[a] * space.shape[b] for a, b in met) <= count / 4:
            for a, b in met:
                both = values(a, b)
                for k in rest if both is not None else ():
                    own = tables[k]
                    own[a, b] = np.asarray(both)[..., k] - base[k] - own[a,][:, None] - own[b,][None]
    bad = unexplained(sums, drawn)
    return {k: one for k, one in sums.items() if k not in bad}


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
