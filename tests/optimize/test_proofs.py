"""Fronts, optima and bounds of every program against enumeration, over values from 1e-15 to 1e9.

The first 300 run with the suite, the others by ``python -m pytest -m slow tests/optimize/test_proofs.py``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import fsum, inf
from typing import Any

import numpy as np
import pytest

from optimize.programs.components import Component
from optimize.programs.front import exact_front
from optimize.programs.milp import choose
from optimize.programs.sums import sum_front
from optimize.search.pareto import nondominated

METRICS = ("a", "b", "c", "d")


def values(rng: np.random.Generator, size: int, signed: bool) -> np.ndarray[Any, Any]:
    """Return values over 24 decades, of a decade or in steps, with ties, zeros and infinite ones."""
    kind = rng.integers(4)
    if kind == 0:
        drawn = 10.0 ** rng.uniform(-15, 9, size)
    elif kind == 1:
        drawn = rng.choice([1.0, 2.0, 5.0], size) * 10.0 ** rng.integers(-15, 10, size)
    elif kind == 2:
        drawn = rng.choice([0.0, 0.1, 0.2, 0.3, 1.0], size) * (1 + rng.choice([0, 2.0**-52, 1e-12], size))
    else:
        drawn = 10.0 ** float(rng.integers(-15, 9)) * rng.random(size)
    drawn = np.where(rng.random(size) < 0.2, drawn[rng.integers(size, size=size)], drawn)
    drawn = np.where(rng.random(size) < 0.05, 0.0, drawn)
    return drawn * rng.choice([-1.0, 1.0], size) if signed else drawn


@dataclass(frozen=True)
class Instance:
    """Groups, one sense per metric, ranges; the totals of all choices."""

    groups: dict[str, Any]
    senses: dict[str, str]
    ranges: dict[str, tuple[float | None, float | None]]
    totals: list[tuple[dict[str, int], dict[str, float]]]

    def feasible(self, goals: tuple[str, ...]) -> list[tuple[float, ...]]:
        """Return the signed totals of the goals for every choice in the ranges with finite ones."""
        found = []
        for _, totals in self.totals:
            inside = all(
                (low is None or totals[name] >= low) and (high is None or totals[name] <= high)
                for name, (low, high) in self.ranges.items()
            )
            point = tuple(
                totals[name] if self.senses[name] == "minimize" else -totals[name] for name in goals
            )
            if inside and max(point) < inf:
                found.append(point)
        return found


def instance(seed: int, shared: bool) -> Instance:
    """Return a random instance; some share fields, some have no choice in the ranges."""
    rng = np.random.default_rng([19, seed])
    senses = {name: str(rng.choice(["minimize", "maximize"], p=[0.7, 0.3])) for name in METRICS}
    if shared:
        pairs = [("uv", "vw"), ("uv", "vw", "uw"), ("uvw", "v"), ("uv", "w")][rng.integers(4)]
        sizes = {name: int(rng.integers(1, 5)) for name in "uvw"}
        fields = {f"p{pair}": tuple(pair) for pair in pairs}
    else:
        fields = {f"g{k}": (f"g{k}",) for k in range(rng.integers(1, 5))}
        sizes = {name: int(rng.integers(1, 7)) for name in fields}
    signed = bool(rng.random() < 0.2)
    groups: dict[str, Any] = {}
    for name, names in fields.items():
        shape = tuple(sizes[one] for one in names)
        table = {}
        for metric in METRICS:
            column = values(rng, int(np.prod(shape)), signed).reshape(shape)
            worst = inf if senses[metric] == "minimize" else -inf
            table[metric] = np.where(rng.random(shape) < 0.05, worst, column)
        groups[name] = Component(fields=names, table=table) if shared else table
    used = dict.fromkeys(one for names in fields.values() for one in names)
    totals = []
    for rows in itertools.product(*(range(sizes[name]) for name in used)):
        choice = dict(zip(used, rows, strict=True))
        total = {}
        for metric in METRICS:
            parts = []
            for name, names in fields.items():
                table = groups[name].table if shared else groups[name]
                parts.append(float(table[metric][tuple(choice[one] for one in names)]))
            total[metric] = fsum(parts)
        totals.append((choice, total))
    ranges: dict[str, tuple[float | None, float | None]] = {}
    for name in rng.choice(METRICS, rng.integers(0, 3), replace=False).tolist():
        known = sorted(total[name] for _, total in totals if abs(total[name]) < inf)
        if known:
            bound = known[int(rng.integers(len(known)))]
            bound = float(rng.choice([bound, np.nextafter(bound, -inf), np.nextafter(bound, inf)]))
            ranges[name] = (None, bound) if senses[name] == "minimize" else (bound, None)
    return Instance(groups, senses, ranges, totals)


def goals_of(one: Instance, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        sense: [name for name in names if one.senses[name] == sense] for sense in ("minimize", "maximize")
    }


def check_fronts(one: Instance, shared: bool, count: int) -> None:
    goals = goals_of(one, METRICS[:count])
    names = (*goals["minimize"], *goals["maximize"])
    points = np.array(one.feasible(names)).reshape(-1, count)
    expected = np.unique(points[nondominated(points)], axis=0)
    signs = np.array([1.0 if one.senses[name] == "minimize" else -1.0 for name in names])
    found = [exact_front(one.groups, **goals, subject_to=one.ranges)]
    found += [] if shared else [sum_front(one.groups, **goals, subject_to=one.ranges)]
    for front in found:
        np.testing.assert_array_equal(np.unique(front.values * signs + 0.0, axis=0), expected + 0.0)
        assert len(front.values) == len(expected)
    front = found[0]
    assert front.proven and not any(front.resolution)
    if len(expected):
        np.testing.assert_array_equal(np.array(front.bound) * signs, expected.min(axis=0))


def check_choice(one: Instance, shared: bool) -> None:
    sense, sign = one.senses["a"], 1.0 if one.senses["a"] == "minimize" else -1.0
    best = min((point[0] for point in one.feasible(("a",))), default=None)
    choice = choose(one.groups, **{sense: "a"}, subject_to=one.ranges)
    assert choice.proven and choice.resolution == 0
    if best is None:
        assert (choice.status, choice.chosen, choice.bound) == ("infeasible", {}, None) and choice.message
        return
    assert (choice.status, choice.gap) == ("optimal", 0)
    assert sign * choice.objective == sign * choice.bound == best
    totals = next(totals for chosen, totals in one.totals if chosen == choice.chosen)
    assert totals["a"] == choice.objective


def check_bounds(one: Instance) -> None:
    """Check that what is claimed holds where there is no room to enumerate and the solver is asked."""
    sense, sign = one.senses["a"], 1.0 if one.senses["a"] == "minimize" else -1.0
    best = min((point[0] for point in one.feasible(("a",))), default=None)
    choice = choose(one.groups, **{sense: "a"}, subject_to=one.ranges)
    assert choice.bound is None or best is None or sign * choice.bound <= best
    assert choice.objective is None or best <= sign * choice.objective
    assert not choice.proven or choice.objective == (None if best is None else sign * best)
    goals = goals_of(one, METRICS[:2])
    names = (*goals["minimize"], *goals["maximize"])
    signs = np.array([1.0 if one.senses[name] == "minimize" else -1.0 for name in names])
    front = exact_front(one.groups, **goals, subject_to=one.ranges)
    points = one.feasible(names)
    assert not front.proven or bool(len(front.values)) == bool(points)
    for point in points if len(front.values) else ():
        off = front.values * signs - point
        assert (off <= np.array(front.resolution) * (1 + 1e-12)).all(axis=1).any()
        assert (np.array(front.bound) * signs <= point).all()


def check(seeds: range) -> None:
    for seed in seeds:
        shared = seed % 3 == 0
        one = instance(seed, shared)
        try:
            check_choice(one, shared)
            check_fronts(one, shared, 2 + seed % 2)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("optimize.programs.milp.FEW", 2)
                patch.setattr("optimize.programs.milp.MANY", 4)
                patch.setattr("optimize.programs.front.STEPS", (4,))
                check_bounds(one)
        except Exception as error:
            error.add_note(f"instance({seed}, {shared})")
            raise


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_fronts_optima_and_bounds_equal_enumeration(start):
    check(range(start, start + 50))


@pytest.mark.slow
def test_two_thousand_instances_equal_enumeration():
    check(range(300, 2000))
