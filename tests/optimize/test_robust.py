"""The regret of designs under scenarios: against the definition, by hand, and at the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimize import knee_index, nondominated
from optimize.decisions.robust import robust_choice

MINIMIZE, MAXIMIZE = ("latency", "cost"), ("rate",)


def table(rng, count=30, **columns):
    made = {name: np.round(rng.uniform(1, 9, count), 2) for name in (*MINIMIZE, *MAXIMIZE)}
    return {"design": np.arange(count), **made, **columns}


def by_definition(one, feasible):
    """The regret of each design, row by row and without arrays."""
    mask = [False, False, True]
    rows = [k for k, good in enumerate(feasible) if good]
    points = [[one["latency"][k], one["cost"][k], one["rate"][k]] for k in rows]
    front = [points[k] for k in np.flatnonzero(nondominated(points, maximize=mask))]
    far = {}
    for row, point in zip(rows, points, strict=True):
        parts = []
        for k, up in enumerate(mask):
            values = [other[k] for other in front]
            best, worst = (max(values), min(values)) if up else (min(values), max(values))
            parts.append((point[k] - best) / (worst - best) if best != worst else (point[k] - best) / best)
        far[row] = sum(part**2 for part in parts) ** 0.5
    least = min(far.values())
    return [far[k] - least if k in far else float("inf") for k in range(len(feasible))]


@pytest.mark.parametrize("seed", range(5))
def test_the_regret_is_that_of_the_definition_and_the_best_is_the_knee(seed):
    rng = np.random.default_rng(seed)
    tables = {"a": table(rng), "b": table(rng), "c": table(rng)}
    feasible = {name: rng.random(30) < 0.8 for name in tables}
    found = robust_choice(tables, feasible, minimize=MINIMIZE, maximize=MAXIMIZE)
    for k, name in enumerate(tables):
        assert found.regret[k] == pytest.approx(by_definition(tables[name], feasible[name]))
        rows = np.flatnonzero(feasible[name])
        values = np.stack([tables[name][one] for one in (*MINIMIZE, *MAXIMIZE)], axis=1)[rows]
        front = rows[nondominated(values, maximize=[False, False, True])]
        knee = front[knee_index(values[np.isin(rows, front)], maximize=[False, False, True])]
        assert found.best[k] == knee and found.regret_of(int(knee))[name] == 0
    worst = found.regret.max(axis=0)
    assert worst[found.chosen] == worst.min() and np.isfinite(worst.min())
    assert found.feasible == sum(all(feasible[name][k] for name in tables) for k in range(30))


@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3), shift=st.floats(-100, 100))
def test_units_and_offsets_of_objectives_do_not_matter(seed, scale, shift):
    rng = np.random.default_rng(seed)
    tables = {"a": table(rng), "b": table(rng)}
    every = {name: np.full(30, True) for name in tables}
    one = robust_choice(tables, every, minimize=MINIMIZE, maximize=MAXIMIZE)
    other = {name: {**columns, "cost": scale * (columns["cost"] + shift)} for name, columns in tables.items()}
    two = robust_choice(other, every, minimize=MINIMIZE, maximize=MAXIMIZE)
    assert two.regret == pytest.approx(one.regret, abs=1e-6)
    turned = {name: {**columns, "rate": -columns["rate"]} for name, columns in tables.items()}
    three = robust_choice(turned, every, minimize=("latency", "cost", "rate"))
    assert three.regret == pytest.approx(one.regret) and three.chosen == one.chosen


def test_one_scenario_regrets_nothing_and_equal_scenarios_agree():
    rng = np.random.default_rng(9)
    one = table(rng)
    for tables in ({"a": one}, {"a": one, "b": one}):
        found = robust_choice(tables, dict.fromkeys(tables, np.full(30, True)), minimize=MINIMIZE)
        assert found.chosen == found.best[0] and max(found.regret_of(found.chosen).values()) == 0


def test_a_single_objective_is_regretted_in_shares():
    tables = {
        name: {"design": np.arange(3), "latency": np.array(values)}
        for name, values in (("a", [10.0, 11.0, 20.0]), ("b", [50.0, 44.0, 40.0]))
    }
    every = dict.fromkeys(tables, np.full(3, True))
    found = robust_choice(tables, every, minimize=("latency",))
    assert found.regret == pytest.approx(np.array([[0, 0.1, 1], [0.25, 0.1, 0]]))
    assert found.chosen == 1 and found.best == (0, 2)


def test_what_fails_under_one_scenario_is_not_chosen():
    tables = {"a": table(np.random.default_rng(1)), "b": table(np.random.default_rng(2))}
    every = {name: np.full(30, True) for name in tables}
    first = robust_choice(tables, every, minimize=MINIMIZE).chosen
    every["b"][first] = False
    found = robust_choice(tables, every, minimize=MINIMIZE)
    assert found.chosen != first and found.regret_of(first)["b"] == np.inf
    every["b"][:] = False
    found = robust_choice(tables, every, minimize=MINIMIZE)
    assert found.chosen is None and found.best[1] is None and found.feasible == 0
    half = {"a": np.arange(30) < 15, "b": np.arange(30) >= 15}
    found = robust_choice(tables, half, minimize=MINIMIZE)
    assert found.chosen is None and None not in found.best


def test_tables_share_some_designs_only():
    """Rows are joined by number, in whatever rows they stand; the best may be one that others lack."""
    rng = np.random.default_rng(3)
    a = table(rng)
    b = {name: column[10:] for name, column in table(rng).items()}
    found = robust_choice(
        {"a": a, "b": b}, {"a": np.full(30, True), "b": np.full(20, True)}, minimize=MINIMIZE
    )
    assert found.designs.tolist() == list(range(10, 30))
    whole = by_definition({**a, "rate": np.ones(30)}, np.full(30, True))
    assert found.regret[0] == pytest.approx(whole[10:])
