"""State of a decision: simulated rows, corrected columns, the present choice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.decisions.correction import Correction, features_of
from optimize.decisions.decision import LEVEL, TIED, Decision, lead
from optimize.search import pareto
from optimize.search.exploration import Exploration, conclude
from optimize.search.feasibility import Goals
from optimize.search.pareto import BoolArray, FloatArray, IntArray
from optimize.spaces.evaluation import LOAD, STABLE, ends_of, metric_columns, saturated

DRAWS = 32  # possible truths that are drawn
QUANTILE = 1.645  # half a 90 % interval in standard deviations of a normal distribution
AT_RANDOM = 1 / 3  # share of the simulations whose designs are drawn from all, so that intervals hold for all


Ends = Mapping[str, tuple[FloatArray, FloatArray, FloatArray]]
"""Low, best and high of objectives and limited metrics."""


def chances(ends: Ends, stable: FloatArray, goals: Goals, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return for each row the probability to be on the front, and that to be its knee.

    Every metric is drawn from two half normal distributions that have the interval's ends at
    their 5 and 95 %, independently of the others. ``stable``: the probability that a row keeps up.
    """
    rng, mask = np.random.default_rng(seed), goals.maximized
    count = len(stable)
    front, knee = np.zeros(count), np.zeros(count)
    for _ in range(DRAWS if count else 0):
        drawn = {}
        for name, (low, best, high) in ends.items():
            normal = rng.standard_normal(count) / QUANTILE
            with np.errstate(invalid="ignore"):
                away = np.where(normal > 0, high - best, best - low)
            drawn[name] = best + normal * np.where(np.isfinite(away), away, 0.0)
        able = rng.random(count) < stable
        for name, way, bound in checks.sides(goals.subject_to):
            able &= way * drawn[name] <= way * bound
        rows = np.flatnonzero(able & np.isfinite([drawn[name] for name in goals.objectives]).all(axis=0))
        values = np.stack([drawn[name][rows] for name in goals.objectives], axis=1)
        on = np.flatnonzero(pareto.nondominated(values, maximize=mask)) if len(rows) else rows
        if len(on):
            front[rows[on]] += 1
            nearest = pareto.ideal_distance(values[on], values[on], maximize=mask).argmin()
            knee[rows[on[nearest]]] += 1
    return front / DRAWS, knee / DRAWS


MARGIN = 0.05
"""How far from a full resource the word of the model on who keeps up is not believed (chosen in view)."""


class State:
    """Designs of an exploration as known so far; the arguments are those of `optimize.decide`."""

    def __init__(
        self,
        model: Exploration,
        stated: Mapping[str, npt.ArrayLike | None],
        bounded: Collection[str],
        subject_to: dict[str, checks.Range],
        seed: int,
    ) -> None:
        for name in stated:
            if name not in model.table:
                raise ValueError(f"stated must name metrics, got {name!r}{checks.nearest(name, model.table)}")
        self.model, self.seed = model, seed
        self._goals = Goals(minimize=model.minimize, maximize=model.maximize, subject_to=subject_to)
        self.results: dict[int, Any] = {}
        self.failed: dict[int, str] = {}
        self._found: dict[int, dict[str, Any]] = {}
        self._correction = Correction(
            model.table, features_of(model.space, model.table), stated, bounded, level=LEVEL, seed=seed
        )
        needed = dict.fromkeys((*model.objectives, *subject_to))
        self._needed = [name for name in needed if name in stated]
        self.table = dict(model.table)
        self._correct(self._needed)

    @property
    def tried(self) -> set[int]:
        """Rows that were handed to the simulation."""
        return {*self.results, *self.failed}

    @property
    def _rows(self) -> IntArray:
        return np.array(list(self._found), dtype=np.int64)

    def take(self, results: Mapping[int, Any]) -> None:
        """Take what the simulation returned for rows."""
        found = {row: self._read(row, result) for row, result in results.items()}
        self.results.update(results)
        self._found.update(found)
        self._correct(self._needed)

    def go_on(self, before: Decision) -> None:
        """Take what an earlier decision on the same model found."""
        self.failed.update(before.failed)
        self.take(before.results)

    def fail(self, row: int, error: Exception) -> None:
        """Note that a row could not be simulated."""
        label = self.model.space.label(int(self.model.table["design"][row]))
        self.failed[row] = f"{label}: {type(error).__name__}: {error}".splitlines()[0]
        self._correct(self._needed)

    def _read(self, row: int, result: Any) -> dict[str, Any]:
        columns = metric_columns(result)
        values: dict[str, Any] = {}
        for name in self._correction.metrics:
            if name not in columns:
                raise ValueError(f"simulate returned no metric {name!r}{checks.nearest(name, columns)}")
            parts = [float(columns.get(part, columns[name])[0]) for part in ends_of(name)]
            if np.isnan(parts).any():
                label = self.model.space.label(int(self.model.table["design"][row]))
                raise ValueError(f"simulate returned NaN for {name!r} at {label}")
            values |= dict(zip(ends_of(name), parts, strict=True))
        if STABLE in columns and STABLE in self.model.table:
            values[STABLE] = bool(columns[STABLE][0])
        return values

    def _correct(self, names: Collection[str], *, calibrated: bool = False) -> None:
        """Correct some metrics by all that was simulated, and conclude anew."""
        rows, table = self._rows, self.table
        for name in names:
            simulated = np.array([self._found[row][name] for row in rows.tolist()], dtype=float)
            columns = self._correction.columns(name, rows, simulated, calibrated=calibrated)
            for part, column in zip(ends_of(name), columns, strict=True):
                column[rows] = [self._found[row][part] for row in rows.tolist()]
                table[part] = column
        self._keeps_up = self._stability()
        if STABLE in table:
            table[STABLE] = self._keeps_up >= 0.5
        goals = self._goals
        self._by_best = conclude(goals, table, space=self.model.space, method=self.model.method)
        self._ends = {
            name: tuple(table[part if name in self._needed else name].astype(float) for part in ends_of(name))
            for name in dict.fromkeys((*goals.objectives, *goals.subject_to))
        }
        self._now = self._by_best
        unsure = self._unsure()
        if unsure.any():
            feasible = self._by_best.feasible & ~unsure
            front = np.flatnonzero(feasible)
            front = front[pareto.undominated(goals.costs(table)[front])]
            self._now = replace(self._by_best, feasible=feasible, front=front)
        self._membership()

    def _unsure(self) -> BoolArray:
        """Return the simulated rows that keep every limit by their best values, but not by their intervals.

        To choose the best of designs that are known up to an interval is to choose those that it flatters.
        """
        out = np.zeros(len(self._by_best.feasible), dtype=bool)
        for name, way, bound in checks.sides(self._goals.subject_to):
            out |= way * self._ends[name][1 + way] > way * bound
        return self._by_best.feasible & out & self._is(self.results)

    def _stability(self) -> FloatArray:
        """Probability that each row keeps up: 0 or 1 if simulated, else by the load of its fullest resource.

        The load beyond which designs do not keep up is the one nearest to 1 that contradicts the fewest
        simulations; within 5 % of it nothing is sure.
        """
        table, rows = self.model.table, self._rows
        full = saturated(table, self._goals.subject_to)
        likely = np.where(full, 0.0, 1.0)
        if STABLE not in table or STABLE in self._goals.subject_to:
            return likely
        seen = np.array([self._found[row].get(STABLE, not full[row]) for row in rows.tolist()], dtype=bool)
        if LOAD in table and table[LOAD].dtype.kind in "iuf":
            load = table[LOAD].astype(float)
            cuts = np.unique(np.r_[1.0, load[rows] * (1 + 1e-9), load[rows] * (1 - 1e-9)])
            wrong = [int(((load[rows] < cut) != seen).sum()) for cut in cuts]
            cut = min(zip(wrong, np.abs(cuts - 1.0), cuts, strict=True))[2]
            likely = np.clip(0.5 + (cut - load) / (2 * MARGIN * cut), 0.0, 1.0)
            # What the model calls full has no values of its own: it may be simulated, not chosen unseen.
            likely[full] = np.minimum(likely[full], 0.49)
        likely[rows] = seen
        return likely

    def _membership(self) -> None:
        """Find the rows that may be on the front.

        Those that may satisfy the limits, and that no row that does for sure dominates even with its worst
        values and their best ones.
        """
        possible, admitted = self._keeps_up > 0, self._keeps_up >= 1
        for name, way, bound in checks.sides(self._goals.subject_to):
            possible &= way * self._ends[name][1 - way] <= way * bound
            admitted &= way * self._ends[name][1 + way] <= way * bound
        names = self.model.objectives
        ends = [np.stack([self._ends[name][end] for name in names], axis=1) for end in (0, 2)]
        costs = [pareto.as_costs(end, self.model.maximized) for end in ends]
        best, worst = np.minimum(*costs), np.maximum(*costs)
        self._able = possible & ~np.isposinf(best).any(axis=1)
        sure = worst[admitted & ~np.isposinf(worst).any(axis=1)]
        self._able[self._able] = ~pareto.dominated_by(best[self._able], pareto.distinct_front(sure))
        self.open = np.flatnonzero(self._able & ~self._is(self.results))

    def _is(self, rows: Collection[int]) -> BoolArray:
        mask = np.zeros(len(self.model.feasible), dtype=bool)
        mask[list(rows)] = True
        return mask

    def _far(self, rows: npt.ArrayLike) -> FloatArray:
        """Return the distance of rows from the ideal point of the front."""
        values = self._now.values
        front = values[self._now.front]
        return pareto.ideal_distance(values[np.asarray(rows)], front, maximize=self.model.maximized)

    def _nearest(self, among: BoolArray) -> int | None:
        """Return the point of the front nearest to its ideal, of some rows."""
        rows = self._now.front[among[self._now.front]]
        return int(rows[self._far(rows).argmin()]) if len(rows) else None

    @property
    def best(self) -> int | None:
        """The row that would be chosen, simulated or not; one that cannot be simulated is passed over."""
        return self._nearest(~self._is(self.failed))

    @property
    def tied(self) -> bool:
        """Whether the choice is simulated, or a simulated point of the front all but as near to the ideal."""
        own, best = self._nearest(self._is(self.results)), self.best
        if own is None or best is None:
            return False
        far = self._far([own, best])
        return own == best or bool(far[0] - far[1] <= TIED)

    @property
    def simulated_feasible(self) -> bool:
        """Whether a simulated design is feasible."""
        return bool(self._now.feasible[self._rows].any())

    @property
    def settled(self) -> bool:
        """Whether nothing is open within calibrated intervals and the best design is simulated."""
        if not len(self.open):
            self._correct(self._needed, calibrated=True)
        return not len(self.open) and (self.best is None or self.best in self.results)

    def rivals(self) -> IntArray:
        """Return the open rows that lead the choice within calibrated intervals, the farthest first."""
        self._correct(self._needed, calibrated=True)
        own = self._nearest(self._is(self.results))
        if own is None:
            return self.open
        ahead = lead(self.model, self.table, self._needed, self._now.front, own, self.open)
        order = np.argsort(-ahead, kind="stable")
        # Of one objective whatever leads at all is a rival, see `Decision.rivals`.
        return self.open[order[ahead[order] > (TIED if len(self.model.objectives) > 1 else 0.0)]]

    def next_rows(self, count: int, rivals: IntArray | None = None) -> IntArray:
        """Return the rows to simulate next.

        Among them is the design that would be chosen. A third of the others is drawn from all designs. The
        rest are `rivals` if given; else a quarter of it are those likeliest to be the knee, and the others
        are drawn in proportion to the entropy of being on the front.
        """
        free = ~self._is(self.tried)
        first = self.best
        if first is not None and not free[first]:
            first = None
        near = self.model.closest
        if first is None and near is not None and free[near] and not self.tried:
            first = near
        known, population = np.flatnonzero(self._able), np.flatnonzero(self._keeps_up > 0)
        seed = int(np.random.SeedSequence([self.seed, len(self.tried)]).generate_state(1)[0])
        front = knee = np.zeros(len(known))
        if count > 1 and rivals is None:
            ends = {
                name: (low[known], best[known], high[known]) for name, (low, best, high) in self._ends.items()
            }
            front, knee = chances(ends, self._keeps_up[known], self._goals, seed)
        rng = np.random.default_rng(seed)
        picked: list[int] = []

        def take(rows: Iterable[int]) -> None:
            picked.extend(map(int, rows))
            free[picked] = False

        take([] if first is None else [first])
        rest = max(count - len(picked), 0)
        at_random = min(round(rest * AT_RANDOM), int(free[population].sum()))
        take(rng.choice(population[free[population]], at_random, replace=False))
        if rivals is not None:
            take(rivals[free[rivals]][: count - len(picked)])
            return np.array(picked, dtype=np.int64)
        likely = np.argsort(-knee, kind="stable")[: max(count - len(picked), 0) // 4]
        likely = known[likely[knee[likely] > 0]]
        take(likely[free[likely]])
        with np.errstate(divide="ignore", invalid="ignore"):
            entropy = np.nan_to_num(-front * np.log(front) - (1 - front) * np.log(1 - front))
        weight = np.where(free[known], entropy + 1e-6, 0.0)
        wanted = min(max(count - len(picked), 0), int((weight > 0).sum()))
        if wanted:
            take(known[rng.choice(len(weight), wanted, replace=False, p=weight / weight.sum())])
        return np.array(picked[: max(count, 1)], dtype=np.int64)

    def conclude(self, *, budget: float, seconds: float, interrupted: bool) -> Decision:
        """Return the decision, every metric corrected."""
        self._correct(self._correction.metrics, calibrated=True)
        if not self.simulated_feasible:
            self._now = self._by_best
        rows = self._rows
        best, own = self.best, self._nearest(self._is(self.results))
        chosen = own
        if own is None and len(rows) and self.simulated_feasible:
            # None of the simulated designs is on the front of the best values: the nearest to its ideal.
            held = rows[self._now.feasible[rows]]
            chosen = int(held[self._far(held).argmin()])
        if not len(rows):
            chosen = best
        reason = self._reason(chosen, best)
        self.table["simulated"] = self._is(self.results)
        return Decision(
            model=self.model,
            subject_to=self._goals.subject_to,
            table=self.table,
            corrected=self._correction.metrics,
            simulated=rows,
            results=self.results,
            failed=self.failed,
            feasible=self._now.feasible,
            front=self._now.front,
            chosen=chosen,
            reason=reason,
            open=self.open,
            settled=not len(self.open),
            budget=budget,
            seconds=seconds,
            interrupted=interrupted,
        )

    def _reason(self, chosen: int | None, best: int | None) -> str:
        goals = self.model.objectives
        rule = f"best {goals[0].replace('_', ' ')}" if len(goals) == 1 else "knee of the front"
        if chosen is None:
            return "no design is feasible" if best is None else "no simulated design is feasible"
        if not len(self._rows):
            return f"{rule} by the model, not simulated"
        if self._unsure()[chosen]:
            return f"{rule} by best values; no simulated design keeps every limit with its whole interval"
        if chosen == best:
            return f"{rule}, which its simulation bears out"
        count = len(self._rows)
        among = f"the {count} simulated designs" if count > 1 else "designs simulated, this one alone"
        if self.tied:
            better = f"by more than {TIED:.0%} of the front's ranges"
            return f"{rule} among {among}; no other is expected to be better {better}"
        return f"{rule} among {among}, as far as the budget reached"
