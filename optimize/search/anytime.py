"""Branch and bound with bounds that a model derives: a front at any time, and what may be missing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.search.bounds import ROUNDING, Derived, Directions
from optimize.search.branch_bound import BranchAndBound, _Ranks
from optimize.search.feasibility import Demand
from optimize.search.pareto import FloatArray, distinct_front, dominated_by, hypervolume, nondominated
from optimize.search.proof import Left, Proof
from optimize.spaces.evaluation import significant
from optimize.spaces.numbering import Columns, Designs
from optimize.spaces.space import Space
from optimize.spaces.stability import STABLE, saturated
from qmodels.systems.spec.fields import find_field

START = 1 << 14
"""Boxes to begin with up to which the fields that bounds need at one value are told apart at once."""
LEAST, MOST = 32, 1024
"""Boxes looked into at a time: a thousandth of the designs, within these."""
TOGETHER = 4096
"""Boxes bounded in one call."""
TRIED = 0.1
"""Part of the boxes that no design decides in which one is evaluated all the same."""
FIRST = 64
"""Boxes, of those looked into first, in which a design is evaluated."""
CHECKED = 512
"""Evaluated designs on which the bounds are checked in the end."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Open:
    """Boxes of ranks, ends included, that may hold designs of the front."""

    low: _Ranks
    high: _Ranks
    bound: FloatArray  # the least of every demand
    stage: npt.NDArray[np.int8]  # stages of bounds that were taken

    def __len__(self) -> int:
        return len(self.low)

    def take(self, rows: npt.NDArray[Any]) -> Open:
        """Return some of the boxes."""
        return Open(**{name: value[rows] for name, value in vars(self).items()})

    def joined(self, other: Open) -> Open:
        """Return these boxes and others."""
        return Open(
            **{name: np.concatenate([value, getattr(other, name)]) for name, value in vars(self).items()}
        )


class Anytime(BranchAndBound):
    """Finds the distinct points of the front, or as much of it as the time allows, with what may be missing.

    Boxes of the best bounds come first: their bounds are tightened stage by stage, one design in each is
    evaluated, and they are halved. A box whose fields do not matter to a metric has the value of its design.
    Of designs with equal objectives one is looked for.
    """

    def __init__(
        self,
        space: Space,
        evaluate: Callable[[Designs], Columns],
        *,
        demands: Sequence[Demand],
        bounds: Derived,
        limited: Iterable[str] = (),
        digits: int | None = None,
        time_limit: float = math.inf,
        watch: Callable[[Left], None] = lambda left: None,
        seed: int = 0,
    ) -> None:
        metrics = list(dict.fromkeys(demand.metric for demand in demands))
        if STABLE in limited:
            raise ValueError(
                "subject_to must not limit stable with bounds that a model derives: of stable designs"
            )
        functions = {metric: _nothing for metric in metrics}
        self._full: list[Designs] = []

        def evaluated(designs: Designs) -> Columns:
            columns = evaluate(designs)
            if STABLE not in columns:
                raise ValueError(
                    "evaluate must return stable with bounds that a model derives: they are of stable designs"
                )
            self._full.append(designs[saturated(columns)])
            return columns

        super().__init__(
            space, evaluated, demands=demands, directions=Directions(space, metrics, functions), seed=seed
        )
        self._bounds, self._digits, self._watch = bounds, digits, watch
        self._begun, self._limit = time.monotonic(), time_limit
        self._rng = np.random.default_rng(seed)
        self._trace: list[Left] = []
        axes = {path: axis for axis, path in enumerate(space.paths.values())}
        spans = {find_field(space.base, name) for name in bounds.spans} & axes.keys()
        free = {axes[path] for path in spans} - {list(space.choices).index(name) for name in space.coupled}
        self._pinned = [axis for axis in axes.values() if axis not in free or self._words(axis)]
        self._first = [axes[path] for path in map(self._path, bounds.early) if path in axes]
        for axis in self._first:
            if math.prod(space.shape[a] for a in {*self._pinned, axis}) <= START:
                self._pinned = sorted({*self._pinned, axis})
        self._idle = np.zeros((len(demands), len(axes)), dtype=bool)
        for k, demand in enumerate(demands):
            for name in bounds.idle.get(demand.metric, ()):
                if self._path(name) in axes:
                    self._idle[k, axes[self._path(name)]] = True

    def _path(self, name: str) -> str:
        return find_field(self._space.base, name)

    def _words(self, axis: int) -> bool:
        return self._directions.fields[axis] not in self._space.numeric

    def run(self) -> Proof:
        """Search until nothing is left, or the time is up."""
        start = self._start(self._pinned)
        boxes = Open(
            low=start.low, high=start.high, bound=start.bound, stage=np.zeros(len(start), dtype=np.int8)
        )
        boxes = self._bounded_by(boxes, 0)
        while len(boxes):
            self._note(boxes)
            if time.monotonic() - self._begun > self._limit:
                break
            chosen, rest = self._next(boxes)
            for stage in range(1, len(self._bounds.stages)):
                chosen = self._bounded_by(chosen, stage)
            chosen = self._opened(chosen)
            halves = self._bounded_by(self._halves(chosen), 0)
            boxes = rest.joined(halves)
            boxes = boxes.take(self._open(boxes))
        self._note(boxes)
        self._check()
        known = set(self._bounds.derived) | set(self._space.choices)
        return Proof(
            proven=not len(boxes),
            boxes=self._boxes,
            unseen=self._space.count() - self._designs.size,
            left=tuple(self._trace),
            assumes=self._bounds.assumes,
            unbounded=tuple(sorted({d.metric for d in self._demands} - known)),
        )

    def _next(self, boxes: Open) -> tuple[Open, Open]:
        """Return boxes of the front of all bounds, and the others."""
        count = min(max(self._space.size // 1000, LEAST), MOST)
        if len(boxes) <= count:
            return boxes, boxes.take(np.zeros(0, dtype=np.int64))
        order = self._rng.permutation(len(boxes))
        best = nondominated(boxes.bound[order][:, self._objective])
        order = order[np.argsort(~best, kind="stable")]
        return boxes.take(order[:count]), boxes.take(order[count:])

    def _opened(self, boxes: Open) -> Open:
        """Evaluate a design where it decides, and of the others in some; return what is still open."""
        if not len(boxes):
            return boxes
        wide: npt.NDArray[np.bool_] = np.greater(boxes.high, boxes.low)
        alike = np.logical_not(np.any(wide[:, None, :] & ~self._idle[None], axis=2))
        assert isinstance(alike, np.ndarray)
        decides = alike[:, self._objective].any(axis=1)
        part = TRIED if self._designs.size else max(TRIED, FIRST / len(boxes))
        tried = decides | (self._rng.random(len(boxes)) < part)
        ranks = self._rng.integers(boxes.low, boxes.high + 1, dtype=np.int32)
        numbers = self._numbers(ranks)
        self._look(np.unique(numbers[tried]))
        found = np.full_like(boxes.bound, -np.inf)
        found[tried] = self._costs[np.searchsorted(self._designs, numbers[tried])]
        exact = found - ROUNDING * np.abs(np.where(np.isfinite(found), found, 0.0))
        bound = np.where(alike, np.maximum(boxes.bound, self._rounded(exact)), boxes.bound)
        boxes = Open(low=boxes.low, high=boxes.high, bound=bound, stage=boxes.stage)
        return boxes.take(self._open(boxes) & wide.any(axis=1))

    def _rounded(self, costs: FloatArray) -> FloatArray:
        return costs if self._digits is None else significant(costs, self._digits)

    def _open(self, boxes: Any) -> npt.NDArray[np.bool_]:
        """Tell which boxes may hold a point that no design so far equals or dominates."""
        possible: npt.NDArray[np.bool_] = np.all(boxes.bound <= self._limits, axis=1)
        possible &= ~np.isposinf(boxes.bound).any(axis=1)
        rows = np.flatnonzero(possible)
        objectives = boxes.bound[rows][:, self._objective] + 0.0
        known = set(map(bytes, np.ascontiguousarray(self._front + 0.0)))
        same = np.array([bytes(row) in known for row in np.ascontiguousarray(objectives)], dtype=bool)
        possible[rows[same | dominated_by(objectives, self._front)]] = False
        return possible

    def _bounded_by(self, boxes: Open, stage: int) -> Open:
        """Return those boxes that a stage of bounds leaves open, with these."""
        parts = [
            self._tightened(boxes.take(np.arange(k, min(k + TOGETHER, len(boxes)))), stage)
            for k in range(0, len(boxes), TOGETHER)
        ]
        self._boxes += len(boxes) if stage == 0 else 0
        if not parts:
            return boxes
        boxes = parts[0]
        for part in parts[1:]:
            boxes = boxes.joined(part)
        return boxes

    def _tightened(self, boxes: Open, stage: int) -> Open:
        bound = np.maximum(boxes.bound, self._least(boxes.low, boxes.high, stage))
        boxes = Open(
            low=boxes.low, high=boxes.high, bound=bound, stage=np.full(len(boxes), stage, dtype=np.int8)
        )
        return boxes.take(self._open(boxes))

    def _least(self, low: _Ranks, high: _Ranks, stage: int) -> FloatArray:
        """Return the least of every demand in boxes, infinite where no design is stable."""
        least = np.full((len(low), len(self._demands)), -np.inf)
        words = [axis for axis in range(low.shape[1]) if self._words(axis)]
        _, alike = np.unique(low[:, words], axis=0, return_inverse=True)
        for group in range(int(alike.max(initial=-1)) + 1):
            rows = np.flatnonzero(alike.reshape(-1) == group)
            corners = [self._space.batch(self._numbers(ranks[rows])) for ranks in (low, high)]
            ends = self._bounds.stages[stage](*corners)
            full = ends[STABLE][1] == 0.0
            for k, demand in enumerate(self._demands):
                here = self._ends_of(demand, ends, low[rows], high[rows])
                least[rows, k] = np.where(full, np.inf, here)
        return self._rounded(least)

    def _ends_of(
        self, demand: Demand, ends: Mapping[str, tuple[FloatArray, FloatArray]], low: _Ranks, high: _Ranks
    ) -> FloatArray:
        if demand.metric in self._space.choices:
            axis = self._directions.fields.index(demand.metric)
            rank = (low if demand.sign > 0 else high)[:, axis]
            return demand.sign * self._space.column(demand.metric)[self._directions.ranks[axis][rank]]
        if demand.metric not in self._bounds.derived:
            return np.full(len(low), -np.inf)
        least, most = ends[demand.metric]
        return least if demand.sign > 0 else -most

    def _halves(self, boxes: Open) -> Open:
        """Halve boxes along the fields that later stages need first, and those that matter least last."""
        if not len(boxes):
            return boxes
        size = (boxes.high - boxes.low) / np.maximum(np.array(self._space.shape) - 1, 1)
        size[:, self._first] *= 1e3
        size[:, self._idle[self._objective].any(axis=0)] *= 1e-3
        rows, axis = np.arange(len(boxes)), size.argmax(axis=1)
        middle = (boxes.low[rows, axis] + boxes.high[rows, axis]) // 2
        left, right = boxes.high.copy(), boxes.low.copy()
        left[rows, axis], right[rows, axis] = middle, middle + 1
        return Open(low=boxes.low, high=left, bound=boxes.bound, stage=boxes.stage).joined(
            Open(low=right, high=boxes.high, bound=boxes.bound, stage=boxes.stage)
        )

    def _note(self, boxes: Open) -> None:
        """Write down how much of the front may be missing."""
        left = Left(
            seconds=time.monotonic() - self._begun,
            evaluations=self._designs.size,
            boxes=len(boxes),
            gap=self._gap(boxes.bound[:, self._objective]),
        )
        self._trace.append(left)
        self._watch(left)

    def _gap(self, bounds: FloatArray) -> float:
        """Return the part of the hypervolume of front and bounds that the front does not have.

        Up to the worst feasible values seen; of one objective how far the bound is from the best value.
        """
        if not len(bounds):
            return 0.0
        if not len(self._front) or np.isinf(bounds).any():
            return 1.0
        if self._front.shape[1] == 1:
            best, least = float(self._front.min()), float(bounds.min())
            return (best - least) / max(abs(best), abs(least)) if least < best else 0.0
        costs = self._costs[(self._costs <= self._limits).all(axis=1)][:, self._objective]
        worst = costs[np.isfinite(costs).all(axis=1)].max(axis=0)
        points = distinct_front(np.concatenate([bounds, self._front]))
        own, most = (hypervolume(each, reference=worst) for each in (self._front, points))
        return 1.0 - own / most if most > 0 else 1.0

    def _check(self) -> None:
        """Check the bounds of the last stage on evaluated designs: the least that they must bound."""
        designs = self._designs[:: max(len(self._designs) // CHECKED, 1)]
        if not designs.size:
            return
        digits = self._space.all_digits(designs)
        ranks = np.stack(
            [np.argsort(order)[digit] for order, digit in zip(self._directions.ranks, digits, strict=True)],
            axis=1,
        ).astype(np.int32)
        least = self._least(ranks, ranks, len(self._bounds.stages) - 1)
        found = self._costs[np.searchsorted(self._designs, designs)]
        stable = ~np.isin(designs, np.concatenate(self._full))
        with np.errstate(invalid="ignore"):
            bad = stable[:, None] & (found < least - ROUNDING * np.abs(least))
        if bad.any():
            row, k = np.argwhere(bad)[0]
            raise ValueError(
                f"bounds must bound {self._demands[k].metric}, got {least[row, k]:.6g} where it is"
                f" {found[row, k]:.6g}: {self._space.label(int(designs[row]))}"
            )


def _nothing(low: Columns, high: Columns) -> tuple[npt.ArrayLike, npt.ArrayLike]:
    return -np.inf, np.inf
