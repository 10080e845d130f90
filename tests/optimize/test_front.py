from __future__ import annotations

import itertools
from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimize.programs.components import Component
from optimize.programs.front import exact_front
from optimize.programs.sums import sum_front
from optimize.search.pareto import nondominated

OBJECTIVES = ("a", "b", "c", "d")


def every_choice(groups):
    """All choices with the totals of every metric, by enumeration."""
    fields = {}
    for name, group in groups.items():
        names = group.fields if isinstance(group, Component) else (name,)
        table = group.table if isinstance(group, Component) else group
        fields.update(zip(names, np.shape(next(iter(table.values()))), strict=True))
    for rows in itertools.product(*(range(size) for size in fields.values())):
        choice = dict(zip(fields, rows, strict=True))
        totals = {}
        for metric in OBJECTIVES:
            parts = []
            for name, group in groups.items():
                component = isinstance(group, Component)
                table, names = (group.table, group.fields) if component else (group, (name,))
                parts.append(float(np.asarray(table[metric])[tuple(choice[one] for one in names)]))
            totals[metric] = fsum(parts)
        yield choice, totals


def exhaustive_front(groups, minimize, maximize, budgets):
    points = [
        [totals[name] for name in (*minimize, *maximize)]
        for _, totals in every_choice(groups)
        if all(
            (low is None or totals[name] >= low) and (high is None or totals[name] <= high)
            for name, (low, high) in budgets.items()
        )
    ]
    mask = [False] * len(minimize) + [True] * len(maximize)
    values = np.array(points).reshape(len(points), len(mask))
    return np.unique(values[nondominated(values, maximize=mask)], axis=0)


def table(draw, shape, number):
    size = int(np.prod(shape))
    return {
        name: np.reshape(draw(st.lists(number, min_size=size, max_size=size)), shape) for name in OBJECTIVES
    }


@st.composite
def instances(draw, number):
    """Plain groups, or components that share fields in a chain and in a triangle; perhaps a budget."""
    if draw(st.booleans()):
        groups = {f"g{g}": table(draw, (draw(st.integers(1, 4)),), number) for g in range(3)}
    else:
        sizes = {name: draw(st.integers(1, 3)) for name in "uvw"}
        pairs = draw(st.sampled_from([("uv", "vw"), ("uv", "vw", "uw"), ("uvw", "v")]))
        groups = {}
        for pair in pairs:
            shape = tuple(sizes[name] for name in pair)
            groups[f"part {pair}"] = Component(fields=tuple(pair), table=table(draw, shape, number))
    number_of = draw(st.integers(2, 3))
    names = draw(st.permutations(OBJECTIVES))
    maximized = draw(st.integers(0, number_of))
    minimize, maximize = names[maximized:number_of], names[:maximized]
    budgets = {}
    if draw(st.booleans()):
        values = sorted(totals[names[3]] for _, totals in every_choice(groups))
        middle = values[len(values) // 2]
        budgets[names[3]] = draw(st.sampled_from([(None, middle), (middle, None), (values[-1] + 1, None)]))
    return groups, tuple(minimize), tuple(maximize), budgets


@settings(max_examples=40, deadline=None, derandomize=True)
@given(instances(st.integers(-8, 8).map(lambda n: n / 4)))
def test_front_equals_exhaustive_exactly_on_exact_numbers(instance):
    groups, minimize, maximize, budgets = instance
    front = exact_front(groups, minimize=minimize, maximize=maximize, subject_to=budgets)
    expected = exhaustive_front(*instance)
    assert front.proven
    np.testing.assert_array_equal(np.unique(front.values, axis=0), expected)
    assert len(front.values) == len(expected)
    if not len(expected):
        assert (front.status, front.chosen, front.bound, front.gap) == ("infeasible", (), (), None)
        assert front.message
        return
    assert front.status == "optimal" and front.gap == 0
    ideal = np.where([name in maximize for name in front.objectives], expected.max(0), expected.min(0))
    np.testing.assert_allclose(front.bound, ideal, atol=1e-12)
    totals = {tuple(choice.items()): totals for choice, totals in every_choice(groups)}
    for choice, values in zip(front.chosen, front.values, strict=True):
        assert [totals[tuple(choice.items())][name] for name in front.objectives] == values.tolist()


near_ties = st.builds(
    lambda level, hair: level + hair,
    st.sampled_from([0, 0.25, 0.5, 1.0]),
    st.sampled_from([0, 1e-10, 1e-8, 3e-7, 1e-6, 1e-4]),
)


# Losses and costs in one table: from 1e-15 to 1e9, ties included.
decades = st.builds(
    lambda digit, exponent: digit * 10.0**exponent, st.sampled_from([0, 1, 2, 5]), st.integers(-15, 8)
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    instances(st.floats(0, 1))
    | instances(near_ties)
    | instances(decades)
    | instances(decades.map(lambda x: -x))
)
def test_front_equals_exhaustive_to_the_last_bit_on_any_numbers(instance):
    groups, minimize, maximize, budgets = instance
    front = exact_front(groups, minimize=minimize, maximize=maximize, subject_to=budgets)
    expected = exhaustive_front(*instance)
    assert front.proven and not any(front.resolution)
    np.testing.assert_array_equal(np.unique(front.values, axis=0), expected)
    if len(expected):
        ideal = np.where([name in maximize for name in front.objectives], expected.max(0), expected.min(0))
        np.testing.assert_array_equal(front.bound, ideal)


def test_losses_over_ten_decades_are_all_found():
    groups = {
        "buffer": {"loss": [1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11], "cost": [1, 2, 3, 4, 5, 6]},
        "link": {"loss": [2e-2, 3e-4, 5e-8, 1e-12], "cost": [1, 2, 4, 8]},
    }
    front = exact_front(groups, minimize=["loss", "cost"])
    np.testing.assert_array_equal(front.values, sum_front(groups, minimize=["loss", "cost"]).values)
    assert len(front.values) == 11 and front.bound == (1e-11 + 1e-12, 2.0) and front.status == "optimal"


@pytest.mark.parametrize("most", [1, 20, 40, 80])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_a_front_that_cannot_be_enumerated_says_its_resolution(monkeypatch, most, whole, shared):
    rng = np.random.default_rng(3)

    def column(*shape):
        return rng.integers(0, 20, shape).astype(float) if whole else rng.random(shape)

    if shared:
        pairs = ["uv", "vw", "uw", "wx"]
        groups = {
            f"part {pair}": Component(fields=tuple(pair), table={name: column(4, 4) for name in OBJECTIVES})
            for pair in pairs
        }
    else:
        groups = {f"g{g}": {name: column(5) for name in OBJECTIVES} for g in range(4)}
    goals = {"minimize": OBJECTIVES[:1], "maximize": OBJECTIVES[1:3]}
    budget = {"d": (None, 40.0 if whole else 2.0)}
    signs = np.array([1, -1, -1])
    complete = exhaustive_front(groups, *goals.values(), budget) * signs
    monkeypatch.setattr("optimize.programs.front.STEPS", (most,))
    front = exact_front(groups, **goals, subject_to=budget)
    assert front.status == "resolved" and not front.proven
    values, resolution = front.values * signs, np.array(front.resolution)
    if not len(values):
        assert (resolution == np.inf).all() and "that there is none is not proven" in front.message
        return
    assert nondominated(values).all() and (resolution > 0).all() and front.gap > 0
    assert (np.array(front.bound) * signs <= complete.min(axis=0)).all()
    for point in complete:
        assert (values - point <= resolution * (1 + 1e-12)).all(axis=1).any()


def test_decimal_steps_count_as_a_grid():
    rng = np.random.default_rng(5)
    groups = {f"g{g}": {name: rng.integers(0, 30, 5) / 10 for name in OBJECTIVES} for g in range(4)}
    front = exact_front(groups, minimize="a", maximize=["b", "c"])
    exact = exhaustive_front(
        {g: {n: np.round(10 * np.array(v)) for n, v in t.items()} for g, t in groups.items()},
        ("a",),
        ("b", "c"),
        {},
    )
    np.testing.assert_allclose(np.unique(front.values.round(1), axis=0), exact / 10, atol=1e-12)
    assert len(front.values) == len(exact)


def test_four_objectives():
    rng = np.random.default_rng(2)
    groups = {f"g{g}": {name: rng.integers(0, 20, 4).astype(float) for name in OBJECTIVES} for g in range(3)}
    front = exact_front(groups, minimize=OBJECTIVES)
    expected = exhaustive_front(groups, OBJECTIVES, (), {})
    np.testing.assert_array_equal(np.unique(front.values, axis=0), expected)


def test_a_time_limit_leaves_points_and_a_gap():
    rng = np.random.default_rng(7)
    groups = {}
    for g in range(20):  # no option is better in all, so that millions of sums are not
        shares = rng.dirichlet([1.0] * 3, 12)
        groups[f"g{g}"] = dict(zip(OBJECTIVES, shares.T, strict=False))
    front = exact_front(groups, minimize=OBJECTIVES[:3], time_limit=1.5)
    assert front.status == "feasible" and not front.proven and len(front.values) > 1
    assert nondominated(front.values).all()
    assert 0 < front.gap < 1
    assert (np.array(front.bound) <= front.values.min(axis=0)).all()
    none = exact_front(groups, minimize=OBJECTIVES[:3], time_limit=1e-9)
    assert (none.status, none.chosen, none.gap) == ("time limit", (), None)
    assert none.message == "the time limit came before the first solution"


def test_an_infeasible_front_says_why():
    groups = {"a": {"a": [1.0, 2.0], "b": [2.0, 1.0]}}
    front = exact_front(groups, minimize=["a", "b"], subject_to={"a": (None, 0.5)})
    assert (front.status, front.resolution, front.gap) == ("infeasible", (0, 0), None)
    assert front.message == "a <= 0.5 cannot be met: the best sum is 1, off by 0.5"
    groups["b"] = groups["a"]
    together = exact_front(groups, minimize=["a", "b"], subject_to={"a": (2.1, 2.9)})
    assert (together.status, together.message) == ("infeasible", "the budgets cannot be met together")


def test_sums_beyond_the_numbers_are_refused():
    groups = {"a": {"x": [1e308, 1.0], "y": [0.0, 1.0]}, "b": {"x": [1e308, 5e-324], "y": [0.0, 1.0]}}
    with pytest.raises(ValueError, match=r"'x' must have sums below 1\.798e\+308, got \[1e\+308, 1e\+308\]"):
        exact_front(groups, minimize=["x", "y"])


TWO = {"g": {"a": [1.0, 2.0], "b": [2.0, 1.0]}}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exact_front(TWO, minimize="a"), r"at least two objectives, got \['a'\]; see choose"),
        (
            lambda: exact_front(TWO, minimize="a", maximize="a"),
            "objective 'a' must be minimised or maximised, not both",
        ),
        (
            lambda: exact_front(TWO, minimize=["a", "bb"]),
            "group 'g' has no metric 'bb'; did you mean 'b'",
        ),
        (
            lambda: exact_front(TWO, minimize=["a", "b"], time_limit=-1),
            "time_limit must be > 0 seconds, got -1",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
