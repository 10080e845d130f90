"""Branch and bound for Pareto fronts of models whose metrics can be bounded over boxes of designs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optimize.search.bounds import ROUNDING, Directions
from optimize.search.feasibility import Demand
from optimize.search.pareto import FloatArray, distinct_front, dominated_by
from optimize.search.proof import Proof, Violation
from optimize.spaces.numbering import Columns, Designs
from optimize.spaces.space import Space
from optimize.spaces.stability import saturated

LINES = 4
"""Random designs whose lines along every field are evaluated first, to see what matters."""

TOGETHER = 64
"""Boxes up to which all their bounds are evaluated in one call, rather than one demand after the other."""

MOST_BOXES = 1 << 23
"""Boxes to begin with, above which a search is refused before it runs out of memory."""

_Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Boxes:
    """Boxes of ranks, ends included, with lower bounds of every demand."""

    low: _Ranks
    high: _Ranks
    bound: FloatArray
    tight: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.low)

    def take(self, rows: npt.NDArray[np.generic]) -> _Boxes:
        return _Boxes(
            low=self.low[rows], high=self.high[rows], bound=self.bound[rows], tight=self.tight[rows]
        )


class BranchAndBound:
    """Finds the designs that no other dominates, evaluating those that bounds do not exclude.

    A box is excluded if the best values that its metrics may take, each by itself, violate a
    constraint, or are dominated by an evaluated feasible design: that one then dominates every
    design of the box. Designs with equal objectives are never excluded by each other.

    ``space``: the designs; ``evaluate``: evaluates designs not seen before and returns their columns, varied
    fields included; ``demands``: objectives and constraints; ``directions``: the bounds; ``limited``: metrics
    that the user limits: ``stable`` among them keeps designs that are not; ``seed``: of the designs looked at
    first.
    """

    def __init__(
        self,
        space: Space,
        evaluate: Callable[[Designs], Columns],
        *,
        demands: Sequence[Demand],
        directions: Directions,
        limited: Iterable[str] = (),
        seed: int = 0,
    ) -> None:
        self._space, self._evaluate = space, evaluate
        self._demands, self._directions = list(demands), directions
        self._limits = np.array([demand.limit for demand in demands])
        self._limited = frozenset(limited)
        self._objective = np.array([demand.objective for demand in demands])
        self._designs = np.zeros(0, dtype=np.int64)
        self._costs = np.zeros((0, len(self._demands)))
        self._front = np.zeros((0, int(self._objective.sum())))
        self._seed = seed
        self._boxes = 0

    def run(self) -> Proof:
        """Search, and again without the directions that turn out wrong."""
        self._look(self._lines())
        violations: list[Violation] = []
        while True:
            wrong, compared = self._directions.violations(self._designs, self._values())
            if not wrong:
                self._search()
                wrong, compared = self._directions.violations(self._designs, self._values())
            if not wrong:
                break
            violations += wrong
            self._directions.forget(wrong)
        self._check_functions()
        return Proof(
            proven=True,
            boxes=self._boxes,
            unseen=self._space.count() - self._designs.size,
            compared=compared,
            violations=tuple(violations),
        )

    def _lines(self) -> Designs:
        """Return all designs along every field through a few random ones."""
        centres = self._space.sample(min(LINES, self._space.count()), seed=self._seed)
        lines = [centres]
        for axis, digit in enumerate(self._space.all_digits(centres)):
            stride = int(
                self._space.number_of([int(other == axis) for other in range(len(self._space.shape))])
            )
            grid = (centres - digit * stride)[:, None] + np.arange(self._space.shape[axis]) * stride
            lines.append(grid.reshape(-1))
        return self._space.admitted(np.unique(self._space.numbers(np.concatenate(lines))))

    def _values(self) -> dict[str, FloatArray]:
        return {demand.metric: demand.sign * self._costs[:, k] for k, demand in enumerate(self._demands)}

    def _look(self, designs: Designs) -> None:
        """Evaluate those of some distinct designs that are new."""
        place = np.searchsorted(self._designs, designs)
        inside = np.minimum(place, max(self._designs.size - 1, 0))
        new = designs if not self._designs.size else designs[self._designs[inside] != designs]
        if not new.size:
            return
        columns = self._evaluate(new)
        costs = np.stack([d.sign * columns[d.metric].astype(float) for d in self._demands], axis=1)
        designs = np.concatenate([self._designs, new])
        order = np.argsort(designs, kind="stable")
        self._designs, self._costs = designs[order], np.concatenate([self._costs, costs])[order]
        feasible = (costs <= self._limits).all(axis=1) & ~saturated(columns, self._limited)
        self._front = distinct_front(np.concatenate([self._front, costs[feasible][:, self._objective]]))

    def _search(self) -> None:
        pinned = self._directions.pinned()
        weights = self._weights()
        boxes = self._start(pinned)
        while len(boxes):
            self._boxes += len(boxes)
            boxes = self._bounded(boxes)
            single = (boxes.low == boxes.high).all(axis=1)
            self._look(np.unique(self._numbers(boxes.low[single])))
            boxes = self._split(boxes.take(~single), weights)
            boxes = boxes.take(self._open(boxes))

    def _start(self, pinned: Sequence[int]) -> _Boxes:
        """Return one box per admitted combination of the pinned fields."""
        space = self._space
        free = [axis for axis in range(len(space.shape)) if axis not in pinned]
        count = math.prod(space.shape[axis] for axis in pinned)
        if count > MOST_BOXES:
            names = ", ".join(self._directions.fields[axis] for axis in pinned)
            raise ValueError(
                "bounds must leave fewer combinations of the fields that have no direction or are read by"
                f" constraints, got {count} of {names}"
            )
        low = np.zeros((count, len(space.shape)), dtype=np.int32)
        rest = np.arange(len(low))
        for axis in pinned:
            rest, low[:, axis] = np.divmod(rest, space.shape[axis])
        high = low.copy()
        high[:, free] = np.array([space.shape[axis] - 1 for axis in free], dtype=np.int32)
        numbers = self._numbers(low)  # admitted and distinct for one design of a box as for all
        kept = np.isin(numbers, space.admitted(numbers)) & (space.numbers(numbers) == numbers)
        demands = len(self._demands)
        boxes = _Boxes(
            low=low,
            high=high,
            bound=np.full((len(low), demands), -np.inf),
            tight=np.zeros((len(low), demands), dtype=bool),
        )
        return boxes.take(kept)

    def _bounded(self, boxes: _Boxes) -> _Boxes:
        """Tighten the bounds of boxes, one demand after the other, and return those still open."""
        if len(boxes) <= TOGETHER:
            bounded = [demand for demand in self._demands if demand.metric not in self._directions.functions]
            self._look(np.unique([self._corners(boxes, demand) for demand in bounded]).astype(np.int64))
        for k, demand in enumerate(self._demands):
            if not len(boxes):
                break
            todo = np.flatnonzero(~boxes.tight[:, k])
            if demand.metric in self._directions.functions:
                bound = self._function_bound(boxes.take(todo), demand)
            else:
                corners = self._corners(boxes.take(todo), demand)
                self._look(np.unique(corners))
                bound = self._costs[np.searchsorted(self._designs, corners), k]
            raised = todo[bound > boxes.bound[todo, k]]
            boxes.bound[todo, k] = np.maximum(boxes.bound[todo, k], bound)
            boxes.tight[todo, k] = True
            kept = np.ones(len(boxes), dtype=bool)
            kept[raised] = self._open(boxes.take(raised))
            boxes = boxes.take(kept)
        return boxes

    def _function_bound(self, boxes: _Boxes, demand: Demand) -> FloatArray:
        low, high = self._ends(boxes.low, boxes.high, demand.metric)
        return low if demand.sign > 0 else -high

    def _ends(self, low: _Ranks, high: _Ranks, metric: str) -> tuple[FloatArray, FloatArray]:
        """Return what the function of a metric says about boxes."""
        ends: list[Columns] = []
        for ranks in (low, high):
            digits = [order[rank] for order, rank in zip(self._directions.ranks, ranks.T, strict=True)]
            fields = zip(self._directions.fields, digits, strict=True)
            ends.append({name: self._space.column(name)[digit] for name, digit in fields})
        bounds = [np.asarray(end, dtype=float) for end in self._directions.functions[metric](*ends)]
        least, most = (np.broadcast_to(end, len(low)) for end in bounds)
        if not (least <= most).all():
            k = int((~(least <= most)).argmax())
            raise ValueError(f"bounds[{metric!r}] must return low <= high, got {least[k]!r} and {most[k]!r}")
        return least, most

    def _check_functions(self) -> None:
        """Check functions on boxes of one evaluated design each: the least that they must bound."""
        digits = self._space.all_digits(self._designs)
        ranks = np.stack(
            [np.argsort(order)[digit] for order, digit in zip(self._directions.ranks, digits, strict=True)],
            axis=1,
        ).astype(np.int32)
        for metric, column in self._values().items():
            if metric in self._directions.functions and self._designs.size:
                least, most = self._ends(ranks, ranks, metric)
                with np.errstate(invalid="ignore"):
                    slack = np.nan_to_num(ROUNDING * np.abs(column), posinf=0.0)
                bad = (column < least - slack) | (column > most + slack)
                if bad.any():
                    k = int(bad.argmax())
                    raise ValueError(
                        f"bounds[{metric!r}] must bound the metric, got {least[k]:.6g} to {most[k]:.6g}"
                        f" where it is {column[k]:.6g}: {self._space.label(int(self._designs[k]))}"
                    )

    def _corners(self, boxes: _Boxes, demand: Demand) -> Designs:
        """Return for every box the design whose value bounds it."""
        ranks = boxes.low.copy()
        single = (boxes.low == boxes.high).all(axis=1)
        for axis, field in enumerate(self._directions.fields):
            sign = demand.sign * self._directions.known.get((demand.metric, field), 1)
            if sign < 0:
                ranks[:, axis] = boxes.high[:, axis]
            elif sign == 0 and field not in self._space.coupled:
                ranks[~single, axis] = 0  # any choice does: the same one for all boxes
        return self._numbers(ranks)

    def _numbers(self, ranks: _Ranks) -> Designs:
        return self._space.number_of(
            order[rank] for order, rank in zip(self._directions.ranks, ranks.T, strict=True)
        )

    def _open(self, boxes: _Boxes) -> npt.NDArray[np.bool_]:
        possible: npt.NDArray[np.bool_] = np.all(boxes.bound <= self._limits, axis=1)
        objectives = boxes.bound[:, self._objective]
        possible &= ~np.isposinf(objectives).any(axis=1)
        rows = np.flatnonzero(possible)
        possible[rows[dominated_by(objectives[rows], self._front)]] = False
        return possible

    def _weights(self) -> FloatArray:
        """Return how much every field moves the demands, relative to their spread over what was seen."""
        weights = np.zeros(len(self._space.shape))
        for k in range(len(self._demands)):
            column = self._costs[:, k]
            finite = column[np.isfinite(column)]
            spread = np.ptp(finite) if finite.size else 0.0
            for axis, length in enumerate(self._space.shape):
                first, second = self._directions.pairs(self._designs, axis)
                if spread > 0 and first.size:
                    with np.errstate(invalid="ignore"):
                        step = np.abs(column[second] - column[first])
                    step = step[np.isfinite(step)]
                    weights[axis] += step.mean() * (length - 1) / spread if step.size else 0.0
        return weights

    def _split(self, boxes: _Boxes, weights: FloatArray) -> _Boxes:
        """Halve boxes along the field that promises most."""
        if not len(boxes):
            return boxes
        lengths = np.array(self._space.shape) - 1
        share = (boxes.high - boxes.low) / np.maximum(lengths, 1)
        gain = np.where(boxes.high > boxes.low, share * weights + 1e-6 * share, -1.0)
        axis = gain.argmax(axis=1)
        rows = np.arange(len(boxes))
        middle = (boxes.low[rows, axis] + boxes.high[rows, axis]) // 2
        left_high, right_low = boxes.high.copy(), boxes.low.copy()
        left_high[rows, axis] = middle
        right_low[rows, axis] = middle + 1
        signs = np.zeros((len(self._demands), len(lengths)), dtype=np.int8)
        for k, demand in enumerate(self._demands):
            for a, field in enumerate(self._directions.fields):
                signs[k, a] = demand.sign * self._directions.known.get((demand.metric, field), 1)
            if demand.metric in self._directions.functions:
                signs[k] = 2
        here = signs[:, axis].T  # the half that holds the bounding corner keeps its bound
        return _Boxes(
            low=np.concatenate([boxes.low, right_low]),
            high=np.concatenate([left_high, boxes.high]),
            bound=np.concatenate([boxes.bound, boxes.bound]),
            tight=np.concatenate([boxes.tight & np.isin(here, (0, 1)), boxes.tight & np.isin(here, (0, -1))]),
        )
