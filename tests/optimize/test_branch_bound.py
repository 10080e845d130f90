"""Branch and bound against exhaustive exploration: the same front, far fewer evaluations."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from optimize import Space, explore
from optimize.search.bounds import Directions
from optimize.search.pareto import distinct_front, dominated_by


@dataclass(frozen=True)
class Chip:
    channels: Any = 1
    width: Any = 8
    slices: Any = 0
    trials: Any = 1
    buffers: Any = 1
    policy: str = "open"


def model(chip):
    """Coupled: the memory's load depends on channels and trials, the link's on channels and width."""
    memory = 5.0 / (chip.channels * (1 + 0.1 * chip.trials))
    link = 40.0 / (chip.width * chip.channels**0.5)
    stable = (memory < 1) & (link < 1)
    wait = 20 / np.where(stable, 1 - memory, 1.0) * (0.4 + 0.6 * np.exp(-chip.slices / 3.0))
    latency = wait + 10 / np.where(stable, 1 - link, 1.0) + 2.0 * chip.trials
    overflow = np.exp(-chip.buffers / 4.0) / chip.trials
    return {
        "latency": np.where(stable, latency, np.inf)[()],
        "cost": 3.0 * chip.channels
        + chip.width * chip.channels**0.5 / 4
        + 2 * chip.slices
        + chip.buffers / 4,
        "throughput": 1 / np.maximum(memory, link) * (1 - overflow),
        "overflow": overflow,
    }


def space(**options: Any) -> Space:
    return Space(
        Chip(),
        channels=[16, 1, 2, 3, 4, 6, 8, 12],
        width=[8, 12, 16, 24, 32, 48, 64],
        slices=[0, 1, 2, 4, 8, 16],
        trials=range(1, 6),
        buffers=[1, 2, 4, 8, 16, 32],
        **options,
    )


FALLS = dict.fromkeys(["channels", "width", "slices"], "decreasing")
BOUNDS: dict[str, Any] = {
    "latency": {**FALLS, "buffers": "constant"},
    "cost": {**dict.fromkeys(["channels", "width", "slices", "buffers"], "increasing"), "trials": "constant"},
    "throughput": {
        **dict.fromkeys(["channels", "width", "trials", "buffers"], "increasing"),
        "slices": "constant",
    },
    "overflow": {
        **dict.fromkeys(["trials", "buffers"], "decreasing"),
        **dict.fromkeys(["channels", "width", "slices"], "constant"),
    },
}
GOALS: dict[str, Any] = {
    "minimize": ["latency", "cost"],
    "maximize": "throughput",
    "subject_to": {"overflow": (None, 0.05)},
    "vectorized": True,
}


def front_of(result):
    return result.table["design"][result.front]


def test_the_front_is_that_of_all_designs():
    exact = explore(space(), model, **GOALS)
    result = explore(space(), model, method="branch_and_bound", bounds=BOUNDS, **GOALS)
    assert_array_equal(front_of(result), front_of(exact))
    assert result.duplicates == exact.duplicates
    assert result.spec(result.knee) == exact.spec(exact.knee)
    proof = result.proof
    assert proof.proven and not proof.violations
    assert (
        result.evaluations
        == len(result.feasible)
        == space().size - proof.unseen
        == space().size - result.unseen
    )
    assert result.evaluations < 0.25 * space().size
    assert result.compare(exact).missed.size == 0 and result.compare(exact).hypervolume_ratio == 1
    assert "proven if the declared bounds hold" in str(result) and "designs not looked at" in str(result)


def test_a_function_bounds_boxes():
    """Bounds from the corners, as a user would write them for a model that can be bounded in closed form."""

    def latency(low, high):
        assert set(low) == set(Chip.__dataclass_fields__) - {"policy"}
        assert all((low[name] <= high[name]).all() for name in low)
        best = model(Chip(high["channels"], high["width"], high["slices"], high["trials"]))["latency"]
        return best - 2.0 * (high["trials"] - low["trials"]), np.full(len(best), np.inf)

    def throughput(low, high):
        ends = (
            model(Chip(e["channels"], e["width"], 0, e["trials"], e["buffers"]))["throughput"]
            for e in (low, high)
        )
        return tuple(ends)

    bounds = BOUNDS | {"latency": latency, "throughput": throughput}
    result = explore(space(), model, method="branch_and_bound", bounds=bounds, **GOALS)
    exact = explore(space(), model, **GOALS)
    assert_array_equal(front_of(result), front_of(exact))
    assert result.proof.proven and result.evaluations < 0.25 * space().size


def test_a_wrong_direction_is_found_given_up_and_reported():
    wrong = BOUNDS | {"latency": {**BOUNDS["latency"], "trials": "increasing"}}
    result = explore(space(), model, method="branch_and_bound", bounds=wrong, **GOALS)
    (violation,) = [v for v in result.proof.violations if v.field == "trials"]
    assert (violation.metric, violation.direction) == ("latency", "increasing")
    first, second = (space().point(design) for design in violation.designs)
    assert first["trials"] < second["trials"] and violation.values[0] > violation.values[1]
    assert {name: v for name, v in first.items() if name != "trials"} == {
        name: v for name, v in second.items() if name != "trials"
    }
    assert "contradicted: latency is declared increasing in trials, but is " in str(result)
    assert_array_equal(front_of(result), front_of(explore(space(), model, **GOALS)))


def test_constraints_conditions_words_and_fields_as_objectives():
    options: dict[str, Any] = {
        "constraints": [lambda p: p["channels"] * p["width"] <= 256],
        "conditions": {"buffers": {"trials": [2, 3]}},
    }
    goals: dict[str, Any] = GOALS | {"minimize": ["latency", "width"], "subject_to": {"cost": (10, 60)}}
    exact = explore(space(**options), model, **goals)
    result = explore(
        space(**options), model, method="branch_and_bound", bounds=BOUNDS_WITHOUT_OVERFLOW, **goals
    )
    assert_array_equal(front_of(result), front_of(exact))
    assert result.evaluations + result.unseen == space(**options).count() == len(exact.feasible)

    def worded(chip):
        return model(chip) | {"latency": model(chip)["latency"] * (1 if chip.policy == "open" else 0.9)}

    words = Space(Chip(), channels=[1, 2, 4, 8], policy=["open", "closed"], width=[8, 16, 32])
    exact = explore(words, worded, **GOALS | {"subject_to": None})
    result = explore(
        words,
        worded,
        method="branch_and_bound",
        bounds=BOUNDS_WITHOUT_OVERFLOW,
        **GOALS | {"subject_to": None},
    )
    assert_array_equal(front_of(result), front_of(exact))


BOUNDS_WITHOUT_OVERFLOW = {name: value for name, value in BOUNDS.items() if name != "overflow"}


def test_infeasible_spaces_say_by_how_much():
    goals = GOALS | {"subject_to": {"latency": (None, 1.0), "cost": (None, 20)}}
    exact = explore(space(), model, **goals)
    result = explore(space(), model, method="branch_and_bound", bounds=BOUNDS_WITHOUT_OVERFLOW, **goals)
    assert not result.front.size and result.knee is None
    assert result.excluded[0].miss == exact.excluded[0].miss  # nothing comes nearer to the impossible limit
    empty = space(constraints=[lambda p: False])
    result = explore(empty, model, method="branch_and_bound", bounds=BOUNDS, **GOALS)
    assert result.evaluations == result.unseen == 0 and result.proof.unseen == 0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_random_monotone_models_with_many_ties(data):
    """Tables of sums of random steps, so that metrics are monotone where it is declared, and ties abound."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    names = ["channels", "width", "slices", "trials"][: len(sizes)]
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    tables, bounds = {}, {}
    for metric in ("x", "y", "z"):
        table = rng.integers(0, 2, sizes).astype(float)
        bounds[metric] = {}
        for axis, name in enumerate(names):
            kind = data.draw(st.sampled_from(["increasing", "decreasing", "constant", "any"]))
            if kind == "constant":
                table = np.broadcast_to(table.max(axis=axis, keepdims=True), table.shape)
            elif kind != "any":
                table = np.cumsum(table, axis=axis)
                table = table if kind == "increasing" else np.flip(table, axis)
            if kind != "any":
                bounds[metric][name] = kind
        tables[metric] = table
    # Operations along later axes must not undo what was declared for earlier ones.
    order = {"increasing": 1, "decreasing": -1, "constant": 0}
    for metric, declared in bounds.items():
        for name, kind in list(declared.items()):
            step = np.diff(tables[metric], axis=names.index(name))
            if (order[kind] * step < 0).any() or (kind == "constant" and step.any()):
                del declared[name]
    grid = Space(Chip(), {name: range(size) for name, size in zip(names, sizes, strict=True)})

    def lookup(chip):
        at = tuple(getattr(chip, name) for name in names)
        return {metric: table[at] for metric, table in tables.items()}

    goals: dict[str, Any] = {
        "minimize": ["x"],
        "maximize": ["y"],
        "subject_to": {"z": (1, 3)},
        "vectorized": True,
    }
    exact = explore(grid, lookup, **goals)
    result = explore(grid, lookup, method="branch_and_bound", bounds=bounds, **goals)
    assert_array_equal(front_of(result), front_of(exact))
    assert result.duplicates == exact.duplicates and not result.proof.violations


def test_all_bounds_may_be_functions():
    def bound(metric, falls):
        def function(low, high):
            ends = [
                model(Chip(*(end[name] for name in ("channels", "width", "slices", "trials", "buffers"))))[
                    metric
                ]
                for end in ((high, low) if falls else (low, high))
            ]
            return ends[0] - (2.0 * (high["trials"] - low["trials"]) if metric == "latency" else 0.0), ends[1]

        return function

    bounds = {
        "latency": bound("latency", True),
        "cost": bound("cost", False),
        "throughput": bound("throughput", False),
        "overflow": bound("overflow", True),
    }
    result = explore(space(), model, method="branch_and_bound", bounds=bounds, **GOALS)
    assert_array_equal(front_of(result), front_of(explore(space(), model, **GOALS)))
    assert result.evaluations < 0.25 * space().size


def test_a_killed_search_resumes_and_workers_make_no_difference(tmp_path):
    options: dict[str, Any] = {"method": "branch_and_bound", "bounds": BOUNDS, **GOALS}
    store = {"store": tmp_path / "a.db", "identity": "m"}
    plain = explore(space(), model, **options)

    def interrupted(chip, calls=[0]):  # noqa: B006
        calls[0] += 1
        if calls[0] == 12:
            raise KeyboardInterrupt
        return model(chip)

    with pytest.raises(KeyboardInterrupt):
        explore(space(), interrupted, **store, **options)
    with ThreadPoolExecutor(2) as executor:
        resumed = explore(space(), model, executor=executor, chunk=100, **store, **options)
    assert resumed.restored > 0 and resumed.evaluations + resumed.restored == plain.evaluations
    assert_array_equal(front_of(resumed), front_of(plain))
    assert explore(space(), model, **store, **options).evaluations == 0


def test_noise_below_the_rounding_contradicts_nothing():
    def noisy(chip):
        wobble = 1 + 1e-7 * np.sin(1e4 * chip.width * chip.channels + chip.slices)
        return {name: value * wobble for name, value in model(chip).items()}

    options: dict[str, Any] = {"method": "branch_and_bound", "bounds": BOUNDS, **GOALS}
    exact = explore(space(), noisy, digits=5, **GOALS)
    result = explore(space(), noisy, digits=5, **options)
    assert_array_equal(front_of(result), front_of(exact))
    assert not result.proof.violations and exact.duplicates == result.duplicates
    assert explore(space(), noisy, **options).proof.violations


def test_evaluations_are_not_repeated_and_come_in_batches():
    seen, calls = [], []

    def counted(chip):
        calls.append(1)
        seen.extend(np.broadcast(chip.channels, chip.width, chip.slices, chip.trials, chip.buffers))
        return model(chip)

    result = explore(space(), counted, method="branch_and_bound", bounds=BOUNDS, **GOALS)
    assert len(seen) == len(set(seen)) == result.evaluations and len(calls) < 150


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bounds": None}, "bounds belongs to the method branch_and_bound and is required there, got None"),
        ({"bounds": "learn"}, "bounds must map metrics to what is known of them, got 'learn'"),
        (
            {"method": "greedy"},
            "bounds belongs to the method branch_and_bound and is required there, got {'lat",
        ),
        (
            {"bounds": {"latency": {}}},
            "bounds must say how 'cost' moves: {field: direction} or a function",
        ),
        (
            {"bounds": BOUNDS | {"costs": {}}},
            "no metric 'costs'; did you mean 'cost'",
        ),
        (
            {"bounds": BOUNDS | {"cost": {"widht": "constant"}}},
            "Chip has no field 'widht'; did you mean 'width'",
        ),
        (
            {"bounds": BOUNDS | {"cost": {"width": "up"}}},
            r"bounds\['cost'\]\['width'\] must be one of increasing",
        ),
        (
            {"bounds": BOUNDS | {"cost": "guess"}},
            r"bounds\['cost'\] must be {field: direction} or a function, got",
        ),
        ({"order": ["width"]}, "order, weights, restarts and coordinate belong to the method greedy"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        explore(space(), model, **{"method": "branch_and_bound", "bounds": BOUNDS, **GOALS, **arguments})


def test_too_many_fields_without_a_direction_are_refused():
    free = Space(Chip(), channels=range(1, 300), width=range(1, 300), slices=range(1, 300))
    bounds: dict[str, Any] = {metric: {} for metric in BOUNDS}
    with pytest.raises(
        ValueError, match="no direction or are read by constraints, got 26730899 of channels, width, slices"
    ):
        explore(free, model, method="branch_and_bound", bounds=bounds, **GOALS)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda low, high: (low["width"] * np.nan, 1), r"bounds\['x'\] must return low <= high, got .*nan"),
        (lambda low, high: (2, 1), r"bounds\['x'\] must return low <= high, got .*2.0"),
        (
            lambda low, high: (low["width"] + 1, high["width"] + 1),
            r"bounds\['x'\] must bound the metric, got 9 to 9 where it is 8: design 0 \(width=8\)",
        ),
    ],
)
def test_functions_that_bound_nothing_are_refused(function, message):
    with pytest.raises(ValueError, match=message):
        explore(
            Space(Chip(), width=[8, 16]),
            lambda chip: {"x": 1.0 * chip.width},
            method="branch_and_bound",
            minimize="x",
            bounds={"x": function},
            vectorized=True,
        )


def test_a_word_is_no_objective():
    with pytest.raises(ValueError, match="objective 'kind' must be a number, got 'slow'"):
        explore(
            Space(Chip(), width=[8, 16]),
            lambda chip: {"kind": np.where(chip.width > 9, "fast", "slow")},
            method="branch_and_bound",
            minimize="kind",
            bounds={"kind": {"width": "increasing"}},
            vectorized=True,
        )


def test_directions_check_every_pair_on_a_line():
    grid = Space(Chip(), channels=[4, 1, 2], width=[8, 16])
    directions = Directions(grid, ["x"], {"x": {"channels": "increasing", "width": "constant"}})
    designs = np.array([0, 1, 2, 3, 5])  # channels 4 4 1 1 2, width 8 16 8 16 16
    good = {"x": np.array([3.0, 3.0, 1.0, 1.0, 2.0])}
    assert directions.violations(designs, good) == ([], 5)  # 1-4, 1-2 and 2-4 channels, two pairs of widths
    wrong = {"x": np.array([3.0, 3.0, 1.0, 5.0, 2.0])}
    found, _ = directions.violations(designs, wrong)
    assert [(v.field, v.designs, v.values) for v in found] == [
        ("channels", (3, 5), (5, 2)),
        ("width", (2, 3), (1, 5)),
    ]
    infinite = {"x": np.array([np.inf, np.inf, np.inf, np.inf, 2.0])}
    assert [v.designs for v in directions.violations(designs, infinite)[0]] == [(3, 5)]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=40),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=40),
)
def test_dominance_is_its_definition(points, others):
    mine = np.array(points, dtype=float).reshape(-1, 3)
    theirs = np.array(others, dtype=float).reshape(-1, 3)
    front = distinct_front(theirs)
    assert {tuple(row) for row in front} == {
        tuple(o) for o in theirs if not any((q <= o).all() and (q < o).any() for q in theirs)
    }
    expected = [any((o <= p).all() and (o < p).any() for o in theirs) for p in mine]
    assert dominated_by(mine, front).tolist() == expected


def test_dominance_by_a_front_of_several_blocks(monkeypatch):
    rng = np.random.default_rng(4)
    front = distinct_front(rng.random((3000, 4)))
    points = np.concatenate(
        [rng.random((500, 4)), front[::7], front[::5] + 1e-9, [[np.inf] * 4, [-np.inf] * 4]]
    )
    expected = [bool(((front <= p).all(axis=1) & (front < p).any(axis=1)).any()) for p in points]
    assert dominated_by(points, front).tolist() == expected
    monkeypatch.setattr("optimize.search.pareto.BLOCK", 100)
    assert dominated_by(points, front).tolist() == expected
    assert dominated_by(np.array([[-0.0, 0.0]]), np.array([[0.0, 0.0]])).tolist() == [False]
