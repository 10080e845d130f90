"""The exact method against exhaustive exploration: the same points, few designs solved."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from optimize import Space, explore, hypervolume
from optimize.spaces.evaluation import significant


@dataclass(frozen=True)
class Inner:
    width: Any = 1


@dataclass(frozen=True)
class Chip:
    step: Any = 0
    channels: Any = 1
    buffers: Any = 1
    policy: str = "open"
    link: Inner = field(default_factory=Inner)


def model(chip: Chip) -> dict[str, Any]:
    """Any way with the step; more channels and width are faster and cost more; buffers only lose less."""
    load = 4.0 / (chip.channels * (1.0 + (chip.policy == "open")))
    stable = load < 1
    wait = (3.0 + np.sin(2.0 * chip.step)) / np.where(stable, 1.0 - load, 1.0)
    return {
        "latency": np.where(stable, wait + 24.0 / chip.link.width, np.inf)[()],
        "cost": 2.0 * chip.channels + chip.link.width + 0.1 * chip.buffers,
        "loss": np.exp(-chip.buffers / 3.0) * load + 0 * chip.link.width,
        "stable": stable & (chip.link.width > 0),
    }


CHOICES: dict[str, Any] = {
    "step": range(6),
    "channels": [8, 1, 2, 3, 4, 6],
    "buffers": [1, 2, 4, 8, 16, 32],
    "policy": ["open", "closed"],
    "link.width": [8, 16, 4, 32],
}
DECLARED: dict[str, Any] = {
    "latency": {"channels": "decreasing", "width": "decreasing", "buffers": "constant"},
    "cost": {"step": "constant", "policy": "constant"}
    | dict.fromkeys(["channels", "width", "buffers"], "increasing"),
    "loss": {"channels": "decreasing", "buffers": "decreasing", "width": "constant", "step": "constant"},
}
LATENCY_AND_COST: dict[str, Any] = {"minimize": ["latency", "cost"], "vectorized": True}


def space(**options: Any) -> Space:
    return Space(Chip(), CHOICES, **options)


def ends(low: Chip, high: Chip, factor: float = 0.9) -> dict[str, Any]:
    """Bounds that hold but are not tight: the corners' values, less a tenth."""
    best, worst = model(high), model(low)
    none = np.zeros(np.broadcast_shapes(*(np.shape(value) for value in best.values())))
    return {
        "latency": (factor * best["latency"] + none, none + np.inf),
        "cost": (worst["cost"] + none, best["cost"] + none),
        "loss": (best["loss"] + none, none + np.inf),
        "stable": (none, best["stable"] + none),
    }


def derived(**changes: Any) -> Any:
    known: dict[str, Any] = {
        "derived": ("latency", "cost", "loss"),
        "spans": ("channels", "buffers", "link.width"),
        "early": (),
        "idle": {"latency": ("buffers",)},
        "stages": (lambda low, high: ends(low, high, 0.5), ends),
        "assumes": "stable designs",
    }
    return SimpleNamespace(**known | changes)


def proven(grid: Space, of: Any, **options: Any) -> Any:
    """Run the exact method, check it against all designs, and return what it found."""
    found = explore(grid, of, method="milp", **options)
    goals = {k: v for k, v in options.items() if k not in ("bounds", "seed", "store", "identity", "executor")}
    exact = explore(grid, of, **goals)
    every, own = (
        np.unique(each.values[each.front], axis=0) if options.get("digits") is None
        else np.unique(significant(each.values[each.front], options["digits"]), axis=0)
        for each in (exact, found)
    )  # fmt: skip
    np.testing.assert_allclose(own, every, rtol=1e-9)
    assert found.proof is not None and found.proof.proven and found.gap == 0.0
    assert found.evaluations + found.restored + found.unseen == grid.count()
    if len(every):
        best = np.where(found.maximized, every.max(axis=0), every.min(axis=0))
        np.testing.assert_allclose(found.bound, best, rtol=1e-9 if options.get("digits") is None else 0.06)
    return found


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("known", ["derived", "declared", "nothing"])
@given(
    limits=st.fixed_dictionaries(
        {}, optional={"loss": st.sampled_from([0.5, 0.05, 1e-6]), "link.width": st.sampled_from([8, 2])}
    ),
    digits=st.sampled_from([None, 2, 3]),
    objectives=st.sampled_from([["latency"], ["cost"], ["latency", "cost"], ["latency", "cost", "loss"]]),
    seed=st.integers(0, 100),
)
@settings(max_examples=5)
def test_the_points_are_those_of_all_designs(
    known: str, limits: Any, digits: Any, objectives: Any, seed: int
) -> None:
    bounds = {"derived": derived(), "declared": DECLARED, "nothing": None}[known]
    subject_to = {name: (None, most) for name, most in limits.items()}
    options: dict[str, Any] = {"minimize": objectives, "digits": digits, "seed": seed, "vectorized": True}
    found = proven(space(), model, bounds=bounds, subject_to=subject_to, **options)
    if known != "nothing" and len(objectives) < 3:
        assert found.evaluations < (0.3 if known == "derived" else 0.6) * space().size


@given(st.data())
def test_random_monotone_models_with_many_ties(data: Any) -> None:
    """Sums of random steps along the fields, so that metrics move as declared, and ties abound."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    names = ["step", "channels", "buffers", "link.width"][: len(sizes)]
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    kinds: dict[str, Any] = {"increasing": 1, "decreasing": -1, "constant": 0}
    tables, bounds = {}, {}
    for metric in ("x", "y", "z"):
        table = rng.integers(0, 2, sizes).astype(float)
        for axis in range(len(names)):
            kind = data.draw(st.sampled_from([*kinds, "any"]))
            if kind == "constant":
                table = np.broadcast_to(table.max(axis=axis, keepdims=True), table.shape)
            elif kind != "any":
                table = np.cumsum(table, axis=axis)
                table = table if kind == "increasing" else np.flip(table, axis)
        steps = {name: np.diff(table, axis=axis) for axis, name in enumerate(names)}
        bounds[metric] = {
            name: next(
                k for k, sign in kinds.items() if (sign * step if sign else -abs(step)).min(initial=0) >= 0
            )
            for name, step in steps.items()
            if (step >= 0).all() or (step <= 0).all()
        }
        tables[metric] = table
    grid = Space(Chip(), {name: range(size) for name, size in zip(names, sizes, strict=True)})

    def lookup(chip: Chip) -> dict[str, Any]:
        at = (chip.step, chip.channels, chip.buffers, chip.link.width)[: len(sizes)]
        return {metric: table[at] for metric, table in tables.items()}

    options: dict[str, Any] = {
        "minimize": "x",
        "maximize": "y",
        "subject_to": {"z": (1, 3)},
        "vectorized": True,
    }
    found = proven(grid, lookup, bounds=bounds, **options)
    assert not found.proof.contradicted


def catalogue(seed: int, options: int, pairs: bool) -> tuple[Space, Any]:
    """Return four parts with some options each and a model that adds theirs up, and what two parts share."""
    rng = np.random.default_rng(seed)
    tables = {name: rng.integers(1, 99, (4, options)).astype(float) for name in ("latency", "cost", "power")}
    shared = rng.integers(0, 9, (options, options)) * float(pairs)

    def added(chip: Chip) -> dict[str, Any]:
        rows = (chip.step, chip.channels, chip.buffers, chip.link.width)
        sums = {
            name: sum(one[row] for one, row in zip(table, rows, strict=True))
            for name, table in tables.items()
        }
        return sums | {"cost": sums["cost"] + shared[chip.step, chip.buffers]}

    return Space(Chip(), dict.fromkeys(["step", "channels", "buffers", "link.width"], range(options))), added


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    pairs=st.booleans(),
    objectives=st.sampled_from([["latency"], ["latency", "power"], ["latency", "power", "cost"]]),
    rule=st.booleans(),
    budget=st.integers(60, 300),
)
def test_sums_over_parts_are_rows_of_the_program(
    seed: int, pairs: bool, objectives: Any, rule: bool, budget: int
) -> None:
    grid, added = catalogue(seed, 5, pairs)
    if rule:  # either the first option of one part, or not the last of another

        def either(point: Any) -> bool:
            return point["step"] == 0 or point["buffers"] < 4

        grid = Space(
            Chip(), grid.choices, constraints=[either], conditions={"link.width": {"channels": [0, 1, 2]}}
        )
    limits = {"cost": (None, budget), "power": (40, None)}
    found = proven(grid, added, minimize=objectives, subject_to=limits, vectorized=True)
    if not rule:
        assert set(found.proof.sums) == {"latency", "cost", "power"} and not found.proof.contradicted


def test_a_budget_over_three_parts_where_greedy_stops_short() -> None:
    grid, added = catalogue(7, 9, False)
    goals: dict[str, Any] = {"minimize": "latency", "subject_to": {"cost": (None, 110), "power": (None, 150)}}
    found = proven(grid, added, vectorized=True, **goals)
    greedy = explore(grid, added, method="greedy", **goals)
    assert found.evaluations < 0.02 * grid.size
    assert not len(greedy.front) or greedy.values[greedy.front[0], 0] > 1.05 * found.values[found.front[0], 0]


def test_a_sum_that_holds_almost_everywhere_is_given_up() -> None:
    grid, added = catalogue(3, 8, False)
    least = min(added(grid.spec(design))["cost"] for design in grid.designs().tolist())

    def wrong(chip: Chip) -> dict[str, Any]:
        cost = added(chip)["cost"]
        return {"cost": np.where(cost < least + 12, cost + 500.0, cost)[()]}

    found = proven(grid, wrong, minimize="cost", vectorized=True)
    assert not found.proof.sums and "cost is no sum of choices at design" in found.proof.contradicted[0]


def test_a_wrong_direction_is_given_up_and_reported() -> None:
    wrong = DECLARED | {"loss": DECLARED["loss"] | {"policy": "increasing", "channels": "increasing"}}
    found = proven(space(), model, bounds=wrong, minimize=["latency", "loss"], vectorized=True)
    assert "contradicted: loss is declared increasing in channels, but is " in str(found)


def test_noise_below_the_rounding_contradicts_nothing() -> None:
    def noisy(chip: Chip) -> dict[str, Any]:
        wobble = 1 + 1e-7 * np.sin(1e4 * chip.link.width * chip.channels + chip.buffers)
        return {name: value * wobble if name != "stable" else value for name, value in model(chip).items()}

    options: dict[str, Any] = {"bounds": DECLARED, **LATENCY_AND_COST}
    assert not proven(space(), noisy, digits=5, **options).proof.contradicted
    assert explore(space(), noisy, method="milp", **options).proof.contradicted


@pytest.mark.parametrize("bounds", [derived(), DECLARED, None])
def test_constraints_and_conditions_hold(bounds: Any) -> None:
    def narrow(point: Any) -> bool:
        return point["link.width"] <= 4 * point["channels"]

    grid = space(constraints=[narrow], conditions={"step": {"policy": ["open"]}})
    proven(grid, model, bounds=bounds, **LATENCY_AND_COST)
    empty = explore(
        space(constraints=[lambda point: False]), model, method="milp", bounds=bounds, **LATENCY_AND_COST
    )
    assert empty.proof.proven and empty.evaluations == empty.unseen == 0


def test_the_gap_within_a_time_covers_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimize.search.milp.FEW", 4)
    exact = explore(space(), model, **LATENCY_AND_COST)
    gaps = []
    for limit in (2, 4, 8, 12, 10**6):
        now = iter(range(10**6))
        monkeypatch.setattr("optimize.search.milp.time", SimpleNamespace(monotonic=lambda now=now: next(now)))
        some = explore(space(), model, method="milp", bounds=derived(), time_limit=limit, **LATENCY_AND_COST)
        gaps.append(some.gap)
        if len(some.front):
            worst = some.values[some.feasible].max(axis=0)
            own, every = (hypervolume(e.values[e.front], reference=worst) for e in (some, exact))
            assert every - own <= (some.gap + 1e-12) * every
        assert some.proof.proven == (some.gap == 0.0) == ("not finished" not in str(some))
    assert gaps[0] > gaps[-2] > gaps[-1] == 0.0


def test_one_objective_has_the_gap_of_its_bound() -> None:
    limits = {"cost": (None, 20)}
    options: dict[str, Any] = {
        "minimize": "latency",
        "subject_to": limits,
        "vectorized": True,
        "method": "milp",
    }
    some = explore(space(), model, bounds=derived(), time_limit=1e-9, **options)
    whole = explore(space(), model, bounds=derived(), **options)
    assert 0 < some.gap <= 1 and some.bound[0] <= whole.bound[0] == whole.values[whole.front[0], 0]
    bounds = [step.bound[0] for step in whole.proof.steps]
    assert bounds == sorted(bounds) and str(whole.proof.steps[0]).endswith("gap 100.00%")


def test_nothing_feasible_is_proven_without_a_design() -> None:
    found = proven(space(), model, bounds=derived(), subject_to={"cost": (None, 1.0)}, **LATENCY_AND_COST)
    assert not len(found.front) and not found.evaluations


def test_a_metric_without_bounds_is_solved_where_the_others_leave_it_open() -> None:
    found = proven(space(), model, bounds=derived(derived=("cost",)), **LATENCY_AND_COST)
    assert found.proof.unbounded == ("latency",) and "nothing is known of latency" in str(found)


def test_steps_are_shown_on_a_terminal_and_not_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("optimize.search.explore.SECONDS", 0.0)
    explore(space(), model, method="milp", bounds=derived(), **LATENCY_AND_COST)
    assert capsys.readouterr() == ("", "")
    explore(space(), model, method="milp", bounds=derived(), progress=True, **LATENCY_AND_COST)
    assert "boxes open, bound" in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    explore(space(), model, method="milp", bounds=derived(), **LATENCY_AND_COST)
    assert "designs solved" in capsys.readouterr().err


def test_a_killed_search_resumes_and_workers_make_no_difference(tmp_path: Any) -> None:
    options: dict[str, Any] = {"bounds": DECLARED, **LATENCY_AND_COST}
    store = {"store": tmp_path / "a.db", "identity": "m"}
    plain = proven(space(), model, **options)

    def interrupted(chip: Chip, calls: list[int] = [0]) -> dict[str, Any]:  # noqa: B006
        calls[0] += 1
        if calls[0] == 6:
            raise KeyboardInterrupt
        return model(chip)

    with pytest.raises(KeyboardInterrupt):
        explore(space(), interrupted, method="milp", **store, **options)
    with ThreadPoolExecutor(2) as executor:
        resumed = explore(space(), model, method="milp", executor=executor, chunk=100, **store, **options)
    assert resumed.restored > 0 and resumed.evaluations + resumed.restored == plain.evaluations
    assert_array_equal(resumed.table["design"], plain.table["design"])
    assert explore(space(), model, method="milp", **store, **options).evaluations == 0


def test_a_model_must_answer_with_numbers_and_say_what_is_stable() -> None:
    def silent(chip: Chip) -> dict[str, Any]:
        return {name: value for name, value in model(chip).items() if name != "stable"}

    with pytest.raises(ValueError, match="evaluate must return stable with bounds that a model derives"):
        explore(space(), silent, method="milp", bounds=derived(), **LATENCY_AND_COST)
    with pytest.raises(ValueError, match="objective 'kind' must be a number, got 'slow'"):
        explore(space(), lambda chip: {"kind": "slow"}, method="milp", minimize="kind")
    wide = Space(Chip(), {name: range(1, 300) for name in ("step", "channels", "buffers")})
    with pytest.raises(
        ValueError, match="bounds must leave fewer combinations .*, got 26730899 of step, channels"
    ):
        explore(wide, model, method="milp", bounds=derived(spans=()), **LATENCY_AND_COST)
