"""The methods that look at some designs only, on top of one evaluator that keeps what it saw."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optimize import checks
from optimize.search.anytime import Anytime
from optimize.search.bounds import ROUNDING, Bounds, Derived, Directions
from optimize.search.branch_bound import BranchAndBound
from optimize.search.feasibility import Goals, objective_values, violation
from optimize.search.greedy import Step, search, simplex_weights
from optimize.search.pareto import FloatArray
from optimize.search.proof import Left, Proof
from optimize.spaces.evaluation import stack
from optimize.spaces.numbering import Columns, Designs
from optimize.spaces.running import Runner
from optimize.spaces.space import Space


class Evaluator:
    """Evaluates what a method asks for and keeps all rows for the table."""

    def __init__(self, runner: Runner, goals: Goals, progress: Callable[[int, int], None]) -> None:
        self.runner, self.goals, self._progress = runner, goals, progress
        self._designs: list[Designs] = []
        self._blocks: list[Columns] = []
        self._evaluations = self._looked = 0

    def columns(self, numbers: Designs) -> Columns:
        """Return varied fields and metrics of designs not asked for before."""
        metrics, evaluations = self.runner.run(numbers)
        self._evaluations += evaluations
        self._looked += numbers.size
        self._designs.append(numbers)
        self._blocks.append(metrics)
        self._progress(self._looked, self._looked)
        plan = self.runner.plan
        return {**plan.space.columns(numbers), **metrics, **plan.compared(metrics)}

    def costs(self, designs: list[int]) -> tuple[FloatArray, FloatArray]:
        """Return the costs of designs and how far they violate the constraints, for a search."""
        table = self.columns(np.array(designs, dtype=np.int64))
        return self.goals.costs(table), violation(table, self.goals.subject_to)

    def found(self) -> tuple[Designs, Columns, int]:
        """Return all designs looked at in ascending order, their metrics, and the evaluations spent."""
        if not self._designs:
            return np.zeros(0, dtype=np.int64), {}, 0
        numbers = np.concatenate(self._designs)
        metrics = stack(self._blocks, numbers, self.runner.plan.space)
        rows = np.argsort(numbers)
        return numbers[rows], {name: column[rows] for name, column in metrics.items()}, self._evaluations


def run_search(
    evaluator: Evaluator,
    *,
    coordinate: bool,
    order: Sequence[str] | None,
    weights: Sequence[Sequence[float]] | None,
    restarts: int,
    seed: int,
) -> tuple[Step, ...]:
    """Run a greedy or coordinate search."""
    space = evaluator.runner.plan.space
    return search(
        space,
        evaluator.costs,
        weights=_weights(weights, len(evaluator.goals.objectives)),
        order=_order(order, space),
        exhaustive_scans=coordinate,
        starts=space.sample(min(restarts, space.count()), seed=seed).tolist() if restarts else (),
    )


def run_branch_and_bound(
    evaluator: Evaluator,
    bounds: Bounds | Derived,
    seed: int,
    *,
    time_limit: float | None = None,
    watch: Callable[[Left], None] = lambda left: None,
) -> Proof:
    """Run a branch and bound."""
    space, demands = evaluator.runner.plan.space, evaluator.goals.demands()
    metrics = list(dict.fromkeys(demand.metric for demand in demands))
    digits = evaluator.runner.plan.digits

    def evaluate(designs: Designs) -> Columns:
        columns = evaluator.columns(designs)
        objective_values(columns, tuple(metrics))  # refuses words
        return columns

    if not isinstance(bounds, Mapping):
        limit = math.inf if time_limit is None else time_limit
        options: dict[str, Any] = {"digits": digits, "time_limit": limit, "watch": watch, "seed": seed}
        limited = evaluator.goals.subject_to
        return Anytime(space, evaluate, demands=demands, bounds=bounds, limited=limited, **options).run()
    # One unit in the last digit is rounding where metrics are rounded.
    tolerance = ROUNDING if digits is None else max(ROUNDING, 1.001 * 10.0 ** (1 - digits))
    directions = Directions(space, metrics, bounds, tolerance)
    finder = BranchAndBound(
        space, evaluate, demands=demands, directions=directions, limited=evaluator.goals.subject_to, seed=seed
    )
    return finder.run()


def _weights(weights: Sequence[Sequence[float]] | None, objectives: int) -> list[tuple[float, ...]]:
    if weights is None:
        return simplex_weights(objectives)
    result = [tuple(map(float, one)) for one in weights]
    for one in result:
        if len(one) != objectives or not all(0 <= weight < np.inf for weight in one) or not sum(one):
            raise ValueError(
                f"weights must be {objectives} numbers >= 0, not all 0, for every path, got {one!r}"
            )
    if not result:
        raise ValueError("weights must have at least one path, got none")
    return result


def _order(order: Sequence[str] | None, space: Space) -> tuple[str, ...]:
    result = tuple(space.choices if order is None else order)
    for name in result:
        if name not in space.choices or result.count(name) > 1:
            raise ValueError(
                f"order must name fields of the space once, got {name!r}{checks.nearest(name, space.choices)}"
            )
    return result
