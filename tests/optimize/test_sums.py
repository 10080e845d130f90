"""Sums over groups: the dynamic program against every combination."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimize.programs.components import Component
from optimize.programs.milp import choose
from optimize.programs.sums import sum_front

tables = st.lists(
    st.integers(1, 4).flatmap(
        lambda n: st.fixed_dictionaries(
            {name: st.lists(st.integers(-3, 6), min_size=n, max_size=n) for name in ("a", "b", "c")}
        )
    ),
    min_size=1,
    max_size=4,
)


def every_sum(groups, names):
    for options in itertools.product(*(range(len(table["a"])) for table in groups.values())):
        rows = list(zip(groups.values(), options, strict=True))
        yield options, tuple(sum(table[name][option] for table, option in rows) for name in names)


def beaten(point, others, signs):
    costs = [tuple(s * v for s, v in zip(signs, p, strict=True)) for p in (point, *others)]
    return any(all(x <= y for x, y in zip(o, costs[0], strict=True)) and o != costs[0] for o in costs[1:])


@settings(max_examples=50, deadline=None, derandomize=True)
@given(tables, st.sampled_from([("a", "b"), ("a",), ("a", "b", "c")]), st.booleans(), st.booleans())
def test_the_front_of_sums_is_that_of_all_combinations(drawn, objectives, halves, up):
    """Whole numbers, and halves, which take the way of arbitrary numbers."""
    scale = 0.5 if halves else 1
    groups = {f"g{k}": {n: [v * scale for v in c] for n, c in table.items()} for k, table in enumerate(drawn)}
    minimize, maximize = (objectives[:1], objectives[1:]) if up else (objectives, ())
    result = sum_front(groups, minimize=minimize, maximize=maximize)
    signs = [1] * len(minimize) + [-1] * len(maximize)
    reached: dict[tuple[float, ...], int] = {}
    for _, point in every_sum(groups, objectives):
        reached[point] = reached.get(point, 0) + 1
    expected = {p: n for p, n in reached.items() if not beaten(p, reached, signs)}
    assert dict(zip(map(tuple, result.values.tolist()), result.combinations, strict=True)) == expected
    assert len(result) == len(expected) <= result.states * max(len(t["a"]) for t in groups.values())
    for k, value in enumerate(result.values.tolist()):
        options = {name: int(rows[k]) for name, rows in result.chosen.items()}
        for name, total in zip(objectives, value, strict=True):
            assert sum(groups[group][name][option] for group, option in options.items()) == total


@settings(max_examples=50, deadline=None, derandomize=True)
@given(tables, st.integers(-6, 12), st.integers(0, 6))
def test_limits_on_sums(drawn, low, width):
    groups = {f"g{k}": table for k, table in enumerate(drawn)}
    limits = {"c": (low, low + width)}
    result = sum_front(groups, minimize="a", maximize="b", subject_to=limits)
    inside = {point[:2] for _, point in every_sum(groups, "abc") if low <= point[2] <= low + width}
    assert set(map(tuple, result.values.tolist())) == {p for p in inside if not beaten(p, inside, [1, -1])}
    for k in range(len(result)):
        total = sum(groups[group]["c"][rows[k]] for group, rows in result.chosen.items())
        assert low <= total <= low + width


@settings(max_examples=50, deadline=None, derandomize=True)
@given(tables, st.integers(-6, 12), st.sampled_from([1.0, 0.5, 0.1]), st.booleans())
def test_one_limit_on_one_objective(drawn, high, scale, up):
    """Two sums at a time: those of whole numbers go by an array, and tenths do not add up exactly."""
    groups = {f"g{k}": {"a": t["a"], "c": [v * scale for v in t["c"]]} for k, t in enumerate(drawn)}
    limit = high * scale
    direction = {"maximize" if up else "minimize": "a"}
    result = sum_front(groups, **direction, subject_to={"c": (None, limit)})
    inside = [point[0] for _, point in every_sum(groups, "ac") if point[1] <= limit]
    assert result.values.tolist() == ([[max(inside) if up else min(inside)]] if inside else [])
    if inside:
        assert sum(groups[group]["c"][rows[0]] for group, rows in result.chosen.items()) <= limit


def test_rounding_of_what_is_to_come_drops_nothing():
    groups = {"a": {"x": [1.5], "c": [0.1]}, "b": {"x": [1.0], "c": [0.5]}}
    assert 0.1 + 0.5 <= 0.6 and 0.1 > 0.6 - 0.5
    assert sum_front(groups, minimize="x", subject_to={"c": (None, 0.6)}).values.tolist() == [[2.5]]


def test_saturated_options_are_never_chosen():
    groups = {"a": {"x": [np.inf, 3.0], "y": [0, 2]}, "b": {"x": [1.0, 2.0], "y": [5, 4]}}
    result = sum_front(groups, minimize=["x", "y"])
    assert result.values.tolist() == [[4, 7], [5, 6]] and result.chosen["a"].tolist() == [1, 1]
    nothing = sum_front({"a": {"x": [np.inf], "y": [1]}}, minimize=["x", "y"])
    assert len(nothing) == 0 and nothing.chosen["a"].tolist() == []


def test_twenty_groups_of_fifty_are_exact():
    """On a grid the front is checked against the textbook recursion over every total cost."""
    rng = np.random.default_rng(5)
    groups = {}
    for k in range(20):
        cost = np.cumsum(rng.integers(1, 10, 50))
        loss = np.rint(4000 * np.exp(-cost / rng.uniform(30, 120)) + rng.normal(0, 20, 50))
        groups[f"g{k}"] = {"cost": cost, "loss": loss}
    result = sum_front(groups, minimize=["cost", "loss"])
    best = {0: 0.0}
    for table in groups.values():
        grown: dict[int, float] = {}
        for total, loss in best.items():
            for c, v in zip(table["cost"].tolist(), table["loss"].tolist(), strict=True):
                if loss + v < grown.get(total + c, np.inf):
                    grown[total + c] = loss + v
        best, least = {}, np.inf
        for total in sorted(grown):
            if grown[total] < least:
                least = best[total] = grown[total]
    assert result.values.tolist() == [[total, loss] for total, loss in best.items()]
    assert len(result) > 2000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"minimize": ()}, "sum_front needs at least one objective in minimize or maximize"),
        ({"minimize": "a", "maximize": "a"}, "objective 'a' must be minimised or maximised, not both"),
        ({"minimize": "aa"}, "group 'g' has no metric 'aa'; "),
        ({"groups": {}}, "groups must have at least one group, got none"),
        ({"groups": {"g": {"a": []}}}, r"'a' of group 'g' must be one number per option, got \[\]"),
        (
            {"groups": {"g": {"a": [1, 2], "b": [1]}}, "maximize": "b"},
            "'[ab]' of group 'g' must be one number per option",
        ),
        ({"groups": {"g": {"a": [np.nan]}}}, "'a' of group 'g' must not be NaN, got NaN in option 0"),
        ({"groups": {"g": {"a": [-np.inf]}}}, "'a' of group 'g' must not be infinitely good, got -inf"),
        (
            {"groups": {n: Component(fields=("u", n), table={"a": [[1.0, 2.0]]}) for n in "gh"}},
            "groups must share no field",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    call: dict[str, Any] = {"groups": {"g": {"a": [1], "b": [2]}}, "minimize": "a", **arguments}
    with pytest.raises(ValueError, match=message):
        sum_front(call.pop("groups"), **call)


def instance(rng, groups, options):
    """Return parts whose loss falls with cost, as in a queue that gets faster, with some noise."""
    tables = {}
    for k in range(groups):
        cost = rng.integers(1, 60, options)
        loss = 100 / (1 + cost / rng.uniform(5, 40)) * rng.uniform(0.9, 1.1, options)
        tables[f"g{k}"] = {"cost": cost, "loss": loss}
    least, most = (sum(end(t["cost"]) for t in tables.values()) for end in (min, max))
    return tables, least + (most - least) * rng.uniform(0.02, 0.9)


@pytest.mark.parametrize(("groups", "options"), [(1, 5), (3, 6), (8, 8), (20, 20)])
def test_the_best_choice_is_a_point_of_the_front(groups, options):
    rng = np.random.default_rng([groups, options])
    for _ in range(5):
        tables, limit = instance(rng, groups, options)
        front = sum_front(tables, minimize=["cost", "loss"])
        choice = choose(tables, minimize="loss", subject_to={"cost": (None, limit)})
        assert choice.status == "optimal"
        assert choice.objective == front.values[front.values[:, 0] <= limit, 1].min()


def test_a_group_without_usable_options_leaves_no_sum():
    groups = {"a": {"x": [1, 2], "y": [1, 1]}, "b": {"x": [np.inf], "y": [1]}}
    for order in (groups, dict(reversed(groups.items()))):
        assert len(sum_front(order, minimize=["x", "y"])) == 0
        assert len(sum_front(order, minimize="x", subject_to={"y": (None, 5)})) == 0
