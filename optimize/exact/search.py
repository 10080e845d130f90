"""The search for the best design and for the proof that there is no better one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from optimize.exact.master import Cut, Master, Sum, Wish, finite
from optimize.exact.oracle import Goal, Oracle, digits_of
from optimize.exact.relations import Bools, Relations
from optimize.exact.tables import TableError, Tables, scale_of
from optimize.search.pareto import FloatArray
from optimize.spaces.numbering import Designs
from optimize.spaces.stability import STABLE

LINES = 24
"""Random designs whose lines along every field are evaluated first, to learn what is as bad as what."""

BATCH = 256
"""Cells of the first group that are evaluated together for one choice of the other fields."""

ANCHORS = 3
"""Times at most that the tables are made, each around the best design that the last ones led to."""

STEPS = (0.3, 0.1, 0.03, 0.01)
"""Gaps that are shown one after the other: a search that is cut short has the last."""

STRICT = 1e-9
"""Relative difference of exact sums that are told apart."""

PREFERRED = 0.02
"""Relative gap up to which the program seeks the design it prefers: any open one will do."""

WEIGHT = 10.0
"""Of an exceeded limit, in ranges of the objective's tables per unit of the limit's."""

CHECK = 60.0
"""Seconds for the program that confirms a bound at the end."""

WIDE = 0.5
"""Part of a gap that choices which are nearly in order may take up."""

LIFT = 0.8
"""Part of what a design misses by that better choices of other fields may take up, by the tables."""


class Search:
    """Alternates between the program, which proposes, and the model, which excludes."""

    def __init__(
        self,
        oracle: Oracle,
        goals: Sequence[Goal],
        groups: Sequence[tuple[int, ...]],
        sums: Mapping[str, Sequence[tuple[int, ...]]],
        relations: Relations,
        *,
        lines: int,
        draws: int,
        evaluations: int,
        gap: float,
        deadline: float,
        seed: int,
    ) -> None:
        self._oracle, self._goals, self._relations = oracle, list(goals), relations
        self._space, self._shape = oracle.space, oracle.space.shape
        alone = [(a,) for a in range(len(self._shape)) if not any(a in group for group in groups)]
        self._groups = [*groups, *alone]
        self._first = self._groups[0]
        self._sizes = [self._shape[axis] for axis in self._first]
        self._rest = [axis for axis in range(len(self._shape)) if axis not in self._first]
        self._modelled = [g for g, goal in enumerate(goals) if goal.metric not in sums]
        self._sum_groups = {g: sums[goal.metric] for g, goal in enumerate(goals) if goal.metric in sums}
        self._lines, self._draws, self._most, self._deadline = lines, draws, evaluations, deadline
        self._rng = np.random.default_rng(seed)
        self._seed, self._gap, self._slack = seed, gap, max(relations.slack)
        self._master = Master(self._shape, self._first)
        self._corners: dict[tuple[int, ...], FloatArray] = {}
        self._extra: list[Cut] = []
        self._sums: dict[int, Tables] = {}
        self._tables: dict[int, Tables] = {}
        self.best: int | None = None
        self.value, self.bound = inf, -inf
        self.proposed: tuple[int, FloatArray] | None = None
        self.errors: list[TableError] = []
        self.drawn = self.contradicted = 0
        self.finished = False

    @property
    def solves(self) -> int:
        """Integer programs solved."""
        return self._master.solves

    @property
    def _measured(self) -> bool:
        """Whether the bound rests on relations that were learned."""
        return any(
            learned and (goal.metric != STABLE or self._oracle.unstable)
            for g, (goal, learned) in enumerate(zip(self._goals, self._relations.learned, strict=True))
            if g in self._modelled
        )

    @property
    def status(self) -> str:
        """How the search ended, in a word."""
        if not self.finished:
            return "feasible" if self.best is not None else "nothing found"
        word = "optimal" if self.best is not None else "infeasible"
        return f"{word} as measured" if self._measured and not self._all_seen else word

    @property
    def rests_on(self) -> str:
        """What the bound rests on."""
        seen = f"{self._oracle.evaluations} designs evaluated of {self._space.size}"
        if self._all_seen:
            return f"all {self._space.size} designs evaluated"
        if not self._measured:
            return f"declared bounds, contradicted by none of {seen}"
        relations = self._relations
        return (
            f"measured: choices ordered on {relations.compared} pairs of {seen}, {relations.dropped} orders"
            f" given up, the rest hold to {max(map(relations.total, self._modelled), default=0.0):.1g};"
            f" {self.drawn} designs drawn from what is excluded, {self.contradicted} orders given up for them"
        )

    def run(self) -> None:
        """Learn, tabulate, then propose and exclude until nothing is open or the budget is spent."""
        centres = self._space.sample(min(self._lines, self._space.size), seed=self._seed)
        values = self._look(centres)
        self._look_along(centres)
        if not self._spent():
            self._tabulate(centres, values)
        self._close()
        if self._all_seen:
            self.bound, self.finished = self.value, True

    def _spent(self) -> bool:
        return (
            self._all_seen or self._oracle.evaluations >= self._most or time.perf_counter() > self._deadline
        )

    @property
    def _all_seen(self) -> bool:
        return self._oracle.evaluations == self._space.size

    def _look(self, designs: Designs) -> FloatArray:
        """Evaluate designs and keep the best feasible one."""
        values = self._oracle.look(designs)
        flat, numbers = values.reshape(-1, values.shape[-1]), designs.reshape(-1)
        cost = np.where(self._oracle.feasible(flat), flat[:, 0], inf)
        if cost.size and cost.min() < self.value:
            self.best, self.value = int(numbers[cost.argmin()]), float(cost.min())
        return values

    def _look_along(self, centres: Designs) -> None:
        """Evaluate all lines through some designs and learn from them."""
        digits = digits_of(self._space, centres)
        for axis, size in enumerate(self._shape):
            line = np.repeat(digits[:, None, :], size, axis=1)
            line[:, :, axis] = np.arange(size)
            self._relations.check(axis, self._look(self._space.number_of(np.moveaxis(line, 2, 0))))

    def _descend(self) -> None:
        """Look along the lines through the best design while that gives a better one."""
        last = None
        while self.best is not None and self.best != last and not self._spent():
            last = self.best
            self._look_along(np.array([last]))

    def _tabulate(self, sample: Designs, values: FloatArray) -> None:
        """Make the tables around the best design known, look at what they lead to, and again."""
        self._descend()
        for _ in range(ANCHORS):
            start = sample[self._misses(values).argmin()] if self.best is None else self.best
            anchor = digits_of(self._space, np.array([start]))[0]
            for g, groups in self._sum_groups.items():
                self._sums[g] = Tables(self._oracle, g, groups, anchor, log=False)
                self._check_sum(g, sample)
            for g in self._modelled:
                log, floor = scale_of(values[:, g], self._goals[g].limit)
                self._tables[g] = Tables(self._oracle, g, self._groups, anchor, log=log, floor=floor)
            cells = self._corner(tuple(anchor[self._rest].tolist()))
            self._slice(tuple(anchor[self._rest].tolist()), np.flatnonzero(np.isnan(cells[:, 0])))
            _, digits = self._master.solve(self._limits(inf), (), self._wishes(True), gap=PREFERRED)
            if digits is None:
                return
            design = np.array([self._space.number_of(digits)])
            self.proposed = int(design[0]), self._look(design)[0]
            self._descend()
            if self._spent() or self.best in (None, start):
                break
        self.errors = [
            self._tables[g].error(self._oracle, g, self._goals[g].metric, sample)
            for g in self._modelled
            if self._goals[g].metric != STABLE
        ]

    def _misses(self, values: FloatArray) -> FloatArray:
        limits = np.array([goal.limit for goal in self._goals])
        with np.errstate(invalid="ignore"):
            over = np.where(values > limits, (values - limits) / np.maximum(np.abs(limits), 1e-12), 0.0)
        return np.asarray(np.minimum(over, 1e6).sum(axis=1) + 1e6 * np.isinf(values[:, 0]))

    def _check_sum(self, g: int, sample: Designs) -> None:
        error = self._sums[g].error(self._oracle, g, self._goals[g].metric, sample)
        if error.missed or error.largest > STRICT:
            raise ValueError(
                f"sums[{error.metric!r}] must be a sum over these groups of fields, and is off by"
                f" {error.largest:.3g} of its size on {error.designs} designs"
            )

    def _limits(self, level: float) -> list[Sum]:
        """Return the exact sums with their limits; the objective's is the level.

        Rounding excludes nothing: what is that near is evaluated.
        """
        limits = {g: self._goals[g].limit if g else level for g in self._sums}
        return [
            Sum(tables=tables, limit=limits[g] + tables.rounding)
            for g, tables in self._sums.items()
            if limits[g] < inf
        ]

    def _wishes(self, alone: bool) -> list[Wish]:
        """Return what to prefer: where tables decide alone the objective, else what may exclude most."""
        levels = {
            g: float(self._tables[g].scaled(np.array([self._goals[g].limit]))[0])
            for g in self._modelled
            if g and self._goals[g].metric != STABLE
        }
        if 0 in self._sums and not alone:
            return [Wish(tables=self._tables[g]) for g in levels]
        aim = self._sums[0] if 0 in self._sums else self._tables[0]
        weight = WEIGHT * max(sum(float(np.ptp(finite(part))) for part in aim.parts), 1.0)
        return [
            Wish(tables=aim),
            *(Wish(tables=self._tables[g], level=level, weight=weight) for g, level in levels.items()),
        ]

    def _close(self) -> None:
        """Show in steps that nothing is better than the best design by more than less and less."""
        shown = 1.0, 0
        for step in [*(step for step in STEPS if step > self._gap), self._gap]:
            self._widen(step)
            while not self._spent():
                level = self._level(step)
                self.bound = self.bound if self.bound <= self.value else -inf  # contradicted since
                if self._prove(level):
                    self.bound, shown = max(self.bound, level), (step, self._relations.version)
                    break
                if self.value >= level:  # not a better design but the end of the budget
                    return self._confirm(*shown)
            else:
                return self._confirm(*shown)
            if self.value == inf:
                break
        self.finished = True

    def _widen(self, step: float) -> None:
        """Let choices that are nearly in order count as ordered, as far as a gap has room for that."""
        if 0 in self._modelled:
            self._relations.widen(0, WIDE * step, self._slack)

    def _confirm(self, step: float, version: int) -> None:
        """Give the bound up if what was evaluated since it was shown takes that away."""
        if self.bound > self.value:
            self.bound = -inf
        if self._relations.version == version or self.bound == -inf:
            return
        self._widen(step)
        status, _ = self._master.solve(self._limits(self.bound), self._cuts(self.bound), seconds=CHECK)
        if status != "infeasible":
            self.bound = -inf

    def _level(self, step: float) -> float:
        """Return the value to beat: what the order of choices cannot tell apart does not count."""
        if self.value == inf:
            return inf
        least = STRICT if 0 in self._sums else self._relations.total(0)
        return self.value - max(step, least) * abs(self.value)

    def _prove(self, level: float) -> bool:
        """Exclude until nothing below the level is left; False with a design below it, or at the end."""
        wishes = self._wishes(False)
        self._extra = []  # what exceeds one level may be below the next
        while not self._spent() and self.value >= level:
            cuts, limits = self._cuts(level), self._limits(level)
            left = self._deadline - time.perf_counter()
            status, digits = self._master.solve(limits, cuts, wishes, gap=PREFERRED, seconds=left)
            if status == "infeasible":
                if not self._audit(cuts, level):
                    return True
            elif digits is None:
                break
            else:
                before = self.value
                self._exclude(digits, cuts, limits, level)
                if self.value < before:
                    self._descend()
        return False

    def _corner(self, rest: tuple[int, ...]) -> FloatArray:
        if rest not in self._corners:
            self._corners[rest] = np.full((int(np.prod(self._sizes)), len(self._goals)), np.nan)
        return self._corners[rest]

    def _designs(self, rest: Sequence[int], cells: Designs) -> Designs:
        """Return the digits of cells of the first group at one choice of the other fields."""
        digits = np.zeros((len(cells), len(self._shape)), dtype=np.int64)
        digits[:, self._rest] = rest
        digits[:, list(self._first)] = np.stack(np.unravel_index(cells, self._sizes), axis=1)
        return digits

    def _slice(self, rest: tuple[int, ...], cells: Designs) -> None:
        """Evaluate cells of the first group, and learn from the lines among them."""
        corner = self._corner(rest)
        corner[cells] = self._look(self._space.number_of(self._designs(rest, cells).T))
        grid = corner.reshape(*self._sizes, -1)
        for place, axis in enumerate(self._first):
            lines = np.moveaxis(grid, place, -2).reshape(-1, self._shape[axis], len(self._goals))
            self._relations.check(axis, lines)

    def _exclude(self, digits: Designs, cuts: Sequence[Cut], limits: Sequence[Sum], level: float) -> None:
        """Evaluate what is open where the program points to, or where that excludes more."""
        rest = tuple(digits[self._rest].tolist())
        place = int(np.ravel_multi_index(tuple(digits[list(self._first)]), self._sizes))
        still = np.ones(int(np.prod(self._sizes)), dtype=bool)
        for cut in cuts:
            if cut.holds(rest):
                still &= ~cut.bad
        every = self._designs(rest, np.arange(len(still)))
        for one in limits:
            still &= one.tables.total(every) <= one.limit
        if not still[place]:  # within the tolerance of the solver only
            self._extra.append(self._single(rest, ~still))
            return
        cells = np.flatnonzero(still)
        wish = self._tables[0] if 0 in self._tables else next(iter(self._tables.values()), None)
        if wish is not None and len(cells) > BATCH:
            order = np.argsort(np.where(cells == place, -inf, wish.total(every[cells])))
            cells = cells[order[:BATCH]]
        higher = self._lifted(digits, level)
        if higher != rest:
            self._slice(higher, cells)
            corner, pairs = self._corner(higher)[place], list(zip(self._rest, higher, rest, strict=True))
            for g in self._modelled:  # whether that takes the design itself with it
                missed = self._missed(g, corner[[g]], level)[0]
                if missed and all(self._relations.related(g, axis)[u, v] for axis, u, v in pairs):
                    return
        self._slice(rest, cells if higher == rest else np.array([place]))

    def _lifted(self, digits: Designs, level: float) -> tuple[int, ...]:
        """Return better choices of the other fields with which a design should still miss what it misses.

        Its exclusion then takes more with it. The tables, set right at the design itself, say how far
        that goes; of the choices that are left the one that excludes most for what it improves comes first.
        """
        rest = tuple(digits[self._rest].tolist())
        values = self._look(np.array([self._space.number_of(digits)]))[0]
        margins = {}
        for g, tables in self._tables.items():
            limit = self._goals[g].limit if g else level
            if np.isfinite(limit) and self._missed(g, values[[g]], level)[0] and np.isfinite(tables.base):
                low, high = tables.scaled(np.array([limit]))[0], tables.scaled(values[[g]])[0]
                margins[g] = float((high if np.isfinite(high) else tables.total(digits[None])[0]) - low)
        if not margins:
            return rest
        g = max(margins, key=lambda goal: margins[goal])
        tables = self._tables[g]
        related = [self._relations.related(g, axis) for axis in range(len(self._shape))]
        room, here = LIFT * margins[g], digits.copy()
        while True:
            options = [
                (axis, v, np.log(related[axis][v].sum() / related[axis][here[axis]].sum()))
                for axis in self._rest
                for v in np.flatnonzero(related[axis][:, digits[axis]])
                if related[axis][v].sum() > related[axis][here[axis]].sum()
            ]
            if not options:
                break
            tried = np.tile(here, (len(options), 1))
            tried[np.arange(len(options)), [axis for axis, _, _ in options]] = [v for _, v, _ in options]
            with np.errstate(invalid="ignore"):
                loss = np.nan_to_num(tables.total(here[None])[0] - tables.total(tried), nan=0.0)
            gain = np.array([growth for _, _, growth in options]) / np.maximum(loss, 1e-9)
            gain[loss > room] = -inf
            best = int(gain.argmax())
            if gain[best] == -inf:
                break
            room -= max(float(loss[best]), 0.0)
            here = tried[best]
        return tuple(here[self._rest].tolist())

    def _single(self, rest: Sequence[int], bad: Bools) -> Cut:
        """Return the cut of cells at one choice of the other fields."""
        alone = [np.arange(self._shape[a]) == digit for a, digit in zip(self._rest, rest, strict=True)]
        return Cut(bad=bad, rest=alone)

    def _cuts(self, level: float) -> list[Cut]:
        """Return what is excluded if only designs below a level count."""
        cuts = list(self._extra)
        for rest, values in self._corners.items():
            covered = np.zeros(len(values), dtype=bool)
            for g in self._modelled:
                bad = self._missed(g, values[:, g], level)
                if bad.any():
                    wide = self._spread(g, bad)
                    allowed = [
                        self._relations.related(g, a)[digit]
                        for a, digit in zip(self._rest, rest, strict=True)
                    ]
                    cuts.append(Cut(bad=wide, rest=allowed, goal=g, origin=rest))
                    covered |= wide
            known = ~np.isnan(values[:, 0]) & ~covered
            good = self._oracle.feasible(values) & (values[:, 0] < level)
            if (known & ~good).any():
                cuts.append(self._single(rest, known & ~good))
        return _largest(cuts)

    def _missed(self, g: int, values: FloatArray, level: float) -> Bools:
        """Tell where a goal is missed by whatever is at least as bad."""
        least = self._relations.lowered(g, values)
        if g:
            return np.asarray(least > self._goals[g].limit)
        return np.asarray((least >= level) | (least == inf))

    def _spread(self, g: int, bad: Bools) -> Bools:
        """Return all cells of the first group that are at least as bad as some."""
        wide = bad.reshape(self._sizes)
        for place, axis in enumerate(self._first):
            moved = np.moveaxis(wide, place, -1).astype(np.float32) @ self._relations.related(g, axis)
            wide = np.moveaxis(moved > 0, -1, place)
        return np.asarray(wide.reshape(-1))

    def _audit(self, cuts: Sequence[Cut], level: float) -> bool:
        """Evaluate designs drawn from what is excluded; return whether a relation had to be given up."""
        by_goal = [cut for cut in cuts if cut.goal >= 0]
        limits, dropped = self._limits(level), self._relations.dropped
        before = self._relations.version, self.value
        pairs = []
        for _ in range(self._draws if by_goal else 0):
            cut = by_goal[self._rng.integers(len(by_goal))]
            cell = int(self._rng.choice(np.flatnonzero(cut.bad)))
            rest = [int(self._rng.choice(np.flatnonzero(allowed))) for allowed in cut.rest]
            drawn = self._designs(rest, np.array([cell]))[0]
            if all(one.tables.total(drawn[None])[0] <= one.limit for one in limits):
                pairs.append((cut, drawn))
        if pairs:
            self._look(self._space.number_of(np.stack([drawn for _, drawn in pairs], axis=1)))
        self.drawn += len(pairs)
        for cut, drawn in pairs:
            self._compare(cut, level, drawn)
        self.contradicted += self._relations.dropped - dropped
        return (self._relations.version, self.value) != before

    def _compare(self, cut: Cut, level: float, drawn: Designs) -> None:
        """Compare an excluded design with the one that excludes it; learn from the way where it is better."""
        g, values = cut.goal, self._corners[cut.origin][:, cut.goal]
        found = self._look(np.array([self._space.number_of(drawn)]))[0, g]
        own = np.unravel_index(np.arange(len(values)), self._sizes)
        above = self._missed(g, values, level)
        for axis, digit in zip(self._first, own, strict=True):
            above &= self._relations.related(g, axis)[digit, drawn[axis]]
        if not above.any():
            return
        start = int(np.flatnonzero(above)[0])
        if found >= self._relations.lowered(g, values[[start]])[0]:
            return
        here = self._designs(cut.origin, np.array([start]))[0]
        for axis in range(len(self._shape)):
            there = here.copy()
            there[axis] = drawn[axis]
            if there[axis] != here[axis]:
                pair = self._look(self._space.number_of(np.stack([here, there], axis=1)))
                self._relations.check(axis, pair[None], [int(here[axis]), int(there[axis])])
            here = there


def _largest(cuts: list[Cut]) -> list[Cut]:
    """Leave out cuts that another one contains."""
    if len(cuts) < 2:
        return cuts
    rows = np.stack([np.concatenate([cut.bad, *cut.rest]) for cut in cuts]).astype(np.float32)
    inside = rows @ (1.0 - rows).T == 0
    order = np.arange(len(cuts))
    inside &= ~(inside.T & (order[None, :] >= order[:, None]))  # of equal ones the first stays
    return [cut for cut, within in zip(cuts, inside.any(axis=1), strict=True) if not within]
