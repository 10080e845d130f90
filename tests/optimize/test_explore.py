from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from optimize import Space, explore


@dataclass(frozen=True)
class Memory:
    channels: Any = 2
    policy: str = "open"


@dataclass(frozen=True)
class Chip:
    memory: Memory = Memory()
    width: Any = 16
    trials: Any = 1


LOAD = 20.0


def solve(chip):
    """A queue whose capacity grows with channels and width; too few of them saturate it."""
    capacity = chip.memory.channels * chip.width * (1 - 0.3 / chip.trials)
    slack = capacity - LOAD
    stable = slack > 0
    penalty = 5.0 if chip.memory.policy == "open" else 2.0 * chip.trials
    return {
        "latency": np.where(stable, 100 / np.where(stable, slack, 1.0) + penalty, np.inf)[()],
        "cost": 3.0 * chip.memory.channels + chip.width / 4,
        "throughput": np.minimum(capacity, LOAD),
        "overflow": 0.01 / chip.trials**3,
        "bottleneck": np.where(chip.memory.channels > chip.width / 4, "link", "memory")[()],
    }


def grid() -> Space:
    return Space(
        Chip(), channels=[1, 2, 4, 8], policy=["open", "closed"], width=[4, 8, 16], trials=range(1, 4)
    )


GOALS: dict[str, Any] = {
    "minimize": ["latency", "cost"],
    "maximize": "throughput",
    "subject_to": {"overflow": (0, 2e-3)},
}


def assert_same(a, b):
    assert list(a.table) == list(b.table)
    for name in a.table:
        assert_array_equal(a.table[name], b.table[name])
    assert_array_equal(a.front, b.front)
    assert_array_equal(a.feasible, b.feasible)
    assert (a.knee, a.duplicates, a.excluded) == (b.knee, b.duplicates, b.excluded)


def test_the_table_is_tidy_and_complete():
    space = grid()
    result = explore(space, solve, **GOALS)
    assert list(result.table) == [
        *("design", "channels", "policy", "width", "trials"),
        *("latency", "cost", "throughput", "overflow", "bottleneck"),
    ]
    assert result.table["design"].tolist() == list(range(72))
    for row in (0, 17, 71):
        expected = {**space.point(row), **solve(space.spec(row))}
        assert {name: column[row] for name, column in result.table.items() if name != "design"} == expected
        assert result.spec(row) == space.spec(row)
    assert (result.evaluations, result.restored, result.history, result.method) == (72, 0, (), "exhaustive")


def test_its_picture_is_shown_at_once_and_marks_the_front():
    result = explore(grid(), solve, **GOALS)
    axes = result.plot()
    assert axes._repr_png_().startswith(b"\x89PNG")
    front = next(dots for dots in axes.collections if dots.get_label() == "front")
    drawn = {tuple(map(float, pair)) for pair in front.get_offsets()}
    assert drawn == {(result.table["latency"][row], result.table["cost"][row]) for row in result.front}
    assert axes.texts[0].get_text() == f"knee: design {result.table['design'][result.knee]}"


def test_the_front_is_the_definition():
    result = explore(grid(), solve, **GOALS)
    goals = np.stack([result.table["latency"], result.table["cost"], -result.table["throughput"]], axis=1)
    feasible = (result.table["overflow"] <= 2e-3) & (result.table["overflow"] >= 0)
    feasible &= np.isfinite(result.table["latency"])
    assert_array_equal(result.feasible, feasible)
    expected = [
        row
        for row in np.flatnonzero(feasible)
        if np.isfinite(goals[row]).all()
        and not any(
            (goals[k] <= goals[row]).all() and (goals[k] != goals[row]).any()
            for k in np.flatnonzero(feasible)
        )
    ]
    assert result.front.tolist() == expected
    assert result.knee in result.front
    distinct = {tuple(goals[row]) for row in result.front}
    assert result.duplicates == len(result.front) - len(distinct)
    assert_array_equal(result.values, goals * [1, 1, -1])
    assert result.objectives == ("latency", "cost", "throughput") and result.maximized == (False, False, True)


@pytest.mark.parametrize("vectorized", [True, ["channels", "width"], ["trials"], []])
@pytest.mark.parametrize("chunk", [None, 1, 5])
def test_arrays_give_the_same_answer(vectorized, chunk):
    calls = []

    def counted(chip):
        calls.append(chip)
        return solve(chip)

    result = explore(grid(), counted, vectorized=vectorized, chunk=chunk, **GOALS)
    assert_same(result, explore(grid(), solve, **GOALS))
    groups = {True: 2, ("channels", "width"): 6, ("trials",): 24, (): 72}
    if chunk is None:
        assert len(calls) == groups[vectorized if vectorized is True else tuple(vectorized)]


def test_more_tasks_than_are_in_flight(monkeypatch):
    monkeypatch.setattr("optimize.spaces.running.IN_FLIGHT", 3)
    with ThreadPoolExecutor(2) as executor:
        result = explore(grid(), solve, executor=executor, chunk=1, **GOALS)
    assert_same(result, explore(grid(), solve, **GOALS))


def test_some_designs_only():
    full = explore(grid(), solve, **GOALS)
    again = explore(grid(), solve, designs=full.table["design"][full.front][::-1], **GOALS)
    assert again.table["design"].tolist() == full.table["design"][full.front].tolist()
    assert len(again.front) == len(full.front) == again.evaluations
    assert again.spec(again.knee) == full.spec(full.knee)
    assert explore(grid(), solve, designs=[3, 3], **GOALS).evaluations == 1


def test_saturated_designs_stay_in_the_table_and_off_the_front():
    result = explore(grid(), solve, **GOALS)
    saturated = np.isinf(result.table["latency"])
    assert saturated.any() and not saturated[result.front].any()
    everything = explore(Space(Chip(), width=[1, 2]), solve, minimize=["latency", "cost"])
    assert np.isinf(everything.table["latency"]).all()
    assert not everything.feasible.any() and everything.front.tolist() == [] and everything.knee is None
    assert "2 of 2 designs (2 evaluated, 0 restored), 2 distinct, 0 feasible" in str(everything)
    assert (
        "nothing is feasible: latency < inf alone excludes all; all designs are infinitely far from it"
        "\nlatency < inf excludes 2 designs (full first: link in 2); all miss it by an infinite amount"
    ) in str(everything)


def loaded(chip):
    """The queue as a model that says whether it keeps up, what fills up, and how far."""
    capacity = chip.memory.channels * chip.width * (1 - 0.3 / chip.trials)
    return {**solve(chip), "stable": capacity > LOAD, "bottleneck_load": LOAD / capacity}


def test_what_does_not_keep_up_is_not_feasible_and_its_resource_is_named():
    """With objectives that stay finite in an overloaded design, it would be on the front: it is cheapest."""
    goals = {"minimize": "cost", "maximize": "throughput"}
    result = explore(grid(), loaded, vectorized=True, **goals)
    full = ~result.table["stable"]
    assert 0 < full.sum() < len(full)
    assert_array_equal(result.feasible, ~full)
    assert result.table["stable"][result.front].all()
    excluded = result.excluded[0]
    loads = np.where(full, result.table["bottleneck_load"], np.inf)
    assert (excluded.constraint, excluded.designs, excluded.nearest) == ("stable", full.sum(), loads.argmin())
    assert (excluded.value, excluded.miss) == (loads.min(), pytest.approx(loads.min() - 1))
    counts = {word: int((result.table["bottleneck"][full] == word).sum()) for word in ("link", "memory")}
    first, other = sorted(counts, key=lambda word: -counts[word])
    assert (
        f"stable excludes {full.sum()} designs (full first: {first} in {counts[first]}, {other} in"
        f" {counts[other]}); the nearest is design {loads.argmin()} with a load of {loads.min():.4g}, off by"
    ) in str(result)
    admitted = explore(grid(), loaded, vectorized=True, subject_to={"stable": (None, None)}, **goals)
    assert admitted.feasible.all() and not admitted.table["stable"][admitted.front].all()
    assert admitted.table["cost"][admitted.front].min() < result.table["cost"][result.front].min()


def test_every_method_agrees_on_what_keeps_up():
    bounds = {"cost": dict.fromkeys(("channels", "width"), "increasing") | {"policy": "constant"}}
    bounds["throughput"] = dict.fromkeys(("channels", "width", "trials"), "increasing")
    goals = {"minimize": "cost", "maximize": "throughput"}
    for limits in ({}, {"stable": (None, None)}, {"stable": (1, None)}):
        exact = explore(grid(), loaded, subject_to=limits, **goals)
        bounded = explore(grid(), loaded, subject_to=limits, method="milp",
                          bounds={**bounds, "stable": {}}, **goals)  # fmt: skip
        fronts = [np.unique(found.values[found.front], axis=0) for found in (exact, bounded)]
        np.testing.assert_array_equal(*fronts)
        for coordinate in (False, True):
            found = explore(
                grid(), loaded, subject_to=limits, method="greedy", coordinate=coordinate, **goals
            )
            assert found.table["stable"][found.front].all() or "stable" in limits


def test_nothing_feasible_is_nearest_at_the_least_load():
    """Every latency misses its limit by infinity: the load says which design is nearest, not its number."""
    space = Space(Chip(), channels=[1, 2], width=[4, 8], trials=[3, 1])
    result = explore(space, loaded, minimize="cost", subject_to={"latency": (None, 50)})
    assert not result.table["stable"].any() and not result.feasible.any()
    assert result.closest == int(result.table["bottleneck_load"].argmin()) != 0
    stable, latency = result.excluded
    assert (stable.nearest, stable.value) == (result.closest, result.table["bottleneck_load"].min())
    assert (latency.nearest, latency.value, latency.miss) == (None, None, np.inf)
    text = str(result)
    assert "latency <= 50 excludes 8 designs; all miss it by an infinite amount" in text
    assert f"the least violation is at {space.label(result.closest)}" in text
    assert "inf," not in text


def test_an_infeasible_exploration_says_what_excludes_and_by_how_much():
    result = explore(
        grid(), solve, minimize="cost", subject_to={"latency": (None, 2), "throughput": (25, 30)}
    )
    assert not result.feasible.any() and result.front.tolist() == [] and result.knee is None
    latency, low, high = result.excluded
    best = int(result.table["latency"].argmin())
    assert (latency.constraint, latency.designs, latency.nearest) == ("latency <= 2", 72, best)
    assert latency.value == result.table["latency"][best] and latency.miss == latency.value - 2
    assert (low.constraint, low.designs, low.value, low.miss) == ("throughput >= 25", 72, 20, 5)
    assert low.nearest == int((result.table["throughput"] == 20).argmax())
    assert (high.constraint, high.designs, high.nearest, high.miss) == ("throughput <= 30", 0, None, None)
    assert (
        f"throughput >= 25 excludes 72 designs; the nearest is design {low.nearest} with 20, off by 5"
        in str(result)
    )
    assert "throughput <= 30" not in str(result)
    miss = (result.table["latency"] - 2) / 2 + (25 - result.table["throughput"]) / 25
    assert result.closest == int(miss.argmin())
    label = result.space.label(result.closest)
    assert (
        "nothing is feasible: latency <= 2 alone excludes all and throughput >= 25 alone excludes all;"
        f" the least violation is at {label}"
    ) in str(result)
    together = explore(grid(), solve, minimize="cost", subject_to={"latency": (None, 8), "cost": (None, 4)})
    assert "nothing is feasible: no constraint alone excludes all; the least violation is at" in str(together)
    assert explore(grid(), solve, **GOALS).closest is None


def test_limits_are_inclusive_and_open():
    space = Space(Chip(), width=[1, 2, 3])
    for limits, expected in {
        (2, 2): [1],
        (None, 2): [0, 1],
        (2, None): [1, 2],
        (None, None): [0, 1, 2],
    }.items():
        result = explore(space, lambda chip: {"x": chip.width}, minimize="x", subject_to={"x": limits})
        assert np.flatnonzero(result.feasible).tolist() == expected
    result = explore(space, lambda chip: {"x": np.inf}, minimize="width", subject_to={"x": (0, 1)})
    assert result.excluded[1].miss == np.inf and result.excluded[1].nearest is None
    assert str(result.excluded[1]) == "x <= 1 excludes 3 designs; all miss it by an infinite amount"


def test_constraints_of_the_space_cost_no_evaluation_and_are_reported():
    def affordable(point):
        return point["channels"] * point["width"] <= 16

    space = Space(Chip(), channels=[1, 2, 4], width=[4, 8, 16], constraints=[affordable])
    result = explore(space, solve, minimize="latency")
    assert result.evaluations == 6 and str(result.excluded[0]) == "affordable excludes 3 designs"
    assert (result.table["channels"] * result.table["width"] <= 16).all()
    nothing = Space(Chip(), width=[4, 8], constraints=[lambda point: False])
    for method in ("exhaustive", "greedy"):
        empty = explore(nothing, solve, minimize="latency", maximize="throughput", method=method)
        assert empty.evaluations == 0 and empty.front.size == 0 and empty.knee is None
        assert empty.values.shape == (0, 2)


def test_progress_counts_designs():
    seen = []
    explore(grid(), solve, vectorized=True, progress=lambda done, total: seen.append((done, total)), **GOALS)
    assert seen == [(0, 72), (36, 72), (72, 72)]


def test_a_summary_for_people():
    found = explore(grid(), solve, **GOALS)
    first, knee, saturated, excluded = str(found).splitlines()
    metrics = [column for name, column in found.table.items() if name not in ("design", *found.space.choices)]
    rows = {tuple(row) for row in zip(*(column.tolist() for column in metrics), strict=True)}
    assert found.distinct_designs == len(rows) < 72
    assert first.startswith(
        f"exhaustive: 72 of 72 designs (72 evaluated, 0 restored), {len(rows)} distinct, 24 feasible, "
    )
    assert saturated.startswith("latency < inf excludes 36 designs (full first: ")
    assert knee.startswith("knee: design ") and "latency=" in knee and "policy='" in knee
    assert (
        excluded == "overflow <= 0.002 excludes 24 designs; the nearest is design 0 with 0.01, off by 0.008"
    )


def test_a_table_for_pandas():
    pandas = pytest.importorskip("pandas")
    result = explore(grid(), solve, **GOALS)
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == list(result.table)
    assert frame.loc[result.knee, "latency"] == result.table["latency"][result.knee]


def test_other_methods_need_every_answer_and_say_which_design_has_none():
    def nan(chip):
        return {"latency": np.nan if (chip.width, chip.trials) == (8, 2) else 1.0, "cost": 1.0}

    with pytest.raises(ValueError) as caught:
        explore(
            Space(Chip(), width=[4, 8], trials=[1, 2]),
            nan,
            minimize="cost",
            method="greedy",
            coordinate=True,
            restarts=4,
        )
    assert str(caught.value) == "evaluate returned NaN for 'latency' at design 3 (width=8, trials=2)"

    def broken(chip):
        return {"latency": 1 / (chip.width - 8)}

    with pytest.raises(ZeroDivisionError) as caught:
        explore(Space(Chip(), width=[4, 8, 16]), broken, minimize="latency", method="greedy")
    assert caught.value.__notes__ == ["while evaluating design 1 (width=8)"]


def test_names_of_metrics_are_checked_on_the_first_result():
    calls = []

    def counted(chip):
        calls.append(chip)
        return solve(chip)

    with pytest.raises(ValueError, match="no metric 'latancy'; did you mean 'latency'"):
        explore(grid(), counted, minimize="latancy")
    with pytest.raises(ValueError, match="no metric 'over_flow'; did you mean 'overflow'"):
        explore(grid(), counted, minimize="latency", subject_to={"over_flow": (0, 1)})
    assert len(calls) == 2
    with pytest.raises(ValueError, match="objective 'bottleneck' must be a number, got"):
        explore(grid(), solve, minimize="bottleneck")
    for name in ("width", "design"):
        with pytest.raises(ValueError, match=f"metric '{name}' has the name of a column that is no metric"):
            explore(Space(Chip(), width=[1]), lambda chip, name=name: {name: 1}, minimize="width")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "explore needs at least one objective in minimize or maximize"),
        ({"minimize": "a", "maximize": ["a"]}, "objective 'a' must be minimised or maximised, not both"),
        ({"minimize": ["a", "a"]}, "minimize must name a metric once, got 'a' twice"),
        ({"maximize": [3]}, "maximize must be names of metrics, got 3"),
        (
            {"minimize": "a", "method": "gredy"},
            "method must be one of exhaustive, greedy, milp, got 'gredy'",
        ),
        ({"minimize": "a", "chunk": 0}, "chunk must be a whole number >= 1, got 0"),
        ({"minimize": "a", "digits": 0}, "digits must be a whole number >= 1, got 0"),
        (
            {"minimize": "a", "restarts": -1, "method": "greedy"},
            "restarts must be a whole number >= 0, got -1",
        ),
        (
            {"minimize": "a", "restarts": 1},
            "order, weights, restarts and coordinate belong to the method greedy",
        ),
        (
            {"minimize": "a", "coordinate": True},
            "order, weights, restarts and coordinate belong to the method greedy",
        ),
        (
            {"minimize": "a", "method": "coordinate"},
            "method 'coordinate' is now method='greedy' with coordinate=True",
        ),
        (
            {"minimize": "a", "order": ["width"]},
            "order, weights, restarts and coordinate belong to the method greedy",
        ),
        (
            {"minimize": "a", "weights": [[1]]},
            "order, weights, restarts and coordinate belong to the method greedy",
        ),
        (
            {"minimize": "a", "method": "greedy", "designs": [1]},
            "designs belongs to the method exhaustive, got method",
        ),
        (
            {"minimize": "a", "subject_to": {"a": (1, float("nan"))}},
            r"subject_to\['a'\] must have low <= high, got",
        ),
        (
            {"minimize": "a", "subject_to": {"a": (1, 2, 3)}},
            r"subject_to\['a'\] must be a pair \(low, high\), got",
        ),
        (
            {"minimize": "a", "subject_to": {"a": ("x", 2)}},
            r"subject_to\['a'\] must be a pair \(low, high\), got",
        ),
        (
            {"minimize": "a", "vectorized": ["widht"]},
            "vectorized must name numeric fields of the space, got 'widht'",
        ),
        (
            {"minimize": "a", "vectorized": ["policy"]},
            "vectorized must name numeric fields of the space, got 'policy'",
        ),
        ({"minimize": "a", "designs": [72]}, "designs must be numbers from 0 to 71, got 72"),
        (
            {"minimize": "a", "store": "x.db"},
            "identity must be a text that names the model of a store, got ''",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        explore(grid(), lambda chip: {"a": 1.0}, **arguments)
    assert not list(tmp_path.iterdir())


def test_space_and_model_are_checked():
    with pytest.raises(ValueError, match="space must be a Space, got Chip"):
        explore(Chip(), solve, minimize="latency")
    with pytest.raises(ValueError, match="evaluate must be a callable on a spec, got 'solve'"):
        explore(grid(), "solve", minimize="latency")


@given(
    values=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=20),
    limit=st.integers(0, 4),
)
def test_no_design_beats_the_front(values, limit):
    space = Space(Chip(), width=range(len(values)))
    result = explore(
        space,
        lambda chip: {"a": values[chip.width][0], "b": values[chip.width][1]},
        minimize="a",
        maximize="b",
        subject_to={"a": (None, limit)},
    )
    front = {values[row] for row in result.front}
    for a, b in values:
        if a <= limit:
            assert any(x <= a and y >= b for x, y in front)
    assert all(not (x <= a and y >= b and (x, y) != (a, b)) for x, y in front for a, b in front)


def test_explorations_are_compared_and_say_what_they_did_not_see():
    exact = explore(grid(), solve, **GOALS)
    found = explore(grid(), solve, method="greedy", weights=[(1, 1, 1)], **GOALS)
    assert found.unseen == 72 - len(found.feasible) > 0 and exact.unseen == 0
    comparison = found.compare(exact)
    have = {tuple(row) for row in found.values[found.front]}
    assert [tuple(row) not in have for row in exact.values[exact.front]] == [
        k in comparison.missed for k in range(len(exact.front))
    ]
    with pytest.raises(ValueError, match=r"explorations must have the same objectives, got \('latency',"):
        found.compare(explore(grid(), solve, minimize="cost"))


def test_restarts_look_further():
    options: dict[str, Any] = {"method": "greedy", "coordinate": True, "weights": [(1, 1, 1)], **GOALS}
    once = explore(grid(), solve, **options)
    more = explore(grid(), solve, restarts=3, seed=5, **options)
    assert {step.start for step in once.history} == {0} and {step.start for step in more.history} == {
        0,
        1,
        2,
        3,
    }
    assert [step for step in more.history if step.start == 0] != []
    assert set(once.table["design"]) <= set(more.table["design"])
    again = explore(grid(), solve, restarts=3, seed=5, **options)
    assert again.table["design"].tolist() == more.table["design"].tolist()
    other = explore(grid(), solve, restarts=3, seed=6, **options)
    firsts = [[s.design for s in r.history if s.field is None] for r in (more, other)]
    assert firsts[0] != firsts[1]


def test_rounding_makes_ties_of_what_a_solver_cannot_tell_apart():
    def noisy(chip):
        return {"x": 1.0 + 1e-9 * chip.width, "y": 1234.5 * chip.trials, "free": 1.23456}

    space = Space(Chip(), width=[4, 8, 16], trials=[1, 2])
    assert len(explore(space, noisy, minimize=["x", "y"]).front) == 1
    rounded = explore(space, noisy, minimize=["x", "y"], digits=4)
    assert rounded.front.tolist() == [0, 2, 4] and rounded.duplicates == 2
    assert rounded.table["y"][0] == 1234.5  # the table has what the model said
