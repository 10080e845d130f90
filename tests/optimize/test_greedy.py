import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimize import Space, compare_fronts, explore, simplex_weights


@dataclass(frozen=True)
class Allocator:
    trials: int = 1
    small: int = 0
    size: int = 4


def space(base: Allocator | None = None, **choices) -> Space:
    given = {"trials": [1, 2, 3, 4, 5], "small": [0, 1, 2, 3], "size": [4, 2, 1]} | choices
    return Space(base or Allocator(), **given)


def bowl(spec):
    """Separable and convex: one minimum at trials 3, small 1, size 4."""
    return {"conflicts": (spec.trials - 3) ** 2 + (spec.small - 1) ** 2 + (4 - spec.size)}


def steps_of(result, path=0):
    return [(s.field, s.value, s.better, s.kept) for s in result.history if s.path == path]


def test_the_papers_greedy_step_by_step():
    result = explore(space(), bowl, minimize="conflicts", method="greedy")
    assert steps_of(result) == [
        (None, None, True, True),
        ("trials", 1, True, False),
        ("trials", 2, True, False),
        ("trials", 3, True, True),
        ("trials", 4, False, False),  # no better: stop here, 5 is never looked at
        ("small", 0, True, False),
        ("small", 1, True, True),
        ("small", 2, False, False),
        ("size", 4, True, True),
        ("size", 2, False, False),
    ]
    assert result.evaluations == 7 == sum(step.evaluated for step in result.history)
    assert [step.evaluated for step in result.history] == [
        *(True, False, True, True, True, False, True, True, False, True)
    ]
    assert result.spec(result.front[0]) == Allocator(trials=3, small=1, size=4)
    last = result.history[-2]
    assert (last.path, last.weights, last.sweep, last.costs) == (0, (1.0,), 1, (0.0,))
    assert last.design == result.table["design"][result.front[0]]
    assert result.method == "greedy"


def test_the_order_is_the_callers():
    result = explore(space(), bowl, minimize="conflicts", method="greedy", order=["size", "trials"])
    fields = [field for field, *_ in steps_of(result)]
    assert list(dict.fromkeys(fields)) == [None, "size", "trials"]
    assert result.table["small"].tolist() == [0] * result.evaluations


def test_the_search_starts_at_the_base_design():
    middle = explore(space(Allocator(trials=4, small=2, size=1)), bowl, minimize="conflicts", method="greedy")
    assert middle.history[0].costs == (1 + 1 + 3,)
    outside = explore(space(Allocator(trials=9)), bowl, minimize="conflicts", method="greedy")
    assert outside.space.point(outside.history[0].design)["trials"] == 1
    # The field keeps its current value when no scanned one is better.
    kept = explore(Space(Allocator(trials=3), trials=[1, 0, 3]), bowl, minimize="conflicts", method="greedy")
    assert steps_of(kept) == [
        (None, None, True, True),
        ("trials", 1, True, False),
        ("trials", 0, False, False),
    ]
    assert kept.spec(kept.front[0]).trials == 3


def test_a_start_that_constraints_exclude_gives_way_to_the_first_allowed():
    bounded = Space(
        Allocator(), trials=[1, 2, 3], small=[0, 1], constraints=[lambda p: p["trials"] + p["small"] > 2]
    )
    result = explore(bounded, bowl, minimize="conflicts", method="greedy")
    assert bounded.point(result.history[0].design) == {"trials": 2, "small": 1}
    assert all(t + s > 2 for t, s in zip(result.table["trials"], result.table["small"], strict=True))
    assert result.spec(result.front[0]) == Allocator(trials=3, small=1)


def test_the_scan_goes_on_while_nothing_is_usable():
    def saturated(spec):
        return {"latency": np.inf if spec.trials < 3 else float(spec.trials), "cost": spec.trials}

    result = explore(
        space(), saturated, minimize=["latency", "cost"], method="greedy", weights=[[1, 0]], order=["trials"]
    )
    assert [value for _, value, *_ in steps_of(result)[1:]] == [1, 2, 3, 4]
    assert steps_of(result)[3] == ("trials", 3, True, True)

    def limited(spec):
        return {"latency": spec.trials, "overflow": 0.1 / spec.trials}

    result = explore(
        space(),
        limited,
        minimize="latency",
        subject_to={"overflow": (None, 0.04)},
        method="greedy",
        order=["trials"],
    )
    assert steps_of(result)[3] == ("trials", 3, True, True) and result.spec(result.front[0]).trials == 3


def test_infeasible_designs_are_led_to_the_limit():
    result = explore(
        space(),
        lambda spec: {"x": spec.trials, "y": spec.trials},
        minimize="x",
        subject_to={"y": (4, 4)},
        method="greedy",
        coordinate=True,
    )
    assert result.spec(result.front[0]).trials == 4


@st.composite
def landscapes(draw):
    """A random table of two metrics, some of them saturated, over a small grid."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3)))
    size = int(np.prod(shape))
    number = st.one_of(st.integers(-3, 6).map(float), st.just(np.inf))
    table = draw(st.lists(st.tuples(number, st.integers(0, 5).map(float)), min_size=size, max_size=size))
    grid = Space(Allocator(), trials=range(shape[0]), small=range(shape[1]), size=range(shape[2]))

    def model(spec):
        a, b = table[(spec.trials * shape[1] + spec.small) * shape[2] + spec.size]
        return {"a": a, "b": b}

    return grid, model


@given(landscapes(), st.booleans(), st.sampled_from([None, (1, 4)]))
def test_a_search_is_never_worse_off_than_exhaustive_search_in_evaluations(landscape, coordinate, limits):
    grid, model = landscape
    seen = []

    def counted(spec):
        seen.append(spec)
        return model(spec)

    goals = {"minimize": "a", "maximize": "b", "subject_to": {"b": limits} if limits else None}
    found = explore(grid, counted, method="greedy", coordinate=coordinate, **goals)
    assert len(seen) == len(set(seen)) == found.evaluations <= grid.size
    assert found.evaluations == sum(step.evaluated for step in found.history)
    exact = explore(grid, model, **goals)
    rows = np.searchsorted(exact.table["design"], found.table["design"])
    for name in ("a", "b"):
        assert found.table[name].tolist() == exact.table[name][rows].tolist()
    if found.front.size:
        result = compare_fronts(
            found.values[found.front], exact.values[exact.front], maximize=found.maximized
        )
        assert 0 <= result.hypervolume_ratio <= 1 + 1e-12
        assert result.missed.size + result.found_points == exact.front.size
    for path in {step.path for step in found.history}:
        for (sweep, field), scan in itertools.groupby(
            (step for step in found.history if step.path == path), key=lambda step: (step.sweep, step.field)
        ):
            assert sum(step.kept for step in scan) <= 1 or field is None, sweep


@given(landscapes())
def test_coordinate_search_ends_where_no_single_change_helps(landscape):
    grid, model = landscape
    result = explore(grid, model, minimize="b", method="greedy", coordinate=True)
    here = min(result.history, key=lambda step: step.costs)
    point = grid.point(here.design)
    for field, choices in grid.choices.items():
        for value in choices:
            assert model(Allocator(**{**point, field: value}))["b"] >= here.costs[0]


def test_weights_give_a_front():
    def model(spec):
        return {"conflicts": 10 / spec.trials + spec.small / 10, "accesses": spec.trials + spec.small}

    goals = {"minimize": ["conflicts", "accesses"]}
    exact = explore(space(), model, **goals)
    found = explore(space(), model, method="greedy", **goals)
    assert {step.weights for step in found.history} == set(simplex_weights(2))
    result = compare_fronts(found.values[found.front], exact.values[exact.front])
    assert result.exact_points > result.found_points >= 3 or result.missed.size == 0
    one = explore(space(), model, method="greedy", weights=[[0, 1]], **goals)
    assert one.table["accesses"].min() == 1 and one.evaluations < found.evaluations


@pytest.mark.parametrize("coordinate", [False, True])
def test_arrays_give_the_same_search(coordinate):
    calls = []

    def model(spec):
        calls.append(spec)
        return {"x": abs(spec.trials - 3) + spec.small / 7, "y": spec.trials * 1.5 + (4 - spec.size) ** 2}

    goals = {"minimize": ["x", "y"], "method": "greedy", "coordinate": coordinate}
    one_by_one = explore(space(), model, **goals)
    count = len(calls)
    calls.clear()
    together = explore(space(), model, vectorized=True, **goals)
    assert together.history == one_by_one.history
    assert len(calls) < count == one_by_one.evaluations


def test_progress_of_a_search_counts_up():
    seen = []
    result = explore(
        space(), bowl, minimize="conflicts", method="greedy", progress=lambda *counts: seen.append(counts)
    )
    assert seen == [(n, n) for n in range(1, result.evaluations + 1)]


def test_simplex_weights():
    for objectives, divisions in itertools.product(range(1, 5), range(1, 5)):
        weights = simplex_weights(objectives, divisions)
        assert len(set(weights)) == len(weights)
        assert all(len(one) == objectives and abs(sum(one) - 1) < 1e-12 for one in weights)
    assert len(simplex_weights(3, 4)) == 15
