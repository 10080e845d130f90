"""The exact method: an integer program over the choices of fields, with bounds and solved designs as cuts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from optimize.search import bounds as bounding
from optimize.search import pareto
from optimize.search.bounds import ROUNDING, Derived, Directions, Ranks
from optimize.search.feasibility import Demand
from optimize.search.pareto import BoolArray, FloatArray
from optimize.spaces.evaluation import STABLE, saturated, significant
from optimize.spaces.numbering import Columns, Designs, distinct
from optimize.spaces.space import Space

COLUMNS = 64
"""Boxes that the integer program chooses among, those of the least bounds; the next one bounds the others."""
FEW, MANY = 32, 1024  # boxes halved at a time: a thousandth of the designs, within these
AT_ONCE = 16384  # boxes halved at a time where no model derives their bounds
TOGETHER = 4096  # boxes bounded in one call
TRIED = 0.1  # part of the boxes in which a design is solved before its turn where the time is limited
EPSILON = 2
"""Objectives up to which the program alone finds the front where all are sums: zones of more are too many."""
MOST_BOXES = 1 << 23  # boxes to begin with, above which a search is refused before it runs out of memory
CHECKED = 512  # solved designs on which bounds are checked in the end


@dataclass(frozen=True, kw_only=True)
class ProofStep:
    """State of the exact method after a step."""

    seconds: float  #: Since the start. [s]
    evaluations: int  #: Designs solved
    boxes: int  #: Boxes of designs that may hold something better
    bound: tuple[float, ...]  #: No design has an objective better than this; infinitely good where unknown
    #: Relative distance of the best value from its bound; of several objectives the part of the hypervolume
    #: of front and bounds, up to the worst feasible values seen, that the front does not have. 1 before there
    #: is a feasible design, 0 if proven
    gap: float

    def __str__(self) -> str:
        bound = ", ".join(f"{value:.6g}" for value in self.bound)
        return (
            f"{self.seconds:.1f} s: {self.evaluations:,} designs solved, {self.boxes:,} boxes open,"
            f" bound {bound}, gap {self.gap:.2%}"
        )


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Grounds on which the exact method excluded the designs that it did not solve."""

    #: Whether every distinct point of the front was found, provided that the bounds hold. Points that differ
    #: by less than 1e-9 of their values (of sums by 1e-6 of their range) count as one
    proven: bool
    steps: tuple[ProofStep, ...]  #: The state from step to step, the last one at the end
    boxes: int  #: Boxes of designs that were bounded
    unseen: int  #: Designs, of those that the constraints of the space admit, that were not solved
    assumes: str = ""  #: The conditions under which the bounds hold, in words
    #: Metrics that were found to be sums of choices or of pairs, and hold as rows of the program
    sums: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()  #: Metrics of which nothing is known before a design is solved
    #: Declared directions and sums that a solved design contradicts. They were given up, and the search
    #: repeated without them
    contradicted: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """Distance of the best from the bound, see `ProofStep`; 0 if proven."""
        return self.steps[-1].gap

    @property
    def bound(self) -> tuple[float, ...]:
        """Value per objective that no design betters, the minimised ones first."""
        return self.steps[-1].bound

    def __str__(self) -> str:
        grounds = [f"bounds ({self.assumes})"] * bool(self.assumes)
        grounds += [f"sums of choices ({', '.join(self.sums)})"] * bool(self.sums)
        words = "proven" if self.proven else f"not finished after {self.steps[-1]}"
        lines = [
            f"{words}, by {' and '.join([*grounds, 'designs solved'])}; {self.boxes} boxes bounded,"
            f" {self.unseen} designs not solved"
        ]
        if self.unbounded:
            lines[0] += f"; nothing is known of {', '.join(self.unbounded)}"
        return "\n".join([*lines, *(f"contradicted: {text}" for text in self.contradicted)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Boxes:
    """Boxes of ranks, ends included, that may hold a better design."""

    low: Ranks
    high: Ranks
    bound: FloatArray  # the least of every demand
    exact: BoolArray  # whether a design solved there has this value, and all others too

    def __len__(self) -> int:
        return len(self.low)

    def take(self, rows: npt.NDArray[np.generic]) -> Boxes:
        """Return some of the boxes."""
        return Boxes(**{name: value[rows] for name, value in vars(self).items()})

    def joined(self, *others: Boxes) -> Boxes:
        """Return these boxes and others."""
        parts = [vars(one) for one in (self, *others)]
        return Boxes(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


class Milp:
    """Search for every distinct point of the front.

    Of the open boxes, those of the least bounds enter a program (see `Master`), whose choices are the
    candidate. A box is solved, at a design that decides it, or else halved, only where no other bound is
    better: as no undiscovered design dominates it then, no design is solved that the bounds of single designs
    would have excluded. Where all metrics are sums, the program alone finds the best, and the front of two
    objectives by the epsilon constraint: each solution bounds the second objective of the next one.
    """

    def __init__(
        self,
        space: Space,
        evaluate: Callable[[Designs], Columns],
        *,
        demands: Sequence[Demand],
        bounds: Directions | Derived | None = None,
        limited: Iterable[str] = (),
        digits: int | None = None,
        time_limit: float = math.inf,
        watch: Callable[[ProofStep], None] = lambda step: None,
        seed: int = 0,
    ) -> None:
        self._space, self._evaluate, self._demands = space, evaluate, list(demands)
        self._limited, self._digits, self._watch = frozenset(limited), digits, watch
        self._begun, self._limit, self._seed = time.monotonic(), time_limit, seed
        self._rng = np.random.default_rng(seed)
        self._limits = np.array([demand.limit for demand in demands])
        self._objective = np.flatnonzero([demand.objective for demand in demands])
        self._designs = np.zeros(0, dtype=np.int64)
        self._costs = np.zeros((0, len(self._demands)))
        self._feasible = self._stable = np.zeros(0, dtype=bool)
        self._front = np.zeros((0, self._objective.size))
        self._ranking = bounding.Ranking(space)
        self._derived = bounds is not None and not isinstance(bounds, Mapping)
        if self._derived and STABLE in self._limited:
            raise ValueError(
                "subject_to must not limit stable with bounds that a model derives: of stable designs"
            )
        self._bounds: bounding.DerivedBounds | bounding.DeclaredBounds = (
            bounding.DerivedBounds(self._ranking, self._demands, bounds)  # type: ignore[arg-type]
            if self._derived
            else bounding.DeclaredBounds(self._ranking, self._demands, bounds or {}, self._solved)  # type: ignore[arg-type]
        )
        # Without bounds the program has the constraints as rows; else a box holds designs that are admitted
        # all or none.
        self._whole = bounds is None and all(table is not None for _, table in space.tables.values())
        self._steps: list[ProofStep] = []
        self._boxes = 0
        self._sums: dict[int, bounding.Sum] = {}

    def run(self) -> Proof:
        """Search, and again without what solved designs contradict."""
        contradicted: list[str] = []
        learned: dict[int, bounding.Sum] = {}
        fields = bounding.field_sums(self._ranking, self._demands)
        wanted = [
            k
            for k, demand in enumerate(self._demands)
            if demand.metric not in self._bounds.known and k not in fields
        ]
        if not self._derived:
            learned = bounding.learned_sums(self._ranking, self._demands, wanted, self._solved, self._seed)
        if isinstance(self._bounds, bounding.DeclaredBounds):
            self._bounds.measure(self._seed)
        while True:
            self._sums = fields | learned
            wrong, proven = self._contradicted(learned), False
            if not wrong:
                proven = self._search()
                wrong = self._contradicted(learned)
            if not wrong:
                break
            contradicted += wrong
        if isinstance(self._bounds, bounding.DerivedBounds):
            self._check()
        known = self._bounds.known | {self._demands[k].metric for k in self._sums}
        metrics = [demand.metric for demand in self._demands]
        return Proof(
            proven=proven,
            steps=tuple(self._steps),
            boxes=self._boxes,
            unseen=self._space.count() - self._designs.size,
            assumes=self._bounds.assumes if self._bounds.known else "",
            sums=tuple(dict.fromkeys(metrics[k] for k in learned)),
            unbounded=tuple(sorted(set(metrics) - known)),
            contradicted=tuple(contradicted),
        )

    def _contradicted(self, learned: dict[int, bounding.Sum]) -> list[str]:
        """Give up what solved designs contradict, and say what."""
        words = []
        ranks = self._ranking.ranks(self._designs)
        # One unit in the last digit is rounding where metrics are rounded.
        tolerance = ROUNDING if self._digits is None else max(ROUNDING, 1.001 * 10.0 ** (1 - self._digits))
        if isinstance(self._bounds, bounding.DeclaredBounds):
            words += self._bounds.contradicted(self._designs, self._costs, tolerance)
        for k, one in list(learned.items()):
            cost = self._costs[:, k]
            with np.errstate(invalid="ignore"):
                good = np.abs(one.at(ranks) - cost) <= 10 * ROUNDING * np.abs(cost).max(initial=0.0)
            if not good.all():
                at = self._space.label(int(self._designs[int(good.argmin())]))
                words.append(f"{self._demands[k].metric} is no sum of choices at {at}")
                del learned[k]
        return words

    def _solved(self, designs: Designs) -> FloatArray:
        """Return the demands of designs, those that are new evaluated."""
        designs = self._space.numbers(designs)
        new = distinct(designs)
        known = np.append(self._designs, -1)  # beyond all
        new = new[known[np.searchsorted(self._designs, new)] != new]
        if new.size:
            columns = self._evaluate(new)
            if self._derived and STABLE not in columns:
                raise ValueError(
                    "evaluate must return stable with bounds that a model derives: they are of stable designs"
                )
            costs = np.stack([d.sign * columns[d.metric].astype(float) for d in self._demands], axis=1)
            stable = ~saturated(columns, self._limited)
            feasible = (costs <= self._limits).all(axis=1) & stable
            every = np.concatenate([self._designs, new])
            order = np.argsort(every)
            self._designs, self._costs = every[order], np.concatenate([self._costs, costs])[order]
            self._feasible = np.concatenate([self._feasible, feasible])[order]
            self._stable = np.concatenate([self._stable, stable])[order]
            points = costs[feasible][:, self._objective]
            self._front = pareto.distinct_front(np.concatenate([self._front, points]))
        return self._costs[np.searchsorted(self._designs, designs)]

    def _search(self) -> bool:
        """Search until nothing is open, or the time is over; tell which."""
        self._cuts: list[Ranks] = []
        boxes = self._start()
        rows_alone = self._whole and len(self._sums) == len(self._demands) and self._objective.size <= EPSILON
        epsilon = np.full(self._objective.size, np.inf)
        rounds = 0
        while len(boxes):
            if rounds and time.monotonic() - self._begun > self._limit:
                self._note(boxes, last=True)
                return False
            rounds += 1
            self._note(boxes)
            order = self._order(boxes)
            if self._sums or self._objective.size <= EPSILON:
                found = self._candidate(boxes.take(order[:COLUMNS]), epsilon)
            else:  # a program of columns alone: its solution is the first of them
                found = boxes.low[order[0]]
            if found is None:  # these hold nothing that meets the limits
                boxes = boxes.take(np.sort(order[COLUMNS:]))
            elif rows_alone:
                numbers = self._ranking.numbers(found[None])
                point = self._solved(numbers)[0, self._objective]
                self._cuts.append(found)
                if self._feasible[np.searchsorted(self._designs, numbers[0])]:
                    epsilon[-1] = point[-1]
            else:
                boxes = self._step(boxes, order, found, rounds)
        self._note(boxes, last=True)
        return True

    def _start(self) -> Boxes:
        """Return one box for every admitted combination of the fields that have one value in a box."""
        space, pinned = self._space, [] if self._whole else self._bounds.pinned
        count = math.prod(space.shape[axis] for axis in pinned)
        if count > MOST_BOXES:
            names = ", ".join(list(space.choices)[axis] for axis in pinned)
            raise ValueError(
                "bounds must leave fewer combinations of the fields that have one value in a box or are read"
                f" by constraints, got {count} of {names}"
            )
        low = np.zeros((count, len(space.shape)), dtype=np.int32)
        rest = np.arange(count)
        for axis in pinned:
            rest, low[:, axis] = np.divmod(rest, space.shape[axis])
        high = low.copy()
        free = [axis for axis in range(len(space.shape)) if axis not in pinned]
        high[:, free] = np.array([space.shape[axis] - 1 for axis in free], dtype=np.int32)
        numbers = self._ranking.numbers(low)
        kept = self._whole | space.allowed(numbers)
        size = (count, len(self._demands))
        boxes = Boxes(low=low, high=high, bound=np.full(size, -np.inf), exact=np.zeros(size, dtype=bool))
        return self._bounded(boxes.take(kept), 0)

    def _bounded(self, boxes: Boxes, stage: int) -> Boxes:
        """Tighten bounds and return those boxes that are still open."""
        self._boxes += len(boxes) * (stage == 0)
        parts = [boxes.take(np.arange(0))]
        for start in range(0, len(boxes), TOGETHER):
            part = boxes.take(np.arange(start, min(start + TOGETHER, len(boxes))))
            least = self._bounds.least(part.low, part.high, stage)
            for k, one in self._sums.items():
                least[:, k] = np.maximum(least[:, k], self._below(one.least(part.low, part.high)))
            part = replace(part, bound=np.maximum(part.bound, self._rounded(least)))
            parts.append(part.take(self._open(part)))
        return parts[0].joined(*parts[1:])

    def _rounded(self, costs: FloatArray) -> FloatArray:
        return costs if self._digits is None else significant(costs, self._digits)

    @staticmethod
    def _below(costs: FloatArray) -> FloatArray:
        return costs - ROUNDING * np.abs(np.where(np.isfinite(costs), costs, 0.0))

    def _open(self, boxes: Boxes) -> BoolArray:
        """Tell which boxes may hold a point that no design so far equals or dominates."""
        bound = self._below(boxes.bound)
        possible: BoolArray = np.all(bound <= self._limits, axis=1)
        possible &= ~np.isposinf(bound).any(axis=1)
        rows = np.flatnonzero(possible)
        costs = bound[rows][:, self._objective]
        with np.errstate(invalid="ignore", over="ignore"):
            finite = np.where(np.isfinite(costs), costs, 0.0)
            costs = np.nextafter(costs + 3 * ROUNDING * np.abs(finite), np.inf)
        possible[rows[pareto.dominated_by(costs, self._front)]] = False
        return possible

    def _order(self, boxes: Boxes) -> npt.NDArray[np.int64]:
        """Return the order of boxes: the least bounds, of several objectives the nondominated ones, first."""
        costs = boxes.bound
        if self._objective.size > 1:
            first: npt.NDArray[np.generic] = ~pareto.nondominated(costs[:, self._objective])
        else:
            first = costs[:, self._objective[0]]
        finite = np.where(np.isfinite(costs), costs, 0.0)
        size = np.abs(finite).max(axis=0, initial=1e-300)
        ties = (finite / size).sum(axis=1) if self._objective.size == 1 else self._rng.random(len(boxes))
        return np.lexsort((ties, first))

    def _candidate(self, boxes: Boxes, epsilon: FloatArray) -> Ranks | None:
        """Return the best choices in boxes, below epsilon."""
        master = bounding.Master(self._ranking, self._sums, self._objective.tolist())
        if self._whole:
            master.constrain(self._ranking)
        master.exclude(self._cuts)
        return master.solve(boxes.low, boxes.high, boxes.bound, self._limits, epsilon)

    def _step(self, boxes: Boxes, order: npt.NDArray[np.int64], candidate: Ranks, rounds: int) -> Boxes:
        """Solve designs that decide boxes, where no bound is better, and halve boxes of the best bounds."""
        count = min(max(self._space.size // 1000, FEW), MANY)
        if not self._derived:  # bounds take designs, or next to nothing
            unbeaten = int(pareto.nondominated(boxes.bound[order[:AT_ONCE]][:, self._objective]).sum())
            count = max(unbeaten, self._designs.size // FEW if self._bounds.known else FEW, 4)
        chosen = order[:count]
        some, front = boxes.take(chosen), self._front
        wide = some.high > some.low
        alike = ~np.any(wide[:, None, :] & ~self._bounds.idle[None], axis=2)
        decides = ~wide.any(axis=1) | (alike & ~some.exact)[:, self._objective].any(axis=1)
        # No design of a box can dominate the bound of another one here: none of these is solved in vain.
        costs = some.bound[:, self._objective]
        best = decides & pareto.nondominated(costs)
        solved = np.flatnonzero(best)
        held = ((some.low <= candidate) & (candidate <= some.high)).all(axis=1)
        ranks = self._rng.integers(some.low, some.high + 1, dtype=np.int32)
        ranks[held] = candidate
        tried = candidate[None]
        if self._limit < math.inf:  # something to show when the time is over
            part = TRIED if self._designs.size else max(TRIED, FEW / len(some))
            tried = np.concatenate([tried, ranks[self._rng.random(len(some)) < part]])
        elif solved.size or rounds & (rounds - 1):  # else a design to compare with, early and seldom
            tried = tried[:0]
        numbers = self._ranking.numbers(np.concatenate([ranks[solved], tried]))
        good = self._space.allowed(numbers)
        self._solved(numbers[good])
        bound, exact = some.bound.copy(), some.exact.copy()
        rows, numbers = solved[good[: solved.size]], numbers[: solved.size][good[: solved.size]]
        if rows.size:
            costs = self._rounded(self._below(self._solved(numbers)))
            bound[rows] = np.where(alike[rows], np.maximum(bound[rows], costs), bound[rows])
            exact[rows] |= alike[rows]
        some = replace(some, bound=bound, exact=exact)
        left = wide.any(axis=1) | ~best
        halves = some.take(left & ~decides)
        for stage in range(1, self._bounds.stages):
            halves = self._bounded(halves, stage)
        halves = self._bounded(self._halves(halves), 0)
        rest = np.ones(len(boxes), dtype=bool)
        rest[chosen] = False
        boxes = boxes.take(rest).joined(some.take(left & decides))
        return (boxes if front is self._front else boxes.take(self._open(boxes))).joined(halves)

    def _halves(self, boxes: Boxes) -> Boxes:
        """Halve boxes along the fields that bounds need first, and those that matter least last."""
        if not len(boxes):
            return boxes
        size = (
            (boxes.high - boxes.low) / np.maximum(np.array(self._space.shape) - 1, 1) * self._bounds.effects
        )
        size[:, self._bounds.first] *= 1e3
        size[:, self._bounds.idle[self._objective].any(axis=0)] *= 1e-3
        rows, axis = np.arange(len(boxes)), size.argmax(axis=1)
        middle = (boxes.low[rows, axis] + boxes.high[rows, axis]) // 2
        left, right = boxes.high.copy(), boxes.low.copy()
        left[rows, axis], right[rows, axis] = middle, middle + 1
        return replace(boxes, high=left).joined(replace(boxes, low=right))

    def _note(self, boxes: Boxes, *, last: bool = False) -> None:
        """Write down the bound and how much of the front may be missing."""
        now = time.monotonic() - self._begun
        if not last and self._steps and len(self._objective) > 1 and now - self._steps[-1].seconds < 0.5:
            return
        bounds = boxes.bound[:, self._objective]
        signs = np.array([self._demands[k].sign for k in self._objective])
        least = np.concatenate([bounds, self._front]).min(axis=0, initial=np.inf)
        step = ProofStep(
            seconds=now,
            evaluations=self._designs.size,
            boxes=len(boxes),
            bound=tuple((signs * least).tolist()),
            gap=self._gap(bounds),
        )
        self._steps.append(step)
        self._watch(step)

    def _gap(self, bounds: FloatArray) -> float:
        """Return the gap, see `ProofStep`."""
        if not len(bounds):
            return 0.0
        if not len(self._front) or np.isinf(bounds).any():
            return 1.0
        if self._front.shape[1] == 1:
            best, least = float(self._front.min()), float(bounds.min())
            return (best - least) / max(abs(best), abs(least)) if least < best else 0.0
        costs = self._costs[self._feasible][:, self._objective]
        worst = costs[np.isfinite(costs).all(axis=1)].max(axis=0)
        points = pareto.distinct_front(np.concatenate([bounds, self._front]))
        own, most = (pareto.hypervolume(each, reference=worst) for each in (self._front, points))
        return 1.0 - own / most if most > 0 else 1.0

    def _check(self) -> None:
        """Check the bounds of the last stage on solved designs: the least that they must bound."""
        designs = self._designs[:: max(len(self._designs) // CHECKED, 1)]
        if not designs.size:
            return
        ranks = self._ranking.ranks(designs)
        least = self._bounds.least(ranks, ranks, self._bounds.stages - 1)
        rows = np.searchsorted(self._designs, designs)
        found = self._costs[rows]
        with np.errstate(invalid="ignore"):
            bad = self._stable[rows][:, None] & (self._rounded(found) < self._rounded(self._below(least)))
        if bad.any():
            row, k = np.argwhere(bad)[0]
            raise ValueError(
                f"bounds must bound {self._demands[k].metric}, got {least[row, k]:.6g} where it is"
                f" {found[row, k]:.6g}: {self._space.label(int(designs[row]))}"
            )
